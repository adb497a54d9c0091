"""A pair of original and release with common numbers for terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import polars as pl

from queryveil.data import Groups, Int32s, QueryLog, Tallies, Transactions
from queryveil.data.rows import Rows
from queryveil.errors import BadInput
from queryveil.guarantees import DifferentialPrivacy, KmAnonymity, NoPromise, SwapAnonymity
from queryveil.pairing.ancestors import Cover, taxonomy_of
from queryveil.pairing.identity import Who, by_fit, by_id, by_overlap, nobody
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail, keyed
from queryveil.text.histories import Histories, collect
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import Tokens, encode, hash_queries, tokenize


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Paired:
    """What attackers and measures look at.

    `before` has the terms of the original's `users`, `after` those of the release's candidates: the `candidates` by
    their ids where a log was released, else transactions, groups or tallied queries by their place. Both number terms
    by `vocabulary`. Who the candidates are is in `who`. The counts of a group's terms are 1.
    """

    original: QueryLog
    release: Release
    users: pl.Series
    user: Int32s
    """The number of the user of each row of the original."""
    candidates: pl.Series
    candidate: Int32s
    """The number of the candidate of each row of the released log; of each row of anything else, its place."""
    before: Histories
    after: Histories
    vocabulary: pl.Series
    who: Who
    cover: Cover | None = None
    """What may stand for a term in a release whose items moved up in a taxonomy."""

    @classmethod
    def of(
        cls, original: QueryLog, *, release: Release, key: bytes | None = None, taxonomy: Taxonomy | None = None
    ) -> Paired:
        """Put the two side by side; `key` is that of keyed ids or of hashed terms, if there are any.

        `taxonomy` is the one that items moved up in, if that is not WordNet.
        """
        user, users = encode(original.frame["user"])
        candidate, candidates, texts = _candidates(release)
        both = _tokens(original, release, texts)
        whole = collect(both, np.concatenate([user, candidate + len(users)]), n_users=len(users) + len(candidates))
        before, after = _cut(whole, len(users))
        tree = taxonomy_of(release, given=taxonomy)
        cover = None if tree is None else Cover.of(both.vocabulary, released=after.support() > 0, taxonomy=tree)
        if cover is not None and isinstance(release.data, Transactions) and cover.n_unknown:
            raise BadInput("the release has items that the taxonomy does not know; give the one it was made with")
        return cls(
            original=original,
            release=release,
            users=users,
            user=user,
            candidates=candidates,
            candidate=candidate,
            before=before,
            after=after,
            vocabulary=both.vocabulary,
            who=_who(original, release, both, user, users, candidate, candidates, key=key, cover=cover)
            if cover is None or isinstance(release.data, QueryLog)
            else by_fit(before, after=after, cover=cover, once=bool(release.manifest.parameters.get("distinct"))),
            cover=cover,
        )

    @classmethod
    def pseudonymised(cls, original: QueryLog) -> Paired:
        """Put a log beside itself with nothing but the ids changed: what there was before anything was done."""
        return cls.of(original, release=pseudonymised(original))

    @property
    def n_users(self) -> int:
        """The number of users of the original."""
        return len(self.users)

    @property
    def n_candidates(self) -> int:
        """The number of users, transactions, groups or tallied queries of the release."""
        return len(self.candidates)

    def __repr__(self) -> str:
        # Privacy: numbers only.
        return f"Paired(n_users={self.n_users}, n_candidates={self.n_candidates}, who={self.who!r})"


def another_log(n_rows: int, *, release: Release) -> str | None:
    """Return why a log of so many rows is not what the release was made from; None if it may be."""
    n_before = release.manifest.counts.n_rows_before
    # A stream counts what came while it ran, which may be a part of the log; noisy counts do not tell its size.
    if isinstance(release.promise, DifferentialPrivacy) or getattr(release.promise, "remembered", None) is not None:
        return None
    if n_rows == n_before:
        return None
    return (
        f"the release says that it was made from {n_before:,} rows, and there are {n_rows:,}: "
        f"give the log that it was made from"
    )


def pseudonymised(log: QueryLog) -> Release:
    """Return the log as a release that promises nothing; ids stay, since no attacker reads them."""
    counts = Counts(
        n_rows_before=log.n_rows, n_rows_after=log.n_rows, n_users_before=log.n_users, n_users_after=log.n_users
    )
    time = TimeDetail.KEEP if "time" in log.columns else TimeDetail.DROP
    kept = tuple(name for name in log.columns if name not in ("user", "query", "time"))
    return Release(
        data=log,
        manifest=Manifest(
            method="pseudonymise",
            promise=NoPromise(reason="only the user ids were changed"),
            parameters={},
            counts=counts,
            removed={},
            columns=ColumnReport(ids=Ids.KEEP, time=time, kept=kept),
        ),
    )


def _candidates(release: Release) -> tuple[Int32s, pl.Series, pl.Series]:
    """Return the candidate of each released row, the candidates, and the rows' texts."""
    data = release.data
    if isinstance(data, QueryLog):
        candidate, candidates = encode(data.frame["user"])
        return candidate, candidates, data.frame["query"]
    places = np.arange(data.frame.height, dtype=np.int32)
    if isinstance(data, Tallies):
        return places, pl.Series(places).cast(pl.String), data.frame["query"]
    lists = data.frame["terms"] if isinstance(data, Groups) else data.frame["items"]
    # An item may have blanks inside; they would part it.
    texts = lists.list.eval(pl.element().str.replace_all(r"\s", "_")).list.join(" ")
    return places, pl.Series(places).cast(pl.String), texts


def _tokens(original: QueryLog, release: Release, texts: pl.Series) -> Tokens:
    """Return the terms of the original's rows and, behind them, of the release's."""
    queries, promise = original.frame["query"], release.promise
    by_blanks = original.terms_are_items
    has_items = not isinstance(release.data, QueryLog | Tallies) or (isinstance(promise, KmAnonymity) and promise.items)
    if has_items and not by_blanks:
        # Items are released as they stand, phrases and nodes among them; a plain one is a term.
        queries = _as_items(queries)
    return tokenize(pl.concat([queries.rename(""), texts.rename("")]), by_blanks=by_blanks or has_items)


def _as_items(queries: pl.Series) -> pl.Series:
    tokens = tokenize(queries)
    return tokens.queries.gather(tokens.row_query).rename("")


def _cut(whole: Histories, n_users: int) -> tuple[Histories, Histories]:
    ptr, terms = whole.user_terms
    middle = int(ptr[n_users])
    before, after = Rows(ptr[: n_users + 1], terms[:middle]), Rows(ptr[n_users:] - middle, terms[middle:])
    return (
        replace(whole, user_terms=before, counts=whole.counts[:middle]),
        replace(whole, user_terms=after, counts=whole.counts[middle:]),
    )


def _who(
    original: QueryLog,
    release: Release,
    both: Tokens,
    user: Int32s,
    users: pl.Series,
    candidate: Int32s,
    candidates: pl.Series,
    *,
    key: bytes | None,
    cover: Cover | None,
) -> Who:
    data, columns, parameters = release.data, release.manifest.columns, release.manifest.parameters
    if isinstance(data, Groups | Tallies) or isinstance(release.promise, DifferentialPrivacy):
        # Users drawn from noisy counts are nobody, whatever their ids.
        return nobody(len(candidates))
    if isinstance(data, QueryLog) and columns.ids is Ids.KEEP:
        found = by_id(candidates, users=users)
        _check_known(found, "none of its user ids is in the original: give the log that it was made from")
        return found
    if isinstance(data, QueryLog) and columns.ids is Ids.KEYED and parameters.get("window") is None:
        if key is None:
            raise BadInput("its user ids are keyed, so the key is needed to tell who is who: add --key FILE")
        found = by_id(candidates, users=keyed(users, key=key))
        _check_known(found, "none of its user ids comes from this key and the original: give those it was made with")
        return found
    if isinstance(release.promise, SwapAnonymity):
        raise BadInput("its user ids are fresh, so nobody can tell who is who; anonymize with --ids keyed --key FILE")
    is_hashed = release.manifest.method == "token_hash"
    if is_hashed and key is None:
        raise BadInput("its terms are hashed, so the key is needed to tell who is who: add --key FILE")
    if is_hashed and key is not None:
        by_blanks = original.terms_are_items
        hashed = hash_queries(tokenize(original.frame["query"], by_blanks=by_blanks), key=key)
        both = tokenize(pl.concat([hashed.rename(""), data.frame["query"].rename("")]))
    owners = pl.Series(np.concatenate([user, candidate + len(users)]))
    cells = _cells(
        both,
        owners,
        moments=_moments(original, release),
        urls=_urls(original, release),
        cover=cover,
        n_rows_before=original.n_rows,
    )
    found = by_overlap(
        cells.filter(pl.col("owner") >= len(users)).with_columns(pl.col("owner") - len(users)),
        users=cells.filter(pl.col("owner") < len(users)),
        n_candidates=len(candidates),
        n_users=len(users),
    )
    if is_hashed:
        _check_known(found, "none of its terms comes from this key and the original: give those it was made with")
    return found


def _check_known(who: Who, reason: str) -> None:
    """Raise if nobody is known; attackers would seem to find nobody, however much they find."""
    if who.n_candidates and not len(who.users.values):
        raise BadInput(reason)


def _moments(original: QueryLog, release: Release) -> pl.Series | None:
    """Return the times of both, rounded as the release's are; None if one has none."""
    unit, data = release.manifest.columns.time.unit, release.data
    if unit is None or "time" not in original.columns or "time" not in data.columns:
        return None
    return pl.concat([original.frame["time"], data.frame["time"]]).to_physical() // (unit // timedelta(microseconds=1))


def _urls(original: QueryLog, release: Release) -> pl.Series | None:
    if "url" not in original.columns or "url" not in release.data.columns:
        return None
    released = release.data.frame["url"]
    # In AOL's format a column that was dropped is there and empty.
    return None if released.null_count() == len(released) else pl.concat([original.frame["url"], released])


def _cells(
    tokens: Tokens,
    owners: pl.Series,
    *,
    moments: pl.Series | None,
    urls: pl.Series | None,
    cover: Cover | None,
    n_rows_before: int,
) -> pl.DataFrame:
    """Return what each owner did as cells: a term, and when and where it led if both sides tell.

    Where items moved up, the cells of an original's term are all items that may stand for it.
    """
    of_rows = tokens.row_terms()
    row, terms = of_rows.row_of_entry, of_rows.values.astype(np.int64)
    if cover is not None:
        n_before = int(of_rows.ptr[n_rows_before])
        items = cover.covering(tokens.vocabulary).take(terms[:n_before])
        row = np.concatenate([row[:n_before][items.row_of_entry], row[n_before:]])
        terms = np.concatenate([items.values, terms[n_before:]])
    frame = pl.DataFrame({"term": terms})
    if moments is not None:
        frame = frame.with_columns(moment=moments.gather(row))
    if urls is not None:
        frame = frame.with_columns(url=urls.gather(row))
    # Two of a million cells fall together by chance once in forty million logs.
    return pl.DataFrame({"owner": owners.gather(row), "cell": frame.hash_rows()})

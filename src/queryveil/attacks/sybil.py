"""Sybil attack: add users to the log before it is anonymized, after Götz et al.

A combination is a query of two or more terms. Combinations that one person asked are planted beside decoys that nobody
asked, and the release shows how often each is seen.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import compress
from math import ceil
from typing import Any

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker, Surest
from queryveil.data import Groups, Int64s, QueryLog, Tallies
from queryveil.data.rows import Rows, group
from queryveil.guarantees import DifferentialPrivacy, SwapAnonymity
from queryveil.kernels import njit
from queryveil.pairing import Pair, released_texts
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.settings import setting
from queryveil.text.identifiers import remove_identifiers
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import Tokens, normal_form, tokenize

BY_CHANCE_UNDER_NOISE = (
    "how often the query leaves although the person never asked it; only the difference tells of the person"
)
"""What is by chance where noise decides what leaves."""
N_TARGETS = 400
"""Targets for +-5 points at 95 % confidence."""
FALSE_DECOYS = 0.05
"""The share of decoys that may be taken for queries that somebody asked."""
_LEAST = 2
_NOT_ASKED_EACH = 4
"""Where noise decides, so many that nobody asked for each that somebody did: half pass, so few tell the share badly."""
_MOST_PLANTED = 400_000
"""Where counts must be large to pass, fewer targets are tried than would need so many users."""
_N_COMMON = 500
"""Decoys are made of so many of the most common terms."""
_MOST_TRIES = 50
_OTHER = " info"  # makes another text of, most likely, the same category


@dataclass(frozen=True, slots=True, kw_only=True)
class Sybil(Seeker):
    """Test whether a person asked a query: add k-1 users who ask it, and check whether it is released.

    Suspected are twice as many people as targets, each of a query of two or more terms that nobody else has together.
    Half of them, drawn at random, really asked it; from the log of the others it was taken out before the method ran,
    with all of their queries that have these terms. Who is in which half is what the attacker must tell.
    A combination is counted in a log as users with a query that holds all of it (as rows, where queries change hands),
    in bags of items as bags, in groups as members, by what these tell of their terms. It is taken to be asked if it is
    seen more often than 19 in 20 decoys: combinations of common terms that nobody asked, planted in the same way. Found
    are those who asked and are taken to have; by chance as large a share as of those who did not ask.
    Where noise was added to the counts of queries, k is the smallest threshold, at which about half of them pass, and
    whatever passes is taken to be asked. Decoys set no bar there: they count among what nobody asked.

    An `early` attacker (`sybil_early`) of swap seeks who asked after the first day. On it as many users as the largest
    threshold ask each text, and then another one, so that the first leave their pools. Counted are rows that left
    later: by their time, or without times those of ids that have no other text that was planted.

    - `early`: plant on the first day.
    - `n_targets`: the number of people who really asked.
    - `seed`: repeats what is drawn.
    """

    early: bool = False
    n_targets: int = setting(N_TARGETS, at_least=1, help="The number of people who really asked.")

    @property
    def name(self) -> str:
        return "sybil_early" if self.early else "sybil"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        end = first_day_end(pair) if self.early else None
        if self.early and end is None:
            yield "needs times, and queries that change hands once enough people asked them"
        if auxiliary.remake is None:
            yield "needs the method and its settings, to run it on a log with users of its own"
        if pair.release.manifest.method == "token_hash":
            yield "the terms of the release are hashed"
        is_noisy = isinstance(pair.release.promise, DifferentialPrivacy)
        if is_noisy and pair.log.terms_are_items:
            yield "the release counts items one by one, and no combination of them"
        if own_queries(pair, n=1, rng=generator(self.seed), since=end).is_empty():
            yield "nobody asked a query of two or more terms that is this person's alone"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        assert auxiliary.remake is not None  # skip_reason() says so
        rng = generator(self.seed)
        end = first_day_end(pair) if self.early else None
        k = k_of(pair.release) if end is None else 2 * int(getattr(pair.release.promise, "min_query_users", 1))
        is_noisy = isinstance(pair.release.promise, DifferentialPrivacy)
        n_most = max(1, _MOST_PLANTED // ((1 + _NOT_ASKED_EACH) * k)) if is_noisy else self.n_targets
        suspected = own_queries(pair, n=2 * min(self.n_targets, n_most), rng=rng, since=end)
        n_asked = (suspected.height + 1) // 2
        n_not = suspected.height - n_asked
        each = np.tile(np.arange(n_asked), _NOT_ASKED_EACH - 1 if is_noisy else 1)
        combinations = pl.concat([suspected, decoys(pair, like=suspected[each], rng=rng)])
        plant = planted if end is None else partial(planted_early, end=end)
        with_plants = plant(pair.log, combinations=combinations, n_each=k - 1, rng=rng)
        removed_rows = asked_in(pair, combinations=suspected[n_asked:])
        kept = pl.Series(~np.isin(np.arange(with_plants.n_rows), removed_rows))
        release = auxiliary.remake(with_plants.with_frame(with_plants.frame.filter(kept)))
        taxonomy = None if pair.ancestors is None else pair.ancestors.taxonomy
        seen = times_seen(combinations, release=release, taxonomy=taxonomy)
        if end is not None:
            seen = _left_later(remove_identifiers(combinations["text"]).queries, release=release, end=end)
        bar = 0 if is_noisy else above_decoys(seen[n_asked + n_not :], n_planted=k - 1)
        n_not = len(seen) - n_asked if is_noisy else n_not
        is_released = seen[: n_asked + n_not] > bar
        n_false = int(np.count_nonzero(is_released[n_asked:]))
        # As many who asked as who did not: whoever accuses those seen most often accuses some of both.
        n_each = min(n_asked, n_not)
        both = np.concatenate([seen[:n_each], seen[n_asked : n_asked + n_each]]).astype(np.float64)
        return self.exposure(
            knows=f"a query that a person may have asked, and plants it for {k - 1} more{' early' * self.early}",
            n_targets=n_asked,
            n_found=int(np.count_nonzero(is_released[:n_asked])),
            # Who blindly accuses as large a share of those who did not ask finds as large a share of those who did.
            n_by_chance=n_asked * n_false / max(1, n_not),
            surest=Surest.of(np.repeat([1.0, 0.0], n_each), confidence=both),
        )


def above_decoys(seen: Int64s, *, n_planted: int) -> int:
    """Return how often a combination that nobody asked is seen at most, by decoys; without any, as often as planted.

    >>> above_decoys(np.array([0] * 96 + [3] * 4), n_planted=4), above_decoys(np.array([], np.int64), n_planted=4)
    (0, 4)
    """
    return int(np.sort(seen)[int((1 - FALSE_DECOYS) * (len(seen) - 1))]) if len(seen) else n_planted


def k_of(release: Release) -> int:
    """Return how many people a release asks for, or the smallest noisy count; two where it asks for none."""
    if thresholds := [part.threshold for part in release.manifest.noise if part.what == "queries"]:
        return max(_LEAST, min(thresholds))
    parameters = release.manifest.parameters
    k, p = (parameters.get("k", parameters.get("n_users")), parameters.get("p"))
    if release.manifest.method == "plink" and isinstance(p, int | float) and not isinstance(k, int):
        k = ceil(1 / p - 1e-9)
    return max(_LEAST, k) if isinstance(k, int) else _LEAST


def first_day_end(pair: Pair) -> datetime | None:
    """Return the end of the first day of a log, if swap counts the askers of a text."""
    promise = pair.release.promise
    if not isinstance(promise, SwapAnonymity) or promise.min_query_users == 1 or "time" not in pair.log.columns:
        return None
    start: Any = pair.log.frame["time"].dt.truncate("1d").min()
    return None if start is None else start + timedelta(days=1)


def own_queries(pair: Pair, *, n: int, rng: np.random.Generator, since: datetime | None = None) -> pl.DataFrame:
    """Draw n people with a query of two or more terms that nobody else has together, and such a query of each.

    They asked it at `since` or later. Combinations are a frame of the `text` of a query and the `row` that asked it.
    """
    tokens, user = pair.original_tokens, pair.user
    frame = pl.DataFrame({"user": user, "query": tokens.row_query, "row": np.arange(len(user))})
    n_terms = pl.Series(_n_distinct(tokens)[tokens.row_query])
    # Most queries fall out here, at little cost.
    alone = frame.filter(n_terms >= 2).filter(pl.col("user").n_unique().over("query") == 1)["row"].to_numpy()
    if since is not None:
        alone = alone[(pair.log.frame["time"].gather(alone) >= since).fill_null(False).to_numpy()]
    index, found = _Index(tokens), dict[int, int]()
    # People in any order, and the queries of each in any order.
    order = np.lexsort((rng.random(len(alone)), rng.permutation(pair.n_users)[user[alone]]))
    for first in range(0, len(alone), 2 * n):
        rows = alone[order[first : first + 2 * n]]
        like = index.rows_like(rows)
        askers = user[like.values]
        is_own = np.minimum.reduceat(askers, like.ptr[:-1]) == np.maximum.reduceat(askers, like.ptr[:-1])
        for row in rows[is_own].tolist():
            found.setdefault(int(user[row]), row)
        if len(found) >= n:
            break
    chosen = np.array(list(found.values())[:n], np.int64)
    return pl.DataFrame({"text": pair.log.frame["query"].gather(chosen), "row": chosen})


def asked_in(pair: Pair, *, combinations: pl.DataFrame) -> Int64s:
    """Return the rows of the original that have all terms of a combination and are by the user who asked it."""
    asked, user = combinations["row"].to_numpy(), pair.user
    like = _Index(pair.original_tokens).rows_like(asked)
    return np.unique(like.values[user[like.values] == user[asked][like.row_of_entry]])


def decoys(pair: Pair, *, like: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Make up as many combinations of common terms that are in no query of the log; fewer if they are hard to find.

    None is part of another, or users invented for one would be seen for the other. Each has as many terms as one of
    those it is to be `like`, and borrows that one's row.
    """
    tokens = pair.original_tokens
    index = _Index(tokens)
    common = np.argsort(-index.queries_of.lengths, kind="stable")[:_N_COMMON]
    borrowed = like["row"].to_numpy()
    sizes = np.minimum(_n_distinct(tokens)[tokens.row_query[borrowed]], len(common))
    taken, missing = dict[int, set[int]](), list(range(len(borrowed)))
    for _ in range(_MOST_TRIES):
        drawn = [rng.choice(common, size=sizes[place], replace=False) for place in missing]
        is_new = index.queries_with(Rows.from_lists(drawn)).lengths == 0
        for place, terms in zip(np.array(missing)[is_new], compress(drawn, is_new), strict=True):
            own = set(terms.tolist())
            if not any(own <= other or own >= other for other in taken.values()):
                taken[place] = own
        missing = [place for place in missing if place not in taken]
        if not missing:
            break
    texts = [" ".join(tokens.vocabulary.gather(sorted(taken[place]))) for place in sorted(taken)]
    schema = {"text": pl.String, "row": pl.Int64}
    return pl.DataFrame({"text": texts, "row": borrowed[sorted(taken)]}, schema=schema)


def times_seen(combinations: pl.DataFrame, *, release: Release, taxonomy: Taxonomy | None = None) -> Int64s:
    """Return how often a release shows each combination: its users, bags or members; its rows if queries were swapped.

    In bags the terms that a `taxonomy` knows are sought, by the names of their nodes. Where noise was added to counts
    of whole queries, it is the count of the very query, or its made-up rows.
    """
    data = release.data
    if isinstance(data, Tallies):
        return _as_whole_queries(combinations["text"], data.frame)
    if isinstance(release.promise, DifferentialPrivacy):
        return _as_whole_queries(combinations["text"], release.log.frame.group_by("query").agg(count=pl.len()))
    if isinstance(data, Groups):
        return _in_groups(combinations["text"], data)
    owner, _, texts = released_texts(release)
    if isinstance(release.promise, SwapAnonymity):
        owner = np.arange(len(texts), dtype=np.int32)
    by_blanks = data.terms_are_items if isinstance(data, QueryLog) else True
    n, wanted = combinations.height, _as_items(combinations["text"]) if by_blanks else combinations["text"]
    if taxonomy is not None and not isinstance(data, QueryLog):
        wanted = _as_nodes(wanted, taxonomy)
    tokens = tokenize(pl.concat([wanted.rename(""), texts.rename("")]), by_blanks=by_blanks)
    # The combinations come first, and the released rows behind them.
    like = _Index(tokens).rows_like(np.arange(n))
    seen = pl.DataFrame({"place": like.row_of_entry, "row": like.values}).filter(pl.col("row") >= n)
    owners = pl.Series(owner).gather(seen["row"] - n)
    n_seen = seen.with_columns(owner=owners).unique(["place", "owner"])["place"]
    return np.bincount(n_seen, minlength=n)


def _as_nodes(texts: pl.Series, taxonomy: Taxonomy) -> pl.Series:
    """Write the names of the nodes for the terms that a taxonomy knows, nothing for fewer than two."""
    words = pl.DataFrame({"row": np.arange(len(texts)), "word": texts.str.split(" ")}).explode("word")
    node = taxonomy.find_all(words["word"])
    names = taxonomy.item_names.gather(np.maximum(node, 0))
    known = words.select("row", name=names).filter(pl.Series(node >= 0)).group_by("row").agg(pl.col("name").unique())
    known = known.filter(pl.col("name").list.len() >= 2)
    rows = pl.DataFrame({"row": np.arange(len(texts))}).join(known, on="row", how="left", maintain_order="left")
    return rows["name"].list.join(" ").fill_null("")


class _Index:
    """The queries that hold each term, and the rows of each query."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self.queries_of = tokens.query_terms.transpose(tokens.n_terms)
        self._rows_of = group(tokens.row_query, len(tokens.queries))

    def queries_with(self, sets: Rows[np.int32]) -> Rows[np.int32]:
        """Return for each set of terms the distinct queries that hold all of it; none for an empty set."""
        return _queries_with(sets, self._tokens.query_terms, self.queries_of)

    def rows_like(self, rows: Int64s) -> Rows[np.int64]:
        """Return for each of some rows the rows that hold all terms of it."""
        ptr, queries = self.queries_with(self._tokens.query_terms.take(self._tokens.row_query[rows]))
        like = self._rows_of.take(queries)
        return Rows(like.ptr[ptr], like.values)


@njit(cache=True, nogil=True)
def _queries_with(sets: Rows[Any], terms_of: Rows[Any], queries_of: Rows[Any]) -> Rows[Any]:
    ptr, found = np.zeros(len(sets.ptr), np.int64), [np.int32(0) for _ in range(0)]
    for place in range(len(ptr) - 1):
        terms = sets.values[sets.ptr[place] : sets.ptr[place + 1]]
        rarest, fewest = -1, -1
        for term in terms:
            n = queries_of.ptr[term + 1] - queries_of.ptr[term]
            if rarest < 0 or n < fewest:
                rarest, fewest = term, n
        if rarest >= 0:
            for query in queries_of.values[queries_of.ptr[rarest] : queries_of.ptr[rarest + 1]]:
                held = terms_of.values[terms_of.ptr[query] : terms_of.ptr[query + 1]]
                has_all = True
                for term in terms:
                    if not np.any(held == term):
                        has_all = False
                if has_all:
                    found.append(query)
        ptr[place + 1] = len(found)
    return Rows(ptr, np.array(found, np.int32))


def _in_groups(texts: pl.Series, groups: Groups) -> Int64s:
    """Return how many members may have all of each combination: of each group as many as have its rarest term there."""
    held = _scoring.group_holders(groups).with_columns(pl.col("n").round().cast(pl.Int64))
    words = _as_items(texts).str.split(" ").list.unique()
    wanted = pl.DataFrame({"place": np.arange(len(words)), "size": words.list.len(), "term": words}).explode("term")
    together = wanted.join(held, on="term").group_by("place", "size", "group").agg(n=pl.col("n").min(), found=pl.len())
    whole = together.filter(pl.col("found") == pl.col("size")).group_by("place").agg(pl.col("n").sum())
    seen = np.zeros(len(words), np.int64)
    seen[whole["place"].to_numpy()] = whole["n"].to_numpy()
    return seen


def _as_whole_queries(texts: pl.Series, counted: pl.DataFrame) -> Int64s:
    """Look the queries up, whole and in normal form, in a frame of query and count."""
    wanted = pl.DataFrame({"query": normal_form(texts)})
    known = counted.select(pl.col("query"), pl.col("count").cast(pl.Int64))
    found = wanted.join(known, on="query", how="left", maintain_order="left")["count"]
    return np.asarray(found.fill_null(0).to_numpy(), np.int64)


def _as_items(texts: pl.Series) -> pl.Series:
    tokens = tokenize(texts)
    return tokens.queries.gather(tokens.row_query).rename("")


def _n_distinct(tokens: Tokens) -> Int64s:
    """Count the distinct terms of each query."""
    return tokens.query_terms.to_series().list.n_unique().to_numpy()


def planted(log: QueryLog, *, combinations: pl.DataFrame, n_each: int, rng: np.random.Generator) -> QueryLog:
    """Return the log with `n_each` invented users for each combination, who ask it once.

    Their rows are like the row of the combination in all else: its time, its URL, and what other columns there are.
    """
    more = combinations[np.repeat(np.arange(combinations.height), n_each)]
    # Ids that nobody has, in an order that tells nothing.
    taken, ids = set(log.frame["user"].unique()), dict[str, None]()
    while len(ids) < more.height:
        ids |= dict.fromkeys({f"{int(rng.integers(1, 2**62))}"} - taken)
    users = pl.Series(list(ids), dtype=pl.String)
    new = log.frame[more["row"]].with_columns(user=users, query=more["text"])
    return log.with_frame(pl.concat([log.frame, new.select(log.frame.columns)]))


def planted_early(
    log: QueryLog, *, combinations: pl.DataFrame, n_each: int, rng: np.random.Generator, end: datetime
) -> QueryLog:
    """Return the log with users who ask each combination in half of a day, and another text in the other half."""
    own = planted(log, combinations=combinations, n_each=n_each, rng=rng).frame[log.n_rows :]
    # Each of them asks about fifty, so that an id which is given planted texts is given several.
    groups = rng.integers(1 + combinations.height // 50, size=own.height)
    own = own.with_columns(own["user"].gather(n_each * groups + np.arange(own.height) % n_each))
    parts, half = [log.frame], timedelta(hours=12)
    for start, query in ((end - 2 * half, pl.col("query")), (end - half, pl.col("query") + _OTHER)):
        moments = [start + half * share for share in rng.random(own.height).tolist()]
        parts.append(own.with_columns(query, time=pl.Series(moments, dtype=own["time"].dtype)))
    return log.with_frame(pl.concat(parts))


def _left_later(texts: pl.Series, *, release: Release, end: datetime) -> Int64s:
    """Return how many rows of each text left after the end of the day on which it was planted."""
    rows = release.log.frame.with_columns(query=normal_form(release.log.frame["query"]))
    planted_texts = normal_form(pl.concat([texts, texts + _OTHER])).implode()
    n_planted = pl.col("query").filter(pl.col("query").is_in(planted_texts)).n_unique().over("user")
    is_later = pl.col("time") >= end if "time" in rows.columns else n_planted <= 1
    return _as_whole_queries(texts, rows.filter(is_later).group_by("query").agg(count=pl.len()))

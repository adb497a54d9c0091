"""The baselines: releases that promise nothing, to compare with what the methods do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.guarantees import NoPromise
from queryveil.methods.bots import caveats, check_queries, counts_of
from queryveil.methods.settings import PseudonymiseSettings, QueryThresholdSettings, TokenHashSettings
from queryveil.release import ColumnPolicy, Manifest, Release, TimeDetail, check_key, new_key, release_of, rows_for
from queryveil.release.texts import count_texts
from queryveil.rng import check_seed, generator
from queryveil.settings import check_settings, parameters_of
from queryveil.text import tokenize
from queryveil.text.tokens import encode, encode_normal_form, hash_queries


def _release(
    method: Pseudonymise | QueryThreshold | TokenHash,
    log: QueryLog,
    out: pl.DataFrame,
    *,
    whole: QueryLog,
    name: str,
    removed: dict[str, int] | None = None,
    changed: dict[str, int] | None = None,
    warnings: Sequence[str] = (),
) -> Release:
    """Return a release that promises nothing, and says so first; `whole` is the log with its events."""
    report, counts, before = method.columns.report(log.columns), counts_of(log, out), log.frame
    # Hashes are no texts.
    is_text = not isinstance(method, TokenHash)
    skipped = {"bad_rows_skipped": log.reading.n_bad_rows_skipped}
    manifest = Manifest(
        method=name,
        promise=method.promise,
        parameters=parameters_of(method),
        counts=counts,
        texts=count_texts(out["query"], asked=before["query"], users=before["user"]) if is_text else None,
        removed=skipped | (removed or {}) | {"users_left_empty": log.n_users - counts.n_users_after},
        changed=changed or {},
        columns=report,
        warnings=(
            f"promises nothing: {method.promise.reason}; it is there to compare with, not to be handed out",
            # No promise covers any column, so none is named as not covered.
            *method.columns.warnings(log.columns, protected=report.kept),
            *warnings,
            *caveats(log.reading, seed=method.seed, columns=log.columns),
        ),
    )
    return release_of(out, manifest, rows=log, log=whole, columns=method.columns, rng=generator(method.seed))


AS_AOL_DID = ColumnPolicy(time=TimeDetail.KEEP, keep=("rank", "url"))
"""Exact times, ranks and clicked URLs leave with the queries."""
BY_DAY = ColumnPolicy(time=TimeDetail.DAY)
"""Days leave with the queries, as publishers of such logs do."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pseudonymise(PseudonymiseSettings):
    """Change the user ids and leave everything else as it is.

    Promise: none. It is a baseline, to compare with.
    Not promised: anything. All queries of a person stay together, as they were typed; a name and a town among them are
    enough to find the person.

    - columns: what else leaves; by default exact times, and ranks and clicked URLs where the log has them
    - seed: repeat a run; not for releases

    >>> from queryveil.testing import tiny_log
    >>> release = Pseudonymise().anonymize(tiny_log())
    >>> print(release.promise.in_words())
    This release promises nothing: all queries of a person stay together, as they were typed.
    """

    columns: ColumnPolicy = AS_AOL_DID

    def __post_init__(self) -> None:
        check_seed(self.seed)

    @property
    def promise(self) -> NoPromise:
        """What a release will promise."""
        return NoPromise(reason="all queries of a person stay together, as they were typed")

    def anonymize(self, log: QueryLog) -> Release:
        """Return the log with other user ids."""
        columns = self.columns
        whole, log = log, rows_for(log, columns)
        if columns.keep == AS_AOL_DID.keep:
            # By default what there is of ranks and URLs leaves, and a log need not have them.
            columns = replace(columns, keep=tuple(name for name in columns.keep if name in log.columns))
        columns.check(log.columns, has_events=log.events is not None)
        check_queries(log, method="pseudonymise")
        owners, _ = encode(log.frame["user"])
        out = columns.apply(log.frame, owners, rng=generator(self.seed))
        return _release(replace(self, columns=columns), log, out, whole=whole, name="pseudonymise")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryThreshold(QueryThresholdSettings):
    """Keep the rows whose query was asked by at least k users.

    Promise: none. It is a baseline, to compare with.
    Not promised: anything. The queries of a person stay together, and two of them may be one person's alone; whoever
    can ask k-1 times under other ids sees whether somebody else asked a query at all.

    Queries are released in lower case with single blanks, as they are counted. An empty query is left out.

    - k: users who must have asked a query, 2 or more
    - columns: which other columns leave, and how ids and times change
    - seed: repeat a run; not for releases

    >>> from queryveil.testing import tiny_log
    >>> release = QueryThreshold(k=2).anonymize(tiny_log())
    >>> release.log.frame["query"].to_list()
    ['red wine', 'red wine']
    """

    columns: ColumnPolicy = BY_DAY

    def __post_init__(self) -> None:
        check_settings(self)
        check_seed(self.seed)

    @property
    def promise(self) -> NoPromise:
        """What a release will promise."""
        asked = f"each query was asked by {self.k} people or more"
        return NoPromise(reason=f"{asked}, but two of them together may be one person's alone")

    def anonymize(self, log: QueryLog) -> Release:
        """Return the rows of the log whose query is common."""
        whole, log = log, rows_for(log, self.columns)
        self.columns.check(log.columns, has_events=log.events is not None)
        check_queries(log, method="query-threshold")
        owners, _ = encode(log.frame["user"])
        query, texts = encode_normal_form(log.frame["query"])
        is_text = (texts != "").to_numpy()
        askers = pl.DataFrame({"query": query, "user": owners}).unique()
        is_common = is_text & (np.bincount(askers["query"], minlength=len(texts)) >= self.k)
        stays = is_common[query]
        frame = log.frame.with_columns(query=texts.gather(query)).filter(stays)
        out = self.columns.apply(frame, owners[stays], rng=generator(self.seed))
        n_empty = int((~is_text[query]).sum())
        removed = {
            "rows_without_query": n_empty,
            "rows_of_rare_queries": log.n_rows - n_empty - out.height,
            "distinct_queries": int(is_text.sum() - is_common.sum()),
        }
        return _release(self, log, out, whole=whole, name="query_threshold", removed=removed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenHash(TokenHashSettings):
    """Replace every term by its hash under a secret key, in the order of the terms.

    Promise: none. It is a baseline, to compare with.
    Not promised: anything. Equal terms have equal hashes, so a log of the same kind tells which hash is which common
    term, and that tells more.

    - key: 16 secret bytes or more; the same key gives the same hashes in every release, None draws one and forgets it
    - columns: which other columns leave, and how ids and times change
    - seed: repeat a run; not for releases

    >>> from queryveil.testing import log_of
    >>> release = TokenHash(key=b"sixteen bytes or more").anonymize(log_of({"u1": ["Jaguar price"]}))
    >>> release.log.frame["query"].item()
    '9851f04ec9f27739 6d1af0c0e008124d'
    """

    key: bytes | None = field(default=None, repr=False)
    columns: ColumnPolicy = BY_DAY

    def __post_init__(self) -> None:
        if self.key is not None and not isinstance(self.key, bytes):
            # Privacy: a secret is never shown, whatever it is.
            raise BadParameter("key", f"a {type(self.key).__name__}", allowed="bytes, or none for a new one")
        check_key(self.key)
        check_seed(self.seed)

    @property
    def promise(self) -> NoPromise:
        """What a release will promise."""
        return NoPromise(reason="equal terms have equal hashes, and how often they are used tells which they are")

    def anonymize(self, log: QueryLog) -> Release:
        """Return the log with hashes in place of terms; rows without any term are left out."""
        whole, log = log, rows_for(log, self.columns)
        self.columns.check(log.columns, has_events=log.events is not None)
        rng = generator(self.seed)
        progress.step("hashing terms")
        tokens = tokenize(log.frame["query"], by_blanks=log.terms_are_items)
        # A run that is to repeat needs its hashes again.
        key = new_key(None if self.seed is None else rng) if self.key is None else self.key
        texts = hash_queries(tokens, key=key)
        n_terms = tokens.query_terms.lengths[tokens.row_query]
        owners, _ = encode(log.frame["user"])
        stays = n_terms > 0
        out = self.columns.apply(log.frame.with_columns(texts).filter(stays), owners[stays], rng=rng)
        return _release(
            self,
            log,
            out,
            whole=whole,
            name="token_hash",
            removed={"rows_without_terms_before": log.n_rows - out.height},
            changed={"term_occurrences_hashed": int(n_terms.sum())},
            warnings=self._warnings(log),
        )

    def _warnings(self, log: QueryLog) -> list[str]:
        found = []
        if self.columns.report(log.columns).kept:
            found.append("columns that were kept are not hashed: a clicked URL tells what the query was")
        if self.key is not None:
            found.append("whoever gets the key can look up the hash of any word")
        elif self.seed is not None:
            found.append("the key was drawn with the seed: whoever knows the seed can look up the hash of any word")
        return found

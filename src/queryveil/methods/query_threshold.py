"""Only queries that enough people asked: what most publishers of query logs do."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from queryveil.columns import ColumnPolicy
from queryveil.errors import BadParameter
from queryveil.guarantees import NoPromise
from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.log import QueryLog
from queryveil.methods.baselines import baseline_manifest, check_queries
from queryveil.release import Release
from queryveil.rng import check_seed, generator
from queryveil.text.codes import encode
from queryveil.text.normal_form import normalise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryThreshold:
    """Keep the rows whose query was asked by at least k users.

    Promise: none. It is a baseline, to compare with.
    Not promised: anything. The queries of a person stay together, and two of them may be one person's alone; whoever
    can ask k-1 times under other ids sees whether somebody else asked a query at all.

    Queries are released in lower case with single blanks, as they are counted. An empty query is left out.

    Examples
    --------
    >>> from queryveil.testing import tiny_log
    >>> release = QueryThreshold(k=2).anonymize(tiny_log())
    >>> release.log.frame["query"].to_list()
    ['red wine', 'red wine']
    """

    k: int = 5
    columns: ColumnPolicy = field(default_factory=ColumnPolicy)
    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or self.k < 2:
            raise BadParameter("k", self.k, allowed="2 or more")
        check_seed(self.seed)

    @property
    def promise(self) -> NoPromise:
        """What a release will promise."""
        asked = f"each query was asked by {self.k} people or more"
        return NoPromise(reason=f"{asked}, but two of them together may be one person's alone")

    def anonymize(self, log: QueryLog) -> Release:
        """Give the rows of the log whose query is common."""
        self.columns.check(log.columns)
        check_queries(log, method="query-threshold")
        owners, _ = encode(log.frame["user"])
        query, texts = _queries(log.frame["query"])
        is_text = (texts != "").to_numpy()
        is_common = is_text & (_n_users(query, owners, n_queries=len(texts)) >= self.k)
        stays = is_common[query]
        frame = log.frame.with_columns(query=texts.gather(query)).filter(stays)
        out = self.columns.apply(frame, owners[stays], rng=generator(self.seed))
        n_empty = int((~is_text[query]).sum())
        manifest = baseline_manifest(
            log,
            out,
            method="query_threshold",
            promise=self.promise,
            columns=self.columns,
            seeded=self.seed is not None,
            parameters={"k": self.k},
            removed={
                "rows_without_query": n_empty,
                "rows_of_rare_queries": log.n_rows - n_empty - out.height,
                "distinct_queries": int(is_text.sum() - is_common.sum()),
            },
        )
        return Release(data=log.with_frame(out), manifest=manifest)


def _queries(asked: pl.Series) -> tuple[Int32s, pl.Series]:
    """Number the queries of the rows by their normal form; each distinct one is looked at once."""
    as_asked, distinct = encode(asked)
    normal, texts = encode(normalise(distinct))
    return (normal[as_asked] if len(distinct) else as_asked), texts


def _n_users(query: Int32s, user: Int32s, *, n_queries: int) -> Int64s:
    """Count the distinct users of each query."""
    n_users = int(user.max(initial=-1)) + 1
    pairs = np.unique(query.astype(np.int64) * max(1, n_users) + user)
    return np.bincount(pairs // max(1, n_users), minlength=n_queries)

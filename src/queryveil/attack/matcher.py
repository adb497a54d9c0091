"""The log matcher: how many rows two logs have in common."""

from __future__ import annotations

import polars as pl

from queryveil.log import QueryLog
from queryveil.text.normal_form import normalise


def match(log: QueryLog, *, other: QueryLog) -> int:
    """Count the rows of one log that the other has too: the same user with the same query.

    A row counts as often as both logs have it. Queries are the same in any case and with any blanks; users must go by
    the same ids in both. Times, ranks and URLs do not matter.

    >>> one = QueryLog.from_frame({"user": ["u1", "u1", "u2"], "query": ["red wine", "Red  Wine", "jaguar"]})
    >>> two = QueryLog.from_frame({"user": ["u1", "u2", "u2"], "query": ["red wine", "jaguar", "jaguar"]})
    >>> match(one, other=two)
    2
    """
    both = _counts(log).join(_counts(other), on=["user", "query"], how="inner")
    # Paper: section 3.3.3, identical logs appearing in the two input streams.
    return int(both.select(pl.min_horizontal("n", "n_right").sum()).item())


def _counts(log: QueryLog) -> pl.DataFrame:
    folded = pl.DataFrame({"user": log.frame["user"], "query": normalise(log.frame["query"])})
    return folded.group_by("user", "query").agg(n=pl.len().cast(pl.Int64))

"""What a release of kdelta says of itself: what became of queries and URLs, and which queries are alike."""

from __future__ import annotations

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.methods.kdelta_objects import Objects

_N_TOP = 50
"""Paper: figure 2(c) counts how many of the 50 most frequent stay among the 50 most frequent."""


def losses(original: Objects, query: Int32s, url: Int32s, *, people: Objects) -> dict[str, float]:
    """Compare the distinct queries and URLs of the original log with those of released rows.

    `people` are the rows without those of programs: a query that only they and one person asked is that person's.
    """
    measures: dict[str, float] = {}
    for name, before, after in (("queries", original.query, query), ("urls", original.url, url)):
        n_rows = np.bincount(before[before >= 0])
        n_left = np.bincount(after[after >= 0], minlength=len(n_rows))
        n_distinct = int((n_rows > 0).sum())
        if name == "urls" and not n_distinct:
            continue
        measures[f"share_of_distinct_{name}_lost"] = (
            round(1 - int((n_left > 0).sum()) / n_distinct, 6) if n_distinct else 0.0
        )
        measures[f"top_{_N_TOP}_{name}_kept"] = len(_top(n_rows) & _top(n_left))
    asked_by = people.n_users_by(people.query, n_numbers=len(people.texts))
    measures["queries_of_one_user"] = int((asked_by[np.unique(query)] == 1).sum())
    return measures


def _top(n_rows: Int64s) -> set[int]:
    order = np.argsort(-n_rows, kind="stable")[:_N_TOP]
    return set(order[n_rows[order] > 0].tolist())


def name_clusters(query: Int32s, part: Int64s, texts: pl.Series) -> str:
    """Number the clusters of the released queries, in the order of their texts, as one text.

    Privacy: the numbers follow from the order of the texts, so they say which queries are alike and nothing else.

    >>> name_clusters(np.array([0, 1, 2]), np.array([9, 5, 9]), pl.Series(["c", "a", "b"]))
    '1 2 2'
    """
    present = np.unique(query)
    order = texts.gather(present).arg_sort().to_numpy()
    parts = part[present[order]]
    _, first, place = np.unique(parts, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(1, len(first) + 1)
    return " ".join(map(str, number[place].tolist()))

"""Query objects: rows as a query in a cluster with a URL, and clusters that are wider than promised."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from queryveil.errors import BadInput
from queryveil.log import QueryLog
from queryveil.verify.kernels.diameters import far_pairs
from queryveil.verify.tokens import number
from queryveil.verify.verdict import Verdict, Witness

Ints = npt.NDArray[np.int64]

_TOLERANCE = Fraction(1, 10**12)
_NUMBER = re.compile("0*[1-9][0-9]*")


def widest_allowed(delta: float) -> Fraction:
    """Give the largest distance that counts as `delta`, which is read as it is printed.

    >>> widest_allowed(0.5) - Fraction(1, 2)
    Fraction(1, 1000000000000)
    """
    # A third cannot be written as a float, so what is only just above is within.
    return Fraction(str(delta)) + _TOLERANCE


def cluster_numbers(clusters: str | None, *, n_queries: int) -> list[str]:
    """Cut the manifest's `query_clusters` into numbers, without leading zeros; without it each query is a cluster.

    >>> cluster_numbers("1 02 1", n_queries=3)
    ['1', '2', '1']
    """
    if clusters is None:
        return [str(number) for number in range(1, n_queries + 1)]
    numbers = clusters.split()
    if len(numbers) != n_queries:
        raise BadInput(
            f"query_clusters of the manifest needs a number for each distinct query of the log, which are "
            f"{n_queries:,}, and has {len(numbers):,}; make the release again"
        )
    if not all(map(_NUMBER.fullmatch, numbers)):
        raise BadInput(
            "query_clusters of the manifest holds something else than numbers above 0; make the release again"
        )
    return [text.lstrip("0") for text in numbers]


def urls_of(log: QueryLog) -> pl.Series:
    """Give the URL of each row, empty where nothing was clicked."""
    if "url" not in log.columns:
        return pl.repeat("", log.n_rows, dtype=pl.String, eager=True).alias("url")
    urls = log.frame["url"].fill_null("").to_frame("url")
    return urls.select(pl.when(pl.col("url").str.strip_chars() == "").then(pl.lit("")).otherwise("url")).to_series()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Objects:
    """The rows of a log as numbers: whose (`user`), which `query`, and the `url`, where 0 is no click.

    Users and queries are numbered by their first appearance; query q is in the cluster `cluster_of[q]` and stands
    first in row `first_row[q]`, counted from 1.
    """

    user: Ints
    query: Ints
    url: Ints
    n_urls: int
    cluster_of: Ints
    first_row: Ints


def read_objects(log: QueryLog, *, clusters: str | None) -> Objects:
    """Number users, queries, URLs and clusters."""
    queries = number(log.frame["query"])
    numbers = cluster_numbers(clusters, n_queries=len(queries.distinct))
    cluster_of = np.empty(len(numbers), np.int64)
    # Polars sorts by UTF-8 bytes, which is the order of code points.
    cluster_of[queries.distinct.arg_sort().to_numpy()] = number(pl.Series(numbers, dtype=pl.String)).codes
    urls = number(pl.concat([pl.Series("url", [""]), urls_of(log).rename("url")]))
    return Objects(
        user=number(log.frame["user"]).codes,
        query=queries.codes,
        url=urls.codes[1:],
        n_urls=len(urls.distinct),
        cluster_of=cluster_of,
        first_row=first_rows(queries.codes),
    )


def first_rows(codes: Ints) -> Ints:
    """Give the first row, counted from 1, of each of the numbers, which are given out by first appearance.

    >>> first_rows(np.array([0, 0, 1, 0, 2])).tolist()
    [1, 3, 5]
    """
    return np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1)) + 1


def wide_clusters(objects: Objects, *, delta: float) -> tuple[int, list[Witness]]:
    """Count the clusters with two queries that are further apart than `delta`, and point at them."""
    limit = widest_allowed(delta)
    n_queries = objects.cluster_of.size
    if limit >= 1 or n_queries == 0:
        return 0, []
    clicks = pl.Series(objects.query * objects.n_urls + objects.url).filter(pl.Series(objects.url > 0))
    keys = clicks.unique().sort().to_numpy()
    starts = np.searchsorted(keys, np.arange(n_queries + 1) * objects.n_urls)
    n_in = np.bincount(objects.cluster_of)
    most = 2 * int(np.diff(starts).max())
    urls = keys % objects.n_urls
    queries = _distinct(objects.cluster_of, starts, urls)
    first, second, n_shared = far_pairs(
        queries[np.argsort(objects.cluster_of[queries], kind="stable")],
        np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(objects.cluster_of[queries]))]),
        starts,
        urls,
        objects.n_urls,
        np.array([limit.numerator * n // limit.denominator for n in range(most + 1)], np.int64),
    )
    wide = np.flatnonzero(first >= 0)
    first, second, n_shared = first[wide], second[wide], n_shared[wide]
    sizes = np.diff(starts)
    kept = np.lexsort((objects.first_row[first], n_shared, n_in[wide]))[: Verdict.N_KEPT]
    return wide.size, [
        wide_witness(
            int(n_in[wide[i]]),
            n_shared=int(n_shared[i]),
            n_together=int(sizes[first[i]] + sizes[second[i]] - n_shared[i]),
            rows=(int(objects.first_row[first[i]]), int(objects.first_row[second[i]])),
        )
        for i in kept
    ]


def _distinct(cluster_of: Ints, starts: Ints, urls: Ints) -> Ints:
    """Leave out the queries of which an earlier one of the cluster has the same URLs; those without any all stay."""
    sets = pl.Series(pa.LargeListArray.from_arrays(pa.array(starts), pa.array(urls)))
    frame = pl.DataFrame({"cluster": cluster_of, "urls": sets}).with_row_index("query")
    is_empty = pl.col("urls").list.len() == 0
    distinct = frame.filter(~is_empty).unique(["cluster", "urls"], keep="first")["query"]
    return pl.concat([distinct, frame.filter(is_empty)["query"]]).sort().to_numpy().astype(np.int64)


def wide_witness(n_queries: int, *, n_shared: int, n_together: int, rows: tuple[int, int]) -> Witness:
    """Point at two queries of a cluster of `n_queries` that are too far apart."""
    return Witness(kind="wide_cluster", size=n_queries, support=n_shared, needed=n_together, rows=rows, positions=())

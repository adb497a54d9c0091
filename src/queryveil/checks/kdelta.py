"""Verify k-delta-anonymity of a log: equal shares of k users, and clusters no wider than delta."""

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.checks._clusters import Objects, first_rows, invented_pairs, read_objects, wide_clusters
from queryveil.checks.verdict import Found, Verdict, Witness
from queryveil.data import QueryLog
from queryveil.guarantees import KdeltaAnonymity
from queryveil.progress import step


def verify_kdelta(
    log: QueryLog, promise: KdeltaAnonymity, *, clusters: str, original: QueryLog | None = None, additions: bool = True
) -> Verdict:
    """Return the verdict on k-delta-anonymity, exactly.

    Violations are clusters wider than delta and distinct vectors of shares that fewer than k users have.

    - `log`: the released log.
    - `promise`: the guarantee.
    - `clusters`: `query_clusters` of the manifest; not used if users are promised to have the same texts.
    - `original`: the original log; with it, (query, URL) pairs that it does not have and surplus users are violations
      too.
    - `additions`: whether rows may have been added; if not, a pair in more rows than in the original is a violation
      too.

    >>> log = QueryLog.from_frame({"user": ["1", "2", "2"], "query": ["tea", "tea", "teas"], "url": ["t.example"] * 3})
    >>> verify_kdelta(log, KdeltaAnonymity(k=2, delta=0.5), clusters="1 1").in_words()
    '(2, 0.5) k-delta-anonymity holds for 2 users.'
    >>> verify_kdelta(log, KdeltaAnonymity(k=2, delta=0.5), clusters="1 2").witnesses[0].in_words()
    'shares over 1 pair of cluster and URL are those of 1 user, 2 are needed (row 1)'
    """
    step("clusters")
    objects = read_objects(log, clusters=None if promise.same_texts else clusters)
    n_wide, wide = wide_clusters(objects, delta=promise.delta)
    step("shares")
    n_rare, rare = _rare_shares(objects, k=promise.k)
    n_users = int(objects.user.max(initial=-1)) + 1
    verdict = Verdict(promise=promise, n_users=n_users, n_checked_users=n_users)
    verdict = verdict.joined(witnesses=[*wide, *rare], n_violations=n_wide + n_rare)
    if original is None:
        return verdict
    step("original")
    n_invented, invented = invented_pairs(log, original=original, additions=additions)
    return verdict.joined(witnesses=invented, n_violations=n_invented)


def _rare_shares(objects: Objects, *, k: int) -> Found:
    """Return the number and witnesses of the distinct vectors of shares that fewer than k users have."""
    rare = (
        pl.DataFrame({"shares": _shares(objects), "row": first_rows(objects.user)})
        .group_by("shares")
        .agg(pl.len().alias("n"), pl.col("row").sort().head(Verdict.N_KEPT).alias("rows"))
        .filter(pl.col("n") < k)
        .with_columns(size=pl.col("shares").list.len() // 2)
    )
    kept = rare.sort("size", "n", pl.col("rows").list.first()).head(Verdict.N_KEPT)
    return rare.height, [
        Witness(kind="shares", size=size, support=n, needed=k, rows=tuple(rows))
        for size, n, rows in kept.select("size", "n", "rows").iter_rows()
    ]


def _shares(objects: Objects) -> pl.Series:
    """Return per user a list of cells, ascending, each followed by the number of the user's rows in it.

    The numbers are divided by their greatest common divisor: then they are equal if and only if the shares are.
    """
    cell = objects.cluster_of[objects.query] * objects.n_urls + objects.url
    counted = (
        pl.DataFrame({"user": objects.user, "cell": cell})
        .group_by("user", "cell")
        .agg(pl.len().cast(pl.Int64).alias("n"))
        .sort("user", "cell")
    )
    n = counted["n"].to_numpy()
    n_cells = np.bincount(counted["user"].to_numpy())
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(n_cells)])
    divisors = np.gcd.reduceat(n, starts[:-1]) if n.size else n
    pairs = np.column_stack([counted["cell"].to_numpy(), n // np.repeat(divisors, n_cells)]).ravel()
    return pl.Series(pa.LargeListArray.from_arrays(pa.array(2 * starts), pa.array(pairs)))

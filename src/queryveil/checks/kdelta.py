"""Verify k-delta-anonymity of a log: equal shares of k users, and clusters of queries no wider than delta."""

import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.checks.tokens import Floats, Ints, folded_all, number
from queryveil.checks.verdict import Found, Kind, Verdict, Witness, found_in
from queryveil.data import QueryLog
from queryveil.errors import BadInput
from queryveil.guarantees import KdeltaAnonymity
from queryveil.kernels import njit
from queryveil.progress import step


def _invented_pairs(log: QueryLog, *, original: QueryLog, additions: bool) -> Found:
    """Return the number and witnesses of (query, URL) pairs that only the release has, and of surplus users.

    Users have new ids and cannot be matched. Without `additions` rows can only have been removed, so a pair in more
    rows than before counts too.
    """
    before = _counted(original).select("query", "url", needed="support")
    joined = _counted(log).join(before, on=["query", "url"], how="left").with_columns(pl.col("needed").fill_null(0))
    more = joined.filter(pl.col("needed") == 0 if additions else pl.col("support") > pl.col("needed"))
    n, found = found_in(more, kind="invented_pair", by=["support", "row"])
    if log.n_users <= original.n_users:
        return n, found
    return n + 1, [Witness(kind="invented", support=log.n_users, needed=original.n_users), *found]


def _counted(log: QueryLog) -> pl.DataFrame:
    """Return the distinct pairs: `query` in normal form, `url`, number of rows (`support`), and the first `row`."""
    queries = number(log.frame["query"])
    rows = pl.DataFrame({"query": folded_all(queries.distinct).gather(queries.codes), "url": urls_of(log)})
    return rows.with_row_index("row", offset=1).group_by("query", "url").agg(pl.col("row").min(), support=pl.len())


@njit(cache=True)
def far_pairs(
    order: Ints, cluster_starts: Ints, starts: Ints, elements: Ints, n_elements: int, allowed: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return per cluster the first two sets that are too far apart, and how many elements they share.

    Cluster c has the sets `order[cluster_starts[c] : cluster_starts[c + 1]]`, ascending; set s has the elements
    `elements[starts[s] : starts[s + 1]]`. Two sets with a union of u elements may differ in `allowed[u]` of them; two
    empty sets are too far apart. The first pair is the one with the smallest first set, then the smallest second
    one; -1 stands for a cluster that has none.
    """
    n_clusters = cluster_starts.size - 1
    first, second = np.full(n_clusters, -1, np.int64), np.full(n_clusters, -1, np.int64)
    n_shared = np.zeros(n_clusters, np.int64)
    sizes = np.diff(starts)
    marks, tally = np.full(n_elements, -1, np.int64), np.zeros(n_elements, np.int64)
    for cluster in range(n_clusters):
        sets = order[cluster_starts[cluster] : cluster_starts[cluster + 1]]
        if sets.size < 2:
            continue
        n_common = _n_in_all(sets, starts, elements, tally)
        if _always_near(_two_largest(sizes, sets), n_common, allowed):
            continue
        a, b, shared = _first_far(sets, sizes, starts, elements, n_common, allowed, marks)
        first[cluster], second[cluster], n_shared[cluster] = a, b, shared
    return first, second, n_shared


@njit(cache=True)
def _first_far(
    sets: Ints, sizes: Ints, starts: Ints, elements: Ints, n_common: int, allowed: Ints, marks: Ints
) -> tuple[int, int, int]:
    for i in range(sets.size - 1):
        a = sets[i]
        for element in elements[starts[a] : starts[a + 1]]:
            marks[element] = a
        for b in sets[i + 1 :]:
            both = sizes[a] + sizes[b]
            if _always_near(both, n_common, allowed):
                continue
            shared = 0
            for element in elements[starts[b] : starts[b + 1]]:
                if marks[element] == a:
                    shared += 1
            if both == 0 or both - 2 * shared > allowed[both - shared]:
                return a, b, shared
    return -1, -1, 0


@njit(cache=True)
def _always_near(both: int, n_common: int, allowed: Ints) -> bool:
    """Return whether any two sets with up to `both` elements together are near, as they share at least `n_common`.

    The more other elements, the further apart they can be: what holds for the largest holds for all.
    """
    return bool(n_common > 0 and both - 2 * n_common <= allowed[both - n_common])


@njit(cache=True)
def _n_in_all(sets: Ints, starts: Ints, elements: Ints, tally: Ints) -> int:
    """Return the number of elements in every set; `tally` is all zero before and after."""
    n = 0
    for one in sets:
        for element in elements[starts[one] : starts[one + 1]]:
            tally[element] += 1
            if tally[element] == sets.size:
                n += 1
    for one in sets:
        for element in elements[starts[one] : starts[one + 1]]:
            tally[element] = 0
    return n


@njit(cache=True)
def _two_largest(sizes: Ints, sets: Ints) -> int:
    """Return the sum of the sizes of the two largest sets."""
    largest, next_largest = 0, 0
    for one in sets:
        size = sizes[one]
        if size > largest:
            largest, next_largest = size, largest
        elif size > next_largest:
            next_largest = size
    return largest + next_largest


_TOLERANCE = Fraction(1, 10**12)
_NUMBER = re.compile("0*[1-9][0-9]*")


def widest_allowed(delta: float) -> Fraction:
    """Return the largest distance that counts as `delta`, taken as the decimal it is printed as.

    >>> widest_allowed(0.5) - Fraction(1, 2)
    Fraction(1, 1000000000000)
    """
    # A third has no exact float, so a distance just above counts as within.
    return Fraction(str(delta)) + _TOLERANCE


def cluster_numbers(clusters: str | None, *, n_queries: int) -> list[str]:
    """Return the numbers in the manifest's `query_clusters`, without leading zeros; without it one per query.

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
        reason = "query_clusters of the manifest holds something else than numbers above 0"
        raise BadInput(f"{reason}; make the release again")
    return [text.lstrip("0") for text in numbers]


def urls_of(log: QueryLog) -> pl.Series:
    """Return the URL of each row, empty where nothing was clicked."""
    if "url" not in log.columns:
        return pl.repeat("", log.n_rows, dtype=pl.String, eager=True).alias("url")
    urls = log.frame["url"].fill_null("").to_frame("url")
    return urls.select(pl.when(pl.col("url").str.strip_chars() == "").then(pl.lit("")).otherwise("url")).to_series()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Objects:
    """The rows of a log as numbers; users and queries are numbered by first appearance.

    - `user`, `query`, `url`: per row the number of its user, query and URL; URL 0 is no click.
    - `n_urls`: the number of URLs, with that of no click.
    - `time`: per row the number of its time, if users are promised the same days; 0 for all rows otherwise.
    - `cluster_of`: the cluster of each query.
    - `first_row`: the first row of each query, counted from 1.
    """

    user: Ints
    query: Ints
    url: Ints
    time: Ints
    n_urls: int
    cluster_of: Ints
    first_row: Ints


def _read_objects(log: QueryLog, *, clusters: str | None, with_times: bool) -> _Objects:
    """Return the rows of a log with users, queries, URLs and clusters numbered, and times if they count."""
    queries = number(log.frame["query"])
    numbers = cluster_numbers(clusters, n_queries=len(queries.distinct))
    cluster_of = np.empty(len(numbers), np.int64)
    # Polars sorts by UTF-8 bytes, which is the order of code points.
    cluster_of[queries.distinct.arg_sort().to_numpy()] = number(pl.Series(numbers, dtype=pl.String)).codes
    urls = number(pl.concat([pl.Series("url", [""]), urls_of(log).rename("url")]))
    return _Objects(
        user=number(log.frame["user"]).codes,
        query=queries.codes,
        url=urls.codes[1:],
        time=_times_of(log) if with_times and "time" in log.columns else np.zeros(log.n_rows, np.int64),
        n_urls=len(urls.distinct),
        cluster_of=cluster_of,
        first_row=first_rows(queries.codes),
    )


def _times_of(log: QueryLog) -> Ints:
    """Return a number for the time of each row, rows without one having one of their own."""
    times = log.frame["time"].dt.epoch("us")
    return np.unique(times.fill_null(np.iinfo(np.int64).min).to_numpy(), return_inverse=True)[1]


def first_rows(codes: Ints) -> Ints:
    """Return the first row, counted from 1, of each number; numbers are in order of first appearance.

    >>> first_rows(np.array([0, 0, 1, 0, 2])).tolist()
    [1, 3, 5]
    """
    return np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1)) + 1


def _wide_clusters(objects: _Objects, *, delta: float) -> Found:
    """Return the number and witnesses of clusters with two queries further apart than `delta`."""
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
        Witness(
            kind="wide_cluster",
            size=int(n_in[wide[i]]),
            support=int(n_shared[i]),
            needed=int(sizes[first[i]] + sizes[second[i]] - n_shared[i]),
            rows=(int(objects.first_row[first[i]]), int(objects.first_row[second[i]])),
        )
        for i in kept
    ]


def _distinct(cluster_of: Ints, starts: Ints, urls: Ints) -> Ints:
    """Return the queries without those whose URLs an earlier query of the cluster has; all without URLs stay."""
    sets = pl.Series(pa.LargeListArray.from_arrays(pa.array(starts), pa.array(urls)))
    frame = pl.DataFrame({"cluster": cluster_of, "urls": sets}).with_row_index("query")
    is_empty = pl.col("urls").list.len() == 0
    distinct = frame.filter(~is_empty).unique(["cluster", "urls"], keep="first")["query"]
    return pl.concat([distinct, frame.filter(is_empty)["query"]]).sort().to_numpy().astype(np.int64)


def verify_kdelta(
    log: QueryLog, promise: KdeltaAnonymity, *, clusters: str, original: QueryLog | None = None, additions: bool = True
) -> Verdict:
    """Return the verdict on k-delta-anonymity, exactly.

    Violations are clusters wider than delta and distinct vectors of shares that fewer than k users have, or are near.

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
    objects = _read_objects(log, clusters=None if promise.same_texts else clusters, with_times=promise.same_days)
    n_wide, wide = _wide_clusters(objects, delta=promise.delta)
    step("shares")
    n_rare, rare = _rare_shares(objects, k=promise.k, max_distance=promise.max_distance)
    n_users = int(objects.user.max(initial=-1)) + 1
    verdict = Verdict(promise=promise, n_users=n_users, n_checked_users=n_users)
    verdict = verdict.joined(witnesses=[*wide, *rare], n_violations=n_wide + n_rare)
    if original is None:
        return verdict
    step("original")
    n_invented, invented = _invented_pairs(log, original=original, additions=additions)
    return verdict.joined(witnesses=invented, n_violations=n_invented)


def _rare_shares(objects: _Objects, *, k: int, max_distance: float) -> Found:
    """Return the number and witnesses of the distinct vectors of shares that fewer than k users have, or are near."""
    distinct = (
        pl.DataFrame({"shares": _shares(objects), "row": first_rows(objects.user)})
        .group_by("shares")
        .agg(rows=pl.col("row").sort().head(Verdict.N_KEPT), support=pl.len().cast(pl.Int64))
    )
    if max_distance and distinct.height:
        support = _near_users(distinct["shares"], distinct["support"].to_numpy(), k=k, max_distance=max_distance)
        distinct = distinct.with_columns(support=support)
    rare = distinct.filter(pl.col("support") < k).select(
        "rows", "support", size=pl.col("shares").list.len() // 2, needed=pl.lit(k)
    )
    kind: Kind = "near_shares" if max_distance else "shares"
    return found_in(rare, kind=kind, by=["size", "support", pl.col("rows").list.first()])


def _near_users(shares: pl.Series, n_users: Ints, *, k: int, max_distance: float) -> Ints:
    """Return how many users are at most `max_distance` from each vector, if those who have it are fewer than k."""
    pairs = shares.explode(empty_as_null=False).to_numpy().reshape(-1, 2)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(shares.list.len().to_numpy().astype(np.int64) // 2)])
    cells = np.unique(pairs[:, 0], return_inverse=True)[1]
    part = pairs[:, 1] / np.repeat(np.add.reduceat(pairs[:, 1], starts[:-1]), np.diff(starts))
    by_cell = np.argsort(cells, kind="stable")
    cell_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(cells))])
    owner = np.repeat(np.arange(shares.len()), np.diff(starts))
    limit = 1 - float(widest_allowed(max_distance))
    return count_near(starts, cells, part, n_users, k, cell_starts, owner[by_cell], part[by_cell], limit)


@njit(cache=True)
def count_near(
    starts: Ints, cells: Ints, part: Floats, n_users: Ints, k: int, cell_starts: Ints, owner: Ints, owner_part: Floats,
    least: float,
) -> Ints:  # fmt: skip
    """Return the users of all vectors that share at least `least` with each; n_users of a vector that k users have.

    Vector v has the share `part[i]` in `cells[i]`, for i from `starts[v]` up to `starts[v + 1]`; of each cell `owner`
    and `owner_part` have the vectors with a share in it, and that share. D is 1 less what two vectors share.
    """
    found = n_users.copy()
    shared = np.zeros(n_users.size)
    touched = np.empty(n_users.size, np.int64)
    for vector in range(n_users.size):
        if n_users[vector] >= k:
            continue
        n_touched = 0
        for i in range(starts[vector], starts[vector + 1]):
            for j in range(cell_starts[cells[i]], cell_starts[cells[i] + 1]):
                if shared[owner[j]] == 0.0:
                    touched[n_touched] = owner[j]
                    n_touched += 1
                shared[owner[j]] += min(part[i], owner_part[j])
        found[vector] = 0
        for other in touched[:n_touched]:
            if shared[other] >= least:
                found[vector] += n_users[other]
            shared[other] = 0.0
    return found


def _shares(objects: _Objects) -> pl.Series:
    """Return per user a list of cells, ascending, each followed by the number of the user's rows in it.

    Where days count, a cell on two days is two. The numbers are divided by their greatest common divisor: then they are
    equal if and only if the shares are.
    """
    cell = objects.cluster_of[objects.query] * objects.n_urls + objects.url
    cell = np.unique(cell, return_inverse=True)[1] * (int(objects.time.max(initial=0)) + 1) + objects.time
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

"""Verify k-delta-anonymity of a log: equal shares of k users, and clusters of queries no wider than delta."""

import re
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.checks.tokens import Floats, Ints, folded_all, number, starts_of
from queryveil.checks.verdict import Found, Verdict, Witness, found_in
from queryveil.data import QueryLog
from queryveil.errors import BadInput
from queryveil.guarantees import KdeltaAnonymity
from queryveil.kernels import njit
from queryveil.progress import step


def _invented_pairs(log: QueryLog, *, original: QueryLog, additions: bool) -> Found:
    """Return the number and witnesses of (query, URL) pairs that only the release has, and of surplus users.

    Without `additions` rows can only have been removed, so a pair in more rows than before counts too.
    """
    before = _counted(original).select("query", "url", needed="support")
    joined = _counted(log).join(before, on=["query", "url"], how="left").with_columns(pl.col("needed").fill_null(0))
    more = joined.filter(pl.col("needed") == 0 if additions else pl.col("support") > pl.col("needed"))
    n, found = found_in(more, kind="invented_pair")
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
    cluster_starts: Ints, starts: Ints, elements: Ints, n_elements: int, allowed: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return per cluster the first two sets that are too far apart, and how many elements they share; -1 for none.

    Cluster c has the sets from `cluster_starts[c]` up to `cluster_starts[c + 1]`; set s has the elements
    `elements[starts[s] : starts[s + 1]]`. Two sets with a union of u elements may differ in `allowed[u]` of them; two
    empty sets are too far apart.
    """
    n_clusters = cluster_starts.size - 1
    first, second = np.full(n_clusters, -1, np.int64), np.full(n_clusters, -1, np.int64)
    n_shared = np.zeros(n_clusters, np.int64)
    sizes = np.diff(starts)
    marks, tally = np.full(n_elements, -1, np.int64), np.zeros(n_elements, np.int64)
    for cluster in range(n_clusters):
        begin, end = cluster_starts[cluster], cluster_starts[cluster + 1]
        n_common = _n_in_all(elements[starts[begin] : starts[end]], end - begin, tally)
        if not _always_near(2 * sizes[begin:end].max(), n_common, allowed):
            found = _first_far(begin, end, sizes, starts, elements, n_common, allowed, marks)
            first[cluster], second[cluster], n_shared[cluster] = found
    return first, second, n_shared


@njit(cache=True)
def _first_far(
    begin: int, end: int, sizes: Ints, starts: Ints, elements: Ints, n_common: int, allowed: Ints, marks: Ints
) -> tuple[int, int, int]:
    for a in range(begin, end - 1):
        for element in elements[starts[a] : starts[a + 1]]:
            marks[element] = a
        for b in range(a + 1, end):
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
    """Return whether any two sets with up to `both` elements together are near, as they share at least `n_common`."""
    return bool(n_common > 0 and both - 2 * n_common <= allowed[both - n_common])


@njit(cache=True)
def _n_in_all(elements: Ints, n_sets: int, tally: Ints) -> int:
    """Return the number of elements that every set has; `tally` is all zero before and after."""
    n = 0
    for element in elements:
        tally[element] += 1
        n += tally[element] == n_sets
    tally[elements] = 0
    return n


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
    numbers, said = clusters.split(), "query_clusters of the manifest"
    if len(numbers) != n_queries:
        needed = f"needs a number for each distinct query of the log, which are {n_queries:,}"
        raise BadInput(f"{said} {needed}, and has {len(numbers):,}; make the release again")
    if not all(map(_NUMBER.fullmatch, numbers)):
        raise BadInput(f"{said} holds something else than numbers above 0; make the release again")
    return [text.lstrip("0") for text in numbers]


def urls_of(log: QueryLog) -> pl.Series:
    """Return the URL of each row, empty where nothing was clicked."""
    if "url" not in log.columns:
        return pl.repeat("", log.n_rows, dtype=pl.String, eager=True).alias("url")
    urls = log.frame["url"].fill_null("").to_frame("url")
    return urls.select(pl.when(pl.col("url").str.strip_chars() == "").then(pl.lit("")).otherwise("url")).to_series()


def _numbered(log: QueryLog, *, clusters: str | None, with_times: bool) -> pl.DataFrame:
    """Return the rows of a log (`row`, from 1) as numbers: `user`, `query` with its `cluster`, `url` and `time`.

    URL 0 is no click; all times are 0 unless users are promised the same days.
    """
    queries = number(log.frame["query"])
    numbers = cluster_numbers(clusters, n_queries=len(queries.distinct))
    cluster_of = np.empty(len(numbers), np.int64)
    # Polars sorts by UTF-8 bytes, which is the order of code points.
    cluster_of[queries.distinct.arg_sort().to_numpy()] = number(pl.Series(numbers, dtype=pl.String)).codes
    has_times = with_times and "time" in log.columns
    columns = {
        "user": number(log.frame["user"]).codes,
        "query": queries.codes,
        "cluster": cluster_of[queries.codes],
        "url": number(pl.concat([pl.Series("url", [""]), urls_of(log).rename("url")])).codes[1:],
        "time": number(log.frame["time"]).codes if has_times else np.zeros(log.n_rows, np.int64),
    }
    return pl.DataFrame(columns).with_row_index("row", offset=1)


def _wide_clusters(rows: pl.DataFrame, *, delta: float) -> Found:
    """Return the number and witnesses of clusters with two queries further apart than `delta`."""
    limit, sets = widest_allowed(delta), _url_sets(rows)
    if limit >= 1 or sets.height == 0:
        return 0, []
    sizes = sets["urls"].list.len().fill_null(0).cast(pl.Int64).to_numpy()
    cluster_starts = starts_of(sets["cluster"].rle().struct.field("len").to_numpy())
    urls, n_urls = sets["urls"].explode().drop_nulls().to_numpy(), int(rows["url"].to_numpy().max()) + 1
    most = [limit.numerator * n // limit.denominator for n in range(2 * int(sizes.max()) + 1)]
    first, second, n_shared = far_pairs(cluster_starts, starts_of(sizes), urls, n_urls, np.array(most, np.int64))
    is_wide = first >= 0
    first, second, n_shared = first[is_wide], second[is_wide], n_shared[is_wide]
    rows_of = pl.concat_list("row", sets["row"][second])
    counts = {"support": pl.Series(n_shared), "needed": pl.Series(sizes[first] + sizes[second] - n_shared)}
    wide = sets[first].select("size", rows=rows_of, **counts)
    return found_in(wide, kind="wide_cluster")


def _url_sets(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the sets of URLs clicked for queries (`urls`, null for none), by `cluster` and first `row`.

    Of a cluster's queries with the same URLs the first stands for all; those without URLs all stay. `size` is their
    number, and clusters of one query are left out.
    """
    queries = rows.unique("query", keep="first", maintain_order=True).select("query", "cluster", "row")
    queries = queries.with_columns(size=pl.len().over("cluster")).filter(pl.col("size") > 1)
    clicks = rows.filter(pl.col("url") > 0).select("query", "url").join(queries, on="query", how="semi").unique()
    urls = clicks.sort("query", "url").group_by("query", maintain_order=True).agg(urls="url")
    queries = queries.join(urls, on="query", how="left", maintain_order="left")
    is_empty = pl.col("urls").is_null()
    distinct = queries.filter(~is_empty).unique(["cluster", "urls"], keep="first", maintain_order=True)
    return pl.concat([distinct, queries.filter(is_empty)]).sort("cluster", "row")


def verify_kdelta(
    log: QueryLog, promise: KdeltaAnonymity, *, clusters: str, original: QueryLog | None = None, additions: bool = True
) -> Verdict:
    """Return the verdict on k-delta-anonymity, exactly.

    Violations are clusters wider than delta and distinct vectors of shares that fewer than k users have, or are near.

    - `log`, `promise`: the released log, and the guarantee.
    - `clusters`: `query_clusters` of the manifest; not used if users are promised to have the same texts.
    - `original`: the original log; (query, URL) pairs that it does not have and surplus users are violations too.
    - `additions`: whether rows may have been added; if not, a pair in more rows than before is a violation too.

    >>> log = QueryLog.from_frame({"user": ["1", "2", "2"], "query": ["tea", "tea", "teas"], "url": ["t.example"] * 3})
    >>> verify_kdelta(log, KdeltaAnonymity(k=2, delta=0.5), clusters="1 1").in_words()
    '(2, 0.5) k-delta-anonymity holds for 2 users.'
    >>> verify_kdelta(log, KdeltaAnonymity(k=2, delta=0.5), clusters="1 2").witnesses[0].in_words()
    'shares over 1 pair of cluster and URL are those of 1 user, 2 are needed (row 1)'
    """
    step("clusters")
    rows = _numbered(log, clusters=None if promise.same_texts else clusters, with_times=promise.same_days)
    found = [_wide_clusters(rows, delta=promise.delta)]
    step("shares")
    found.append(_rare_shares(rows, k=promise.k, max_distance=promise.max_distance))
    if original is not None:
        step("original")
        found.append(_invented_pairs(log, original=original, additions=additions))
    return Verdict(promise=promise, n_users=log.n_users, n_checked_users=log.n_users).joined(*found)


def _rare_shares(rows: pl.DataFrame, *, k: int, max_distance: float) -> Found:
    """Return the number and witnesses of the distinct vectors of shares that fewer than k users have, or are near."""
    users = rows.unique("user", keep="first", maintain_order=True).select("row", shares=_shares(rows))
    first_rows, n_users = pl.col("row").sort().head(Verdict.N_KEPT), pl.len().cast(pl.Int64)
    distinct = users.group_by("shares").agg(rows=first_rows, support=n_users)
    if max_distance and distinct.height:
        support = _near_users(distinct["shares"], distinct["support"].to_numpy(), k=k, max_distance=max_distance)
        distinct = distinct.with_columns(support=support)
    size = pl.col("shares").list.len() // 2
    rare = distinct.filter(pl.col("support") < k).select("rows", "support", size=size, needed=pl.lit(k))
    return found_in(rare, kind="near_shares" if max_distance else "shares")


def _near_users(shares: pl.Series, n_users: Ints, *, k: int, max_distance: float) -> Ints:
    """Return how many users are at most `max_distance` from each vector, if those who have it are fewer than k."""
    pairs = shares.explode(empty_as_null=False).to_numpy().reshape(-1, 2)
    starts = starts_of(shares.list.len().to_numpy() // 2)
    cells = np.unique(pairs[:, 0], return_inverse=True)[1]
    part = pairs[:, 1] / np.repeat(np.add.reduceat(pairs[:, 1], starts[:-1]), np.diff(starts))
    by_cell = np.argsort(cells, kind="stable")
    cell_starts = starts_of(np.bincount(cells))
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
    found, shared, touched = n_users.copy(), np.zeros(n_users.size), np.empty(n_users.size, np.int64)
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


def _shares(rows: pl.DataFrame) -> pl.Series:
    """Return per user a list of cells, ascending, each followed by the number of the user's rows in it.

    Where days count, a cell on two days is two. Divided by their greatest divisor, equal numbers are equal shares.
    """
    cluster, url, time = (rows[name].to_numpy() for name in ("cluster", "url", "time"))
    cell = np.unique(cluster * (url.max(initial=0) + 1) + url, return_inverse=True)[1]
    cells = rows.select("user", cell=pl.Series(cell * (time.max(initial=0) + 1) + time))
    counted = cells.group_by("user", "cell").agg(n=pl.len().cast(pl.Int64)).sort("user", "cell")
    n = counted["n"].to_numpy()
    n_cells = np.bincount(counted["user"].to_numpy())
    starts = starts_of(n_cells)
    divisors = np.gcd.reduceat(n, starts[:-1]) if n.size else n
    pairs = np.column_stack([counted["cell"].to_numpy(), n // np.repeat(divisors, n_cells)]).ravel()
    return pl.Series(pa.LargeListArray.from_arrays(pa.array(2 * starts), pa.array(pairs)))

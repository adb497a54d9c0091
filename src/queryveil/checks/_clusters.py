"""Clusters of queries and (query, URL) pairs for verifying k-delta-anonymity: distances, and pairs that are new."""

import re
from dataclasses import dataclass
from fractions import Fraction
from unicodedata import normalize

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.checks.tokens import Ints, number
from queryveil.checks.verdict import Found, Verdict, Witness
from queryveil.data import QueryLog
from queryveil.errors import BadInput
from queryveil.kernels import njit


def folded(query: str) -> str:
    """Return a query in normal form: NFC, lower case, single blanks.

    >>> folded("  Red   Kettle ")
    'red kettle'
    """
    return " ".join(normalize("NFC", normalize("NFC", query).lower()).split())


def invented_pairs(log: QueryLog, *, original: QueryLog, additions: bool) -> Found:
    """Return the number and witnesses of (query, URL) pairs that only the release has, and of surplus users.

    Users have new ids and cannot be matched. Without `additions` rows can only have been removed, so a pair in more
    rows than before counts too.
    """
    before = _counted(original).select("query", "url", n_before="n")
    joined = _counted(log).join(before, on=["query", "url"], how="left").with_columns(pl.col("n_before").fill_null(0))
    more = joined.filter(pl.col("n_before") == 0 if additions else pl.col("n") > pl.col("n_before"))
    kept = more.sort("n", "row").head(Verdict.N_KEPT).select("n", "n_before", "row").iter_rows()
    users = more_users(log, original=original)
    found = [pair_witness(n, n_before=n_before, row=row) for n, n_before, row in kept]
    return more.height + len(users), [*users, *found]


def more_users(log: QueryLog, *, original: QueryLog) -> list[Witness]:
    """Return a witness if the release has more users than the original."""
    now, then = log.n_users, original.n_users
    return [Witness(kind="invented", support=now, needed=then)] if now > then else []


def pair_witness(n: int, *, n_before: int, row: int) -> Witness:
    """Return the witness of a query with a URL in `n` rows of the release and `n_before` of the original."""
    return Witness(kind="invented_pair", size=1, support=n, needed=n_before, rows=(row,))


def _counted(log: QueryLog) -> pl.DataFrame:
    """Return the distinct pairs: `query` in normal form, `url`, number of rows `n`, and the first `row`."""
    queries = number(log.frame["query"])
    rows = pl.DataFrame({"query": folded_all(queries.distinct).gather(queries.codes), "url": urls_of(log)})
    return rows.with_row_index("row", offset=1).group_by("query", "url").agg(pl.len().alias("n"), pl.col("row").min())


def folded_all(queries: pl.Series) -> pl.Series:
    """Return queries in the normal form of `folded`."""
    is_ascii = queries.str.len_bytes() == queries.str.len_chars()
    # In ASCII there is nothing to compose, so Polars may do it; the blanks are those that Python splits at.
    plain = queries.str.to_lowercase().str.replace_all(r"[\x09-\x0d\x1c-\x20]+", " ").str.strip_chars(" ")
    if is_ascii.all():
        return plain
    return plain.scatter((~is_ascii).arg_true(), [folded(text) for text in queries.filter(~is_ascii)])


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
class Objects:
    """The rows of a log as numbers; users and queries are numbered by first appearance.

    - `user`, `query`, `url`: per row the number of its user, query and URL; URL 0 is no click.
    - `n_urls`: the number of URLs, with that of no click.
    - `cluster_of`: the cluster of each query.
    - `first_row`: the first row of each query, counted from 1.
    """

    user: Ints
    query: Ints
    url: Ints
    n_urls: int
    cluster_of: Ints
    first_row: Ints


def read_objects(log: QueryLog, *, clusters: str | None) -> Objects:
    """Return the rows of a log with users, queries, URLs and clusters numbered."""
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
    """Return the first row, counted from 1, of each number; numbers are in order of first appearance.

    >>> first_rows(np.array([0, 0, 1, 0, 2])).tolist()
    [1, 3, 5]
    """
    return np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1)) + 1


def wide_clusters(objects: Objects, *, delta: float) -> Found:
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
        wide_witness(
            int(n_in[wide[i]]),
            n_shared=int(n_shared[i]),
            n_together=int(sizes[first[i]] + sizes[second[i]] - n_shared[i]),
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


def wide_witness(n_queries: int, *, n_shared: int, n_together: int, rows: tuple[int, int]) -> Witness:
    """Return the witness of two queries of a cluster of `n_queries` that are too far apart."""
    return Witness(kind="wide_cluster", size=n_queries, support=n_shared, needed=n_together, rows=rows)

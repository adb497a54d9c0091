"""kdelta in plain Python, as the definitions read: slow, to compare with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import gcd
from typing import TypeAlias, TypeVar

Clicks: TypeAlias = Mapping[str, frozenset[str]]
Cell = TypeVar("Cell", bound=Hashable)


def clicks_of(rows: Iterable[tuple[str, str | None]]) -> dict[str, frozenset[str]]:
    """Return the URLs clicked for each query, N(q) in the paper, from pairs of query and URL.

    >>> clicks_of([("a", "u"), ("b", None)])
    {'a': frozenset({'u'}), 'b': frozenset()}
    """
    found: dict[str, set[str]] = defaultdict(set)
    for query, url in rows:
        found[query] |= {url} if url is not None else set()
    return {query: frozenset(urls) for query, urls in found.items()}


def query_distance(one: frozenset[str], other: frozenset[str]) -> Fraction:
    """Return d of two different queries by the URLs clicked for them.

    >>> query_distance(frozenset("uv"), frozenset("v"))
    Fraction(1, 2)
    >>> query_distance(frozenset(), frozenset())
    Fraction(1, 1)
    """
    either = one | other
    return 1 - Fraction(len(one & other), len(either)) if either else Fraction(1)


def diameter(queries: Iterable[str], clicks: Clicks) -> Fraction:
    """Return the largest distance between two of the queries.

    >>> diameter(["a", "b"], {"a": frozenset("u"), "b": frozenset("u")})
    Fraction(0, 1)
    """
    pairs = combinations(queries, 2)
    return max((query_distance(clicks[one], clicks[other]) for one, other in pairs), default=Fraction(0))


def plain_clusters(rows: Sequence[tuple[str, str | None]], *, delta: Fraction) -> list[set[str]]:
    """Return the clusters of the queries: greedily, from the sets of URLs with most rows, the nearest first.

    >>> rows = [("q1", "u1"), ("q1", "u2"), ("q2", "u2"), ("q3", "u3"), ("q4", None)]
    >>> [sorted(cluster) for cluster in plain_clusters(rows, delta=Fraction(1, 2))]
    [['q1', 'q2'], ['q3'], ['q4']]
    """
    clicks = clicks_of(rows)
    n_rows = Counter(query for query, _ in rows)
    alike: dict[frozenset[str], list[str]] = defaultdict(list)
    for query, urls in clicks.items():
        alike[urls].append(query)
    unclicked = alike.pop(frozenset(), [])
    weight = {urls: sum(n_rows[query] for query in queries) for urls, queries in alike.items()}
    waiting = sorted(alike, key=lambda urls: -weight[urls])
    clusters = []
    while waiting:
        seed = waiting[0]
        taken = [seed]
        for urls in sorted(waiting[1:], key=lambda urls: query_distance(seed, urls)):
            if all(query_distance(urls, other) <= delta for other in taken):
                taken.append(urls)
        waiting = [urls for urls in waiting if urls not in taken]
        clusters.append({query for urls in taken for query in alike[urls]})
    return clusters + [{query} for query in unclicked]


def shares(counts: Mapping[Cell, int]) -> dict[Cell, Fraction]:
    """Return the share of a user's rows in each cell, M in the paper.

    >>> shares({"a": 1, "b": 3})["b"]
    Fraction(3, 4)
    """
    total = sum(counts.values())
    return {cell: Fraction(n, total) for cell, n in counts.items() if n}


def user_distance(one: Mapping[Cell, int], other: Mapping[Cell, int]) -> Fraction:
    """Return D of two users: half the sum of the differences of their shares.

    >>> user_distance({"a": 1, "b": 1}, {"a": 3})
    Fraction(1, 2)
    """
    mine, theirs = shares(one), shares(other)
    zero = Fraction(0)
    return sum((abs(mine.get(c, zero) - theirs.get(c, zero)) for c in mine.keys() | theirs.keys()), zero) / 2


def plain_groups(users: Sequence[Mapping[Cell, int]], *, k: int) -> list[list[int]]:
    """Return the groups as in the paper, the centroid of each first; there are at least k users.

    >>> plain_groups([{"a": 1}, {"b": 3}, {"a": 2}, {"b": 1}], k=2)
    [[1, 3], [2, 0]]
    """
    size = [sum(counts.values()) for counts in users]
    free = sorted(range(len(users)), key=lambda user: -size[user])
    groups = []
    while len(free) >= k:
        seed, *others = free
        near = sorted(others, key=lambda y: (user_distance(users[seed], users[y]), abs(size[y] - size[seed]), y))
        groups.append([seed, *near[: k - 1]])
        free = [user for user in others if user not in near[: k - 1]]
    heads = [group[0] for group in groups]
    for y in sorted(free):
        nearest = min(
            range(len(groups)),
            key=lambda g: (user_distance(users[heads[g]], users[y]), abs(size[heads[g]] - size[y]), g),
        )
        groups[nearest].append(y)
    return groups


def exact_counts(user: Mapping[Cell, int], *, centroid: Mapping[Cell, int]) -> dict[Cell, int]:
    """Return a user the centroid's shares, in as many rows as come nearest to what it has.

    >>> exact_counts({"a": 5}, centroid={"a": 2, "b": 2})
    {'a': 2, 'b': 2}
    """
    divisor = gcd(*centroid.values())
    step, total = sum(centroid.values()) // divisor, sum(user.values())
    times = min(range(1, total + 2), key=lambda times: (abs(times * step - total), times))
    return {cell: times * n // divisor for cell, n in centroid.items()}


def rounded_counts(user: Mapping[Cell, int], *, centroid: Mapping[Cell, int]) -> dict[Cell, int]:
    """Return a user what the paper's additions and suppressions leave.

    >>> rounded_counts({"a": 5}, centroid={"a": 2, "b": 2})
    {'a': 3, 'b': 3}
    """
    total, aim = sum(user.values()), shares(centroid)
    after: dict[Cell, int] = {}
    for cell in user.keys() | aim.keys():
        have, wanted = user.get(cell, 0), aim.get(cell, Fraction(0)) * total
        after[cell] = have - (have - wanted).__floor__() if have > wanted else have + (wanted - have).__ceil__()
    return {cell: n for cell, n in sorted(after.items(), key=str) if n}

"""k-delta-anonymity judged by its definition: slow, plain, for small logs."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from fractions import Fraction
from itertools import combinations
from typing import Any

from queryveil.checks.kdelta import cluster_numbers, urls_of, widest_allowed
from queryveil.checks.tokens import folded
from queryveil.checks.verdict import Verdict, Witness
from queryveil.data import QueryLog
from queryveil.guarantees import KdeltaAnonymity


def verify_kdelta_by_force(
    log: QueryLog, promise: KdeltaAnonymity, *, clusters: str, original: QueryLog | None = None, additions: bool = True
) -> Verdict:
    """Judge the promise as `verify_kdelta` does, by its definition.

    >>> log = QueryLog.from_frame({"user": ["1", "2", "2"], "query": ["tea", "tea", "teas"], "url": ["t.example"] * 3})
    >>> verify_kdelta_by_force(log, KdeltaAnonymity(k=2, delta=0.5), clusters="1 1").holds
    True
    """
    objects = _objects(log)
    texts = sorted({query for _, query, _ in objects})
    cluster_of = dict(
        zip(
            texts,
            map(int, cluster_numbers(None if promise.same_texts else clusters, n_queries=len(texts))),
            strict=True,
        )
    )
    has_days = promise.same_days and "time" in log.columns
    days = log.frame["time"].to_list() if has_days else [None] * log.n_rows
    found = _wide(objects, cluster_of, delta=promise.delta) + _rare(objects, cluster_of, days, promise=promise)
    if original is not None:
        if log.n_users > original.n_users:
            found.append(Witness(kind="invented", support=log.n_users, needed=original.n_users))
        found += _invented(objects, _objects(original), additions=additions)
    return Verdict(
        promise=promise,
        holds=not found,
        witnesses=tuple(sorted(found)[: Verdict.N_KEPT]),
        n_violations=len(found),
        n_users=log.n_users,
        n_checked_users=log.n_users,
    )


def _objects(log: QueryLog) -> list[tuple[str, str, str]]:
    """Return user, query and URL of each row."""
    return list(zip(log.frame["user"], log.frame["query"], urls_of(log), strict=True))


def _wide(objects: list[tuple[str, str, str]], cluster_of: dict[str, int], *, delta: float) -> list[Witness]:
    clicked: dict[str, set[str]] = {}
    first_row: dict[str, int] = {}
    for row, (_, query, url) in enumerate(objects, start=1):
        first_row.setdefault(query, row)
        clicked.setdefault(query, set()).update({url} - {""})
    witnesses = []
    for cluster in set(cluster_of.values()):
        queries = [query for query in first_row if cluster_of[query] == cluster]
        for x, y in combinations(queries, 2):
            both, either = clicked[x] & clicked[y], clicked[x] | clicked[y]
            distance = 1 - Fraction(len(both), len(either)) if either else Fraction(1)
            if distance > widest_allowed(delta):
                rows = (first_row[x], first_row[y])
                n, shared, needed = len(queries), len(both), len(either)
                witnesses.append(Witness(kind="wide_cluster", size=n, support=shared, needed=needed, rows=rows))
                break
    return witnesses


def _distance(one: frozenset[tuple[Any, Fraction]], other: frozenset[tuple[Any, Fraction]]) -> Fraction:
    """Return D of two vectors of shares."""
    mine, theirs, zero = dict(one), dict(other), Fraction(0)
    return sum((abs(mine.get(c, zero) - theirs.get(c, zero)) for c in mine.keys() | theirs.keys()), zero) / 2


def _rare(
    objects: list[tuple[str, str, str]],
    cluster_of: dict[str, int],
    days: list[datetime | None],
    *,
    promise: KdeltaAnonymity,
) -> list[Witness]:
    cells, first_row = defaultdict[str, list[tuple[int, str, datetime | None]]](list), dict[str, int]()
    for row, ((user, query, url), day) in enumerate(zip(objects, days, strict=True), start=1):
        cells[user].append((cluster_of[query], url, day))
        first_row.setdefault(user, row)
    rows_with = defaultdict[frozenset[tuple[tuple[int, str, datetime | None], Fraction]], list[int]](list)
    for user, row in first_row.items():
        counts = Counter(cells[user])
        shares = frozenset((cell, Fraction(n, len(cells[user]))) for cell, n in counts.items())
        rows_with[shares].append(row)
    limit = widest_allowed(promise.max_distance) if promise.max_distance else Fraction(0)
    near = {
        shares: sum(len(rows) for other, rows in rows_with.items() if _distance(shares, other) <= limit)
        for shares in rows_with
    }
    return [
        Witness(
            kind="near_shares" if promise.max_distance else "shares",
            size=len(shares),
            support=near[shares],
            needed=promise.k,
            rows=tuple(sorted(rows)[: Verdict.N_KEPT]),
            positions=(),
        )
        for shares, rows in rows_with.items()
        if near[shares] < promise.k
    ]


def _invented(
    objects: list[tuple[str, str, str]], original: list[tuple[str, str, str]], *, additions: bool
) -> list[Witness]:
    before = Counter((folded(query), url) for _, query, url in original)
    now = [(folded(query), url) for _, query, url in objects]
    return [
        Witness(kind="invented_pair", size=1, support=n, needed=before[pair], rows=(now.index(pair) + 1,))
        for pair, n in Counter(now).items()
        if (before[pair] == 0 if additions else n > before[pair])
    ]

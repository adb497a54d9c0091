"""Measures of utility as their definitions read: slow, and only for small logs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from math import log2, sqrt
from statistics import StatisticsError, correlation, mean

Row = tuple[str, str, datetime | None]
"""A user, a query and its time."""


def plain_top_kept(before: Mapping[str, int], after: Mapping[str, int], *, n_top: int) -> Fraction:
    """Return the share of the most frequent texts that are still among the most frequent, places shared by equals.

    >>> plain_top_kept({"a": 3, "b": 1, "c": 1}, {"a": 1, "b": 2}, n_top=2)
    Fraction(3, 4)
    """
    mine, theirs = _places(before, n_top), _places(after, n_top)
    whole = sum(mine.values())
    return sum((min(part, theirs.get(text, Fraction(0))) for text, part in mine.items()), Fraction(0)) / whole


def _places(counts: Mapping[str, int], n_top: int) -> dict[str, Fraction]:
    places = {}
    for text, n in counts.items():
        n_above = sum(other > n for other in counts.values())
        n_equal = sum(other == n for other in counts.values())
        places[text] = min(Fraction(1), max(Fraction(0), Fraction(n_top - n_above, n_equal)))
    return places


def plain_spearman(one: Sequence[int], other: Sequence[int]) -> float:
    """Return the correlation of mean ranks, 0 where one side is all equal."""
    try:
        return correlation(_ranks(one), _ranks(other))
    except StatisticsError:
        return 0.0


def _ranks(values: Sequence[int]) -> list[float]:
    return [mean(i for i, other in enumerate(sorted(values)) if other == value) for value in values]


def plain_suggestions(before: Sequence[Row], after: Sequence[Row], *, way: str) -> float | None:
    """Return the share of queries with the same most frequent follow-up; `way` is next, day or user."""
    users: dict[str, set[str]] = defaultdict(set)
    for user, query, _ in before:
        users[query].add(user)
    looked_at = {query for query, who in users.items() if len(who) >= 3 and query}
    mine, theirs = (_suggested(rows, way=way) for rows in (before, after))
    shares = [
        len(mine[query] & theirs.get(query, set())) / max(len(mine[query]), len(theirs.get(query, set())))
        for query in looked_at
        if query in mine
    ]
    return mean(shares) if shares else None


def _suggested(rows: Sequence[Row], *, way: str) -> dict[str, set[str]]:
    followers = Counter((query, follow) for _, query, follow in set(_follow_ups(rows, way=way)))
    often = {pair: n for pair, n in followers.items() if n >= 2}
    most = {query: max(n for (other, _), n in often.items() if other == query) for query, _ in often}
    return {query: {b for (a, b), n in often.items() if a == query and n == most[query]} for query in most}


def _follow_ups(rows: Sequence[Row], *, way: str) -> list[tuple[str, str, str]]:
    found = []
    for user in {user for user, _, _ in rows}:
        mine = [(time, query) for who, query, time in rows if who == user and query]
        if way == "next":
            timed = sorted((time, query) for time, query in mine if time is not None)
            for (asked, query), (later, follow) in pairwise(timed):
                if query != follow and later - asked <= timedelta(minutes=30):
                    found.append((user, query, follow))
            continue
        for time, query in mine:
            for other, follow in mine:
                same_day = time is not None and other is not None and time.date() == other.date()
                if query != follow and (way == "user" or same_day):
                    found.append((user, query, follow))
    return found


def plain_jensen_shannon(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the root of the Jensen-Shannon divergence in bits between the shares of two lists of counts.

    >>> plain_jensen_shannon([1, 0], [0, 5])
    1.0
    """
    p, q = ([x / sum(counts) for x in counts] for counts in (one, other))
    total = 0.0
    for x, y in zip(p, q, strict=True):
        middle = (x + y) / 2
        total += (x * log2(x / middle) if x else 0.0) + (y * log2(y / middle) if y else 0.0)
    return sqrt(max(0.0, total / 2))

"""Attackers on terms and rows in plain Python, as the definitions read: slow, to compare with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set


def plain_membership(own: Set[int], *, population: Sequence[float], released: Sequence[float]) -> float:
    """Sum |x - pop| - |x - released| over all terms.

    >>> plain_membership({0}, population=[0.25, 0.5], released=[0.5, 0.25])
    0.5
    """
    return sum(
        abs((t in own) - pop) - abs((t in own) - there)
        for t, (pop, there) in enumerate(zip(population, released, strict=True))
    )


def plain_times_seen(combination: str, rows: Sequence[tuple[str, str]]) -> int:
    """Count the users who have a query with all terms of a combination.

    >>> plain_times_seen("b a", [("u1", "a b c"), ("u1", "b a"), ("u2", "a"), ("u2", "b")])
    1
    """
    return len({user for user, query in rows if set(query.split()) >= set(combination.split())})


def plain_together(queries: Mapping[str, Collection[str]], one: str, other: str) -> int:
    """Count the people with a query that has two terms no more than five places apart.

    >>> plain_together({"u1": ["a b", "b c a"], "u2": ["a", "b"]}, "a", "b")
    1
    """
    return sum(any(_near(query.split(), one, other) for query in asked) for asked in queries.values())


def _near(words: Sequence[str], one: str, other: str) -> bool:
    return any(
        {words[i], words[j]} == {one, other} for i in range(len(words)) for j in range(i + 1, min(i + 6, len(words)))
    )

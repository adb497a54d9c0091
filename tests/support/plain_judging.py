"""Attackers on terms and rows in plain Python, as the definitions read: slow, to compare with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from math import log, sqrt


def plain_membership(own: Set[int], *, population: Sequence[float], released: Sequence[float]) -> float:
    """Sum (released - pop) / their mean over the person's terms, and divide by the square root of how many these are.

    >>> plain_membership({0}, population=[0.25, 0.5], released=[0.75, 0.25])
    1.0
    """
    differing = [(population[t], released[t]) for t in own if population[t] != released[t]]
    return sum((there - pop) / ((pop + there) / 2) for pop, there in differing) / sqrt(len(own))


def plain_likeness(
    own: Set[int],
    candidates: Sequence[Set[int]],
    *,
    n_holders: Sequence[int],
    n_people: int,
    foreign: float,
    lost: float,
) -> float | None:
    """Return the logarithm of how many times likelier the candidate most like a person is this person; None if none is.

    Each term of the person stays with its own chance or is lost, and each other term of the candidate is foreign.

    >>> one = {0, 1}
    >>> round(plain_likeness(one, [one], n_holders=[1, 1], n_people=2, foreign=0.1, lost=0.1), 3)
    1.386
    """
    shares = [n_people * sum(t in each for each in candidates) / len(candidates) for t in range(len(n_holders))]
    overall = min(1, sum(shares) / max(1, sum(n_holders)))
    kept = [min(1, (s + (overall if s else 0)) / (n + 1)) for s, n in zip(shares, n_holders, strict=True)]
    found = []
    for each in candidates:
        score = sum(log(1 - (1 - lost) * kept[t]) for t in own - each) + len(each - own) * log(foreign)
        for t in own & each:
            both = log(max(kept[t], 0.001)) - log(max(n_holders[t], 0.5) / n_people)
            apart = log(1 - (1 - lost) * kept[t]) + log(foreign)
            score += max(both, apart + 1e-6)
        found += [score] if own & each else []
    return max(found, default=None)


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

"""km in plain Python, as the definitions read: slow, to compare with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

History: TypeAlias = frozenset[str]
Combination: TypeAlias = tuple[str, ...]


def combinations_of(history: set[str] | History, *, m: int) -> Iterator[Combination]:
    """Return the combinations of up to m terms of a history, the smallest first.

    >>> list(combinations_of({"b", "a"}, m=2))
    [('a',), ('b',), ('a', 'b')]
    """
    for size in range(1, m + 1):
        yield from combinations(sorted(history), size)


def paper_delete(histories: Sequence[History], utility: Mapping[str, float], *, k: int, m: int) -> list[History]:
    """Delete as algorithm 1 of the paper does: user by user, from each rare combination the term of least utility.

    >>> kept = paper_delete([frozenset("ab"), frozenset("a")], {"a": 1, "b": 2}, k=2, m=2)
    >>> [sorted(history) for history in kept]
    [['a'], ['a']]
    """
    kept = [set(history) for history in histories]
    support = Counter(c for history in kept for c in combinations_of(history, m=m))
    changed = True
    while changed:
        changed = False
        for history in kept:
            for combination in list(combinations_of(history, m=m)):
                if history.issuperset(combination) and support[combination] < k:
                    victim = min(combination, key=lambda term: (utility[term], term))
                    for lost in combinations_of(history, m=m):
                        support[lost] -= victim in lost
                    history.remove(victim)
                    changed = True
    return [frozenset(history) for history in kept]


def largest_set(term: str, users: set[int], kept: Sequence[set[str]], *, fixed: set[int], k: int, m: int) -> set[int]:
    """Return the most of `users` that can have the term at once beside those in `fixed` who have it."""
    users = set(users)
    while True:
        support = Counter(others for user in users | fixed for others in combinations_of(kept[user] - {term}, m=m - 1))
        if len(users | fixed) < k:
            return set()
        leaving = {user for user in users if any(support[c] < k for c in combinations_of(kept[user] - {term}, m=m - 1))}
        if not leaving:
            return users
        users -= leaving


def plain_build(histories: Sequence[History], order: Sequence[str], *, k: int, m: int) -> list[History]:
    """Start from nothing and give each term in turn to the largest set of its users that can have it.

    >>> kept = plain_build([frozenset("ab"), frozenset("ab"), frozenset("a")], ["b", "a"], k=2, m=2)
    >>> [sorted(history) for history in kept]
    [['a', 'b'], ['a', 'b'], ['a']]
    """
    kept: list[set[str]] = [set() for _ in histories]
    for term in order:
        users = {user for user, history in enumerate(histories) if term in history}
        for user in largest_set(term, users, kept, fixed=set(), k=k, m=m):
            kept[user].add(term)
    return [frozenset(history) for history in kept]

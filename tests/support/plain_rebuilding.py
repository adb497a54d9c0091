"""The de-anonymizers, the matcher and blind chance in plain Python, as the definitions read: slow, to compare with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import permutations
from math import ceil
from typing import TypeAlias

Row: TypeAlias = tuple[str, str, int]
"""A user, a query and a category."""
Pair: TypeAlias = tuple[str, str]


def plain_rebuild(
    rows: Sequence[Row], draws: Sequence[Sequence[float]], *, choice: int, k: int, growth: float, grows: bool = True
) -> list[Pair]:
    """Return the guesses of de-anonymizer 1, 2, 3 or 4; each row has a draw for the user and one for the query.

    >>> plain_rebuild([("a", "x", 0), ("b", "y", 0)], [(0, 0), (0.5, 0)], choice=1, k=2, growth=1.2)
    [('b', 'x')]
    """
    users: dict[int, list[str]] = {}
    queries: dict[int, list[str]] = {}
    ks: dict[int, int] = {}
    so_far: Counter[tuple[str, int]] = Counter()
    guesses = []
    for (user, query, category), (user_draw, query_draw) in zip(rows, draws, strict=True):
        waiting, texts = users.setdefault(category, []), queries.setdefault(category, [])
        waiting.append(user)
        texts.append(query)
        so_far[user, category] += 1
        if len(waiting) != ks.setdefault(category, k):
            continue
        if grows and all(other == user for other in waiting):
            ks[category] = ceil(ks[category] * growth)
            continue
        if choice == 1:
            place = int(user_draw * len(waiting))
        else:
            score = {
                each: {2: waiting.count(each), 3: so_far[each, category]}.get(
                    choice, waiting.count(each) * so_far[each, category]
                )
                for each in waiting
            }
            best = [each for each in dict.fromkeys(waiting) if score[each] == max(score.values())]
            place = waiting.index(best[int(user_draw * len(best))])
        guesses.append((_take(waiting, place), _take(texts, int(query_draw * len(texts)))))
    return guesses


def plain_match(one: Iterable[Pair], two: Iterable[Pair]) -> int:
    """Count the pairs that both have, as often as both have them.

    >>> plain_match([("a", "x"), ("a", "x")], [("a", "x"), ("b", "x")])
    1
    """
    return (Counter(one) & Counter(two)).total()


def plain_chance(rows: Sequence[Row], original: Sequence[Pair]) -> float:
    """Return the mean number of true pairs over all ways to deal the users of each category to its queries.

    >>> plain_chance([("a", "x", 0), ("b", "y", 0)], [("a", "x"), ("b", "y")])
    1.0
    """
    total = 0.0
    for category in {row[2] for row in rows}:
        users = [user for user, _, each in rows if each == category]
        texts = [text for _, text, each in rows if each == category]
        hits = [plain_match(zip(dealt, texts, strict=True), original) for dealt in permutations(users)]
        total += sum(hits) / len(hits)
    return total


def _take(values: list[str], place: int) -> str:
    """Take one out; the last takes its place."""
    taken = values[place]
    values[place] = values[-1]
    values.pop()
    return taken

"""Attackers on swap, the matcher and blind chance in plain Python, as the definitions read: slow, to compare with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil, exp
from typing import TypeAlias

from queryveil.data import QueryLog

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


def plain_match_of_logs(one: QueryLog, two: QueryLog) -> int:
    """Count the rows that both logs have, queries being the same in any case and with any blanks.

    >>> log = QueryLog.from_frame({"user": ["a", "a"], "query": ["Red  wine", "tea"]})
    >>> plain_match_of_logs(log, QueryLog.from_frame({"user": ["a", "b"], "query": ["red wine", "tea"]}))
    1
    """
    logs = (each.frame.select("user", "query").iter_rows() for each in (one, two))
    return plain_match(*([(user, " ".join(query.lower().split())) for user, query in rows] for rows in logs))


def plain_chance(rows: Sequence[Row], original: Sequence[Pair]) -> int:
    """Return how many pairs are true if all queries of a category are taken for those of one released user, the best.

    >>> plain_chance([("a", "x", 0), ("b", "y", 0)], [("b", "x"), ("b", "y")])
    2
    """
    total = 0
    for category in {row[2] for row in rows}:
        texts = [text for _, text, each in rows if each == category]
        total += max(plain_match([(user, text) for text in texts], original) for user, _, _ in rows)
    return total


def plain_nearest(
    rows: Sequence[Row], moments: Sequence[int], text: str, *, k: int, by_accident: float
) -> dict[str, float]:
    """Return the chance of each user to have asked a text of one category, by who has rows near its releases.

    >>> rows = [("a", "x", 0), ("b", "y", 0), ("c", "z", 0), ("a", "x", 0)]
    >>> found = plain_nearest(rows, [1, 1, 2, 2], "x", k=2, by_accident=0.1)
    >>> [round(found[user], 3) for user in "bc"]
    [0.5, 0.5]
    """
    category = next(each for _, other, each in rows if other == text)
    pool = sorted(
        (moment, user, other) for (user, other, each), moment in zip(rows, moments, strict=True) if each == category
    )
    times, users = [moment for moment, _, _ in pool], [user for _, user, _ in pool]
    out = {user for _, user, other in pool if other == text}
    chances = {user: users.count(user) / len(users) for user in users if user not in out}
    for moment in [moment for moment, _, other in pool if other == text]:
        near = dict.fromkeys(users, 0.0)
        for other, user in zip(times, users, strict=True):
            low, high = min(moment, other), max(moment, other)
            # Rows of one moment are in no order; so many lie between for certain, and one step more.
            distance = 0 if low == high else sum(low < each < high for each in times) + 1
            near[user] += exp(-distance / k)
        for user in chances:
            share = users.count(user) / len(users)
            chances[user] *= 1 + (1 - by_accident) / by_accident * near[user] / sum(near.values()) / share
    return {user: chance / sum(chances.values()) for user, chance in chances.items()}


def _take(values: list[str], place: int) -> str:
    """Take one out; the last takes its place."""
    taken = values[place]
    values[place] = values[-1]
    values.pop()
    return taken

"""Measures of utility as their definitions read: slow, and only for small logs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from math import log, log1p, log2, prod, sqrt
from statistics import StatisticsError, correlation, mean

import polars as pl

from queryveil.text.tokens import join_terms

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


Clicks = Mapping[tuple[str, str], int]
"""How often each page is clicked after each query, which is in terms with one blank between them."""


def plain_chances(clicks: Clicks, *, pages: Sequence[str], query: str) -> dict[str, float]:
    """Return the chance of each page after a query, by what was clicked.

    >>> plain_chances({}, pages=["a.example", "b.example"], query="a")["a.example"]
    0.9
    """
    after: dict[str, Counter[str]] = defaultdict(Counter)
    popular = Counter(dict.fromkeys(pages, 1))
    for page in pages:
        for word in set(join_terms(pl.Series([page])).item().split()):
            after[word][page] += 1
    for (asked, page), n in clicks.items():
        popular[page] += n
        for word in set(asked.split()):
            after[word][page] += n
    rarity = {word: log1p(len(pages) / len(after[word])) for word in set(query.split()) if after[word]}
    own = {page: clicks.get((query, page), 0) for page in pages}
    chances = {}
    for page in pages:
        share = popular[page] / popular.total()
        if rarity:
            parts = [weight * after[word][page] / after[word].total() for word, weight in rarity.items()]
            share = 0.8 * sum(parts) / sum(rarity.values()) + 0.2 * share
        chances[page] = (own[page] + 2 * share) / (sum(own.values()) + 2)
    return chances


def plain_ranking(clicks: Clicks, *, judged: Clicks, pages: Sequence[str]) -> tuple[float, float]:
    """Return NDCG at 10 and the mean log-likelihood of the judged clicks; of equal pages each has the last place."""
    ndcg, likelihood, whole = 0.0, 0.0, sum(judged.values())
    for query in sorted({query for query, _ in judged}):
        chances = plain_chances(clicks, pages=pages, query=query)
        gains = {page: n for (asked, page), n in judged.items() if asked == query}
        place = {page: sum(other >= chances[page] - 1e-11 for other in chances.values()) for page in gains}
        reached = sum(n / log2(1 + place[page]) for page, n in gains.items() if place[page] <= 10)
        best = sum(n / log2(2 + i) for i, n in enumerate(sorted(gains.values(), reverse=True)[:10]))
        ndcg += sum(gains.values()) * reached / best
        likelihood += sum(n * log(chances[page]) for page, n in gains.items())
    return ndcg / whole, likelihood / whole


def plain_completions(asked: Mapping[str, int], *, typed: Mapping[str, int]) -> float:
    """Return the mean reciprocal rank of queries after three letters; of equals each has the last place.

    >>> plain_completions({"jaguar": 3, "jam jar": 2, "jaw bone": 2}, typed={"jaguar": 1})
    1.0
    """
    total = 0.0
    typed = {query: n for query, n in typed.items() if len(query) > 3}
    for query, n in typed.items():
        shown = [m for other, m in asked.items() if len(other) > 3 and other[:3] == query[:3] and m > 0]
        place = sum(m >= asked.get(query, 0) for m in shown)
        total += n / place if asked.get(query, 0) and place <= 10 else 0
    return total / max(1, sum(typed.values()))


def plain_related(rows: Sequence[Row], clicks: Clicks, *, query: str, by_day: bool) -> Counter[str]:
    """Return how related each other query is to this one: people who asked both, and clicks they have in common."""
    seen = {(user, time.date() if by_day and time else None, asked) for user, asked, time in rows if asked}
    if by_day:
        seen = {each for each in seen if each[1] is not None}
    found = Counter(dict(Counter(other for _, other in {(u, o) for u, d, o in seen if (u, d, query) in seen})))
    for (asked, page), n in clicks.items():
        found[asked] += min(n, clicks.get((query, page), 0))
    return Counter({other: n for other, n in found.items() if other != query and n >= 2})


def plain_one_edit(one: str, other: str) -> bool:
    """Return whether two texts differ by a letter too many or wrong or by two exchanged, and not in a digit first.

    >>> plain_one_edit("kitten", "kiten"), plain_one_edit("win 7", "win 8"), plain_one_edit("ab", "ba")
    (True, False, True)
    """
    if one == other:
        return False
    first = next(i for i in range(max(len(one), len(other))) if one[i : i + 1] != other[i : i + 1])
    if any(text[first : first + 1] in set("0123456789") for text in (one, other)):
        return False
    shorter, longer = sorted((one, other), key=len)
    if any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer))):
        return True
    if len(one) != len(other):
        return False
    differing = [i for i in range(len(one)) if one[i] != other[i]]
    exchanged = len(differing) == 2 and differing[1] == differing[0] + 1
    return len(differing) == 1 or (
        exchanged and one[differing[0]] == other[differing[1]] and one[differing[1]] == other[differing[0]]
    )


def plain_respelled(rows: Sequence[Row], *, way: str) -> Counter[tuple[str, str]]:
    """Return by how many people each query was respelled as another one; `way` is exact, day or user."""
    asked = Counter(query for _, query, _ in rows)
    made = set()
    for user, query, time in rows:
        for who, other, later in rows:
            if user != who or asked[other] <= asked[query] or len(query) < 4 or not plain_one_edit(query, other):
                continue
            is_one_day = time is not None and later is not None and time.date() == later.date()
            is_so = way == "user" or is_one_day
            if way == "exact" and time is not None and later is not None:
                is_so = is_one_day and timedelta() <= later - time <= timedelta(minutes=30)
            if is_so and len(other) >= 4:
                made.add((user, query, other))
    return Counter((query, other) for _, query, other in made)


def plain_spelling(before: Sequence[Row], after: Sequence[Row], *, way: str) -> float | None:
    """Return the share of respellings that a release shows, or that its most frequent neighbour gives away."""
    made, shown = plain_respelled(before, way="exact"), plain_respelled(after, way=way)
    asked, found = Counter(query for _, query, _ in after), 0
    for (query, other), n in made.items():
        near = {m: k for m, k in asked.items() if len(m) >= 4 and k > asked[query] and plain_one_edit(query, m)}
        is_best = near.get(other) == max(near.values(), default=0) > 0
        is_alone = sum(k == near.get(other) for k in near.values()) == 1
        found += n if (query, other) in shown or (is_best and is_alone) else 0
    return found / made.total() if made else None


def plain_count(bags: Sequence[Mapping[str, int]], *, words: Sequence[str], part: Callable[[str, str], float]) -> float:
    """Return how many bags are expected to have all words, if an item stands for a word with the chance `part`."""
    return sum(
        prod(1 - prod((1 - part(item, word)) ** n for item, n in bag.items()) for word in set(words)) for bag in bags
    )


def plain_interests(
    before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]], *, category: Mapping[str, str]
) -> float | None:
    """Return the share of the gain that released histories give; rows are users and queries in order of time."""
    mine, theirs = ([(user, category[query]) for user, query in rows if query in category] for rows in (before, after))
    everybody = Counter(kind for _, kind in mine)
    gains: dict[str, list[float]] = {"mine": [], "theirs": []}
    for user in sorted({user for user, _ in mine}):
        own = [kind for who, kind in mine if who == user]
        if len(own) < 2:
            continue
        kind, n = own[-1], own.count(own[-1])
        for name, rows in (("mine", mine), ("theirs", theirs)):
            history = Counter(other for who, other in rows if who == user)
            left, share = history[kind] * (n - 1) / n, everybody[kind] / everybody.total()
            whole = history.total() - history[kind] + left
            gains[name].append(log2((left + 5 * share) / (whole + 5) / share) if history else 0.0)
    whole = sum(gains["mine"]) / max(1, len(gains["mine"]))
    return min(1.0, max(0.0, mean(gains["theirs"]) / whole)) if whole >= 0.01 else None

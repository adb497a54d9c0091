"""Attackers who seek people, in plain Python, as the definitions read: slow, to compare with."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from itertools import combinations
from math import log, log2
from statistics import pstdev
from typing import TypeAlias

History: TypeAlias = Set[str]


def plain_named(known: Collection[str], candidates: Sequence[History], *, eccentricity: float) -> int | None:
    """Name the candidate who scores highest for what is known, if it stands far enough above the second.

    >>> plain_named(["a", "b"], [{"a", "b"}, {"a"}, {"c"}], eccentricity=1)
    0
    >>> plain_named(["a"], [{"a"}, {"a"}], eccentricity=0)
    """
    weight = {thing: 1 / log(max(2, sum(thing in each for each in candidates))) for thing in known}
    scores = [sum(weight[thing] for thing in known if thing in each) for each in candidates]
    if not scores or max(scores) == 0:
        return None
    best = max(scores)
    second = sorted([0.0, *scores])[-2]
    is_far = best - second > 1e-9 and best - second >= eccentricity * pstdev(scores) - 1e-9
    return scores.index(best) if is_far else None


def plain_likeliest(known: Sequence[str], candidates: Sequence[Sequence[str]], *, by_accident: float) -> list[int]:
    """Return the candidates who are the likeliest to have done what is known; nobody if none did any of it.

    Each thing known was drawn from all that the candidate did, or by accident from all that anybody did.

    >>> plain_likeliest(["a", "b"], [["a", "b"], ["a", "b", "c"], ["b", "b", "a"]], by_accident=0.1)
    [0]
    """
    everything = [thing for each in candidates for thing in each]
    there = [thing for thing in known if thing in everything]
    if not there:
        return []
    fits = [
        sum(
            log(
                (1 - by_accident) * each.count(thing) / max(1, len(each))
                + by_accident * everything.count(thing) / len(everything)
            )
            for thing in there
        )
        for each in candidates
    ]
    return [number for number, fit in enumerate(fits) if fit > max(fits) - 1e-9]


def plain_alone(own: History, candidates: Sequence[History]) -> set[int]:
    """Return the candidates who alone have some pair or triple of a person's own terms.

    >>> plain_alone({"a", "b", "c"}, [{"a", "b"}, {"a", "c"}, {"a", "c"}])
    {0}
    """
    found: set[int] = set()
    for size in (2, 3):
        for few in combinations(sorted(own), size):
            holders = [number for number, each in enumerate(candidates) if each >= set(few)]
            found.update(holders if len(holders) == 1 else ())
    return found


def plain_vanity(name: str, town: str, candidates: Sequence[History]) -> int | None:
    """Name the only candidate who has every word of a name and a town.

    >>> plain_vanity("ada poe", "ulm", [{"poe", "ulm"}, {"ada", "poe", "ulm"}])
    1
    """
    holders = [number for number, each in enumerate(candidates) if each >= set(f"{name} {town}".split())]
    return holders[0] if len(holders) == 1 else None


def plain_alike(candidate: History, users: Sequence[History]) -> list[int]:
    """Return the users who share most with a candidate, rare things counting more; none if nobody shares anything.

    >>> plain_alike({"a", "b"}, [{"b"}, {"a", "b"}, {"c"}])
    [1]
    """
    support = {thing: sum(thing in each for each in users) for thing in candidate}
    shared = [sum(1 / log2(1 + support[thing]) for thing in candidate & each) for each in users]
    if not shared or max(shared) == 0:
        return []
    return [number for number, score in enumerate(shared) if score > max(shared) - 1e-9]

"""Attackers who seek people, in plain Python, as the definitions read: slow, to compare with."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from itertools import combinations
from math import ceil, exp, log, log2
from statistics import fmean, pstdev
from typing import TypeAlias

History: TypeAlias = Set[str]
Counts: TypeAlias = dict[str, int]


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
    fits = _fits(known, candidates, by_accident=by_accident)
    return [number for number, fit in enumerate(fits) if fit > max(fits) - 1e-9]


def plain_confidence(known: Sequence[str], candidates: Sequence[Sequence[str]], *, by_accident: float) -> float:
    """Return the chance that the likeliest candidate did what is known, all candidates being as likely before.

    >>> plain_confidence(["a"], [["a"], ["a"]], by_accident=0.1)
    0.5
    """
    fits = _fits(known, candidates, by_accident=by_accident)
    return exp(max(fits)) / sum(map(exp, fits)) if fits else 0.0


def plain_mean_of_likely(
    known: Sequence[str], candidates: Sequence[Sequence[str]], *, values: Sequence[float], by_accident: float
) -> list[float]:
    """Return the mean of the candidates' values, weighted by how likely each did what is known, and the highest chance.

    >>> plain_mean_of_likely(["a"], [["a"], ["a"]], values=[1.0, 0.0], by_accident=0.1)
    [0.5, 0.5]
    """
    fits = _fits(known, candidates, by_accident=by_accident) or [0.0] * len(candidates)
    total = sum(map(exp, fits))
    mean = sum(exp(fit) * value for fit, value in zip(fits, values, strict=True)) / total
    return [mean, exp(max(fits)) / total]


def _fits(known: Sequence[str], candidates: Sequence[Sequence[str]], *, by_accident: float) -> list[float]:
    """Return the logarithm of how likely each candidate did what is known; nothing if none did any of it."""
    everything = [thing for each in candidates for thing in each]
    there = [thing for thing in known if thing in everything]
    if not there:
        return []
    return [
        sum(
            log(
                (1 - by_accident) * each.count(thing) / max(1, len(each))
                + by_accident * everything.count(thing) / len(everything)
            )
            for thing in there
        )
        for each in candidates
    ]


def plain_chance_of_counts(pairs: Sequence[tuple[Counts, Counts]], *, most: int) -> list[list[float]]:
    """Return for each count of a term after the chance of each before, given what some people had before and after.

    >>> [round(chance, 2) for chance in plain_chance_of_counts([({"a": 2, "b": 1}, {"a": 1})], most=2)[1]]
    [0.17, 0.17, 0.67]
    """
    n = [[1 / (most + 1)] * (most + 1) for _ in range(most + 1)]
    for before, after in pairs:
        for term in before.keys() & after.keys():
            n[min(most, after[term])][min(most, before[term])] += 1
    return [[each / sum(row) for each in row] for row in n]


def plain_likeliest_by_counts(
    known: Counts, candidates: Sequence[Counts], *, chances: Sequence[Sequence[float]], by_accident: float
) -> list[int]:
    """Return the candidates likeliest to have used the known terms so often; nobody if none has any of them.

    A term is drawn from the candidate's set of terms or from all sets; `chances` say what its count was before.

    >>> plain_likeliest_by_counts({"a": 1}, [{"a": 1}, {"a": 0}], chances=[[0.9, 0.1], [0.1, 0.9]], by_accident=0.1)
    [0]
    """
    n_all = sum(map(len, candidates))
    fits = [0.0] * len(candidates)
    there = [term for term in known if any(term in each for each in candidates)]
    for term in there:
        of = [chances[each[term]][known[term]] if term in each else 0.0 for each in candidates]
        for i, each in enumerate(candidates):
            fits[i] += log((1 - by_accident) * of[i] / len(each) + by_accident * sum(of) / n_all)
    return [i for i, fit in enumerate(fits) if fit > max(fits) - 1e-9] if there else []


def plain_surest(right: Sequence[float], confidence: Sequence[float]) -> tuple[int, int, int]:
    """Return one in a hundred targets, how many of those are found whom the guesser is surest of, and the certain ones.

    >>> plain_surest([1, 0, 1], [0.9, 0.2, 0.5])
    (1, 1, 2)
    """
    mean = {each: fmean(r for r, c in zip(right, confidence, strict=True) if c == each) for each in confidence}
    ordered = sorted(confidence, reverse=True)
    n_top, n_certain = ceil(len(right) / 100), 0.0
    for n in range(1, len(ordered) + 1):
        n_right = sum(mean[each] for each in ordered[:n])
        if (n == len(ordered) or ordered[n] != ordered[n - 1]) and n_right >= 0.95 * n:
            n_certain = n_right
    return n_top, round(sum(mean[each] for each in ordered[:n_top])), round(n_certain)


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


def plain_choice_weights(tables: list[list[list[float]]], truths: list[list[bool]]) -> list[float]:
    """Return the weights of features that make the true rows likeliest, less a penalty, by small steps uphill."""
    rows = [row for table in tables for row in table]
    columns = list(zip(*rows, strict=True))
    deviations = [pstdev(column) + 1e-9 for column in columns]
    before = [deviations[0]] + [0.0] * (len(columns) - 1)
    weights = list(before)
    for _ in range(400):
        slope = [-10 * (weight - first) for weight, first in zip(weights, before, strict=True)]
        for table, truth in zip(tables, truths, strict=True):
            scaled = [[value / each for value, each in zip(row, deviations, strict=True)] for row in table]
            odds = [exp(sum(w * x for w, x in zip(weights, row, strict=True))) for row in scaled]
            for row, is_true, odd in zip(scaled, truth, odds, strict=True):
                missing = is_true / sum(truth) - odd / sum(odds)
                slope = [each + missing * x for each, x in zip(slope, row, strict=True)]
        weights = [weight + 0.02 * each for weight, each in zip(weights, slope, strict=True)]
    return [weight / each for weight, each in zip(weights, deviations, strict=True)]

"""Plink in plain Python, as the paper reads: slow, to compare with.

A profile is a dict of weights by term, or by synset once it is augmented. A tree is a dict of parents by name, in which
the root is nobody's child; `senses` has the names that a term may stand for, the most frequent first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

Profile = Mapping[str, float]
Parents = Mapping[str, str]
Senses = Mapping[str, Sequence[str]]


def cosine(first: Profile, second: Profile) -> float:
    """Return the cosine of two profiles (equation 4), 0 where one is empty.

    >>> cosine({"a": 3, "b": 4}, {"a": 1})
    0.6
    """
    product = math.fsum(weight * second[term] for term, weight in first.items() if term in second)
    lengths = [math.sqrt(math.fsum(weight**2 for weight in profile.values())) for profile in (first, second)]
    return product / lengths[0] / lengths[1] if all(lengths) else 0.0


def path(name: str, parents: Parents) -> Iterator[str]:
    """Return the hypernym path of a synset (definition 4), itself first.

    >>> list(path("elm", {"elm": "tree", "tree": "plant"}))
    ['elm', 'tree', 'plant']
    """
    yield name
    while name in parents:
        name = parents[name]
        yield name


def specificity(name: str, parents: Parents) -> float:
    """Return 1 for a leaf, 0 for the root, between them 1 - log(leaves under it) / log(all leaves).

    >>> specificity("tree", {"elm": "tree", "fir": "tree", "tree": "plant", "fern": "plant", "moss": "plant"})
    0.5
    """
    leaves = [child for child in parents if child not in parents.values()]
    n_below = sum(name in path(leaf, parents) for leaf in leaves)
    return 1 - math.log(max(1, n_below)) / math.log(len(leaves)) if len(leaves) > 1 else 0.0


def sense_of(term: str, profile: Profile, senses: Senses, parents: Parents) -> str:
    """Choose the sense whose path is most similar to the rest of the profile, of equals the most frequent.

    >>> parents = {"java the island": "land", "java the drink": "drink", "tea": "drink", "land": "all", "drink": "all"}
    >>> senses = {"java": ["java the island", "java the drink"], "tea": ["tea"]}
    >>> sense_of("java", {"java": 1, "tea": 1}, senses, parents)
    'java the drink'
    """

    def closeness(sense: str, other: str) -> float:
        shared = [
            specificity(above, parents)
            for meant in senses[other]
            for above in path(meant, parents)
            if above in path(sense, parents)
        ]
        return max(shared, default=0.0)

    best, best_worth = senses[term][0], -math.inf
    for sense in senses[term]:
        rest = (weight * closeness(sense, other) for other, weight in profile.items() if other != term)
        worth = math.fsum(rest)
        if worth > best_worth + 1e-9:
            best, best_worth = sense, worth
    return best


def companions(profiles: Sequence[Profile], *, most: int, order: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Return the terms that go most with each term: those in two profiles and more with it, by cosine.

    Of equals the first in `order` counts, or the first in the profiles.

    >>> companions([{"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}, {"b": 1, "c": 1}, {"b": 1}], most=1)
    {'a': ['b'], 'b': ['a'], 'c': ['b']}
    """
    names = list(order or dict.fromkeys(term for profile in profiles for term in profile))
    found = {}
    for term in names:
        holders = [profile for profile in profiles if term in profile]
        both = Counter(other for profile in holders for other in profile if other != term)
        worth = {
            other: Fraction(n * n, sum(other in profile for profile in profiles)) for other, n in both.items() if n > 1
        }
        found[term] = sorted(worth, key=lambda other: (-worth[other], names.index(other)))[:most]
    return found


def augment(
    profile: Profile, senses: Senses, parents: Parents, *, a: int, beside: Mapping[str, Sequence[str]] | None = None
) -> dict[str, float]:
    """Replace each term by its synset and add the hypernyms within `a` steps, of the largest weight that reaches them.

    The terms that stand beside a term are added in the same way, as names of their own.

    >>> augment({"elm": 1, "fir": 0.5}, {"elm": ["elm"], "fir": ["fir"]}, {"elm": "tree", "fir": "tree"}, a=1)
    {'elm': 1, 'tree': 1, 'fir': 0.5}
    """
    out: dict[str, float] = {}
    for term, weight in profile.items():
        steps = path(sense_of(term, profile, senses, parents), parents)
        for _, name in zip(range(a + 1), steps, strict=False):
            out[name] = max(weight, out.get(name, 0.0))
        for other in (beside or {}).get(term, ()):
            out[f"beside {other}"] = max(weight, out.get(f"beside {other}", 0.0))
    return out


def plain_groups(
    profiles: Sequence[Profile], augmented: Sequence[Profile], *, p: Fraction, strict: bool, aversion: float
) -> list[list[int]]:
    """Return the members of each group by algorithm 1; the first profile is the first seed, of equals the first counts.

    A group has at least 1/p members, with `strict` as many more, below 2/p, as let most of them share a term; there a
    profile is as much less close as its terms are already held by as many members as may, times `aversion`.

    >>> alike = [{"a": 1.0}, {"b": 1.0}, {"a": 1.0}, {"b": 1.0}]
    >>> plain_groups(alike, alike, p=Fraction(1, 2), strict=False, aversion=0)
    [[0, 2], [1, 3]]
    """
    average = Fraction(sum(map(len, profiles)), len(profiles))
    fewest = math.ceil(1 / p)
    if strict:
        most = max(fewest, min(2 * fewest - 1, len(profiles)))
        fewest = max(range(fewest, most + 1), key=lambda m: Fraction(math.floor(p * m), m))
    groups: list[list[int]] = []
    left, group = list(range(len(profiles))), [0]
    while left:
        left.remove(group[0])
        full: set[str] = set()
        while not (is_enough := _is_enough(profiles, group, average / p, fewest)) and left:
            may_share = math.floor(p * max(fewest, len(group) + 1)) if strict else 0
            holders = Counter(term for member in group for term in profiles[member])
            full |= {term for term in profiles[group[-1]] if holders[term] == may_share}
            together = combined(augmented, group)

            def closeness(user: int, together: Profile = together, full: frozenset[str] = frozenset(full)) -> float:
                pushed = len(full & profiles[user].keys()) / len(profiles[user])
                return round(cosine(together, augmented[user]) - aversion * pushed, 9)

            closest = max(left, key=closeness)
            group.append(closest)
            left.remove(closest)
        if not is_enough:
            return _with_rest(groups, group, augmented)
        groups.append(group)
        seed = group[0]
        if left:
            group = [min(left, key=lambda user: round(cosine(augmented[seed], augmented[user]), 9))]
    return groups


def combined(augmented: Sequence[Profile], group: Sequence[int]) -> Counter[str]:
    """Add profiles up."""
    total: Counter[str] = Counter()
    for member in group:
        for name, weight in augmented[member].items():
            total[name] += weight  # type: ignore[assignment]
    return total


def _is_enough(profiles: Sequence[Profile], group: Sequence[int], size: Fraction, fewest: int) -> bool:
    return len(group) >= fewest and sum(len(profiles[member]) for member in group) >= size


def _with_rest(groups: list[list[int]], rest: list[int], augmented: Sequence[Profile]) -> list[list[int]]:
    """Return each profile of a last group that is too small to its closest group."""
    centres = [combined(augmented, group) for group in groups]
    out = [list(group) for group in groups]
    for user in sorted(rest):
        best = max(range(len(groups)), key=lambda g: round(cosine(centres[g], augmented[user]), 9))
        out[best].append(user)
    return out

"""What attackers who seek people share: whom they seek, how they score, and what a blind guesser finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from queryveil.attacks._naming_kernels import name_best, name_likeliest
from queryveil.data import Int32s, Int64s, QueryLog, Transactions
from queryveil.data.rows import group
from queryveil.guarantees import DifferentialPrivacy
from queryveil.pairing import Paired, moves_up
from queryveil.text.histories import Histories, spread


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Postings:
    """Thing t is held by `holders[ptr[t]:ptr[t + 1]]`, ascending, of `n_holders` in all."""

    ptr: Int64s
    holders: Int32s
    n_holders: int

    @classmethod
    def of(cls, histories: Histories) -> Postings:
        """Turn histories round.

        >>> pair = Histories(row_ptr=np.array([0, 2, 3]), terms=np.array([0, 1, 1], np.int32),
        ...     counts=np.ones(3, np.int32), n_terms=2)
        >>> Postings.of(pair).of_thing(1).tolist()
        [0, 1]
        """
        ptr, places = group(histories.terms, histories.n_terms)
        return cls(ptr=ptr, holders=histories.entry_user[places], n_holders=histories.n_users)

    @classmethod
    def paired(cls, things: Int64s, *, holders: Int32s, n_things: int, n_holders: int) -> Postings:
        """Take things with their holders beside them; the same pair may come more than once."""
        pairs = np.unique(things.astype(np.int64) * n_holders + holders)
        support = np.bincount(pairs // max(1, n_holders), minlength=n_things)
        ptr = np.concatenate([[0], np.cumsum(support)]).astype(np.int64)
        return cls(ptr=ptr, holders=(pairs % max(1, n_holders)).astype(np.int32), n_holders=n_holders)

    @property
    def support(self) -> Int64s:
        """How many hold each thing."""
        return np.diff(self.ptr)

    @property
    def sizes(self) -> Int64s:
        """How many things each holder has."""
        return np.bincount(self.holders, minlength=self.n_holders).astype(np.int64)

    def of_thing(self, thing: int) -> Int32s:
        """Return those who hold a thing."""
        return self.holders[self.ptr[thing] : self.ptr[thing + 1]]

    def of_all(self, things: Int64s) -> Int32s:
        """Return those who hold every one of some things, at least one."""
        by_support = sorted(things.tolist(), key=self.support.__getitem__)
        found = self.of_thing(by_support[0])
        for thing in by_support[1:]:
            if not len(found):
                break
            found = np.intersect1d(found, self.of_thing(thing), assume_unique=True)
        return found

    def of_all_in_any(self, forms: Sequence[Int64s]) -> Int32s:
        """Return those who hold, of every one of some things, any of its forms."""
        fewest_first = sorted(forms, key=lambda things: int(self.support[things].sum()))
        found: Int32s | None = None
        for things in fewest_first:
            held = [self.of_thing(thing) for thing in things.tolist()]
            holders = np.unique(np.concatenate(held)) if held else self.holders[:0]
            found = holders if found is None else np.intersect1d(found, holders, assume_unique=True)
            if not len(found):
                break
        return self.holders[:0] if found is None else found

    def __repr__(self) -> str:
        return f"Postings(n_things={len(self.ptr) - 1}, n_holders={self.n_holders})"


Covering: TypeAlias = tuple[Int64s, Int64s]
"""The items that may stand for each term, as compressed rows."""
BY_ACCIDENT = 0.1
"""So many of the things known of a person are taken to be wrong, or no longer in the release."""


def no_people(paired: Paired) -> str | None:
    """Return why nobody can be sought in a release; None if people can."""
    if not isinstance(paired.release.data, QueryLog | Transactions):
        return "the release has no rows that are one person's"
    if isinstance(paired.release.promise, DifferentialPrivacy):
        return "the users of the release are made up"
    return None


def no_terms(paired: Paired) -> str | None:
    """Return why nobody can be sought by terms in a release; None if people can."""
    return unreadable(paired) or no_people(paired)


def unreadable(paired: Paired) -> str | None:
    """Return why the terms of a release cannot be told; None if they can."""
    if paired.release.manifest.method == "token_hash":
        return "the terms of the release are hashed"
    if paired.cover is None and moves_up(paired.release):
        return "its items moved up in a taxonomy that was not given: --taxonomy FILE"
    return None


def draw_targets(eligible: Int64s, *, n_targets: int, rng: np.random.Generator) -> Int64s:
    """Draw some of those who may be sought; all, if there are few."""
    return np.sort(rng.choice(eligible, size=min(n_targets, len(eligible)), replace=False))


def draw_each(row_ptr: Int64s, *, rows: Int64s, n: int, rng: np.random.Generator) -> tuple[Int64s, Int64s]:
    """Draw up to n entries of each of some compressed rows; give them as compressed rows, by their places.

    >>> ptr, entries = draw_each(np.array([0, 2, 3]), rows=np.array([0, 1]), n=2, rng=np.random.default_rng(1))
    >>> ptr.tolist(), sorted(entries.tolist())
    ([0, 2, 3], [0, 1, 2])
    """
    row, entries = spread(row_ptr, rows=rows)
    order = np.lexsort((rng.random(len(entries)), row))
    lengths = row_ptr[rows + 1] - row_ptr[rows]
    rank = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.concatenate([[0], np.cumsum(np.minimum(lengths, n))]).astype(np.int64), entries[order][rank < n]


def name_candidates(known_ptr: Int64s, *, known: Int64s, postings: Postings, eccentricity: float) -> Int64s:
    """Name the candidate who fits best what is known of each target, -1 for none.

    What few hold counts more: the weight of a thing is 1/log of how many hold it. The best must stand out by
    `eccentricity` standard deviations.
    """
    # Paper: Narayanan and Shmatikov 2008, section 4. Differs: what one holds weighs as much as what two hold, since
    # log 1 is 0.
    weight = 1 / np.log(np.maximum(2, postings.support))
    return name_best(
        known_ptr, known.astype(np.int64), postings.ptr, postings.holders, weight, postings.n_holders, eccentricity
    )


def name_likeliest_candidates(
    known_ptr: Int64s,
    *,
    known: Int64s,
    postings: Postings,
    counts: Int64s,
    rng: np.random.Generator,
    covering: Covering | None = None,
) -> Int64s:
    """Name the candidate who is the likeliest source of what is known of each target; of equals one that is drawn.

    What is known is taken for drawn at random from what the target did, `counts` times for each holder of a thing, so
    that it is the likelier from somebody the less else this candidate did; one in ten is anybody's. With `covering` a
    thing may stand there as any of its items, and an item stands for each thing below it as often as that is asked.
    """
    of_holder = np.bincount(postings.holders, weights=counts, minlength=postings.n_holders)
    thing = np.repeat(np.arange(len(postings.ptr) - 1), postings.support)
    of_thing = np.bincount(thing, weights=counts, minlength=len(postings.ptr) - 1)
    if covering is None:
        item_ptr, items = np.arange(len(known) + 1), known.astype(np.int64)
    else:
        below, above = spread(covering[0], rows=np.arange(len(of_thing)))
        of_thing = np.bincount(covering[1][above], weights=of_thing[below], minlength=len(of_thing))
        entry, places = spread(covering[0], rows=known)
        item_ptr, items = _ptr(entry, n=len(known)), covering[1][places]
    own, anybody = counts / of_holder[postings.holders], of_thing[thing] / max(1, counts.sum())
    odds = (1 - BY_ACCIDENT) * own / (BY_ACCIDENT * anybody)
    pick = rng.random(len(known_ptr) - 1)
    return name_likeliest(known_ptr, item_ptr, items, postings.ptr, postings.holders, odds, postings.n_holders, pick)


def covering_of(paired: Paired) -> Covering | None:
    """Return the items that may stand for each term of the pair's vocabulary; None where terms stand for themselves."""
    return None if paired.cover is None else paired.cover.covering(paired.vocabulary)


def as_items(ptr: Int64s, *, terms: Int64s, covering: Covering | None) -> tuple[Int64s, Int64s]:
    """Turn compressed rows of terms into rows of the items that may stand for them, each once.

    >>> covering = np.array([0, 1, 3, 3]), np.array([0, 0, 1])
    >>> [part.tolist() for part in as_items(np.array([0, 2, 3]), terms=np.array([0, 1, 2]), covering=covering)]
    [[0, 2, 2], [0, 1]]
    """
    if covering is None:
        return ptr, terms
    entry, places = spread(covering[0], rows=terms)
    row = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))[entry]
    n_items = max(1, len(covering[0]) - 1)
    row, items = np.divmod(np.unique(row * n_items + covering[1][places]), n_items)
    return _ptr(row, n=len(ptr) - 1), items


def _ptr(row: Int64s, *, n: int) -> Int64s:
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(np.int64)


def found_by_chance(paired: Paired, *, users: Int64s, n_guesses: Int64s | None = None) -> float:
    """Return how many users a blind guesser finds on average, who names a random candidate for each, or so many."""
    chances = paired.who.candidates_of(paired.n_users)[users] / max(1, paired.n_candidates)
    return float(np.minimum(1.0, chances if n_guesses is None else chances * n_guesses).sum())

"""Shared parts of attacks that seek people: drawing targets, scoring candidates, and blind guessing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from queryveil.attacks._naming_kernels import name_best, name_likeliest
from queryveil.data import Int32s, Int64s, QueryLog, Transactions
from queryveil.data.rows import Rows
from queryveil.guarantees import DifferentialPrivacy
from queryveil.pairing import Pair, is_generalised
from queryveil.text.histories import Histories


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Postings:
    """The holders of each thing, in ascending order, of `n_holders` in all."""

    by_thing: Rows[np.int32]
    n_holders: int

    @classmethod
    def of(cls, histories: Histories) -> Postings:
        """Turn histories round.

        >>> pair = Histories(user_terms=Rows.from_lists([[0, 1], [1]]), counts=np.ones(3, np.int32), n_terms=2)
        >>> Postings.of(pair).of_thing(1).tolist()
        [0, 1]
        """
        return cls(by_thing=histories.user_terms.transpose(histories.n_terms), n_holders=histories.n_users)

    @classmethod
    def of_pairs(cls, things: Int64s, *, holders: Int32s, n_things: int, n_holders: int) -> Postings:
        """Take things with their holders beside them; the same pair may come more than once."""
        pairs = np.unique(things.astype(np.int64) * n_holders + holders)
        thing, holder = np.divmod(pairs, max(1, n_holders))
        by_thing = Rows.from_entries(thing, holder.astype(np.int32), n_rows=n_things)
        return cls(by_thing=by_thing, n_holders=n_holders)

    @property
    def holders(self) -> Int32s:
        """The holders of all things, one after another."""
        return self.by_thing.values

    @property
    def support(self) -> Int64s:
        """How many hold each thing."""
        return self.by_thing.lengths

    @property
    def sizes(self) -> Int64s:
        """How many things each holder has."""
        return np.bincount(self.holders, minlength=self.n_holders).astype(np.int64)

    def of_thing(self, thing: int) -> Int32s:
        """Return those who hold a thing."""
        return self.by_thing.row(thing)

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
        return f"Postings(n_things={self.by_thing.n_rows}, n_holders={self.n_holders})"


Generalisations: TypeAlias = Rows[np.int64]
"""The items that may stand for each term."""
BY_ACCIDENT = 0.1
"""So many of the things known of a person are taken to be wrong, or no longer in the release."""


def no_people(pair: Pair) -> str | None:
    """Return why nobody can be sought in a release; None if people can."""
    if not isinstance(pair.release.data, QueryLog | Transactions):
        return "the release has no rows that are one person's"
    if isinstance(pair.release.promise, DifferentialPrivacy):
        return "the users of the release are made up"
    return None


def no_terms(pair: Pair) -> str | None:
    """Return why nobody can be sought by terms in a release; None if people can."""
    return unreadable(pair) or no_people(pair)


def unreadable(pair: Pair) -> str | None:
    """Return why the terms of a release cannot be told; None if they can."""
    if pair.release.manifest.method == "token_hash":
        return "the terms of the release are hashed"
    if pair.ancestors is None and is_generalised(pair.release):
        return "its items moved up in a taxonomy that was not given: --taxonomy FILE"
    return None


def draw_targets(eligible: Int64s, *, n_targets: int, rng: np.random.Generator) -> Int64s:
    """Draw some of those who may be sought; all, if there are few."""
    return np.sort(rng.choice(eligible, size=min(n_targets, len(eligible)), replace=False))


def draw_each(rows: Rows[Any], *, of: Int64s, n: int, rng: np.random.Generator) -> Rows[Any]:
    """Draw up to n values of each of some rows.

    >>> drawn = draw_each(Rows.from_lists([[4, 7], [5]]), of=np.array([0, 1]), n=2, rng=np.random.default_rng(1))
    >>> [sorted(row) for row in drawn.to_lists()]
    [[4, 7], [5]]
    """
    ptr, values = some = rows.take(of)
    order = np.lexsort((rng.random(len(values)), some.row_of_entry))
    return Rows(ptr, values[order]).keep(some.place_in_row < n)


def name_candidates(known: Rows[np.int64], *, postings: Postings, eccentricity: float) -> Int64s:
    """Name the candidate who fits best what is known of each target, -1 for none.

    What few hold counts more: the weight of a thing is 1/log of how many hold it. The best must stand out by
    `eccentricity` standard deviations.
    """
    # Paper: Narayanan and Shmatikov 2008, section 4. Differs: what one holds weighs as much as what two hold, since
    # log 1 is 0.
    weight = 1 / np.log(np.maximum(2, postings.support))
    return name_best(*known, *postings.by_thing, weight, postings.n_holders, eccentricity)


def name_likeliest_candidates(
    known: Rows[np.int64],
    *,
    postings: Postings,
    counts: Int64s,
    rng: np.random.Generator,
    generalisations: Generalisations | None = None,
) -> Int64s:
    """Name the candidate who is the likeliest source of what is known of each target; of equals one that is drawn.

    What is known is taken for drawn at random from what the target did, `counts` times for each holder of a thing, so
    that it is the likelier from somebody the less else this candidate did; one in ten is anybody's. With
    `generalisations` a thing may stand there as any of its items, and an item stands for each thing below it as often
    as that is asked.
    """
    of_holder = np.bincount(postings.holders, weights=counts, minlength=postings.n_holders)
    thing = postings.by_thing.row_of_entry
    of_thing = np.bincount(thing, weights=counts, minlength=postings.by_thing.n_rows)
    if generalisations is None:
        items = Rows(np.arange(len(known.values) + 1), known.values)
    else:
        below = of_thing[generalisations.row_of_entry]
        of_thing = np.bincount(generalisations.values, weights=below, minlength=len(of_thing))
        items = generalisations.take(known.values)
    own, anybody = counts / of_holder[postings.holders], of_thing[thing] / max(1, counts.sum())
    odds = (1 - BY_ACCIDENT) * own / (BY_ACCIDENT * anybody)
    pick = rng.random(known.n_rows)
    return name_likeliest(known.ptr, *items, *postings.by_thing, odds, postings.n_holders, pick)


def as_items(terms: Rows[np.int64], *, generalisations: Generalisations | None) -> Rows[np.int64]:
    """Turn rows of terms into rows of the items that may stand for them, each once.

    >>> as_items(Rows.from_lists([[0, 1], [2]]), generalisations=Rows.from_lists([[0], [0, 1], []])).to_lists()
    [[0, 1], []]
    """
    if generalisations is None:
        return terms
    found = generalisations.take(terms.values)
    row = terms.row_of_entry[found.row_of_entry]
    n_items = max(1, generalisations.n_rows)
    row, items = np.divmod(np.unique(row * n_items + found.values), n_items)
    return Rows.from_entries(row, items, n_rows=terms.n_rows)


def found_by_chance(pair: Pair, *, users: Int64s, n_guesses: Int64s | None = None) -> float:
    """Return how many users a blind guesser finds on average, who names a random candidate for each, or so many."""
    chances = pair.identity.n_candidates_of(pair.n_users)[users] / max(1, pair.n_candidates)
    return float(np.minimum(1.0, chances if n_guesses is None else chances * n_guesses).sum())

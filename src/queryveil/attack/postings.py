"""Who has what: the candidates of each term, or of any other thing that is numbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from queryveil.histories import Histories
from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.kernels.rows import group


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
        """Give those who hold a thing."""
        return self.holders[self.ptr[thing] : self.ptr[thing + 1]]

    def of_all(self, things: Int64s) -> Int32s:
        """Give those who hold every one of some things, at least one."""
        by_support = sorted(things.tolist(), key=self.support.__getitem__)
        found = self.of_thing(by_support[0])
        for thing in by_support[1:]:
            if not len(found):
                break
            found = np.intersect1d(found, self.of_thing(thing), assume_unique=True)
        return found

    def of_all_in_any(self, forms: Sequence[Int64s]) -> Int32s:
        """Give those who hold, of every one of some things, any of its forms."""
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

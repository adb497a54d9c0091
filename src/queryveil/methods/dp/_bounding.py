"""Bound the contribution of each person: at most so many queries or clicks, once each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from queryveil.data import Bools, Int32s, Int64s, UInt64s
from queryveil.data.rows import Rows
from queryveil.methods.settings import Choice


@njit(cache=True, nogil=True)
def take_largest(row_ptr: Int64s, keys: UInt64s, most: int) -> Bools:
    """Mark the `most` largest keys of each row; of equal ones the first."""
    taken = np.zeros(len(keys), np.bool_)
    best = np.empty(most, np.int64)
    for row in range(len(row_ptr) - 1):
        begin, end = row_ptr[row], row_ptr[row + 1]
        if end - begin <= most:
            taken[begin:end] = True
            continue
        n_best = 0
        for place in range(begin, end):
            key = keys[place]
            if n_best == most:
                if key <= keys[best[most - 1]]:
                    continue
                n_best -= 1
            slot = n_best
            while slot > 0 and keys[best[slot - 1]] < key:
                best[slot] = best[slot - 1]
                slot -= 1
            best[slot] = place
            n_best += 1
        for slot in range(most):
            taken[best[slot]] = True
    return taken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributions:
    """The distinct items of each person, and beside them how often each is there."""

    items: Rows[np.int32]
    times: Int32s

    def without(self, is_out: Bools) -> Contributions:
        """Return what is left of everybody's without some items."""
        stays = ~is_out[self.items.values]
        return Contributions(items=self.items.keep(stays), times=self.times[stays])

    def counts(self, *, n_items: int, most: int, choose: Choice, rng: np.random.Generator) -> Int64s:
        """Count for each item the people who picked it among their `most`.

        Privacy: what a person picks depends on the person's own rows and on chance alone, never on what others ask.
        """
        ptr, items = self.items
        keys = rng.integers(0, 2**64, len(items), dtype=np.uint64)
        if choose is Choice.FREQUENT:
            keys >>= np.uint64(32)
            keys |= self.times.astype(np.uint64) << np.uint64(32)
        return np.bincount(items[take_largest(ptr, keys, most)], minlength=n_items)


def collect(owners: Int32s, items: Int32s) -> Contributions:
    """Gather the rows of each person; a negative item is none.

    >>> gathered = collect(np.array([1, 0, 1, 1], np.int32), np.array([2, 2, 0, 2], np.int32))
    >>> gathered.items.to_lists(), gathered.times.tolist()
    ([[2], [0, 2]], [1, 1, 2])
    """
    there = items >= 0
    pairs: UInt64s = owners[there].astype(np.uint64)
    pairs <<= np.uint64(32)
    pairs |= items[there].astype(np.uint64)
    pairs.sort()
    is_first = np.append(True, pairs[1:] != pairs[:-1]) if len(pairs) else np.zeros(0, np.bool_)
    starts = np.flatnonzero(is_first)
    times = np.diff(np.append(starts, len(pairs))).astype(np.int32)
    pairs = pairs[is_first]
    owner = (pairs >> np.uint64(32)).astype(np.int64)
    n_owners = int(owner[-1]) + 1 if len(owner) else 0
    item = (pairs & np.uint64(0xFFFFFFFF)).astype(np.int32)
    return Contributions(items=Rows.from_entries(owner, item, n_rows=n_owners), times=times)

"""How many people asked each text, and after how many of them it may leave: a threshold with noise of its own.

The first `threshold - 1` people's askings of a text are left out. The noise of a text is as likely z as e^-|z|, for z
from -bound to bound, so one person more or less changes the chance of any number of rows by a factor of e at most, but
for the chance of the lowest threshold.
"""

import hashlib
from collections.abc import Iterable
from itertools import accumulate
from math import exp

import numpy as np

from queryveil.data import Bools, Int64s, UInt64s
from queryveil.kernels import njit

_HALF = np.uint64(32)
_ROOM = 1024
_TOP = 1 << 64


@njit(cache=True, nogil=True)
def _slot(keys: UInt64s, counts: Int64s, text: np.uint64) -> int:
    mask = len(keys) - 1
    slot = np.int64(text >> _HALF) & mask
    while counts[slot] and keys[slot] != text:
        slot = (slot + 1) & mask
    return int(slot)


@njit(cache=True, nogil=True)
def _add(keys: UInt64s, counts: Int64s, texts: UInt64s, by: Int64s, found: Int64s) -> None:
    """Add to the count of each text in turn, and write what it is then."""
    for i in range(len(texts)):
        slot = _slot(keys, counts, texts[i])
        keys[slot] = texts[i]
        counts[slot] += by[i]
        found[i] = counts[slot]


class AskerCounts:
    """How many people asked each text, in the generations of the memory of who asked what: this one and the last."""

    def __init__(self) -> None:
        self.generation = 0
        self._tables = [_empty(_ROOM), _empty(_ROOM)]
        self._n = [0, 0]

    def turn_to(self, generation: int) -> None:
        """Go to a generation; the one before the last is forgotten."""
        for number in range(max(self.generation + 1, generation - 1), generation + 1):
            self._tables[number % 2], self._n[number % 2] = _empty(_ROOM), 0
        self.generation = generation

    def add(self, texts: UInt64s) -> Int64s:
        """Count a further person who asked each text, one after the other, and return how many there are by then."""
        keys, counts = self._tables[(self.generation - 1) % 2]
        before: Int64s = counts[_slots(keys, counts, texts)]
        return before + self._put(self.generation, texts)

    def restore(self, issued: Iterable[tuple[int, UInt64s]]) -> None:
        """Count again what was kept of this generation and the one before."""
        for generation, texts in issued:
            if generation in (self.generation - 1, self.generation):
                self._put(generation, texts)

    def _put(self, generation: int, texts: UInt64s) -> Int64s:
        which = generation % 2
        self._n[which] += len(texts)
        if 2 * self._n[which] > len(self._tables[which][0]):
            roomier = _empty(1 << (4 * self._n[which]).bit_length())
            keys, counts = self._tables[which]
            _add(*roomier, keys[counts > 0], counts[counts > 0], np.empty(int((counts > 0).sum()), np.int64))
            self._tables[which], self._n[which] = roomier, int((counts > 0).sum()) + len(texts)
        found = np.empty(len(texts), np.int64)
        _add(*self._tables[which], texts, np.ones(len(texts), np.int64), found)
        return found


@njit(cache=True, nogil=True)
def _slots(keys: UInt64s, counts: Int64s, texts: UInt64s) -> Int64s:
    found = np.empty(len(texts), np.int64)
    for i in range(len(texts)):
        found[i] = _slot(keys, counts, texts[i])
    return found


def _empty(room: int) -> tuple[UInt64s, Int64s]:
    return np.zeros(room, np.uint64), np.zeros(room, np.int64)


def noise_bound(min_query_users: int) -> int:
    """Return how far a text's own threshold may be from that number: two people must always have asked it.

    >>> [noise_bound(n) for n in (1, 3, 10)]
    [0, 1, 8]
    """
    return max(0, min_query_users - 2)


def may_leave(texts: UInt64s, n_askers: Int64s, *, min_query_users: int, key: bytes) -> Bools:
    """Return which texts were asked by as many people as their own thresholds; the key decides on the noise."""
    bound = noise_bound(min_query_users)
    leaves: Bools = n_askers >= min_query_users + bound
    is_open = ~leaves & (n_askers >= min_query_users - bound)
    distinct, place = np.unique(texts[is_open], return_inverse=True)
    own = np.array([_noise(text, bound=bound, key=key) for text in distinct.tolist()], np.int64)
    leaves[is_open] = n_askers[is_open] >= min_query_users + own[place]
    return leaves


def _noise(text: int, *, bound: int, key: bytes) -> int:
    """Return the noise of a text: the same for the same key, and not to be told from chance without it."""
    weights = [exp(-abs(z)) for z in range(-bound, bound + 1)]
    drawn = hashlib.blake2b(text.to_bytes(8, "little"), key=key, person=b"threshold", digest_size=8).digest()
    part = int.from_bytes(drawn, "little") / _TOP * sum(weights)
    return next((z for z, top in enumerate(accumulate(weights), start=-bound) if part < top), bound)

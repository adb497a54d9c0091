"""How many people asked each text, and after how many of them it may leave: a threshold with noise of its own.

The first `threshold - 1` people's askings of a text are left out; in another window it is another text. The noise of a
text is as likely z as e^-|z|, for z from -bound to bound, so one person more or less changes the chance of any number
of rows by a factor of e at most, but for the chance of the lowest threshold.
"""

import hashlib
from itertools import accumulate
from math import exp

import numpy as np

from queryveil.data import Bools, Int64s, UInt64s
from queryveil.kernels import njit
from queryveil.methods.swap._pool_kernels import slot_of

_ROOM = 1024
_TOP = 1 << 64


@njit(cache=True, nogil=True)
def _add(keys: UInt64s, counts: Int64s, texts: UInt64s, by: Int64s) -> Int64s:
    """Add to the count of each text in turn, and return what it is then."""
    found = np.empty(len(texts), np.int64)
    for i in range(len(texts)):
        slot = slot_of(keys, counts, 0, texts[i])
        keys[0, slot] = texts[i]
        counts[0, slot] += by[i]
        found[i] = counts[0, slot]
    return found


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
        before = _add(*self._tables[(self.generation - 1) % 2], texts, np.zeros(len(texts), np.int64))
        return before + self._put(self.generation, texts)

    def restore(self, generation: int, texts: UInt64s) -> None:
        """Count again what was kept, if it is of this generation or the one before."""
        if generation in (self.generation - 1, self.generation):
            self._put(generation, texts)

    def _put(self, generation: int, texts: UInt64s) -> Int64s:
        which = generation % 2
        self._n[which] += len(texts)
        keys, counts = self._tables[which]
        if 2 * self._n[which] > keys.size:
            is_used = counts > 0
            self._tables[which] = _empty(1 << (4 * self._n[which]).bit_length())
            _add(*self._tables[which], keys[is_used], counts[is_used])
            self._n[which] = int(is_used.sum()) + len(texts)
        return _add(*self._tables[which], texts, np.ones(len(texts), np.int64))


def _empty(room: int) -> tuple[UInt64s, Int64s]:
    return np.zeros((1, room), np.uint64), np.zeros((1, room), np.int64)


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

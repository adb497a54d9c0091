"""The word that a misspelt one was meant to be: one letter more, less, other, or two swapped.

Every word stands in a table under its own hash and under the hash of each form with one letter left out, and so does
the word looked for (symmetric deletion, as SymSpell does it); what meets there is compared letter by letter.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Bytes, Int32s, Int64s, UInt64s
from queryveil.kernels.word_hash import NOT_FOUND, hash_bytes

_PRIME = np.uint64(1099511628211)
_SHIFT = np.uint64(32)
_START = np.uint64(14695981039346656037)


@njit(cache=True, nogil=True)
def _hash_without(data: Bytes, start: int, end: int, skipped: int) -> np.uint64:
    value = _START
    for i in range(start, end):
        if i != skipped:
            value = (value ^ np.uint64(data[i])) * _PRIME
    return value


@njit(cache=True, nogil=True)
def index_deletions(data: Bytes, starts: Int64s, ends: Int64s, size: int) -> tuple[UInt64s, Int32s]:
    """Put the places of words into a table under all their forms; equal hashes stand in several slots."""
    keys = np.zeros(size, np.uint64)
    values = np.full(size, NOT_FOUND, np.int32)
    mask = size - 1
    for word in range(len(starts)):
        # The first round leaves nothing out.
        for skipped in range(starts[word] - 1, ends[word]):
            key = _hash_without(data, starts[word], ends[word], skipped)
            slot = np.int64(key >> _SHIFT) & mask
            while values[slot] != NOT_FOUND:
                slot = (slot + 1) & mask
            keys[slot] = key
            values[slot] = word
    return keys, values


@njit(cache=True, nogil=True)
def are_one_apart(data: Bytes, start: int, end: int, other: Bytes, first: int, last: int) -> bool:
    """Say whether one letter put in, left out or changed, or two neighbours swapped, makes one word the other."""
    n, m = end - start, last - first
    if n - m > 1 or m - n > 1:
        return False
    i = 0
    while i < n and i < m and data[start + i] == other[first + i]:
        i += 1
    j = 0
    while j < n - i and j < m - i and data[end - 1 - j] == other[last - 1 - j]:
        j += 1
    rest, other_rest = n - i - j, m - i - j
    if rest <= 1 and other_rest <= 1:
        return True
    is_swap = rest == 2 and other_rest == 2
    return is_swap and data[start + i] == other[first + i + 1] and data[start + i + 1] == other[first + i]


@njit(cache=True, nogil=True)
def find_nearby(
    data: Bytes,
    start: int,
    end: int,
    keys: UInt64s,
    values: Int32s,
    words: Bytes,
    starts: Int64s,
    ends: Int64s,
) -> int:
    """Give the first word of the table that is one step away and begins with the same letter, -1 where none is."""
    best, mask = NOT_FOUND, len(keys) - 1
    for skipped in range(start - 1, end):
        key = hash_bytes(data, start, end) if skipped < start else _hash_without(data, start, end, skipped)
        slot = np.int64(key >> _SHIFT) & mask
        while values[slot] != NOT_FOUND:
            word = values[slot]
            if keys[slot] == key and (best == NOT_FOUND or word < best):
                is_near = data[start] == words[starts[word]]
                if is_near and are_one_apart(data, start, end, words, starts[word], ends[word]):
                    best = word
            slot = (slot + 1) & mask
    return best

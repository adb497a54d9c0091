"""Words of a run of texts, their hashes, and tables that find a hash.

A text is lower case in UTF-8. A word is a run of ASCII letters, digits, and bytes above ASCII. A unit of several words
has the hash of its words' hashes, so that a corrected word can stand in for the one that was typed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Bools, Bytes, Int32s, Int64s, UInt64s

_START = np.uint64(14695981039346656037)
_PRIME = np.uint64(1099511628211)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_SHIFT = np.uint64(32)
NOT_FOUND = -1


@njit(cache=True, nogil=True)
def hash_bytes(data: Bytes, start: int, end: int) -> np.uint64:
    """Hash a run of bytes (FNV-1a)."""
    value = _START
    for i in range(start, end):
        value = (value ^ np.uint64(data[i])) * _PRIME
    return value


@njit(cache=True, nogil=True)
def join_hashes(phrase: np.uint64, word: np.uint64) -> np.uint64:
    """Give the hash of a phrase that goes on with a word."""
    mixed = (phrase ^ (phrase >> _SHIFT)) * _MIX
    return (mixed ^ word) * _PRIME


@njit(cache=True, nogil=True)
def find_words(data: Bytes, ptr: Int64s, is_letter: Bools) -> tuple[Int64s, Int64s, Int64s, UInt64s]:
    """Give, for each text, where its words begin, where each word starts and ends, and the words' hashes."""
    n_texts = len(ptr) - 1
    word_ptr = np.zeros(n_texts + 1, np.int64)
    most = (len(data) + n_texts) // 2 + 1
    starts, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    hashes = np.empty(most, np.uint64)
    n = 0
    for text in range(n_texts):
        i, last = ptr[text], ptr[text + 1]
        while i < last:
            if not is_letter[data[i]]:
                i += 1
                continue
            value = _START
            starts[n] = i
            while i < last and is_letter[data[i]]:
                value = (value ^ np.uint64(data[i])) * _PRIME
                i += 1
            ends[n] = i
            hashes[n] = value
            n += 1
        word_ptr[text + 1] = n
    return word_ptr, starts[:n], ends[:n], hashes[:n]


@njit(cache=True, nogil=True)
def hash_units(word_ptr: Int64s, hashes: UInt64s) -> UInt64s:
    """Give the hash of each text as one unit of all its words."""
    out = np.zeros(len(word_ptr) - 1, np.uint64)
    for text in range(len(out)):
        first, last = word_ptr[text], word_ptr[text + 1]
        if last > first:
            value = hashes[first]
            for i in range(first + 1, last):
                value = join_hashes(value, hashes[i])
            out[text] = value
    return out


def n_slots(n: int) -> int:
    """Give a size for a table of n hashes, a power of two that leaves half of it free or more."""
    return 1 << max(4, (2 * n).bit_length())


@njit(cache=True, nogil=True)
def place_hashes(hashes: UInt64s, size: int) -> tuple[UInt64s, Int32s]:
    """Put the places of hashes into a table of a size that is a power of two; of equal hashes the first stays."""
    keys = np.zeros(size, np.uint64)
    values = np.full(size, NOT_FOUND, np.int32)
    mask = size - 1
    for place in range(len(hashes)):
        key = hashes[place]
        slot = np.int64(key >> _SHIFT) & mask
        while values[slot] != NOT_FOUND and keys[slot] != key:
            slot = (slot + 1) & mask
        if values[slot] == NOT_FOUND:
            keys[slot] = key
            values[slot] = place
    return keys, values


@njit(cache=True, nogil=True)
def find_hash(keys: UInt64s, values: Int32s, key: np.uint64) -> int:
    """Give the place of a hash, -1 where it has none."""
    mask = len(keys) - 1
    slot = np.int64(key >> _SHIFT) & mask
    while values[slot] != NOT_FOUND:
        if keys[slot] == key:
            return int(values[slot])
        slot = (slot + 1) & mask
    return NOT_FOUND


@njit(cache=True, nogil=True)
def find_hashes(keys: UInt64s, values: Int32s, wanted: UInt64s) -> Int32s:
    """Give the place of every hash."""
    out = np.empty(len(wanted), np.int32)
    for i in range(len(wanted)):
        out[i] = find_hash(keys, values, wanted[i])
    return out

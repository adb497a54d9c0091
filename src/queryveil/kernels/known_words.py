"""What the words of texts stand for: themselves, their singular, a recommendation, two words run together, or a word
one letter away.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Bytes, Int8s, Int32s, Int64s, UInt64s
from queryveil.kernels.nearby_words import find_nearby
from queryveil.kernels.word_hash import NOT_FOUND, find_hash, hash_bytes

TYPED, SINGULAR, RECOMMENDED, NEARBY, SPLIT, UNKNOWN, NO_UNIT = 0, 1, 2, 3, 4, 5, 6
NEVER_A_UNIT = -2
_LETTER_A, _LETTER_E, _LETTER_I, _LETTER_S, _LETTER_Y, _LETTER_Z = 97, 101, 105, 115, 121, 122
# Nobody means another word by a longer run of letters, and the search for it takes the square of its length.
_MIN_NEARBY, _MAX_NEARBY = 5, 100
_MIN_PART = 3
_PRIME = np.uint64(1099511628211)


class Vocabulary(NamedTuple):
    """Entries, which are words and units of several words, by hash.

    keys, values   the table that finds an entry's place
    hashes         of each entry
    unit           the unit that an entry is, -1 for a word that is none, -2 for a stop word
    longest        how many words the longest unit that begins with this word has
    meant          the entry that is recommended instead, -1 for none
    counts         how often it is referred to
    """

    keys: UInt64s
    values: Int32s
    hashes: UInt64s
    unit: Int32s
    longest: Int32s
    meant: Int32s
    counts: Int64s


class Nearby(NamedTuple):
    """The words that a misspelt one may be meant for, the most frequent first, and the entry of each."""

    keys: UInt64s
    values: Int32s
    words: Bytes
    starts: Int64s
    ends: Int64s
    entry: Int32s


@njit(cache=True, nogil=True)
def _find_ending(data: Bytes, start: int, end: int, letter: int, vocabulary: Vocabulary) -> int:
    """Look up a run of bytes with one letter (0: none) behind it."""
    value = hash_bytes(data, start, end)
    if letter:
        value = (value ^ np.uint64(letter)) * _PRIME
    return find_hash(vocabulary.keys, vocabulary.values, value)


@njit(cache=True, nogil=True)
def find_singular(data: Bytes, start: int, end: int, vocabulary: Vocabulary) -> int:
    """Give the entry of a plural's singular (cats, boxes, berries), one that is a unit before others; -1 for none."""
    n = end - start
    if n <= 3 or data[end - 1] != _LETTER_S or data[end - 2] == _LETTER_S:
        return NOT_FOUND
    known = NOT_FOUND
    has_e = data[end - 2] == _LETTER_E
    for form in range(3):
        if form == 0:
            entry = _find_ending(data, start, end - 1, 0, vocabulary)
        elif form == 1 and has_e:
            entry = _find_ending(data, start, end - 2, 0, vocabulary)
        elif form == 2 and has_e and data[end - 3] == _LETTER_I and n > 4:
            entry = _find_ending(data, start, end - 3, _LETTER_Y, vocabulary)
        else:
            break
        if entry != NOT_FOUND and vocabulary.unit[entry] >= 0:
            return entry
        if known == NOT_FOUND:
            known = entry
    return known


@njit(cache=True, nogil=True)
def _is_plain(data: Bytes, start: int, end: int) -> bool:
    for i in range(start, end):
        if data[i] < _LETTER_A or data[i] > _LETTER_Z:
            return False
    return True


@njit(cache=True, nogil=True)
def _split(data: Bytes, start: int, end: int, vocabulary: Vocabulary, min_count: int) -> tuple[int, int]:
    """Give the two units that were run together, the rarer of them as frequent as can be; -1, -1 where none were."""
    best, first, second = min_count, NOT_FOUND, NOT_FOUND
    for middle in range(start + _MIN_PART, end - _MIN_PART + 1):
        left = _find_ending(data, start, middle, 0, vocabulary)
        if left == NOT_FOUND or vocabulary.counts[left] < best:
            continue
        right = _find_ending(data, middle, end, 0, vocabulary)
        if right == NOT_FOUND or vocabulary.unit[right] < 0:
            right = find_singular(data, middle, end, vocabulary)
        if right != NOT_FOUND and vocabulary.unit[right] >= 0 and vocabulary.counts[right] >= best:
            best = min(vocabulary.counts[left], vocabulary.counts[right])
            first, second = left, right
    return first, second


@njit(cache=True, nogil=True)
def resolve(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    hashes: UInt64s,
    vocabulary: Vocabulary,
    nearby: Nearby,
    min_split_count: int,
) -> tuple[Int32s, Int32s, Int32s, Int8s]:
    """Give for each word its entry, the entry of its singular, the second part if it was split, and how it was read.

    The entry is that of the word as typed or as recommended; each is -1 where there is none.
    """
    n = len(starts)
    entry, singular = np.full(n, NOT_FOUND, np.int32), np.full(n, NOT_FOUND, np.int32)
    second, how = np.full(n, NOT_FOUND, np.int32), np.zeros(n, np.int8)
    for i in range(n):
        start, end = starts[i], ends[i]
        at = find_hash(vocabulary.keys, vocabulary.values, hashes[i])
        singular[i] = find_singular(data, start, end, vocabulary)
        if at != NOT_FOUND:
            entry[i] = at
            if vocabulary.unit[at] < 0 and vocabulary.meant[at] >= 0:
                entry[i], how[i] = vocabulary.meant[at], RECOMMENDED
            elif vocabulary.unit[at] < 0 and singular[i] != NOT_FOUND:
                how[i] = SINGULAR
            continue
        if singular[i] != NOT_FOUND:
            entry[i], how[i] = singular[i], SINGULAR
            continue
        how[i] = UNKNOWN
        if not _MIN_NEARBY <= end - start <= _MAX_NEARBY or not _is_plain(data, start, end):
            continue
        word = find_nearby(data, start, end, nearby.keys, nearby.values, nearby.words, nearby.starts, nearby.ends)
        if word != NOT_FOUND:
            entry[i], how[i] = nearby.entry[word], NEARBY
            continue
        left, right = _split(data, start, end, vocabulary, min_split_count)
        if left != NOT_FOUND:
            entry[i], second[i], how[i] = left, right, SPLIT
    return entry, singular, second, how

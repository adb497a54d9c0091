"""What the words of texts stand for: themselves, their singular, a recommendation, two words run together, or a word
one letter away.

A text is lower case in UTF-8. A word is a run of ASCII letters, digits, and bytes above ASCII. A unit of several words
has the hash of its words' hashes, so that a corrected word can stand in for the one that was typed.

Every word stands in a table under its own hash and under the hash of each form with one letter left out, and so does
the word looked for (symmetric deletion, as SymSpell does it); what meets there is compared letter by letter.
"""

from typing import NamedTuple

import numpy as np

from queryveil.data import Bytes, Int8s, Int32s, Int64s, UInt64s
from queryveil.kernels import njit
from queryveil.text._hash_tables import NOT_FOUND, PRIME, SHIFT, START, ByteWords, empty_table, find_hash

_MIX = np.uint64(0xFF51AFD7ED558CCD)
TYPED, SINGULAR, RECOMMENDED, NEARBY, SPLIT, UNKNOWN, NO_UNIT = 0, 1, 2, 3, 4, 5, 6
NEVER_A_UNIT = -2
_LETTER_A, _LETTER_E, _LETTER_I, _LETTER_S, _LETTER_Y, _LETTER_Z = 97, 101, 105, 115, 121, 122
# Nobody means another word by a longer run of letters, and the search for it takes the square of its length.
_MIN_NEARBY, _MAX_NEARBY = 5, 100
_MIN_PART = 3


class Vocabulary(NamedTuple):
    """Entries, which are words and units of several words: their hashes, and the table that finds their places."""

    keys: UInt64s
    values: Int32s
    hashes: UInt64s
    unit: Int32s  # that an entry is, -1 for a word that is none, -2 for a stop word
    longest: Int32s  # how many words the longest unit that begins with this word has
    meant: Int32s  # the entry that is recommended instead, -1 for none
    counts: Int64s  # how often it is referred to


class Nearby(NamedTuple):
    """The words that a misspelt one may be meant for, the most frequent first, and the entry of each."""

    keys: UInt64s
    values: Int32s
    words: ByteWords
    entry: Int32s


class Reading(NamedTuple):
    """What words stand for: their entry, that of their singular, the second part if one was split, and how it was read.

    The entry is that of the word as typed or as recommended; each is -1 where there is none.
    """

    entry: Int32s
    singular: Int32s
    second: Int32s
    how: Int8s


@njit(cache=True, nogil=True)
def _hash_without(data: Bytes, start: int, end: int, skipped: int) -> np.uint64:
    """Hash a run of bytes but for the one at `skipped`, which may lie outside."""
    value = START
    for i in range(start, end):
        if i != skipped:
            value = (value ^ np.uint64(data[i])) * PRIME
    return value


@njit(cache=True, nogil=True)
def join_hashes(phrase: np.uint64, word: np.uint64) -> np.uint64:
    """Return the hash of a phrase that goes on with a word."""
    mixed = (phrase ^ (phrase >> SHIFT)) * _MIX
    return (mixed ^ word) * PRIME


@njit(cache=True, nogil=True)
def hash_units(words: ByteWords) -> UInt64s:
    """Return the hash of each text as one unit of all its words."""
    word_ptr, hashes = words.ptr, words.hashes
    out = np.zeros(len(word_ptr) - 1, np.uint64)
    for text in range(len(out)):
        first = word_ptr[text]
        for i in range(first, word_ptr[text + 1]):
            out[text] = hashes[i] if i == first else join_hashes(out[text], hashes[i])
    return out


@njit(cache=True, nogil=True)
def index_deletions(words: ByteWords) -> tuple[UInt64s, Int32s]:
    """Return a table of words under all their forms; equal hashes stand in several slots."""
    data, starts, ends = words.data, words.starts, words.ends
    keys, values = empty_table((ends - starts + 1).sum())
    mask = len(keys) - 1
    for word in range(len(starts)):
        # The first round leaves nothing out.
        for skipped in range(starts[word] - 1, ends[word]):
            key = _hash_without(data, starts[word], ends[word], skipped)
            slot = np.int64(key >> SHIFT) & mask
            while values[slot] != NOT_FOUND:
                slot = (slot + 1) & mask
            keys[slot] = key
            values[slot] = word
    return keys, values


@njit(cache=True, nogil=True)
def are_one_apart(data: Bytes, start: int, end: int, other: Bytes, first: int, last: int) -> bool:
    """Return whether one letter put in, left out or changed, or two neighbours swapped, makes one word the other."""
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
def find_nearby(data: Bytes, start: int, end: int, nearby: Nearby) -> int:
    """Return the first word of the table that is one step away and begins with the same letter, -1 where none is."""
    keys, values, (known, _, starts, ends, _), _ = nearby
    best, mask = NOT_FOUND, len(keys) - 1
    # The first round leaves nothing out.
    for skipped in range(start - 1, end):
        key = _hash_without(data, start, end, skipped)
        slot = np.int64(key >> SHIFT) & mask
        while values[slot] != NOT_FOUND:
            word = values[slot]
            if keys[slot] == key and (best == NOT_FOUND or word < best):
                is_near = data[start] == known[starts[word]]
                if is_near and are_one_apart(data, start, end, known, starts[word], ends[word]):
                    best = word
            slot = (slot + 1) & mask
    return best


@njit(cache=True, nogil=True)
def _find_ending(data: Bytes, start: int, end: int, letter: int, vocabulary: Vocabulary) -> int:
    """Look up a run of bytes with one letter (0: none) behind it."""
    value = _hash_without(data, start, end, -1)
    if letter:
        value = (value ^ np.uint64(letter)) * PRIME
    return find_hash(vocabulary.keys, vocabulary.values, value)


@njit(cache=True, nogil=True)
def find_singular(data: Bytes, start: int, end: int, vocabulary: Vocabulary) -> int:
    """Return the entry of a plural's singular (cats, boxes, berries), one that is a unit before others; -1 for none."""
    n = end - start
    if n <= 3 or data[end - 1] != _LETTER_S or data[end - 2] == _LETTER_S:
        return NOT_FOUND
    known, n_endings = NOT_FOUND, 1
    if data[end - 2] == _LETTER_E:
        n_endings = 3 if data[end - 3] == _LETTER_I and n > 4 else 2
    for length in range(1, n_endings + 1):
        # Without s, without es, with y in place of ies.
        entry = _find_ending(data, start, end - length, _LETTER_Y if length == 3 else 0, vocabulary)
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
    """Return the two units that were run together, the rarer of them as frequent as can be; -1, -1 where none were."""
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
def resolve(words: ByteWords, vocabulary: Vocabulary, nearby: Nearby, min_split_count: int) -> Reading:
    """Return what each word stands for."""
    data, _, starts, ends, hashes = words
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
        word = find_nearby(data, start, end, nearby)
        if word != NOT_FOUND:
            entry[i], how[i] = nearby.entry[word], NEARBY
            continue
        left, right = _split(data, start, end, vocabulary, min_split_count)
        if left != NOT_FOUND:
            entry[i], second[i], how[i] = left, right, SPLIT
    return Reading(entry, singular, second, how)

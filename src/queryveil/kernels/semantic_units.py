"""Words to semantic units, the longest first."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int8s, Int32s, Int64s, UInt64s
from queryveil.kernels.known_words import NEVER_A_UNIT, NO_UNIT, RECOMMENDED, SINGULAR, SPLIT, UNKNOWN, Vocabulary
from queryveil.kernels.word_hash import NOT_FOUND, find_hash, join_hashes


@njit(cache=True, nogil=True)
def _longest_unit(
    i: int,
    last: int,
    as_read: UInt64s,
    entry: Int32s,
    singular: Int32s,
    how: Int8s,
    vocabulary: Vocabulary,
    reads_corrected: bool,
) -> tuple[int, int]:
    """Give the longest unit of two or more words that begins at a word, and how many words it has; -1, 1 for none."""
    found, n_words = NOT_FOUND, 1
    if how[i] >= RECOMMENDED and not reads_corrected:
        return found, n_words
    phrase = as_read[i]
    for n in range(2, min(vocabulary.longest[entry[i]], last - i) + 1):
        j = i + n - 1
        if how[j] >= RECOMMENDED and not reads_corrected:
            break
        whole = join_hashes(phrase, as_read[j])
        at = find_hash(vocabulary.keys, vocabulary.values, whole)
        if at == NOT_FOUND and singular[j] != NOT_FOUND:
            at = find_hash(vocabulary.keys, vocabulary.values, join_hashes(phrase, vocabulary.hashes[singular[j]]))
        if at != NOT_FOUND and vocabulary.unit[at] < 0:
            at = vocabulary.meant[at]
        if at != NOT_FOUND and vocabulary.unit[at] >= 0:
            found, n_words = vocabulary.unit[at], n
        phrase = whole
    return found, n_words


@njit(cache=True, nogil=True)
def match_units(
    word_ptr: Int64s,
    hashes: UInt64s,
    entry: Int32s,
    singular: Int32s,
    second: Int32s,
    how: Int8s,
    vocabulary: Vocabulary,
    reads_corrected: bool,
) -> tuple[Int64s, Int32s, Int64s, Int8s, Int8s]:
    """Give, for each text, where its units begin, and each unit, its first word, its number of words, how it was read.

    A word that is no unit is -1, read as unknown or as no unit; stop words are left out. With `reads_corrected`
    units of several words are found among corrected words, otherwise only among words as typed.
    """
    n_words = len(hashes)
    as_read = hashes.copy()
    for i in range(n_words):
        if how[i] >= RECOMMENDED and how[i] < SPLIT:
            as_read[i] = vocabulary.hashes[entry[i]]
    ptr = np.zeros(len(word_ptr), np.int64)
    unit, first = np.empty(2 * n_words, np.int32), np.empty(2 * n_words, np.int64)
    length, read = np.ones(2 * n_words, np.int8), np.zeros(2 * n_words, np.int8)
    n = 0
    for text in range(len(word_ptr) - 1):
        i, last = word_ptr[text], word_ptr[text + 1]
        while i < last:
            found, n_taken = NOT_FOUND, 1
            if how[i] < SPLIT and vocabulary.longest[entry[i]] > 1:
                found, n_taken = _longest_unit(i, last, as_read, entry, singular, how, vocabulary, reads_corrected)
            if found == NOT_FOUND and how[i] != UNKNOWN:
                at = singular[i] if how[i] == SINGULAR else entry[i]
                found = vocabulary.unit[at]
            if found != NEVER_A_UNIT:
                is_none = found == NOT_FOUND and how[i] != UNKNOWN
                unit[n], first[n], length[n], read[n] = found, i, n_taken, NO_UNIT if is_none else how[i]
                n += 1
            if how[i] == SPLIT:
                at = second[i]
                if vocabulary.unit[at] >= 0:
                    unit[n], first[n], length[n], read[n] = vocabulary.unit[at], i, 1, SPLIT
                    n += 1
            i += n_taken
        ptr[text + 1] = n
    return ptr, unit[:n], first[:n], length[:n], read[:n]

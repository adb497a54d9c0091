"""Words to semantic units, the longest first."""

from typing import NamedTuple

import numpy as np

from queryveil.data import Bytes, Float32s, Int8s, Int32s, Int64s, UInt64s
from queryveil.kernels import njit
from queryveil.text._hash_tables import NOT_FOUND, PRIME, START, ByteWords, find_hash
from queryveil.text.classifier import _word_kernels
from queryveil.text.classifier._word_kernels import SPLIT, Reading, Vocabulary

NO_CATEGORY = -1
SHORTEST_GRAM, LONGEST_GRAM = 3, 5
GRAM_FOLD = np.uint64(29)
BLANK = np.uint64(32)
_LAST_DIGIT = 57
# How much evidence counts, by how a unit was read: as typed, by its singular, recommended, nearby, split, unknown. The
# further from what was typed, the less.
_BY_READING = np.array([1.0, 1.0, 0.9, 0.6, 0.8, 0.0], np.float32)
# What each further word of a unit adds, and what being the last unit does: English puts what it is about at the end.
_FURTHER_WORD, _LAST_UNIT = 0.75, 0.1
# How much the letters of unknown words count.
_SHAPE = 0.3


class Units(NamedTuple):
    """The units of texts: those of text t are `ptr[t]` to `ptr[t + 1]`, word w is `data[starts[w]:ends[w]]`.

    Of each: the unit (-1 for a word that is none), its first word, its number of words and how it was read.
    """

    ptr: Int64s
    unit: Int32s
    first: Int64s
    length: Int8s
    how: Int8s
    data: Bytes
    starts: Int64s
    ends: Int64s


@njit(cache=True, nogil=True)
def _longest_unit(
    i: int, last: int, as_read: UInt64s, reading: Reading, vocabulary: Vocabulary, reads_corrected: bool
) -> tuple[int, int]:
    """Return the longest unit of two or more words that begins at a word, and how many words it has; -1, 1 for none."""
    entry, singular, _, how = reading
    found, n_words = NOT_FOUND, 1
    if how[i] >= _word_kernels.RECOMMENDED and not reads_corrected:
        return found, n_words
    phrase = as_read[i]
    for n in range(2, min(vocabulary.longest[entry[i]], last - i) + 1):
        j = i + n - 1
        if how[j] >= _word_kernels.RECOMMENDED and not reads_corrected:
            break
        whole = _word_kernels.join_hashes(phrase, as_read[j])
        at = find_hash(vocabulary.keys, vocabulary.values, whole)
        if at == NOT_FOUND and singular[j] != NOT_FOUND:
            whole_singular = _word_kernels.join_hashes(phrase, vocabulary.hashes[singular[j]])
            at = find_hash(vocabulary.keys, vocabulary.values, whole_singular)
        if at != NOT_FOUND and vocabulary.unit[at] < 0:
            at = vocabulary.meant[at]
        if at != NOT_FOUND and vocabulary.unit[at] >= 0:
            found, n_words = vocabulary.unit[at], n
        phrase = whole
    return found, n_words


@njit(cache=True, nogil=True)
def match_units(words: ByteWords, reading: Reading, vocabulary: Vocabulary, reads_corrected: bool) -> Units:
    """Return the units of the texts, -1 for a word that is none; stop words are left out.

    With `reads_corrected` units of several words are found among corrected words, otherwise only among words as typed.
    """
    entry, singular, second, how = reading
    word_ptr, n_words = words.ptr, len(words.hashes)
    as_read = words.hashes.copy()
    for i in range(n_words):
        if how[i] >= _word_kernels.RECOMMENDED and how[i] < SPLIT:
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
                found, n_taken = _longest_unit(i, last, as_read, reading, vocabulary, reads_corrected)
            if found == NOT_FOUND and how[i] != _word_kernels.UNKNOWN:
                at = singular[i] if how[i] == _word_kernels.SINGULAR else entry[i]
                found = vocabulary.unit[at]
            if found != _word_kernels.NEVER_A_UNIT:
                is_none = found == NOT_FOUND and how[i] != _word_kernels.UNKNOWN
                unit[n], first[n], length[n], read[n] = found, i, n_taken, _word_kernels.NO_UNIT if is_none else how[i]
                n += 1
            if how[i] == SPLIT:
                at = second[i]
                if vocabulary.unit[at] >= 0:
                    unit[n], first[n], length[n], read[n] = vocabulary.unit[at], i, 1, SPLIT
                    n += 1
            i += n_taken
        ptr[text + 1] = n
    return Units(ptr, unit[:n], first[:n], length[:n], read[:n], words.data, words.starts, words.ends)


@njit(cache=True, nogil=True)
def add_shape(data: Bytes, start: int, end: int, shapes: Float32s, scores: Float32s, only: int) -> bool:
    """Add what the runs of 3 to 5 letters of a word say on average of one category or all (-1); False if nothing."""
    # Bare numbers and single letters say nothing; the ends of a word are in its runs.
    n_letters = 0
    for i in range(start, end):
        n_letters += data[i] > _LAST_DIGIT
    if n_letters < 2:
        return False
    n_grams = 0
    for length in range(SHORTEST_GRAM, LONGEST_GRAM + 1):
        n_grams += max(end - start + 3 - length, 0)
    part = np.float32(_SHAPE / n_grams)
    first, last = (0, shapes.shape[1]) if only < 0 else (only, only + 1)
    mask = np.uint64(len(shapes) - 1)
    for i in range(start - 1, end - 1):
        value = START
        for j in range(i, min(i + LONGEST_GRAM, end + 1)):
            letter = BLANK if j < start or j >= end else np.uint64(data[j])
            value = (value ^ letter) * PRIME
            if j - i + 1 >= SHORTEST_GRAM:
                bucket = (value ^ (value >> GRAM_FOLD)) & mask
                for c in range(first, last):
                    scores[c] += part * shapes[bucket, c]
    return True


@njit(cache=True, nogil=True)
def weigh_all(units: Units, weights: Float32s, shapes: Float32s) -> tuple[Int8s, Int64s]:
    """Return the category that all units of a text speak for, and the unit that speaks loudest for it; -1 for none."""
    n_texts = len(units.ptr) - 1
    category = np.full(n_texts, NO_CATEGORY, np.int8)
    main = np.full(n_texts, -1, np.int64)
    scores = np.empty(weights.shape[1], np.float32)
    for text in range(n_texts):
        first, last = units.ptr[text], units.ptr[text + 1]
        scores[:] = 0
        has_evidence, hears_all = False, False
        # Verbs and the like are heard only where there is nothing else.
        for hears_all in (False, True):
            for i in range(first, last):
                has_evidence |= _speak(units, text, i, hears_all, weights, shapes, scores, -1)
            if has_evidence:
                break
        if not has_evidence:
            continue
        best = int(np.argmax(scores))
        category[text] = best
        loudest = np.float32(-1e9)
        for i in range(first, last):
            scores[best] = 0
            if _speak(units, text, i, hears_all, weights, shapes, scores, best) and scores[best] > loudest:
                loudest, main[text] = scores[best], i
    return category, main


@njit(cache=True, nogil=True)
def _speak(
    units: Units, text: int, i: int, hears_all: bool, weights: Float32s, shapes: Float32s, scores: Float32s, only: int
) -> bool:
    """Add what a unit of a text says about one category or all (-1) to the scores; False if that is nothing."""
    unit = units.unit[i]
    if unit < 0:
        if units.how[i] == _word_kernels.NO_UNIT and not hears_all:
            return False
        word = units.first[i]
        return add_shape(units.data, units.starts[word], units.ends[word], shapes, scores, only)
    worth = _BY_READING[units.how[i]] * (1 + _FURTHER_WORD * (units.length[i] - 1))
    if units.ptr[text] < i == units.ptr[text + 1] - 1:
        worth *= 1 + _LAST_UNIT
    first, last = (0, len(scores)) if only < 0 else (only, only + 1)
    for c in range(first, last):
        scores[c] += np.float32(worth) * weights[unit, c]
    return True


@njit(cache=True, nogil=True)
def take_rarest(units: Units, counts: Int64s, own_category: Int8s) -> tuple[Int8s, Int64s]:
    """Return the category of the unit with the fewest references, and that unit; -1 for none."""
    n_texts = len(units.ptr) - 1
    category = np.full(n_texts, NO_CATEGORY, np.int8)
    main = np.full(n_texts, -1, np.int64)
    for text in range(n_texts):
        # Paper: algorithm 1, lines 3 to 11.
        fewest = np.int64(-1)
        for i in range(units.ptr[text], units.ptr[text + 1]):
            unit = units.unit[i]
            if unit >= 0 and (fewest < 0 or counts[unit] < fewest):
                fewest, main[text] = counts[unit], i
        if main[text] >= 0:
            category[text] = own_category[units.unit[main[text]]]
    return category, main

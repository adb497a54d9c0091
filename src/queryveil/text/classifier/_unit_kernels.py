"""Words to semantic units, the longest first."""

from typing import NamedTuple

import numpy as np

from queryveil.data import Bytes, Float32s, Int8s, Int32s, Int64s, UInt64s
from queryveil.kernels import njit
from queryveil.text.classifier import _word_kernels
from queryveil.text.classifier._word_kernels import NOT_FOUND, SPLIT, ByteWords, Reading, Vocabulary

NO_CATEGORY = -1
SHORTEST_GRAM, LONGEST_GRAM = 3, 5
GRAM_START = np.uint64(14695981039346656037)
GRAM_PRIME = np.uint64(1099511628211)
GRAM_FOLD = np.uint64(29)
BLANK = np.uint64(32)
_LAST_DIGIT = 57


class Units(NamedTuple):
    """The units of texts: those of text t are `ptr[t]` to `ptr[t + 1]`.

    Of each: the unit (-1 for a word that is none), its first word, its number of words and how it was read. Word w is
    `data[starts[w]:ends[w]]`.
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
        at = _word_kernels.find_hash(vocabulary.keys, vocabulary.values, whole)
        if at == NOT_FOUND and singular[j] != NOT_FOUND:
            whole_singular = _word_kernels.join_hashes(phrase, vocabulary.hashes[singular[j]])
            at = _word_kernels.find_hash(vocabulary.keys, vocabulary.values, whole_singular)
        if at != NOT_FOUND and vocabulary.unit[at] < 0:
            at = vocabulary.meant[at]
        if at != NOT_FOUND and vocabulary.unit[at] >= 0:
            found, n_words = vocabulary.unit[at], n
        phrase = whole
    return found, n_words


@njit(cache=True, nogil=True)
def match_units(words: ByteWords, reading: Reading, vocabulary: Vocabulary, reads_corrected: bool) -> Units:
    """Return the units of the texts.

    A word that is no unit is -1, read as unknown or as no unit; stop words are left out. With `reads_corrected`
    units of several words are found among corrected words, otherwise only among words as typed.
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


class Trust(NamedTuple):
    """How much evidence counts.

    by_reading     by how a unit was read: as typed, by its singular, recommended, nearby, split, unknown
    further_word   what each further word of a unit adds
    last           what being the last unit adds: English puts what it is about at the end
    shape          for what the letters of unknown words say
    """

    by_reading: Float32s
    further_word: float
    last: float
    shape: float


class Evidence(NamedTuple):
    """What units say about each category, what runs of letters do, and how much that counts."""

    weights: Float32s
    shapes: Float32s
    trust: Trust


@njit(cache=True, nogil=True)
def add_shape(data: Bytes, start: int, end: int, shapes: Float32s, worth: float, scores: Float32s, only: int) -> bool:
    """Add what the runs of 3 to 5 letters of a word, its ends among them, say on average, of one category or all (-1).

    False for bare numbers and single letters, which say nothing.
    """
    n_letters = 0
    for i in range(start, end):
        n_letters += data[i] > _LAST_DIGIT
    if n_letters < 2:
        return False
    n_grams = 0
    for length in range(SHORTEST_GRAM, LONGEST_GRAM + 1):
        n_grams += max(end - start + 3 - length, 0)
    part = np.float32(worth / n_grams)
    first, last = (0, shapes.shape[1]) if only < 0 else (only, only + 1)
    mask = np.uint64(len(shapes) - 1)
    for i in range(start - 1, end - 1):
        value = GRAM_START
        for j in range(i, min(i + LONGEST_GRAM, end + 1)):
            letter = BLANK if j < start or j >= end else np.uint64(data[j])
            value = (value ^ letter) * GRAM_PRIME
            if j - i + 1 >= SHORTEST_GRAM:
                bucket = (value ^ (value >> GRAM_FOLD)) & mask
                for c in range(first, last):
                    scores[c] += part * shapes[bucket, c]
    return True


@njit(cache=True, nogil=True)
def weigh_all(units: Units, evidence: Evidence) -> tuple[Int8s, Int64s]:
    """Return the category that all units of a text speak for, and the unit that speaks loudest for it; -1 for none."""
    # What is called for each unit takes arrays: a tuple of them would be counted anew in each call.
    weights, shapes, trust = evidence
    n_texts, n_categories = len(units.ptr) - 1, weights.shape[1]
    category = np.full(n_texts, NO_CATEGORY, np.int8)
    main = np.full(n_texts, -1, np.int64)
    scores = np.empty(n_categories, np.float32)
    for text in range(n_texts):
        first, last = units.ptr[text], units.ptr[text + 1]
        scores[:] = 0
        # Verbs and the like are heard only where there is nothing else.
        hears_all = False
        if not _hear(units, first, last, hears_all, weights, shapes, trust, scores):
            hears_all = True
            if not _hear(units, first, last, hears_all, weights, shapes, trust, scores):
                continue
        best = 0
        for c in range(1, n_categories):
            if scores[c] > scores[best]:
                best = c
        category[text] = best
        loudest = np.float32(-1e9)
        for i in range(first, last):
            scores[best] = 0
            is_last = i == last - 1 and last - first > 1
            if _speak(units, i, is_last, hears_all, weights, shapes, trust, scores, best) and scores[best] > loudest:
                loudest, main[text] = scores[best], i
    return category, main


@njit(cache=True, nogil=True)
def _hear(
    units: Units, first: int, last: int, hears_all: bool,
    weights: Float32s, shapes: Float32s, trust: Trust, scores: Float32s,
) -> bool:  # fmt: skip
    """Add what the units of a text say to the scores; False if that is nothing."""
    has_evidence = False
    for i in range(first, last):
        is_last = i == last - 1 and last - first > 1
        if _speak(units, i, is_last, hears_all, weights, shapes, trust, scores, -1):
            has_evidence = True
    return has_evidence


@njit(cache=True, nogil=True)
def _speak(
    units: Units, i: int, is_last: bool, hears_all: bool,
    weights: Float32s, shapes: Float32s, trust: Trust, scores: Float32s, only: int,
) -> bool:  # fmt: skip
    """Add what a unit says about one category or all (-1) to the scores; False if that is nothing."""
    unit = units.unit[i]
    if unit < 0:
        if units.how[i] == _word_kernels.NO_UNIT and not hears_all:
            return False
        word = units.first[i]
        return add_shape(units.data, units.starts[word], units.ends[word], shapes, trust.shape, scores, only)
    worth = trust.by_reading[units.how[i]] * (1 + trust.further_word * (units.length[i] - 1))
    if is_last:
        worth *= 1 + trust.last
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

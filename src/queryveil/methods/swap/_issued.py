"""A filter of (user, query) pairs that were issued, so that nobody is assigned a query of their own.

A block has 512 bits, a line of the cache, and a hash sets one bit in each of its eight words. What was put in is always
found; what was not is found by mistake in a few cases of a thousand at `BITS` bits for each hash.
"""

from collections.abc import Iterable

import numpy as np
import polars as pl

from queryveil.data import Bools, Bytes, UInt64s
from queryveil.kernels import njit
from queryveil.text.tokens import IS_WORD_BYTE, LOWER_BYTES, join_terms, text_bytes

BITS = 12
WORDS = 8
_HALF = np.uint64(32)
_SHIFT = np.uint64(29)
_ONE = np.uint64(1)
_SIX_BITS = np.uint64(63)
_FIRST_BITS = np.uint64(16)
_STEP = np.uint64(6)
_BLANK = np.uint64(32)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)


@njit(cache=True, nogil=True)
def _mix(value: np.uint64, key: np.uint64) -> np.uint64:
    value = (value ^ (value >> _HALF)) * key
    value = (value ^ (value >> _SHIFT)) * _MIX
    return value ^ (value >> _HALF)


@njit(cache=True, nogil=True)
def hash_texts(data: Bytes, ptr: np.ndarray, fold: Bytes, key: UInt64s) -> UInt64s:
    """Hash the texts `data[ptr[t]:ptr[t + 1]]` by their folded bytes; bytes that fold to 0 count as one blank.

    `key` is two secret numbers, the second one odd. Blanks at the ends do not count.
    """
    out = np.empty(len(ptr) - 1, np.uint64)
    for text in range(len(out)):
        state, word = key[0], np.uint64(0)
        n = np.uint64(0)
        is_gap = False
        for i in range(ptr[text], ptr[text + 1]):
            letter = np.uint64(fold[data[i]])
            if letter == 0:
                is_gap = bool(n > 0)
                continue
            for is_letter in range(not is_gap, 2):
                word |= (letter if is_letter else _BLANK) << ((n & np.uint64(7)) << np.uint64(3))
                n += _ONE
                if n & np.uint64(7) == 0:
                    state = _mix(state ^ word, key[1])
                    word = np.uint64(0)
            is_gap = False
        state = _mix(state ^ word, key[1])
        out[text] = _mix(state ^ n, key[1])
    return out


@njit(cache=True, nogil=True, inline="always")
def pair_hash(user: np.uint64, text: np.uint64) -> np.uint64:
    """Return the hash of a user and a text from theirs."""
    value = (user ^ (text >> _HALF) ^ (text << _HALF)) * _SPREAD
    value = ((value ^ (value >> _HALF)) + text) * _MIX
    return value ^ (value >> _HALF)


@njit(cache=True, nogil=True)
def pair_hashes(users: UInt64s, texts: UInt64s) -> UInt64s:
    """Return the hashes of pairs."""
    out = np.empty(len(users), np.uint64)
    for i in range(len(users)):
        out[i] = pair_hash(users[i], texts[i])
    return out


def empty_filter(n_hashes: int) -> UInt64s:
    """Return a filter for so many hashes; it takes more of them too, and is then wrong more often."""
    n_blocks = max(1024, -(-n_hashes * BITS // (64 * WORDS)))
    words = np.zeros((n_blocks + 1) * WORDS, np.uint64)
    # A block that lies across two lines of the cache costs twice.
    first = -(words.ctypes.data // 8) % WORDS
    return words[first : first + n_blocks * WORDS]


@njit(cache=True, nogil=True, inline="always")
def _block(key: np.uint64, n_words: int) -> int:
    n_blocks = np.uint64(n_words // WORDS)
    return np.int64(((key >> _HALF) * n_blocks) >> _HALF) * WORDS  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def put(blocks: UInt64s, hashes: UInt64s) -> None:
    """Put hashes into a filter."""
    for i in range(len(hashes)):
        at = _block(hashes[i], len(blocks))
        bits = (hashes[i] * _SPREAD) >> _FIRST_BITS
        for j in range(WORDS):
            blocks[at + j] |= _ONE << (bits & _SIX_BITS)
            bits >>= _STEP


@njit(cache=True, nogil=True)
def has(blocks: UInt64s, key: np.uint64) -> bool:
    """Return whether a hash was put in; rarely true of one that was not."""
    if len(blocks) == 0:
        return False
    at = _block(key, len(blocks))
    bits = (key * _SPREAD) >> _FIRST_BITS
    for j in range(WORDS):
        if (blocks[at + j] >> (bits & _SIX_BITS)) & _ONE == 0:
            return False
        bits >>= _STEP
    return True


@njit(cache=True, nogil=True)
def has_each(blocks: UInt64s, hashes: UInt64s) -> Bools:
    """Return which hashes were put in; rarely true of one that was not."""
    found = np.zeros(len(hashes), np.bool_)
    for i in range(len(hashes)):
        found[i] = has(blocks, hashes[i])
    return found


_NONE = np.zeros(0, np.uint64)
_ASCII_END = 128


class IssuedPairs:
    """Pairs of a user and a query text in two generations, of at least `remembered` pairs once the older is full.

    Nothing that is remembered is ever missed; a few in a thousand pairs are taken for remembered that are not, and then
    somebody else is drawn. With `remembered=None` nothing is forgotten.
    """

    def __init__(self, *, remembered: int | None, generation: int = 0) -> None:
        self.remembered = remembered
        self.generation = generation
        self.n_newest = 0
        self.room = (0, 0)
        self.older: UInt64s = _NONE
        self.newest: UInt64s = _NONE

    def are_new(self, pairs: UInt64s) -> Bools:
        """Return which pairs are neither remembered nor equal to one before them."""
        first = pl.Series(pairs).is_first_distinct().to_numpy()
        return first & ~has_each(self.newest, pairs) & ~has_each(self.older, pairs)

    def put(self, pairs: UInt64s) -> None:
        """Remember pairs. All go into one generation, and a full one is followed by a new one."""
        # The older generation has `remembered` pairs or more, so those are there even while the newest is empty.
        if self.remembered is not None and self.n_newest >= self.remembered:
            self.generation += 1
            self.n_newest, self.room = 0, (self.room[1], 0)
            self.older, self.newest = self.newest, _NONE
        if not len(self.newest) and len(pairs):
            self.room = (self.room[0], max(self.remembered or 0, len(pairs)))
            self.newest = empty_filter(self.room[1])
        put(self.newest, pairs)
        self.n_newest += len(pairs)

    def restore(self, issued: Iterable[tuple[int, bytes]], *, n_newest: int, room: tuple[int, int]) -> None:
        """Remember again what was kept of this generation and the one before."""
        self.n_newest, self.room = n_newest, room
        self.older, self.newest = (empty_filter(n) if n else _NONE for n in room)
        for generation, data in issued:
            blocks = {self.generation: self.newest, self.generation - 1: self.older}.get(generation, _NONE)
            if len(blocks):
                put(blocks, np.frombuffer(data, "<u8").astype(np.uint64, copy=False))


def hash_users(users: pl.Series, *, key: UInt64s) -> UInt64s:
    """Return a keyed hash of each user."""
    return hash_texts(*text_bytes(users), _AS_IT_IS, key)


def hash_queries(queries: pl.Series, *, key: UInt64s) -> UInt64s:
    """Return a keyed hash of each query that is the same however it is typed: of its words in lower case."""
    data, ptr = text_bytes(queries)
    if data[ptr[0] : ptr[-1]].max(initial=0) >= _ASCII_END:
        is_other = queries.str.len_bytes() != queries.str.len_chars()
        composed = queries.filter(is_other).str.normalize("NFC")
        data, ptr = text_bytes(queries.clone().scatter(is_other.arg_true(), join_terms(composed)))
    return hash_texts(data, ptr, _WORDS, key)


_WORDS: Bytes = np.where(IS_WORD_BYTE[LOWER_BYTES], LOWER_BYTES, 0).astype(np.uint8)
_AS_IT_IS = np.arange(256).astype(np.uint8)

"""Words as hashes of their bytes (FNV-1a), and tables that find a number by hash."""

from typing import Final, NamedTuple

import numpy as np

from queryveil.data import Bools, Bytes, Int32s, Int64s, UInt64s
from queryveil.kernels import njit

START: Final = np.uint64(14695981039346656037)
PRIME: Final = np.uint64(1099511628211)
SHIFT: Final = np.uint64(32)
NOT_FOUND: Final = -1


class ByteWords(NamedTuple):
    """The words of texts: those of text t are `ptr[t]` to `ptr[t + 1]`, word w is `data[starts[w]:ends[w]]`."""

    data: Bytes
    ptr: Int64s
    starts: Int64s
    ends: Int64s
    hashes: UInt64s


@njit(cache=True, nogil=True)
def find_words(data: Bytes, ptr: Int64s, is_letter: Bools) -> ByteWords:
    """Return the words of the texts `data[ptr[t]:ptr[t + 1]]`: runs of bytes that are letters."""
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
            value = START
            starts[n] = i
            while i < last and is_letter[data[i]]:
                value = (value ^ np.uint64(data[i])) * PRIME
                i += 1
            ends[n] = i
            hashes[n] = value
            n += 1
        word_ptr[text + 1] = n
    return ByteWords(data, word_ptr, starts[:n], ends[:n], hashes[:n])


@njit(cache=True, nogil=True)
def empty_table(n: int) -> tuple[UInt64s, Int32s]:
    """Return keys and values of a table for n hashes: its size is a power of two, and half of it or more stays free."""
    size = 16
    while size <= 2 * n:
        size *= 2
    return np.zeros(size, np.uint64), np.full(size, NOT_FOUND, np.int32)


@njit(cache=True, nogil=True)
def place_hashes(hashes: UInt64s, numbers: Int32s) -> tuple[UInt64s, Int32s]:
    """Return a table of the number of each hash; of equal hashes the first stays."""
    keys, values = empty_table(len(hashes))
    mask = len(keys) - 1
    for i in range(len(hashes)):
        slot = np.int64(hashes[i] >> SHIFT) & mask
        while values[slot] != NOT_FOUND and keys[slot] != hashes[i]:
            slot = (slot + 1) & mask
        if values[slot] == NOT_FOUND:
            keys[slot] = hashes[i]
            values[slot] = numbers[i]
    return keys, values


@njit(cache=True, nogil=True)
def find_hash(keys: UInt64s, values: Int32s, key: np.uint64) -> int:
    """Return the number of a hash, -1 where it has none."""
    mask = len(keys) - 1
    slot = np.int64(key >> SHIFT) & mask
    while values[slot] != NOT_FOUND:
        if keys[slot] == key:
            return int(values[slot])
        slot = (slot + 1) & mask
    return NOT_FOUND


@njit(cache=True, nogil=True)
def find_hashes(keys: UInt64s, values: Int32s, wanted: UInt64s) -> Int32s:
    """Return the number of every hash."""
    out = np.empty(len(wanted), np.int32)
    for i in range(len(wanted)):
        out[i] = find_hash(keys, values, wanted[i])
    return out

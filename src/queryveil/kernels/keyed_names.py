"""HMAC-SHA256 of many short texts under one key (RFC 2104, FIPS 180-4)."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from queryveil.kernels.arrays import Bytes, Int64s

UInt32s = NDArray[np.uint32]

BLOCK_BYTES = 64
NAME_BYTES = 16
"""How much of each digest becomes a name, written as twice as many digits."""
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


def _roots() -> tuple[UInt32s, UInt32s]:
    """Give the constants of SHA-256: fractions of the cube and square roots of the first primes."""
    primes = [n for n in range(2, 312) if all(n % d for d in range(2, n))]
    cubes = [_root(p << 96, 3) & 0xFFFFFFFF for p in primes]
    squares = [_root(p << 64, 2) & 0xFFFFFFFF for p in primes[:8]]
    return np.array(cubes, np.uint32), np.array(squares, np.uint32)


def _root(number: int, degree: int) -> int:
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low


_CONSTANTS, FIRST_STATE = _roots()


@njit(cache=True)
def _turn(word: np.uint32, n: int) -> np.uint32:
    return np.uint32((np.uint64(word) >> np.uint64(n)) | (np.uint64(word) << np.uint64(32 - n)))


@njit(cache=True)
def compress(state: UInt32s, block: Bytes, words: UInt32s) -> None:
    """Take one block of 64 bytes into a state; `words` is room for 64."""
    for i in range(16):
        value = np.uint32(0)
        for j in range(4):
            value = np.uint32((np.uint64(value) << np.uint64(8)) | np.uint64(block[4 * i + j]))
        words[i] = value
    for i in range(16, 64):
        near, far = words[i - 2], words[i - 15]
        mixed = _turn(near, 17) ^ _turn(near, 19) ^ np.uint32(near >> np.uint32(10))
        mixed_too = _turn(far, 7) ^ _turn(far, 18) ^ np.uint32(far >> np.uint32(3))
        words[i] = np.uint32(words[i - 16] + mixed_too + words[i - 7] + mixed)
    a, b, c, d, e, f, g, h = state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]
    for i in range(64):
        choice = (e & f) ^ (np.uint32(~e) & g)
        first = np.uint32(h + (_turn(e, 6) ^ _turn(e, 11) ^ _turn(e, 25)) + choice + _CONSTANTS[i] + words[i])
        majority = (a & b) ^ (a & c) ^ (b & c)
        second = np.uint32((_turn(a, 2) ^ _turn(a, 13) ^ _turn(a, 22)) + majority)
        h, g, f, e = g, f, e, np.uint32(d + first)
        d, c, b, a = c, b, a, np.uint32(first + second)
    for i, value in enumerate((a, b, c, d, e, f, g, h)):
        state[i] = np.uint32(state[i] + value)


@njit(cache=True)
def _end(block: Bytes, n_bytes: int, n_all: int) -> None:
    """Fill a last block behind its first bytes: a mark, zeros, and the length of everything in bits."""
    block[n_bytes] = 0x80
    block[n_bytes + 1 : 56] = 0
    n_bits = n_all * 8
    for i in range(8):
        block[63 - i] = (n_bits >> (8 * i)) & 0xFF


@njit(cache=True)
def name_all(data: Bytes, ptr: Int64s, inner: UInt32s, outer: UInt32s) -> Bytes:
    """Give the first half of the HMAC of each text as digits; the states have taken in the padded key."""
    n = len(ptr) - 1
    out = np.empty((n, 2 * NAME_BYTES), np.uint8)
    words, state = np.empty(64, np.uint32), np.empty(8, np.uint32)
    block = np.zeros(BLOCK_BYTES, np.uint8)
    for t in range(n):
        at, stop = ptr[t], ptr[t + 1]
        length = stop - at
        state[:] = inner
        while stop - at >= BLOCK_BYTES:
            compress(state, data[at : at + BLOCK_BYTES], words)
            at += BLOCK_BYTES
        rest = stop - at
        block[:rest] = data[at:stop]
        if rest >= 56:
            block[rest] = 0x80
            block[rest + 1 :] = 0
            compress(state, block, words)
            block[:] = 0
            _end(block, 0, length + BLOCK_BYTES)
            block[0] = 0
        else:
            _end(block, rest, length + BLOCK_BYTES)
        compress(state, block, words)
        for i in range(8):
            for j in range(4):
                block[4 * i + j] = (state[i] >> np.uint32(24 - 8 * j)) & np.uint32(0xFF)
        _end(block, 32, 32 + BLOCK_BYTES)
        state[:] = outer
        compress(state, block, words)
        for i in range(NAME_BYTES):
            byte = (state[i // 4] >> np.uint32(24 - 8 * (i % 4))) & np.uint32(0xFF)
            out[t, 2 * i] = _DIGITS[byte >> 4]
            out[t, 2 * i + 1] = _DIGITS[byte & 15]
    return out

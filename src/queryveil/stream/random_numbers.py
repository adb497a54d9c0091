"""Random numbers by the block: from the system's secure source, or, with a secret or a seed, always the same."""

from __future__ import annotations

import hashlib
import os

import numpy as np

from queryveil.kernels.arrays import UInt64s

BLOCK = 8192


class RandomNumbers:
    """One long row of random 64-bit numbers, taken from the front.

    With a `secret` of a fixed length they are the same again, and nobody without it can tell them from chance; a `seed`
    is for runs that anybody may repeat.
    """

    def __init__(self, *, seed: int | None = None, n_taken: int = 0, secret: bytes | None = None) -> None:
        self._seed, self._secret = seed, secret
        self._n_blocks, skipped = divmod(n_taken, BLOCK)
        self._ready = np.zeros(0, np.uint64)
        self.n_taken = n_taken - skipped
        self.look()
        self.take(skipped)

    def look(self, *, at_least: int = 1) -> UInt64s:
        """Give the numbers that come next, without taking them."""
        if len(self._ready) < at_least:
            n_blocks = -(-(at_least - len(self._ready)) // BLOCK)
            self._ready = np.concatenate([self._ready, *(self._block() for _ in range(n_blocks))])
        return self._ready

    def take(self, n: int) -> None:
        """Take n of those that were looked at."""
        self._ready = self._ready[n:]
        self.n_taken += n

    def _block(self) -> UInt64s:
        number = self._n_blocks
        self._n_blocks += 1
        if self._secret is not None:
            data = hashlib.shake_256(self._secret + number.to_bytes(8, "little")).digest(8 * BLOCK)
            return np.frombuffer(data, "<u8").astype(np.uint64, copy=False)
        if self._seed is None:
            return np.frombuffer(os.urandom(8 * BLOCK), np.uint64)
        # A block has a seed of its own, so that a run can go on in the middle.
        block: UInt64s = np.random.Philox(np.random.SeedSequence([self._seed, number])).random_raw(BLOCK)
        return block

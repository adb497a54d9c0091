"""How many different users a stream had, in memory that does not grow (HyperLogLog)."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Bytes

_BITS = 12
_N = 1 << _BITS


class UserCount:
    """An estimate, within about 2 per cent.

    >>> count = UserCount()
    >>> count.add(pl.Series([f"user{i % 50}" for i in range(1000)]))
    >>> 48 <= count.estimate() <= 52
    True
    """

    def __init__(self, data: bytes = b"") -> None:
        self._longest: Bytes = np.frombuffer(data, np.uint8).copy() if data else np.zeros(_N, np.uint8)

    def add(self, users: pl.Series) -> None:
        """See these users, again or for the first time."""
        hashes = users.unique().hash(seed=0x5EED).to_numpy()
        rest = hashes >> np.uint64(_BITS)
        # The place of the highest bit, by way of floats, which are exact enough up to 2 ** 52.
        n_zeros = (64 - _BITS) - np.frexp(rest.astype(np.float64))[1]
        np.maximum.at(self._longest, (hashes & np.uint64(_N - 1)).astype(np.int64), (n_zeros + 1).astype(np.uint8))

    def estimate(self) -> int:
        """Say how many there were."""
        raw = 0.7213 / (1 + 1.079 / _N) * _N * _N / float(np.sum(np.exp2(-self._longest.astype(np.float64))))
        n_unused = int((self._longest == 0).sum())
        return round(_N * math.log(_N / n_unused) if raw <= 2.5 * _N and n_unused else raw)

    def to_bytes(self) -> bytes:
        """Give it for the store."""
        return self._longest.tobytes()

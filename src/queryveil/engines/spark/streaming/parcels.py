"""Events of one pool in one value of Spark: frames as bytes, and the order in which they count.

A pool takes its events as a whole, so they travel as a whole: thousands in a row, instead of a row for each.
"""

from __future__ import annotations

import hashlib
import hmac
import io

import numpy as np
import polars as pl

from queryveil.kernels.arrays import UInt64s
from queryveil.kernels.issued import pair_hashes
from queryveil.stream.issued_pairs import hash_users

PARCELS = "category INT, shard INT, parcel BINARY"
"""What goes into the pools and what comes out of them, as Spark declares it."""
TALLY = -1
"""In place of a category: what was counted before the pools."""


def packed(frame: pl.DataFrame) -> bytes:
    """Give a frame as bytes."""
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()


def unpacked(data: bytes) -> pl.DataFrame:
    """Give back a frame."""
    return pl.read_ipc_stream(data)


def derived(secret: bytes, purpose: str) -> bytes:
    """Give a secret of 32 bytes for one purpose, which tells nothing of those for others."""
    return hmac.digest(secret, purpose.encode(), hashlib.sha256)


def hash_key(secret: bytes) -> UInt64s:
    """Give the two numbers, the second one odd, that texts are hashed with."""
    return np.frombuffer(derived(secret, "places")[:16], "<u8").astype(np.uint64) | np.array([0, 1], np.uint64)


def places(events: pl.DataFrame, *, key: UInt64s) -> pl.Series:
    """Give each pair of user and query a place in an order that means nothing, and is the same every time."""
    users, queries = hash_users(events["user"], key=key), hash_users(events["query"], key=key)
    return pl.Series("place", pair_hashes(users, queries))


def in_order_of_arrival(events: pl.DataFrame) -> pl.DataFrame:
    """Sort events by time, those of the same time or without one by their place; then drop both.

    Spark hands over the rows of a batch in another order each time. A batch that is done again after a crash must
    release the very same rows, so the order is a function of the rows alone; rows that are all alike may trade places.
    """
    rest = [name for name in sorted(events.columns) if name not in ("time", "place")]
    return events.sort("time", "place", *rest, nulls_last=True).drop("time", "place")

"""Pools as bytes, for the store."""

from __future__ import annotations

import io

import msgspec
import numpy as np
import polars as pl

from queryveil.errors import BadInput
from queryveil.kernels.arrays import Int64s, UInt64s

_VERSION = 1


class PoolState(msgspec.Struct, frozen=True, kw_only=True):
    """What pools need to go on: who waits where, k as grown, the key of the hashes, where the memory stands."""

    version: int
    key: tuple[int, int]
    needed: list[int]
    generation: int
    n_newest: int
    room: tuple[int, int]
    n_numbers: int
    users: bytes
    queries: bytes

    @staticmethod
    def pack(
        *,
        key: UInt64s,
        needed: Int64s,
        generation: int,
        n_newest: int,
        room: tuple[int, int],
        n_numbers: int,
        users: pl.DataFrame,
        queries: pl.DataFrame,
    ) -> bytes:
        """Give the bytes."""
        state = PoolState(
            version=_VERSION,
            key=(int(key[0]), int(key[1])),
            needed=needed.tolist(),
            generation=generation,
            n_newest=n_newest,
            room=room,
            n_numbers=n_numbers,
            users=_written(users),
            queries=_written(queries),
        )
        return msgspec.msgpack.encode(state)

    @staticmethod
    def unpack(data: bytes) -> PoolState:
        """Read the bytes."""
        try:
            state = msgspec.msgpack.decode(data, type=PoolState)
        except msgspec.MsgspecError:
            raise BadInput("the state of the pools is damaged; go back to a copy of the store") from None
        if state.version != _VERSION:
            raise BadInput("the state of the pools is from another version of queryveil; go on with that one")
        return state

    @property
    def key_numbers(self) -> UInt64s:
        """The key of the hashes."""
        return np.array(self.key, np.uint64)

    def frames(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Give the users and the queries that wait."""
        try:
            return pl.read_ipc_stream(self.users), pl.read_ipc_stream(self.queries)
        except (pl.exceptions.PolarsError, OSError):
            raise BadInput("the state of the pools is damaged; go back to a copy of the store") from None

    def __repr__(self) -> str:
        # Privacy: the bytes hold users and queries, the key tells who issued what.
        return f"PoolState(version={self.version}, generation={self.generation})"


def _written(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()

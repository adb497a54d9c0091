"""What the service itself keeps between runs, beside the position and the outbox."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from queryveil.errors import BadInput
from queryveil.log import Layout
from queryveil.stream.pools import Pools, PoolSettings

_VERSION = 1


class _Packed(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    version: int
    layout: Layout | None
    users: bytes
    pools: bytes


def pack(pools: bytes, *, layout: Layout | None, users: bytes) -> bytes:
    """Put the pools, how lines are written and how many users were seen into the bytes that a store keeps."""
    return msgspec.msgpack.encode(_Packed(version=_VERSION, layout=layout, users=users, pools=pools))


def unpack(
    data: bytes, *, issued: Iterable[tuple[int, bytes]], settings: PoolSettings
) -> tuple[Pools, Layout | None, bytes]:
    """Give back what `pack` was given."""
    try:
        packed = msgspec.msgpack.decode(data, type=_Packed)
    except msgspec.MsgspecError:
        raise BadInput("the state of this stream is damaged; restore a copy, or name another --store") from None
    if packed.version != _VERSION:
        raise BadInput("the state of this stream was written by a newer queryveil; update queryveil")
    return Pools.from_bytes(packed.pools, issued=issued, settings=settings), packed.layout, packed.users

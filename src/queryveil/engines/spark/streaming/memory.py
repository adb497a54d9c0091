"""Who issued what, in the state of a pool: written once, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle

_PIECE_BYTES = 1 << 14


class Recent(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The newest pairs, fewer than make a piece, of a generation that has `n_pieces` of them."""

    generation: int = 0
    n_pieces: int = 0
    pairs: bytes = b""


class IssuedMemory:
    """Hashes of pairs in pieces, those of even and of odd generations apart.

    A pool knows two generations. Only what is newer than the last piece is written with every batch, beside the pool
    itself, and when a generation begins, the one before the last is removed as a whole.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._pieces: tuple[MapState, ...] = tuple(
            handle.getMapState(name, "piece INT", "pairs BINARY") for name in ("issuedEven", "issuedOdd")
        )

    def pairs(self, recent: Recent) -> Iterator[tuple[int, bytes]]:
        """Give generations and what was issued in them."""
        for generation in (recent.generation - 1, recent.generation):
            for (pairs,) in self._pieces[generation % 2].values():
                yield generation, pairs
        yield recent.generation, recent.pairs

    def with_more(self, recent: Recent, *, generation: int, pairs: bytes) -> Recent:
        """Remember further pairs, of this generation or the next one."""
        if generation != recent.generation:
            self._put(recent)
            self._pieces[generation % 2].clear()
            recent = Recent(generation=generation)
        longer = msgspec.structs.replace(recent, pairs=recent.pairs + pairs)
        return longer if len(longer.pairs) < _PIECE_BYTES else self._put(longer)

    def _put(self, recent: Recent) -> Recent:
        if recent.pairs:
            self._pieces[recent.generation % 2].updateValue((recent.n_pieces,), (recent.pairs,))
        return Recent(generation=recent.generation, n_pieces=recent.n_pieces + 1)

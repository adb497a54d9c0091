"""Unpacks the gzip of bodies while they come in, within limits."""

import zlib
from collections.abc import Callable
from typing import NamedTuple

from queryveil.service.http.limits import HttpLimits

_GZIP = 31
_PIECE_BYTES = 1 << 16
_UNPACKED_AT_ONCE = 1 << 20


class Problem(NamedTuple):
    """Why a body is refused: the status of the answer, and one line."""

    status: int
    message: str


BROKEN = Problem(400, "the body is not gzip, ends too early or is empty; compress it again")
STOPPING = Problem(503, "the service is stopping; send it again later")


class Unpacker:
    """Unpacks gzip part by part, also of several members, until there is a problem.

    It takes time in proportion to what comes in and out, and stops soon after `is_over` says so. Behind a problem
    nothing is read any more.

    >>> import gzip
    >>> unpacker = Unpacker(HttpLimits())
    >>> unpacker.add(gzip.compress(b"red")) + unpacker.add(gzip.compress(b" wine"))
    b'red wine'
    """

    def __init__(self, limits: HttpLimits, *, is_over: Callable[[], bool] = lambda: False) -> None:
        self._limits, self._is_over = limits, is_over
        self._member: zlib._Decompress | None = None
        self._n_in = self._n_out = self._n_members = 0
        self.problem: Problem | None = None

    def add(self, data: bytes) -> bytes:
        """Return what a part of the body unpacks to."""
        parts: list[bytes] = []
        at, is_full = 0, False
        while (at < len(data) or is_full) and self.problem is None:
            if self._member is None:
                self._n_members += 1
                self._member = zlib.decompressobj(wbits=_GZIP)
            member = self._member
            # Small pieces: what a member leaves over is copied.
            piece = data[at : at + _PIECE_BYTES]
            try:
                parts.append(member.decompress(piece, _UNPACKED_AT_ONCE))
            except zlib.error:
                self.problem = BROKEN
                break
            n_read = len(piece) - len(member.unused_data) - len(member.unconsumed_tail)
            at, self._n_in, self._n_out = at + n_read, self._n_in + n_read, self._n_out + len(parts[-1])
            is_full = len(parts[-1]) == _UNPACKED_AT_ONCE and not member.eof
            if member.eof:
                self._member = None
            self._check()
        return b"".join(parts)

    def finish(self) -> None:
        """Note that nothing more comes: it must have been whole, and not nothing."""
        if self.problem is None and (self._member is not None or (self._n_in and not self._n_out)):
            self.problem = BROKEN

    def _check(self) -> None:
        limits = self._limits
        if self._is_over():
            self.problem = STOPPING
        elif self._n_out > limits.max_body_bytes:
            self.problem = too_large(limits.max_body_bytes)
        elif self._n_members > limits.max_gzip_members:
            words = f"a gzip body may have {limits.max_gzip_members:,} members; compress it as one"
            self.problem = Problem(413, words)
        elif self._n_out > max(_UNPACKED_AT_ONCE, limits.max_gzip_ratio * self._n_in):
            words = f"a gzip body may unpack to {limits.max_gzip_ratio} times its size; send it as it is"
            self.problem = Problem(413, words)


def too_large(limit: int) -> Problem:
    """Return why a body is refused that has too many bytes."""
    return Problem(413, f"a body may have {limit:,} bytes, also when unpacked; send smaller batches")

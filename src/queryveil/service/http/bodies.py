"""From the body of a request to whole lines, within limits."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from queryveil.service.http.guard import refusal
from queryveil.service.http.intake import Intake

MAX_BODY_BYTES = 16 << 20
TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
_SECONDS_TO_SEND = 60
_SMALL = 1 << 16
_GZIP = 31
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Lines:
    """Whole lines; `n_events` of them are not blank."""

    data: bytes
    n_events: int


@dataclass(slots=True, kw_only=True)
class Room:
    """The bytes that one request holds, until it is answered."""

    intake: Intake
    n_bytes: int = 0

    def take(self, n_bytes: int) -> bool:
        """Hold more bytes; false if there is no room for them."""
        if not self.intake.hold(n_bytes):
            return False
        self.n_bytes += n_bytes
        return True

    def give_back(self) -> None:
        """Hold nothing any more."""
        self.intake.let_go(self.n_bytes)


async def read_lines(request: Request, *, room: Room, limit: int = MAX_BODY_BYTES) -> Lines | Response:
    """Read the lines of a request, or say why not."""
    refused = _refuse_by_headers(request, limit=limit)
    if refused is not None:
        return refused
    try:
        async with asyncio.timeout(_SECONDS_TO_SEND):
            body = await _read(request, room=room, limit=limit)
    except TimeoutError:
        return refusal(408, f"the body took longer than {_SECONDS_TO_SEND} seconds; send smaller batches")
    except ClientDisconnect:
        return refusal(400, "the body ends too early")
    if isinstance(body, bytes) and request.headers.get("content-encoding", "").lower() == "gzip":
        body = await _unpack(body, room=room, limit=limit)
    if isinstance(body, Response):
        return body
    return as_lines(body) if len(body) < _SMALL else await asyncio.to_thread(as_lines, body)


def _refuse_by_headers(request: Request, *, limit: int) -> Response | None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in TYPES:
        # A page of another site can send forms and plain text unasked, but not this type.
        return refusal(415, f"send one JSON object a line with Content-Type: {TYPES[0]}")
    if request.headers.get("content-encoding", "identity").lower() not in ("identity", "gzip"):
        return refusal(415, "send the body as it is, or with Content-Encoding: gzip", Accept_Encoding="gzip")
    length = request.headers.get("content-length", "0")
    return _too_large(limit) if length.isdecimal() and int(length) > limit else None


def _too_large(limit: int) -> Response:
    return refusal(413, f"a body may have {limit:,} bytes, also when unpacked; send smaller batches")


def _no_room() -> Response:
    return refusal(503, "too much is waiting to be committed; send it again later", retry=True)


async def _read(request: Request, *, room: Room, limit: int) -> bytes | Response:
    parts: list[bytes] = []
    n_bytes = 0
    async for part in request.stream():
        n_bytes += len(part)
        if n_bytes > limit:
            return _too_large(limit)
        if not room.take(len(part)):
            return _no_room()
        parts.append(part)
    return b"".join(parts)


async def _unpack(body: bytes, *, room: Room, limit: int) -> bytes | Response:
    unpacked = await asyncio.to_thread(unzip, body, limit=limit)
    if unpacked is None:
        return _too_large(limit)
    if body and not unpacked:
        return refusal(400, "the body is not gzip, ends too early or is empty; compress it again")
    return unpacked if room.take(len(unpacked)) else _no_room()


def unzip(data: bytes, *, limit: int) -> bytes | None:
    """Unpack gzip, also of several parts: None if it becomes too large, nothing if it is broken.

    >>> import gzip
    >>> unzip(gzip.compress(b"red") + gzip.compress(b" wine"), limit=100)
    b'red wine'
    """
    out = b""
    while data:
        unpacker = zlib.decompressobj(wbits=_GZIP)
        try:
            out += unpacker.decompress(data, limit + 1 - len(out))
        except zlib.error:
            return b""
        if len(out) > limit:
            return None
        if not unpacker.eof:
            return b""
        data = unpacker.unused_data
    return out


def as_lines(body: bytes) -> Lines:
    r"""End the last line, and count those that are not blank; of blank ones only the end is left.

    >>> lines = as_lines(b'{"user": 1}\r\n\n \n{"user": 2}')
    >>> lines.data, lines.n_events
    (b'{"user": 1}\r\n\n\n{"user": 2}\n', 2)
    """
    data = body.removeprefix(_BOM)
    if data and not data.endswith(b"\n"):
        data += b"\n"
    lines = data.split(b"\n")
    if any(map(bytes.isspace, lines)):
        # A blank that is no event here would be a bad line to the reader, and taken off the number of events.
        lines = [b"" if line.isspace() else line for line in lines]
        data = b"\n".join(lines)
    return Lines(data=data, n_events=sum(map(bool, lines)))

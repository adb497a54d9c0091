"""What a request must pass: host, origin, token, size and encoding of its body."""

import asyncio
import zlib
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from queryveil.service.http._queues import PostQueue
from queryveil.service.http.addresses import Address, is_loopback

_PROTECTED_PATHS = ("/events", "/released")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def refusal(status: int, message: str, *, retry: bool = False, **headers: str) -> JSONResponse:
    """Answer with one clear line."""
    found = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse({"error": message}, status_code=status, headers=found | ({"Retry-After": "1"} if retry else {}))


class AccessMiddleware:
    """Refuses requests without access, and puts the security headers on every answer."""

    def __init__(self, app: ASGIApp, *, address: Address) -> None:
        self._app, self._address = app, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = self._refuse(scope)
        await (refused or self._app)(scope, receive, send_with_headers)

    def _refuse(self, scope: MutableMapping[str, Any]) -> JSONResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._address.is_loopback and not is_loopback(_name_of(host)):
            # A page elsewhere may give its own name the address of this machine; its requests carry that name.
            return refusal(421, "this service answers to localhost and 127.0.0.1 only")
        if scope["path"] not in _PROTECTED_PATHS:
            return None
        if _is_from_elsewhere(headers, host=host):
            # Reading confirms what was read before, so even a picture's address on another page could lose rows.
            return refusal(403, "requests from pages of other sites are not taken")
        if not self._address.admits(headers.get("authorization")):
            return refusal(401, "send the token: Authorization: Bearer TOKEN", WWW_Authenticate="Bearer")
        return None


def _name_of(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_from_elsewhere(headers: Headers, *, host: str) -> bool:
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc.lower() != host.lower()


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
class BodyQuota:
    """The memory that one request has reserved, until it is answered."""

    posts: PostQueue
    n_bytes: int = 0

    def take(self, n_bytes: int) -> bool:
        """Reserve more bytes; false if there is no memory for them."""
        if not self.posts.reserve(n_bytes):
            return False
        self.n_bytes += n_bytes
        return True

    def release(self) -> None:
        """Release the memory."""
        self.posts.release(self.n_bytes)


async def read_lines(request: Request, *, quota: BodyQuota, limit: int = MAX_BODY_BYTES) -> Lines | Response:
    """Return the lines of a request, or the response that refuses it."""
    refused = _refuse_by_headers(request, limit=limit)
    if refused is not None:
        return refused
    try:
        async with asyncio.timeout(_SECONDS_TO_SEND):
            body = await _read(request, quota=quota, limit=limit)
    except TimeoutError:
        return refusal(408, f"the body took longer than {_SECONDS_TO_SEND} seconds; send smaller batches")
    except ClientDisconnect:
        return refusal(400, "the body ends too early")
    if isinstance(body, bytes) and request.headers.get("content-encoding", "").lower() == "gzip":
        body = await _unpack(body, quota=quota, limit=limit)
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


async def _read(request: Request, *, quota: BodyQuota, limit: int) -> bytes | Response:
    parts: list[bytes] = []
    n_bytes = 0
    async for part in request.stream():
        n_bytes += len(part)
        if n_bytes > limit:
            return _too_large(limit)
        if not quota.take(len(part)):
            return _no_room()
        parts.append(part)
    return b"".join(parts)


async def _unpack(body: bytes, *, quota: BodyQuota, limit: int) -> bytes | Response:
    unpacked = await asyncio.to_thread(unzip, body, limit=limit)
    if unpacked is None:
        return _too_large(limit)
    if body and not unpacked:
        return refusal(400, "the body is not gzip, ends too early or is empty; compress it again")
    return unpacked if quota.take(len(unpacked)) else _no_room()


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

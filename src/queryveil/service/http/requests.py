"""What a request must pass: host, origin, token, size and encoding of its body."""

import asyncio
import hmac
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from queryveil.service.http._connections import address_of
from queryveil.service.http._queues import PostQueue
from queryveil.service.http.addresses import Address, HttpLimits, is_loopback

_PROTECTED_PATHS = ("/events", "/released")
_COUNTS = ("/stats", "/metrics", "/example")
"""These need the token where others than this machine can ask."""
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


def refusal(status: int, message: str, *, retry: bool = False, **headers: str) -> HTTPException:
    """Return what a route raises to answer with one clear line."""
    found = {name.replace("_", "-"): value for name, value in headers.items()}
    return HTTPException(status, message, found | ({"Retry-After": "1"} if retry else {}))


def as_response(error: HTTPException) -> JSONResponse:
    return JSONResponse({"error": error.detail}, status_code=error.status_code, headers=error.headers)


_MAX_PAUSE_SECONDS = 60
_FORGOTTEN_SECONDS = 600.0
_MAX_ADDRESSES = 10_000


class TokenBrake:
    """Slows down whoever tries tokens: after some wrong ones an address waits 1, 2, 4 .. 60 seconds for the next try.

    Addresses do not slow down each other. One from which the right token came is not kept waiting, so that nobody who
    shares it, behind a proxy say, can lock others out. So many addresses are remembered at most.
    """

    def __init__(self, n_free: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._n_free, self._clock = n_free, clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()

    def seconds_left(self, address: str) -> float:
        n, last = self._wrong.get(address, (0, 0.0))
        if n < self._n_free or address in self._known:
            return 0.0
        pause = min(_MAX_PAUSE_SECONDS, 2.0 ** min(n - self._n_free, 10))
        return max(0.0, last + pause - self._clock())

    def note(self, address: str, *, is_right: bool) -> None:
        if is_right:
            self._wrong.pop(address, None)
            self._known[address] = None
        else:
            n, last = self._wrong.get(address, (0, 0.0))
            n = 0 if self._clock() - last > _FORGOTTEN_SECONDS else n
            self._wrong[address] = (n + 1, self._clock())
            self._wrong.move_to_end(address)
        for addresses in (self._wrong, self._known):
            if len(addresses) > _MAX_ADDRESSES:
                addresses.popitem(last=False)


class AccessMiddleware:
    """Refuses requests without access, and puts the security headers on every answer."""

    def __init__(self, app: ASGIApp, *, address: Address) -> None:
        self._app, self._address = app, address
        self._brake = TokenBrake(address.limits.wrong_tokens)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = self._refuse(scope)
        await (as_response(refused) if refused else self._app)(scope, receive, send_with_headers)

    def _refuse(self, scope: MutableMapping[str, Any]) -> HTTPException | None:
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            # Whoever stands before the service may read another end of the body: what follows could be another's.
            return refusal(400, "send Content-Length or Transfer-Encoding, not both", Connection="close")
        host, is_local = headers.get("host", ""), is_loopback(self._address.host)
        if is_local and not is_loopback(_name_of(host)):
            # A page elsewhere may give its own name the address of this machine; its requests carry that name.
            return refusal(421, "this service answers to localhost and 127.0.0.1 only")
        is_protected = scope["path"] in _PROTECTED_PATHS
        if is_protected and _is_from_elsewhere(headers, host=host):
            # Reading confirms what was read before, so even a picture's address on another page could lose rows.
            return refusal(403, "requests from pages of other sites are not taken")
        needs_token = is_protected or (scope["path"] in _COUNTS and not is_local)
        if self._address.token is None or not needs_token:
            return None
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        client = address_of((scope.get("client") or ("",))[0])
        if seconds := self._brake.seconds_left(client):
            # Not even the right one would be told from a wrong one now.
            message = "too many wrong tokens from this address; send the right one later"
            return refusal(429, message, Retry_After=str(int(seconds) + 1))
        # Privacy: compared in constant time, so that the time of the answer says nothing about the token.
        is_right = hmac.compare_digest(shown.strip().encode(), self._address.token) and scheme.lower() == "bearer"
        if headers.get("authorization"):
            self._brake.note(client, is_right=is_right)
        if not is_right:
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
    try:
        return origin is not None and urlsplit(origin).netloc.lower() != host.lower()
    except ValueError:
        # No page has such an address, so none of ours has sent it.
        return True


TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
_SMALL = 1 << 16
_SLOW_SECONDS = 2.0
_SMALL_GZIP = 1 << 12
_BOM = b"\xef\xbb\xbf"
_GZIP = 31
_PIECE_BYTES = 1 << 16
_UNPACKED_AT_ONCE = 1 << 20
_BROKEN = "the body is not gzip, ends too early or is empty; compress it again"


class Unpacker:
    """Unpacks gzip part by part, also of several members; raises where that is to be refused.

    It takes time in proportion to what comes in and out, and stops soon after `is_over` says so.

    >>> import gzip
    >>> unpacker = Unpacker(HttpLimits())
    >>> unpacker.add(gzip.compress(b"red")) + unpacker.add(gzip.compress(b" wine"))
    b'red wine'
    """

    def __init__(self, limits: HttpLimits, *, is_over: Callable[[], bool] = lambda: False) -> None:
        self._limits, self._is_over = limits, is_over
        self._member: zlib._Decompress | None = None
        self._n_in = self._n_out = self._n_members = 0

    def add(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        at, is_full = 0, False
        while at < len(data) or is_full:
            if self._member is None:
                self._n_members += 1
                self._member = zlib.decompressobj(wbits=_GZIP)
            member = self._member
            # Small pieces: what a member leaves over is copied.
            piece = data[at : at + _PIECE_BYTES]
            try:
                parts.append(member.decompress(piece, _UNPACKED_AT_ONCE))
            except zlib.error:
                raise refusal(400, _BROKEN) from None
            n_read = len(piece) - len(member.unused_data) - len(member.unconsumed_tail)
            at, self._n_in, self._n_out = at + n_read, self._n_in + n_read, self._n_out + len(parts[-1])
            is_full = len(parts[-1]) == _UNPACKED_AT_ONCE and not member.eof
            if member.eof:
                self._member = None
            self._check()
        return b"".join(parts)

    def finish(self) -> None:
        """Note that nothing more comes: it must have been whole, and not nothing."""
        if self._member is not None or (self._n_in and not self._n_out):
            raise refusal(400, _BROKEN)

    def _check(self) -> None:
        limits = self._limits
        if self._is_over():
            raise refusal(503, "the service is stopping; send it again later", retry=True)
        if self._n_out > limits.max_body_bytes:
            raise _too_large(limits.max_body_bytes)
        if self._n_members > limits.max_gzip_members:
            raise refusal(413, f"a gzip body may have {limits.max_gzip_members:,} members; compress it as one")
        if self._n_out > max(_UNPACKED_AT_ONCE, limits.max_gzip_ratio * self._n_in):
            raise refusal(413, f"a gzip body may unpack to {limits.max_gzip_ratio} times its size; send it as it is")


def _too_large(limit: int) -> HTTPException:
    return refusal(413, f"a body may have {limit:,} bytes, also when unpacked; send smaller batches")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Lines:
    """Whole lines; `n_events` of them are not blank."""

    data: bytes
    n_events: int


Bodies = dict[asyncio.Timeout, float]
"""The deadlines of the bodies that are on their way in, and when these began, the oldest first."""


@dataclass(slots=True, kw_only=True)
class BodyQuota:
    """The memory that one request has reserved, until it is answered."""

    posts: PostQueue
    bodies: Bodies
    n_bytes: int = 0

    def take(self, n_bytes: int) -> bool:
        """Reserve more bytes; false if there is no memory for them."""
        if self.posts.reserve(n_bytes):
            self.n_bytes += n_bytes
            return True
        deadline, began = next(iter(self.bodies.items()), (None, 0.0))
        if deadline is not None and time.monotonic() - began > _SLOW_SECONDS:
            # Others need the memory of the body that has been under way longest.
            del self.bodies[deadline]
            deadline.reschedule(asyncio.get_running_loop().time())
        return False


async def read_lines(request: Request, *, quota: BodyQuota, limits: HttpLimits) -> Lines:
    """Return the lines of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in TYPES:
        # A page of another site can send forms and plain text unasked, but not this type.
        raise refusal(415, f"send one JSON object a line with Content-Type: {TYPES[0]}")
    if request.headers.get("content-encoding", "identity").lower() not in ("identity", "gzip"):
        raise refusal(415, "send the body as it is, or with Content-Encoding: gzip", Accept_Encoding="gzip")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > limits.max_body_bytes:
        raise _too_large(limits.max_body_bytes)
    deadline = asyncio.timeout(limits.body_seconds)
    try:
        async with deadline:
            quota.bodies[deadline] = time.monotonic()
            body = await _read(request, quota=quota, limits=limits)
    except TimeoutError:
        raise refusal(408, "the body came too slowly; send smaller batches", Connection="close") from None
    except ClientDisconnect:
        raise refusal(400, "the body ends too early") from None
    finally:
        quota.bodies.pop(deadline, None)
    if body.count(b"\n") > limits.max_lines:
        raise refusal(413, f"a body may have {limits.max_lines:,} lines; send smaller batches")
    return as_lines(body) if len(body) < _SMALL else await asyncio.to_thread(as_lines, body)


async def _read(request: Request, *, quota: BodyQuota, limits: HttpLimits) -> bytes:
    """Return the body; what is too much is refused before the rest of it has come."""
    is_gzip = request.headers.get("content-encoding", "").lower() == "gzip"
    unpacker = Unpacker(limits, is_over=lambda: quota.posts.is_closed)
    parts: list[bytes] = []
    n_bytes = 0
    async for sent in request.stream():
        part = sent
        n_bytes += len(sent)
        if n_bytes > limits.max_body_bytes:
            raise _too_large(limits.max_body_bytes)
        if is_gzip:
            is_small = len(sent) < _SMALL_GZIP
            part = unpacker.add(sent) if is_small else await asyncio.to_thread(unpacker.add, sent)
        if not quota.take(len(part)):
            raise refusal(503, "too much is waiting to be committed; send it again later", retry=True)
        parts.append(part)
    unpacker.finish()
    return b"".join(parts)


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

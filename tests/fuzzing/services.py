"""Readers of the live service: lines as they come, files and positions, HTTP requests, secrets in files."""

from __future__ import annotations

import asyncio
import datetime
import gzip
from functools import cache, partial
from pathlib import Path
from typing import Any

import h11
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.exceptions import HTTPException
from tests.fuzzing.engine import Target
from tests.fuzzing.logs import LOGS, text
from tests.fuzzing.mutation import SECRET

from queryveil.data import Format
from queryveil.release import ColumnPolicy, Ids
from queryveil.service.connectors.file_sources import FilesSource, FollowedFile
from queryveil.service.connectors.redis import _lines, _position
from queryveil.service.http._app import AppState, build_app
from queryveil.service.http._queues import PostQueue, ReleasedQueue
from queryveil.service.http.addresses import Address, HttpLimits, TlsFiles, find_token
from queryveil.service.http.requests import Unpacker, as_lines
from queryveil.service.lines import find_layout, inside_names, parse, write_lines
from queryveil.service.pipeline.urls import find_address
from queryveil.service.settings import LINE_FORMATS

_NOW = datetime.datetime(2026, 3, 4)
_TOKEN = b"open-sesame-open-sesame"


def _stream(data: bytes, *, format: Format) -> object:  # noqa: A002
    """Read lines in three batches, as a service would, and write what was read."""
    third = data.find(b"\n", len(data) // 3) + 1
    layout = find_layout(data[:third] or data, format=format, names={}, source="stdin", is_certain=False)
    others = (
        () if layout is None else tuple(name for name in inside_names(layout) if name not in ("user", "query", "time"))
    )
    for batch in (data[:third], data[third:]):
        parsed = parse(batch, layout=layout, keep=others)
        assert len(parsed.bad_lines) <= parsed.n_read
        if layout is not None:
            columns = ColumnPolicy(ids=Ids.KEEP, keep=others)
            write_lines(parsed.frame, layout=layout, columns=columns, now=_NOW, has_header=True)
    return None


def _batches(source: FilesSource) -> list[tuple[bytes, str]]:
    found = []
    while (batch := source.take(timeout=0)) is not None:
        found.append((batch.data, batch.position))
    source.close()
    return found


def _from_file(data: bytes, *, path: Path) -> object:
    """Read a file in small batches; whoever resumes in the middle gets the rest."""
    path.write_bytes(data)
    source = FilesSource(path, batch_bytes=40)
    source.open(position=None, keys=())
    whole = _batches(source)
    if whole:
        middle = len(whole) // 2
        source.open(position=whole[middle][1], keys=())
        assert _batches(source) == whole[middle + 1 :]
    return None


def _resume(data: bytes, *, path: Path) -> object:
    """Give every source a position that a store might hold."""
    position = data.decode(errors="replace")
    if "-" in position[:20]:
        _position(position)
    elif position[:1].isdecimal():
        PostQueue().open(position=position, keys=())
    else:
        for source in (FilesSource(path), FollowedFile(path)):
            source.open(position=position, keys=())
            source.close()
    return None


def _unpack(data: bytes) -> object:
    """Unpack a body in pieces, within small limits."""
    limits = HttpLimits(max_body_bytes=1 << 16, max_gzip_members=5)
    for size in (max(1, len(data)), 7 + len(data) // 50):
        unpacker, found, refused = Unpacker(limits), b"", ""
        try:
            for begin in range(0, min(len(data), 1 << 14), size):
                found += unpacker.add(data[begin : begin + size])
            unpacker.finish()
        except HTTPException as error:
            refused = error.detail
        assert len(found) <= (1 << 16) + (1 << 20)
        as_lines(found)
    return refused


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def _answer(data: bytes) -> object:
    """Give the app a request as it stands on the wire; nothing it can hold is a fault of the service."""
    wire = h11.Connection(h11.SERVER)
    try:
        wire.receive_data(data)
        head, body = wire.next_event(), []
        while isinstance(head, h11.Request) and isinstance(part := wire.next_event(), h11.Data):
            body.append(bytes(part.data))
    except h11.RemoteProtocolError:
        return None
    if not isinstance(head, h11.Request):
        return None
    posts, released = PostQueue(), ReleasedQueue()
    posts.open(position=None, keys=())
    released.open(delivered=0)
    address = Address(token=_TOKEN, limits=HttpLimits(max_body_bytes=1 << 16))
    path, _, query = head.target.partition(b"?")
    scope = {
        "type": "http", "http_version": "1.1", "method": head.method.decode(), "path": path.decode("latin-1"),
        "raw_path": path, "root_path": "", "scheme": "http", "query_string": query, "headers": list(head.headers),
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8080),
    }  # fmt: skip
    told: list[Any] = []

    async def send(message: Any) -> None:
        told.append(message)

    async def receive() -> Any:
        if body:
            return {"type": "http.request", "body": body.pop(0), "more_body": True}
        return {"type": "http.request", "body": b"", "more_body": False}

    app = build_app(AppState(address=address, posts=posts, released=released, queue_seconds=0.0))
    _loop().run_until_complete(asyncio.wait_for(app(scope, receive, send), 60))
    posts.close()
    assert told[0]["status"] != 500
    return b"".join(message.get("body", b"") for message in told[1:])


def _requests() -> list[bytes]:
    body = text('{"user":"@","query":"@"}\n')
    packed = gzip.compress(body, mtime=0)
    head = (
        "Host: localhost:8080\r\nAuthorization: Bearer " + _TOKEN.decode() + "\r\nOrigin: http://localhost:8080\r\n"
        "Sec-Fetch-Site: same-origin\r\nIdempotency-Key: abc\r\nContent-Type: application/x-ndjson; charset=utf-8\r\n"
    )
    post = f"POST /events HTTP/1.1\r\n{head}"
    return [
        f"{post}Content-Length: {len(body)}\r\n\r\n".encode() + body,
        f"{post}Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode() + packed,
        f"GET /released?after=0&wait=0 HTTP/1.1\r\n{head}\r\n".encode(),
        b"GET /metrics HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n",
    ]


def _certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    begin = datetime.datetime(2026, 1, 1)
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    built = built.serial_number(1).not_valid_before(begin).not_valid_after(begin + datetime.timedelta(days=9))
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(pem, pkcs8, serialization.NoEncryption())
    return built.sign(key, hashes.SHA256()).public_bytes(pem), secret


def targets(folder: Path) -> list[Target]:
    """Return the targets; files are written into the folder."""
    followed = folder / "followed.jsonl"
    followed.write_bytes(LOGS[Format.JSONL][0])
    pair = cache(_certificate)

    def private(name: str, data: bytes) -> Path:
        path = folder / name
        path.write_bytes(data)
        path.chmod(0o600)
        return path

    def tls(data: bytes, *, is_key: bool) -> object:
        cert, key = pair()
        files = private("cert.pem", cert if is_key else data), private("key.pem", data if is_key else key)
        return repr(TlsFiles(cert=files[0], key=files[1]).context())

    def positions() -> list[bytes]:
        source = FilesSource(followed, batch_bytes=40)
        source.open(position=None, keys=())
        return [*(place.encode() for _, place in _batches(source)), b"17", b"1526919030474-55"]

    def redis_entry(data: bytes) -> object:
        fields = data.split(b"\x1f")
        _lines(fields[: len(fields) // 2 * 2])
        return None

    lines = [
        Target(name=f"stream.{one}", read=partial(_stream, format=one), seeds=partial(list, LOGS[one]))
        for one in LINE_FORMATS
    ]
    packed = [gzip.compress(LOGS[Format.CSV][0] * 3, mtime=0)]
    address = b"redis://:" + SECRET.encode() + b"@127.0.0.1:6379/0\n"
    return [
        *lines,
        Target(name="file.plain", read=partial(_from_file, path=folder / "in.csv"), seeds=lambda: LOGS[Format.CSV]),
        Target(name="file.gzip", read=partial(_from_file, path=folder / "in.csv.gz"), seeds=lambda: packed),
        Target(name="position", read=partial(_resume, path=followed), seeds=positions, quotes=True),
        Target(name="redis.entry", read=redis_entry, seeds=lambda: [text('data\x1f{"user":"@"}'), text("user\x1f@")]),
        Target(
            name="http.gzip", read=_unpack, seeds=lambda: [gzip.compress(text("@\n") * n, mtime=0) for n in (1, 2000)]
        ),
        Target(
            name="http.request",
            read=_answer,
            seeds=_requests,
            words=(
                b"Origin: http://[\r\n",
                b"Host: ",
                b"Transfer-Encoding: chunked\r\n",
                b"after=",
                b"wait=",
                b"http://",
            ),
        ),
        Target(
            name="token",
            read=lambda data: len(find_token(private("token", data)) or b""),
            seeds=lambda: [_TOKEN + b"\n"],
        ),
        Target(
            name="address",
            read=lambda data: len(find_address(f"@{private('address', data)}", what="source")),
            seeds=lambda: [address],
        ),
        Target(name="tls.cert", read=partial(tls, is_key=False), seeds=lambda: [pair()[0]]),
        Target(name="tls.key", read=partial(tls, is_key=True), seeds=lambda: [pair()[1]]),
    ]

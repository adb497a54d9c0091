"""Sources, sinks and stores by the addresses that people type."""

import os
import stat
from collections.abc import Callable
from glob import has_magic
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from queryveil.errors import BadFile, BadParameter
from queryveil.service.connectors import file_sinks, file_sources
from queryveil.service.http.addresses import HttpLimits, check_private
from queryveil.service.ports import Sink, Source, Store
from queryveil.service.stores import MemoryStore, postgres, sqlite

_SERVERS = {
    "redis": "connectors.redis.Redis",
    "rediss": "connectors.redis.Redis",
    "kafka": "connectors.kafka.Kafka",
    "http": "http.server.Http",
    "https": "http.server.Http",
}
BROKERS = tuple(_SERVERS)
"""What names a server in an address; all else is a file."""
_RELEASE = "release:"
_STREAMS = ("redis://", "rediss://", "kafka://")


def find_address(text: str, *, what: str) -> str:
    """Return an address as it was typed, or from where it was said to be: `@FILE` or `env:VARIABLE`.

    Privacy: what is typed can be seen in the list of processes, and an address may hold a password.
    """
    if text.startswith("env:"):
        found = os.environ.get(text.removeprefix("env:"), "").strip()
        if not found:
            raise BadParameter(what, text, allowed="env: and a variable of the environment that holds an address")
        return found
    if not text.startswith("@"):
        return text
    path = Path(text[1:])
    check_private(path)
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        found = ""
    if not found or len(found.splitlines()) != 1:
        raise BadFile(str(path), "there is no address in this file; write it there in one line")
    return found


def open_source(
    url: str,
    *,
    follow: bool = False,
    batch_bytes: int = 1 << 20,
    tell: Callable[[str], None] = lambda _: None,
    limits: HttpLimits | None = None,
) -> Source:
    """Return the source at an address: `-`, a file or glob, redis://, kafka:// or http://."""
    scheme = _scheme(url, what="source")
    if follow and (url == "-" or scheme is not None or has_magic(url)):
        raise BadParameter("source", shown(url), allowed="one file with --follow")
    if scheme is not None:
        source: Source = _server(scheme, url, kind="Source", limits=limits)
        return source
    if follow:
        return file_sources.FollowedFile(url, batch_bytes=batch_bytes, tell=tell)
    if url == "-" or _is_pipe(Path(url)):
        descriptor = None if url == "-" else os.open(url, os.O_RDONLY | os.O_CLOEXEC)
        return file_sources.StdinSource(batch_bytes=batch_bytes, descriptor=descriptor)
    return file_sources.FilesSource(url, batch_bytes=batch_bytes)


def open_sink(url: str, *, limits: HttpLimits | None = None) -> Sink:
    """Return the sink at an address: `-`, a file, a folder (`DIR/` or release:DIR), redis://, kafka:// or http://."""
    scheme = _scheme(url, what="sink")
    if scheme is not None:
        sink: Sink = _server(scheme, url, kind="Sink", limits=limits)
        return sink
    if url == "-":
        return file_sinks.StdoutSink()
    if _is_pipe(Path(url)):
        return file_sinks.StdoutSink(descriptor=os.open(url, os.O_WRONLY | os.O_CLOEXEC))
    if url.startswith(_RELEASE) or url.endswith("/"):
        return file_sinks.ReleaseSink(url.removeprefix(_RELEASE))
    return file_sinks.FileSink(url)


def open_store(url: str) -> Store:
    """Return the store at an address: memory:, sqlite:FILE, a file, or postgresql://."""
    if url == "memory:":
        return MemoryStore()
    if url.startswith(("postgresql://", "postgres://")):
        return postgres.PostgresStore(url)
    path = url.removeprefix("sqlite:")
    if "://" in path or not path:
        raise BadParameter("store", shown(url), allowed="sqlite:FILE, postgresql://.. or memory:")
    return sqlite.SqliteStore(path)


def shown(url: str) -> str:
    """Return an address as it may be shown: without user, password and query.

    >>> shown("redis://me:secret@cache.example:6379/0/searches?token=1")
    'redis://cache.example:6379/0/searches'
    """
    if "://" not in url:
        return url
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2].partition('?')[0]}{slash}{path.partition('?')[0].partition('#')[0]}"


def name_of(url: str, opened: object) -> str:
    """The name under which a store knows a source or sink: servers as they call themselves, files by full path."""
    if url == "-" or "://" in url:
        return str(getattr(opened, "name", None) or shown(url))
    return str(Path(url.removeprefix(_RELEASE)).absolute())


def check_apart(source: str, sink: str) -> None:
    """Raise if the source would read what the sink writes: every event would be released again and again.

    >>> check_apart("logs/*.tsv", "logs/released.tsv")
    Traceback (most recent call last):
    queryveil.errors.BadParameter: sink must be a place that the source does not read, got logs/released.tsv
    """
    if "-" in (source, sink):
        return
    if "://" in source or "://" in sink:
        read, written_to = _place(source, stream="queries"), _place(sink, stream="released")
        is_same = source.startswith(_STREAMS) and read == written_to
    else:
        written = Path(sink.removeprefix(_RELEASE)).absolute()
        # The log of a release folder has one name and an ending.
        files = (written, *(written / f"log.{ending}" for ending in ("tsv", "csv", "txt", "jsonl")))
        is_same = any(file.match(str(Path(source).absolute())) for file in files)
    if is_same:
        raise BadParameter("sink", shown(sink), allowed="a place that the source does not read")


def _place(url: str, *, stream: str) -> tuple[str, ...]:
    """Return server and topic, or server, database and stream, which has another default at a source than at a sink."""
    parts = urlsplit(url)
    server, path = parts.netloc.rpartition("@")[2], parts.path.strip("/")
    if parts.scheme == "kafka":
        return server, path
    return server, path or "0", dict(parse_qsl(parts.query)).get("stream", stream)


def _scheme(url: str, *, what: str) -> str | None:
    scheme = urlsplit(url).scheme if "://" in url else None
    if not url or (scheme is not None and scheme not in _SERVERS):
        got = f"{scheme}://" if url else "nothing"
        raise BadParameter(what, got, allowed="-, a file, redis://.., kafka://.. or http://..")
    return scheme


def _server(scheme: str, url: str, *, kind: str, limits: HttpLimits | None) -> Any:
    module, _, name = _SERVERS[scheme].rpartition(".")
    made = getattr(import_module(f"queryveil.service.{module}"), name + kind)
    return made(url, limits=limits) if scheme.startswith("http") else made(url)


def _is_pipe(path: Path) -> bool:
    try:
        return not stat.S_ISREG(mode := path.stat().st_mode) and not stat.S_ISDIR(mode)
    except (OSError, ValueError):
        return False

"""Files of every format that are wrong as a whole: empty, cut, badly packed, or with another header."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
from tests.hostile.malformed_logs import ANYTHING, ROWS, Kind, Log, joined


def refused(kind: str, log: Log, data: bytes, *, name: str | None = None) -> Log:
    return replace(log, kind=kind, data=data, name=name or log.name, is_whole=False)


def of_files(kind: Kind) -> Iterator[Log]:
    """Yield files that are wrong as a whole, or written in another way."""
    lines = kind.lines(ROWS)
    log = joined(kind, lines, about="")
    yield refused("file: empty", log, b"")
    yield refused("file: mark of byte order alone", log, b"\xef\xbb\xbf")
    yield refused("file: UTF-16", log, log.data.decode().encode("utf-16"))
    yield replace(log, kind="file: mark of byte order", data=b"\xef\xbb\xbf" + log.data)
    yield joined(kind, lines, about="file: CRLF", ends=[b"\r\n"])
    yield joined(kind, lines, about="file: mixed line ends", ends=[b"\r\n", b"\n"])
    yield replace(log, kind="file: no last line end", data=log.data.rstrip(b"\n"))
    yield replace(joined(kind, lines, about="file: CR alone", ends=[b"\r"]), rows=ANYTHING, n_bad=1, may_refuse=True)
    for about, header in kind.wrong_headers.items():
        yield refused(about, log, header + b"\n" + log.data.partition(b"\n")[2])
    if kind.header:
        yield replace(log, kind="file: header alone", data=kind.header + b"\n", rows=())
        yield replace(log, kind="file: header twice", data=log.data + kind.header + b"\n", n_bad=1)
    yield from _packed(log)


def _packed(log: Log) -> Iterator[Log]:
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gz": lambda data: gzip.compress(data, mtime=0),
        "bz2": bz2.compress,
        "zst": lambda data: bytes(pa.Codec("zstd").compress(data, asbytes=True)),
    }
    half = log.data.index(b"\n") + 1
    for ending, pack in packers.items():
        name, data = f"{log.name}.{ending}", pack(log.data)
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 0x10
        yield replace(log, kind=f"{ending}: sound", name=name, data=data)
        yield replace(log, kind=f"{ending}: two members", name=name, data=pack(log.data[:half]) + pack(log.data[half:]))
        yield replace(log, kind=f"{ending}: an empty member", name=name, data=data + pack(b""))
        yield refused(f"{ending}: cut in the middle", log, data[: len(data) // 2], name=name)
        yield refused(f"{ending}: cut at the end", log, data[:-3], name=name)
        yield refused(f"{ending}: the magic alone", log, data[:4], name=name)
        damaged = refused(f"{ending}: a bit flipped", log, bytes(flipped), name=name)
        # Without a checksum, as Arrow writes zstd, nobody can tell.
        yield replace(damaged, is_whole=True, rows=ANYTHING, may_refuse=True) if ending == "zst" else damaged
        yield replace(
            log, kind=f"{ending}: garbage behind it", name=name, data=data + b"\0garbage" * 9, may_refuse=True
        )
        yield refused(f"{ending}: not packed at all", log, log.data, name=name)
    line = b"a" * (24 << 20)
    bomb = gzip.compress(log.data + line + b"\n", mtime=0)
    yield replace(log, kind="gz: a line of 24 MB", name=f"{log.name}.gz", data=bomb, n_bad=1)
    many = gzip.compress(b"", mtime=0) * 2000 + gzip.compress(log.data, mtime=0)
    yield replace(log, kind="gz: 2,000 empty members", name=f"{log.name}.gz", data=many)

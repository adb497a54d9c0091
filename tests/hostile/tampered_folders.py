"""Release folders with other bytes, other files or other signatures in them, and whether they are still true then."""

from __future__ import annotations

import gzip
import io
import os
import random
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from tests.hostile.malformed_logs import SECRET
from tests.hostile.manifest_truths import Truth
from tests.hostile.releases import MANIFEST, Base, fit
from tests.hostile.tampered_manifests import Tampering


def changed_bytes(base: Base, rng: random.Random, n: int) -> Iterator[Tampering]:
    """Yield damage that the checksum tells, and ways to hide bytes that it does not."""
    data, said = base.data.read_bytes(), base.manifest

    def case(name: str, other: bytes, truth: Truth = "false", why: str = "", *, fits: bool = True) -> Tampering:
        kind = "bytes changed, checksum fits" if fits else "bytes changed"
        write = (
            (lambda folder: fit(folder, base.manifest, other))
            if fits
            else (lambda folder: _overwrite(folder, base, other))
        )
        return Tampering(kind=kind, base=base, name=name, truth=truth, why=why, apply=write)

    for _ in range(n):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        yield case("a bit", bytes(flipped), fits=False)
    for name, other in {"cut": data[:-1], "empty": b"", "one byte more": data + b"\n", "NUL": data + b"\0"}.items():
        yield case(name, other, fits=False)
    yield case("empty", b"")
    yield case("cut in half", data[: len(data) // 2])
    yield case("NUL behind it", data + b"\0")
    yield case("another file", b"PAR1" + bytes(range(50)) + b"PAR1")
    yield case("a line of text behind it", data + f"{SECRET}\n".encode())
    form = said["data"]["format"]
    if form in ("csv", "tsv", "jsonl", "aol") and said["data"]["kind"] == "log" and not data.startswith(b"\x1f\x8b"):
        yield case(
            "mark of byte order", b"\xef\xbb\xbf" + data, "true", "it says how the text is encoded, and nothing else"
        )
        yield case("CRLF", data.replace(b"\n", b"\r\n"), "true", "the values are the same")
        yield case("UTF-16", data.decode().encode("utf-16"))
    if form == "jsonl" and said["data"]["kind"] != "groups":
        yield case("blanks", data.replace(b"{", b"{ ", 3), "true", "the values are the same")
        yield case("a key twice", data.replace(b"{", b'{"user": "' + SECRET.encode() + b'", ', 1))
    if data.startswith(b"\x1f\x8b"):
        plain, out = gzip.decompress(data), io.BytesIO()
        with gzip.GzipFile(filename=SECRET, mode="wb", fileobj=out) as file:
            file.write(plain)
        yield case("a name in gzip", out.getvalue())
        yield case("garbage behind gzip", data + SECRET.encode())
        yield case("a member with a name behind gzip", data + out.getvalue()[:20] + gzip.compress(b""))
    if form == "parquet":
        yield from (case(name, other) for name, other in _parquet_hides(data).items())


def _overwrite(folder: Path, base: Base, data: bytes) -> None:
    (folder / base.data.name).write_bytes(data)


def _parquet_hides(data: bytes) -> dict[str, bytes]:
    out, table = io.BytesIO(), pq.read_table(io.BytesIO(data))
    pq.write_table(table.replace_schema_metadata({"note": SECRET}), out)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    found = {"metadata of Parquet": out.getvalue(), "a gap in Parquet": data[:footer] + SECRET.encode() + data[footer:]}
    again = io.BytesIO()
    pq.write_table(table, again, write_statistics=True, store_schema=False)
    whole = again.getvalue()
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    texts = [name for name in table.column_names if str(table.schema.field(name).type) in ("string", "large_string")]
    for name in texts:
        least = str(min(table[name].drop_null().to_pylist())).encode()
        hidden = (SECRET.encode() * 20)[: len(least)]
        if least and least in whole[start:]:
            # Of the least text of a column more is said than the column has.
            found[f"statistics of {name}"] = whole[:start] + whole[start:].replace(least, hidden)
    return found


def _put(folder: Path, *, name: str, kind: str) -> None:
    """Put a file there, or something that is none."""
    place = folder / name
    if kind == "folder":
        place.mkdir()
        (place / "raw.tsv").write_text(SECRET)
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            here = os.open(folder, os.O_RDONLY)
            try:
                # The path itself may be too long for a socket.
                made.bind(f"/proc/self/fd/{here}/{name}")
            finally:
                os.close(here)
    elif kind == "file":
        place.write_text(SECRET)
    else:
        place.symlink_to({"link": MANIFEST, "link to a device": "/dev/zero", "dangling": "nowhere", "loop": name}[kind])


KINDS = ("file", "folder", "pipe", "socket", "link", "link to a device", "dangling", "loop")
NAMES = (
    "raw.tsv",
    ".hidden",
    "nul",
    "a\x1b[2Jb",
    "\u202elog",
    "report.txt",
    "Report.html",
    "manifest.json~",
    "x" * 255,
    "-rf",
    "log.csv ",
    "\udce9",
)


def changed_folders(base: Base) -> Iterator[Tampering]:
    """Yield folders with more in them, or with something else in the place of a file."""

    def case(
        name: str,
        apply: Callable[[Path], None],
        truth: Truth = "false",
        why: str = "",
        kind: str = "folder: more in it",
    ) -> Tampering:
        return Tampering(kind=kind, base=base, name=name, truth=truth, why=why, apply=apply)

    for kind in KINDS:
        yield case(f"a {kind}", partial(_put, name="more", kind=kind))
        for name in (MANIFEST, base.data.name):

            def replace(folder: Path, name: str = name, kind: str = kind) -> None:
                (folder / name).unlink()
                _put(folder, name=name, kind=kind)

            yield case(f"{name} is a {kind}", replace, kind="folder: a file replaced")
        if kind != "file":
            yield case(f"report.html is a {kind}", partial(_put, name="report.html", kind=kind))
            yield case(f"manifest.sig is a {kind}", partial(_put, name="manifest.sig", kind=kind))
    for name in NAMES:
        yield case(f"named {name!a}"[:40], partial(_put, name=name, kind="file"))
    yield case(
        "a report", partial(_put, name="report.html", kind="file"), "true", "verify says that no promise covers it"
    )

    def elsewhere(folder: Path) -> None:
        (folder / base.data.name).rename(folder.parent / "elsewhere")
        (folder / base.data.name).symlink_to(folder.parent / "elsewhere")

    yield case("the data is a link to itself", elsewhere, kind="folder: a file replaced")
    yield case("the data twice", lambda folder: (folder / "copy").hardlink_to(folder / base.data.name))
    yield case("no data", lambda folder: (folder / base.data.name).unlink(), kind="folder: a file replaced")
    yield case("no manifest", lambda folder: (folder / MANIFEST).unlink(), kind="folder: a file replaced")


def changed_signatures(base: Base) -> Iterator[Tampering]:
    """Yield signatures that are broken; they are judged with the maker's key, but for those that are none."""
    good = base.signature
    flipped = bytes([good[0] ^ 1]) + good[1:]
    signatures = {
        "a bit": flipped,
        "zeros": bytes(64),
        "cut": good[:-1],
        "longer": good + b"\0",
        "empty": b"",
        "of another": bytes(range(64)),
    }
    for name, data in signatures.items():
        yield Tampering(
            kind="signature broken",
            base=base,
            name=name,
            truth="signature",
            apply=partial(_sign, data=data),
        )
    yield Tampering(
        kind="signature broken",
        base=base,
        name="none",
        truth="signature",
        apply=lambda folder: (folder / "manifest.sig").unlink(),
    )
    for name, data in {"a text instead": SECRET.encode() * 3, "a long text instead": SECRET.encode() * 10_000}.items():
        yield Tampering(
            kind="signature broken",
            base=base,
            name=name,
            truth="false",
            apply=partial(_sign, data=data),
        )


def _sign(folder: Path, data: bytes) -> None:
    (folder / "manifest.sig").write_bytes(data)

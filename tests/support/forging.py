"""Releases that are tampered with, manifest and checksums made to fit, and what is said of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from queryveil.checks import verify
from queryveil.data import Format, Layout, QueryLog
from queryveil.formats import layout_for
from queryveil.methods import Km
from queryveil.release import MANIFEST, ColumnPolicy, Release

WORDS = ("kestrel", "lantern", "mulberry", "nutmeg")
SECRETS = (*WORDS, "persona", "shop", "quince")
CSV, JSONL = Layout(format=Format.CSV), Layout(format=Format.JSONL)
AOL, EXCITE, UBI = layout_for(Path("log.tsv")), layout_for(Path("log.log")), Layout(format=Format.UBI)


def a_log(layout: Layout = CSV) -> QueryLog:
    rows = [(f"persona{i:02}", f"{WORDS[(i + j) % 4]} {WORDS[j % 4]}", i, j) for i in range(12) for j in range(3)]
    frame = pl.DataFrame(
        {
            "user": [row[0] for row in rows],
            "query": [row[1] for row in rows],
            "time": [datetime(2006, 3, 1) + timedelta(minutes=37 * (1 + 3 * i + j)) for _, _, i, j in rows],
            "rank": pl.Series([row[3] for row in rows], dtype=pl.Int64),
            "url": [f"https://shop.example/{j}" for _, _, _, j in rows],
        }
    )
    return QueryLog(frame=frame, layout=layout)


Change = Callable[[dict[str, Any]], None]


def forge(folder: Path, *, data: Callable[[bytes], bytes] | None = None, manifest: Change | None = None) -> None:
    """Change the data or the manifest, and make the checksum fit, as a careful forger would."""
    said = json.loads((folder / MANIFEST).read_text())
    file = folder / said["data"]["name"]
    if data is not None:
        file.write_bytes(data(file.read_bytes()))
        said["data"]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    if manifest is not None:
        manifest(said)
    (folder / MANIFEST).write_text(json.dumps(said))


def released(folder: Path, layout: Layout = CSV, columns: ColumnPolicy | None = None) -> Path:
    release = Km(k=2, m=1, columns=columns or ColumnPolicy()).anonymize(a_log(layout))
    path = release.save(folder / "out")
    assert verify(path).holds
    return path


def fault(folder: Path | Release, **more: Any) -> str:
    """Return the one fault of a release that keeps its promise otherwise."""
    verdict = verify(folder, **more)
    assert not verdict.holds
    assert verdict.n_violations == 0, verdict.in_words()
    (found,) = verdict.faults
    assert found in verdict.in_words()
    assert "\n" not in found
    assert not any(text in found.lower() for text in SECRETS)
    return found


def with_column(data: bytes) -> bytes:
    first, *rest = data.decode().splitlines()
    return "\n".join([f"{first},realname", *(f"{line},quince{i}" for i, line in enumerate(rest))]).encode()

"""Small releases of every method, to be tampered with, and the promises counted again in the plainest way."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from queryveil import (
    Clump,
    Dp,
    Ec2026,
    Google2024,
    Kdelta,
    Km,
    Partition,
    Plink,
    Pseudonymise,
    QueryThreshold,
    Swap,
    TokenHash,
)
from queryveil.data import Format, Layout, QueryLog
from queryveil.formats import layout_for, read_log, write_log
from queryveil.methods.dp.dp import synthesized
from queryveil.release import ColumnPolicy, Release
from queryveil.release.signing import make_keys, sign_release

WORDS = ("kestrel", "lantern", "mulberry", "nutmeg")
KEY = b"a key of hostile tests"
MANIFEST = "manifest.json"
_KEYED = ColumnPolicy(ids="keyed", key=KEY, time="hour")  # type: ignore[arg-type]
_OPEN = ColumnPolicy(ids="keep", time="keep", keep=("url", "rank"))  # type: ignore[arg-type]
_BARE, _BY_DAY = ColumnPolicy(), ColumnPolicy(time="day")  # type: ignore[arg-type]
_EVENTS = ColumnPolicy(time="day", keep=("events",))  # type: ignore[arg-type]
Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Base:
    """A release that is sound, in a folder of its own.

    - `original`: the file that it was made from, if verify can read it without being told how.
    - `options`: what verify always needs for it.
    - `signature`, `public`: what its maker signed, and the file of the key to check that with.
    """

    name: str
    folder: Path
    original: Path | None
    signature: bytes
    public: Path
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def manifest(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads((self.folder / MANIFEST).read_text())
        return said

    @property
    def data(self) -> Path:
        return self.folder / str(self.manifest["data"]["name"])


def _log(layout: Layout) -> QueryLog:
    rows: list[tuple[str, str, int, int]] = []
    for i in range(12):
        rows += [(f"persona{i:02}", f"{WORDS[(i + j) % 4]} {WORDS[j % 4]}", i, j) for j in range(3)]
        rows.append((f"persona{i:02}", f"rarity{chr(97 + i)}", i, 3))
    frame = pl.DataFrame(
        {
            "user": [row[0] for row in rows],
            "query": [row[1] for row in rows],
            "time": [datetime(2006, 3, 1) + timedelta(minutes=37 * (1 + 3 * i + j)) for _, _, i, j in rows],
            "rank": pl.Series([row[3] for row in rows], dtype=pl.Int64),
            "url": [f"https://shop.example/{j}" for *_, j in rows],
        }
    )
    return QueryLog(frame=frame, layout=layout)


def _with_events(log: QueryLog) -> QueryLog:
    """Return the log with its clicks as events, and a view and an action of no known name for each row."""
    clicked = log.frame.with_columns(search=pl.int_range(pl.len()).cast(pl.String))
    columns = clicked.select("search", "time", "rank", object="url")
    actions = [columns.with_columns(action=pl.lit(name)) for name in ("view", "click", "rarity opened")]
    return QueryLog.from_frame(clicked.drop("rank", "url"), events=pl.concat(actions), layout=log.layout)


_CSV, _JSONL, _PARQUET = (Layout(format=each) for each in (Format.CSV, Format.JSONL, Format.PARQUET))
_MADE: dict[str, tuple[Layout, Callable[[QueryLog], Release]]] = {
    "km csv": (_CSV, lambda log: Km(k=2, m=2, seed=1).anonymize(log)),
    "km whole histories, jsonl": (_JSONL, lambda log: Km(k=2, m=None, seed=1).anonymize(log)),
    "km windows, parquet": (_PARQUET, lambda log: Km(k=2, m=1, window="7d", columns=_BY_DAY, seed=1).anonymize(log)),
    "km all columns, aol": (layout_for(Path("x.tsv")), lambda log: Km(k=2, m=1, seed=1, columns=_OPEN).anonymize(log)),
    "km no times, excite": (layout_for(Path("x.log")), lambda log: Km(k=2, m=1, seed=1, columns=_BARE).anonymize(log)),
    "km ubi": (Layout(format=Format.UBI), lambda log: Km(k=2, m=1, seed=1).anonymize(log)),
    "km events, ubi": (Layout(format=Format.UBI), lambda log: Km(k=2, m=1, seed=1, columns=_EVENTS).anonymize(log)),
    "km tsv gz": (Layout(format=Format.TSV, compression="gz"), lambda log: Km(k=3, m=1, seed=1).anonymize(log)),
    "clump csv": (_CSV, lambda log: Clump(k=2, seed=1).anonymize(log)),
    "partition jsonl": (_JSONL, lambda log: Partition(k=2, seed=1).anonymize(log)),
    "clump parquet": (_PARQUET, lambda log: Clump(k=3, seed=1).anonymize(log)),
    "kdelta csv": (_CSV, lambda log: Kdelta(k=2, seed=1).anonymize(log)),
    "kdelta same texts, jsonl": (
        _JSONL,
        lambda log: Kdelta(k=2, same_texts=True, columns=_KEYED, seed=1).anonymize(log),
    ),
    "plink": (_JSONL, lambda log: Plink(p=0.6, seed=1).anonymize(log)),
    "plink strict": (_JSONL, lambda log: Plink(p=0.7, strict=True, seed=1).anonymize(log)),
    "swap csv": (_CSV, lambda log: Swap(k=2, columns=_KEYED, seed=1).anonymize(log)),
    "dp clicks, csv": (_CSV, lambda log: Dp(epsilon=20, delta=0.1, clicks=0.5, seed=1).anonymize(log)),
    "dp jsonl": (_JSONL, lambda log: Dp(epsilon=20, delta=0.1, seed=1).anonymize(log)),
    "dp parquet": (_PARQUET, lambda log: Dp(epsilon=20, delta=0.1, mechanism="laplace", seed=1).anonymize(log)),  # type: ignore[arg-type]
    "dp made-up rows": (
        _CSV,
        lambda log: synthesized(Dp(epsilon=20, delta=0.1, seed=1).anonymize(log), n_users=6, seed=1),
    ),
    "google csv": (_CSV, lambda log: Google2024(n_users=3, n_row_users=3).anonymize(log)),
    "ec jsonl": (_JSONL, lambda log: Ec2026(n_users=3, cell_users=2, seed=1).anonymize(log)),
    "pseudonymise": (_CSV, lambda log: Pseudonymise(seed=1).anonymize(log)),
    "query threshold": (_JSONL, lambda log: QueryThreshold(k=2, seed=1).anonymize(log)),
    "token hash": (_CSV, lambda log: TokenHash(seed=1).anonymize(log)),
}
_JUDGED_BESIDE = ("swap", "google", "ec ")
"""Releases that can only be judged beside their original."""
ITEMS = "km items, plain"
EVENTS = "km events, ubi"


def bases(folder: Path, *, only: Iterable[str] | None = None) -> list[Base]:
    """Make the releases; each is signed, and the signature put aside."""
    private, public = make_keys(folder / "office")
    original = folder / "original.csv"
    _log(_CSV).frame.with_columns(pl.col("time").dt.to_string("%Y-%m-%d %H:%M:%S")).write_csv(original)
    found = []
    for name in only or [*_MADE, ITEMS]:
        source: Path | None = original
        if name == ITEMS:
            (folder / "items.txt").write_text("milk tea\ntea milk rye\nmilk rye\ntea rye\n" * 3)
            made, source = Km(k=2, m=2, seed=1).anonymize(read_log(folder / "items.txt", format="transactions")), None
        else:
            layout, make = _MADE[name]
            log = _with_events(_log(layout)) if name == EVENTS else _log(layout)
            made = make(log)
            if name == EVENTS:
                source = folder / "original.ndjson"
                write_log(log, source)
        place = made.save(folder / name)
        signature = sign_release(place, key=private)
        options: dict[str, Any] = {"original": str(original)} if name.startswith(_JUDGED_BESIDE) else {}
        if made.manifest.columns.ids == "keyed" and options:
            options["key"] = KEY
        found.append(
            Base(
                name=name,
                folder=place,
                original=source,
                signature=signature.read_bytes(),
                public=public,
                options=options,
            )
        )
        signature.unlink()
    return found


def read_rows(data: bytes, form: str) -> Rows:
    """Read a data file of a release in the plainest way; values of CSV and TSV are texts."""
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    if form == "parquet":
        rows: Rows = pq.read_table(io.BytesIO(data)).to_pylist()
        return rows
    if form == "jsonl":
        return [json.loads(line) for line in data.decode().splitlines()]
    separator = {"csv": ",", "tsv": "\t", "aol": "\t"}[form]
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if form == "csv" else csv.QUOTE_NONE
    return [
        dict(row)
        for row in csv.DictReader(io.StringIO(data.decode(), newline=""), delimiter=separator, quoting=quoting)
    ]


def write_rows(rows: Rows, like: bytes, form: str) -> bytes:
    """Write rows in the form of another file, with the columns of the rows."""
    if form == "parquet":
        schema = pq.read_schema(io.BytesIO(like))
        names = list(rows[0]) if rows else schema.names
        fields = [schema.field(name) if name in schema.names else pa.field(name, pa.string()) for name in names]
        out = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), out)
        return out.getvalue()
    if form == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows).encode()
    separator = {"csv": ",", "tsv": "\t", "aol": "\t"}[form]
    names = list(rows[0]) if rows else []
    lines = [names, *([row[name] for name in names] for row in rows)]
    if form == "csv":
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(lines)
        data = text.getvalue().encode()
    else:
        data = "".join(
            separator.join("" if each is None else str(each) for each in line) + "\n" for line in lines
        ).encode()
    return gzip.compress(data, mtime=0) if like.startswith(b"\x1f\x8b") else data


def fit(folder: Path, said: dict[str, Any], data: bytes | None = None) -> None:
    """Write the manifest, and the data with the checksum made to fit."""
    if data is not None:
        (folder / said["data"]["name"]).write_bytes(data)
        said["data"]["sha256"] = hashlib.sha256(data).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(said))


def _day(value: Any) -> date | None:
    if value in (None, ""):
        return None
    return value.date() if isinstance(value, datetime) else date.fromisoformat(str(value)[:10])


def holds_km(rows: Rows, names: dict[str, str], promise: dict[str, Any]) -> bool:
    """Count again who shares each combination of terms; windows are of seven days here."""
    owners = defaultdict[tuple[str, int | None], set[str]](set)
    windows = defaultdict[str, set[int | None]](set)
    for row in rows:
        day = _day(row.get(names.get("time", ""))) if promise.get("window") else None
        window = None if day is None else (day - date(1970, 1, 1)).days // 7
        user = str(row[names["user"]])
        windows[user].add(window)
        owners[user, window].update(str(row[names["query"]] or "").split())
    if any(len(each) > 1 for each in windows.values()):
        return False
    sizes = [None] if promise["m"] is None else list(range(1, promise["m"] + 1))
    for size in sizes:
        shared = Counter[tuple[Any, ...]]()
        for (_, window), terms in owners.items():
            each: Iterable[tuple[str, ...]] = (
                [tuple(sorted(terms))] if size is None else combinations(sorted(terms), size)
            )
            shared.update((window, *some) for some in each if terms)
        if any(n < promise["k"] for n in shared.values()):
            return False
    return True


def holds_transactions(rows: Rows, k: int) -> bool:
    """Count the transactions with the same bag of items."""
    bags = Counter(
        tuple(sorted(row["items"] if isinstance(row["items"], list) else row["items"].split("|"))) for row in rows
    )
    return all(n >= k for n in bags.values())


def holds_kdelta(rows: Rows, names: dict[str, str], promise: dict[str, Any], clusters: str) -> bool:
    """Compare the shares of all users, and the clicks of all queries of a cluster."""
    texts = sorted({str(row[names["query"]]) for row in rows})
    numbers = list(map(str, range(len(texts)))) if promise.get("same_texts") else clusters.split()
    if len(numbers) != len(texts):
        return False
    cluster = dict(zip(texts, numbers, strict=True))
    clicked, cells = defaultdict[str, set[str]](set), defaultdict[str, Counter[tuple[str, str]]](Counter)
    for row in rows:
        text, url = str(row[names["query"]]), str(row.get(names["url"]) or "")
        clicked[text] |= {url} - {""}
        cells[str(row[names["user"]])][cluster[text], url] += 1
    for one, other in combinations(texts, 2):
        together = clicked[one] | clicked[other]
        apart = 1 - Fraction(len(clicked[one] & clicked[other]), len(together)) if together else Fraction(1)
        if cluster[one] == cluster[other] and apart > Fraction(str(promise["delta"])):
            return False
    shares = Counter(
        frozenset((cell, Fraction(n, mine.total())) for cell, n in mine.items()) for mine in cells.values()
    )
    return all(n >= promise["k"] for n in shares.values())


def holds_plink(rows: Rows, promise: dict[str, Any]) -> bool:
    """Count the terms of each group, and compare its weights with its counts."""
    p = Fraction(str(promise["p"]))
    n_members = sum(row["members"] for row in rows)
    average = Fraction(sum(row["size"] for row in rows), max(1, n_members))
    for row in rows:
        members, size, terms, holders = row["members"], row["size"], row["terms"], row.get("holders")
        if not members or not len(terms) <= size <= members * len(terms) or not terms:
            return False
        if abs(sum(terms.values()) * members - size) > 1e-3 * len(terms) * members:
            return False
        if promise["strict"]:
            if holders is None or sum(holders.values()) != size or set(holders) != set(terms):
                return False
            if any(not 1 <= n <= members or Fraction(n, members) > p for n in holders.values()):
                return False
            if any(abs(terms[term] - n / members) > 1e-3 for term, n in holders.items()):
                return False
        elif average / size > p:
            return False
    return True

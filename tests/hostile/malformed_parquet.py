"""Parquet files with defects, written by Arrow and not by the program."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.hostile.malformed_logs import ANYTHING, ROWS, SECRET, Log, Row

_NAMES = ("user", "query", "time", "rank", "url")


def _table(**other: Any) -> pa.Table:
    columns: dict[str, Any] = {name: [row[i] for row in ROWS] for i, name in enumerate(_NAMES)}
    return pa.table(columns | other)


def _written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def _case(kind: str, data: bytes, **more: Any) -> Log:
    return Log(**({"kind": kind, "name": "log.parquet", "data": data, "rows": ROWS} | more))


def _replaced(name: str, values: list[Any]) -> tuple[Row, ...]:
    place = _NAMES.index(name)
    kept = zip(ROWS, values, strict=True)
    return tuple(tuple(value if i == place else each for i, each in enumerate(row)) for row, value in kept)  # type: ignore[misc]


def _of_values() -> Iterator[Log]:
    times = [datetime(2006, 3, day, 7, 17, 12) for day in range(1, 6)]
    told = [time.isoformat() for time in times]
    for unit in ("s", "ms", "us", "ns"):
        column = pa.array(times, pa.timestamp(unit))
        yield _case(f"time in {unit}", _written(_table(time=column)), rows=_replaced("time", told))
    zoned = pa.array([time.replace(tzinfo=UTC) for time in times], pa.timestamp("us", tz="Europe/Berlin"))
    yield _case("time with a zone", _written(_table(time=zoned)), rows=_replaced("time", told))
    days = pa.array([date(2006, 3, day) for day in range(1, 6)])
    yield _case(
        "time as a date",
        _written(_table(time=days)),
        rows=_replaced("time", [f"2006-03-0{i}T00:00:00" for i in range(1, 6)]),
    )
    far = pa.array([10**17, *[1141197432000] * 4], pa.int64()).cast(pa.timestamp("ms"))
    yield _case(
        "time after 9999", _written(_table(time=far)), rows=_replaced("time", ["2006-03-01T07:17:12"] * 5)[1:], n_bad=1
    )
    odd_times = [SECRET, "0000-01-01", "2006-02-30", "2006-03-01T07:17:12Z", None]
    yield _case(
        "times as text, three wrong",
        _written(_table(time=odd_times)),
        n_bad=3,
        rows=_replaced("time", [None, None, None, "2006-03-01T07:17:12", None])[3:],
    )
    yield _case(
        "users as numbers",
        _written(_table(user=[1, 2, 3, 4, 2**62])),
        rows=_replaced("user", ["1", "2", "3", "4", str(2**62)]),
    )
    yield _case(
        "users that are missing",
        _written(_table(user=["u1", None, "", "  ", "u3"])),
        n_bad=3,
        rows=_replaced("user", ["u1", None, None, None, "u3"])[::4],
    )
    yield _case(
        "queries that are missing",
        _written(_table(query=pa.array([None] * 5, pa.string()))),
        rows=_replaced("query", [""] * 5),
    )
    yield _case(
        "queries of a column of nothing",
        _written(_table(query=pa.nulls(5))),
        rows=_replaced("query", [""] * 5),
        may_refuse=True,
    )
    yield _case("queries with NUL", _written(_table(query=["a\0b"] * 5)), rows=_replaced("query", ["a\0b"] * 5))
    yield _case(
        "queries of 1 MB", _written(_table(query=["tea" * 400_000] * 5)), rows=_replaced("query", ["tea" * 400_000] * 5)
    )
    yield _case(
        "ranks as floats", _written(_table(rank=[1.0, None, 3.0, 4.0, 5.0])), rows=_replaced("rank", [1, None, 3, 4, 5])
    )
    yield _case(
        "ranks with a fraction",
        _written(_table(rank=[1.5, 2.0, 3.0, 4.0, 5.0])),
        n_bad=1,
        rows=_replaced("rank", [1, 2, 3, 4, 5])[1:],
    )
    yield _case(
        "ranks that are infinite",
        _written(_table(rank=[float("inf"), 2.0, 3.0, 4.0, 5.0])),
        n_bad=1,
        rows=_replaced("rank", [1, 2, 3, 4, 5])[1:],
    )
    huge = pa.array([2**64 - 1, 2, 3, 4, 5], pa.uint64())
    yield _case(
        "ranks beyond 63 bits", _written(_table(rank=huge)), n_bad=1, rows=_replaced("rank", [1, 2, 3, 4, 5])[1:]
    )
    dictionary = pa.array([row[1] for row in ROWS]).dictionary_encode()
    yield _case("queries as a dictionary", _written(_table(query=dictionary)))
    yield _case("queries as large text", _written(_table(query=pa.array([row[1] for row in ROWS], pa.large_string()))))
    yield _case(
        "queries as bytes", _written(_table(query=pa.array([row[1].encode() for row in ROWS]))), may_refuse=True
    )
    latin = pa.array([b"caf\xe9"] * 5)
    yield _case(
        "queries as bytes that are not UTF-8",
        _written(_table(query=latin)),
        rows=_replaced("query", ["caf\u00e9"] * 5),
        may_refuse=True,
    )
    for kind, column in {"lists": [["x"]] * 5, "objects": [{"x": SECRET}] * 5}.items():
        # Any type becomes text, if there is a text for it.
        yield _case(f"queries as {kind}", _written(_table(query=column)), rows=ANYTHING, may_refuse=True)
        yield _case(f"users as {kind}", _written(_table(user=column)), rows=ANYTHING, may_refuse=True)


def _of_files(rng: random.Random) -> Iterator[Log]:
    whole = _written(_table())
    yield _case("sound", whole)
    yield _case("many groups of rows", _written(_table(), row_group_size=1))
    yield _case("no rows", _written(_table().slice(0, 0)), rows=(), may_refuse=True)
    yield _case("no query", _written(_table().drop_columns(["query"])), is_whole=False)
    yield _case(
        "a column twice", _written(_table().rename_columns(["user", "user", "time", "rank", "url"])), is_whole=False
    )
    for codec in ("none", "gzip", "zstd", "snappy"):
        yield _case(f"packed with {codec}", _written(_table(), compression=codec))
    for share in (0.01, 0.3, 0.6, 0.9, 0.99):
        yield _case("cut", whole[: int(len(whole) * share)], is_whole=False)
    yield _case("four bytes", b"PAR1", is_whole=False)
    yield _case("both marks and nothing between", b"PAR1PAR1", is_whole=False)
    yield _case("a footer of 4 GB", whole[:-8] + b"\xff\xff\xff\xff" + b"PAR1", is_whole=False)
    yield _case("a footer of negative length", whole[:-8] + b"\xff\xff\xff\x7f" + b"PAR1", is_whole=False)
    yield _case("encrypted by its mark", whole[:-4] + b"PARE", is_whole=False)
    checked = _written(_table(), write_page_checksum=True)
    for _ in range(40):
        flipped = bytearray(rng.choice([whole, checked]))
        flipped[rng.randrange(4, len(flipped))] ^= 1 << rng.randrange(8)
        # Which rows a damaged file has nobody can tell: it is refused, or all five are read or counted as bad.
        yield _case("a bit flipped", bytes(flipped), rows=ANYTHING, may_refuse=True)


def parquet_logs(rng: random.Random) -> list[Log]:
    return [*_of_values(), *_of_files(rng)]

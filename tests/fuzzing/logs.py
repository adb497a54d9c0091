"""Readers of logs, transactions and profiles, in every format; and what `verify` counts in a file beside its rows."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.fuzzing.engine import Target
from tests.fuzzing.mutation import SECRET

from queryveil.errors import BadRows
from queryveil.formats import Content, Format, are_profiles, read_log, read_profiles, read_transactions, shape_of

_AOL = b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
_NAMES = ("l", "l.csv", "l.tsv", "l.jsonl", "l.ndjson", "l.log", "l.parquet", "l.txt", "l.csv.gz", "l.zst", "l.bz2")


def text(template: str) -> bytes:
    """Return a seed: the secret where the template has an @."""
    return template.replace("@", SECRET).encode()


LOGS = {
    Format.AOL: [
        _AOL + text("7\t@ kettle\t2006-03-01 07:17:12\t1\thttp://@.example\n7\tpots\t2006-03-01 07:17:13\t\t\n"),
        text("@\t-\t2006-03-01 07:17:12\t\t\r\n8\t@ \xe9t\xe9\t2006-03-01 07:17:12\t10\thttp://a.example\r\n"),
        "8\tcaf\xe9\t2006-03-01 07:17:12\t\t\n".encode("latin-1"),
    ],
    Format.EXCITE: [text("A1B2\t970916105432\t@ pots\n@\t19970916105432\tpans\n")],
    Format.CSV: [
        text('user,query,time,rank,url,shop\n7,"@, ""red"" pots",2006-03-01T07:17:12Z,1,http://@.example,x\n8,@,,,,\n'),
        text('user,query\r\n"@","two\nlines"\r\n8,\r\n'),
    ],
    Format.TSV: [
        text("user_id\tq\ttimestamp\tposition\turl\n7\t@ pots\t1141197432\t3.0\thttp://@.example\n8\t@\t\t\t\n")
    ],
    Format.JSONL: [
        text('{"user":"@","query":"@ pots","time":"2006-03-01T07:17:12+01:00","rank":1,"url":null,"cart":{"a":[1]}}\n'),
        text('{"user":7,"query":"@","time":1141197432000,"rank":"2"}\n{"user":"8","q":"@","n":1,"m":0.5,"b":true}\n'),
    ],
    Format.UBI: [
        text(
            '{"index":{"_index":"ubi_queries"}}\n{"query_id":"1","client_id":"@","user_query":"@","timestamp":'
            '"2006-03-01T07:17:12Z","query_attributes":{}}\n{"index":{"_index":"ubi_events"}}\n{"query_id":"1",'
            '"action_name":"click","event_attributes":{"object":{"object_id":"http://@.example"},"position":{"ordinal":1}}}\n'
        ),
        text('{"query_id":"1","client_id":7,"user_query":"@"}\n{"action_name":"item_click","query_id":"1"}\n'),
    ],
    Format.TRANSACTIONS: [text("milk @ 7\n\n bread\tmilk\r\n")],
}
"""Well-formed text logs."""


def parquet_bytes(columns: dict[str, Any], **options: Any) -> bytes:
    """Return a Parquet file of columns."""
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, **options)
    return buffer.getvalue()


def _parquet_logs() -> list[bytes]:
    then = [datetime(2006, 3, 1, 7, 17, 12, tzinfo=UTC), None]
    plain = {"user": ["7", SECRET], "query": [f"{SECRET} pots", ""], "time": then, "rank": [1, None]}
    odd = {"user": [7, 8], "query": [SECRET, None], "time": ["2006-03-01", "1141197432"], "rank": [1.0, None]}
    nested = {"user": ["7"], "query": [SECRET], "cart": [[{"a": 1}]], "day": [datetime(2006, 3, 1).date()]}
    return [
        parquet_bytes(plain, compression="none"),
        parquet_bytes(plain, compression="zstd", data_page_version="2.0"),
        parquet_bytes(odd, use_dictionary=False, write_statistics=False),
        parquet_bytes(nested, compression="snappy", store_schema=False),
    ]


def _packed() -> list[bytes]:
    data = LOGS[Format.CSV][0]
    zstd = pa.compress(data, codec="zstd", asbytes=True)
    members = gzip.compress(data[:50], mtime=0) + gzip.compress(data[50:], mtime=0)
    return [gzip.compress(data, mtime=0), bz2.compress(data), zstd, members]


def read_both_ways(read: Callable[..., object], data: bytes, name: str = "log") -> object:
    """Read bytes as a file; where rows are bad, also without them. What was read must hold together."""
    try:
        return touched(read([Content(name, data)]))
    except BadRows:
        touched(read([Content(name, data)], bad_rows="skip"))
        raise


def touched(read: Any) -> Any:
    """Return data after a look at each value of the first rows: Polars trusts the bytes that it is handed."""
    read.frame.head(1000).rows()
    return read


def _read_log(data: bytes, *, format: Format, name: str = "log") -> object:  # noqa: A002
    shape_of(Content(name, data), format=format)
    return read_both_ways(partial(read_log, format=format), data, name)


def _sniff(data: bytes) -> object:
    name = _NAMES[zlib.crc32(data) % len(_NAMES)]
    read_both_ways_transactions = partial(read_both_ways, read_transactions)
    return read_both_ways(read_log, data, name) if len(data) % 4 else read_both_ways_transactions(data, name)


TRANSACTIONS = {
    Format.CSV: [text('id,items\n1,@|50%25 off\n"2",""\n3,a%7Cb|c\n')],
    Format.TSV: [text("id\titems\tother\n1\t@|b\tx\n2\t\t\n")],
    Format.JSONL: [text('{"id":"1","items":["@",2,0.5]}\n{"id":2,"items":[]}\n')],
    Format.TRANSACTIONS: LOGS[Format.TRANSACTIONS],
}
_PROFILES = [text('{"user":"@","terms":{"@":1.0,"riding":0.8}}\n{"user":7,"terms":["@","b"],"more":null}\n')]


def targets(folder: Path) -> list[Target]:
    """Return the targets; files are written into the folder."""

    def profiles(data: bytes) -> object:
        path = folder / "profiles.jsonl"
        path.write_bytes(data)
        are_profiles(path)
        try:
            return touched(read_profiles(path))
        except BadRows:
            read_profiles(path, bad_rows="skip")
            raise

    def once(seeds: Sequence[bytes]) -> Callable[[], Sequence[bytes]]:
        return lambda: seeds

    found = [
        Target(name=f"log.{one}", read=partial(_read_log, format=one), seeds=once(seeds)) for one, seeds in LOGS.items()
    ]
    found += [
        Target(
            name=f"transactions.{one}",
            read=partial(read_both_ways, partial(read_transactions, format=one)),
            seeds=once(seeds),
        )
        for one, seeds in TRANSACTIONS.items()
    ]
    baskets = {"id": ["1", "2"], "items": [[SECRET, "milk"], []]}
    return [
        *found,
        Target(name="log.parquet", read=partial(_read_log, format=Format.PARQUET), seeds=_parquet_logs),
        Target(name="log.compressed", read=partial(_read_log, format=Format.CSV), seeds=_packed),
        Target(
            name="log.sniffed",
            read=_sniff,
            seeds=once([one for seeds in (*LOGS.values(), *TRANSACTIONS.values()) for one in seeds]),
            words=(_AOL, b"user,query\n", b"user\tquery\n", b"id,items\n", b"id\titems\n"),
        ),
        Target(
            name="transactions.parquet",
            read=partial(read_both_ways, partial(read_transactions, format=Format.PARQUET)),
            seeds=lambda: [parquet_bytes(baskets, compression="none")],
        ),
        Target(name="profiles", read=profiles, seeds=once(_PROFILES)),
    ]

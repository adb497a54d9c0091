"""Inputs at which a reader once failed: each is read or refused in one clear line now."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fuzzing import all_targets
from tests.fuzzing.engine import outcome
from tests.fuzzing.logs import parquet_bytes

FOLDER = tempfile.TemporaryDirectory(prefix="fuzzing-")
TARGETS = all_targets(Path(FOLDER.name))
RUN = b'[[run]]\nmethod = "km"\n'
NOT_UTF8 = pa.array([b"\xff\xfe caf\xe9 and more"], pa.binary()).view(pa.string())


def nested(before: bytes, after: bytes) -> Iterator[bytes]:
    """Return lists in lists, around the depth at which Python gives up, and far deeper."""
    for depth in (*range(940, 1000), 20_000):
        yield before + b"[" * depth + b"]" * depth + after


def with_other_levels() -> Iterator[bytes]:
    """Return Parquet files in which a column that may lack values says that it does not, or the other way round.

    Arrow ends the process when it is asked for the metadata of such a column.
    """
    whole = parquet_bytes({"user": ["7"], "query": ["a"]}, compression="none")
    n_found = 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 2
        try:
            pq.ParquetFile(io.BytesIO(changed)).read()
        except (OSError, ValueError, pa.ArrowException) as error:
            if "histogram" in str(error):
                n_found += 1
                yield bytes(changed)
    assert n_found


def changed_bytes(name: str) -> Iterator[bytes]:
    """Return the first seed of a target with one byte in three set to another, one at a time."""
    whole = TARGETS[name].seeds()[0]
    for place in range(0, len(whole), 3):
        yield whole[:place] + b"\xff" + whole[place + 1 :]


def nested_state() -> Iterator[bytes]:
    """Return a state of pools with a key that nobody knows, and lists in lists under it."""
    yield b"\x81\xa1a" + b"\x91" * 20_000 + b"\xc0"


def not_utf8_packed() -> Iterator[bytes]:
    """Return the state of a stream in which the name of a column is not UTF-8."""
    yield TARGETS["pools.packed"].seeds()[0].replace(b"query", b"\xff\xff\xff\xff\xff")


def not_utf8_schema() -> Iterator[bytes]:
    """Return stores in whose schema a letter is none; SQLite quotes it."""
    whole = TARGETS["store.file"].seeds()[0]
    for word in (b"CREATE TABLE state", b"CREATE VIEW profiles", b"settings TEXT", b"INTEGER PRIMARY"):
        place = whole.index(word)
        for i in (place, place + 7, place + len(word) - 1):
            yield whole[:i] + b"\xff" + whole[i + 1 :]


def with_other_types() -> Iterator[bytes]:
    """Return Parquet files with one bit of what is said of the columns changed; types that differ ended the process."""
    whole = parquet_bytes({"user": ["7"], "query": ["a"]}, compression="none")
    for place in range(whole.index(b"schema"), len(whole)):
        yield whole[:place] + bytes([whole[place] ^ 2]) + whole[place + 1 :]


def with_other_names() -> Iterator[bytes]:
    """Return Parquet files in which one of two names of a column, in the schema and beside its statistics, is wrong."""
    whole = parquet_bytes({"user": ["7"], "query": ["a"]}, compression="none")
    place = whole.rindex(b"user")
    while place >= 0:
        yield whole[:place] + b"uSer" + whole[place + 4 :]
        place = whole.rfind(b"user", 0, place)


FOUND: list[tuple[str, str, Callable[[], Iterator[bytes]]]] = [
    ("plan", "a number too long", lambda: iter([b"limit = " + b"9" * 5000])),
    ("plan", "lists too deep", lambda: nested(b"limit = ", b"")),
    ("plan", "runs without end", lambda: iter([RUN + b"k = %s\nm = %s\n" % ((str(list(range(5000))).encode(),) * 2)])),
    ("plan", "a name with too many parts", lambda: iter([b"a" + b".a" * 60_000 + b" = 1"])),
    (
        "manifest.kdelta",
        "a count too large",
        lambda: iter(
            [re.sub(rb'("n_rows_after":) ?\d+', rb"\g<1>" + b"9" * 400, TARGETS["manifest.kdelta"].seeds()[0])]
        ),
    ),
    ("stream.jsonl", "a control character in a name", lambda: iter([b'{"user":7,"query":"a","\\u0000":""}\n'])),
    ("log.parquet", "a column with two names", with_other_names),
    ("log.parquet", "a column with two types", with_other_types),
    ("position", "no JSON", lambda: iter([b"{", b"null", b"line 7", b'{"file":1}'])),
    ("position", "JSON too deep", lambda: nested(b'{"a":', b"}")),
    (
        "position",
        "before the file",
        lambda: iter([TARGETS["position"].seeds()[0].replace(b'"offset":', b'"offset":-')]),
    ),
    (
        "http.request",
        "an origin that is no address",
        lambda: iter([TARGETS["http.request"].seeds()[0].replace(b"Origin: http://", b"Origin: http://[")]),
    ),
    ("log.jsonl", "a column too deep", lambda: nested(b'{"user":"7","query":"a","cart":', b"}\n")),
    ("log.jsonl", "a time too deep", lambda: nested(b'{"user":"7","query":"a","time":', b"}\n")),
    (
        "log.ubi",
        "a time too deep",
        lambda: nested(b'{"query_id":"1","user_query":"a","client_id":"7","timestamp":', b"}"),
    ),
    ("stream.jsonl", "a column too deep", lambda: nested(b'{"user":"7","query":"a","cart":', b"}\n" * 3)),
    (
        "log.csv",
        "lines by columns",
        lambda: iter([b"user,query," + b",".join(b"%d" % i for i in range(10**4)) + b"\n" * 10**6]),
    ),
    (
        "log.jsonl",
        "lines by keys",
        lambda: iter([b"".join(b'{"user":"7","query":"","%d":1}\n' % i for i in range(2000))]),
    ),
    ("result", "a result too deep", lambda: nested(b'{"a":', b"}")),
    ("store.row", "a category that is none", lambda: iter([b'profile_journal.changes=[["pseudonym 7",99,1]]'])),
    ("store.row", "a row without its numbers", lambda: iter([b'profile_journal.changes=[",,18'])),
    ("store.row", "a user that is no text", lambda: iter([b"profile_blocks.counts=\xff\xff\\u\xff"])),
    ("store.file", "a schema that is not UTF-8", not_utf8_schema),
    ("values.csv", "a worth that overflows", lambda: iter([b"term,bid\njaguar,1e308\n"])),
    ("pools.state", "a state too deep", nested_state),
    ("pools.packed", "a name that is not UTF-8", not_utf8_packed),
    (
        "data.plink.jsonl",
        "a weight that overflows",
        lambda: iter([b'{"group":3,"members":2,"size":5,"terms":{"a":1e308}}\n']),
    ),
    ("log.parquet", "a column that contradicts itself", with_other_levels),
    ("log.parquet", "text that is not UTF-8", lambda: iter([parquet_bytes({"user": NOT_UTF8, "query": NOT_UTF8})])),
    ("membership.parquet", "damaged", lambda: changed_bytes("membership.parquet")),
    ("values.parquet", "damaged", lambda: changed_bytes("values.parquet")),
    ("table.parquet", "damaged", lambda: changed_bytes("table.parquet")),
    ("data.dp.parquet", "damaged", lambda: changed_bytes("data.dp.parquet")),
]


@pytest.mark.parametrize(("name", "what", "inputs"), FOUND, ids=lambda each: each if isinstance(each, str) else "")
def test_what_was_found_stays_mended(name: str, what: str, inputs: Callable[[], Iterator[bytes]]) -> None:
    for data in inputs():
        assert outcome(TARGETS[name], data)[0] is None, what

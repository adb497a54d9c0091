"""What stands in a file beyond what its reader takes: its columns by name, and values that no column has."""

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import UNSET

from queryveil.data import Format
from queryveil.errors import BadFile
from queryveil.formats import delimited
from queryveil.formats._ubi import APPLICATION, ATTRIBUTES, event_document
from queryveil.formats.jsonl import json_value
from queryveil.formats.records import first_record
from queryveil.formats.streams import ByteStream, Content

_GZIP, _ZSTD = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
_PARQUET = b"PAR1"
_CHUNK_BYTES, _MOST_MEMBERS = 1 << 16, 1000
_OF_WRITERS = ("ARROW:schema", "org.apache.spark.version", "org.apache.spark.sql.parquet.row.metadata")
"""What programs write into the metadata of a Parquet file about its columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a file has, whatever a reader makes of it.

    - `columns`: the names of its columns; empty where the format names none, or where there is no row to name them.
    - `n_hidden`: how many values no reader returns: keys that stand twice in an object, metadata, UBI documents that
      have more than a row, and what a compressed file says beside its data.
    """

    columns: tuple[str, ...] = ()
    n_hidden: int = 0


def shape_of(file: Content, *, format: Format, has_events: bool = False) -> Shape:  # noqa: A002
    """Return the shape of a file; where it cannot be told, as when no reader can read it either, all of it is hidden.

    `has_events` says of UBI whether it may have events, and not rows with at most one click each.

    >>> shape_of(Content("log.jsonl", b'{"user": "1", "query": "x", "user": "2"}'), format=Format.JSONL)
    Shape(columns=('user', 'query'), n_hidden=1)
    """
    n_packed = _n_beside_packed(file.data)
    if not file.data.strip():
        return Shape(n_hidden=n_packed)
    try:
        if format is Format.PARQUET:
            return _of_parquet(file.data)
        if format in (Format.JSONL, Format.UBI):
            documents = _Documents(has_events=has_events) if format is Format.UBI else None
            columns, n_hidden = _of_objects(file, documents=documents)
        else:
            columns, n_hidden = _header(file, format=format), 0
    except (BadFile, pa.ArrowException, OSError, ValueError):
        return Shape(n_hidden=1)
    return Shape(columns=columns, n_hidden=n_hidden + n_packed)


def _n_beside_packed(data: bytes) -> int:
    r"""Count what a compressed file holds beside its data: names and comments of gzip, frames of zstd that are skipped.

    A file of many small members is no release of ours; what its later ones say counts as one.

    >>> _n_beside_packed(zlib.compress(b"x", wbits=31)), _n_beside_packed(_ZSTD + b"\x20\x01\x09\0\0a" + b"more")
    (0, 1)
    """
    found, begin = 0, 0
    for _ in range(_MOST_MEMBERS):
        if data.startswith(_GZIP, begin):
            # Bits that say that a name, a comment or more follows.
            found += data[begin + 3 : begin + 4] != b"\0"
            begin = _end_of_gzip(data, begin)
        elif data.startswith(_ZSTD, begin):
            begin = _end_of_zstd(data, begin + len(_ZSTD))
        else:
            return found + (0 < begin < len(data))
    return found + 1


def _end_of_gzip(data: bytes, begin: int) -> int:
    inflater, view = zlib.decompressobj(wbits=31), memoryview(data)
    while not inflater.eof and begin < len(data):
        chunk = view[begin : begin + _CHUNK_BYTES]
        try:
            inflater.decompress(chunk)
        except zlib.error:
            # The reader says so.
            return len(data)
        begin += len(chunk) - len(inflater.unused_data)
    return begin


def _end_of_zstd(data: bytes, place: int) -> int:
    """Return where a frame ends, given where its header begins: by the sizes of its blocks, nothing is unpacked."""
    described = data[place] if place < len(data) else 0
    is_single, has_checksum = described >> 5 & 1, described >> 2 & 1
    size_bytes = (is_single, 2, 4, 8)[described >> 6]
    place += 1 + (not is_single) + (0, 1, 2, 4)[described & 3] + size_bytes
    is_last = False
    while not is_last and place + 3 <= len(data):
        header = int.from_bytes(data[place : place + 3], "little")
        is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        # A block of one repeated byte holds that byte.
        place += 3 + (1 if kind == 1 else size)
    return place + 4 * has_checksum


def _of_parquet(data: bytes) -> Shape:
    file = pq.ParquetFile(BytesIO(data))
    metadata = file.metadata
    for number in range(metadata.num_row_groups):
        # A column that contradicts itself is an error here; where its metadata are asked for, it ends the process.
        next(file.iter_batches(batch_size=1, row_groups=[number]), None)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [[group.column(place) for place in range(group.num_columns)] for group in groups]
    types = [file.schema.column(place).physical_type for place in range(metadata.num_columns)]
    if any([chunk.physical_type for chunk in group] != types for group in chunks):
        # Arrow would end the process where the statistics of a column of another type are asked for.
        return Shape(n_hidden=1)
    told = [key.decode("utf-8", errors="replace") for key in metadata.metadata or {}]
    n_odd = sum(_is_odd(file, number, chunk) for number, group in enumerate(chunks) for chunk in group)
    n_gaps = _n_gaps(metadata, [*chain.from_iterable(chunks)], len(data))
    return Shape(columns=tuple(file.schema_arrow.names), n_hidden=n_foreign(told) + n_gaps + n_odd)


def _is_odd(file: pq.ParquetFile, group: int, column: Any) -> bool:
    """Return whether a Parquet file states a least or largest text of a column that no value of it begins with."""
    try:
        stated = column.statistics
        if stated is None or not stated.has_min_max or not isinstance(stated.min, str | bytes):
            return False
        read = file.read_row_group(group, columns=[column.path_in_schema])
        if not read.num_columns:
            return True  # The statistics are of a column that the schema does not have.
        values = read.column(0)
        while pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
            values = pc.list_flatten(values)
        # A long text may be cut; the largest may then end with a letter further on, so that it still is the largest.
        begins = [stated.min, stated.max if stated.max == stated.min else stated.max[:-1]]
        return not all(pc.any(pc.starts_with(values, begin)).as_py() for begin in begins)
    except (pa.ArrowException, ValueError):
        # What cannot be compared, or is no text, is not of the column either.
        return True


def _n_gaps(metadata: Any, chunks: list[Any], n_bytes: int) -> int:
    """Count the stretches of a Parquet file that belong to no column; those of an index, where there is one, may be."""
    spans = sorted(
        (min(filter(None, (one.dictionary_page_offset, one.data_page_offset))), one.total_compressed_size)
        for one in chunks
    )
    has_index = any(one.has_column_index or one.has_offset_index for one in chunks)
    found, place = 0, len(_PARQUET)
    for begin, size in spans:
        found += begin > place
        place = begin + size
    # Behind the columns come what is said of them, its length, and the mark of the format again.
    return found + (not has_index and place + metadata.serialized_size + 4 + len(_PARQUET) != n_bytes)


def n_foreign(keys: Iterable[str]) -> int:
    """Count the keys in the metadata of a Parquet file that say nothing of its columns."""
    return sum(key not in _OF_WRITERS for key in keys)


def _header(file: Content, *, format: Format) -> tuple[str, ...]:  # noqa: A002
    if format not in (Format.AOL, Format.CSV, Format.TSV):
        return ()
    with ByteStream(Path(file.name), data=file.data) as stream:
        names = first_record(stream, delimiter=delimited.delimiter_of(format))
    return tuple(names) if format is not Format.AOL or delimited.is_aol_header(names) else ()


def _lines(file: Content) -> Iterator[bytes]:
    with ByteStream(Path(file.name), data=file.data) as stream:
        rest = b""
        for block in stream.blocks():
            *lines, rest = (rest + block).split(b"\n")
            yield from lines
    yield rest


def _objects(file: Content) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the objects of the lines, and for each how many of its keys stand there twice."""
    encode = msgspec.json.Encoder().encode
    for line in _lines(file):
        value = json_value(line)
        if value is UNSET:
            # As readers do with what is not UTF-8.
            value = json_value(line := line.decode("latin-1").encode())
        if isinstance(value, dict):
            # Written out again a line has the same length, unless it has more than one way to be read.
            yield value, 0 if len(encode(value)) == len(line) else _n_twice(line)


def _n_twice(line: bytes) -> int:
    found = 0

    def count(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found += len(pairs) - len({key for key, _ in pairs})

    try:
        json.loads(line, object_pairs_hook=count)
    except (ValueError, RecursionError):
        return 1
    return found


def _of_objects(file: Content, *, documents: "_Documents | None") -> tuple[tuple[str, ...], int]:
    columns: dict[str, None] = {}
    n_hidden = 0
    for value, n_twice in _objects(file):
        n_hidden += n_twice + (0 if documents is None else documents.hides(value))
        if not value.keys() <= columns.keys():
            columns.update(dict.fromkeys(value))
    return () if documents is not None else tuple(columns), n_hidden


class _Documents:
    """Follows the documents of a UBI file as a release has them: a query, and what there is of it.

    - `has_events`: whether any event may stand behind its query; if not, one click at most, at the query's own time.
    """

    def __init__(self, *, has_events: bool) -> None:
        self._index, self._n_queries, self._has_events = "", 0, has_events
        self._query: dict[str, Any] = {}
        self._shared: dict[str, Any] = {}
        self._searches: set[object] = set()

    def hides(self, value: dict[str, Any]) -> int:
        """Return 1 for a document that has more than a released row or event has, else 0."""
        if set(value) == {"index"}:
            self._index = value["index"].get("_index", "") if isinstance(value["index"], dict) else ""
            return int(value != {"index": {"_index": self._index}} or self._index not in ("ubi_queries", "ubi_events"))
        return self._in_query(value) if self._index == "ubi_queries" else self._in_event(value)

    def _in_query(self, value: dict[str, Any]) -> int:
        self._n_queries += 1
        search = value.get("query_id") if self._has_events else str(self._n_queries)
        said = {"application": APPLICATION, "query_id": search}
        self._query = said | {name: value[name] for name in ("client_id", "timestamp") if name in value}
        # Events stand behind the first query of their search.
        self._shared = {} if search in self._searches else self._query
        self._searches.add(search if isinstance(search, str) else None)
        told = value.get("query_attributes")
        attributes = {name: told[name] for name in ATTRIBUTES if name in told} if isinstance(told, dict) else {}
        is_text = all(isinstance(text, str) for text in attributes.values())
        expected = self._query | {"user_query": value.get("user_query"), "query_attributes": attributes}
        return int(value != expected or not is_text)

    def _in_event(self, value: dict[str, Any]) -> int:
        shared, (thing, position) = self._shared, (inside(value, "object"), inside(value, "position"))
        if not self._has_events:
            # A click more would be another row.
            self._shared = {}
            click = {"action": "click", "object": thing.get("object_id"), "rank": position.get("ordinal")}
            return int(value != event_document(shared, click))
        others = inside(value, None)
        event = {
            "action": value.get("action_name"),
            "time": value.get("timestamp"),
            "object": thing.get("object_id"),
            "object_field": thing.get("object_id_field"),
            "rank": position.get("ordinal"),
            "dwell": others.get("dwell_time"),
        }
        del_time = {name: text for name, text in shared.items() if name != "timestamp"}
        kinds = {"rank": int, "dwell": float}
        is_odd = any(not isinstance(one, kinds.get(name, str)) for name, one in event.items() if one is not None)
        return int(is_odd or value != event_document(del_time, event))


def inside(event: dict[str, Any], key: str | None) -> dict[str, Any]:
    """Return an event's attributes, or the object under a key of them; an empty one where there is none."""
    value = event.get("event_attributes")
    if key is not None:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}

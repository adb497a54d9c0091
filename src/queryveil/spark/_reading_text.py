"""Text files parsed by the local reader on executors: line formats in pieces, others as a whole."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, groupby
from pathlib import PurePosixPath
from urllib.parse import unquote

import msgspec
import polars as pl
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queryveil.data import ROLES, Format, Layout, QueryLog, Reading
from queryveil.errors import BadFile, BadRow, BadRows
from queryveil.formats import delimited
from queryveil.formats.read import read_bytes
from queryveil.formats.records import BadRowPolicy
from queryveil.spark._executors import Batches, map_batches, spark_types
from queryveil.spark.logs import SparkLog

PIECE_REPORT = "report binary"
OTHER_COLUMNS = "its columns differ from those of the first file; read them one by one"
_UTF8_MARK = b"\xef\xbb\xbf"


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How tasks read their pieces; `headers` has the first line of each file that begins with one."""

    format: Format
    columns: dict[str, str] | None
    bad_rows: BadRowPolicy
    headers: dict[str, bytes] = {}


class PieceReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a task found in a piece of a file, which begins at byte `start` and has lines up to `n_lines`."""

    path: str = ""
    start: int = 0
    n_lines: int = 0
    n_rows: int = 0
    n_bad: int = 0
    n_latin1: int = 0
    bad: tuple[tuple[int, str], ...] = ()
    layout: Layout | None = None
    schema: bytes = b""

    @property
    def batch(self) -> pa.RecordBatch:
        """The report on its way to the driver."""
        return pa.RecordBatch.from_pydict(
            {"report": [msgspec.msgpack.encode(self)]}, pa.schema([("report", pa.binary())])
        )


class _Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines of a file: its bytes with a header, and how many lines of its block stand before the first byte."""

    path: str
    start: int
    n_before: int
    n_lines: int
    data: bytes


Pieces = Callable[..., Iterator[_Piece]]


def file_name(path: str) -> str:
    """Return the name of a file in messages."""
    return unquote(PurePosixPath(path).name)


def collect_reports(frame: DataFrame) -> list[PieceReport]:
    """Collect the reports of all tasks on the driver."""
    return [msgspec.msgpack.decode(data, type=PieceReport) for data in frame.toArrow()["report"].to_pylist()]


def sum_readings(reports: list[PieceReport]) -> Reading:
    """Return the sums over all pieces of what had to be repaired or skipped."""
    return Reading(
        n_bad_rows_skipped=sum(each.n_bad for each in reports), n_latin1_rows=sum(each.n_latin1 for each in reports)
    )


def read_lines(spark: SparkSession, heads: Mapping[str, bytes], *, options: ReadOptions) -> SparkLog:
    """Read files whose lines are rows, given with how each begins; Spark cuts them into blocks as it likes."""
    paths = list(heads)
    heads = {path: head.removeprefix(_UTF8_MARK) for path, head in heads.items()}
    for path, head in heads.items():
        if not head:
            raise BadFile(file_name(path), "the file is empty")
    begun = _read_beginning(file_name(paths[0]), heads[paths[0]], options=options)
    if options.format is Format.JSONL:
        # Which keys are user and query is told from the beginning, for all files and pieces alike.
        names = {role: begun.layout.names[role] for role in ("user", "query")}
        options = msgspec.structs.replace(options, columns=names | (options.columns or {}))
    elif begun.layout.has_header:
        lines = {path: next((line for line in head.split(b"\n") if line.strip()), b"") for path, head in heads.items()}
        # Of AOL's files some begin with a row.
        is_named = delimited.is_aol_header_line if options.format is Format.AOL else bool
        options = msgspec.structs.replace(
            options, headers={path: line for path, line in lines.items() if is_named(line)}
        )
    # The bytes of a line come as they are, UTF-8 or not.
    text = spark.read.option("lineSep", "\n").text(paths)
    where = (F.col("_metadata.file_path").alias("path"), F.col("_metadata.file_block_start").alias("start"))
    return _read(
        text.select(F.col("value").cast("binary").alias("content"), *where), _pieces, options=options, begun=begun
    )


def _read_beginning(name: str, head: bytes, *, options: ReadOptions) -> QueryLog:
    """Read the whole lines of a file's beginning, for its layout."""
    whole = head.rpartition(b"\n")[0] + b"\n" if b"\n" in head else head
    return read_bytes(whole, name=name, format=options.format, columns=options.columns, bad_rows=BadRowPolicy.SKIP)


def read_whole(spark: SparkSession, paths: list[str], *, options: ReadOptions) -> SparkLog:
    """Read files that only make sense as a whole, each in one task."""
    contents = spark.read.format("binaryFile").load(paths).select("content", "path", F.lit(0).alias("start"))
    contents = contents.repartition(len(paths), "path") if len(paths) > 1 else contents
    return _read(contents, _files, options=options)


def _read(contents: DataFrame, pieces: Pieces, *, options: ReadOptions, begun: QueryLog | None = None) -> SparkLog:
    reports = collect_reports(map_batches(contents, _inspect_pieces, PIECE_REPORT, pieces=pieces, options=options))
    if not reports:
        # Nothing but blank lines.
        blank = begun or read_bytes(b"\n", name="the log", format=options.format, columns=options.columns)
        return SparkLog.of(blank, spark=contents.sparkSession)
    reports.sort(key=lambda each: (each.path, each.start, each.n_lines))
    _check_bad(reports, policy=options.bad_rows)
    first = reports[0].layout
    assert first is not None
    for each in reports:
        if each.layout is None or (options.format is not Format.JSONL and each.layout.columns != first.columns):
            raise BadFile(file_name(each.path), OTHER_COLUMNS)
    schema = _in_order(_common([pa.ipc.read_schema(pa.py_buffer(each.schema)) for each in reports]))
    # Privacy: rows stay on the executors' own disks, and only until the session ends.
    rows = map_batches(contents, _rows_of, schema, pieces=pieces, options=options, schema=schema)
    frame = rows.persist(StorageLevel.DISK_ONLY)
    return SparkLog(
        frame=frame, layout=first, reading=sum_readings(reports), n_rows=sum(each.n_rows for each in reports)
    )


def _common(schemas: list[pa.Schema]) -> pa.Schema:
    """Return the columns of all pieces; one whose values are of different kinds is text, as on one machine."""
    kinds: dict[str, set[pa.DataType]] = {}
    for field in chain.from_iterable(schemas):
        kinds.setdefault(field.name, set()).add(field.type)
    known = {name: found - {pa.null()} for name, found in kinds.items()}
    return pa.schema([(name, next(iter(found)) if len(found) == 1 else pa.string()) for name, found in known.items()])


def _in_order(schema: pa.Schema) -> pa.Schema:
    roles = [role for role in ROLES if role in schema.names]
    return spark_types(
        pa.schema([schema.field(name) for name in [*roles, *(n for n in schema.names if n not in ROLES)]])
    )


def _check_bad(reports: list[PieceReport], *, policy: BadRowPolicy) -> None:
    """Raise if rows cannot be read and may not be left out, by file and line."""
    n_bad = sum(each.n_bad for each in reports)
    if not n_bad or policy is not BadRowPolicy.FAIL:
        return
    rows: list[BadRow] = []
    for path, of_file in groupby(reports, key=lambda each: each.path):
        n_before = 0
        for _, of_block in groupby(of_file, key=lambda each: each.start):
            block = list(of_block)
            rows += [BadRow(file_name(path), n_before + line, reason=why) for each in block for line, why in each.bad]
            n_before += max(each.n_lines for each in block)
    raise BadRows(rows, n_total=n_bad)


def _files(batches: Batches, *, options: ReadOptions) -> Iterator[_Piece]:  # noqa: ARG001 - as `_pieces`
    for batch in batches:
        for row in range(batch.num_rows):
            data = batch["content"][row].as_py()
            yield _Piece(path=batch["path"][row].as_py(), start=0, n_before=0, n_lines=0, data=data)


def _pieces(batches: Batches, *, options: ReadOptions) -> Iterator[_Piece]:
    """Put lines together again, as far as they come from one block of a file."""
    n_before: dict[tuple[str, int], int] = {}
    for batch in batches:
        where = zip(batch["path"].to_pylist(), batch["start"].to_pylist(), strict=True)
        begin = 0
        for (path, start), run in groupby(where):
            n_lines = sum(1 for _ in run)
            lines = batch["content"].slice(begin, n_lines).to_pylist()
            begin += n_lines
            done = n_before.get((path, start), 0)
            n_before[path, start] = done + n_lines
            header = options.headers.get(path) or options.headers.get(unquote(path))
            # The first line of the first block is the header itself.
            shown = 0 if header is None or (start == 0 and done == 0) else 1
            data = b"\n".join([header, *lines] if shown and header is not None else lines) + b"\n"
            yield _Piece(path=path, start=start, n_before=done - shown, n_lines=done + n_lines, data=data)


def _inspect_pieces(batches: Batches, *, pieces: Pieces, options: ReadOptions) -> Batches:
    """Read each piece, and return a report instead of its rows."""
    for piece in pieces(batches, options=options):
        reports = PieceReport(path=piece.path, start=piece.start, n_lines=piece.n_lines)
        if not piece.data.strip():
            continue
        try:
            log = read_bytes(
                piece.data,
                name=file_name(piece.path),
                format=options.format,
                columns=options.columns,
                bad_rows=options.bad_rows,
            )
        except BadRows as error:
            bad = tuple((piece.n_before + row.line, row.reason) for row in error.rows)
            yield msgspec.structs.replace(reports, n_bad=error.n_total, bad=bad).batch
            continue
        yield msgspec.structs.replace(
            reports,
            n_rows=log.n_rows,
            n_bad=log.reading.n_bad_rows_skipped,
            n_latin1=log.reading.n_latin1_rows,
            layout=log.layout,
            schema=_kinds(log.frame).serialize().to_pybytes(),
        ).batch


def _kinds(frame: pl.DataFrame) -> pa.Schema:
    """Return the types of columns; one that is nowhere filled says nothing about its type."""
    fields = spark_types(frame.clear().to_arrow().schema)
    unfilled = {name for name in frame.columns if name not in ROLES and frame[name].null_count() == frame.height}
    return pa.schema([(each.name, pa.null() if each.name in unfilled else each.type) for each in fields])


def _rows_of(batches: Batches, *, pieces: Pieces, options: ReadOptions, schema: pa.Schema) -> Batches:
    for piece in pieces(batches, options=options):
        if not piece.data.strip():
            continue
        name = file_name(piece.path)
        frame = read_bytes(
            piece.data, name=name, format=options.format, columns=options.columns, bad_rows=options.bad_rows
        ).frame
        absent = [pl.lit(None).alias(name) for name in schema.names if name not in frame.columns]
        texts = [each.name for each in schema if each.type == pa.string() and each.name in frame.columns]
        frame = frame.with_columns(pl.col(texts).cast(pl.String), *absent)
        yield from frame.select(schema.names).to_arrow().cast(schema).to_batches(65_536)

"""Reading a log from any path that Spark reads, by the same rules as on one machine.

Parquet is read by Spark itself. Of other files it only gives the bytes, and the local reader takes them apart on the
executors, line formats in pieces: Spark's own readers would quietly repair or drop a line that cannot be read.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from glob import has_magic
from itertools import chain, groupby
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queryveil.data import ROLES, Format, Layout, QueryLog, Reading
from queryveil.errors import BadFile, BadParameter, BadRow, BadRows, EngineFailed, NotYet, OtherFormat
from queryveil.formats import delimited, layouts, parquet, read, roles
from queryveil.formats.records import OTHER_COLUMNS, BadRowPolicy
from queryveil.formats.streams import HEAD_BYTES, ByteStream, Content
from queryveil.formats.values import OWN_RULES
from queryveil.spark import _executors
from queryveil.spark._executors import Batches, SparkLog, map_batches, name_problem, spark_types, to_arrow
from queryveil.spark._storage import Storage

_BY_LINES = (Format.AOL, Format.EXCITE, Format.TSV, Format.JSONL)
"""Files of these formats can be cut at any line."""
_PACKED = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd")
_MOST_BYTES = 2**31 - 1
"""Any other file must fit into one value of Spark."""
_FIX = "fix the files, or leave such rows out with --bad-rows skip"
_HERE = "read it on one machine: leave out --engine"


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """How tasks read files: whole or by lines; `headers` has the first line of each file that begins with one."""

    format: Format
    columns: dict[str, str] | None
    bad_rows: BadRowPolicy
    by_lines: bool
    headers: dict[str, bytes] = {}

    def read(self, data: bytes, *, path: str) -> QueryLog:
        """Read some lines of a file, or all of it."""
        file = Content(_file_name(path), data)
        return read.read_log([file], format=self.format, columns=self.columns, bad_rows=self.bad_rows)


class _PieceReport(msgspec.Struct, frozen=True, kw_only=True):
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
        return pa.RecordBatch.from_pydict({"report": [msgspec.msgpack.encode(self)]})


class _Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A file or some lines of it: bytes with a header, and how many lines of the block stand before the first byte."""

    report: _PieceReport
    n_before: int
    data: bytes


def _file_name(path: str) -> str:
    """Return the name of a file in messages."""
    return unquote(PurePosixPath(path).name)


def _reports(frame: DataFrame, work: Callable[..., Batches], **arguments: object) -> list[_PieceReport]:
    found = map_batches(frame, work, "report binary", **arguments).toArrow()["report"].to_pylist()
    return [msgspec.msgpack.decode(data, type=_PieceReport) for data in found]


def _log(frame: DataFrame, reports: list[_PieceReport], *, layout: Layout) -> SparkLog:
    n_rows, n_bad, n_latin1 = (sum(getattr(each, name) for each in reports) for name in ("n_rows", "n_bad", "n_latin1"))
    reading = Reading(n_bad_rows_skipped=n_bad, n_latin1_rows=n_latin1)
    return SparkLog(frame=frame, layout=layout, reading=reading, n_rows=n_rows)


def read_log(
    spark: SparkSession,
    source: str | Sequence[str],
    *,
    format: Format | str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    bad_rows: BadRowPolicy | str = BadRowPolicy.FAIL,
) -> SparkLog:
    """Read a query log: a path, a folder, a glob or several of them, as `queryveil.read_log` would."""
    asked = roles.check_roles(columns)
    chosen = None if format is None else read.parse_choice(Format, format, name="format")
    policy = read.parse_choice(BadRowPolicy, bad_rows, name="bad_rows")
    storage = Storage(spark=spark)
    files = _files(storage, [source] if isinstance(source, str) else list(source))
    paths = [path for path, _ in files]
    found = chosen or _sniffed(paths[0], storage.read(paths[0], most_bytes=HEAD_BYTES), columns=asked)
    if found is Format.UBI:
        raise NotYet("OpenSearch UBI on Spark", "its queries and events lie in different rows", instead=_HERE)
    if found is Format.TRANSACTIONS and len(files) > 1:
        raise NotYet("several files of transactions on Spark", "users are the lines of one file", instead=_HERE)
    if found is Format.PARQUET:
        return _read_parquet(storage, paths, columns=asked, bad_rows=policy)
    heads = {path: storage.read(path, most_bytes=HEAD_BYTES) for path in paths}
    for path, head in heads.items() if chosen is None else ():
        other = _sniffed(path, head, columns=asked)
        if other is not found:
            raise OtherFormat(_file_name(path), other, first=found)
    by_lines = found in _BY_LINES and not any(head.startswith(_PACKED) for head in heads.values())
    options = _Options(format=found, columns=asked or None, bad_rows=policy, by_lines=by_lines)
    if by_lines:
        return _read_lines(spark, heads, options=options)
    for path, n_bytes in files:
        if n_bytes > _MOST_BYTES:
            raise BadFile(_file_name(path), "it is larger than 2 GB; split it, or write it as Parquet")
    contents = spark.read.format("binaryFile").load(paths).select("content", "path", F.lit(0).alias("start"))
    # Each file in a task of its own.
    return _read(contents.repartition(len(paths), "path") if len(paths) > 1 else contents, options=options)


def _files(storage: Storage, sources: list[str]) -> list[tuple[str, int]]:
    """List the files behind paths, folders and globs, with their sizes."""
    if "-" in sources:
        raise BadParameter("the log", "stdin", allowed="a path that all executors see")
    listed = []
    for source in sources:
        try:
            with _executors.translate_spark_errors():
                found = storage.spark.read.format("binaryFile").load(source)
                rows = found.select("path", "length").orderBy("path").collect()
        except BadFile:
            rows = []
        if not rows and not has_magic(source) and storage.exists(source):
            raise BadFile(source, "there is nothing in it")
        if not rows:
            raise BadFile(source, "there is no such file; check the path and that all executors see it")
        listed += [(row["path"], int(row["length"])) for row in rows]
    storage.check_named_once([path for path, _ in listed])
    return listed


def _sniffed(path: str, head: bytes, *, columns: Mapping[str, str]) -> Format:
    with ByteStream(Path(_file_name(path)), data=head) as stream:
        return layouts.sniff(stream, columns=columns)


def _read_parquet(
    storage: Storage, paths: list[str], *, columns: Mapping[str, str], bad_rows: BadRowPolicy
) -> SparkLog:
    raw = _opened(storage, paths)
    names = roles.assign_roles(raw.columns, file=_file_name(paths[0]), columns=columns)
    inside = roles.frame_names(raw.columns, names=names)
    order = roles.in_role_order(inside[name] for name in raw.columns)
    _check_names(order, path=paths[0])
    layout = Layout(format=Format.PARQUET, names=names, columns=tuple(raw.columns))
    # A plain rename, so that a column that nobody asks for is never read.
    given = raw.select([F.col(f"`{name}`").alias(role) for name, role in inside.items()]).select(order)
    reports = _reports(given.select(list(names)), _judge_rows)
    n_bad = sum(each.n_bad for each in reports)
    if n_bad and bad_rows is BadRowPolicy.FAIL:
        why = f"{n_bad} rows without a user, or whose time or rank cannot be read; {_FIX}"
        raise BadFile(_file_name(paths[0]), why)
    schema = spark_types(_typed(_executors.arrow_schema(given).empty_table()).to_arrow().schema)
    frame = map_batches(given, _typed_rows, schema, schema=schema)
    has, wanted = (
        [(each.name, each.dataType) for each in fields] for fields in (given.schema, _executors.spark_schema(schema))
    )
    if n_bad == 0 and has == wanted:
        # Nothing needs another type, so Spark can do it, and leave out what nobody asks for.
        frame = given.withColumn("query", F.coalesce("query", F.lit("")))
        for name in names.keys() - OWN_RULES:
            frame = frame.withColumn(name, F.nullif(name, F.lit("")))
    return _log(frame, reports, layout=layout)


def _opened(storage: Storage, paths: list[str]) -> DataFrame:
    """Open files that have the same columns: Spark would fill missing ones with nulls."""
    first: list[str] = []
    path = paths[0]
    try:
        with _executors.translate_spark_errors():
            for path in paths:
                names, _ = storage.parquet_names(path)
                _check_names(names, path=path)
                first = first or names
                if names != first:
                    raise BadFile(_file_name(path), OTHER_COLUMNS)
            path = paths[0]
            return storage.spark.read.parquet(*paths)
    except EngineFailed:
        raise BadFile(_file_name(path), "this is not a whole Parquet file of flat columns; write it again") from None


def _check_names(names: list[str], *, path: str) -> None:
    if (wrong := name_problem(names)) is not None:
        raise BadFile(_file_name(path), wrong)


def _typed(rows: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    return parquet.type_frame(pl.DataFrame(rows)).frame().select(rows.schema.names)


def _judge_rows(batches: Batches) -> Batches:
    for batch in batches:
        n_bad = int(np.count_nonzero(parquet.type_frame(pl.DataFrame(batch)).wrong))
        yield _PieceReport(n_rows=batch.num_rows - n_bad, n_bad=n_bad).batch


def _typed_rows(batches: Batches, *, schema: pa.Schema) -> Batches:
    for batch in batches:
        yield from _typed(batch).to_arrow().cast(schema).to_batches()


def _read_lines(spark: SparkSession, heads: Mapping[str, bytes], *, options: _Options) -> SparkLog:
    """Read files whose lines are rows, given with how each begins; Spark cuts them into blocks as it likes."""
    paths = list(heads)
    heads = {path: head.removeprefix(BOM_UTF8) for path, head in heads.items()}
    for path, head in heads.items():
        if not head:
            raise BadFile(_file_name(path), "the file is empty")
    # The whole lines of the first file's beginning tell its layout.
    first = heads[paths[0]]
    whole = first.rpartition(b"\n")[0] + b"\n" if b"\n" in first else first
    begun = msgspec.structs.replace(options, bad_rows=BadRowPolicy.SKIP).read(whole, path=paths[0])
    if options.format is Format.JSONL:
        # Which keys are user and query is told from the beginning, for all files and pieces alike.
        names = {role: begun.layout.names[role] for role in ("user", "query")}
        options = msgspec.structs.replace(options, columns=names | (options.columns or {}))
    elif begun.layout.has_header:
        lines = {path: next((line for line in head.split(b"\n") if line.strip()), b"") for path, head in heads.items()}
        if options.format is Format.AOL:
            # Some of these files begin with a row.
            is_header = delimited.is_aol_header
            lines = {path: line for path, line in lines.items() if is_header(line.decode("latin-1").split("\t"))}
        headers = {path: line for path, line in lines.items() if line}
        options = msgspec.structs.replace(options, headers=headers)
    # The bytes of a line come as they are, UTF-8 or not.
    text = spark.read.option("lineSep", "\n").text(paths)
    where = (F.col("_metadata.file_path").alias("path"), F.col("_metadata.file_block_start").alias("start"))
    contents = text.select(F.col("value").cast("binary").alias("content"), *where)
    return _read(contents, options=options, begun=begun)


def _read(contents: DataFrame, *, options: _Options, begun: QueryLog | None = None) -> SparkLog:
    reports = _reports(contents, _inspect_pieces, options=options)
    if not reports:
        # Nothing but blank lines.
        return SparkLog.of(begun or options.read(b"\n", path="the log"), spark=contents.sparkSession)
    reports.sort(key=lambda each: (each.path, each.start, each.n_lines))
    _check_bad(reports, policy=options.bad_rows)
    first = reports[0].layout
    assert first is not None
    for each in reports:
        if each.layout is None or (options.format is not Format.JSONL and each.layout.columns != first.columns):
            raise BadFile(_file_name(each.path), OTHER_COLUMNS)
    schema = _common([pa.ipc.read_schema(pa.py_buffer(each.schema)) for each in reports])
    # Privacy: rows stay on the executors' own disks, and only until the session ends.
    rows = map_batches(contents, _rows_of, schema, options=options, schema=schema)
    return _log(rows.persist(StorageLevel.DISK_ONLY), reports, layout=first)


def _common(schemas: list[pa.Schema]) -> pa.Schema:
    """Return the columns of all pieces, roles first; one whose values are of different kinds is text."""
    kinds: dict[str, set[pa.DataType]] = {}
    for field in chain.from_iterable(schemas):
        kinds.setdefault(field.name, set()).add(field.type)
    known = {name: list(kinds[name] - {pa.null()}) for name in roles.in_role_order(kinds)}
    types = [(name, found[0] if len(found) == 1 else pa.string()) for name, found in known.items()]
    return spark_types(pa.schema(types))


def _check_bad(reports: list[_PieceReport], *, policy: BadRowPolicy) -> None:
    """Raise if rows cannot be read and may not be left out, by file and line."""
    n_bad = sum(each.n_bad for each in reports)
    if not n_bad or policy is not BadRowPolicy.FAIL:
        return
    rows: list[BadRow] = []
    for path, of_file in groupby(reports, key=lambda each: each.path):
        n_before = 0
        for _, of_block in groupby(of_file, key=lambda each: each.start):
            block = list(of_block)
            rows += [BadRow(_file_name(path), n_before + line, reason=why) for each in block for line, why in each.bad]
            n_before += max(each.n_lines for each in block)
    raise BadRows(rows, n_total=n_bad)


def _pieces(batches: Batches, *, options: _Options) -> Iterator[_Piece]:
    """Return whole files, or lines put together again, as far as they come from one block of a file."""
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
            given = [header, *lines] if shown and header is not None else lines
            data = b"\n".join(given) + b"\n" if options.by_lines else lines[0]
            if data.strip():
                report = _PieceReport(path=path, start=start, n_lines=done + n_lines)
                yield _Piece(report=report, n_before=done - shown, data=data)


def _inspect_pieces(batches: Batches, *, options: _Options) -> Batches:
    """Read each piece, and return a report instead of its rows."""
    for piece in _pieces(batches, options=options):
        try:
            log = options.read(piece.data, path=piece.report.path)
        except BadRows as error:
            bad = tuple((piece.n_before + row.line, row.reason) for row in error.rows)
            yield msgspec.structs.replace(piece.report, n_bad=error.n_total, bad=bad).batch
            continue
        yield msgspec.structs.replace(
            piece.report,
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


def _rows_of(batches: Batches, *, options: _Options, schema: pa.Schema) -> Batches:
    for piece in _pieces(batches, options=options):
        frame = options.read(piece.data, path=piece.report.path).frame
        absent = [pl.lit(None).alias(name) for name in schema.names if name not in frame.columns]
        texts = [each.name for each in schema if each.type == pa.string() and each.name in frame.columns]
        frame = frame.with_columns(pl.col(texts).cast(pl.String), *absent)
        yield from to_arrow(frame, schema).to_batches(65_536)

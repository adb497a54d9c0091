"""Reading a log from any path that Spark reads, by the same rules as on one machine.

Parquet is read by Spark itself. Of any other file Spark only gives the bytes, and the local reader takes them apart: a
line that cannot be read is told by file and line, as ever. Spark's own readers would quietly repair or drop it.
"""

from collections.abc import Mapping, Sequence
from glob import has_magic
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queryveil.data import ROLES, Format, Layout
from queryveil.errors import BadFile, BadParameter, EngineFailed, NotYet, OtherFormat
from queryveil.formats.layouts import sniff
from queryveil.formats.parquet import type_frame
from queryveil.formats.read import parse_choice
from queryveil.formats.records import BadRowPolicy
from queryveil.formats.roles import assign_roles, check_roles, frame_names
from queryveil.formats.streams import ByteStream
from queryveil.spark._executors import (
    Batches,
    arrow_schema,
    map_batches,
    spark_schema,
    spark_types,
    translate_spark_errors,
)
from queryveil.spark._reading_text import (
    OTHER_COLUMNS,
    PIECE_REPORT,
    PieceReport,
    ReadOptions,
    collect_reports,
    file_name,
    read_lines,
    read_whole,
    sum_readings,
)
from queryveil.spark._storage import Storage
from queryveil.spark.logs import SparkLog, name_problem

_BY_LINES = (Format.AOL, Format.EXCITE, Format.TSV, Format.JSONL)
"""Files of these formats can be cut at any line."""
_PACKED = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd")
_MOST_BYTES = 2**31 - 1
"""Any other file must fit into one value of Spark."""


def read_log(
    spark: SparkSession,
    source: str | Sequence[str],
    *,
    format: Format | str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    bad_rows: BadRowPolicy | str = BadRowPolicy.FAIL,
) -> SparkLog:
    """Read a query log: a path, a folder, a glob or several of them, as `queryveil.read_log` would."""
    asked = check_roles(columns)
    chosen = None if format is None else parse_choice(Format, format, name="format")
    policy = parse_choice(BadRowPolicy, bad_rows, name="bad_rows")
    storage = Storage(spark=spark)
    files = _files(storage, [source] if isinstance(source, str) else list(source))
    paths = [path for path, _ in files]
    found = chosen or _sniffed(paths[0], storage.head(paths[0]), columns=asked)
    if found is Format.UBI:
        raise NotYet("OpenSearch UBI on Spark", "its queries and clicks lie in different rows", instead=_HERE)
    if found is Format.TRANSACTIONS and len(files) > 1:
        raise NotYet("several files of transactions on Spark", "users are the lines of one file", instead=_HERE)
    if found is Format.PARQUET:
        return _read_parquet(storage, paths, columns=asked, bad_rows=policy)
    heads = {path: storage.head(path) for path in paths}
    for path, head in heads.items() if chosen is None else ():
        other = _sniffed(path, head, columns=asked)
        if other is not found:
            raise OtherFormat(file_name(path), other, first=found)
    options = ReadOptions(format=found, columns=asked or None, bad_rows=policy)
    if found in _BY_LINES and not any(head.startswith(_PACKED) for head in heads.values()):
        return read_lines(spark, heads, options=options)
    for path, n_bytes in files:
        if n_bytes > _MOST_BYTES:
            raise BadFile(file_name(path), "it is larger than 2 GB; split it, or write it as Parquet")
    return read_whole(spark, paths, options=options)


_HERE = "read it on one machine: leave out --engine"


def _files(storage: Storage, sources: list[str]) -> list[tuple[str, int]]:
    """List the files behind paths, folders and globs, with their sizes."""
    if "-" in sources:
        raise BadParameter("the log", "stdin", allowed="a path that all executors see")
    listed = []
    for source in sources:
        try:
            with translate_spark_errors():
                found = storage.spark.read.format("binaryFile").load(source)
                rows = found.select("path", "length").orderBy("path").collect()
        except BadFile:
            rows = []
        if not rows and not has_magic(source) and storage.exists(source):
            raise BadFile(source, "there is nothing in it")
        if not rows:
            raise BadFile(source, "there is no such file; check the path and that all executors see it")
        listed += [(row["path"], int(row["length"])) for row in rows]
    return listed


def _sniffed(path: str, head: bytes, *, columns: Mapping[str, str]) -> Format:
    with TemporaryDirectory() as folder:
        beginning = Path(folder) / file_name(path)
        beginning.write_bytes(head)
        with ByteStream(beginning) as stream:
            return sniff(stream, columns=columns)


def _read_parquet(
    storage: Storage, paths: list[str], *, columns: Mapping[str, str], bad_rows: BadRowPolicy
) -> SparkLog:
    raw = _opened(storage, paths)
    names = assign_roles(raw.columns, file=file_name(paths[0]), columns=columns)
    inside = frame_names(raw.columns, names=names)
    roles = [role for role in ROLES if role in names]
    order = roles + [inside[name] for name in raw.columns if inside[name] not in ROLES]
    _check_names(order, path=paths[0])
    layout = Layout(format=Format.PARQUET, names=names, columns=tuple(raw.columns))
    # A plain rename, so that a column that nobody asks for is never read.
    given = raw.select([F.col(f"`{name}`").alias(role) for name, role in inside.items()]).select(order)
    reports = collect_reports(map_batches(given.select(roles), _judge_rows, PIECE_REPORT))
    n_bad = sum(each.n_bad for each in reports)
    if n_bad and bad_rows is BadRowPolicy.FAIL:
        raise BadFile(
            file_name(paths[0]), f"{n_bad} rows without a user, or whose time or rank cannot be read; {_MEND}"
        )
    schema = spark_types(_typed(as_raw(arrow_schema(given).empty_table())).to_arrow().schema)
    frame = map_batches(given, _typed_rows, schema, schema=schema)
    if n_bad == 0 and [(each.name, each.dataType) for each in given.schema] == [
        (each.name, each.dataType) for each in spark_schema(schema)
    ]:
        # Nothing needs another type, so Spark can do it, and leave out what nobody asks for.
        frame = given.withColumn("query", F.coalesce("query", F.lit("")))
        frame = frame.withColumn("url", F.nullif("url", F.lit(""))) if "url" in names else frame
    return SparkLog(
        frame=frame, layout=layout, reading=sum_readings(reports), n_rows=sum(each.n_rows for each in reports)
    )


def _opened(storage: Storage, paths: list[str]) -> DataFrame:
    """Open files that have the same columns: Spark would fill missing ones with nulls."""
    first: list[str] = []
    path = paths[0]
    try:
        with translate_spark_errors():
            for path in paths:
                names = storage.parquet_columns(path)
                _check_names(names, path=path)
                first = first or names
                if names != first:
                    raise BadFile(file_name(path), OTHER_COLUMNS)
            path = paths[0]
            return storage.spark.read.parquet(*paths)
    except EngineFailed:
        raise BadFile(file_name(path), "this is not a whole Parquet file of flat columns; write it again") from None


def _check_names(names: list[str], *, path: str) -> None:
    wrong = name_problem(names)
    if wrong is not None:
        raise BadFile(file_name(path), wrong)


_MEND = "mend the files, or leave such rows out with --bad-rows skip"


def as_raw(table: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    """Return Arrow rows as a frame, types as they are."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _typed(frame: pl.DataFrame) -> pl.DataFrame:
    return type_frame(frame).frame().select(frame.columns)


def _judge_rows(batches: Batches) -> Batches:
    n_rows, n_bad = 0, 0
    for batch in batches:
        wrong = type_frame(as_raw(batch)).wrong
        n_bad += int(np.count_nonzero(wrong))
        n_rows += int(np.count_nonzero(wrong == 0))
    reports = PieceReport(n_rows=n_rows, n_bad=n_bad)
    yield reports.batch


def _typed_rows(batches: Batches, *, schema: pa.Schema) -> Batches:
    for batch in batches:
        yield from _typed(as_raw(batch)).to_arrow().cast(schema).to_batches()

"""A release folder written by a cluster: a folder of parts in place of one file, and a manifest that lists them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Literal

import msgspec
import polars as pl
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil.data import ROLES, Format, Layout
from queryveil.formats import extension
from queryveil.formats.write import arrange, check_users, double_byte_order_mark, encode_rows
from queryveil.release import MANIFEST, DataFile, Manifest, Part, Release, sum_of_parts
from queryveil.spark._executors import Batches, arrow_schema, map_batches, spark_types, to_polars
from queryveil.spark._storage import Storage

Arrange = Callable[[pl.DataFrame], pl.DataFrame]
_COMPRESSIONS = {"gz": "gzip", "bz2": "bzip2"}
_SLICE_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputFormat:
    """How rows are written: kind of data, layout, and the columns as the files have them."""

    kind: Literal["log", "transactions", "groups"]
    layout: Layout
    arrange: Arrange
    names: dict[str, str]
    encode: Callable[[pl.DataFrame, int], bytes] | None = None


def save(
    storage: Storage,
    folder: str,
    frame: DataFrame,
    written: OutputFormat,
    *,
    manifest: Manifest,
    n_rows: int,
    force: bool,
) -> Manifest:
    """Write the folder whole or not at all, and return the manifest as it was written."""
    layout = _writable(written.layout)
    name = f"{written.kind}.{extension(layout)}"
    with storage.whole(folder, force=force) as partial_folder:
        target = f"{partial_folder}/{name}"
        _write(frame, target, written, layout=layout, is_empty=n_rows == 0)
        parts = _parts(storage, target, ending=extension(layout))
        data = DataFile(
            name=name,
            sha256=sum_of_parts(parts),
            format=layout.format,
            names=written.names,
            has_header=layout.has_header,
            kind=written.kind,
            parts=parts,
        )
        manifest = msgspec.structs.replace(manifest, data=data)
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        storage.write(f"{partial_folder}/{MANIFEST}", text + b"\n")
        storage.delete_crc_files(partial_folder)
    return manifest


def upload_release(storage: Storage, folder: str, release: Release, *, force: bool) -> Manifest:
    """Write a release that the driver holds to a path of Spark."""
    with TemporaryDirectory() as scratch, storage.whole(folder, force=force) as partial_folder:
        here = release.save(Path(scratch) / "release")
        for file in sorted(here.iterdir()):
            storage.upload(str(file), f"{partial_folder}/{file.name}")
        storage.delete_crc_files(partial_folder)
        return msgspec.json.decode((here / MANIFEST).read_bytes(), type=Manifest)


def _writable(layout: Layout) -> Layout:
    # Spark has no zstd for text of its own.
    return layout if layout.compression in _COMPRESSIONS else replace(layout, compression="")


def _write(frame: DataFrame, target: str, written: OutputFormat, *, layout: Layout, is_empty: bool) -> None:
    inside = arrow_schema(frame)
    if layout.format is Format.PARQUET:
        schema = spark_types(written.arrange(to_polars(inside.empty_table())).to_arrow().schema)
        arranged = map_batches(frame, _arranged, schema, written=written, schema=schema)
        (arranged.coalesce(1) if is_empty else arranged).write.parquet(target, compression="zstd")
        return
    rows = frame.coalesce(1) if is_empty else frame
    lines = map_batches(rows, _encoded, "value string", written=written, layout=layout, inside=inside)
    lines.write.text(target, compression=_COMPRESSIONS.get(layout.compression, "none"))


def _arranged(batches: Batches, *, written: OutputFormat, schema: pa.Schema) -> Batches:
    for batch in batches:
        yield from written.arrange(to_polars(batch)).to_arrow().cast(schema).to_batches()


def _encoded(batches: Batches, *, written: OutputFormat, layout: Layout, inside: pa.Schema) -> Batches:
    """Return the text of each slice of rows; every part begins with a header, so that each is a file of its own."""
    begin = 0
    for frame in _whole_slices(batches, by_user=layout.format is Format.TRANSACTIONS, inside=inside):
        yield _line(_text(written, layout, frame, begin))
        begin += frame.height
    if not begin and _part() == 0:
        # Spark makes a file of the first part in any case, and one without a byte is of no format.
        yield _line(_text(written, layout, to_polars(inside.empty_table()), 0))


def _part() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _whole_slices(batches: Batches, *, by_user: bool, inside: pa.Schema) -> Iterator[pl.DataFrame]:
    """Return the rows in slices; where a line of the file is a user, all rows of the part at once."""
    if by_user:
        frame = to_polars(batches, like=inside)
        if frame.height:
            yield frame
        return
    for batch in batches:
        yield from to_polars(batch).iter_slices(_SLICE_ROWS)


def _text(written: OutputFormat, layout: Layout, frame: pl.DataFrame, begin: int) -> str:
    if written.kind == "log":
        check_users(frame["user"], layout=layout)
    arranged = written.arrange(frame)
    data = encode_rows(arranged, layout=layout, begin=begin) if written.encode is None else written.encode(frame, begin)
    return double_byte_order_mark(data, begin=begin).decode().removesuffix("\n")


def _line(text: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": [text]}, pa.schema([("value", pa.string())]))


def _parts(storage: Storage, target: str, *, ending: str) -> tuple[Part, ...]:
    """Rename the part files in order, and return the name and SHA-256 of each."""
    written = [name for name in storage.names(target) if name.startswith("part-")]
    for name in storage.names(target):
        if name not in written:
            storage.delete(f"{target}/{name}")
    for number, name in enumerate(written):
        storage.rename(f"{target}/{name}", f"{target}/part-{number:05d}.{ending}")
    storage.delete_crc_files(target)
    sums = storage.spark.read.format("binaryFile").load(target).select("path", F.sha2("content", 256).alias("sum"))
    found = sorted((PurePosixPath(row["path"]).name, row["sum"]) for row in sums.collect())
    return tuple(Part(name=name, sha256=sum_) for name, sum_ in found)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ClusterRelease:
    """A release that lies on the cluster: its rows, how they are written, and its manifest."""

    frame: DataFrame
    written: OutputFormat
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class DriverRelease:
    """A release that is small enough for the driver."""

    release: Release


def log_output(layout: Layout, columns: list[str]) -> OutputFormat:
    """Return the output format of a released log: that of the log it was made from."""
    names = {role: layout.names.get(role, role) for role in ROLES if role in columns}
    return OutputFormat(kind="log", layout=layout, arrange=partial(arrange, layout=layout), names=names)

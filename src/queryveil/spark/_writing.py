"""A release written by a cluster: which rows and columns leave, a folder of parts in place of one file, its manifest.

Which columns are released and how ids and times change is said by `ColumnPolicy`, and done here for each batch.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Literal

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil.data import ROLES, Format, Int64s, Layout
from queryveil.formats import extension
from queryveil.formats.write import arrange, check_users, double_byte_order_mark, encode_rows
from queryveil.release import MANIFEST, ColumnPolicy, DataFile, Ids, Manifest, Part, Release, sum_of_parts
from queryveil.spark._executors import Batches, arrow_schema, map_batches, spark_types, to_polars
from queryveil.spark._storage import Storage

_DIGEST, _PLACE, _BUCKET = "digest_of_this_user", "place_of_this_row", "bucket_of_this_user"
"""Columns of our own, beside those of the log."""
_N_BUCKETS = 4096
_ROWS_PER_PARTITION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedRows:
    """Rows to release, and how many of them and of their users there are."""

    frame: DataFrame
    n_rows: int
    n_users: int


def derive_secret(seed: int | None, purpose: str) -> bytes:
    """Return the secret that executors derive their random choices from: a new one, or one that follows from a seed.

    A task that Spark runs again must come to the same; so nothing is drawn there, all follows from this.
    """
    if seed is None:
        return secrets.token_bytes(32)
    return hashlib.blake2b(f"{purpose} {seed}".encode(), digest_size=32).digest()


def keyed_digests(texts: pl.Series, *, secret: bytes) -> list[bytes]:
    """Return 16 bytes for each text that look random to whoever does not know the secret."""
    return [hashlib.blake2b(text.encode(), key=secret, digest_size=16).digest() for text in texts]


def release_rows(
    frame: DataFrame, policy: ColumnPolicy, *, seed: int | None, protected: tuple[str, ...] = ()
) -> ReleasedRows:
    """Return the rows with released columns only, users renamed and rows shuffled; users stay together.

    `frame` must be cheap to read twice. Where one person has several names in a release, they are several users here.
    """
    secret = derive_secret(seed, "leaving")
    empty = to_polars(arrow_schema(frame).empty_table())
    schema = spark_types(_add_order(empty, policy, secret, protected).to_arrow().schema)
    ordered = map_batches(frame, _with_order, schema, policy=policy, secret=secret, protected=protected)
    by_user = ordered.groupBy(_BUCKET, _DIGEST).agg(F.count("*").alias("n_rows"))
    counted = by_user.groupBy(_BUCKET).agg(F.count("*").alias("n_users"), F.sum("n_rows").alias("n_rows"))
    counts = counted.toArrow()
    users = np.zeros(_N_BUCKETS, np.int64)
    users[counts[_BUCKET].to_numpy()] = counts["n_users"].to_numpy()
    n_rows = int(np.sum(counts["n_rows"].to_numpy())) if counts.num_rows else 0
    first = np.concatenate([[0], np.cumsum(users)[:-1]])
    n_partitions = max(1, -(-n_rows // _ROWS_PER_PARTITION))
    shuffled = ordered.repartition(n_partitions, _BUCKET).sortWithinPartitions(_DIGEST, _PLACE)
    released = spark_types(pa.schema([each for each in schema if each.name not in (_BUCKET, _DIGEST, _PLACE)]))
    first_ids = first if policy.ids is Ids.FRESH else None
    out = map_batches(shuffled, _without_order, released, first=first_ids, schema=released)
    return ReleasedRows(frame=out, n_rows=n_rows, n_users=int(users.sum()))


def n_alone(released: ReleasedRows, policy: ColumnPolicy) -> int | None:
    """Return how many released users have a set of times that no other user has, as `ColumnPolicy.n_alone` does."""
    if policy.time.is_covered or "time" not in released.frame.columns:
        return None
    timed = released.frame.where(F.col("time").isNotNull())
    sets = timed.groupBy("user").agg(F.sort_array(F.collect_set("time")).alias("times"))
    return sets.groupBy("times").count().where(F.col("count") == 1).count()


def _with_order(batches: Batches, *, policy: ColumnPolicy, secret: bytes, protected: tuple[str, ...]) -> Batches:
    for batch in batches:
        table = _add_order(to_polars(batch), policy, secret, protected).to_arrow()
        yield from table.cast(spark_types(table.schema)).to_batches()


def _add_order(frame: pl.DataFrame, policy: ColumnPolicy, secret: bytes, protected: tuple[str, ...]) -> pl.DataFrame:
    """Return the released columns, and beside them what rows are sorted by: a digest of the user, a hash of the row."""
    # Privacy: the order follows from what is released, and tells nothing of what is dropped.
    out = policy.released_columns(frame, protected=protected)
    out = out.with_columns(policy.released_ids(out["user"]))
    place = out.hash_rows(seed=int.from_bytes(secret[:8], "big")).cast(pl.Int64, wrap_numerical=True)
    users = out["user"].unique(maintain_order=True)
    keys = pl.DataFrame({"user": users, _DIGEST: pl.Series(keyed_digests(users, secret=secret), dtype=pl.Binary)})
    keys = keys.with_columns(_buckets(keys[_DIGEST]).alias(_BUCKET))
    return out.with_columns(place.alias(_PLACE)).join(keys, on="user", how="left", maintain_order="left")


def _buckets(digests: pl.Series) -> pl.Series:
    if not len(digests):
        return pl.Series([], dtype=pl.Int32)
    first = np.frombuffer(b"".join(digests.bin.head(2).to_list()), ">u2")
    return pl.Series(first.astype(np.int32) % _N_BUCKETS)


def _without_order(batches: Batches, *, first: Int64s | None, schema: pa.Schema) -> Batches:
    """Return the released columns; fresh ids count from `first` of each bucket, in the order of digests.

    All of a bucket is in one partition, in the order of digests; but buckets are not, so each counts for itself.
    """
    seen: dict[int, int] = {}
    last = b""
    for batch in batches:
        frame = to_polars(batch)
        if first is not None:
            numbers = []
            for digest, bucket in frame.select(_DIGEST, _BUCKET).iter_rows():
                if digest != last:
                    seen[bucket] = seen.get(bucket, 0) + 1
                    last = digest
                numbers.append(int(first[bucket]) + seen[bucket])
            frame = frame.with_columns(user=pl.Series(numbers, dtype=pl.Int64).cast(pl.String))
        yield from frame.select(schema.names).to_arrow().cast(schema).to_batches()


_COMPRESSIONS = {"gz": "gzip", "bz2": "bzip2"}
_SLICE_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputFormat:
    """How rows are written: kind of data, layout, and the columns as the files have them."""

    kind: Literal["log", "transactions", "groups"]
    layout: Layout
    arrange: Callable[[pl.DataFrame], pl.DataFrame]
    names: dict[str, str]
    encode: Callable[[pl.DataFrame], bytes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ClusterRelease:
    """A release that lies on the cluster: its rows, how they are written, and its manifest."""

    frame: DataFrame
    written: OutputFormat
    manifest: Manifest


def log_output(layout: Layout, columns: list[str]) -> OutputFormat:
    """Return the output format of a released log: that of the log it was made from."""
    names = {role: layout.names.get(role, role) for role in ROLES if role in columns}
    return OutputFormat(kind="log", layout=layout, arrange=partial(arrange, layout=layout), names=names)


def save(storage: Storage, folder: str, release: ClusterRelease, *, force: bool) -> Manifest:
    """Write the folder whole or not at all, and return the manifest as it was written."""
    written = release.written
    # Spark has no zstd for text of its own.
    known = written.layout.compression in _COMPRESSIONS
    layout = written.layout if known else replace(written.layout, compression="")
    name = f"{written.kind}.{extension(layout)}"
    with storage.whole(folder, force=force) as partial_folder:
        target = f"{partial_folder}/{name}"
        is_empty = release.manifest.counts.n_rows_after == 0
        _write(release.frame.coalesce(1) if is_empty else release.frame, target, written, layout=layout)
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
        manifest = msgspec.structs.replace(release.manifest, data=data)
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


def _write(frame: DataFrame, target: str, written: OutputFormat, *, layout: Layout) -> None:
    inside = arrow_schema(frame)
    if layout.format is Format.PARQUET:
        schema = spark_types(written.arrange(to_polars(inside.empty_table())).to_arrow().schema)
        arranged = map_batches(frame, _arranged, schema, written=written, schema=schema)
        arranged.write.parquet(target, compression="zstd")
        return
    lines = map_batches(frame, _encoded, "value string", written=written, layout=layout, inside=inside)
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
    context = TaskContext.get()
    if not begin and (context is None or context.partitionId() == 0):
        # Spark makes a file of the first part in any case, and one without a byte is of no format.
        yield _line(_text(written, layout, to_polars(inside.empty_table()), 0))


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
    data = encode_rows(arranged, layout=layout, begin=begin) if written.encode is None else written.encode(arranged)
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

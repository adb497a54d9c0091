"""A release written by a cluster: what leaves by `ColumnPolicy`, a folder of parts in place of a file, a manifest."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
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
from queryveil.release import MANIFEST, ColumnPolicy, DataFile, Ids, Manifest, Part, Release, TextCounts, sum_of_parts
from queryveil.release.columns import new_key
from queryveil.spark._executors import Batches, arrow_schema, map_batches, map_frames, to_polars
from queryveil.spark._storage import Storage

_ORDER = _DIGEST, _PLACE, _BUCKET = "digest_of_this_user", "place_of_this_row", "bucket_of_this_user"
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
    """Return the secret that executors derive their random choices from: a new one, or one that follows from a seed."""
    # A task that Spark runs again must come to the same, so nothing is drawn there.
    return new_key() if seed is None else hashlib.blake2b(f"{purpose} {seed}".encode(), digest_size=32).digest()


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
    ordered = map_frames(frame, add_order, policy=policy, secret=secret, protected=protected)
    by_user = ordered.groupBy(_BUCKET, _DIGEST).agg(F.count("*").alias("n_rows"))
    counted = by_user.groupBy(_BUCKET).agg(F.count("*").alias("n_users"), F.sum("n_rows").alias("n_rows"))
    counts = counted.toArrow()
    users = np.zeros(_N_BUCKETS, np.int64)
    users[counts[_BUCKET].to_numpy()] = counts["n_users"].to_numpy()
    n_rows = int(np.sum(counts["n_rows"].to_numpy()))
    n_partitions = max(1, -(-n_rows // _ROWS_PER_PARTITION))
    shuffled = ordered.repartition(n_partitions, _BUCKET).sortWithinPartitions(_DIGEST, _PLACE)
    if policy.ids is Ids.FRESH:
        n_before = np.cumsum(users) - users
        shuffled = map_frames(shuffled, _with_fresh_ids, by_partition=True, n_before=n_before)
    return ReleasedRows(frame=shuffled.drop(*_ORDER), n_rows=n_rows, n_users=int(users.sum()))


def n_alone(released: ReleasedRows, policy: ColumnPolicy) -> int | None:
    """Return how many released users have a set of times that no other user has, as `ColumnPolicy.n_alone` does."""
    if policy.time.is_covered or "time" not in released.frame.columns:
        return None
    timed = released.frame.where(F.col("time").isNotNull())
    sets = timed.groupBy("user").agg(F.sort_array(F.collect_set("time")).alias("times"))
    return sets.groupBy("times").count().where(F.col("count") == 1).count()


def sum_texts(texts: DataFrame) -> TextCounts:
    """Count distinct texts, each with its `n_rows`, whether it `is_of_one` person, and whether it `has_identifier`."""
    found = texts.agg(
        F.count("*").alias("n_texts"),
        F.count_if("is_of_one").alias("n_of_one_person"),
        F.count_if("has_identifier").alias("n_with_identifier"),
        F.sum(F.when(F.col("is_of_one"), F.col("n_rows"))).alias("n_rows_of_one_person"),
        F.sum(F.when(F.col("has_identifier"), F.col("n_rows"))).alias("n_rows_with_identifier"),
    )
    return TextCounts(**{name: int(n or 0) for name, n in found.collect()[0].asDict().items()})


def add_order(frame: pl.DataFrame, *, policy: ColumnPolicy, secret: bytes, protected: tuple[str, ...]) -> pl.DataFrame:
    """Return the released columns, and beside them what rows are sorted by: a digest of the user, a hash of the row."""
    # Privacy: the order follows from what is released, and tells nothing of what is dropped.
    out = policy.released_columns(frame, protected=protected)
    out = out.with_columns(policy.released_ids(out["user"]))
    place = out.hash_rows(seed=int.from_bytes(secret[:8], "big")).cast(pl.Int64, wrap_numerical=True)
    users = out["user"].unique(maintain_order=True)
    digests = keyed_digests(users, secret=secret)
    buckets = [int.from_bytes(digest[:2]) % _N_BUCKETS for digest in digests]
    types = {"user": pl.String, _DIGEST: pl.Binary, _BUCKET: pl.Int32}
    keys = pl.DataFrame({"user": users, _DIGEST: digests, _BUCKET: buckets}, schema=types)
    return out.with_columns(place.alias(_PLACE)).join(keys, on="user", how="left", maintain_order="left")


def _with_fresh_ids(frame: pl.DataFrame, *, n_before: Int64s) -> pl.DataFrame:
    """Number the users of a partition, which has whole buckets in the order of digests; `n_before` are in others."""
    place = pl.col(_DIGEST).rle_id().over(_BUCKET) + 1
    return frame.with_columns(user=(place + n_before[frame[_BUCKET].to_numpy()]).cast(pl.String))


_COMPRESSIONS = {"gz": "gzip", "bz2": "bzip2"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputFormat:
    """How rows are written: kind of data, layout, and the columns as the files have them."""

    kind: Literal["log", "transactions", "groups"]
    layout: Layout
    arrange: Callable[[pl.DataFrame], pl.DataFrame]
    names: dict[str, str] = field(default_factory=dict)
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
    if layout.format is Format.PARQUET:
        map_frames(frame, written.arrange).write.parquet(target, compression="zstd")
        return
    lines = map_batches(frame, _encoded, "value string", written=written, layout=layout, inside=arrow_schema(frame))
    lines.write.text(target, compression=_COMPRESSIONS.get(layout.compression, "none"))


def _encoded(batches: Batches, *, written: OutputFormat, layout: Layout, inside: pa.Schema) -> Batches:
    """Return the text of each batch; every part begins with a header, so that each is a file of its own."""
    # Where a line of the file is a user, it needs all rows of the part at once.
    is_by_user = layout.format is Format.TRANSACTIONS
    begin = 0
    for frame in [to_polars(batches, like=inside)] if is_by_user else map(to_polars, batches):
        if frame.height:
            yield _text(written, layout, frame, begin)
            begin += frame.height
    context = TaskContext.get()
    if not begin and (context is None or context.partitionId() == 0):
        # Spark makes a file of the first part in any case, and one without a byte is of no format.
        yield _text(written, layout, to_polars(inside.empty_table()), 0)


def _text(written: OutputFormat, layout: Layout, frame: pl.DataFrame, begin: int) -> pa.RecordBatch:
    if written.kind == "log":
        check_users(frame["user"], layout=layout)
    arranged = written.arrange(frame)
    data = encode_rows(arranged, layout=layout, begin=begin) if written.encode is None else written.encode(arranged)
    text = double_byte_order_mark(data, begin=begin).decode().removesuffix("\n")
    return pa.RecordBatch.from_pydict({"value": [text]})


def _parts(storage: Storage, target: str, *, ending: str) -> tuple[Part, ...]:
    """Rename the part files in order, and return the name and SHA-256 of each."""
    written = [name for name in storage.names(target) if name.startswith("part-")]
    for name in set(storage.names(target)) - set(written):
        storage.delete(f"{target}/{name}")
    for number, name in enumerate(written):
        storage.rename(f"{target}/{name}", f"{target}/part-{number:05d}.{ending}")
    storage.delete_crc_files(target)
    return tuple(Part(name=name, sha256=sha256) for name, sha256 in sorted(storage.sha256_of([target]).items()))

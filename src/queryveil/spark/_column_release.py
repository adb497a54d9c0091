"""`ColumnPolicy` on a cluster: released columns, renamed users, and rows in a random order.

Which columns are released and how ids and times change is said in `queryveil.release`, and done here for each batch.
"""

import hashlib
import secrets
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil.data import Int64s
from queryveil.release import ColumnPolicy, Ids
from queryveil.spark._executors import Batches, arrow_schema, map_batches, spark_types, to_polars

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

"""Which columns leave, users under new names and rows in an order that tells nothing: `ColumnPolicy` on a cluster."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from queryveil.data import Int64s
from queryveil.release import ColumnPolicy, Ids, TimeDetail, keyed
from queryveil.spark.executors import Batches, guarded, speaking
from queryveil.spark.logs import arrow_schema, as_frame, plain, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DIGEST, _PLACE, _BUCKET = "digest_of_this_user", "place_of_this_row", "bucket_of_this_user"
"""Columns of our own, beside those of the log."""
_N_BUCKETS = 4096
_ROWS_A_PART = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaving:
    """Rows that may leave, and how many of them and of their users there are."""

    frame: DataFrame
    n_rows: int
    n_users: int


def secret_of(seed: int | None, what: str) -> bytes:
    """Return the secret that chance is drawn from on executors: the system's, or one that follows from a seed.

    A task that Spark runs again must come to the same; so nothing is drawn there, all follows from this.
    """
    if seed is None:
        return secrets.token_bytes(32)
    return hashlib.blake2b(f"{what} {seed}".encode(), digest_size=32).digest()


def digests(texts: pl.Series, *, secret: bytes) -> list[bytes]:
    """Return 16 bytes for each text that look like chance to whoever does not know the secret."""
    return [hashlib.blake2b(text.encode(), key=secret, digest_size=16).digest() for text in texts]


def leave(frame: DataFrame, policy: ColumnPolicy, *, seed: int | None, protected: tuple[str, ...] = ()) -> Leaving:
    """Return the rows with released columns only, users renamed and rows shuffled; users stay together.

    `frame` must be cheap to read twice. Where one person has several names in a release, they are several users here.
    """
    secret = secret_of(seed, "leaving")
    inside = arrow_schema(frame)
    work = partial(_marked, policy=policy, secret=secret, protected=protected)
    schema = plain(_mark(as_frame(inside.empty_table()), policy, secret, protected).to_arrow().schema)
    marked = frame.mapInArrow(guarded(work), schema_of(schema))
    with speaking(so="nothing was released"):
        by_user = marked.groupBy(_BUCKET, _DIGEST).agg(F.count("*").alias("n_rows"))
        counted = by_user.groupBy(_BUCKET).agg(F.count("*").alias("n_users"), F.sum("n_rows").alias("n_rows"))
        counts = counted.toArrow()
    users = np.zeros(_N_BUCKETS, np.int64)
    users[counts[_BUCKET].to_numpy()] = counts["n_users"].to_numpy()
    n_rows = int(np.sum(counts["n_rows"].to_numpy())) if counts.num_rows else 0
    first = np.concatenate([[0], np.cumsum(users)[:-1]])
    n_parts = max(1, -(-n_rows // _ROWS_A_PART))
    in_order = marked.repartition(n_parts, _BUCKET).sortWithinPartitions(_DIGEST, _PLACE)
    released = plain(pa.schema([each for each in schema if each.name not in (_BUCKET, _DIGEST, _PLACE)]))
    numbered = partial(_numbered, first=first if policy.ids is Ids.FRESH else None, schema=released)
    out = in_order.mapInArrow(guarded(numbered), schema_of(released))
    return Leaving(frame=out, n_rows=n_rows, n_users=int(users.sum()))


def _marked(batches: Batches, *, policy: ColumnPolicy, secret: bytes, protected: tuple[str, ...]) -> Batches:
    for batch in batches:
        table = _mark(as_frame(batch), policy, secret, protected).to_arrow()
        yield from table.cast(plain(table.schema)).to_batches()


def _mark(frame: pl.DataFrame, policy: ColumnPolicy, secret: bytes, protected: tuple[str, ...]) -> pl.DataFrame:
    """Cut rows down to what leaves, and put beside them where they go: a digest of the user, a place among its rows."""
    names = [name for name in frame.columns if name in ("user", "query", *protected) or name in policy.keep]
    if "time" in frame.columns and policy.time is not TimeDetail.DROP:
        names = [name for name in frame.columns if name in (*names, "time")]
    # Privacy: rows that are alike may change places, no others are told apart by what is dropped.
    out = frame.select(names)
    if "time" in out.columns and policy.time in (TimeDetail.DAY, TimeDetail.HOUR):
        out = out.with_columns(pl.col("time").dt.truncate("1d" if policy.time is TimeDetail.DAY else "1h"))
    place = out.hash_rows(seed=int.from_bytes(secret[:8], "big")).cast(pl.Int64, wrap_numerical=True)
    users = out["user"].unique(maintain_order=True)
    found = pl.DataFrame({"user": users, _DIGEST: pl.Series(digests(users, secret=secret), dtype=pl.Binary)})
    found = found.with_columns(_buckets(found[_DIGEST]).alias(_BUCKET))
    out = out.with_columns(place.alias(_PLACE)).join(found, on="user", how="left", maintain_order="left")
    if policy.ids is not Ids.KEYED or policy.key is None:
        return out
    pseudonyms = keyed(users, key=policy.key)
    return out.with_columns(user=out["user"].replace_strict(users, pseudonyms, return_dtype=pl.String))


def _buckets(digests: pl.Series) -> pl.Series:
    if not len(digests):
        return pl.Series([], dtype=pl.Int32)
    first = np.frombuffer(b"".join(digests.bin.head(2).to_list()), ">u2")
    return pl.Series(first.astype(np.int32) % _N_BUCKETS)


def _numbered(batches: Batches, *, first: Int64s | None, schema: pa.Schema) -> Batches:
    """Return users their numbers: those of a bucket follow those of the buckets before it, by their digests.

    All of a bucket is in one part, in the order of digests; but buckets are not, so each counts for itself.
    """
    seen: dict[int, int] = {}
    last = b""
    for batch in batches:
        frame = as_frame(batch)
        if first is not None:
            numbers = []
            for digest, bucket in frame.select(_DIGEST, _BUCKET).iter_rows():
                if digest != last:
                    seen[bucket] = seen.get(bucket, 0) + 1
                    last = digest
                numbers.append(int(first[bucket]) + seen[bucket])
            frame = frame.with_columns(user=pl.Series(numbers, dtype=pl.Int64).cast(pl.String))
        yield from frame.select(schema.names).to_arrow().cast(schema).to_batches()

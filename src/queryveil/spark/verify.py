"""Verify a release on a cluster."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from queryveil.checks import verify as verify_here
from queryveil.checks.invented import without_unknown as blanked
from queryveil.checks.tokens import tokenise
from queryveil.checks.verdict import Verdict, Witness
from queryveil.data import ROLES, Format, QueryLog
from queryveil.errors import BadRelease, NothingPromised, NotYet, QueryveilError
from queryveil.guarantees import DifferentialPrivacy, KmAnonymity, NoPromise
from queryveil.release import FORMAT_VERSION, MANIFEST, DataFile, Manifest, sum_of_parts
from queryveil.spark.executors import Batches, guarded, speaking
from queryveil.spark.logs import SparkLog, as_frame, schema_of
from queryveil.spark.reading import read_log
from queryveil.spark.storage import Storage
from queryveil.spark.verify_km import verify_km

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ONE_MACHINE = "leave out --engine, where the release fits into one machine"


def verify(spark: SparkSession, folder: str, *, original: SparkLog | None = None) -> Verdict:
    """Judge the promise of a release; with the original also look for terms that the release has more of."""
    storage = Storage(spark=spark)
    manifest = read_manifest(storage, folder)
    promise = manifest.promise
    if isinstance(promise, NoPromise):
        raise NothingPromised(promise.reason)
    if isinstance(promise, DifferentialPrivacy):
        if original is not None:
            raise NotYet(
                "counts beside their original on Spark", "they are judged on one machine", instead=_ONE_MACHINE
            )
        return _verify_here(storage, folder)
    if not isinstance(promise, KmAnonymity):
        raise NotYet(
            f"a release of {manifest.method} on Spark", "its checker runs on one machine", instead=_ONE_MACHINE
        )
    assert manifest.data is not None
    released = released_log(storage, folder, manifest)
    unit = manifest.columns.time.unit
    verdict = verify_km(released.frame, promise, time_unit=unit)
    if original is None:
        return verdict
    n_more, witnesses = _invented(released, original, promise=promise)
    return verdict.joined(witnesses=witnesses, n_violations=n_more)


def read_manifest(storage: Storage, folder: str) -> Manifest:
    """Read what a release says of itself."""
    if not storage.is_folder(folder):
        raise BadRelease(folder, "there is no such folder")
    if not storage.exists(f"{folder}/{MANIFEST}"):
        raise BadRelease(folder, f"{MANIFEST} is missing")
    try:
        manifest = msgspec.json.decode(storage.read(f"{folder}/{MANIFEST}"), type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, QueryveilError):
        raise BadRelease(folder, f"{MANIFEST} is damaged, or from a newer queryveil") from None
    if manifest.format_version != FORMAT_VERSION:
        raise BadRelease(folder, f"{MANIFEST} is from a newer queryveil; install that one")
    if manifest.data is None:
        raise BadRelease(folder, f"{MANIFEST} names no data file")
    return manifest


def released_log(storage: Storage, folder: str, manifest: Manifest) -> SparkLog:
    """Read the rows of a release, and check that they are what the manifest was written for."""
    data = manifest.data
    assert data is not None
    files = _checked_files(storage, folder, data)
    named = data.format not in (Format.AOL, Format.EXCITE, Format.UBI, Format.TRANSACTIONS)
    columns = {**dict.fromkeys(ROLES, ""), **data.names} if named else None
    return read_log(storage.spark, files, format=data.format, columns=columns)


def _checked_files(storage: Storage, folder: str, data: DataFile) -> list[str]:
    expected = {part.name: part.sha256 for part in data.parts} or {data.name: data.sha256}
    place = f"{folder}/{data.name}" if data.parts else folder
    if any("/" in name for name in (data.name, *expected)):
        raise BadRelease(folder, f"{MANIFEST} names no data file")
    if not storage.exists(f"{folder}/{data.name}"):
        raise BadRelease(folder, f"{data.name} is missing")
    is_doubled = len(expected) < len(data.parts)
    others = data.parts and (data.sha256 != sum_of_parts(data.parts) or set(storage.names(place)) != set(expected))
    if is_doubled or others:
        raise BadRelease(folder, f"the parts of {data.name} are not those that {MANIFEST} was written for")
    contents = storage.spark.read.format("binaryFile").load([f"{place}/{name}" for name in expected])
    with speaking():
        sums = {
            row["path"].rpartition("/")[2]: row["sum"]
            for row in contents.select("path", F.sha2("content", 256).alias("sum")).collect()
        }
    if sums != expected:
        raise BadRelease(folder, f"{data.name} is not what {MANIFEST} was written for (sha256 differs)")
    return [f"{place}/{name}" for name in expected]


def _verify_here(storage: Storage, folder: str) -> Verdict:
    """Bring a small release to this machine, and judge it there."""
    with TemporaryDirectory() as scratch:
        here = Path(scratch) / "release"
        here.mkdir()
        for name in storage.names(folder):
            (here / name).write_bytes(storage.read(f"{folder}/{name}"))
        return verify_here(here)


def _invented(released: SparkLog, original: SparkLog, *, promise: KmAnonymity) -> tuple[int, list[Witness]]:
    """Count the terms that have more users or occurrences in the release than in the original, and users and rows."""
    if promise.window is not None:
        raise NotYet("windows beside their original on Spark", "users have a name for each", instead=_ONE_MACHINE)
    by_blanks = original.layout.terms_are_items
    if promise.items and not by_blanks:
        raise NotYet("nodes of a taxonomy beside their original on Spark", "they need a tree", instead=_ONE_MACHINE)
    now = _counted(released.frame, by_blanks=by_blanks)
    more = _more_than(now, _counted(original.frame, by_blanks=by_blanks))
    with speaking():
        n_more = more.count()
        if n_more and not by_blanks:
            # A sign that this Python does not know may be a separator to the method, so both readings must agree.
            other = _counted(original.frame, by_blanks=False, without_unknown=True)
            more = more.join(_more_than(now, other).select("term"), "term", "left_semi")
            n_more = more.count()
        shown = more.orderBy("users").limit(Verdict.N_KEPT).select("users", "users_before").collect()
        totals = [(released.n_users, original.n_users), (released.n_rows, original.n_rows)]
    witnesses = [_more(1, row["users"], row["users_before"]) for row in shown]
    witnesses += [_more(0, now, then) for now, then in totals if now > then]
    return n_more + sum(now > then for now, then in totals), witnesses


def _more_than(now: DataFrame, then: DataFrame) -> DataFrame:
    """Return the terms that have more users or occurrences now than then."""
    both = now.join(then.withColumnsRenamed({"users": "users_before", "n": "n_before"}), "term", "left")
    both = both.na.fill(0, ["users_before", "n_before"])
    return both.where((F.col("users") > F.col("users_before")) | (F.col("n") > F.col("n_before")))


def _more(size: int, now: int, then: int) -> Witness:
    return Witness(kind="invented", size=size, support=now, needed=then, rows=(), positions=())


def _counted(frame: DataFrame, *, by_blanks: bool, without_unknown: bool = False) -> DataFrame:
    """Count the users and occurrences of each term; signs that this Python does not know may count as blanks."""
    schema = pa.schema([("user", pa.string()), ("term", pa.string()), ("n", pa.int64())])
    pairs = frame.select("user", "query").mapInArrow(
        guarded(partial(_terms, by_blanks=by_blanks, without_unknown=without_unknown, schema=schema)), schema_of(schema)
    )
    by_user = pairs.groupBy("user", "term").agg(F.sum("n").alias("n"))
    return by_user.groupBy("term").agg(F.count("*").alias("users"), F.sum("n").alias("n"))


def _terms(batches: Batches, *, by_blanks: bool, without_unknown: bool, schema: pa.Schema) -> Batches:
    for batch in batches:
        rows = as_frame(batch)
        if without_unknown:
            rows = blanked(QueryLog(frame=rows)).frame
        tokens = tokenise(rows["query"], items=by_blanks)
        users = rows["user"].gather(np.repeat(np.arange(rows.height), np.diff(tokens.starts)))
        found = pl.DataFrame(
            {"user": users, "term": tokens.words.gather(tokens.terms)}, schema_overrides={"user": pl.String}
        )
        counted = found.group_by("user", "term").agg(n=pl.len().cast(pl.Int64))
        yield from counted.to_arrow().cast(schema).to_batches()

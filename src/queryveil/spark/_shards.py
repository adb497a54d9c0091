"""Run a local method in each of many shards of users: for promises that hold for groups of users.

Whoever is in a group of k in a shard is in the same group in the union, so the union keeps what every shard keeps. What
a method promises of the release as a whole its own file here must see to.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil import errors, progress
from queryveil.data import ROLES, Layout, QueryLog
from queryveil.release import Counts, Manifest, Release, TextCounts
from queryveil.settings import is_whole
from queryveil.spark import _executors, _writing
from queryveil.spark._executors import SparkLog, spark_types, to_polars


class ShardReport(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of the release of a shard and further sums, or how many users it has, what it needs, a way out."""

    shard: int
    manifest: Manifest | None = None
    sums: dict[str, float] = {}
    too_few: tuple[int, int, str] | None = None


def sum_tables(tables: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add tables up, name by name.

    >>> sum_tables([{"rows": 1}, {"rows": 2, "terms": 5}])
    {'rows': 3, 'terms': 5}
    """
    total: Counter[str] = Counter()
    for table in tables:
        total.update(table)
    return dict(total)


def total(reports: Sequence[ShardReport], name: str) -> float:
    """Add one of the numbers up over all shards."""
    return sum(each.sums.get(name, 0) for each in reports)


def mean(manifests: Sequence[Manifest], measure: str, *, weights: Sequence[float]) -> float:
    """Return the mean of a measure of the shards, each with a weight; 0 where nothing has any."""
    whole = sum(weights)
    values = (manifest.measures.get(measure, 0.0) for manifest in manifests)
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / whole if whole else 0.0


USERS_PER_SHARD = 50_000
"""One executor does so many in about a minute. Fewer in each cost more: of 200,000 made-up users in 4 shards clump lost
16 % more than in one, partition 8 %, and kdelta kept 4 % fewer rows."""

# Columns of a log that are kept may have any name but these.
SHARD = "shard_of_this_user"
REPORT = "told_by_this_shard"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Outcome:
    """What the method made of one shard: rows, the manifest that goes with them, and more to be summed."""

    frame: pl.DataFrame
    manifest: Manifest
    sums: dict[str, float]


Work = Callable[[Any, QueryLog], Outcome]
"""Runs a method, which has a seed, on the log of a shard."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Shards:
    """The rows of all shards with the column `SHARD`, and the report of each shard."""

    frame: DataFrame
    reports: list[ShardReport]

    @property
    def manifests(self) -> list[Manifest]:
        """The manifests of the shards."""
        return [each.manifest for each in self.reports if each.manifest is not None]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Sharding:
    """A log to anonymize in shards, and (`base`) the manifest of the same log without rows, with all but the counts."""

    log: SparkLog
    base: Manifest
    n_users: int
    shards: int | None
    scratch: str

    def run(
        self,
        work: Work,
        method: Any,
        *,
        columns: Sequence[str],
        schema: pa.Schema | str,
        is_enough: Callable[[list[ShardReport]], bool] = lambda _: True,
    ) -> Shards:
        """Run a method on the users of each shard; where one has too few for a group, on fewer shards.

        `columns` are those of the log that the method reads, `schema` is that of the rows which it gives. In a single
        shard it is the local method, and raises what that raises.
        """
        log, n_shards = self.log, self.shards or max(1, -(-self.n_users // USERS_PER_SHARD))
        secret = _writing.derive_secret(method.seed, "shards")
        # Privacy: the seed stays behind; what chance a shard has follows from the secret.
        shipped = log.frame.sparkSession.sparkContext.broadcast(replace(method, seed=None))
        rows = log.frame.select([name for name in log.columns if name in columns])
        full = pa.schema([*spark_types(schema), *spark_types(f"{SHARD} int, {REPORT} binary")])
        while True:
            progress.step(f"working in {n_shards} shards" if n_shards > 1 else "working in 1 shard")
            run = partial(_run_shard, work=work, shipped=shipped, secret=secret, n_shards=n_shards, layout=log.layout)
            in_place = _executors.map_frames(rows, assign_shards, secret=secret, n_shards=n_shards)
            outcomes = _executors.map_groups(in_place, SHARD, run, full, schema=full)
            # Written once, so that what is read later is the same if executors are lost.
            found = _split_off_reports(_executors.stored(outcomes, f"{self.scratch}/shards-{n_shards}"))
            too_few = next((each.too_few for each in found.reports if each.too_few is not None), None)
            if too_few is None and is_enough(found.reports):
                return found
            if too_few is not None and n_shards == 1:
                n_users, needed, way_out = too_few
                raise errors.TooFewUsers(n_users, needed=needed, way_out=way_out)
            # Whatever is asked of a whole release holds in the only one: the local method has seen to it.
            assert n_shards > 1
            n_shards //= 2

    def manifest(
        self,
        found: Shards,
        *,
        n_rows: int,
        n_users: int,
        measures: Mapping[str, float],
        warnings: Iterable[str],
        texts: TextCounts | None = None,
    ) -> Manifest:
        """Return the manifest of `n_rows` released for `n_users`; what shards removed and changed is summed."""
        base, shards = self.base, found.manifests
        return msgspec.structs.replace(
            base,
            counts=Counts(
                n_rows_before=self.log.n_rows, n_rows_after=n_rows, n_users_before=self.n_users, n_users_after=n_users
            ),
            texts=texts,
            removed=sum_tables([base.removed, *(shard.removed for shard in shards)]),
            changed=sum_tables([base.changed, *(shard.changed for shard in shards)]),
            measures=dict(measures) | ({"shards": len(shards)} if len(shards) > 1 else {}),
            warnings=tuple(warnings),
        )


def anonymize_in_shards(
    anonymize: Callable[[Any, Sharding], _writing.ClusterRelease],
    method: Any,
    log: SparkLog,
    *,
    shards: int | None,
    scratch: str,
) -> _writing.ClusterRelease | Release:
    """Return what `anonymize` makes of a log in shards, or a release of the driver if nothing is left of it."""
    if shards is not None and (not is_whole(shards) or shards < 1):
        raise errors.BadParameter("shards", shards, allowed="1 or more")
    base: Release = method.anonymize(log.empty)
    if not log.n_rows:
        return base
    sharding = Sharding(log=log, base=base.manifest, n_users=log.n_users, shards=shards, scratch=scratch)
    release = anonymize(method, sharding)
    is_empty = not release.manifest.counts.n_rows_after
    return Release(data=base.data, manifest=release.manifest) if is_empty else release


def _split_off_reports(written: DataFrame) -> Shards:
    reports = written.where(F.col(REPORT).isNotNull()).select(REPORT).toArrow()
    frame = written.where(F.col(REPORT).isNull()).drop(REPORT)
    decoded = [msgspec.msgpack.decode(data, type=ShardReport) for data in reports[REPORT].to_pylist()]
    return Shards(frame=frame, reports=sorted(decoded, key=lambda each: each.shard))


def assign_shards(frame: pl.DataFrame, *, secret: bytes, n_shards: int) -> pl.DataFrame:
    """Return each row with the shard of its user, a keyed hash: nobody can choose the users of a shard."""
    users = frame["user"].unique()
    shard = [int.from_bytes(digest[:8]) % n_shards for digest in _writing.keyed_digests(users, secret=secret)]
    places = pl.DataFrame({"user": users, SHARD: pl.Series(shard, dtype=pl.Int32)})
    return frame.join(places, on="user", how="left", maintain_order="left")


def _run_shard(
    rows: pl.DataFrame,
    *,
    work: Work,
    shipped: Broadcast[Any],
    secret: bytes,
    n_shards: int,
    layout: Layout,
    schema: pa.Schema,
) -> pl.DataFrame:
    """Run the method on a shard; return its rows, and one more row with the report."""
    shard = int(rows[SHARD][0])
    log = QueryLog(frame=sorted_rows(rows.drop(SHARD)), layout=layout)
    released, report = to_polars(schema.empty_table()), ShardReport(shard=shard)
    try:
        outcome = work(replace(shipped.value, seed=shard_seed(secret, shard, n_shards)), log)
    except errors.TooFewUsers as error:
        way_out = str(error).partition("; try ")[2]
        report = ShardReport(shard=shard, too_few=(error.n_users, error.needed, way_out))
    except errors.BadParameter as error:
        if n_shards == 1 or error.name != "k":
            raise
        report = ShardReport(shard=shard, too_few=(0, 1, "fewer shards"))
    else:
        released, report = outcome.frame, ShardReport(shard=shard, manifest=outcome.manifest, sums=outcome.sums)
    report_row = pl.DataFrame({REPORT: [msgspec.msgpack.encode(report)]})
    return pl.concat([released, report_row], how="diagonal").with_columns(pl.lit(shard, pl.Int32).alias(SHARD))


def shard_seed(secret: bytes, shard: int, n_shards: int) -> int:
    """Return the seed of a shard; a task that Spark runs again comes to the same.

    >>> shard_seed(b"a secret", 0, 2) == shard_seed(b"a secret", 1, 2)
    False
    """
    (digest,) = _writing.keyed_digests(pl.Series([f"{shard} of {n_shards}"]), secret=secret)
    return int.from_bytes(digest)


def sorted_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows sorted by all columns, so that a seed repeats whatever order Spark delivers them in."""
    names = [name for name, kind in frame.schema.items() if name in ROLES or not kind.is_nested()]
    return frame.sort(names)

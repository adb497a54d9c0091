"""`Spark`: read, anonymize, verify, inspect and measure logs on a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import msgspec
from pyspark.sql import SparkSession

from queryveil.checks.verdict import Verdict
from queryveil.data import Format, QueryLog
from queryveil.errors import NotYet
from queryveil.methods import Clump, Dp, Kdelta, Km, Partition, Plink
from queryveil.release import Manifest, Release, versions
from queryveil.reports.inspection import Inspection
from queryveil.spark import _dp, _grouping, _histories, _km, _reading, _shards, _verify, check_on_spark
from queryveil.spark._executors import SparkLog, translate_spark_errors
from queryveil.spark._storage import Storage
from queryveil.spark._writing import ClusterRelease, save, upload_release
from queryveil.spark.session import check_session, start
from queryveil.utility.score import Measures


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Spark:
    """Read, anonymize, verify, inspect and measure logs on a cluster, at any path that Spark reads.

    Promise: the one of each method; a release is checked by the same checkers.
    Not promised: that everything which runs on one machine runs here; what does not raises `NotYet`.
    """

    session: SparkSession

    def __post_init__(self) -> None:
        check_session(self.session)

    @classmethod
    def start(cls, master: str | None = None) -> Self:
        """Start a session at a master, or use the one that runs."""
        return cls(session=start(master))

    @translate_spark_errors()
    def read_log(
        self,
        source: str | Sequence[str],
        *,
        format: Format | str | None = None,  # noqa: A002
        columns: Mapping[str, str] | None = None,
        bad_rows: str = "fail",
    ) -> SparkLog:
        """Read a query log: a path, a folder, a glob or several of them."""
        return _reading.read_log(self.session, source, format=format, columns=columns, bad_rows=bad_rows)

    @translate_spark_errors()
    def put(self, log: QueryLog) -> SparkLog:
        """Put a log of this machine on the cluster."""
        return SparkLog.of(log, spark=self.session)

    @translate_spark_errors()
    def check_target(self, folder: str, *, force: bool = False) -> None:
        """Raise if a release may not be written there."""
        storage = Storage(spark=self.session)
        storage.check_free(folder, force=force)
        # Whether a folder can be made there is best found out by making one.
        with storage.scratch(folder):
            pass

    @translate_spark_errors(so="nothing was released")
    def anonymize(
        self, method: Any, log: SparkLog, folder: str, *, force: bool = False, shards: int | None = None
    ) -> Manifest:
        """Write a release of the log that keeps the promise of the method, and return its manifest.

        Methods that make groups of people make them in `shards`: of 50,000 users each, unless a number is given.
        """
        check_on_spark(method)
        storage = Storage(spark=self.session)
        storage.check_free(folder, force=force)
        with storage.scratch(folder) as scratch:
            release = _anonymized(method, log, scratch, shards=shards)
            all_versions = release.manifest.versions | versions("pyspark")
            release = replace(release, manifest=msgspec.structs.replace(release.manifest, versions=all_versions))
            if isinstance(release, Release):
                return upload_release(storage, folder, release, force=force)
            return save(storage, folder, release, force=force)

    @translate_spark_errors()
    def verify(self, folder: str, *, original: SparkLog | None = None, expect: str | None = None) -> Verdict:
        """Check a release and all in its folder, as `queryveil.checks` does; witnesses have no row numbers."""
        return _verify.verify(self.session, folder, original=original, expect=expect)

    @translate_spark_errors()
    def inspect(self, log: SparkLog, *, k: int = 2, m: int = 3) -> Inspection:
        """Return the counts of a log, and how many users can be told by their own terms."""
        return _histories.inspect(log, k=k, m=m)

    @translate_spark_errors()
    def measure(self, original: SparkLog, folder: str) -> Measures:
        """Measure what a release is still good for, as far as counts can tell."""
        storage = Storage(spark=self.session)
        manifest = _verify.read_manifest(storage, folder)
        if manifest.data is None or manifest.data.kind != "log":
            what = f"a release of {manifest.method} on Spark"
            raise NotYet(what, "only released logs are measured there", instead="leave out --engine")
        released = _verify.released_log(storage, folder, manifest)
        return _histories.measure(original, released, manifest=manifest)


_IN_SHARDS: Mapping[type[Any], Any] = {
    Clump: _grouping.anonymize_transactions,
    Partition: _grouping.anonymize_transactions,
    Plink: _grouping.anonymize_plink,
    Kdelta: _grouping.anonymize_kdelta,
}


def _anonymized(method: Any, log: SparkLog, scratch: str, *, shards: int | None) -> ClusterRelease | Release:
    if isinstance(method, Km):
        return _km.anonymize_km(method, log, scratch=scratch)
    if isinstance(method, Dp):
        return _dp.anonymize_dp(method, log, scratch=scratch)
    anonymize = next(function for kind, function in _IN_SHARDS.items() if isinstance(method, kind))
    return _shards.anonymize_in_shards(anonymize, method, log, shards=shards, scratch=scratch)

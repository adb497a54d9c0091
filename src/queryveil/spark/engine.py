"""`Spark`: read, anonymize, verify, inspect and measure logs on a cluster, and what cannot be done there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from queryveil.checks.verdict import Verdict
from queryveil.data import Format, QueryLog
from queryveil.errors import NotYet
from queryveil.methods import Clump, Dp, Kdelta, Km, Partition, Plink, Target
from queryveil.methods.settings import Weights
from queryveil.release import Manifest, versions
from queryveil.reports.inspection import Inspection
from queryveil.spark._clump import anonymize_transactions
from queryveil.spark._dp import anonymize_dp
from queryveil.spark._executors import translate_spark_errors
from queryveil.spark._kdelta import anonymize_kdelta
from queryveil.spark._km import anonymize_km
from queryveil.spark._plink import anonymize_plink
from queryveil.spark._reading import read_log
from queryveil.spark._statistics import inspect, measure
from queryveil.spark._storage import Storage
from queryveil.spark._verify import read_manifest, released_log, verify
from queryveil.spark._writing import ClusterRelease, DriverRelease, save, upload_release
from queryveil.spark.logs import SparkLog
from queryveil.spark.session import check_session, start
from queryveil.utility.score import Measures

_ONE_MACHINE = "leave out --engine"


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
    def start(cls, master: str | None = None) -> Spark:
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
        return read_log(self.session, source, format=format, columns=columns, bad_rows=bad_rows)

    @translate_spark_errors()
    def put(self, log: QueryLog) -> SparkLog:
        """Put a log of this machine on the cluster."""
        return SparkLog.of(log, spark=self.session)

    @translate_spark_errors()
    def check_target(self, folder: str, *, force: bool = False) -> None:
        """Raise if a release may not be written there."""
        Storage(spark=self.session).check_target(folder, force=force)

    @translate_spark_errors(so="nothing was released")
    def anonymize(
        self, method: Any, log: SparkLog, folder: str, *, force: bool = False, shards: int | None = None
    ) -> Manifest:
        """Write a release of the log that keeps the promise of the method, and return its manifest.

        Methods that make groups of people make them in `shards`: of 50,000 users each, unless a number is given.
        """
        check_method(method)
        storage = Storage(spark=self.session)
        storage.check_free(folder, force=force)
        with storage.scratch(folder) as scratch:
            outcome = self._run(method, log, scratch, shards=shards)
            if isinstance(outcome, DriverRelease):
                release = replace(outcome.release, manifest=_signed(outcome.release.manifest))
                return upload_release(storage, folder, release, force=force)
            n_rows, manifest = outcome.manifest.counts.n_rows_after, _signed(outcome.manifest)
            return save(storage, folder, outcome.frame, outcome.written, manifest=manifest, n_rows=n_rows, force=force)

    @translate_spark_errors()
    def verify(self, folder: str, *, original: SparkLog | None = None) -> Verdict:
        """Check the promise of a release, as `queryveil.checks` does; witnesses have no row numbers."""
        return verify(self.session, folder, original=original)

    @translate_spark_errors()
    def inspect(self, log: SparkLog, *, k: int = 2, m: int = 3) -> Inspection:
        """Return the counts of a log, and how many users can be told by their own terms."""
        return inspect(log, k=k, m=m)

    @translate_spark_errors()
    def measure(self, original: SparkLog, folder: str) -> Measures:
        """Measure what a release is still good for, as far as counts can tell."""
        storage = Storage(spark=self.session)
        manifest = read_manifest(storage, folder)
        if manifest.data is None or manifest.data.kind != "log":
            raise NotYet(
                f"a release of {manifest.method} on Spark",
                "only released logs are measured there",
                instead=_ONE_MACHINE,
            )
        return measure(original, released_log(storage, folder, manifest), manifest=manifest)

    def _run(self, method: Any, log: SparkLog, scratch: str, *, shards: int | None) -> ClusterRelease | DriverRelease:
        match method:
            case Km():
                return anonymize_km(method, log, spark=self.session, scratch=scratch)
            case Dp():
                return anonymize_dp(method, log, spark=self.session, scratch=scratch)
            case Clump() | Partition():
                return anonymize_transactions(method, log, scratch=scratch, shards=shards)
            case Kdelta():
                return anonymize_kdelta(method, log, scratch=scratch, shards=shards)
            case Plink():
                return anonymize_plink(method, log, scratch=scratch, shards=shards)
        raise AssertionError(type(method).__name__)


def _signed(manifest: Manifest) -> Manifest:
    """Return the manifest with the version of Spark."""
    return msgspec.structs.replace(manifest, versions=manifest.versions | versions("pyspark"))


_ON_ONE_MACHINE = "run it on one machine: leave out --engine"


def check_method(method: object) -> None:
    """Raise if a method, as it is set, does not run on Spark."""
    match method:
        case Km():
            _check_km(method)
        case Kdelta(same_texts=False):
            raise NotYet(
                "kdelta without same texts on Spark",
                "how far apart queries are depends on all clicks of the release, and a shard sees its own",
                instead=f"add --same-texts, or {_ON_ONE_MACHINE}",
            )
        case Plink(weights=Weights.TFIDF):
            raise NotYet(
                "plink with weights tfidf on Spark",
                "how rare a term is depends on all users, and a shard sees its own",
                instead=f"take binary or count, or {_ON_ONE_MACHINE}",
            )
        case Clump() | Dp() | Kdelta() | Partition() | Plink():
            pass
        case _:
            raise NotYet(
                f"{type(method).__name__.lower()} on Spark", "there is no way to do it", instead=_ON_ONE_MACHINE
            )


def _check_km(method: Km) -> None:
    reasons = {
        "a taxonomy on Spark": (method.taxonomy is not None, "every user's copy of a term moves up by itself"),
        "m=none on Spark": (method.m is None, "whole histories are made alike one term at a time"),
        "--no-restore on Spark": (not method.restore, "the paper's deletion goes through the users in turn"),
        "the target fis on Spark": (method.target is Target.FIS, "it counts all frequent combinations first"),
    }
    for what, (applies, why) in reasons.items():
        if applies:
            raise NotYet(what, why, instead=f"leave out the setting, or {_ON_ONE_MACHINE}")

"""Anonymize, verify, inspect and measure on a Spark cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from queryveil.checks.verdict import Verdict
from queryveil.data import Format, QueryLog
from queryveil.errors import NotYet
from queryveil.methods import Clump, Dp, Kdelta, Km, Partition, Plink
from queryveil.release import Manifest, versions
from queryveil.reports.inspection import Inspection
from queryveil.spark.clump import anonymize_transactions
from queryveil.spark.dp import anonymize_dp
from queryveil.spark.executors import speaking
from queryveil.spark.inspection import inspect
from queryveil.spark.kdelta import anonymize_kdelta
from queryveil.spark.km import anonymize_km
from queryveil.spark.limits import check_method
from queryveil.spark.logs import SparkLog
from queryveil.spark.measuring import measure
from queryveil.spark.plink import anonymize_plink
from queryveil.spark.reading import read_log
from queryveil.spark.session import check_session, start
from queryveil.spark.storage import Storage
from queryveil.spark.verify import read_manifest, released_log, verify
from queryveil.spark.writing import Made, MadeHere, save, save_from_here
from queryveil.utility.score import Measures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_ONE_MACHINE = "leave out --engine"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Spark:
    """The verbs of this package on logs that lie on a cluster, over any path that Spark reads.

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

    @speaking()
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

    @speaking()
    def put(self, log: QueryLog) -> SparkLog:
        """Put a log of this machine on the cluster."""
        return SparkLog.of(log, spark=self.session)

    @speaking()
    def check_target(self, folder: str, *, force: bool = False) -> None:
        """Raise if a release may not be written there."""
        Storage(spark=self.session).check_target(folder, force=force)

    @speaking(so="nothing was released")
    def anonymize(
        self, method: Any, log: SparkLog, folder: str, *, force: bool = False, shards: int | None = None
    ) -> Manifest:
        """Write a release of the log that keeps the promise of the method, and give its manifest.

        Methods that make groups of people make them in `shards`: of 50,000 users each, unless a number is given.
        """
        check_method(method)
        storage = Storage(spark=self.session)
        storage.check_free(folder, force=force)
        with storage.scratch(folder) as scratch:
            made = self._made(method, log, scratch, shards=shards)
            if isinstance(made, MadeHere):
                release = replace(made.release, manifest=_signed(made.release.manifest))
                return save_from_here(storage, folder, release, force=force)
            n_rows, manifest = made.manifest.counts.n_rows_after, _signed(made.manifest)
            return save(storage, folder, made.frame, made.written, manifest=manifest, n_rows=n_rows, force=force)

    @speaking()
    def verify(self, folder: str, *, original: SparkLog | None = None) -> Verdict:
        """Judge the promise of a release, as `queryveil.checks` does; the rows of what breaks it are not told."""
        return verify(self.session, folder, original=original)

    @speaking()
    def inspect(self, log: SparkLog, *, k: int = 2, m: int = 3) -> Inspection:
        """Return what is in a log, and how many users stand alone."""
        return inspect(log, k=k, m=m)

    @speaking()
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

    def _made(self, method: Any, log: SparkLog, scratch: str, *, shards: int | None) -> Made | MadeHere:
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
    """Say in the manifest that Spark made it."""
    return msgspec.structs.replace(manifest, versions=manifest.versions | versions("pyspark"))

"""What Spark keeps of a frame while a block works with it, and settings that hold no longer than that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import StorageLevel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Else what is kept stays in as many parts as a shuffle may have, 200 of them for a hundred rows.
_AS_FEW_AS_NEEDED = {"spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true"}


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep the rows of a frame, once they are made, on the executors' own disks."""
    with with_settings(frame.sparkSession, _AS_FEW_AS_NEEDED):
        once = frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield once
    finally:
        once.unpersist()


@contextmanager
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set settings for what starts inside; a query that runs keeps those that it was started with."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, was in before.items():
            if was is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, was)

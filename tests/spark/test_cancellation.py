"""Work that can be ended as a whole, beside the work of others in the same session."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from queryveil.spark._storage import Storage

GROUP = "spark.jobGroup.id"


def test_the_group_of_jobs_that_a_caller_has_set_is_theirs_again(spark: SparkSession, tmp_path: Path) -> None:
    context = spark.sparkContext
    context.setJobGroup("theirs", "what they do")
    try:
        with Storage(spark=spark).scratch(str(tmp_path / "release")):
            assert context.getLocalProperty(GROUP) != "theirs"
        assert context.getLocalProperty(GROUP) == "theirs"
    finally:
        context.setLocalProperty(GROUP, None)  # type: ignore[arg-type]


def test_what_is_stopped_begins_no_further_job_and_others_do(spark: SparkSession, tmp_path: Path) -> None:
    context = spark.sparkContext
    groups = []

    def stopped() -> None:
        with Storage(spark=spark).scratch(str(tmp_path / "release")):
            groups.append(context.getLocalProperty(GROUP))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert not list(tmp_path.iterdir())
    assert spark.range(3).count() == 3
    # As a thread of Spark would that was asked before.
    context.setLocalProperty(GROUP, groups[0] or "")
    try:
        with pytest.raises(Py4JJavaError, match="cancelled"):
            spark.range(3).write.parquet(str(tmp_path / "late"))
    finally:
        context.setLocalProperty(GROUP, None)  # type: ignore[arg-type]

"""One session on this machine for the tests of a process; what needs separate executors starts them itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from queryveil.spark import Spark


@pytest.fixture(scope="session")
def engine() -> Iterator[Spark]:
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    engine = Spark.start("local[2]")
    engine.session.conf.set("spark.sql.shuffle.partitions", "2")
    yield engine
    engine.session.stop()


@pytest.fixture(scope="session")
def spark(engine: Spark) -> SparkSession:
    return engine.session

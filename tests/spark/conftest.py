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
    # Programs are written and compiled for many rows; here they are few. Processes of their own, a cluster and the
    # command line among them, run as a user's would.
    engine.session.conf.set("spark.sql.codegen.wholeStage", "false")
    engine.session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield engine
    engine.session.stop()


@pytest.fixture(scope="session")
def spark(engine: Spark) -> SparkSession:
    return engine.session

"""A Spark session to work in, and what it needs to know of this program."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from pyspark.sql import SparkSession

from queryveil.errors import EngineFailed, NotYet

DEFAULT_MASTER = "local[*]"
_SETTINGS = {
    # Times in logs have no zone; where Spark wants one, it is this.
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    # Privacy: the page of a running job is open to whoever reaches the port.
    "spark.ui.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}


def start(master: str | None = None) -> SparkSession:
    """Give the running session, or start one at a master; settings of spark-submit and of files are kept.

    On a master that begins with `local` executors run this very Python.
    """
    # PySpark names a pandas that it was not tried with; no pandas function of it is used here.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    if (master or DEFAULT_MASTER).startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = dict(_SETTINGS)
    if not os.environ.get("SPARK_CONF_DIR"):
        quiet = Path(__file__).with_name("log4j2.properties")
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={quiet.as_uri()}"
    builder = SparkSession.builder.appName("queryveil")
    for name, value in settings.items():
        builder = builder.config(name, value)
    if master is not None or "spark.master" not in _given():
        builder = builder.master(master or DEFAULT_MASTER)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        # Py4J, PySpark and the JVM each have errors of their own for this.
        raise EngineFailed("Spark", f"it did not start: {type(error).__name__}") from None
    return check_session(session)


def check_session(session: SparkSession) -> SparkSession:
    """Raise if a session cannot be worked in; give it otherwise."""
    if not hasattr(session, "_jvm"):
        raise NotYet(
            "a session of Spark Connect",
            "folders are renamed by the driver itself",
            instead="run on the cluster with spark-submit",
        )
    session.sparkContext.setLogLevel("ERROR")
    return session


def _given() -> str:
    """Give the options that spark-submit has handed over."""
    return os.environ.get("PYSPARK_SUBMIT_ARGS", "")

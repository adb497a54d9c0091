"""Start or find a Spark session, with settings that keep rows private."""

import atexit
import os
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from pyspark.sql import SparkSession

from queryveil.errors import EngineFailed, NotYet

_SETTINGS = {
    # Times in logs have no zone; where Spark wants one, it is this.
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    # Privacy: the page of a running job is open to whoever reaches the port.
    "spark.ui.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # How long a Python process of a stream may take to start; 15 s are too few on a busy machine.
    "spark.python.authenticate.socketTimeout": "3m",
}


def start(master: str | None = None) -> SparkSession:
    """Return the running session, or start one; without a master it is the one that spark-submit or files have set.

    On a `local` master executors run this very Python, keep rows in a private folder, and listen to this machine alone.
    """
    # PySpark names a pandas that it was not tried with; no pandas function of it is used here.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    running = SparkSession.getActiveSession()
    if running is not None:
        return check_session(running)
    builder = SparkSession.builder.appName("queryveil")
    for name, value in _settings(master).items():
        builder = builder.config(name, value)
    if master is not None:
        builder = builder.master(master)
    try:
        session = builder.getOrCreate()
    except Exception:
        # Py4J, PySpark and the JVM each have errors of their own for this.
        at = "" if master is None else f" at {master}"
        way_out = "check that its master runs, and that Java 17 or newer is installed"
        raise EngineFailed("Spark", f"it did not start{at}", way_out=way_out) from None
    # Before the folder with its rows is removed.
    atexit.register(_stop, session)
    session.sparkContext.setLogLevel("ERROR")
    return check_session(session)


def _stop(session: SparkSession) -> None:
    # It may be gone already, or be stopped by somebody else.
    with suppress(Exception):
        session.stop()


def _settings(master: str | None) -> dict[str, str]:
    settings = dict(_SETTINGS)
    if "SPARK_ENV_LOADED" in os.environ:
        # It was submitted, and runs already.
        return settings
    if "SPARK_CONF_DIR" not in os.environ:
        quiet = Path(__file__).with_name("log4j2.properties")
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={quiet.as_uri()}"
    # Another Spark than the one that PySpark brings may have a master in its own files.
    is_own = "SPARK_HOME" in os.environ or "SPARK_CONF_DIR" in os.environ
    is_local = not is_own if master is None else master.startswith("local")
    return settings | _on_this_machine() if is_local else settings


def _on_this_machine() -> dict[str, str]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Privacy: nobody else need reach what runs here.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    # Spark's own 200 are for many machines.
    settings = {"spark.sql.shuffle.partitions": str(8 * (os.cpu_count() or 1))}
    if "SPARK_LOCAL_DIRS" not in os.environ:
        # Privacy: Spark's own folders may be entered by anybody on the machine, and hold rows.
        private = mkdtemp(prefix="queryveil-spark-")
        atexit.register(rmtree, private, ignore_errors=True)
        settings["spark.local.dir"] = private
    return settings


def check_session(session: SparkSession) -> SparkSession:
    """Return the session, or raise if it is one of Spark Connect."""
    if not hasattr(session, "_jvm"):
        why = "folders are renamed by the driver itself"
        raise NotYet("a session of Spark Connect", why, instead="run on the cluster with spark-submit")
    return session

"""What runs on executors, and how what goes wrong there is said in one line.

Privacy: Spark writes the traceback of a failed task into its logs, and an error of Polars or Arrow quotes values. So
nothing leaves a task but our own errors, by their words, and the kind of any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException

from queryveil import errors
from queryveil.errors import BadFile, EngineFailed, QueryveilError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]
_MARK = "queryveil-says"
_N_TRIES = 3
_SAID = re.compile(rf"{_MARK}:(\w+):(.*?):{_MARK}", re.DOTALL)
_FAILED = re.compile(r"queryveil-failed:(\w+)")
_WAYS_OUT = (
    (
        r"ModuleNotFoundError|ImportError|PYTHON_VERSION_MISMATCH|PACKAGE_NOT_INSTALLED|Cannot run program",
        "its executors have another Python, or one without queryveil",
        "install queryveil[spark] there, and name that Python with PYSPARK_PYTHON",
    ),
    (
        r"UnsupportedFileSystemException|FileSystem not found|No FileSystem for scheme",
        "it knows no file system for such a path",
        "add the package that has it, as hadoop-aws for s3a, with spark.jars.packages",
    ),
    (r"Permission denied|AccessControlException", "there is no permission for that path", "check whose it is"),
    (
        # Not of a task: an executor that was lost does not answer either.
        r"(?s)\A(?!.*stage failure).*(?:ConnectException|UnknownHostException|NoRouteToHostException)",
        "nobody answers at the address of that path",
        "check the address",
    ),
)
"""What can be told from Spark's words without repeating them, and what to do about it."""


def guarded(work: Callable[..., Batches]) -> Callable[[Batches], Batches]:
    """Make a function fit for `mapInArrow`: its errors quote nothing."""

    @wraps(work)
    def run(batches: Batches) -> Batches:
        try:
            yield from work(batches)
        except QueryveilError as error:
            raise RuntimeError(f"{_MARK}:{type(error).__name__}:{error}:{_MARK}") from None
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of Polars is no Exception
            raise RuntimeError(f"queryveil-failed:{type(error).__name__} {_where(error)}") from None

    return run


def guarded_table(work: Callable[[pa.Table], pa.Table]) -> Callable[[pa.Table], pa.Table]:
    """Make a function fit for `applyInArrow`: its errors quote nothing."""
    inner = guarded(lambda tables: iter([work(next(tables))]))

    @wraps(work)
    def run(table: pa.Table) -> pa.Table:
        return next(inner(iter([table])))

    return run


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"in {trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}"


def insist(ask: Callable[[], object]) -> None:
    """Ask Spark something, also if a question that was interrupted has left the line to it unfit for a further one."""
    for _ in range(_N_TRIES):
        with suppress(Py4JError):
            ask()
            return


@contextmanager
def speaking(*, so: str = "") -> Iterator[None]:
    """Return what went wrong on the cluster in one line; `so` is what that means."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _translated(error, so=so) from None


def _translated(error: Exception | PySparkException, *, so: str) -> QueryveilError:
    text = str(error)
    said = _SAID.search(text)
    if said is not None:
        return _again(said[1], said[2])
    for sign, why, way_out in _WAYS_OUT:
        if re.search(sign, text):
            return EngineFailed("Spark", why, so=so, way_out=way_out)
    failed = _FAILED.search(text)
    if failed is not None:
        return EngineFailed("Spark", failed[1], so=so)
    condition: Any = getattr(error, "getCondition", lambda: None)()
    if condition == "PATH_NOT_FOUND":
        return BadFile("the path", "there is nothing at it; check the path and that all executors see it")
    java = re.search(r"\b(?:java|org|scala)\.[\w.]*\.(\w+(?:Error|Exception))", text)
    return EngineFailed("Spark", str(condition or (java[1] if java else type(error).__name__)), so=so)


def _again(name: str, words: str) -> QueryveilError:
    """Return the error that an executor raised, with its words."""
    kind = getattr(errors, name, QueryveilError)
    again: QueryveilError = kind.__new__(kind)
    Exception.__init__(again, words)
    return again


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


Ints = NDArray[np.int64]


def suffixes(starts: Ints, items: NDArray[np.int32], *, n_shards: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the parts of histories that each shard must see; those that begin with item i are shard i % n_shards'.

    History h is `items[starts[h]:starts[h + 1]]`, ascending. A shard sees it from the first item of its own on. Gives
    for each such part its shard and its history, where its places begin, and the places.

    >>> parts = suffixes(np.array([0, 3]), np.array([2, 4, 5], np.int32), n_shards=2)
    >>> [part.tolist() for part in parts]
    [[0, 1], [0, 0], [0, 3, 4], [0, 1, 2, 2]]
    """
    history = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    # Entries stand in order, so the first place of a key is the first item of that shard in that history.
    keys, first = np.unique(history * n_shards + items % n_shards, return_index=True)
    owner = keys // n_shards
    lengths = starts[owner + 1] - first
    begins = np.append(0, np.cumsum(lengths))
    places = np.arange(begins[-1]) + np.repeat(first - begins[:-1], lengths)
    return keys % n_shards, owner, begins, places

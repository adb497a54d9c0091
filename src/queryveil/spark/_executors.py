"""Python functions on executors: how they are called, how logs and frames get there, errors that quote no values.

Privacy: Spark logs the traceback of a failed task, and an error of Polars or Arrow quotes values. So nothing leaves a
task but our own errors, by their words, and the kind of any other.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from traceback import extract_tb
from typing import Any, Self

import polars as pl
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import Broadcast, StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, types
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from queryveil import errors
from queryveil.data import ROLES, Layout, QueryLog, Reading

Batches = Iterator[pa.RecordBatch]
_ENTRIES_PER_SHARD = 4_000_000
_ROWS_PER_BATCH = 65_536
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


def map_batches(
    frame: DataFrame, work: Callable[..., Batches], schema: pa.Schema | types.StructType | str, /, **arguments: object
) -> DataFrame:
    """Return the rows that `work(batches, **arguments)` makes of the Arrow batches of each partition."""
    declared = spark_schema(schema) if isinstance(schema, pa.Schema) else schema
    return frame.mapInArrow(mask_errors(partial(work, **arguments)), declared)


def map_frames(
    frame: DataFrame,
    work: Callable[..., pl.DataFrame],
    schema: pa.Schema | str | None = None,
    /,
    *,
    by_partition: bool = False,
    **arguments: object,
) -> DataFrame:
    """Return the rows that `work(frame, **arguments)` makes of each batch, or of each whole partition, in Polars.

    Without a schema, of Arrow or in Spark's words, it is that of what `work` makes of no rows.
    """
    run, inside = partial(work, **arguments), arrow_schema(frame)
    out = spark_types(run(to_polars(inside.empty_table())).to_arrow().schema if schema is None else schema)
    return map_batches(frame, _map_frames, out, work=run, like=inside if by_partition else None, schema=out)


def _map_frames(
    batches: Batches, *, work: Callable[[pl.DataFrame], pl.DataFrame], like: pa.Schema | None, schema: pa.Schema
) -> Batches:
    frames = map(to_polars, batches) if like is None else [to_polars(batches, like=like)]
    for frame in frames:
        yield from to_arrow(work(frame), schema).to_batches(_ROWS_PER_BATCH)


def map_groups(
    frame: DataFrame, by: str, work: Callable[..., pl.DataFrame], schema: pa.Schema | str, /, **arguments: object
) -> DataFrame:
    """Return the rows that `work(frame, **arguments)` makes of all rows with the same value in a column."""
    plain = spark_types(schema)
    masked = mask_errors(lambda tables: (to_arrow(work(to_polars(table), **arguments), plain) for table in tables))

    def run(table: pa.Table) -> pa.Table:
        return next(masked(iter([table])))

    return frame.groupBy(by).applyInArrow(run, spark_schema(plain))


def mask_errors(work: Callable[..., Batches]) -> Callable[[Batches], Batches]:
    """Return the function with errors that quote no values, to run on executors."""

    @wraps(work)
    def run(batches: Batches) -> Batches:
        try:
            yield from work(batches)
        except errors.QueryveilError as error:
            raise RuntimeError(f"{_MARK}:{type(error).__name__}:{error}:{_MARK}") from None
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of Polars is no Exception
            place = extract_tb(error.__traceback__)[-1]
            told = f"queryveil-failed:{type(error).__name__} in {place.name}, line {place.lineno}"
            raise RuntimeError(told) from None

    return run


def retry_py4j(ask: Callable[[], object]) -> None:
    """Call Java, up to three times: a call that was interrupted may leave its connection unusable for the next one."""
    for _ in range(_N_TRIES):
        with suppress(Py4JError):
            ask()
            return


@contextmanager
def translate_spark_errors(*, so: str = "") -> Iterator[None]:
    """Raise errors of Spark as our own, in one line that quotes no values; `so` is what follows from them."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _translated(error, so=so) from None


def _translated(error: Exception | PySparkException, *, so: str) -> errors.QueryveilError:
    text = str(error)
    said = _SAID.search(text)
    if said is not None:
        # The error that an executor raised, with its words.
        kind = getattr(errors, said[1], errors.QueryveilError)
        again: errors.QueryveilError = kind.__new__(kind)
        Exception.__init__(again, said[2])
        return again
    for sign, why, way_out in _WAYS_OUT:
        if re.search(sign, text):
            return errors.EngineFailed("Spark", why, so=so, way_out=way_out)
    failed = _FAILED.search(text)
    if failed is not None:
        return errors.EngineFailed("Spark", failed[1], so=so)
    condition: Any = getattr(error, "getCondition", lambda: None)()
    if condition == "PATH_NOT_FOUND":
        return errors.BadFile("the path", "there is nothing at it; check the path and that all executors see it")
    java = re.search(r"\b(?:java|org|scala)\.[\w.]*\.(\w+(?:Error|Exception))", text)
    return errors.EngineFailed("Spark", str(condition or (java[1] if java else type(error).__name__)), so=so)


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """Cache a frame on executor disk for the block."""
    # Else it stays in as many partitions as a shuffle may have, 200 of them for a hundred rows.
    few_partitions = {"spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true"}
    with spark_settings(frame.sparkSession, few_partitions):
        persisted = frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield persisted
    finally:
        persisted.unpersist()


@contextmanager
def spark_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set Spark settings for what starts inside the block; a running query keeps those that it was started with."""
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


def stored(frame: DataFrame, path: str) -> DataFrame:
    """Write a frame as Parquet and read it back, so that losing an executor later does not repeat the work."""
    frame.write.parquet(path)
    # With its schema given, no job is needed to read it from the files.
    return frame.sparkSession.read.schema(frame.schema).parquet(path)


def n_shards_for(frame: DataFrame, n_entries: int) -> int:
    """Return into how many shards to cut histories: at least two per core, and each fits into one executor."""
    return max(2 * frame.sparkSession.sparkContext.defaultParallelism, -(-n_entries // _ENTRIES_PER_SHARD))


def number_items(histories: pl.DataFrame, *, items: Broadcast[pl.Series]) -> pl.DataFrame:
    """Return histories as the places of their items among these, ascending, and whether they have any other item."""
    known = pl.DataFrame({"items": items.value}).with_row_index("place")
    found = histories.explode("items", empty_as_null=False).join(known, on="items", how="left")
    place = pl.col("place")
    return found.group_by("uid").agg(has_other=place.is_null().any(), items=place.drop_nulls().sort())


def split_by_shard(histories: pl.DataFrame, *, n_shards: int) -> pl.DataFrame:
    """Return the parts of histories (`items`, ascending) that each shard must see, beside their other columns.

    Combinations that begin with item i are those of shard i % n_shards, which sees a history from such an item on.

    >>> split_by_shard(pl.DataFrame({"uid": [7], "items": [[2, 4, 5]]}), n_shards=2).to_dicts()
    [{'uid': 7, 'items': [2, 4, 5], 'shard': 0}, {'uid': 7, 'items': [5], 'shard': 1}]
    """
    histories = histories.with_row_index("history")
    entries = histories.select("history", "items", place=pl.int_ranges(pl.col("items").list.len()))
    entries = entries.explode("items", "place", empty_as_null=False)
    shard = (pl.col("items") % n_shards).alias("shard")
    parts = entries.group_by("history", shard, maintain_order=True).agg(pl.col("place").first())
    parts = histories.join(parts, on="history", maintain_order="right")
    return parts.with_columns(pl.col("items").list.slice(pl.col("place"))).drop("history", "place")


def to_spark(frame: pl.DataFrame, *, spark: SparkSession) -> DataFrame:
    """Return a Polars frame as a Spark frame."""
    table = frame.to_arrow()
    return spark.createDataFrame(table.cast(spark_types(table.schema)), schema=spark_schema(table.schema))


def to_polars(
    table: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch], *, like: pa.Schema | None = None
) -> pl.DataFrame:
    """Return Arrow data as a Polars frame, times without a zone in microseconds; `like` is the schema of no batches."""
    if not isinstance(table, pa.Table | pa.RecordBatch):
        batches = list(table)
        # Their own schema may say of a column that it is never missing.
        table = pa.Table.from_batches(batches) if batches or like is None else like.empty_table()
    frame = pl.DataFrame(table)
    typed = [pl.col(role).cast(dtype) for role, dtype in ROLES.items() if role in frame.columns]
    return frame.with_columns(typed)


def to_arrow(frame: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema in its types."""
    return frame.select(schema.names).to_arrow().cast(schema)


def spark_types(schema: pa.Schema | str) -> pa.Schema:
    """Return a schema in the types that Spark reads: short strings and lists, microseconds."""
    if isinstance(schema, str):
        declared: Any = types.StructType.fromDDL(schema)
        return to_arrow_schema(declared, timezone="UTC")
    return pa.schema([pa.field(each.name, _plain(each.type)) for each in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.string() if pa.types.is_null(kind) else kind


def spark_schema(schema: pa.Schema) -> types.StructType:
    """Return the Spark schema of an Arrow schema; times have no zone."""
    return from_arrow_schema(spark_types(schema), prefer_timestamp_ntz=True)


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """Return the Arrow schema of a Spark frame, without asking the cluster."""
    return to_arrow_schema(frame.schema, timezone="UTC")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SparkLog:
    """A query log on a cluster: a Spark frame with the columns of a `QueryLog`, whose rows have all been checked."""

    frame: DataFrame
    n_rows: int
    layout: Layout = field(default_factory=Layout)
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        if (wrong := name_problem(self.columns)) is not None:
            raise errors.BadInput(wrong)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.frame.columns)

    @property
    def n_users(self) -> int:
        """The number of distinct users, counted on the cluster."""
        return self.frame.select("user").distinct().count()

    @property
    def empty(self) -> QueryLog:
        """A log of this machine with the same columns and no rows."""
        frame = to_polars(arrow_schema(self.frame).empty_table())
        return QueryLog(frame=frame, layout=self.layout, reading=self.reading)

    @classmethod
    def of(cls, log: QueryLog, *, spark: SparkSession) -> Self:
        """Put a log of this machine on the cluster."""
        return cls(frame=to_spark(log.frame, spark=spark), n_rows=log.n_rows, layout=log.layout, reading=log.reading)

    def __repr__(self) -> str:
        return f"SparkLog(n_rows={self.n_rows}, columns={self.columns})"


def name_problem(names: Sequence[str]) -> str | None:
    """Return why Spark cannot tell columns apart by their names, or None."""
    if any("." in name or "`" in name for name in names):
        return "a column has a dot in its name, which Spark takes for a part of another; rename it"
    if len({name.lower() for name in names}) < len(names):
        return "two columns have names that differ only in capitals, which Spark takes for one; rename one"
    return None

"""A query log that lies on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from queryveil.data import ROLES, Layout, QueryLog, Reading
from queryveil.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SparkLog:
    """A query log as Spark sees it: the columns of a `QueryLog`, and rows that were looked at once and are all good."""

    frame: DataFrame
    n_rows: int
    layout: Layout = field(default_factory=Layout)
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        wrong = unfit(self.columns)
        if wrong is not None:
            raise BadInput(wrong)

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
        return QueryLog(
            frame=as_frame(arrow_schema(self.frame).empty_table()), layout=self.layout, reading=self.reading
        )

    @classmethod
    def of(cls, log: QueryLog, *, spark: SparkSession) -> SparkLog:
        """Put a log of this machine on the cluster."""
        return cls(frame=put(log.frame, spark=spark), n_rows=log.n_rows, layout=log.layout, reading=log.reading)

    def __repr__(self) -> str:
        return f"SparkLog(n_rows={self.n_rows}, columns={self.columns})"


def unfit(names: Sequence[str]) -> str | None:
    """Return why Spark cannot tell columns apart by their names, or nothing."""
    if any("." in name or "`" in name for name in names):
        return "a column has a dot in its name, which Spark takes for a part of another; rename it"
    if len({name.lower() for name in names}) < len(names):
        return "two columns have names that differ only in capitals, which Spark takes for one; rename one"
    return None


def put(frame: pl.DataFrame, *, spark: SparkSession) -> DataFrame:
    """Put a frame of this machine on the cluster."""
    table = frame.to_arrow()
    return spark.createDataFrame(table.cast(plain(table.schema)), schema=schema_of(table.schema))


def as_frame(
    table: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch], *, like: pa.Schema | None = None
) -> pl.DataFrame:
    """Return what came from the cluster as a frame, times without a zone in microseconds."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif not isinstance(table, pa.Table):
        batches = list(table)
        # Their own schema may say of a column that it is never missing.
        table = pa.Table.from_batches(batches) if batches or like is None else like.empty_table()
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    typed = [pl.col(role).cast(dtype) for role, dtype in ROLES.items() if role in frame.columns]
    return frame.with_columns(typed)


def plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema in the types that Spark reads: short strings and lists, microseconds."""
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


def schema_of(schema: pa.Schema) -> StructType:
    """Return the Spark schema of an Arrow schema; times have no zone."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - Spark is loaded where it is used

    return from_arrow_schema(plain(schema), prefer_timestamp_ntz=True)


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """Return the Arrow schema of a Spark frame, without asking the cluster."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - Spark is loaded where it is used

    return to_arrow_schema(frame.schema, timezone="UTC")

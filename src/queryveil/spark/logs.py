"""A query log that lies on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from queryveil.data import Layout, QueryLog, Reading
from queryveil.errors import BadInput
from queryveil.spark._executors import arrow_schema, to_polars, to_spark


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SparkLog:
    """A query log on a cluster: a Spark frame with the columns of a `QueryLog`, whose rows have all been checked."""

    frame: DataFrame
    n_rows: int
    layout: Layout = field(default_factory=Layout)
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        wrong = name_problem(self.columns)
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
            frame=to_polars(arrow_schema(self.frame).empty_table()), layout=self.layout, reading=self.reading
        )

    @classmethod
    def of(cls, log: QueryLog, *, spark: SparkSession) -> SparkLog:
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

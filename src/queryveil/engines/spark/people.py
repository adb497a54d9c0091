"""Who of a log's users is a program, told on the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from queryveil import progress
from queryveil.engines.spark.executors import Batches, guarded, speaking
from queryveil.engines.spark.logs import SparkLog, as_frame, put
from queryveil.methods.bots import bots

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LIKE = pa.schema([("user", pa.string()), ("query", pa.string()), ("time", pa.timestamp("us"))])
_FOUND = pa.schema([("user", pa.string()), ("n", pa.int64())])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class People:
    """The rows of people, and how many users and rows of programs are left out."""

    frame: DataFrame
    n_bots: int = 0
    n_bot_rows: int = 0


def people_of(log: SparkLog, *, threshold: int | None) -> People:
    """Give the rows of people; whether somebody is a program is told from that user's own rows."""
    if threshold is None or "time" not in log.columns:
        return People(frame=log.frame)
    progress.step("looking for bots")
    rows = log.frame.select("user", "query", "time").repartition("user")
    with speaking():
        found = rows.mapInArrow(guarded(partial(_programs, threshold=threshold)), "user string, n long").toArrow()
    if not found.num_rows:
        return People(frame=log.frame)
    programs = pl.from_arrow(found)
    assert isinstance(programs, pl.DataFrame)
    theirs = F.broadcast(put(programs.select("user"), spark=log.frame.sparkSession))
    return People(
        frame=log.frame.join(theirs, "user", "left_anti"),
        n_bots=programs.height,
        n_bot_rows=int(programs["n"].sum()),
    )


def _programs(batches: Batches, *, threshold: int) -> Batches:
    """Give the programs among the users of this part, which holds all rows of each of them."""
    frame = as_frame(batches, like=_LIKE)
    found = frame.filter(pl.col("user").is_in(bots(frame, threshold=threshold).implode()))
    counted = found.group_by("user").agg(n=pl.len().cast(pl.Int64))
    yield from counted.to_arrow().cast(_FOUND).to_batches()

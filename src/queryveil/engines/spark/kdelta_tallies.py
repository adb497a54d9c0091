"""What became of distinct queries and URLs over all shards: each may be in many, so shards hand in tallies of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from queryveil.engines.spark.executors import speaking
from queryveil.engines.spark.leaving import digests
from queryveil.log import QueryLog
from queryveil.methods.bots import bots_of
from queryveil.methods.kdelta_objects import read_objects

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OF, _KEY = "tally_of_this_shard", "tally_key_of_this_shard"
_BEFORE, _AFTER, _PEOPLE = "tally_before_in_this_shard", "tally_after_in_this_shard", "tally_people_of_this_shard"
TALLIES = pa.schema(
    [(_OF, pa.string()), (_KEY, pa.binary()), *((name, pa.int64()) for name in (_BEFORE, _AFTER, _PEOPLE))]
)
"""Of queries or URLs, for each a digest, its rows in the shard and in the release, and the people who asked it."""

_N_TOP = 50


def is_tally() -> Column:
    """Tell tallies from rows of the release."""
    return F.col(_OF).isNotNull()


def tallies_of(log: QueryLog, released: QueryLog, *, bot_threshold: int | None, secret: bytes) -> pl.DataFrame:
    """Count the distinct queries and URLs of a shard, those of programs too; people are counted without them."""
    objects = read_objects(log.frame)
    users = log.frame["user"].gather(objects.place)
    is_person = ~users.is_in(bots_of(log, threshold=bot_threshold).implode())
    rows = pl.DataFrame({"user": users, "text": objects.texts.gather(objects.query), "is_person": is_person})
    people = pl.col("user").filter(pl.col("is_person")).n_unique()
    queries = rows.group_by("text").agg(pl.len().alias(_BEFORE), people.alias(_PEOPLE))
    found = [_tallied("queries", queries, released.frame["query"], secret=secret)]
    if len(objects.urls):
        urls = objects.urls.gather(objects.url[objects.url >= 0]).to_frame("text")
        counted = urls.group_by("text").agg(pl.len().alias(_BEFORE)).with_columns(pl.lit(0).alias(_PEOPLE))
        found.append(_tallied("urls", counted, released.frame["url"], secret=secret))
    return pl.concat(found).select(TALLIES.names)


def _tallied(of: str, before: pl.DataFrame, after: pl.Series, *, secret: bytes) -> pl.DataFrame:
    counted = after.to_frame("text").group_by("text").agg(pl.len().alias(_AFTER))
    both = before.join(counted, on="text", how="left")
    # Privacy: a digest will do to tell them apart, and the driver need not see texts.
    key = pl.Series(digests(both["text"], secret=secret), dtype=pl.Binary)
    numbers = [pl.col(name).fill_null(0).cast(pl.Int64) for name in (_BEFORE, _AFTER, _PEOPLE)]
    return both.select(pl.lit(of).alias(_OF), key.alias(_KEY), *numbers)


def losses(tallies: DataFrame) -> dict[str, float]:
    """Compare the distinct queries and URLs of the log with those of the release, as a local manifest does."""
    sums = [F.sum(name).alias(name) for name in (_BEFORE, _AFTER, _PEOPLE)]
    each = tallies.groupBy(_OF, _KEY).agg(*sums)
    is_left = F.col(_AFTER) > 0
    counts = each.groupBy(_OF).agg(
        F.count("*").alias("n"),
        F.count_if(is_left).alias("n_left"),
        F.count_if(is_left & (F.col(_PEOPLE) == 1)).alias("n_of_one_user"),
    )
    with speaking(so="nothing was released"):
        found = {row[_OF]: row for row in counts.collect()}
        measures: dict[str, float] = {}
        for name in (name for name in ("queries", "urls") if name in found):
            own = each.where(F.col(_OF) == name)
            measures[f"share_of_distinct_{name}_lost"] = round(1 - found[name]["n_left"] / found[name]["n"], 6)
            measures[f"top_{_N_TOP}_{name}_kept"] = len(_top(own, _BEFORE) & _top(own, _AFTER))
    return measures | {"queries_of_one_user": int(found["queries"]["n_of_one_user"])}


def _top(tallies: DataFrame, by: str) -> set[bytes]:
    """Give the most frequent; of those that are equally so, any."""
    top = tallies.where(F.col(by) > 0).orderBy(F.desc(by), _KEY).limit(_N_TOP).select(_KEY)
    return {bytes(row[_KEY]) for row in top.collect()}

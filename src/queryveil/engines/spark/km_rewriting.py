"""Queries written anew with the terms that their users keep, where both lie together."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from queryveil.engines.spark.executors import Batches, guarded
from queryveil.engines.spark.km_histories import owners_of, words_of
from queryveil.engines.spark.logs import arrow_schema, as_frame, plain, schema_of
from queryveil.histories import collect, rewrite
from queryveil.text import tokenize

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

_KEPT, _IS_ROW, _WINDOW = "kept_terms_of_this_user", "is_row_of_the_log", "window_of_this_user"


def kept_terms(state: DataFrame, terms: Broadcast[pl.Series], *, window: str | None) -> DataFrame:
    """Give the terms that each user, or user in a window, keeps."""
    schema = pa.schema([("user", pa.string()), ("window", pa.int64()), (_KEPT, pa.list_(pa.string()))])
    return state.select("user", "window", "labels", "kept").mapInArrow(
        guarded(partial(_named, terms=terms, window=window, schema=schema)), schema_of(schema)
    )


def _named(batches: Batches, *, terms: Broadcast[pl.Series], window: str | None, schema: pa.Schema) -> Batches:
    words = words_of(terms.value, window=window)
    for batch in batches:
        labels, kept = batch["labels"].flatten().to_numpy(), batch["kept"].flatten().to_numpy() == 1
        row = np.repeat(np.arange(batch.num_rows), batch["labels"].value_lengths().to_numpy())[kept]
        begins = np.append(0, np.cumsum(np.bincount(row, minlength=batch.num_rows))).astype(np.int32)
        texts = words.gather(labels[kept]).to_arrow().cast(pa.string())
        lists = pa.ListArray.from_arrays(pa.array(begins), texts)
        yield pa.RecordBatch.from_arrays([batch["user"], batch["window"], lists], schema=schema)


def rewritten(rows: DataFrame, kept: DataFrame, *, window: str | None, by_blanks: bool) -> DataFrame:
    """Give the rows whose queries have a term left, with these terms alone.

    With windows users get a name for each, so that nobody can be followed from one to the next.
    """
    inside = arrow_schema(rows)
    # Spark 4.3 takes time squared to hand lists to Python if many of them are missing, hence an empty one for each row.
    asked = rows.withColumns(
        {_WINDOW: F.lit(None).cast("long"), _KEPT: F.array().cast("array<string>"), _IS_ROW: F.lit(True)}
    )
    others = [F.lit(None).cast(each.dataType).alias(each.name) for each in rows.schema if each.name != "user"]
    granted = kept.select("user", *others, F.col("window").alias(_WINDOW), _KEPT, F.lit(False).alias(_IS_ROW))
    both = asked.select("user", *(each for each in asked.columns if each != "user")).union(granted)
    both = both.repartition("user")
    like = arrow_schema(both)
    work = partial(_rewritten, window=window, by_blanks=by_blanks, like=like, names=rows.columns)
    return both.mapInArrow(guarded(work), schema_of(plain(inside)))


def _rewritten(batches: Batches, *, window: str | None, by_blanks: bool, like: pa.Schema, names: list[str]) -> Batches:
    both = as_frame(batches, like=like)
    kept = both.filter(~pl.col(_IS_ROW)).select("user", pl.col(_WINDOW).alias("window"), _KEPT)
    rows = both.filter(pl.col(_IS_ROW)).select(names)
    if not rows.height or not kept.height:
        return
    tokens = tokenize(rows["query"], by_blanks=by_blanks)
    owners, who = owners_of(rows, window=window)
    histories = collect(tokens, owners, n_users=who.height)
    entries = pl.DataFrame({"owner": histories.entry_user, "term": tokens.vocabulary.gather(histories.terms)})
    granted = who.with_row_index("owner").join(kept, on=["user", "window"])
    granted = granted.select(pl.col("owner").cast(pl.Int32), term=_KEPT).explode("term", empty_as_null=False)
    granted = granted.with_columns(stays=pl.lit(value=True))
    found = entries.join(granted, on=["owner", "term"], how="left", maintain_order="left")["stays"]
    word = np.where(found.fill_null(value=False).to_numpy(), histories.terms, -1).astype(np.int32)
    out = rows.with_columns(rewrite(tokens, owners, histories, word, tokens.vocabulary).alias("query"))
    if window is not None:
        out = out.with_columns(user=who["user"].gather(owners) + "\0" + who["window"].gather(owners).cast(pl.String))
    table = out.filter(pl.col("query") != "").to_arrow()
    yield from table.cast(plain(table.schema)).to_batches(65_536)


def count_words(released: DataFrame) -> int:
    """Count the terms in released queries."""
    counted = released.agg(F.sum(F.size(F.split("query", " "))).alias("n")).first()
    return int(counted["n"] or 0) if counted is not None else 0

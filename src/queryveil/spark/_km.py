"""km on a cluster: terms are counted by shuffles and deleted by joins, with the result of one machine."""

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queryveil import progress
from queryveil.data import Int32s
from queryveil.errors import BadParameter
from queryveil.methods import Km, Target
from queryveil.methods.km._deletion import term_values
from queryveil.methods.km._search import Objective, orders
from queryveil.release import Counts, ids_per_window
from queryveil.rng import generator
from queryveil.spark._column_release import release_rows
from queryveil.spark._executors import Batches, arrow_schema, map_batches, spark_types, to_polars
from queryveil.spark._km_histories import (
    Vocabulary,
    collect_histories,
    count_terms,
    exclude_bots,
    label_terms,
    number_owners,
    strip_windows,
)
from queryveil.spark._km_rounds import Rounds
from queryveil.spark._writing import ClusterRelease, log_output
from queryveil.spark.logs import SparkLog
from queryveil.text import tokenize
from queryveil.text.histories import collect, rewrite

_KEPT, _IS_ROW, _WINDOW = "kept_terms_of_this_user", "is_row_of_the_log", "window_of_this_user"


def kept_terms(state: DataFrame, terms: Broadcast[pl.Series], *, window: str | None) -> DataFrame:
    """Return the terms that each user, or user in a window, keeps."""
    schema = pa.schema([("user", pa.string()), ("window", pa.int64()), (_KEPT, pa.list_(pa.string()))])
    rows = state.select("user", "window", "labels", "kept")
    return map_batches(rows, _named, schema, terms=terms, window=window, schema=schema)


def _named(batches: Batches, *, terms: Broadcast[pl.Series], window: str | None, schema: pa.Schema) -> Batches:
    words = strip_windows(terms.value, window=window)
    for batch in batches:
        labels, kept = batch["labels"].flatten().to_numpy(), batch["kept"].flatten().to_numpy() == 1
        row = np.repeat(np.arange(batch.num_rows), batch["labels"].value_lengths().to_numpy())[kept]
        begins = np.append(0, np.cumsum(np.bincount(row, minlength=batch.num_rows))).astype(np.int32)
        texts = words.gather(labels[kept]).to_arrow().cast(pa.string())
        lists = pa.ListArray.from_arrays(pa.array(begins), texts)
        yield pa.RecordBatch.from_arrays([batch["user"], batch["window"], lists], schema=schema)


def rewrite_queries(rows: DataFrame, kept: DataFrame, *, window: str | None, by_blanks: bool) -> DataFrame:
    """Return the rows whose queries have a term left, with these terms alone.

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
    return map_batches(
        both, _rewrite_batches, inside, window=window, by_blanks=by_blanks, like=like, names=rows.columns
    )


def _rewrite_batches(
    batches: Batches, *, window: str | None, by_blanks: bool, like: pa.Schema, names: list[str]
) -> Batches:
    both = to_polars(batches, like=like)
    kept = both.filter(~pl.col(_IS_ROW)).select("user", pl.col(_WINDOW).alias("window"), _KEPT)
    rows = both.filter(pl.col(_IS_ROW)).select(names)
    if not rows.height or not kept.height:
        return
    tokens = tokenize(rows["query"], by_blanks=by_blanks)
    owners, who = number_owners(rows, window=window)
    histories = collect(tokens, owners, n_users=who.height)
    entries = pl.DataFrame({"owner": histories.entry_user, "term": tokens.vocabulary.gather(histories.terms)})
    granted = who.with_row_index("owner").join(kept, on=["user", "window"])
    granted = granted.select(pl.col("owner").cast(pl.Int32), term=_KEPT).explode("term", empty_as_null=False)
    granted = granted.with_columns(stays=pl.lit(value=True))
    found = entries.join(granted, on=["owner", "term"], how="left", maintain_order="left")["stays"]
    word = np.where(found.fill_null(value=False).to_numpy(), histories.terms, -1).astype(np.int32)
    out = rows.with_columns(rewrite(tokens, owners, histories, word, tokens.vocabulary).alias("query"))
    if window is not None:
        out = out.with_columns(ids_per_window(who["user"].gather(owners), who["window"].gather(owners)))
    table = out.filter(pl.col("query") != "").to_arrow()
    yield from table.cast(spark_types(table.schema)).to_batches(65_536)


def count_words(released: DataFrame) -> int:
    """Count the terms in released queries."""
    counted = released.agg(F.sum(F.size(F.split("query", " "))).alias("n")).first()
    return int(counted["n"] or 0) if counted is not None else 0


def anonymize_km(method: Km, log: SparkLog, *, spark: SparkSession, scratch: str) -> ClusterRelease:
    """Return the rows of a release that keeps the promise."""
    _check(method, log)
    by_blanks = log.layout.terms_are_items
    people = exclude_bots(log, threshold=method.bot_threshold)
    rows = people.frame.select(_needed(method, log.columns))
    progress.step("reading terms")
    collect_histories(rows, window=method.window, by_blanks=by_blanks).write.parquet(f"{scratch}/histories")
    histories = spark.read.parquet(f"{scratch}/histories")
    vocabulary = count_terms(histories, k=method.k, window=method.window)
    kept, n_terms, notes = _best(method, histories, vocabulary, spark=spark, scratch=scratch)
    progress.step("writing queries")
    rewrite_queries(rows, kept, window=method.window, by_blanks=by_blanks).write.parquet(f"{scratch}/released")
    released = spark.read.parquet(f"{scratch}/released")
    n_words = count_words(released)
    released_rows = release_rows(released, method.columns, seed=method.seed)
    n_people_rows = log.n_rows - people.n_bot_rows
    removed = {
        "bad_rows_skipped": log.reading.n_bad_rows_skipped,
        "bot_users": people.n_bots,
        "bot_rows": people.n_bot_rows,
        "rows_without_terms_before": vocabulary.n_rows_without_terms,
        "rows_without_terms_left": n_people_rows - released_rows.n_rows - vocabulary.n_rows_without_terms,
        "term_occurrences": vocabulary.n_occurrences - n_words,
        "terms": vocabulary.n_terms - n_terms,
    }
    counts = Counts(
        n_rows_before=log.n_rows,
        n_rows_after=released_rows.n_rows,
        n_users_before=log.n_users,
        n_users_after=released_rows.n_users,
    )
    manifest = method.manifest(
        log.columns, by_blanks=by_blanks, reading=log.reading, counts=counts, removed=removed, notes=notes
    )
    return ClusterRelease(
        frame=released_rows.frame, written=log_output(log.layout, released_rows.frame.columns), manifest=manifest
    )


def _check(method: Km, log: SparkLog) -> None:
    method.columns.check(log.columns)
    if method.window is not None and "time" not in log.columns:
        raise BadParameter("window", method.window, allowed="left out for a log without times")


def _needed(method: Km, columns: list[str]) -> list[str]:
    """Return the columns that are released or needed to decide on it."""
    return [name for name in columns if name in ("user", "query", "time", *method.columns.keep)]


def _best(
    method: Km, histories: DataFrame, vocabulary: Vocabulary, *, spark: SparkSession, scratch: str
) -> tuple[DataFrame, int, list[str]]:
    """Return the terms that each user keeps in the best outcome, how many terms are left, and notes on it."""
    words = strip_windows(vocabulary.terms, window=method.window)
    worth, n_without = term_values(words, target=method.target, values=method.values)
    objective = Objective(target=method.target, worth=worth)
    scores = vocabulary.support.astype(float) if method.target is Target.USERS else worth * vocabulary.frequency
    _, ordering = generator(method.seed).spawn(2)
    outcomes = [
        _outcome(method, order, histories, vocabulary, objective, spark=spark, scratch=f"{scratch}/order-{number}")
        for number, order in enumerate(
            orders(scores, frequency=vocabulary.frequency, objective=objective, rng=ordering)
        )
    ]
    _, kept, n_terms = max(outcomes, key=lambda outcome: outcome[0])
    notes = [f"terms of k users without a value in the table, worth nothing to the target: {n_without}"]
    return kept, n_terms, notes if n_without else []


def _outcome(
    method: Km,
    order: Int32s,
    histories: DataFrame,
    vocabulary: Vocabulary,
    objective: Objective,
    *,
    spark: SparkSession,
    scratch: str,
) -> tuple[float, DataFrame, int]:
    """Return the value of an outcome, the terms that each user keeps in it, and how many terms are left."""
    terms = spark.sparkContext.broadcast(vocabulary.terms.gather(pl.Series(order)))
    rounds = Rounds(
        spark=spark,
        scratch=scratch,
        k=method.k,
        m=method.m or 1,
        n_labels=len(order),
        n_entries=vocabulary.n_entries,
    )
    state = rounds.settle(label_terms(histories, terms))
    entries = state.select("uid", F.explode(F.arrays_zip("labels", "kept", "counts")).alias("entry"))
    entries = entries.where("entry.kept = 1")
    left = entries.groupBy(F.col("entry.labels").alias("label")).agg(
        F.count("*").alias("n"), F.sum("entry.counts").alias("occurrences")
    )
    counted = left.toArrow()
    n_users = entries.select("uid").distinct().count() if objective.target is Target.USERS else 0
    kept = order[counted["label"].to_numpy()]
    if objective.target is Target.USERS:
        # Among outcomes with the same users the one with more terms.
        worth = n_users + float(np.sum(counted["n"].to_numpy())) / (vocabulary.n_entries + 1)
    else:
        worth = float(np.sum(counted["occurrences"].to_numpy() * objective.worth[kept]))
    left_words = strip_windows(vocabulary.terms.gather(pl.Series(kept)), window=method.window)
    return worth, kept_terms(state, terms, window=method.window), left_words.n_unique()

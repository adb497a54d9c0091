"""km on a cluster: counts by shuffles, deletions by joins, to the outcome that one machine comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from queryveil import progress
from queryveil.engines.spark.executors import speaking
from queryveil.engines.spark.km_histories import Vocabulary, count_terms, gather, label, words_of
from queryveil.engines.spark.km_rewriting import count_words, kept_terms, rewritten
from queryveil.engines.spark.km_rounds import Rounds
from queryveil.engines.spark.leaving import leave
from queryveil.engines.spark.logs import SparkLog
from queryveil.engines.spark.made import Made, as_log
from queryveil.engines.spark.people import people_of
from queryveil.errors import BadParameter
from queryveil.kernels.arrays import Int32s
from queryveil.log import Format
from queryveil.methods import Km, Target
from queryveil.methods.km_search import Wish, orders
from queryveil.methods.km_targets import term_values
from queryveil.release import Counts
from queryveil.rng import generator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def anonymize_km(method: Km, log: SparkLog, *, spark: SparkSession, scratch: str) -> Made:
    """Give the rows of a release that keeps the promise."""
    _check(method, log)
    by_blanks = log.layout.format is Format.TRANSACTIONS
    people = people_of(log, threshold=method.bot_threshold)
    rows = people.frame.select(_needed(method, log.columns))
    progress.step("reading terms")
    with speaking(so="nothing was released"):
        gather(rows, window=method.window, by_blanks=by_blanks).write.parquet(f"{scratch}/histories")
        histories = spark.read.parquet(f"{scratch}/histories")
    vocabulary = count_terms(histories, k=method.k, window=method.window)
    kept, n_terms, notes = _best(method, histories, vocabulary, spark=spark, scratch=scratch)
    progress.step("writing queries")
    with speaking(so="nothing was released"):
        rewritten(rows, kept, window=method.window, by_blanks=by_blanks).write.parquet(f"{scratch}/released")
        released = spark.read.parquet(f"{scratch}/released")
        n_words = count_words(released)
    leaving = leave(released, method.columns, seed=method.seed)
    n_people_rows = log.n_rows - people.n_bot_rows
    removed = {
        "bad_rows_skipped": log.reading.n_bad_rows_skipped,
        "bot_users": people.n_bots,
        "bot_rows": people.n_bot_rows,
        "rows_without_terms_before": vocabulary.n_rows_without_terms,
        "rows_without_terms_left": n_people_rows - leaving.n_rows - vocabulary.n_rows_without_terms,
        "term_occurrences": vocabulary.n_occurrences - n_words,
        "terms": vocabulary.n_terms - n_terms,
    }
    counts = Counts(
        n_rows_before=log.n_rows,
        n_rows_after=leaving.n_rows,
        n_users_before=log.n_users,
        n_users_after=leaving.n_users,
    )
    manifest = method.manifest(
        log.columns, by_blanks=by_blanks, reading=log.reading, counts=counts, removed=removed, notes=notes
    )
    return Made(frame=leaving.frame, written=as_log(log.layout, leaving.frame.columns), manifest=manifest)


def _check(method: Km, log: SparkLog) -> None:
    method.columns.check(log.columns)
    if method.window is not None and "time" not in log.columns:
        raise BadParameter("window", method.window, allowed="left out for a log without times")


def _needed(method: Km, columns: list[str]) -> list[str]:
    """Give the columns that may leave or that are needed to say what may."""
    return [name for name in columns if name in ("user", "query", "time", *method.columns.keep)]


def _best(
    method: Km, histories: DataFrame, vocabulary: Vocabulary, *, spark: SparkSession, scratch: str
) -> tuple[DataFrame, int, list[str]]:
    """Give what each user keeps in the best outcome, how many terms are left, and what there is to say."""
    words = words_of(vocabulary.terms, window=method.window)
    worth, n_without = term_values(words, target=method.target, values=method.values)
    wish = Wish(target=method.target, worth=worth)
    liking = vocabulary.support.astype(float) if method.target is Target.USERS else worth * vocabulary.frequency
    _, ordering = generator(method.seed).spawn(2)
    outcomes = [
        _outcome(method, order, histories, vocabulary, wish, spark=spark, scratch=f"{scratch}/order-{number}")
        for number, order in enumerate(orders(liking, frequency=vocabulary.frequency, wish=wish, rng=ordering))
    ]
    _, kept, n_terms = max(outcomes, key=lambda outcome: outcome[0])
    notes = [f"terms of k users without a value in the table, worth nothing to the target: {n_without}"]
    return kept, n_terms, notes if n_without else []


def _outcome(
    method: Km,
    order: Int32s,
    histories: DataFrame,
    vocabulary: Vocabulary,
    wish: Wish,
    *,
    spark: SparkSession,
    scratch: str,
) -> tuple[float, DataFrame, int]:
    """Give what an outcome is worth, what everybody keeps in it, and how many terms are left."""
    terms = spark.sparkContext.broadcast(vocabulary.terms.gather(pl.Series(order)))
    rounds = Rounds(
        spark=spark,
        scratch=scratch,
        k=method.k,
        m=method.m or 1,
        n_labels=len(order),
        n_entries=vocabulary.n_entries,
    )
    state = rounds.settle(label(histories, terms))
    entries = state.select("uid", F.explode(F.arrays_zip("labels", "kept", "counts")).alias("entry"))
    entries = entries.where("entry.kept = 1")
    left = entries.groupBy(F.col("entry.labels").alias("label")).agg(
        F.count("*").alias("n"), F.sum("entry.counts").alias("occurrences")
    )
    with speaking(so="nothing was released"):
        counted = left.toArrow()
        n_users = entries.select("uid").distinct().count() if wish.target is Target.USERS else 0
    kept = order[counted["label"].to_numpy()]
    if wish.target is Target.USERS:
        # Among outcomes with the same users the one with more terms.
        worth = n_users + float(np.sum(counted["n"].to_numpy())) / (vocabulary.n_entries + 1)
    else:
        worth = float(np.sum(counted["occurrences"].to_numpy() * wish.worth[kept]))
    left_words = words_of(vocabulary.terms.gather(pl.Series(kept)), window=method.window)
    return worth, kept_terms(state, terms, window=method.window), left_words.n_unique()

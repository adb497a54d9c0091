"""km on a cluster: terms are counted by shuffles and deleted by joins, with the result of one machine.

Every round sends the open parts of the histories to the shards of their terms, which decide from what all others have
decided before, joins what has changed with the histories, and finds out which terms that concerns. When nothing changes
any more, the outcome is the one that a single machine finds by granting one term after another.
"""

import msgspec
import numpy as np
import polars as pl
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil import errors, progress, rng
from queryveil.data import Int8s, Int32s
from queryveil.data.rows import Rows
from queryveil.methods import Km, Target
from queryveil.methods.km import _deletion, _pivot_kernels, combinations
from queryveil.release import Counts, TextCounts, TimeDetail, ids_per_window, window_starts
from queryveil.spark import _executors, _histories, _writing
from queryveil.spark._executors import SparkLog, map_frames, stored
from queryveil.spark._histories import LABELLED, Vocabulary, list_rows, strip_windows
from queryveil.text.histories import rewrite
from queryveil.text.identifiers import remove_identifiers

STATE = f"{LABELLED}, kept array<tinyint>, first_changed int"
_MESSAGES = "shard int, uid bigint, labels array<int>, kept array<tinyint>"
_CHANGES = "uid bigint, label int, kept tinyint"
_FEW = 200_000
"""Up to so many changes are broadcast."""
_KEPT, _IS_ROW, _WINDOW = "kept_terms_of_this_user", "is_row_of_the_log", "window_of_this_user"


def _named(state: pl.DataFrame, *, terms: Broadcast[pl.Series], window: str | None) -> pl.DataFrame:
    """Return the terms that each user, or user in a window, keeps."""
    words = strip_windows(terms.value, window=window)
    kept = list_rows(state["labels"]).keep(list_rows(state["kept"]).values == 1)
    return state.select("user", "window", kept.to_series(words.gather(kept.values)).alias(_KEPT))


def rewrite_queries(
    rows: DataFrame, kept: DataFrame, *, window: str | None, by_blanks: bool, starts: bool = False
) -> DataFrame:
    """Return the rows whose queries have a term left, with these terms alone.

    With windows users get another name in each, and with `starts` the times are those at which windows begin.
    """
    # Spark 4.3 takes time squared to hand lists to Python if many of them are missing, hence an empty one for each row.
    asked = rows.withColumns(
        {_WINDOW: F.lit(None).cast("long"), _KEPT: F.array().cast("array<string>"), _IS_ROW: F.lit(True)}
    )
    others = [F.lit(None).cast(each.dataType).alias(each.name) for each in rows.schema if each.name != "user"]
    granted = kept.select("user", *others, F.col("window").alias(_WINDOW), _KEPT, F.lit(False).alias(_IS_ROW))
    both = asked.select("user", *(each for each in asked.columns if each != "user")).union(granted)
    return map_frames(
        both.repartition("user"),
        _rewrite,
        by_partition=True,
        window=window,
        by_blanks=by_blanks,
        starts=starts,
        names=rows.columns,
    )


def _rewrite(
    both: pl.DataFrame, *, window: str | None, by_blanks: bool, starts: bool, names: list[str]
) -> pl.DataFrame:
    kept = both.filter(~pl.col(_IS_ROW)).select("user", pl.col(_WINDOW).alias("window"), _KEPT)
    rows = both.filter(pl.col(_IS_ROW)).select(names)
    tokens, owners, who, histories = _histories.read_histories(rows, window=window, by_blanks=by_blanks)
    entries = pl.DataFrame({"owner": histories.entry_user, "term": tokens.vocabulary.gather(histories.terms)})
    granted = who.with_row_index("owner").join(kept, on=["user", "window"])
    granted = granted.select(pl.col("owner").cast(pl.Int32), term=_KEPT).explode("term", empty_as_null=False)
    granted = granted.with_columns(stays=pl.lit(value=True))
    found = entries.join(granted, on=["owner", "term"], how="left", maintain_order="left")["stays"]
    word = np.where(found.fill_null(value=False).to_numpy(), histories.terms, -1).astype(np.int32)
    out = rows.with_columns(rewrite(tokens, owners, histories, word, tokens.vocabulary).alias("query"))
    if window is not None and starts:
        out = out.with_columns(window_starts(out["time"], window=window))
    if window is not None:
        out = out.with_columns(ids_per_window(who["user"].gather(owners), who["window"].gather(owners)))
    return out.filter(pl.col("query") != "")


def count_texts(released: DataFrame, *, window: str | None) -> TextCounts:
    """Count the distinct texts of released rows, which are in normal form, as `queryveil.release.texts` does."""
    # With windows users have a name for each.
    person = F.col("user") if window is None else F.regexp_replace("user", "\\x00-?[0-9]+$", "")
    is_of_one = F.min(person) == F.max(person)
    texts = released.groupBy("query").agg(F.count("*").alias("n_rows"), is_of_one.alias("is_of_one"))
    return _writing.sum_texts(map_frames(texts, _with_identifiers))


def _with_identifiers(texts: pl.DataFrame) -> pl.DataFrame:
    has_identifier = remove_identifiers(texts["query"]).removed.is_not_null()
    return texts.select("n_rows", "is_of_one", has_identifier.alias("has_identifier"))


def anonymize_km(method: Km, log: SparkLog, *, scratch: str) -> _writing.ClusterRelease:
    """Return the rows of a release that keeps the promise."""
    method.columns.check(log.columns, shares_days=method.window is not None)
    if method.window is not None and "time" not in log.columns:
        raise errors.BadParameter("window", method.window, allowed="left out for a log without times")
    by_blanks = log.layout.terms_are_items
    people = _histories.exclude_bots(log, threshold=method.bot_threshold)
    needed = {"user", "query", "time", *method.columns.keep}
    rows = people.frame.select([name for name in log.columns if name in needed])
    progress.step("reading terms")
    collected = _histories.collect_histories(rows, window=method.window, by_blanks=by_blanks)
    histories = stored(collected, f"{scratch}/histories")
    vocabulary = _histories.count_terms(histories, k=method.k, window=method.window)
    kept, n_terms, notes = _best(method, histories, vocabulary, scratch=scratch)
    progress.step("writing queries")
    starts = method.columns.time is TimeDetail.SHARED
    rewritten = rewrite_queries(rows, kept, window=method.window, by_blanks=by_blanks, starts=starts)
    rewritten = stored(rewritten, f"{scratch}/released")
    released = _writing.release_rows(rewritten, method.columns, seed=method.seed)
    n_without_before = vocabulary.n_rows_without_terms
    n_words = rewritten.agg(F.sum(F.size(F.split("query", " "))).alias("n")).collect()[0]["n"] or 0
    removed = {
        "bad_rows_skipped": log.reading.n_bad_rows_skipped,
        "bot_users": people.n_bots,
        "bot_rows": people.n_bot_rows,
        "rows_without_terms_before": n_without_before,
        "rows_without_terms_left": log.n_rows - people.n_bot_rows - released.n_rows - n_without_before,
        "term_occurrences": vocabulary.n_occurrences - int(n_words),
        "terms": vocabulary.n_terms - n_terms,
    }
    counts = Counts(
        n_rows_before=log.n_rows,
        n_rows_after=released.n_rows,
        n_users_before=log.n_users,
        n_users_after=released.n_users,
    )
    manifest = method.manifest(
        log.columns,
        by_blanks=by_blanks,
        reading=log.reading,
        counts=counts,
        removed=removed,
        notes=notes,
        n_alone=_writing.n_alone(released, method.columns),
    )
    if not by_blanks:
        manifest = msgspec.structs.replace(manifest, texts=count_texts(rewritten, window=method.window))
    written = _writing.log_output(log.layout, released.frame.columns)
    return _writing.ClusterRelease(frame=released.frame, written=written, manifest=manifest)


def _best(
    method: Km, histories: DataFrame, vocabulary: Vocabulary, *, scratch: str
) -> tuple[DataFrame, int, list[str]]:
    """Return the terms that each user keeps in the best outcome, how many terms are left, and notes on it."""
    words = strip_windows(vocabulary.terms, window=method.window)
    worth, n_without = _deletion.term_values(words, target=method.target, values=method.values)
    objective = _deletion.Objective(target=method.target, worth=worth)
    scores = vocabulary.support.astype(float) if method.target is Target.USERS else worth * vocabulary.frequency
    _, ordering = rng.generator(method.seed).spawn(2)
    outcomes = [
        _outcome(method, order, histories, vocabulary, objective, scratch=f"{scratch}/order-{number}")
        for number, order in enumerate(
            _deletion.orders(scores, frequency=vocabulary.frequency, objective=objective, rng=ordering)
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
    objective: _deletion.Objective,
    *,
    scratch: str,
) -> tuple[float, DataFrame, int]:
    """Return the value of an outcome, the terms that each user keeps in it, and how many terms are left."""
    terms = histories.sparkSession.sparkContext.broadcast(vocabulary.terms.gather(pl.Series(order)))
    n_shards = _executors.n_shards_for(histories, vocabulary.n_entries)
    labelled = _histories.label_terms(histories, terms)
    state = settle(labelled, k=method.k, m=method.m or 1, n_labels=len(order), n_shards=n_shards, scratch=scratch)
    entries = state.select("uid", F.explode(F.arrays_zip("labels", "kept", "counts")).alias("entry"))
    entries = entries.where("entry.kept = 1")
    left = entries.groupBy(F.col("entry.labels").alias("label")).agg(
        F.count("*").alias("n"), F.sum("entry.counts").alias("occurrences")
    )
    counted = left.toArrow()
    kept = order[counted["label"].to_numpy()]
    if objective.target is Target.USERS:
        # Among outcomes with the same users the one with more terms.
        n_users = entries.select("uid").distinct().count()
        worth = n_users + float(np.sum(counted["n"].to_numpy())) / (vocabulary.n_entries + 1)
    else:
        worth = float(np.sum(counted["occurrences"].to_numpy() * objective.worth[kept]))
    left_words = strip_windows(vocabulary.terms.gather(pl.Series(kept)), window=method.window)
    rows, schema = (
        state.select("user", "window", "labels", "kept"),
        f"user string, window bigint, {_KEPT} array<string>",
    )
    return worth, map_frames(rows, _named, schema, terms=terms, window=method.window), left_words.n_unique()


def settle(histories: DataFrame, *, k: int, m: int, n_labels: int, n_shards: int, scratch: str) -> DataFrame:
    """Return labelled histories with what is kept of each: a byte for each label."""
    kept = F.array_repeat(F.lit(1).cast("tinyint"), F.size("labels"))
    state = histories.withColumns({"kept": kept, "first_changed": F.lit(None).cast("int")})
    state = stored(state, f"{scratch}/state-0")
    is_open, n_rounds = np.ones(n_labels, np.int8), 0
    while is_open.any():
        n_rounds += 1
        progress.step(f"counting, round {n_rounds}", 1 - float(is_open.mean()))
        shared = histories.sparkSession.sparkContext.broadcast(is_open)
        sent = map_frames(state, _sent, _MESSAGES, is_open=shared, n_shards=n_shards)
        decided = _executors.map_groups(sent, "shard", _decided, _CHANGES, is_open=shared, n_shards=n_shards, k=k, m=m)
        changes = stored(decided, f"{scratch}/changes-{n_rounds}")
        n_changes = changes.count()
        if not n_changes:
            break
        state = stored(_joined(state, changes, n_changes=n_changes), f"{scratch}/state-{n_rounds}")
        is_open = _concerned(state, n_labels=n_labels)
    return state


def _concerned(state: DataFrame, *, n_labels: int) -> Int8s:
    """Mark the labels that come after a change in somebody's history."""
    changed = state.where(F.col("first_changed").isNotNull())
    after = F.filter("labels", lambda label: label > F.col("first_changed"))
    found = changed.select(F.explode(after).alias("label")).distinct().toArrow()["label"].to_numpy()
    is_open = np.zeros(n_labels, np.int8)
    is_open[found] = 1
    return is_open


def _sent(state: pl.DataFrame, *, is_open: Broadcast[Int8s], n_shards: int) -> pl.DataFrame:
    """Return what each shard must know of each history to decide its open labels."""
    (ptr, labels), kept = list_rows(state["labels"]), list_rows(state["kept"]).values.copy()
    shard, row, begins, places = _pivot_kernels.share_out(ptr, labels, kept, is_open.value, n_shards)
    sent = Rows(begins, labels[places])
    lists = {"labels": sent.to_series(), "kept": sent.to_series(kept[places])}
    return pl.DataFrame({"shard": shard, "uid": state["uid"].gather(row)} | lists)


def _decided(messages: pl.DataFrame, *, is_open: Broadcast[Int8s], n_shards: int, k: int, m: int) -> pl.DataFrame:
    """Decide the open labels of one shard, and return what has changed."""
    rows, before = list_rows(messages["labels"]), list_rows(messages["kept"]).values
    n_labels = len(is_open.value)
    labels = np.arange(n_labels, dtype=np.int32)
    mine = np.where(labels % n_shards == messages["shard"][0], is_open.value, np.int8(0))
    index, kept = combinations.index_terms(rows, n_terms=n_labels), before.copy()
    # A longer combination than any history has is in none of them.
    m = max(1, min(m, int(rows.lengths.max(initial=1))))
    built, length, work = np.empty_like(rows.values), np.zeros(rows.n_rows, np.int32), np.zeros((2, n_labels), np.int32)
    _pivot_kernels.build_up(labels, index, mine, k, m, built, length, work, kept)
    changed = np.flatnonzero(kept != before)
    uid = messages["uid"].gather(index.entry_user[changed])
    return pl.DataFrame({"uid": uid, "label": rows.values[changed], "kept": kept[changed]})


def _joined(state: DataFrame, changes: DataFrame, *, n_changes: int) -> DataFrame:
    """Return the histories with what has changed in them."""
    news = changes.groupBy("uid").agg(
        F.collect_list("label").alias("changed_labels"), F.collect_list("kept").alias("changed_kept")
    )
    # A few changes go to where the histories are, many meet them half way.
    both = state.drop("first_changed").join(F.broadcast(news) if n_changes < _FEW else news, "uid", "left")
    # Spark 4.3 takes time squared to hand lists to Python if many of them are missing.
    for name, kind in (("changed_labels", "array<int>"), ("changed_kept", "array<tinyint>")):
        both = both.withColumn(name, F.coalesce(name, F.array().cast(kind)))
    return map_frames(both, _renewed, STATE)


def _renewed(state: pl.DataFrame) -> pl.DataFrame:
    rows, news = list_rows(state["labels"]), list_rows(state["changed_labels"])
    kept, row = list_rows(state["kept"]).values.copy(), news.row_of_entry
    # A history's labels ascend, so row and label together do too.
    n_labels = int(max(rows.values.max(initial=0), news.values.max(initial=0))) + 1
    at = np.searchsorted(rows.row_of_entry * n_labels + rows.values, row * n_labels + news.values)
    kept[at] = list_rows(state["changed_kept"]).values
    return state.with_columns(kept=rows.to_series(kept), first_changed=pl.col("changed_labels").list.min())

"""(k, m)-anonymity in rounds: each shard decides on its terms from what all others have decided before.

Every round sends the open parts of the histories to the shards of their terms, counts there, joins what has changed
with the histories, and finds out which terms that concerns. When nothing changes any more, the outcome is the one that
a single machine finds by granting one term after another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queryveil import progress
from queryveil.data import Int8s, Int32s, Int64s
from queryveil.data.rows import Rows, pointers
from queryveil.methods.km._pivot_kernels import settle_labels, share_out
from queryveil.methods.km.combinations import index_terms
from queryveil.spark._executors import Batches, map_batches, map_groups
from queryveil.spark._km_histories import LABELLED

STATE = pa.schema([*LABELLED, ("kept", pa.list_(pa.int8())), ("first_changed", pa.int32())])
_MESSAGES = pa.schema(
    [("shard", pa.int32()), ("uid", pa.int64()), ("labels", pa.list_(pa.int32())), ("kept", pa.list_(pa.int8()))]
)
_CHANGES = pa.schema([("uid", pa.int64()), ("label", pa.int32()), ("kept", pa.int8())])
_ENTRIES_PER_SHARD = 4_000_000
_FEW = 200_000
"""Up to so many changes are broadcast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The promise to reach, and the folder where histories are stored between rounds."""

    spark: SparkSession
    scratch: str
    k: int
    m: int
    n_labels: int
    n_entries: int

    @property
    def n_shards(self) -> int:
        """The number of shards: at least two per core, and each fits into one executor."""
        return max(2 * self.spark.sparkContext.defaultParallelism, -(-self.n_entries // _ENTRIES_PER_SHARD))

    def settle(self, histories: DataFrame) -> DataFrame:
        """Return the histories with what is kept of each: a byte for each label."""
        state = self._stored(map_batches(histories, _all_kept, STATE), "state-0")
        is_open, n_rounds = np.ones(self.n_labels, np.int8), 0
        while is_open.any():
            n_rounds += 1
            progress.step(f"counting, round {n_rounds}", 1 - float(is_open.mean()))
            changes = self._stored(self._decide(state, is_open), f"changes-{n_rounds}")
            n_changes = changes.count()
            if not n_changes:
                break
            state = self._stored(_joined(state, changes, n_changes=n_changes), f"state-{n_rounds}")
            is_open = self._concerned(state)
        return state

    def _stored(self, frame: DataFrame, name: str) -> DataFrame:
        """Write a frame to disk and read it back, so that losing an executor later does not repeat the work."""
        path = f"{self.scratch}/{name}"
        frame.write.parquet(path)
        return self.spark.read.parquet(path)

    def _decide(self, state: DataFrame, is_open: Int8s) -> DataFrame:
        shared = self.spark.sparkContext.broadcast(is_open)
        sent = map_batches(state, _sent, _MESSAGES, is_open=shared, n_shards=self.n_shards)
        return map_groups(sent, "shard", _decided, _CHANGES, is_open=shared, n_shards=self.n_shards, k=self.k, m=self.m)

    def _concerned(self, state: DataFrame) -> Int8s:
        """Mark the labels that come after a change in somebody's history."""
        changed = state.where(F.col("first_changed").isNotNull())
        after = F.filter("labels", lambda label: label > F.col("first_changed"))
        found = changed.select(F.explode(after).alias("label")).distinct().toArrow()["label"].to_numpy()
        is_open = np.zeros(self.n_labels, np.int8)
        is_open[found] = 1
        return is_open


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """Histories as compressed rows."""

    by_history: Rows[np.int32]
    kept: Int8s

    @classmethod
    def of(cls, table: pa.Table | pa.RecordBatch) -> _Rows:
        labels, kept = _whole(table["labels"]), _whole(table["kept"])
        return cls(
            by_history=Rows(pointers(labels.value_lengths().to_numpy()), labels.flatten().to_numpy()),
            kept=kept.flatten().to_numpy(zero_copy_only=False).copy(),
        )

    @property
    def labels(self) -> Int32s:
        return self.by_history.values


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _lists(begins: Int64s, values: np.ndarray) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(begins.astype(np.int32)), pa.array(values))


def _all_kept(batches: Batches) -> Batches:
    for batch in batches:
        labels = batch["labels"]
        begins = pointers(labels.value_lengths().to_numpy())
        kept = _lists(begins, np.ones(int(begins[-1]), np.int8))
        first = pa.nulls(batch.num_rows, pa.int32())
        yield pa.RecordBatch.from_arrays([*(batch[name] for name in LABELLED.names), kept, first], schema=STATE)


def _sent(batches: Batches, *, is_open: Broadcast[Int8s], n_shards: int) -> Batches:
    for batch in batches:
        rows = _Rows.of(batch)
        shard, row, begins, places = share_out(*rows.by_history, rows.kept, is_open.value, n_shards)
        uid = batch["uid"].to_numpy()[row]
        columns = [shard, uid, _lists(begins, rows.labels[places]), _lists(begins, rows.kept[places])]
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=_MESSAGES)


def _decided(table: pa.Table, *, is_open: Broadcast[Int8s], n_shards: int, k: int, m: int) -> pa.Table:
    """Decide the open labels of one shard, and return what has changed."""
    rows, shard = _Rows.of(table), table["shard"][0].as_py()
    n_labels = len(is_open.value)
    mine = np.arange(shard, n_labels, n_shards)
    pivots = mine[is_open.value[mine] == 1].astype(np.int32)
    index = index_terms(rows.by_history, n_terms=n_labels)
    before = rows.kept.copy()
    # A longer combination than any history has is in none of them.
    m = max(1, min(m, int(rows.by_history.lengths.max(initial=1))))
    work = np.zeros((2, n_labels), np.int32)
    settle_labels(pivots, index, rows.kept, k, m, work)
    changed = np.flatnonzero(rows.kept != before)
    uid = table["uid"].to_numpy()[index.entry_user[changed]]
    return pa.table([pa.array(uid), pa.array(rows.labels[changed]), pa.array(rows.kept[changed])], schema=_CHANGES)


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
    return map_batches(both, _renewed, STATE)


def _renewed(batches: Batches) -> Batches:
    for batch in batches:
        rows = _Rows.of(batch)
        labels, flags = batch["changed_labels"], batch["changed_kept"]
        lengths = labels.value_lengths().to_numpy()
        row = np.repeat(np.arange(batch.num_rows), lengths)
        news = labels.flatten().to_numpy()
        # A history's labels ascend, so row and label together do too.
        n_labels = int(max(rows.labels.max(initial=0), news.max(initial=0))) + 1
        at = np.searchsorted(rows.by_history.row_of_entry * n_labels + rows.labels, row * n_labels + news)
        rows.kept[at] = flags.flatten().to_numpy()
        first = np.full(batch.num_rows, n_labels, np.int64)
        np.minimum.at(first, row, news)
        columns = [batch[name] for name in LABELLED.names]
        kept = _lists(rows.by_history.ptr, rows.kept)
        changed = pa.array(first.astype(np.int32), mask=lengths == 0)
        yield pa.RecordBatch.from_arrays([*columns, kept, changed], schema=STATE)

"""(k, m)-anonymity as a distributed count, by the checker's own terms and kernels.

The combinations that begin with one item, rarest first, are counted where all histories with that item are gathered.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from queryveil.checks.combinations import rare_combinations
from queryveil.checks.tokens import tokenise
from queryveil.checks.verdict import Kind, Verdict, Witness
from queryveil.errors import NotYet
from queryveil.guarantees import KmAnonymity, parse_window
from queryveil.progress import step
from queryveil.spark.executors import Batches, guarded, guarded_table, kept, speaking, suffixes
from queryveil.spark.logs import as_frame, schema_of

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

_ROWS = pa.schema([("user", pa.string()), ("query", pa.string()), ("time", pa.timestamp("us"))])
_HELD = pa.schema([("user", pa.string()), ("window", pa.int64()), ("items", pa.list_(pa.string()))])
_NUMBERED = pa.schema([("items", pa.list_(pa.int32()))])
_PARTS = pa.schema([("shard", pa.int32()), ("items", pa.list_(pa.int32()))])
_FOUND = pa.schema([("n_rare", pa.int64()), ("support", pa.int64())])
_ITEMS_A_SHARD = 4_000_000


def verify_km(frame: DataFrame, promise: KmAnonymity, *, time_unit: timedelta | None) -> Verdict:
    """Judge the promise of released rows; violations are counted exactly, and their rows are not told."""
    if promise.m is None:
        raise NotYet("m=none on Spark", "whole histories are compared on one machine", instead="leave out --engine")
    blur = _why_windows_blur(frame.columns, promise, time_unit=time_unit)
    window = promise.window if not blur else None
    step("histories")
    with kept(_held(frame, window=window, by_blanks=promise.items)) as held:
        with speaking():
            n_users = frame.select("user").distinct().count()
            n_checked = held.where(F.size("items") > 0).count()
        found = _smallest_rare(held, promise)
        n_linked, linked = (0, []) if window is None else _linked(held)
    n_rare, witnesses = found
    verdict = Verdict(
        promise=promise,
        holds=n_rare == 0,
        witnesses=tuple(sorted(witnesses)),
        n_violations=n_rare,
        n_users=n_users,
        n_checked_users=n_checked,
        notes=(blur,) if blur else (),
    )
    return verdict if window is None else verdict.joined(witnesses=linked, n_violations=n_linked)


def _why_windows_blur(columns: list[str], promise: KmAnonymity, *, time_unit: timedelta | None) -> str | None:
    if promise.window is None:
        return None
    if "time" not in columns or time_unit is None:
        reason = "the log has no times"
    elif parse_window(promise.window) % time_unit:
        reason = f"times are rounded to {time_unit}"
    else:
        return None
    return f"{reason}, so windows of {promise.window} cannot be told apart; judged over the whole log"


def _held(frame: DataFrame, *, window: str | None, by_blanks: bool) -> DataFrame:
    """Return what each user holds, or each user in each window; the same term in another window is another item."""
    names = ["user", "query", *(["time"] if window is not None else [])]
    length_us = None if window is None else parse_window(window) // timedelta(microseconds=1)
    work = partial(_gathered, length_us=length_us, by_blanks=by_blanks)
    return frame.select(names).repartition("user").mapInArrow(guarded(work), schema_of(_HELD))


def _gathered(batches: Batches, *, length_us: int | None, by_blanks: bool) -> Batches:
    rows = as_frame(batches, like=_ROWS if length_us is not None else pa.schema(list(_ROWS)[:2]))
    # A row without a time is in a window of its own.
    window = (
        pl.lit(0, pl.Int64) if length_us is None else (pl.col("time").dt.epoch("us") // length_us).fill_null(-(2**62))
    )
    rows = rows.with_columns(window=window)
    tokens = tokenise(rows["query"].unique(maintain_order=True), items=by_blanks)
    terms = pl.Series("items", tokens.words.gather(tokens.terms))
    if len(terms):
        ptr = pa.array(tokens.starts.astype(np.int32))
        lists = pl.Series("items", pa.ListArray.from_arrays(ptr, terms.to_arrow().cast(pa.string())))
    else:
        lists = pl.Series("items", [[]] * (len(tokens.starts) - 1), dtype=pl.List(pl.String))
    by_query = pl.DataFrame({"query": rows["query"].unique(maintain_order=True), "items": lists})
    held = (
        rows.join(by_query, on="query", how="left")
        .group_by("user", "window")
        .agg(pl.col("items").explode(empty_as_null=False).unique())
    )
    if length_us is not None:
        held = held.with_columns(
            items=pl.struct("window", "items").map_elements(
                lambda row: [f"{row['window']}\0{item}" for item in row["items"]], return_dtype=pl.List(pl.String)
            )
        )
    yield from held.select(_HELD.names).to_arrow().cast(_HELD).to_batches(65_536)


def _smallest_rare(held: DataFrame, promise: KmAnonymity) -> tuple[int, list[Witness]]:
    """Count the combinations with fewer than k users, of the smallest size that has any, and give the rarest."""
    supports = held.select(F.explode("items").alias("item")).groupBy("item").agg(F.count("*").alias("support"))
    rare = supports.where(F.col("support") < promise.k)
    with speaking():
        n_rare = rare.count()
        rarest = [row["support"] for row in rare.orderBy("support").limit(Verdict.N_KEPT).collect()]
    if n_rare:
        return n_rare, [_witness(1, support, promise) for support in rarest]
    with speaking():
        common = pl.DataFrame(pl.from_arrow(supports.toArrow())).sort("support", "item")
        longest = held.agg(F.max(F.size("items")).alias("n")).first()
    session = held.sparkSession
    numbers = session.sparkContext.broadcast(common["item"])
    numbered = held.select("items").mapInArrow(guarded(partial(_numbered, numbers=numbers)), schema_of(_NUMBERED))
    n_shards = max(2 * session.sparkContext.defaultParallelism, -(-int(common["support"].sum() or 0) // _ITEMS_A_SHARD))
    parts = numbered.mapInArrow(guarded(partial(_shared_out, n_shards=n_shards)), schema_of(_PARTS))
    for size in range(2, min(promise.m or 1, int((longest and longest["n"]) or 0)) + 1):
        step(f"combinations of {size}")
        work = partial(_rare_of_shard, size=size, k=promise.k, n_items=common.height, n_shards=n_shards)
        with speaking():
            found = parts.groupBy("shard").applyInArrow(guarded_table(work), schema_of(_FOUND)).toArrow()
        n_rare = int(np.sum(found["n_rare"].to_numpy()))
        if n_rare:
            rarest = sorted(found["support"].drop_null().to_pylist())[: Verdict.N_KEPT]
            return n_rare, [_witness(size, support, promise) for support in rarest]
    return 0, []


def _witness(size: int, support: int, promise: KmAnonymity, *, kind: Kind = "combination") -> Witness:
    return Witness(kind=kind, size=size, support=support, needed=promise.k, rows=(), positions=())


def _numbered(batches: Batches, *, numbers: Broadcast[pl.Series]) -> Batches:
    """Return histories as numbers of items, ascending."""
    known = (
        pl.DataFrame({"items": numbers.value}).with_row_index("number").with_columns(pl.col("number").cast(pl.Int32))
    )
    for batch in batches:
        rows = pl.DataFrame(pl.from_arrow(batch)).with_row_index("row")
        found = rows.explode("items", empty_as_null=False).join(known, on="items")
        lists = found.group_by("row").agg(items=pl.col("number").sort())
        yield from lists.select("items").to_arrow().cast(_NUMBERED).to_batches()


def _shared_out(batches: Batches, *, n_shards: int) -> Batches:
    for batch in batches:
        lists = batch["items"]
        starts = np.append(0, np.cumsum(lists.value_lengths().to_numpy())).astype(np.int64)
        items = lists.flatten().to_numpy()
        shard, _, begins, places = suffixes(starts, items, n_shards=n_shards)
        parts = pa.ListArray.from_arrays(pa.array(begins.astype(np.int32)), pa.array(items[places]))
        yield pa.RecordBatch.from_arrays([pa.array(shard.astype(np.int32)), parts], schema=_PARTS)


def _rare_of_shard(table: pa.Table, *, size: int, k: int, n_items: int, n_shards: int) -> pa.Table:
    """Count the rare combinations that begin with an item of this shard."""
    lists = table["items"].combine_chunks()
    lengths = lists.value_lengths().to_numpy()
    line = _line(lists.flatten().to_numpy(), lengths)
    # What follows an item in a history is its tail; the end marks are smaller than any item, hence sorted first.
    tails = np.argsort(line, kind="stable")[len(lengths) :] + 1
    support = np.bincount(line[line >= 0], minlength=n_items)
    tail_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(support)])
    firsts = np.arange(table["shard"][0].as_py(), n_items, n_shards)
    n_rare, supports, _, _ = rare_combinations(line, tails, tail_starts, firsts, size, k)
    rarest = np.sort(supports[supports < k])[: Verdict.N_KEPT]
    n = max(1, len(rarest))
    return pa.table(
        {
            "n_rare": pa.array([int(n_rare.sum())] + [0] * (n - 1), pa.int64()),
            "support": pa.array(rarest.tolist() or [None], pa.int64()),
        },
        schema=_FOUND,
    )


def _line(items: NDArray[np.int32], lengths: NDArray[np.int64]) -> NDArray[np.int32]:
    """Put histories one after another, each ended by -1."""
    line = np.full(len(items) + len(lengths), -1, np.int32)
    line[np.arange(len(items)) + np.repeat(np.arange(len(lengths)), lengths)] = items
    return line


def _linked(held: DataFrame) -> tuple[int, list[Witness]]:
    """Count the user ids that stand in more than one window."""
    several = held.groupBy("user").agg(F.count("*").alias("n")).where(F.col("n") > 1)
    with speaking():
        n_linked = several.count()
        most = [row["n"] for row in several.orderBy("n").limit(Verdict.N_KEPT).collect()]
    return n_linked, [Witness(kind="linked_windows", size=0, support=n, needed=1, rows=(), positions=()) for n in most]

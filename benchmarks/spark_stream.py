"""swap as a stream on Spark: events a second, work an event, and what the checkpoint holds.

    python -m benchmarks.spark_stream [--cases SIZExSHARDS,..] [--batches N] [--master URL]

Made-up queries in AOL's shape, in the order of time, as JSON lines, a file a batch. Two batches come before the
measured ones, in the same stream, so that nothing is loaded or compiled inside the times; starting the stream again is
inside. *Work* is the processor time of all processes. The floor is Spark with the same files and no swap: lines read
and written. The peer is `queryveil stream` with two workers on the same events.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.spark import timed
from benchmarks.stream import serve
from queryveil.cli.output import print_table
from queryveil.spark import session
from queryveil.spark.streaming import SwapStream
from queryveil.synthesis import synthesize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

N_BEFORE = 2
KEY = b"a key for benchmarks, 32 bytes.."


def events(n: int) -> pl.DataFrame:
    """Make up so many events in the order of time."""
    users = 1000 + n // 30
    frame = synthesize(like="aol", users=users, seed=1).log.frame.select("user", "query", "time").sort("time")
    assert frame.height >= n, (frame.height, n)
    return frame.head(n).with_columns(pl.col("time").dt.strftime("%Y-%m-%d %H:%M:%S"))


def put(frame: pl.DataFrame, folder: Path, *, size: int, first: int) -> None:
    """Write the events as files, each a batch; Spark takes the oldest first."""
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(frame.iter_slices(size), start=first):
        part.write_ndjson(folder / f"{number:05}.jsonl")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each case, its floor, and the same events on one machine."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default="100000x1,100000x4,10000x1,1000x1")
    parser.add_argument("--batches", type=int, default=9)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args(arguments)
    spark = session.start(given.master)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    cases = [tuple(int(n) for n in case.split("x")) for case in given.cases.split(",")]
    rows = [row for size, shards in cases for row in compare(spark, size=size, shards=shards, n_batches=given.batches)]
    spark.stop()
    header = ("events a batch", "shards", "", "events a second", "work us an event", "state MB", "bytes an event")
    print_table(header, rows, title=f"k=10, {given.batches} batches measured, {given.master}")


def compare(spark: SparkSession, *, size: int, shards: int, n_batches: int) -> list[tuple[str, ...]]:
    """Run one case, and give its rows of the table."""
    frame = events(size * (N_BEFORE + n_batches))
    swap = SwapStream(k=10, shards=shards, key=KEY)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)

        def swapped() -> None:
            where = {name: str(folder / name) for name in ("source", "sink", "checkpoint")}
            swap.start(spark, **where, files_per_batch=1, available_now=True).awaitTermination()

        def floor() -> None:
            lines = spark.readStream.schema("user STRING, query STRING, time STRING").option("maxFilesPerTrigger", 1)
            copied = lines.json(str(folder / "source")).writeStream.format("json").trigger(availableNow=True)
            copied = copied.option("checkpointLocation", str(folder / "floor checkpoint"))
            copied.option("path", str(folder / "floor sink")).start().awaitTermination()

        took = measured([swapped, floor], frame, folder / "source", size=size)
        state = sum(file.stat().st_size for file in (folder / "checkpoint/swap/state").rglob("*") if file.is_file())
        whole = folder / "whole.jsonl"
        frame.write_ndjson(whole)
        here = serve(whole, folder, workers=2, batch_bytes=whole.stat().st_size // (N_BEFORE + n_batches))
    n = frame.height - size * N_BEFORE
    what = f"{size:,}", str(shards)
    return [
        (*what, "swap on Spark", *_speed(n, took[0]), f"{state / 1e6:.1f}", f"{state / frame.height:.1f}"),
        (*what, "floor: Spark copies", *_speed(n, took[1]), "", ""),
        (*what, "queryveil stream", f"{here.a_second():,.0f}", "", "", ""),
    ]


def measured(
    runs: Sequence[Callable[[], None]], frame: pl.DataFrame, source: Path, *, size: int
) -> list[tuple[float, float]]:
    """Let each read the first batches, then give how long the others take each, and how much work they are."""
    first = size * N_BEFORE
    put(frame.head(first), source, size=size, first=0)
    for run in runs:
        run()
    put(frame.tail(frame.height - first), source, size=size, first=N_BEFORE)
    return [timed(run) for run in runs]


def _speed(n: int, took: tuple[float, float]) -> tuple[str, str]:
    return f"{n / took[0]:,.0f}", f"{took[1] / n * 1e6:.1f}"


if __name__ == "__main__":
    main()

"""swap on Spark from folder to folder: stopped, killed and started again, it keeps its promise and loses nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import polars as pl
import pytest
from tests.support.examples import SOAKS
from tests.support.streams import KEY
from tests.support.waiting import until

from queryveil.checks.arrivals import Arrivals, arrivals_of
from queryveil.checks.swap import verify_swap
from queryveil.data import QueryLog
from queryveil.errors import BadFile, BadParameter
from queryveil.methods.swap._pool_state import PoolState
from queryveil.methods.swap.pools import N_POOLS
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail, keyed
from queryveil.spark.streaming import StreamCounts, SwapStream, read_counts, read_profiles, shard_of
from queryveil.spark.streaming._checkpoints import POOLS, inside
from queryveil.synthesis import synthesize
from queryveil.text.classifier import Classifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MORTAL = Path(__file__).with_name("mortal_swap.py")
N_FILES, N_SHARDS = 6, 2
SETTINGS: dict[str, Any] = {"k": 3, "shards": N_SHARDS, "time": "keep", "keep": ["file"], "window": None}
SWAP = SwapStream(key=KEY, **SETTINGS)
FIRST = datetime(2026, 1, 1)
OF_BATCH = pl.lit(FIRST) + pl.col("batch") * timedelta(seconds=1)


class Places(TypedDict):
    """Where a stream works."""

    source: str
    sink: str
    checkpoint: str
    format: str
    files_per_batch: int


def places_in(folder: Path, *, form: str = "jsonl") -> Places:
    source, sink, checkpoint = (str(folder / name) for name in ("in", "out", "state"))
    return Places(source=source, sink=sink, checkpoint=checkpoint, format=form, files_per_batch=1)


def made_up_events() -> pl.DataFrame:
    """Return events in the order of time, and the file in which each comes."""
    events = synthesize(users=150, seed=5).log.frame.select("user", "query", "time").sort("time")
    return events.with_columns(file=pl.int_range(events.height) * N_FILES // events.height)


def write_source(folder: Path, events: pl.DataFrame) -> None:
    folder.mkdir(parents=True)
    for number in range(N_FILES):
        path = folder / f"{number:02}.parquet"
        events.filter(pl.col("file") == number).write_parquet(path)
        # Spark takes the oldest first.
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def last_commit(folder: Path) -> int:
    commits = (Path(inside(str(folder / "state"), POOLS)) / "commits").glob("*")
    return max((int(path.name) for path in commits if path.name.isdigit()), default=-1)


def live_and_die(folder: Path, *, after_batches: int, seconds: float) -> None:
    """Run the stream in a process of its own, and kill it and all that it started soon after so many more batches."""
    goal = last_commit(folder) + after_batches
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    with (folder / "mortal.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(MORTAL), json.dumps(SETTINGS), json.dumps(places_in(folder, form="parquet"))],
            env=os.environ | {"SPARK_LOCAL_DIRS": str(scratch), "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        until(lambda: last_commit(folder) >= goal, process=process)
    except AssertionError as error:
        raise AssertionError((folder / "mortal.log").read_text()[-3000:]) from error
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def stop_in_the_middle(spark: SparkSession, folder: Path) -> None:
    goal = last_commit(folder) + 1
    query = SWAP.start(spark, **places_in(folder, form="parquet"), available_now=True)
    until(lambda: last_commit(folder) >= goal or query.exception() is not None)
    assert query.exception() is None
    query.stop()


@pytest.fixture(scope="module")
def lived(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a stream that was killed and stopped before it came to its end."""
    folder = tmp_path_factory.mktemp("stream")
    write_source(folder / "in", made_up_events())
    rng = random.Random()
    live_and_die(folder, after_batches=2, seconds=rng.uniform(0, 1))
    if SOAKS:
        live_and_die(folder, after_batches=1, seconds=rng.uniform(0, 1))
    stop_in_the_middle(spark, folder)
    assert last_commit(folder) < N_FILES - 1
    counts = SWAP.run(spark, **places_in(folder, form="parquet"))
    assert counts == read_counts(spark, checkpoint=str(folder / "state"))
    return folder


def released_in(folder: Path, spark: SparkSession) -> pl.DataFrame:
    """Read what the sink calls whole, with the number of the batch in which each row left."""
    rows = pl.from_arrow(spark.read.parquet(str(folder / "out")).toArrow())
    assert isinstance(rows, pl.DataFrame)
    # A batch that is begun after a crash may take a file more.
    assert N_FILES - 3 <= rows["time"].n_unique() <= N_FILES
    return rows.with_columns(batch=pl.col("time").rank("dense").cast(pl.Int64) - 1)


def waiting_in(folder: Path, spark: SparkSession) -> tuple[list[str], list[str]]:
    """Return the users and the queries that wait in the pools."""
    state = spark.read.format("statestore").option("stateVarName", "pool")
    users, queries = [], []
    for row in state.load(inside(str(folder / "state"), POOLS)).select("value.pool").collect():
        left, right = PoolState.unpack(bytes(row.pool)).frames(n_pools=N_POOLS)
        users += left["user"].to_list()
        queries += right["query"].to_list()
    return users, queries


def arrivals_of_shard(events: pl.DataFrame, rows: pl.DataFrame, *, shard: int) -> tuple[QueryLog, Arrivals]:
    """Return the rows and the arrivals of a shard, dated by their batch: what came later set nothing free."""
    in_shard = pl.Series([shard_of(name, shards=N_SHARDS) == shard for name in keyed(events["user"], key=KEY)])
    # A file came no later than the first row of it, or of a later one, left; of a hundred rows some are always new.
    begun = [rows.filter(pl.col("file") >= number)["batch"].min() for number in range(N_FILES)]
    batches = events.with_columns(batch=pl.col("file").replace_strict(list(range(N_FILES)), begun))
    came = batches.filter(in_shard).select("user", "query", time=OF_BATCH)
    left = QueryLog.from_frame(rows.filter(pl.col("shard") == shard).select("user", "query", time=OF_BATCH))
    original = QueryLog.from_frame(came)
    manifest = Manifest(
        method="swap",
        promise=SWAP.promise,
        parameters={"classifier": "evidence", "unclassified": "pool", "order": "file", "max_pool": 10_000},
        counts=Counts(n_rows_before=came.height, n_rows_after=left.n_rows, n_users_before=1, n_users_after=1),
        removed={},
        columns=ColumnReport(ids=Ids.KEYED, time=TimeDetail.KEEP),
    )
    arrivals = arrivals_of(original, release=Release(data=left, manifest=manifest), key=KEY)
    return left, replace(arrivals, in_order=False)


def test_after_crashes_nothing_is_lost_and_nothing_is_released_twice(spark: SparkSession, lived: Path) -> None:
    events, rows = made_up_events(), released_in(lived, spark)
    counts = read_counts(spark, checkpoint=str(lived / "state"))
    assert counts.adds_up
    assert (counts.n_read, counts.n_released) == (events.height, rows.height)
    assert counts.n_released > (events.height - counts.n_repeated) / 2
    users, queries = waiting_in(lived, spark)
    assert (len(users), len(queries), counts.n_suppressed) == (counts.n_waiting, counts.n_waiting, 0)
    came = pl.concat([arrivals_of_shard(events, rows, shard=shard)[1].frame for shard in range(N_SHARDS)])
    typed = pl.col("query").str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    once = came.with_columns(typed=typed).unique(["user", "typed"])
    # What a person asks again is left out; the memory takes a few others for that too.
    n_mistaken = counts.n_repeated - (came.height - once.height)
    assert 0 <= n_mistaken < 0.01 * once.height
    assert Counter([*rows["query"], *queries]) <= Counter(once["query"])
    assert Counter([*rows["user"], *users]) <= Counter(once["user"])


@pytest.mark.parametrize("shard", range(N_SHARDS))
def test_the_checker_finds_that_each_shard_keeps_the_promise(spark: SparkSession, lived: Path, shard: int) -> None:
    events, rows = made_up_events(), released_in(lived, spark)
    left, arrivals = arrivals_of_shard(events, rows, shard=shard)
    verdict = verify_swap(left, SWAP.promise, original=arrivals)
    assert verdict.holds, verdict.in_words()
    assert left.n_rows > 200
    # The checker would have seen it if a row had left a batch too early, or gone to whoever asked it.
    early = left.with_frame(left.frame.with_columns(time=pl.lit(FIRST)))
    assert not verify_swap(early, SWAP.promise, original=arrivals).holds
    asked_once = arrivals.frame.filter(pl.col("query").is_unique()).select("query", asker="user")
    # Of this shard: another one may have released what here still waits.
    own = left.frame.join(asked_once, on="query", maintain_order="left")[:1]
    back = pl.when(pl.col("query") == own["query"][0]).then(pl.lit(own["asker"][0])).otherwise("user")
    left, arrivals = arrivals_of_shard(events, rows.with_columns(user=back), shard=shard)
    assert not verify_swap(left, SWAP.promise, original=arrivals).holds


def test_profiles_count_each_released_row_once(spark: SparkSession, lived: Path) -> None:
    profiles = read_profiles(spark, checkpoint=str(lived / "state")).collect()
    rows = released_in(lived, spark)
    counted = rows.group_by("user", "category").len()
    assert {(row.user, row.category): row.n for row in profiles} == {(a, b): n for a, b, n in counted.rows()}
    category = Classifier().classify(rows["query"]).names
    assert category.to_list() == rows["category"].to_list()


def test_a_batch_whose_commit_is_lost_is_done_again_and_gives_the_same_rows(spark: SparkSession, lived: Path) -> None:
    last = last_commit(lived)
    before = released_in(lived, spark)
    waited = waiting_in(lived, spark)
    commits, sink_log = Path(inside(str(lived / "state"), POOLS)) / "commits", lived / "out" / "_spark_metadata"
    # First as after a crash between the sink and the commit; then the sink has lost the batch as well, and its rows are
    # the ones that were made again.
    for lost in ([commits], [commits, sink_log]):
        files = {path.name for path in (lived / "out").rglob("*.parquet")}
        for log in lost:
            for name in (str(last), f"{last}.compact"):
                (log / name).unlink(missing_ok=True)
                (log / f".{name}.crc").unlink(missing_ok=True)
        assert last_commit(lived) == last - 1
        SWAP.start(spark, **places_in(lived, form="parquet"), available_now=True).awaitTermination()
        after = released_in(lived, spark)
        assert last_commit(lived) == last
        assert after.sort(after.columns).equals(before.sort(before.columns))
        assert tuple(map(sorted, waiting_in(lived, spark))) == tuple(map(sorted, waited))
        was_made_again = bool({path.name for path in (lived / "out").rglob("*.parquet")} - files)
        assert was_made_again == (sink_log in lost)
    assert before.filter(pl.col("batch") == last).height > 20


def write_lines(path: Path, *events: Mapping[str, object] | str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in events))


def test_a_python_process_that_starts_too_slowly_is_started_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Stands for one that needs more than the ten seconds which Spark waits for it.
    python, seen = tmp_path / "python", tmp_path / "seen"
    first = f'case "$*" in *streaming*) [ -e "{seen}" ] || {{ touch "{seen}"; exec sleep 11; }};; esac'
    python.write_text(f'#!/bin/sh\n{first}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    write_lines(tmp_path / "in" / "1.jsonl", {"user": "ann", "query": "tennis racket"})
    assert SwapStream(k=2, key=KEY).run(spark, **places_in(tmp_path)) == StreamCounts(n_read=1, n_waiting=1)
    assert seen.exists()


def test_one_user_alone_gets_nothing_and_two_get_the_queries_of_each_other(spark: SparkSession, tmp_path: Path) -> None:
    swap = SwapStream(k=2, key=KEY, time="day", window=None)
    where = places_in(tmp_path)
    ann, bob = keyed(pl.Series(["ann", "bob"]), key=KEY)
    alone = [{"user": "ann", "query": f"tennis racket {i}", "time": f"2026-03-0{i} 07:00:00"} for i in (1, 2, 3)]
    write_lines(tmp_path / "in" / "1.jsonl", *alone)
    (tmp_path / "state").mkdir(mode=0o755)
    assert swap.run(spark, **where) == StreamCounts(n_read=3, n_waiting=3)
    # Ann's own query asked again, in other letters, helps nobody; Bob's lets one go.
    again = {"user": "ann", "query": "Tennis RACKET 1!", "time": "2026-03-04 07:00:00"}
    write_lines(tmp_path / "in" / "2.jsonl", again)
    assert swap.run(spark, **where) == StreamCounts(n_read=4, n_repeated=1, n_waiting=3)
    others = [{"user": "bob", "query": f"tennis racket {i}", "time": "2026-03-05 07:00:00"} for i in range(20, 32)]
    write_lines(tmp_path / "in" / "3.jsonl", *others)
    counts = run_until_stopped(spark, swap, where)
    assert counts.adds_up
    rows = spark.read.json(where["sink"]).collect()
    assert len(rows) == counts.n_released > 2
    for row in rows:
        assert row.user == (bob if row.query.rstrip("!")[-2:] in (" 1", " 2", " 3") else ann)
        # The day of the release, which is no day of the events.
        assert not row.time.startswith("2026-03-0")
        assert row.time.endswith("00:00:00")
    assert {row.user for row in rows} == {ann, bob}
    refused_then(spark, swap, where)


def run_until_stopped(spark: SparkSession, swap: SwapStream, where: Places) -> StreamCounts:
    """Run a stream that waits for further files, and stop it when it has read the one that is there."""
    folder = Path(where["checkpoint"]).parent
    goal = last_commit(folder) + 1
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(lambda: swap.run(spark, **where, available_now=False))
        until(lambda: last_commit(folder) >= goal or run.done())
        for query in spark.streams.active:
            if query.name == "queryveil swap":
                query.stop()
        return run.result()


def test_an_interrupted_run_leaves_no_query_behind_and_the_next_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    where = places_in(tmp_path)
    events = [{"user": f"u{i % 9}", "query": f"tennis racket {i}", "time": "2026-03-01 07:00:00"} for i in range(60)]
    for number in range(6):
        write_lines(tmp_path / "in" / f"{number}.jsonl", *events[10 * number :][:10])

    def interrupt() -> None:
        until(lambda: last_commit(tmp_path) >= 0)
        os.kill(os.getpid(), signal.SIGINT)

    swap = SwapStream(k=3, key=KEY)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(interrupt)
            with pytest.raises(KeyboardInterrupt):
                swap.run(spark, **where)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not spark.streams.active
    assert last_commit(tmp_path) < 5
    counts = swap.run(spark, **where)
    assert counts.adds_up
    assert (counts.n_read, spark.read.json(where["sink"]).count()) == (60, counts.n_released)


def elsewhere(where: Places, **changed: str) -> Places:
    other: Any = where | changed
    there: Places = other
    return there


def refused_then(spark: SparkSession, swap: SwapStream, where: Places) -> None:
    """Other settings on the checkpoint of a stream, and a sink that has another release, are refused."""
    with pytest.raises(BadParameter, match=r"^k must be 2 as when this stream began \(or name another checkpoint\)"):
        replace(swap, k=3).run(spark, **where)
    with pytest.raises(BadParameter, match=r"^key must be the one this stream began with"):
        replace(swap, key=b"another secret of 32 bytes, or so").run(spark, **where)
    with pytest.raises(BadParameter, match=r"^secret must be the one in the checkpoint"):
        replace(swap, secret=b"another secret of 32 bytes, or so").run(spark, **where)
    with pytest.raises(BadParameter, match=r"^sink must be a new folder"):
        swap.run(spark, **elsewhere(where, checkpoint=where["checkpoint"] + "2"))
    with pytest.raises(BadFile):
        swap.run(spark, **elsewhere(where, source=where["source"] + "2"))
    with pytest.raises(BadParameter, match=r"^sink must be a place that the source does not read"):
        swap.run(spark, **elsewhere(where, sink=where["source"]))
    state = Path(where["checkpoint"])
    assert state.stat().st_mode & 0o077 == 0
    assert len((state / "queryveil.secret").read_bytes()) == 32


def test_odd_events_are_counted_and_kept_columns_travel_with_their_query(spark: SparkSession, tmp_path: Path) -> None:
    where = places_in(tmp_path)
    odd: list[Mapping[str, object] | str] = [
        {"query": "tennis racket"}, {"user": None, "query": "tennis racket"}, {"user": " ", "query": "tennis racket"},
        "no JSON at all", {"user": "ann", "query": ""}, {"user": "ann"}, {"user": "ann", "query": "219-09-9999"},
        {"user": "ann", "query": "tennis " * 1000}, {"user": "u" * 5000, "query": "tennis racket"},
        {"user": "ann", "query": "1999"}, {"user": 7, "query": "tennis racket seven", "time": "yesterday"},
    ]  # fmt: skip
    plain = [
        {"user": f"u{i % 9}", "query": f"tennis racket {i}", "time": "2026-03-01 07:00:00", "rank": i}
        for i in range(60)
    ]
    write_lines(tmp_path / "in" / "1.jsonl", *odd, *plain)
    swap = SwapStream(k=3, key=KEY, unclassified="drop", keep=("rank",), time="drop", max_pool=3)
    counts = swap.run(spark, **where)
    assert counts.adds_up
    left_out = (counts.n_bad, counts.n_empty, counts.n_emptied, counts.n_unclassified_dropped)
    assert (counts.n_read, left_out) == (71, (4, 2, 1, 1))
    assert counts.n_suppressed >= 2
    assert counts.n_released > 20
    rows = spark.read.json(where["sink"])
    assert rows.count() == counts.n_released
    assert "time" not in rows.columns
    assert all(row.rank == row.query.split()[-1] for row in rows.collect() if row.rank is not None)
    assert rows.where("rank IS NOT NULL").count() > 15


def test_files_of_parquet_may_be_deleted_when_they_are_read(spark: SparkSession, tmp_path: Path) -> None:
    swap, where = SwapStream(k=2, key=KEY), places_in(tmp_path, form="parquet")
    (tmp_path / "in").mkdir()
    with pytest.raises(BadFile, match=r"no whole Parquet file yet .*; put one there"):
        swap.run(spark, **where)
    file = tmp_path / "in" / "1.parquet"
    pl.DataFrame({"user": ["ann", "bob"], "query": ["tennis racket", "tennis balls"]}).write_parquet(file)
    assert swap.run(spark, **where).n_read == 2
    file.unlink()
    assert swap.run(spark, **where).n_read == 2
    pl.DataFrame({"user": ["eve"], "query": ["tennis court"]}).write_parquet(tmp_path / "in" / "2.parquet")
    assert swap.run(spark, **where).n_read == 3


def test_no_secret_stands_in_a_plan(spark: SparkSession, tmp_path: Path) -> None:
    secret = b"kestrel lantern mulberry 0123456"
    events = spark.readStream.schema("user STRING, query STRING").json(str(tmp_path))
    released = SwapStream(key=KEY, secret=secret).release(events)
    plan = released._jdf.queryExecution().toString()
    for hidden in (KEY, secret):
        assert hidden.decode() not in plan
        assert hidden.hex() not in plan.lower()
    with pytest.raises(BadParameter, match=r"^secret must be"):
        SwapStream(key=KEY).release(events)

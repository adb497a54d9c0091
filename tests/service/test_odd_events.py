"""Events that nobody expects: columns called as ours are inside, and users and queries longer than any search."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from tests.support.streams import ListSink, ListSource, adds_up, keyed_settings, small_tables

from queryveil.release import ColumnPolicy, Ids
from queryveil.service.lines import MAX_EVENT_BYTES
from queryveil.service.pipeline.service import Service
from queryveil.service.stores.sqlite import SqliteStore


def line(**event: object) -> bytes:
    return json.dumps(event).encode() + b"\n"


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("name", ["category", "arrival", "_text", "_age", "_issuer", "pool"])
def test_a_column_that_is_kept_may_have_any_name(tmp_path: Path, name: str, form: str) -> None:
    if form == "csv":
        rows = [f"u{i % 5},tennis racket {i},kept{i}\n".encode() for i in range(40)]
        batches = [f"user,query,{name}\n".encode() + b"".join(rows[:20]), b"".join(rows[20:])]
    else:
        rows = [line(user=f"u{i % 5}", query=f"tennis racket {i}", **{name: f"kept{i}"}) for i in range(40)]
        batches = [b"".join(rows[:20]), b"".join(rows[20:])]
    settings = keyed_settings(tables=small_tables(tmp_path), columns=ColumnPolicy(ids=Ids.KEEP, keep=(name,)))
    for n_batches in (1, 2):
        # Each in a run of its own, so that what is kept goes through the store too.
        source, sink = ListSource(batches[:n_batches], is_endless=True), ListSink()
        service = Service(settings, source=source, sink=sink, store=SqliteStore(tmp_path / "state.db"))
        thread = threading.Thread(target=service.run)
        thread.start()
        while service.stats().n_read < 20 * n_batches and thread.is_alive():
            thread.join(0.01)
        service.stop()
        thread.join()
        released = [each for each in sink.lines if "tennis" in each]
        assert released
        for each in released:
            row = (
                json.loads(each)
                if form == "jsonl"
                else dict(zip(["user", "query", name], each.split(","), strict=True))
            )
            assert row[name] == "kept" + row["query"].rpartition(" ")[2]


def test_events_too_long_for_a_pool_are_suppressed_and_counted(tmp_path: Path) -> None:
    giants = [line(user="u" * MAX_EVENT_BYTES, query="tennis racket"), line(user="u0", query="tennis " * 1000)]
    others = [line(user=f"u{i % 5}", query=f"tennis racket {i}") for i in range(40)]
    sink = ListSink()
    service = Service(
        keyed_settings(tables=small_tables(tmp_path), drain="release"),
        source=ListSource([b"".join([*giants, *others])]),
        sink=sink,
        store=SqliteStore(tmp_path / "state.db"),
    )
    stats = service.run()
    assert adds_up(stats)
    assert (stats.n_read, stats.n_bad) == (42, 0)
    assert stats.n_suppressed >= 2
    assert stats.n_released > 30
    assert max(map(len, sink.lines)) < MAX_EVENT_BYTES

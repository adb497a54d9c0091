"""The service from a source to a sink: what it reads is all accounted for, whatever happens on the way."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.streams import KEY, ListSink, ListSource, adds_up, event_lines, keyed_settings, small_tables
from tests.support.waiting import until

from queryveil.errors import BadFile, BadParameter, MissingColumn, Unreachable
from queryveil.service.pipeline.service import Service
from queryveil.service.ports import Commit, Saved
from queryveil.service.settings import Tables
from queryveil.service.stores import MemoryStore
from queryveil.service.stores.profiles import ProfileDatabase
from queryveil.service.stores.sqlite import SqliteStore


def batches_of(lines: list[str], *, size: int) -> list[bytes]:
    return ["".join(f"{line}\n" for line in lines[i : i + size]).encode() for i in range(0, len(lines), size)]


def queries_in(lines: list[str]) -> list[str]:
    return [line.split("\t")[1] for line in lines]


def test_everything_read_is_released_or_accounted_for_and_nothing_comes_twice() -> None:
    lines, sink = event_lines(300, seed=1), ListSink()
    source = ListSource(batches_of(lines, size=32))
    stats = Service(keyed_settings(), source=source, sink=sink, store=MemoryStore()).run()
    assert adds_up(stats)
    assert (stats.n_read, stats.n_waiting, stats.is_finished) == (300, 0, True)
    released = queries_in(sink.lines)
    assert len(released) == stats.n_released == stats.n_delivered == sum(stats.released.values())
    assert len(set(released)) == len(released) > 250
    assert set(released) <= set(queries_in(lines))
    assert [position for position, _ in source.acknowledged] == [str(i + 1) for i in range(10)]


def test_users_leave_under_keyed_names_and_never_with_a_query_of_their_own() -> None:
    lines, sink = event_lines(300, seed=2), ListSink()
    Service(keyed_settings(), source=ListSource(batches_of(lines, size=50)), sink=sink, store=MemoryStore()).run()
    asked = {query: user for user, query, *_ in (line.split("\t") for line in lines)}
    renamed = keyed_names(set(asked.values()))
    for user, query, *_ in (line.split("\t") for line in sink.lines):
        assert user in renamed.values()
        assert user != renamed[asked[query]]


def test_ids_change_with_the_window_of_release_and_profiles_stay_those_of_people(tmp_path: Path) -> None:
    lines, sink, path = event_lines(300, seed=2), ListSink(), tmp_path / "live.db"
    settings = keyed_settings(window="1d")
    source = ListSource(batches_of(lines, size=50))
    stats = Service(settings, source=source, sink=sink, store=SqliteStore(path)).run()
    today = int(time.time()) // 86_400
    assert today - 1 <= stats.first_window <= stats.last_window <= today
    names = keyed_names({line.split("\t")[0] for line in lines})
    ids = {day: keyed_names({f"{name}\0{day}" for name in names.values()}) for day in (today - 1, today)}
    known = {name for of_day in ids.values() for name in of_day.values()}
    released = [line.split("\t")[0] for line in sink.lines]
    assert set(released) <= known
    assert not set(released) & set(names.values())
    assert set(ProfileDatabase(path).table()["user"]) <= set(names.values())
    with pytest.raises(BadParameter, match="window must be 1d as when this stream began"):
        Service(keyed_settings(window="7d"), source=ListSource([]), sink=ListSink(), store=SqliteStore(path)).run()


def keyed_names(users: set[str]) -> dict[str, str]:
    return {user: hmac.digest(KEY, user.encode(), hashlib.sha256).hex()[:32] for user in users}


def test_bad_lines_are_counted_named_by_number_and_never_shown() -> None:
    lines = event_lines(60, seed=3)
    lines[4], lines[20] = "kestrel lantern", "member1\tkestrel\tnot a time\t\t"
    told: list[str] = []
    source, sink = ListSource(batches_of(lines, size=16)), ListSink()
    stats = Service(keyed_settings(), source=source, sink=sink, store=MemoryStore(), tell=told.append).run()
    assert adds_up(stats)
    assert (stats.n_read, stats.n_bad) == (60, 2)
    assert source.acknowledged[:2] == [("1", [5]), ("2", [5])]
    assert told == [
        "line 5 of this run cannot be read and is left out",
        "line 21 of this run cannot be read and is left out",
    ]


def test_only_the_first_bad_lines_are_named() -> None:
    lines = event_lines(40, seed=3)
    told: list[str] = []
    source = ListSource(batches_of(lines[:20] + ["mulberry"] * 30, size=10))
    stats = Service(keyed_settings(), source=source, sink=ListSink(), store=MemoryStore(), tell=told.append).run()
    assert stats.n_bad == 30
    assert len(told) == 11
    assert told[-1] == "further lines that cannot be read are only counted"


def test_empty_queries_and_queries_of_identifiers_are_counted_apart() -> None:
    lines = event_lines(40, seed=4)
    lines[3], lines[5] = "member1\t\t2006-03-01 07:00:00\t\t", "member2\t219-09-9999\t2006-03-01 07:00:00\t\t"
    stats = Service(
        keyed_settings(), source=ListSource(batches_of(lines, size=40)), sink=ListSink(), store=MemoryStore()
    ).run()
    assert adds_up(stats)
    assert (stats.n_empty, stats.n_emptied) == (1, 1)
    assert sum(stats.identifiers.values()) == 1


def test_a_stream_that_is_stopped_goes_on_where_it_stood(tmp_path: Path) -> None:
    lines = event_lines(200, seed=5)
    batches = batches_of(lines, size=20)
    first_sink, second_sink = ListSink(), ListSink()
    first = Service(
        keyed_settings(), source=ListSource(batches[:5], is_endless=True), sink=first_sink,
        store=SqliteStore(tmp_path / "state.db"),
    )  # fmt: skip
    thread = threading.Thread(target=first.run)
    thread.start()
    until(lambda: first.stats().n_read == 100)
    first.stop()
    thread.join()
    halfway = first.stats()
    assert adds_up(halfway)
    assert halfway.n_waiting > 0
    second = Service(
        keyed_settings(), source=ListSource(batches), sink=second_sink, store=SqliteStore(tmp_path / "state.db")
    )
    stats = second.run()
    assert adds_up(stats)
    assert (stats.n_read, stats.n_waiting) == (200, 0)
    released = queries_in(first_sink.lines + second_sink.lines)
    assert len(released) == len(set(released)) == stats.n_released
    assert min(second_sink.received) == max(first_sink.received) + 1


def test_other_settings_on_the_same_store_are_refused(tmp_path: Path) -> None:
    batches = batches_of(event_lines(50, seed=6), size=20)
    Service(keyed_settings(), source=ListSource(batches), sink=ListSink(), store=SqliteStore(tmp_path / "s.db")).run()
    for changed, match in (({"k": 4}, "k must be 3"), ({"unclassified": "drop"}, "unclassified must be pool")):
        other = Service(
            keyed_settings(**changed), source=ListSource(batches), sink=ListSink(), store=SqliteStore(tmp_path / "s.db")
        )
        with pytest.raises(BadParameter, match=match):
            other.run()


def test_draining_releases_what_the_promise_still_allows() -> None:
    batches = batches_of(event_lines(200, seed=7), size=50)
    kept = {}
    for drain in ("suppress", "release"):
        stats = Service(
            keyed_settings(drain=drain, k=8, l=2), source=ListSource(batches), sink=ListSink(), store=MemoryStore()
        ).run()
        assert adds_up(stats)
        kept[drain] = stats.n_suppressed
    assert kept["suppress"] > 0
    assert kept["release"] <= kept["suppress"]


def test_while_the_sink_takes_nothing_no_more_is_read_than_the_outbox_holds() -> None:
    batches = batches_of(event_lines(2000, seed=8), size=50)
    sink = ListSink()
    sink.allowed.clear()
    source = ListSource(batches)
    service = Service(keyed_settings(max_outbox_bytes=20_000), source=source, sink=sink, store=MemoryStore())
    thread = threading.Thread(target=service.run)
    thread.start()
    until(lambda: service.stats().n_outbox_bytes > 20_000)
    time.sleep(0.5)
    seen = service.stats()
    assert source.n_taken < len(batches)
    assert seen.n_outbox_bytes < 20_000 + 50 * 100
    assert seen.n_delivered == 0
    sink.allowed.set()
    thread.join()
    assert adds_up(service.stats())
    assert len(sink.lines) == service.stats().n_released


def test_a_sink_that_fails_for_now_is_tried_again_and_said_to_be_away() -> None:
    told: list[str] = []
    sink = ListSink(fails=[Unreachable("the shelf", "nobody there"), OSError(28, "kestrel"), OSError(28, "kestrel")])
    source = ListSource(batches_of(event_lines(100, seed=9), size=20))
    stats = Service(keyed_settings(), source=source, sink=sink, store=MemoryStore(), tell=told.append).run()
    assert told == ["the shelf: nobody there; trying again", "the sink: no space left on device; trying again"]
    assert len(sink.lines) == stats.n_released


def test_patience_ends_in_one_line_and_the_next_run_goes_on(tmp_path: Path) -> None:
    batches, store = batches_of(event_lines(100, seed=10), size=20), tmp_path / "state.db"
    away = ListSink(fails=[OSError(28, "kestrel")] * 1000)
    first = Service(keyed_settings(patience=0.5), source=ListSource(batches), sink=away, store=SqliteStore(store))
    with pytest.raises(Unreachable, match=r"^gave up: the sink: no space left on device; run the same command again"):
        first.run()
    sink = ListSink()
    stats = Service(keyed_settings(), source=ListSource(batches), sink=sink, store=SqliteStore(store)).run()
    assert adds_up(stats)
    assert len(sink.lines) == stats.n_released == len(set(queries_in(sink.lines)))


class FailingStore(SqliteStore):
    """A store whose disk is full every second time."""

    n_tried = 0

    def commit(self, commit: Commit) -> None:
        self.n_tried += 1
        if self.n_tried % 2:
            raise OSError(28, "kestrel")
        super().commit(commit)


def test_a_store_that_fails_for_now_gets_the_same_commit_again(tmp_path: Path) -> None:
    sink = ListSink()
    source = ListSource(batches_of(event_lines(60, seed=11), size=20))
    stats = Service(keyed_settings(), source=source, sink=sink, store=FailingStore(tmp_path / "s.db")).run()
    assert adds_up(stats)
    assert (stats.n_read, len(sink.lines)) == (60, stats.n_released)


class ClosedStore(MemoryStore):
    """A store that does not answer."""

    def open(self, *, settings: str) -> Saved:
        raise Unreachable("the vault", "it is shut")


@pytest.mark.slow
def test_a_service_is_not_ready_while_its_store_is_away_and_says_why() -> None:
    service = Service(keyed_settings(patience=None), source=ListSource([]), sink=ListSink(), store=ClosedStore())
    assert (service.stats().is_ready, service.stats().why_not) == (False, "starting")
    failed: list[Exception] = []

    def run() -> None:
        try:
            service.run()
        except Unreachable as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: service.stats().why_not == "the vault: it is shut")
    service.stop()
    thread.join()
    assert str(failed[0]).startswith("gave up: the vault: it is shut")


def test_ready_means_that_everything_works() -> None:
    service = Service(keyed_settings(), source=ListSource([], is_endless=True), sink=ListSink(), store=MemoryStore())
    thread = threading.Thread(target=service.run)
    thread.start()
    until(lambda: service.stats().is_ready)
    assert service.stats().why_not == ""
    service.stop()
    thread.join()
    assert (service.stats().is_ready, service.stats().why_not) == (False, "stopping")


def test_a_file_that_is_no_log_is_refused_but_garbage_on_a_wire_is_not() -> None:
    garbage = b"kestrel\nlantern\n"
    with pytest.raises(BadFile, match="its format is not clear"):
        Service(keyed_settings(), source=ListSource([garbage]), sink=ListSink(), store=MemoryStore()).run()
    with pytest.raises(MissingColumn, match="no column for the user"):
        Service(keyed_settings(), source=ListSource([b'{"a": 1}\n']), sink=ListSink(), store=MemoryStore()).run()
    objects = [b'{"user": "m%d", "query": "tennis racket %s"}\n' % (i, b"abcdefghij"[i : i + 1]) for i in range(10)]
    wire = keyed_settings(format="jsonl", is_finite=False)
    source = ListSource([garbage, b'{"a": 1}\n', *objects])
    sink = ListSink()
    stats = Service(wire, source=source, sink=sink, store=MemoryStore()).run()
    assert adds_up(stats)
    assert (stats.n_read, stats.n_bad) == (13, 3)
    assert len(sink.lines) == stats.n_released > 0


def test_profiles_are_those_of_the_released_rows(tmp_path: Path) -> None:
    sink = ListSink()
    source = ListSource(batches_of(event_lines(300, seed=12), size=40))
    stats = Service(keyed_settings(), source=source, sink=sink, store=SqliteStore(tmp_path / "s.db")).run()
    with sqlite3.connect(tmp_path / "s.db") as connection:
        rows = connection.execute("SELECT user, category, n FROM profiles").fetchall()
        pools = connection.execute("SELECT count(*) FROM outbox").fetchone()
    connection.close()
    assert pools == (0,)
    by_user: dict[str, int] = {}
    for user, _, n in rows:
        by_user[user] = by_user.get(user, 0) + n
    released = [line.split("\t")[0] for line in sink.lines]
    assert by_user == {user: released.count(user) for user in set(released)}
    by_category: dict[str, int] = {}
    for _, category, n in rows:
        by_category[category] = by_category.get(category, 0) + n
    assert by_category == dict(stats.released)


@pytest.mark.slow
def test_several_processes_give_the_same_counts_as_one(tmp_path: Path) -> None:
    tables = small_tables(tmp_path)
    lines = event_lines(3000, seed=13)
    lines[2222] = "kestrel"
    batches = batches_of(lines, size=1500)
    seen = []
    for workers in (1, 2):
        source, sink = ListSource(batches), ListSink()
        settings = keyed_settings(workers=workers, tables=tables)
        stats = Service(settings, source=source, sink=sink, store=MemoryStore()).run()
        assert adds_up(stats)
        assert [bad for _, bad in source.acknowledged] == [[], [723]]
        seen.append((stats.n_read, stats.n_bad, stats.n_released + stats.n_suppressed, stats.identifiers))
    assert seen[0] == seen[1]


@pytest.mark.slow
def test_a_stop_does_not_wait_for_ever_for_a_sink_and_the_next_run_hands_over_the_rest(tmp_path: Path) -> None:
    batches, store = batches_of(event_lines(100, seed=14), size=20), tmp_path / "state.db"
    stuck = ListSink()
    stuck.allowed.clear()
    first = Service(keyed_settings(), source=ListSource(batches, is_endless=True), sink=stuck, store=SqliteStore(store))
    thread = threading.Thread(target=first.run)
    thread.start()
    until(lambda: first.stats().n_read == 100)
    first.stop()
    thread.join()
    halfway = first.stats()
    assert (halfway.n_delivered, stuck.lines) == (0, [])
    assert halfway.n_outbox_rows == halfway.n_released > 0
    sink = ListSink()
    stats = Service(keyed_settings(), source=ListSource(batches), sink=sink, store=SqliteStore(store)).run()
    assert adds_up(stats)
    assert len(sink.lines) == len(set(queries_in(sink.lines))) == stats.n_released == halfway.n_released


class _StoreThatGoesAway(SqliteStore):
    """A store whose memory of who asked what cannot be read to its end at first."""

    n_failures = 1

    def open(self, *, settings: str) -> Saved:
        return replace(saved, issued=self._cut(saved)) if (saved := super().open(settings=settings)).number else saved

    def _cut(self, saved: Saved) -> Iterator[tuple[int, bytes]]:
        if self.n_failures:
            self.n_failures -= 1
            raise Unreachable("the store", "the connection was lost")
        yield from saved.issued


def test_a_store_that_goes_away_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    batches, told = batches_of(event_lines(100, seed=15), size=20), list[str]()
    stats = []
    for n in (3, 5):
        store, source = _StoreThatGoesAway(tmp_path / "state.db"), ListSource(batches[:n])
        service = Service(keyed_settings(), source=source, sink=ListSink(), store=store, tell=told.append)
        stats.append(service.run())
    assert told == ["the store: the connection was lost; trying again"]
    assert [each.n_read for each in stats] == [60, 100]
    assert all(map(adds_up, stats))


@pytest.mark.slow
def test_a_quiet_stream_leaves_no_raw_query_behind_that_was_released(tmp_path: Path) -> None:
    lines, sink = event_lines(100, seed=16), ListSink()
    source = ListSource(batches_of(lines, size=20), is_endless=True)
    service = Service(keyed_settings(), source=source, sink=sink, store=SqliteStore(tmp_path / "state.db"))
    thread = threading.Thread(target=service.run)
    thread.start()

    def is_clean() -> bool:
        files = b"".join(path.read_bytes() for path in tmp_path.glob("state.db*"))
        return not any(query.encode() in files for query in queries_in(sink.lines))

    until(lambda: service.stats().n_read == 100 and service.stats().n_outbox_rows == 0)
    until(is_clean)
    service.stop()
    thread.join()
    assert sink.lines


def test_own_tables_are_read_and_belong_to_the_state(tmp_path: Path) -> None:
    own = keyed_settings(tables=Tables(categories=tmp_path / "nosuch.csv"))
    assert "classifier=evidence with own tables" in own.fingerprint(source="a", sink="b").splitlines()
    assert "classifier=evidence" in keyed_settings().fingerprint(source="a", sink="b").splitlines()
    with pytest.raises(BadFile, match=r"nosuch\.csv"):
        own.make_classifier()

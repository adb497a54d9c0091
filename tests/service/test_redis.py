"""A real Redis server between a source and a sink."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.redis_server import IS_INSTALLED, RedisServer
from tests.support.waiting import patience, until

from queryveil.errors import BadInput, Unreachable
from queryveil.service.connectors.redis import RedisSink, RedisSource
from queryveil.service.ports import Outgoing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_INSTALLED, reason="redis-server is not installed")]

RELAY = Path(__file__).with_name("relay.py")
DELIVERED = "queryveil:{released}:delivered"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    folder = tmp_path / "redis"
    folder.mkdir()
    with RedisServer(folder) as server:
        yield server


def fill(server: RedisServer, *, start: int, stop: int) -> None:
    with server.client() as client, client.pipeline(transaction=False) as steps:
        for number in range(start, stop):
            steps.xadd("queries", {"data": f"line {number}"})
        steps.execute()


def released(server: RedisServer) -> list[bytes]:
    with server.client() as client:
        return [fields[b"data"] for _, fields in client.xrange("released")]


def numbered(stop: int) -> list[bytes]:
    return [b"line %d" % number for number in range(stop)]


def source_at(server: RedisServer, *, position: str | None = None, **options: str | int) -> RedisSource:
    source = RedisSource(server.url(**options))
    source.open(position=position, keys=())
    return source


def sink_at(server: RedisServer, *, delivered: int = 0, **options: str | int) -> RedisSink:
    sink = RedisSink(server.url(**options))
    sink.open(delivered=delivered, n_bytes=0)
    return sink


def block(number: int, *, data: bytes | None = None) -> Outgoing:
    lines = b"block %d a\nblock %d b\n" % (number, number) if data is None else data
    return Outgoing(number=number, offset=0, data=lines, n_rows=lines.count(b"\n"))


def run_relay(server: RedisServer, state: Path, *dies_at: str) -> int:
    words = [server.url(stream="queries"), server.url(stream="released"), str(state), "1400", *dies_at]
    return subprocess.run([sys.executable, str(RELAY), *words], check=False, timeout=patience()).returncode


def test_entries_come_as_lines_and_an_entry_of_fields_as_a_json_object(server: RedisServer) -> None:
    with server.client() as client:
        client.xadd("queries", {"data": '{"user":"u1","query":"red wine"}'})
        client.xadd("queries", {"data": "two\nlines\n"})
        client.xadd("queries", {"user": "u2", "query": 'say "cheese"\nplease'})
        client.xadd("queries", {"extra": "x", "data": "with a further field"})
    source = source_at(server)
    batch = source.take(timeout=patience())
    assert batch is not None
    assert [line for line in batch.data.splitlines() if line] == [
        b'{"user":"u1","query":"red wine"}',
        b"two",
        b"lines",
        rb'{"user":"u2","query":"say \"cheese\"\nplease"}',
        b"with a further field",
    ]
    assert source.take(timeout=0.05) is None
    source.close()


def test_garbage_is_passed_on_line_by_line_and_stops_nothing(server: RedisServer) -> None:
    with server.client() as client:
        client.xadd("queries", {b"\xff\xfe": b"\x00\xff", "": ""})
        client.xadd("queries", {"data": b"\xff\x00\xfe"})
        client.xadd("queries", {"data": ""})
        client.xadd("queries", {"data": "fine"})
    source = source_at(server)
    batch = source.take(timeout=patience())
    assert batch is not None
    lines = batch.data.split(b"\n")
    assert lines[0].startswith(b"{")
    assert lines[1:] == [b"\xff\x00\xfe", b"", b"fine", b""]
    source.close()


def test_what_was_taken_and_not_committed_comes_again(server: RedisServer) -> None:
    fill(server, start=0, stop=5)
    first = source_at(server)
    batch = first.take(timeout=patience())
    first.close()
    again = source_at(server)
    assert batch is not None
    repeated = again.take(timeout=patience())
    assert repeated is not None
    assert repeated.data == batch.data
    again.acknowledge(repeated, bad_lines=())
    again.close()
    with server.client() as client:
        assert client.xpending("queries", "queryveil")["pending"] == 0


def test_what_was_committed_and_not_acknowledged_does_not_come_again(server: RedisServer) -> None:
    fill(server, start=0, stop=5)
    first = source_at(server)
    batch = first.take(timeout=patience())
    first.close()
    assert batch is not None
    fill(server, start=5, stop=6)
    again = source_at(server, position=batch.position)
    later = again.take(timeout=patience())
    assert later is not None
    assert later.data == b"line 5\n"
    again.acknowledge(later, bad_lines=())
    again.close()
    with server.client() as client:
        assert client.xpending("queries", "queryveil")["pending"] == 0


def test_a_group_that_was_deleted_is_made_again_behind_the_position(server: RedisServer) -> None:
    fill(server, start=0, stop=5)
    source = source_at(server)
    batch = source.take(timeout=patience())
    assert batch is not None
    source.acknowledge(batch, bad_lines=())
    with server.client() as client:
        client.xgroup_destroy("queries", "queryveil")
    fill(server, start=5, stop=7)
    with pytest.raises(Unreachable, match="made again"):
        source.take(timeout=patience())
    later = source.take(timeout=patience())
    assert later is not None
    assert later.data == b"line 5\nline 6\n"
    source.close()


def test_a_server_that_was_set_back_gives_nothing_twice_and_numbers_new_entries_behind_the_position(
    server: RedisServer,
) -> None:
    fill(server, start=0, stop=3)
    source = source_at(server)
    batch = source.take(timeout=patience())
    assert batch is not None
    source.close()
    far = "99999999999999-7"
    with server.client() as client:
        client.xgroup_setid("queries", "queryveil", "0")
        again = source_at(server, position=far)
        client.xadd("queries", {"data": "new"})
    later = again.take(timeout=patience())
    assert later is not None
    assert later.data == b"new\n"
    assert later.position == "99999999999999-8"
    again.close()


def test_entries_stay_for_other_groups_unless_they_are_to_be_deleted(server: RedisServer) -> None:
    fill(server, start=0, stop=3)
    for delete, n_left in ((0, 3), (1, 0)):
        source = source_at(server, group=f"group{delete}", delete=delete)
        batch = source.take(timeout=patience())
        assert batch is not None
        assert batch.data == b"line 0\nline 1\nline 2\n"
        source.acknowledge(batch, bad_lines=())
        source.close()
        with server.client() as client:
            assert client.xlen("queries") == n_left


def test_entries_to_be_deleted_are_gone_also_after_a_crash_before_that(server: RedisServer) -> None:
    fill(server, start=0, stop=3)
    first = source_at(server, delete=1)
    batch = first.take(timeout=patience())
    first.close()
    assert batch is not None
    with server.client() as client:
        client.xdel("queries", batch.position)
        again = source_at(server, position=batch.position, delete=1)
        assert again.take(timeout=0.01) is None
        again.close()
        assert client.xlen("queries") == 0
        assert client.xpending("queries", "queryveil")["pending"] == 0


def test_two_consumers_of_a_group_share_the_entries(server: RedisServer) -> None:
    fill(server, start=0, stop=700)
    sources = [source_at(server, consumer=name) for name in ("a", "b")]
    lines: list[bytes] = []
    for source in sources:
        batch = source.take(timeout=patience())
        assert batch is not None
        lines += batch.data.splitlines()
        source.close()
    assert sorted(lines) == sorted(numbered(700))


def test_a_batch_stays_near_a_megabyte_however_long_the_lines_are(server: RedisServer) -> None:
    with server.client() as client:
        for _ in range(600):
            client.xadd("queries", {"data": "x" * 20_000})
    source = source_at(server)
    sizes = []
    while (batch := source.take(timeout=0.05)) is not None:
        sizes.append(len(batch.data))
    source.close()
    assert sum(sizes) == 600 * 20_001
    assert max(sizes[1:]) <= 1 << 20


def test_a_block_is_delivered_once_however_often_it_is_offered(server: RedisServer) -> None:
    sink = sink_at(server)
    for number in (1, 1, 2, 1, 2):
        sink.deliver(block(number))
    sink.close()
    sink = sink_at(server, delivered=1)
    sink.deliver(block(2))
    sink.deliver(block(3))
    sink.close()
    assert released(server) == [b"block %d %s" % (number, letter) for number in (1, 2, 3) for letter in (b"a", b"b")]


def test_a_stream_with_another_release_is_not_taken_for_ours(server: RedisServer) -> None:
    sink = sink_at(server)
    sink.deliver(block(1))
    sink.deliver(block(2))
    with pytest.raises(BadInput, match="already holds another release"):
        sink.deliver(block(1, data=b"something else\n"))
    sink.close()
    fresh = RedisSink(server.url())
    fresh.check_new()
    with pytest.raises(BadInput, match="already holds another release"):
        fresh.open(delivered=0, n_bytes=0)
    with server.client() as client:
        client.delete(DELIVERED)
    fresh.open(delivered=0, n_bytes=0)
    sink = fresh
    sink.deliver(block(1, data=b"something else\n"))
    sink.close()
    assert released(server)[-1] == b"something else"


def test_a_server_that_has_lost_blocks_is_an_error_that_says_the_way_out(server: RedisServer) -> None:
    sink = sink_at(server)
    for number in (1, 2, 3):
        sink.deliver(block(number))
    with server.client() as client:
        client.flushall()
        with pytest.raises(BadInput, match=r"lacks blocks 1 to 3.*SET queryveil:\{released\}:delivered 3"):
            sink.deliver(block(4))
        sink.close()
        with pytest.raises(BadInput, match="lacks blocks 1 to 3"):
            sink_at(server, delivered=3)
        client.set(DELIVERED, 3)
    sink = sink_at(server, delivered=3)
    sink.deliver(block(4))
    sink.close()
    assert released(server) == [b"block 4 a", b"block 4 b"]


def test_a_sink_can_have_a_greatest_length(server: RedisServer) -> None:
    sink = sink_at(server, maxlen=100)
    sink.deliver(block(1, data=b"x\n" * 5000))
    sink.close()
    assert 100 <= len(released(server)) < 1000


def test_a_last_line_without_an_end_is_a_line(server: RedisServer) -> None:
    sink = sink_at(server)
    sink.deliver(block(1, data=b"one\n\nthree"))
    sink.close()
    assert released(server) == [b"one", b"", b"three"]


def test_a_server_that_was_killed_has_everything_when_it_is_back(server: RedisServer) -> None:
    fill(server, start=0, stop=10)
    source, sink = source_at(server), sink_at(server)
    batch = source.take(timeout=patience())
    sink.deliver(block(1))
    server.kill()
    assert batch is not None
    source.acknowledge(batch, bad_lines=())
    with pytest.raises(Unreachable, match=f"Redis server at 127.0.0.1:{server.port}: (no connection|.* refused)"):
        source.take(timeout=0.1)
    with pytest.raises(Unreachable, match=r"no connection|connection refused"):
        sink.deliver(block(2))
    server.start()
    fill(server, start=10, stop=12)
    later = source.take(timeout=patience())
    assert later is not None
    assert later.data == b"line 10\nline 11\n"
    for number in (1, 2):
        sink.deliver(block(number))
    source.close()
    sink.close()
    assert len(released(server)) == 4
    with server.client() as client:
        assert client.xpending("queries", "queryveil")["pending"] == 2


def test_entries_on_their_way_when_the_connection_broke_come_again(server: RedisServer) -> None:
    source = source_at(server)
    assert source.take(timeout=0.01) is None
    with server.client() as client, ThreadPoolExecutor() as threads:
        waiting = threads.submit(source.take, timeout=60)
        until(lambda: client.info("clients")["blocked_clients"])
        # In one step, so that the one who waits gets nothing: the server has noted the entry as handed out to us.
        with client.pipeline(transaction=True) as steps:
            steps.xadd("queries", {"data": "line 0"})
            steps.xreadgroup("queryveil", "queryveil", {"queries": ">"})
            steps.execute()
        client.client_kill_filter(_type="normal", skipme=True)
        with pytest.raises(Unreachable, match="no connection"):
            waiting.result(timeout=patience())
    batch = source.take(timeout=patience())
    assert batch is not None
    assert batch.data == b"line 0\n"
    source.close()


@pytest.mark.parametrize("moment", ["take", "commit", "acknowledge", "deliver"])
def test_a_process_killed_at_any_moment_loses_nothing_and_repeats_nothing(
    server: RedisServer, tmp_path: Path, moment: str
) -> None:
    fill(server, start=0, stop=1200)
    state = tmp_path / "state.json"
    assert run_relay(server, state, moment, "2") == -9
    fill(server, start=1200, stop=1300)
    assert run_relay(server, state, moment, "1") == -9
    fill(server, start=1300, stop=1400)
    assert run_relay(server, state) == 0
    assert released(server) == numbered(1400)


def test_closing_ends_a_take_that_waits(server: RedisServer) -> None:
    source = source_at(server)
    with ThreadPoolExecutor() as threads, server.client() as client:
        waiting = threads.submit(source.take, timeout=600)
        until(lambda: client.info("clients")["blocked_clients"])
        source.close()
        with suppress(Unreachable):
            assert waiting.result(timeout=patience()) is None

"""How many events a second go from one stream of a Redis server through the service into another, and where time goes.

    python -m benchmarks.redis_between [EVENTS]

The server writes every command to disk before it answers. Work is what keeps a core busy: of this process,
which is source, service, store and sink, and of the server. Source and sink are also run by themselves.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from tests.support.redis_server import IS_INSTALLED, RedisServer

from queryveil.cli.output import print_table
from queryveil.release import ColumnPolicy, Ids
from queryveil.service.connectors.redis import RedisSink, RedisSource
from queryveil.service.pipeline.service import Service
from queryveil.service.ports import Outgoing
from queryveil.service.settings import StreamSettings
from queryveil.service.stores.sqlite import SqliteStore
from queryveil.synthesis import synthesize

_BLOCK = 10_000


def lines_of(n_events: int) -> list[bytes]:
    """Make up a log and write it as JSON lines."""
    log = synthesize(users=max(100, n_events // 30), seed=5).log
    rows = log.frame.sort("time").select("user", "query").head(n_events).rows()
    lines = [msgspec.json.encode({"user": user, "query": query}) for user, query in rows]
    return (lines * (n_events // len(lines) + 1))[:n_events]


def blocks_of(lines: list[bytes]) -> list[Outgoing]:
    blocks = [b"\n".join(lines[start : start + _BLOCK]) + b"\n" for start in range(0, len(lines), _BLOCK)]
    return [Outgoing(number=i, offset=0, data=data, n_rows=_BLOCK) for i, data in enumerate(blocks, start=1)]


def measured(server: RedisServer, action: Callable[[], None], *, n: int) -> tuple[str, ...]:
    """Return events a second, and microseconds an event: by the clock, of this process, of the server."""
    started, used, served = time.perf_counter(), time.process_time(), server.seconds_of_work()
    action()
    took = time.perf_counter() - started
    parts = (took, time.process_time() - used, server.seconds_of_work() - served)
    return (f"{n / took:,.0f}", *(f"{each / n * 1e6:.2f}" for each in parts))


def deliver(server: RedisServer, lines: list[bytes], *, stream: str = "queries") -> None:
    sink = RedisSink(server.url(stream=stream))
    sink.open(delivered=0, n_bytes=0)
    for block in blocks_of(lines):
        sink.deliver(block)
    sink.close()


def take(server: RedisServer, *, n: int) -> None:
    source = RedisSource(server.url(stream="queries", group="counting"))
    source.open(position=None, keys=())
    while n:
        batch = source.take(timeout=10)
        assert batch is not None
        n -= batch.data.count(b"\n")
        source.acknowledge(batch, bad_lines=())
    source.close()


def serve(server: RedisServer, folder: Path, *, n: int, stream: str = "queries") -> None:
    """Run the service until it has read everything and handed over what it released."""
    service = Service(
        StreamSettings(columns=ColumnPolicy(ids=Ids.KEYED, key=b"k" * 32), format="jsonl"),
        source=RedisSource(server.url(stream=stream)),
        sink=RedisSink(server.url(stream=f"{stream}-released")),
        store=SqliteStore(folder / f"{stream}.db"),
    )
    thread = threading.Thread(target=service.run)
    thread.start()
    while thread.is_alive() and service.stats().n_read < n:
        time.sleep(0.02)
    service.stop()
    thread.join()


def main(n: int) -> None:
    lines = lines_of(n)
    with tempfile.TemporaryDirectory() as folder, RedisServer(Path(folder)) as server:
        # The first service of a process reads tables and loads kernels.
        deliver(server, lines[:1000], stream="first")
        serve(server, Path(folder), n=1000, stream="first")
        rows = [
            ("sink alone", *measured(server, lambda: deliver(server, lines), n=n)),
            ("source alone", *measured(server, lambda: take(server, n=n), n=n)),
            ("source, service, sink", *measured(server, lambda: serve(server, Path(folder), n=n), n=n)),
        ]
        with server.client() as client:
            n_released = client.xlen("queries-released")
    titles = ["", "events a second", "µs an event", "µs of this process", "µs of the server"]
    print_table(titles, rows, title=f"{n:,} events through Redis, {n_released:,} of them released")


if __name__ == "__main__":
    if IS_INSTALLED:
        main(int(sys.argv[1]) if sys.argv[1:] else 200_000)
    else:
        print("left out: it needs redis-server")

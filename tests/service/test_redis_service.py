"""The whole service between two streams of a real Redis server, where both are killed."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from tests.support.examples import SOAKS
from tests.support.redis_server import IS_INSTALLED, RedisServer
from tests.support.waiting import patience, until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_INSTALLED, reason="redis-server is not installed")]

FIRST = ("red", "white", "green", "sweet", "sour", "hot", "cold", "fresh", "dried", "baked")
SECOND = ("wine", "cheese", "bread", "apple", "pear", "soup", "salad", "cake", "rice", "pasta")
THIRD = ("recipe", "price", "shop", "review", "store", "calories", "season", "market", "video", "guide")
QUERIES = [" ".join(words) for words in itertools.product(FIRST, SECOND, THIRD)]
N_USERS = 37


def events(queries: list[str], *, seed: int) -> list[bytes]:
    """Return one event a query, at times that are in no order."""
    dice = random.Random(seed)
    return [
        json.dumps(
            {
                "user": f"u{QUERIES.index(query) % N_USERS}",
                "query": query,
                "time": f"2026-03-{dice.randint(1, 28):02}T12:00:00",
            }
        ).encode()
        for query in queries
    ]


def add(server: RedisServer, lines: list[bytes], *, first: int) -> None:
    """Add entries numbered from `first`, as a careful sender does that tries again until the server has them."""
    with server.client() as client:
        for number, line in enumerate(lines, start=first):
            until(lambda line=line, number=number: _is_added(client, line, number=number))  # type: ignore[misc]


def _is_added(client: Any, line: bytes, *, number: int) -> bool:
    try:
        client.xadd("queries", {"data": line}, id=f"{number}-1")
    except redis.ConnectionError:
        return False
    except redis.ResponseError as error:
        # It had arrived before the connection broke.
        return "equal or smaller" in str(error)
    return True


def n_released(server: RedisServer) -> int:
    with server.client() as client:
        n: int = client.xlen("released")
        return n


def is_read(server: RedisServer) -> bool:
    """Return whether every entry has been given out and acknowledged."""
    with server.client() as client:
        groups = client.xinfo_groups("queries")
        last = client.xinfo_stream("queries")["last-generated-id"]
        return bool(groups) and groups[0]["pending"] == 0 and groups[0]["last-delivered-id"] == last


@contextmanager
def service(source: RedisServer, sink: RedisServer, folder: Path) -> Iterator[subprocess.Popen[str]]:
    words = ["stream", "--source", source.url(), "--sink", sink.url(), "--store", f"sqlite:{folder / 'state.db'}"]
    words += ["--ids", "keep", "--k", "5", "--json"]
    process = subprocess.Popen([sys.executable, "-m", "queryveil", *words], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def stop(process: subprocess.Popen[str]) -> dict[str, Any]:
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=patience())
    assert process.returncode == 0
    counts: dict[str, Any] = json.loads(said)
    return counts


def check(server: RedisServer, counts: dict[str, Any], *, n_read: int) -> None:
    """See that nothing is lost, nothing is there twice, and nobody got the own query back."""
    with server.client() as client:
        rows = [json.loads(fields[b"data"]) for _, fields in client.xrange("released")]
    texts = [row["query"] for row in rows]
    assert counts["n_read"] == n_read
    names = ("n_bad", "n_repeated", "n_released", "n_suppressed", "n_waiting")
    assert counts["n_read"] == sum(counts[name] for name in names)
    assert len(rows) == counts["n_released"] == counts["n_delivered"] > 0
    assert len(set(texts)) == len(texts)
    assert set(texts) <= set(QUERIES)
    assert not any(row["user"] == f"u{QUERIES.index(row['query']) % N_USERS}" for row in rows)


def run_and_kill(server: RedisServer, folder: Path, *, after: float) -> None:
    """Run the service until it has released something more, and a moment longer."""
    before = n_released(server)
    with service(server, server, folder) as process:
        until(lambda: n_released(server) > before, process=process)
        time.sleep(after)


@pytest.mark.parametrize("seed", range(1, 13 if SOAKS else 2))
def test_a_service_and_a_server_that_are_killed_lose_nothing_and_release_nothing_twice(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    lines = events(dice.sample(QUERIES, 900), seed=seed)
    with RedisServer(tmp_path) as server, ThreadPoolExecutor() as threads:
        for start in (0, 300):
            sending = threads.submit(add, server, lines[start : start + 300], first=start + 1)
            run_and_kill(server, tmp_path, after=dice.uniform(0, 0.1))
            sending.result()
        with service(server, server, tmp_path) as process:
            sending = threads.submit(add, server, lines[600:], first=601)
            until(lambda: is_read(server), process=process)
            server.kill()
            time.sleep(dice.uniform(0, 0.3))
            server.start()
            sending.result()
            add(server, [b"garbage", b'{"user": 1', b"\xff\xfe"], first=901)
            until(lambda: is_read(server), process=process)
            counts = stop(process)
        assert counts["n_bad"] == 3
        check(server, counts, n_read=903)


def test_a_sink_that_is_full_holds_the_service_back_until_there_is_room(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("source", "sink")]
    for folder in folders:
        folder.mkdir()
    with RedisServer(folders[0]) as source, RedisServer(folders[1]) as sink:
        with sink.client() as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "1")
        add(source, events(QUERIES[:300], seed=3), first=1)
        with service(source, sink, tmp_path) as process:
            until(lambda: is_read(source), process=process)
            assert n_released(sink) == 0
            assert process.poll() is None
            with sink.client() as client:
                client.config_set("maxmemory", "0")
            until(lambda: n_released(sink) > 0, process=process)
            counts = stop(process)
        check(sink, counts, n_read=300)

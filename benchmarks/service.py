"""The service over HTTP on this machine: events a second, and how long a POST waits for its commit.

Work is what keeps a core of the server busy, without its waiting for the disk and for other processes. Beside it, in
the same run, a floor: the same kind of server with a route that reads the body and does nothing else.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import numpy as np

from queryveil.cli.output import print_table
from queryveil.synthesis import synthesize

SECONDS = 4.0
SIZES = (1, 100, 1000)
CONNECTIONS = (1, 8, 32)


class Connection:
    """One connection that stays open; as little as HTTP needs, so that the client costs next to nothing."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def post(self, body: bytes) -> None:
        head = "POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson"
        status, _, answer = self._ask(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        assert status == 200, answer

    def get(self, path: str) -> tuple[int, dict[str, str], bytes]:
        return self._ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def _ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        self._socket.sendall(request)
        status = int(self._file.readline().split()[1])
        headers = {}
        while line := self._file.readline().strip().decode():
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        return status, headers, self._file.read(int(headers["content-length"]))

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How long each POST took, and how many events went through in how many seconds."""

    waits: tuple[float, ...]
    n_events: int
    seconds: float

    def cells(self) -> tuple[str, str, str]:
        p50, p99 = np.percentile(self.waits, [50, 99]) * 1000
        return f"{self.n_events / self.seconds:,.0f}", f"{p50:.1f}", f"{p99:.1f}"


@cache
def bodies(size: int) -> list[bytes]:
    """Make up bodies of so many events."""
    log = synthesize(users=4000, seed=9).log.frame.sample(fraction=1, shuffle=True, seed=1)
    lines = [
        json.dumps({"user": user, "query": query}).encode() + b"\n"
        for user, query in log.select("user", "query").iter_rows()
    ]
    return [b"".join(lines[i : i + size]) for i in range(0, len(lines) - size, size)]


def load(port: int, *, size: int, n_connections: int) -> Measured:
    """Post from a process of its own, over several connections at once."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_load, (port, bodies(size), size, n_connections))


def _load(port: int, made: list[bytes], size: int, n_connections: int) -> Measured:
    waits = [list[float]() for _ in range(n_connections)]
    until = time.perf_counter() + SECONDS

    def send(number: int) -> None:
        connection = Connection(port)
        i = number * 97
        while (began := time.perf_counter()) < until:
            connection.post(made[i % len(made)])
            waits[number].append(time.perf_counter() - began)
            i += 1
        connection.close()

    began = time.perf_counter()
    threads = [Thread(target=send, args=(number,)) for number in range(n_connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = tuple(wait for each in waits for wait in each)
    return Measured(waits=every, n_events=len(every) * size, seconds=time.perf_counter() - began)


def until_released(port: int, *, size: int) -> tuple[str, str]:
    """Time from a POST until what it set free is in a client's hands, one after the other."""
    connection, waits = Connection(port), []
    _, headers, _ = connection.get("/released")
    last = headers["queryveil-last"]
    until = time.perf_counter() + SECONDS
    for body in bodies(size):
        if (began := time.perf_counter()) > until:
            break
        connection.post(body)
        _, headers, data = connection.get(f"/released?after={last}")
        if data:
            waits.append(time.perf_counter() - began)
        last = headers["queryveil-last"]
    connection.get(f"/released?after={last}")
    connection.close()
    p50, p99 = np.percentile(waits, [50, 99]) * 1000
    return f"{p50:.1f}", f"{p99:.1f}"


@contextmanager
def picking_up(port: int) -> Iterator[None]:
    """Pull what is released, so that the outbox does not fill."""
    is_over = Event()

    def pull() -> None:
        connection, after = Connection(port), ""
        while not is_over.is_set():
            _, headers, _ = connection.get(f"/released?wait=0.5{after}")
            after = f"&after={headers['queryveil-last']}"
        connection.get(f"/released?wait=0{after}")
        connection.close()

    thread = Thread(target=pull)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def running(command: Sequence[str], port: int) -> Iterator[int]:
    """Return the process id of a server, once it is ready."""
    with TemporaryDirectory() as folder:
        process = subprocess.Popen([sys.executable, *command], cwd=folder, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                with suppress(OSError, IndexError), closing(Connection(port)) as connection:
                    if connection.get("/readyz")[0] == 200:
                        break
                time.sleep(0.1)
            yield process.pid
        finally:
            process.terminate()
            process.wait(30)


def serve_floor(port: int) -> None:
    """Read bodies and answer."""
    import uvicorn  # noqa: PLC0415
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import JSONResponse, Response  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    async def take(request: Request) -> Response:
        return JSONResponse({"accepted": (await request.body()).count(b"\n")})

    async def ready(_: Request) -> Response:
        return JSONResponse({})

    app = Starlette(routes=[Route("/events", take, methods=["POST"]), Route("/readyz", ready)])
    uvicorn.run(app, port=port, log_level="critical")


def seconds_of_work(process: int) -> float:
    """Return what a process has kept a core busy for."""
    in_user, in_system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(in_user) + int(in_system)) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def fill_pools(port: int) -> None:
    """Have something released by nearly every event from here on, and everything compiled."""
    connection = Connection(port)
    for body in bodies(1000)[:5]:
        connection.post(body)
    connection.close()


def compare() -> None:
    ours, floor = free_port(), free_port()
    rows = []
    with (
        running(["-m", "queryveil", "serve", "--port", str(ours)], ours) as process,
        running([__file__, "floor", str(floor)], floor),
    ):
        fill_pools(ours)
        for size in SIZES:
            for n_connections in CONNECTIONS:
                worked = seconds_of_work(process)
                with picking_up(ours):
                    found = load(ours, size=size, n_connections=n_connections)
                worked = seconds_of_work(process) - worked
                least = load(floor, size=size, n_connections=n_connections)
                out = until_released(ours, size=size) if n_connections == 1 else ("", "")
                each = f"{worked / found.n_events * 1e6:,.1f}"
                rows.append((size, n_connections, *found.cells(), each, *least.cells(), *out))
    header = ["events a POST", "connections", "events/s", "p50 ms", "p99 ms", "µs of work"]
    floors = ["floor events/s", "floor p50", "floor p99"]
    print_table([*header, *floors, "to released p50", "p99"], rows, title="queryveil serve, SQLite store, k=10")


if __name__ == "__main__":
    if sys.argv[1:2] == ["floor"]:
        serve_floor(int(sys.argv[2]))
    else:
        compare()

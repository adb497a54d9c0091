"""How long honest posts wait while others mean no good: 10,000 connections and four hostile bodies, on this machine.

Posts of 100 events go on all the time, over connections that stay and over new ones. Meanwhile other processes open
10,000 connections and more that send half a head, 2,000 a second, open those again that were closed, and send a head
and a body a byte at a time, gzip of 838,860 empty members and gzip that unpacks to 256 MB. A post that is refused or
cut off is sent again, and its wait goes on. Attackers are nice: on another machine they would take no processor here.
python -m benchmarks.hostile.
"""

from __future__ import annotations

import gzip
import multiprocessing
import os
import random
import resource
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.synchronize import Event
from threading import Thread
from typing import Any

import numpy as np

from benchmarks.service import Connection, bodies, fill_pools, free_port, running, seconds_of_work
from queryveil.cli.output import print_table

N_CONNECTIONS = 10_000
SECONDS = 15.0
N_POSTING = 8
SIZE = 100
AGAIN_SECONDS = 0.02
REOPENED_A_SECOND = 2_000
HOSTILE = ("slow head", "slow body", "gzip of empty members", "gzip bomb")
HEAD = b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """How long each post waited, and how many attempts were needed beyond the first."""

    waits: tuple[float, ...]
    n_again: int

    def cells(self) -> tuple[str, ...]:
        p50, p99 = np.percentile(self.waits, [50, 99]) * 1000
        return (
            f"{len(self.waits):,}",
            f"{self.n_again:,}",
            f"{p50:.1f}",
            f"{p99:.1f}",
            f"{max(self.waits) * 1000:.0f}",
        )


def post_for(port: int, seconds: float) -> Posted:
    """Post from a process of its own; every other sender takes a new connection for each post."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_post, (port, bodies(SIZE), seconds))


def _post(port: int, made: list[bytes], seconds: float) -> Posted:
    waits = [list[float]() for _ in range(N_POSTING)]
    again = [0] * N_POSTING
    until = time.perf_counter() + seconds

    def send(number: int) -> None:
        connection: Connection | None = None
        for body in cycle(made[number::N_POSTING]):
            began = time.perf_counter()
            if began > until:
                break
            while True:
                try:
                    connection = connection or Connection(port)
                    connection.post(body)
                    break
                except (OSError, AssertionError, IndexError, ValueError):
                    again[number] += 1
                    connection = None
                    time.sleep(AGAIN_SECONDS)
            waits[number].append(time.perf_counter() - began)
            if number % 2:
                connection.close()
                connection = None

    threads = [Thread(target=send, args=(number,)) for number in range(N_POSTING)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Posted(waits=tuple(wait for each in waits for wait in each), n_again=sum(again))


def pull(port: int, is_over: Any) -> None:
    """Pick up what is released, so that the outbox does not fill."""
    after = ""
    while not is_over.is_set():
        with suppress(OSError, IndexError, KeyError, ValueError), closing(Connection(port)) as connection:
            while not is_over.is_set():
                _, headers, _ = connection.get(f"/released?wait=0.5{after}")
                after = f"&after={headers['queryveil-last']}"


def hold_connections(port: int, addresses: Sequence[str], is_over: Event, n_opened: Any) -> None:
    """Hold many connections that have sent half a head, and open again those that were closed."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    os.nice(10)
    chosen, waiting, n_open, n_total = selectors.DefaultSelector(), cycle(addresses), 0, 0
    allowed, last = 0.0, time.perf_counter()
    while not is_over.is_set():
        now = time.perf_counter()
        allowed, last = min(200.0, allowed + (now - last) * REOPENED_A_SECOND), now
        while n_open < N_CONNECTIONS and allowed >= 1:
            allowed -= 1
            with suppress(OSError):
                made = socket.socket()
                made.setblocking(False)
                made.bind((next(waiting), 0))
                made.connect_ex(("127.0.0.1", port))
                chosen.register(made, selectors.EVENT_WRITE)
                n_open, n_total = n_open + 1, n_total + 1
        for key, event in chosen.select(timeout=0.02):
            found: Any = key.fileobj
            try:
                if event & selectors.EVENT_WRITE:
                    found.send(HEAD[: random.randrange(1, len(HEAD))])
                    chosen.modify(found, selectors.EVENT_READ)
                    continue
                is_gone = not found.recv(4096)
            except OSError:
                is_gone = True
            if is_gone:
                chosen.unregister(found)
                found.close()
                n_open -= 1
        n_opened.value = n_total


def send_hostile(port: int, kind: str, address: str, is_over: Event) -> None:
    """Send one kind of hostile request again and again, eight at a time."""
    made: dict[str, Callable[[], tuple[bytes, bytes]]] = {
        "slow head": lambda: (b"", HEAD + b"X: " + b"x" * 8192),
        "slow body": lambda: (HEAD + b"Content-Length: 1048576\r\n\r\n", b" " * 8192),
        "gzip of empty members": lambda: _gzip_body(gzip.compress(b"") * 838_860),
        "gzip bomb": lambda: _gzip_body(gzip.compress(bytes(1 << 28), 1)),
    }
    os.nice(10)
    at_once, rest = made[kind]()
    is_slow = kind.startswith("slow")

    def send() -> None:
        while not is_over.is_set():
            with (
                suppress(OSError),
                socket.create_connection(("127.0.0.1", port), source_address=(address, 0), timeout=5) as connection,
            ):
                connection.sendall(at_once if is_slow else at_once + rest)
                for i in range(len(rest) if is_slow else 0):
                    if is_over.is_set():
                        return
                    connection.sendall(rest[i : i + 1])
                    time.sleep(0.05)
                connection.recv(4096)

    threads = [Thread(target=send, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    is_over.wait()
    for thread in threads:
        thread.join(6)


def _gzip_body(packed: bytes) -> tuple[bytes, bytes]:
    return HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed), packed


@contextmanager
def attacked(port: int, addresses: Sequence[str]) -> Iterator[Any]:
    """Attack while the block runs; yield how many connections were opened."""
    context = multiprocessing.get_context("spawn")
    is_over, n_opened = context.Event(), context.Value("i", 0)
    attackers = [context.Process(target=hold_connections, args=(port, addresses, is_over, n_opened), daemon=True)]
    for kind in HOSTILE:
        attackers.append(context.Process(target=send_hostile, args=(port, kind, addresses[0], is_over), daemon=True))
    for attacker in attackers:
        attacker.start()
    try:
        time.sleep(8)
        yield n_opened
    finally:
        is_over.set()
        for attacker in attackers:
            attacker.join(10)
            attacker.terminate()


def compare() -> None:
    port, rows = free_port(), []
    own = ["127.0.0.1"]
    others = [f"127.0.1.{i}" for i in range(1, 51)]
    with running(["-m", "queryveil", "serve", "--port", str(port)], port) as process:
        fill_pools(port)
        is_over = multiprocessing.get_context("spawn").Event()
        puller = Thread(target=pull, args=(port, is_over))
        puller.start()
        for name, addresses in {"before": [], "50 other addresses": others, "between": [], "the same address": own,
                                "after": []}.items():  # fmt: skip
            worked = seconds_of_work(process)
            if addresses:
                with attacked(port, addresses) as n_opened:
                    posted = post_for(port, SECONDS)
                    opened = f"{n_opened.value:,}"
                time.sleep(2)
            else:
                posted, opened = post_for(port, SECONDS), ""
            rows.append((name, opened, *posted.cells(), f"{seconds_of_work(process) - worked:.1f}"))
        is_over.set()
        puller.join()
    header = ["", "opened", "posts", "sent again", "p50 ms", "p99 ms", "max ms", "s of work"]
    print_table(header, rows, title=f"posts of {SIZE} events over {N_POSTING} senders, {SECONDS:.0f} s each")


if __name__ == "__main__":
    compare()

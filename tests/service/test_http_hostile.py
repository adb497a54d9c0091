"""`queryveil serve` as a process with few files to open, among clients that mean it no good."""

from __future__ import annotations

import gzip
import json
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from tests.support.waiting import patience, until

pytestmark = pytest.mark.slow

NDJSON = {"Content-Type": "application/x-ndjson"}
N_FILES = 200
EMPTY_MEMBERS = gzip.compress(b"") * 838_860


def few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (N_FILES, N_FILES))


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "queryveil", "serve", "--port", str(port), "--ids", "keep", "--k", "3", "--json"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=folder, text=True, stdout=pipe, stderr=pipe, preexec_fn=few_files)  # noqa: PLW1509
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=patience()) as client:
            until(lambda: is_ready(client), process=process)
            yield process, client
    finally:
        process.kill()
        process.communicate()


def is_ready(client: httpx.Client) -> bool:
    with suppress(httpx.TransportError):
        return client.get("/readyz").status_code == 200
    return False


def post(client: httpx.Client, number: int) -> int:
    body = json.dumps({"user": f"member{number}", "query": f"red wine {number}"}).encode()
    return client.post("/events", content=body, headers=NDJSON).status_code


def test_half_sent_heads_and_hostile_gzip_stop_neither_posts_nor_the_end(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, client), ExitStack() as many:
        port = client.base_url.port or 0
        for _ in range(2 * N_FILES):
            half = many.enter_context(socket.create_connection(("127.0.0.1", port), timeout=patience()))
            with suppress(OSError):
                half.sendall(b"POST /events HTTP/1.1\r\nHost: localh")
        with httpx.Client(base_url=client.base_url, timeout=patience()) as another:
            # Whoever comes in the very seconds of a flood from the same address is told to come again.
            for number in range(5):
                until(lambda number=number: post(another, number) == 200, process=process)  # type: ignore[misc]
        head = "POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        head += f"Content-Encoding: gzip\r\nContent-Length: {len(EMPTY_MEMBERS)}\r\n\r\n"
        for _ in range(4):
            hostile = many.enter_context(socket.create_connection(("127.0.0.1", port), timeout=patience()))
            hostile.sendall(head.encode())
            with suppress(OSError):
                hostile.sendall(EMPTY_MEMBERS)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=patience())
    assert process.returncode == 0
    assert json.loads(out)["n_read"] == 5
    # Nothing of a library's logger, and nothing twice.
    assert all(line.startswith("queryveil: ") for line in err.splitlines()), err
    assert f"{N_FILES - 64} connections at once instead of 1,000" in err

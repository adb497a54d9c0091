"""`queryveil serve` as a process of its own: posted, killed, started again, and nothing lost or released twice."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.examples import SOAKS
from tests.support.waiting import patience, until

from queryveil.cli import main
from queryveil.synthesis import synthesize

pytestmark = pytest.mark.slow

NDJSON = {"Content-Type": "application/x-ndjson"}
SHOWN = {"Authorization": "Bearer a-made-up-token-of-length"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def start(folder: Path, port: int, *options: str, verb: str = "serve") -> subprocess.Popen[str]:
    url = f"http://127.0.0.1:{port}"
    where = ["--port", str(port)] if verb == "serve" else ["--source", url, "--sink", url]
    command = [sys.executable, "-m", "queryveil", verb, *where, "--ids", "keep", "--k", "3", "--json"]
    return subprocess.Popen(
        [*command, *options], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )  # fmt: skip


def wait_until_ready(client: httpx.Client, process: subprocess.Popen[str]) -> None:
    def is_ready() -> bool:
        with suppress(httpx.TransportError):
            return client.get("/readyz").status_code == 200
        return False

    until(is_ready, process=process)


@contextmanager
def serving(
    folder: Path, *options: str, port: int | None = None, verb: str = "serve"
) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    port = port or free_port()
    process = start(folder, port, *options, verb=verb)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=patience()) as client:
            wait_until_ready(client, process)
            yield process, client
    finally:
        process.kill()
        process.communicate()


def stop(process: subprocess.Popen[str]) -> dict[str, Any]:
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=patience())
    assert process.returncode == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def made_up_events(n: int, *, seed: int) -> list[tuple[str, str]]:
    rows = list(synthesize(users=n // 8, seed=seed).log.frame.select("user", "query").iter_rows())
    random.Random(seed).shuffle(rows)
    return rows[:n]


def as_lines(events: list[tuple[str, str]]) -> bytes:
    return b"".join(json.dumps({"user": user, "query": query}).encode() + b"\n" for user, query in events)


def assert_every_event_is_somewhere(stats: dict[str, Any]) -> None:
    names = ("bad", "empty", "emptied", "unclassified_dropped", "repeated", "released", "suppressed", "waiting")
    assert stats["n_read"] == sum(stats[f"n_{name}"] for name in names)


def test_what_is_posted_comes_out_with_somebody_elses_name(tmp_path: Path) -> None:
    events, rows, last = made_up_events(4000, seed=1), [], "0"
    asked: set[tuple[str, str]] = set()
    with serving(tmp_path) as (process, client):
        for i in range(0, len(events), 500):
            answer = client.post("/events", content=as_lines(events[i : i + 500]), headers=NDJSON)
            assert answer.json() == {"accepted": 500, "bad_lines": []}
            asked |= {(user, query.lower()) for user, query in events[i : i + 500]}
            pulled = client.get("/released", params={"after": last, "wait": "10"})
            last = pulled.headers["Queryveil-Last"]
            found = [json.loads(line) for line in pulled.text.splitlines()]
            assert not any((row["user"], row["query"].lower()) in asked for row in found)
            rows += found
        client.get("/released", params={"after": last})
        stats = stop(process)
    assert len(rows) == stats["n_released"] == stats["n_delivered"] > 2000
    assert stats["n_read"] == 4000
    assert_every_event_is_somewhere(stats)
    before = Counter(user for user, _ in events)
    assert all(n <= before[user] for user, n in Counter(row["user"] for row in rows).items())


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service that wants a token."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "token").write_text("a-made-up-token-of-length\n")
    with serving(folder, "--token", "token") as (_, client):
        yield client


def test_a_bad_line_of_real_events_is_told_by_its_number(guarded: httpx.Client) -> None:
    body = b'{"user": "a", "query": "red wine"}\nrubbish\n\n{"user": "b", "query": "green tea"}\n{"query": "red"}\n'
    # A line of blanks is no event, bad or good.
    body += b" \n\t\r\n"
    answer = guarded.post("/events", content=body, headers=NDJSON | SHOWN).json()
    assert answer == {"accepted": 2, "bad_lines": [2, 5]}


def test_stream_with_source_and_sink_at_one_address_is_the_same_service(tmp_path: Path) -> None:
    events = made_up_events(400, seed=3)
    with serving(tmp_path, verb="stream") as (process, client):
        assert client.post("/events", content=as_lines(events), headers=NDJSON).json()["accepted"] == 400
        pulled = client.get("/released")
        assert "queryveil_events_read_total 400" in client.get("/metrics").text
        assert client.get("/").status_code == 200
        client.get("/released", params={"after": pulled.headers["Queryveil-Last"]})
        assert stop(process)["n_released"] == len(pulled.content.splitlines()) > 100
    # The state is the same too, so that one may take over from the other.
    with serving(tmp_path, verb="serve") as (process, client):
        assert stop(process)["n_read"] == 400


def test_rows_that_nobody_picked_up_are_there_after_a_restart_also_on_another_port(tmp_path: Path) -> None:
    events = made_up_events(800, seed=2)
    with serving(tmp_path) as (process, client):
        client.post("/events", content=as_lines(events[:400]), headers=NDJSON | {"Idempotency-Key": "one"})
        first = client.get("/released")
        process.kill()
        process.wait()
    with serving(tmp_path) as (process, client):
        assert client.get("/released", params={"after": 0}).content == first.content
        again = client.post("/events", content=as_lines(events[:400]), headers=NDJSON | {"Idempotency-Key": "one"})
        assert again.json() == {"accepted": 0, "already": True}
        client.post("/events", content=as_lines(events[400:]), headers=NDJSON)
        more = client.get("/released", params={"after": first.headers["Queryveil-Last"]})
        assert more.content
        assert client.get("/released", params={"after": 0}).status_code == 410
        assert client.get("/released", params={"after": 99}).status_code == 409
        client.get("/released", params={"after": more.headers["Queryveil-Last"]})
        stats = stop(process)
    assert stats["n_read"] == 800
    assert len((first.content + more.content).splitlines()) == stats["n_released"]


@dataclass
class Senders:
    """A client that posts each batch until it is answered, and one that pulls; both outlive the service."""

    port: int
    batches: list[list[tuple[str, str]]]
    pulled: list[bytes] = field(default_factory=list)
    after: int | None = None
    n_done: int = 0
    is_empty_handed: bool = False
    is_over: threading.Event = field(default_factory=threading.Event)

    def post(self) -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=patience()) as client:
            for number, batch in enumerate(self.batches):
                headers = NDJSON | {"Idempotency-Key": f"batch {number}"}
                while not self.is_over.is_set():
                    with suppress(httpx.TransportError):
                        if client.post("/events", content=as_lines(batch), headers=headers).status_code == 200:
                            break
                    time.sleep(0.02)
                self.n_done += 1

    def pull(self) -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=patience()) as client:
            while not self.is_over.is_set():
                was_done = self.n_done == len(self.batches)
                parameters = {"wait": "0.5"} | ({} if self.after is None else {"after": str(self.after)})
                with suppress(httpx.TransportError):
                    answer = client.get("/released", params=parameters)
                    assert answer.status_code in (200, 503), answer.text
                    if answer.status_code == 200:
                        # Lines and cursor are stored together: here both or none, as nothing can come in between.
                        self.pulled.append(answer.content)
                        self.after = int(answer.headers["Queryveil-Last"])
                        # Whether every post was answered before it was asked for rows, and there were none.
                        self.is_empty_handed = was_done and not answer.content
                        continue
                time.sleep(0.05)


@pytest.mark.parametrize("seed", range(12 if SOAKS else 1))
def test_nothing_is_lost_or_released_twice_however_often_the_service_is_killed(tmp_path: Path, seed: int) -> None:
    chance, events = random.Random(seed), made_up_events(6000 if SOAKS else 2500, seed=seed + 10)
    batches = [events[i : i + 50] for i in range(0, len(events), 50)]
    port = free_port()
    senders = Senders(port=port, batches=batches)
    threads = [threading.Thread(target=senders.post), threading.Thread(target=senders.pull)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3 if SOAKS else 2):
            with serving(tmp_path, port=port) as (process, _):
                time.sleep(chance.uniform(0.05, 0.6))
                process.kill()
        with serving(tmp_path, port=port) as (process, _):
            threads[0].join(patience())
            until(lambda: senders.is_empty_handed)
            senders.is_over.set()
            threads[1].join(patience())
            stats = stop(process)
    finally:
        senders.is_over.set()
    assert senders.n_done == len(batches)
    assert stats["n_read"] == len(events)
    assert_every_event_is_somewhere(stats)
    rows = [json.loads(line) for line in b"".join(senders.pulled).splitlines()]
    assert len(rows) == stats["n_released"]
    asked = Counter(user for user, _ in events)
    assert all(n <= asked[user] for user, n in Counter(row["user"] for row in rows).items())
    texts = Counter(query.lower() for _, query in events)
    kept = Counter(row["query"].lower() for row in rows if row["query"].lower() in texts)
    assert all(n <= texts[query] for query, n in kept.items())


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            ["--host", "0.0.0.0"],
            "host must be 127.0.0.1 where there is no token; name one with --token FILE or in QUERYVEIL_TOKEN",
        ),
        (["--token", "nosuch"], "nosuch: the token cannot be read: No such file or directory"),
        (["--host", "203.0.113.7.example", "--token", "token"], "host must be an address of this machine"),
        (["--k", "1"], "k must be"),
    ],
)
def test_a_wrong_setting_is_one_line_and_exit_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    line: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text("a-made-up-token-of-length")
    with pytest.raises(SystemExit) as stopped:
        main(["serve", "--port", str(free_port()), "--ids", "keep", "--k", "3", "--json", *options])
    out, err = capsys.readouterr()
    assert (stopped.value.code, out) == (2, "")
    assert err.startswith(f"queryveil: {line}")
    assert err.count("\n") == 1


def test_a_port_in_use_is_one_line_and_exit_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = start(tmp_path, taken.getsockname()[1])
        _, err = process.communicate(timeout=patience())
    assert process.returncode == 2
    assert "port must be one that no other program uses" in err
    assert err.count("\n") == 1


def test_only_with_the_token_may_anybody_post(guarded: httpx.Client) -> None:
    assert guarded.post("/events", content=b"{}\n", headers=NDJSON).status_code == 401
    assert guarded.post("/events", content=b"{}\n", headers=NDJSON | SHOWN).json()["bad_lines"] == [1]

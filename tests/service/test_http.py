"""Posting and pulling over HTTP, with a service that hands every line on as it is."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx
import pytest
from tests.support.waiting import patience, until

from queryveil.errors import Unreachable
from queryveil.release import ColumnPolicy, Ids
from queryveil.service.http.server import HttpSink, HttpSource
from queryveil.service.ports import Batch, Outgoing, Stats
from queryveil.service.settings import StreamSettings

NDJSON = {"Content-Type": "application/x-ndjson"}
LOCAL = "http://127.0.0.1:0"


def settings() -> StreamSettings:
    return StreamSettings(k=3, l=2, remembered=100, max_outbox_bytes=1000, columns=ColumnPolicy(ids=Ids.KEEP))


@dataclass
class Echo:
    """A service in two threads; `may_take` and `may_commit` hold it up."""

    source: HttpSource
    sink: HttpSink
    batches: list[Batch] = field(default_factory=list)
    settings: StreamSettings = field(default_factory=settings)
    why_not: str = ""
    n_outbox_bytes: int = 0
    n_taken: int = 0
    delivered: int = 0

    def __post_init__(self) -> None:
        self.may_take, self.may_commit, self.is_over = threading.Event(), threading.Event(), threading.Event()
        self.is_held = threading.Event()
        self.may_take.set()
        self.may_commit.set()
        self.outbox: list[Outgoing] = []
        self.source.watch(self)
        self.threads = [threading.Thread(target=self.read), threading.Thread(target=self.hand_over)]

    def stats(self) -> Stats:
        return Stats(is_ready=not self.why_not, why_not=self.why_not, n_outbox_bytes=self.n_outbox_bytes)

    def start(self, *, position: str | None = None, keys: tuple[str, ...] = (), delivered: int = 0) -> Echo:
        self.delivered = delivered
        self.source.open(position=position, keys=keys)
        self.sink.open(delivered=delivered, n_bytes=0)
        for thread in self.threads:
            thread.start()
        return self

    def read(self) -> None:
        numbers = count(self.delivered + 1)
        while not self.is_over.is_set():
            if not self.may_take.is_set():
                self.is_held.set()
                self.may_take.wait(0.05)
                continue
            if (batch := self.source.take(timeout=0.05)) is None:
                continue
            self.n_taken += 1
            while not self.may_commit.wait(0.05) and not self.is_over.is_set():
                pass
            if self.is_over.is_set():
                return
            lines = batch.data.split(b"\n")[:-1]
            bad = [i for i, line in enumerate(lines, start=1) if line.strip() and not line.startswith(b"{")]
            good = b"".join(line + b"\n" for line in lines if line.startswith(b"{"))
            self.batches.append(batch)
            outgoing = Outgoing(number=next(numbers), offset=0, data=good, n_rows=good.count(b"\n"))
            self.outbox.append(outgoing)
            self.sink.offer(outgoing)
            self.source.acknowledge(batch, bad_lines=bad)

    def hold(self) -> None:
        """Take no more until `may_take` is set again."""
        self.is_held.clear()
        self.may_take.clear()
        assert self.is_held.wait(patience())

    @property
    def n_posts(self) -> int:
        """How many posts wait for a batch that takes them."""
        return len(self.source._posts._waiting)

    def hand_over(self) -> None:
        while not self.is_over.is_set():
            if not self.outbox:
                time.sleep(0.01)
                continue
            try:
                self.sink.deliver(self.outbox[0])
            except Unreachable:
                return
            self.delivered = self.outbox.pop(0).number

    def stop(self) -> None:
        if self.is_over.is_set():
            return
        self.is_over.set()
        self.source.close()
        self.sink.close()
        for thread in self.threads:
            thread.join(patience())


@contextmanager
def running(sink: str = LOCAL, **saved: Any) -> Iterator[tuple[Echo, httpx.Client]]:
    service = Echo(HttpSource(LOCAL), HttpSink(sink)).start(**saved)
    with httpx.Client(base_url=f"http://127.0.0.1:{service.source.port}", timeout=patience()) as client:
        yield service, client
    service.stop()


@pytest.fixture
def pair() -> Iterator[tuple[Echo, httpx.Client]]:
    with running() as found:
        yield found


@pytest.fixture
def echo(pair: tuple[Echo, httpx.Client]) -> Echo:
    return pair[0]


@pytest.fixture
def client(pair: tuple[Echo, httpx.Client]) -> httpx.Client:
    return pair[1]


def post(client: httpx.Client, data: bytes, **headers: str) -> httpx.Response:
    return client.post("/events", content=data, headers=NDJSON | {k.replace("_", "-"): v for k, v in headers.items()})


def test_a_post_is_answered_with_what_was_accepted_and_the_numbers_of_its_bad_lines(client: httpx.Client) -> None:
    answer = post(client, b'{"a": 1}\nrubbish\n\n{"a": 2}\r\nworse')
    assert (answer.status_code, answer.json()) == (200, {"accepted": 2, "bad_lines": [2, 5]})
    assert post(client, b"\n \n").json() == {"accepted": 0, "bad_lines": []}


def test_posts_that_wait_are_joined_to_one_batch_and_each_learns_of_its_own_bad_lines(
    echo: Echo, client: httpx.Client
) -> None:
    echo.hold()
    bodies = [b'{"a": 1}\n', b'bad\n{"a": 2}\nbad\n', b'{"a": 3}\nbad']
    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(post, client, body) for body in bodies]
        until(lambda: echo.n_posts == 3)
        assert not any(answer.done() for answer in answers)
        echo.may_take.set()
        found = [answer.result().json() for answer in answers]
    assert found == [
        {"accepted": 1, "bad_lines": []},
        {"accepted": 1, "bad_lines": [1, 3]},
        {"accepted": 1, "bad_lines": [2]},
    ]
    assert len(echo.batches) == 1


def test_no_answer_comes_before_the_commit(echo: Echo, client: httpx.Client) -> None:
    echo.may_commit.clear()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(post, client, b'{"a": 1}\n')
        time.sleep(0.5)
        assert not answer.done()
        echo.may_commit.set()
        assert answer.result().json()["accepted"] == 1


def test_a_key_is_taken_once_also_while_the_first_post_waits(echo: Echo, client: httpx.Client) -> None:
    echo.may_commit.clear()
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(post, client, b'{"a": 1}\n', Idempotency_Key="one") for _ in range(2)]
        time.sleep(0.4)
        echo.may_commit.set()
        found = sorted((answer.result().json() for answer in answers), key=len)
    assert {"accepted": 0, "already": True} in found
    assert {"accepted": 1, "bad_lines": []} in found
    assert post(client, b'{"a": 1}\n', Idempotency_Key="one").json() == {"accepted": 0, "already": True}
    assert b"".join(batch.data for batch in echo.batches) == b'{"a": 1}\n'


def test_a_key_for_another_body_is_refused_rather_than_lost(echo: Echo, client: httpx.Client) -> None:
    post(client, b'{"a": 1}\n', Idempotency_Key="one")
    answer = post(client, b'{"a": 2}\n', Idempotency_Key="one")
    assert answer.status_code == 422
    assert "another body" in answer.json()["error"]
    assert len(echo.batches) == 1


def test_the_keys_of_a_run_before_are_known_and_are_not_kept_in_clear() -> None:
    with running() as (first, client):
        post(client, b'{"a": 1}\n', Idempotency_Key="from anna")
    (batch,) = first.batches
    assert not any("anna" in key for key in batch.keys)
    with running(position=batch.position, keys=batch.keys, delivered=1) as (second, client):
        again = post(client, b'{"a": 1}\n', Idempotency_Key="from anna")
    assert again.json() == {"accepted": 0, "already": True}
    assert second.batches == []


def test_a_client_that_goes_before_the_answer_finds_its_post_by_the_key(echo: Echo, client: httpx.Client) -> None:
    echo.may_commit.clear()
    head = b"POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\nContent-Length: 9\r\n"
    with socket.create_connection(("127.0.0.1", echo.source.port)) as sender:
        sender.sendall(head + b'Idempotency-Key: k\r\n\r\n{"a": 1}\n')
        until(lambda: echo.n_taken)
    echo.may_commit.set()
    assert post(client, b'{"a": 1}\n', Idempotency_Key="k").json() == {"accepted": 0, "already": True}
    assert len(echo.batches) == 1


def test_gzip_bodies_are_read_and_broken_or_huge_ones_refused(client: httpx.Client) -> None:
    body = gzip.compress(b'{"a": 1}\n') + gzip.compress(b'{"a": 2}\n')
    assert post(client, body, Content_Encoding="gzip").json()["accepted"] == 2
    for broken in (b"no gzip", body[:-5], body + b"trash"):
        assert post(client, broken, Content_Encoding="gzip").status_code == 400
    bomb = gzip.compress(b" " * (17 << 20))
    assert len(bomb) < 100_000
    assert post(client, bomb, Content_Encoding="gzip").status_code == 413
    assert post(client, b"x", Content_Encoding="br").status_code == 415


def test_a_body_over_the_limit_is_refused_also_when_its_length_is_not_told(client: httpx.Client) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(18):
            yield b" " * (1 << 20)

    assert post(client, b" " * ((16 << 20) + 1)).status_code == 413
    try:
        assert client.post("/events", content=chunks(), headers=NDJSON).status_code == 413
    except httpx.WriteError:
        # The server answers and hangs up before everything is sent.
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_other_types_are_refused_in_one_line(client: httpx.Client, kind: str) -> None:
    answer = client.post("/events", content=b'{"a": 1}\n', headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert list(answer.json()) == ["error"]
    assert "\n" not in answer.json()["error"]


def test_wrong_paths_methods_and_parameters_are_one_line_of_json(client: httpx.Client) -> None:
    answers = {
        404: client.get("/nosuch"),
        405: client.get("/events"),
        400: client.get("/released", params={"after": "x"}),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        assert answer.json()["error"]
    assert client.get("/released", params={"wait": "1e9"}).status_code == 400
    assert client.get("/released", params={"wait": "nan"}).status_code == 400
    assert client.get("/released", params={"after": "-1"}).status_code == 400
    assert post(client, b"{}\n", Idempotency_Key="x" * 256).status_code == 400


@pytest.mark.slow
def test_what_is_too_much_is_refused_with_a_hint_to_come_back_and_nothing_is_lost(
    echo: Echo, client: httpx.Client
) -> None:
    echo.hold()
    big = b'{"a": "' + b"x" * (15 << 20) + b'"}\n'
    with ThreadPoolExecutor(6) as pool:
        answers = [pool.submit(post, client, big) for _ in range(6)]
        until(lambda: echo.n_posts + sum(answer.done() for answer in answers) == 6)
        echo.may_take.set()
        found = [answer.result() for answer in answers]
    refused = [answer for answer in found if answer.status_code == 503]
    taken = [answer for answer in found if answer.status_code == 200]
    assert refused
    assert all(answer.headers["Retry-After"] == "1" for answer in refused)
    assert len(taken) + len(refused) == 6
    assert sum(batch.data.count(b"\n") for batch in echo.batches) == len(taken)
    assert post(client, big).status_code == 200


def test_a_service_that_is_not_ready_says_so_and_why(echo: Echo, client: httpx.Client) -> None:
    assert client.get("/readyz").json() == {"status": "ready"}
    for echo.why_not, echo.n_outbox_bytes, why in (
        ("the disk is full", 0, "the disk is full"),
        ("", 1001, "picked up"),
    ):
        until(lambda why=why: why in client.get("/readyz").json().get("why", ""))  # type: ignore[misc]
        answer = post(client, b'{"a": 1}\n')
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert why in answer.json()["error"]
        assert client.get("/readyz").status_code == 503
        assert why in client.get("/readyz").json()["why"]
        assert client.get("/healthz").status_code == 200


def test_what_no_batch_takes_in_time_is_given_back(echo: Echo, client: httpx.Client) -> None:
    echo.hold()
    echo.source._server.state.queue_seconds = 0.3
    answer = post(client, b'{"a": 1}\n', Idempotency_Key="one")
    assert (answer.status_code, answer.json()["error"]) == (503, "nothing was taken; send it again later")
    echo.may_take.set()
    assert post(client, b'{"a": 1}\n', Idempotency_Key="one").json() == {"accepted": 1, "bad_lines": []}


def pull(client: httpx.Client, **parameters: Any) -> tuple[int, bytes]:
    answer = client.get("/released", params=parameters)
    assert answer.status_code == 200, answer.text
    return int(answer.headers["Queryveil-Last"]), answer.content


def test_released_lines_are_handed_out_until_the_client_goes_on(echo: Echo, client: httpx.Client) -> None:
    for i in (1, 2, 3):
        post(client, b'{"a": %d}\n' % i)
    assert pull(client) == (3, b'{"a": 1}\n{"a": 2}\n{"a": 3}\n')
    assert pull(client, after=0) == (3, b'{"a": 1}\n{"a": 2}\n{"a": 3}\n')
    assert echo.delivered == 0
    assert pull(client, after=2) == (3, b'{"a": 3}\n')
    assert pull(client, after=3) == (3, b"")
    until(lambda: echo.delivered == 3)
    assert pull(client) == (3, b"")


def test_a_cursor_that_is_gone_or_was_never_handed_out_is_refused(client: httpx.Client) -> None:
    post(client, b'{"a": 1}\n')
    pull(client, after=1)
    gone = client.get("/released", params={"after": 0})
    assert (gone.status_code, "up to 1 was confirmed" in gone.json()["error"]) == (410, True)
    ahead = client.get("/released", params={"after": 2})
    assert (ahead.status_code, "the last batch is 1" in ahead.json()["error"]) == (409, True)


def test_a_long_poll_ends_with_the_first_line_or_with_its_time(client: httpx.Client) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(pull, client, after=0, wait=30)
        time.sleep(0.3)
        assert not waiting.done()
        post(client, b'{"a": 1}\n')
        assert waiting.result(patience()) == (1, b'{"a": 1}\n')
    assert pull(client, after=1, wait=0.2) == (1, b"")


def test_closing_ends_a_long_poll_and_never_counts_as_delivered() -> None:
    with running() as (service, client), ThreadPoolExecutor(1) as pool:
        post(client, b'{"a": 1}\n')
        pull(client, after=1)
        post(client, b'{"a": 2}\n')
        pull(client, after=1)
        waiting = pool.submit(client.get, "/released", params={"after": 1, "wait": 30})
        assert waiting.result(patience()).content == b'{"a": 2}\n'
        until(lambda: service.delivered == 1)
        service.stop()
    assert service.delivered == 1
    assert [outgoing.number for outgoing in service.outbox] == [2]


def test_a_long_poll_under_way_is_answered_when_the_service_stops() -> None:
    with running() as (service, client), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(pull, client, after=0, wait=30)
        time.sleep(0.3)
        service.stop()
        assert waiting.result(patience()) == (0, b"")


def test_source_and_sink_may_stand_at_two_addresses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    with running(f"http://127.0.0.1:{free}") as (service, client):
        assert service.source.port != service.sink.port
        assert client.get("/released").status_code == 404
        assert httpx.post(f"http://127.0.0.1:{free}/events", headers=NDJSON).status_code == 404
        post(client, b'{"a": 1}\n')
        assert httpx.get(f"http://127.0.0.1:{free}/released").content == b'{"a": 1}\n'


def test_answers_do_not_wait_for_the_clients_acknowledgement(echo: Echo) -> None:
    listening = echo.source._server._socket
    assert listening is not None
    assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

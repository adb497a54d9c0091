"""What clients may take of the HTTP server: whoever is slow, many or malformed goes, and others are answered."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException
from tests.support.waiting import patience, until

from queryveil.errors import BadParameter
from queryveil.service.http.addresses import Address, HttpLimits
from queryveil.service.http.requests import TokenBrake, Unpacker, as_lines
from queryveil.service.http.server import HttpSink, HttpSource
from queryveil.service.ports import Outgoing

NDJSON = {"Content-Type": "application/x-ndjson"}
TOKEN = b"made-up-token-0123456789"
HEAD = b"POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"
EMPTY_MEMBER = gzip.compress(b"")


class Committing:
    """A service that commits all that is posted, while `may_commit` is set."""

    def __init__(self, **limits: Any) -> None:
        address = Address(port=0, limits=HttpLimits(**limits))
        self.source, self.sink = HttpSource(address), HttpSink(address)
        self.may_commit, self.is_over = threading.Event(), threading.Event()
        self.may_commit.set()
        self.taken: list[bytes] = []
        self.thread = threading.Thread(target=self._commit)

    def _commit(self) -> None:
        while not self.is_over.is_set():
            batch = self.source.take(timeout=0.02)
            if batch is not None:
                self.may_commit.wait(patience())
                self.taken.append(batch.data)
                self.source.acknowledge(batch, bad_lines=())

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"http://127.0.0.1:{self.source.port}", timeout=patience())

    def connect(self, sent: bytes = b"", *, of: str = "127.0.0.1") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.source.port), source_address=(of, 0), timeout=patience())
        made.sendall(sent)
        return made

    @property
    def n_connections(self) -> int:
        server = self.source._server._uvicorn
        assert server is not None
        return server._connections._n


@contextmanager
def serving(**limits: Any) -> Iterator[Committing]:
    service = Committing(**limits)
    service.source.open(position=None, keys=())
    service.sink.open(delivered=0, n_bytes=0)
    service.thread.start()
    try:
        yield service
    finally:
        service.may_commit.set()
        service.is_over.set()
        service.source.close()
        service.sink.close()
        service.thread.join(patience())


def post(client: httpx.Client, data: bytes = b"{}\n", **headers: str) -> httpx.Response:
    return client.post("/events", content=data, headers=NDJSON | {k.replace("_", "-"): v for k, v in headers.items()})


def answer_of(connection: socket.socket) -> bytes:
    """Return all that comes until the other side hangs up."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def test_a_head_that_does_not_end_is_given_up_on() -> None:
    with serving(header_seconds=0.2) as service, service.connect(b"POST /events HTT") as slow:
        assert answer_of(slow).startswith(b"HTTP/1.1 408 ")


def test_a_head_that_does_not_end_between_two_requests_is_given_up_on_too() -> None:
    with serving(header_seconds=0.3) as service, service.connect() as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HT")
        assert b"408" in answer_of(slow)


def test_a_body_that_does_not_end_is_given_up_on_and_nothing_of_it_is_taken() -> None:
    with serving(body_seconds=0.2) as service, service.connect(HEAD + b"Content-Length: 99\r\n\r\n{}\n") as slow:
        found = answer_of(slow)
        assert found.startswith(b"HTTP/1.1 408 ")
        assert found.endswith(b'{"error":"the body came too slowly; send smaller batches"}')
        assert service.taken == []


def test_who_was_refused_and_goes_on_sending_is_hung_up_on() -> None:
    with serving(body_seconds=0.2) as service, service.connect() as slow:
        slow.sendall(b"POST /nosuch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{}\n")
        assert answer_of(slow).startswith(b"HTTP/1.1 404 ")


def test_a_head_that_is_too_long_is_refused() -> None:
    with serving(max_header_bytes=2048) as service, service.connect(HEAD + b"X: " + b"x" * 4096) as long:
        assert answer_of(long).startswith(b"HTTP/1.1 400 ")


def test_however_many_wait_with_half_a_head_others_are_answered() -> None:
    with serving(max_connections=20, max_per_address=10) as service, ExitStack() as many, service.client() as client:
        assert post(client).status_code == 200
        for _ in range(60):
            many.enter_context(service.connect(b"POST /ev"))
        assert post(client).status_code == 200
        with service.client() as another:
            assert post(another).status_code == 200
        assert service.n_connections <= 10


def test_one_address_cannot_take_the_connections_of_another() -> None:
    with serving(max_connections=12, max_per_address=10) as service, ExitStack() as many, service.client() as client:
        assert post(client).status_code == 200
        for i in range(40):
            many.enter_context(service.connect(HEAD[:9], of=f"127.0.0.{2 + i % 2}"))
        assert service.n_connections <= 12
        # The same connection as before: the largest address makes room, not this one.
        server = service.source._server._uvicorn
        assert server is not None
        assert "127.0.0.1" in server._connections._by_address
        assert post(client).status_code == 200
        with service.client() as another:
            assert post(another).status_code == 200


def test_a_request_at_work_is_never_ended_for_a_newcomer() -> None:
    with serving(max_connections=3, max_per_address=3) as service, ExitStack() as many:
        service.may_commit.clear()
        body = HEAD + b"Content-Length: 3\r\nConnection: close\r\n\r\n{}\n"
        working = [many.enter_context(service.connect(body)) for _ in range(3)]
        until(lambda: service.source._server.state.at_work["/events"] == 3)
        with service.connect(HEAD) as late:
            assert answer_of(late)[:13] in (b"", b"HTTP/1.1 503 ")
        service.may_commit.set()
        assert all(answer_of(each).startswith(b"HTTP/1.1 200 ") for each in working)


def test_requests_beyond_those_at_work_are_asked_to_come_back() -> None:
    with serving(max_requests=2) as service, ExitStack() as many, service.client() as client:
        service.may_commit.clear()
        body = HEAD + b"Content-Length: 3\r\nConnection: close\r\n\r\n{}\n"
        working = [many.enter_context(service.connect(body)) for _ in range(2)]
        until(lambda: service.source._server.state.at_work["/events"] == 2)
        refused = post(client)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert refused.json() == {"error": "too many requests at once; send it again later"}
        assert client.get("/released").status_code == 200
        service.may_commit.set()
        assert all(answer_of(each).startswith(b"HTTP/1.1 200 ") for each in working)
        assert post(client).status_code == 200


def test_those_who_wait_for_lines_do_not_take_the_place_of_posts() -> None:
    with serving(max_per_address=30) as service, ExitStack() as many, service.client() as client:
        wait = b"GET /released?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for _ in range(60):
            many.enter_context(service.connect(wait))
        until(lambda: service.source._server.state.requests["/released", 503])
        assert service.source._server.state.at_work["/released"] == 16
        assert post(client).status_code == 200


def test_bodies_that_stand_still_give_their_memory_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queryveil.service.http.requests._SLOW_SECONDS", 0.1)
    with serving() as service, ExitStack() as many, service.client() as client:
        service.source._posts._max_waiting_bytes = 100_000
        many.enter_context(service.connect(HEAD + b"Content-Length: 99999\r\n\r\n" + b" " * 99_998))
        until(lambda: service.source._posts._n_held_bytes >= 99_998)
        until(lambda: post(client, b"{}\n" * 100).status_code == 200)


def test_who_does_not_read_an_answer_is_hung_up_on() -> None:
    with serving(body_seconds=0.2) as service:
        lines = b"x" * (64 << 20)
        service.sink.offer(Outgoing(number=1, offset=0, data=lines, n_rows=1))
        with service.connect(b"GET /released HTTP/1.1\r\nHost: localhost\r\n\r\n") as idle:
            until(lambda: service.source._server.state.requests["/released", 200])
            until(lambda: service.n_connections == 0)
            assert len(answer_of(idle)) < len(lines)


def test_content_length_with_transfer_encoding_is_refused_and_what_follows_is_not_read() -> None:
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    both = b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with serving() as service, service.connect(HEAD + both + smuggled) as sender:
        found = answer_of(sender)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.endswith(b'{"error":"send Content-Length or Transfer-Encoding, not both"}')
    assert service.taken == []


def test_a_body_in_very_many_small_pieces_is_refused() -> None:
    with serving() as service, service.connect(HEAD + b"Transfer-Encoding: chunked\r\n\r\n") as sender:
        # The sender hears of it by an answer or as an error, as it happens to be sending.
        with suppress(OSError):
            sender.sendall(b"1\r\n \r\n" * 5000)
        found = answer_of(sender)
        assert found == b"" or found.startswith(b"HTTP/1.1 400 ")
        assert service.taken == []


def test_small_pieces_in_reasonable_number_are_taken() -> None:
    with serving() as service, service.client() as client:
        answer = client.post("/events", content=(b"{}\n" for _ in range(2000)), headers=NDJSON)
        assert answer.json()["accepted"] == 2000


def unzip(data: bytes, *, part_bytes: int = 1 << 16, **limits: Any) -> bytes | tuple[int, str]:
    """Unpack a body that comes in parts, or return why it is refused."""
    unpacker = Unpacker(HttpLimits(**limits))
    try:
        found = b"".join(unpacker.add(data[i : i + part_bytes]) for i in range(0, len(data), part_bytes))
        unpacker.finish()
    except HTTPException as error:
        return error.status_code, error.detail
    return found


@pytest.mark.slow
def test_gzip_has_a_limit_of_members_and_takes_time_in_proportion_to_its_size() -> None:
    # As many as fit into a body: with a copy of the rest for each, this takes minutes.
    found = unzip(EMPTY_MEMBER * 838_860, part_bytes=16 << 20, max_gzip_members=100_000)
    assert found == (413, "a gzip body may have 100,000 members; compress it as one")
    members = [b'{"a": %d}\n' % i for i in range(900)]
    packed = b"".join(map(gzip.compress, members))
    for part_bytes in (7, 1000, 1 << 20):
        assert unzip(packed, part_bytes=part_bytes) == b"".join(members)


def test_gzip_that_unpacks_to_too_much_or_too_many_times_its_size_is_refused() -> None:
    blank = gzip.compress(b" " * (3 << 20))
    assert unzip(blank) == (413, "a gzip body may unpack to 200 times its size; send it as it is")
    assert unzip(blank, max_gzip_ratio=2000) == b" " * (3 << 20)
    large = unzip(gzip.compress(b" " * (17 << 20)), max_gzip_ratio=2000)
    assert large == (413, "a body may have 16,777,216 bytes, also when unpacked; send smaller batches")
    assert unzip(gzip.compress(b" " * 1_000_000)) == b" " * 1_000_000


@pytest.mark.parametrize("size", [1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_gzip_of_any_size_is_unpacked_as_a_whole(size: int) -> None:
    data = bytes(i * 7 % 251 for i in range(4096)) * (size // 4096 + 1)
    packed = gzip.compress(data[:size])
    broken = (400, "the body is not gzip, ends too early or is empty; compress it again")
    for part_bytes in (100, 1 << 16):
        assert unzip(packed, part_bytes=part_bytes, max_gzip_ratio=2000) == data[:size]
        assert unzip(packed[:-1], part_bytes=part_bytes, max_gzip_ratio=2000) == broken


def test_unpacking_stops_when_the_service_does() -> None:
    times = iter([False, False, True])
    unpacker = Unpacker(HttpLimits(), is_over=lambda: next(times))
    with pytest.raises(HTTPException, match="503: the service is stopping; send it again later"):
        unpacker.add(EMPTY_MEMBER * 500)
    assert next(times, None) is None


def test_hostile_gzip_is_refused_before_the_rest_of_it_has_come() -> None:
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: 16000000\r\n\r\n"
    with serving(body_seconds=0.5) as service, service.connect(head + EMPTY_MEMBER * 2000) as sender:
        assert answer_of(sender).startswith(b"HTTP/1.1 413 ")


def test_a_body_with_too_many_lines_is_refused() -> None:
    with serving(max_lines=10) as service, service.client() as client:
        assert post(client, b"{}\n" * 11).status_code == 413
        assert post(client, gzip.compress(b"\n" * 11), Content_Encoding="gzip").status_code == 413
        assert post(client, b"{}\n" * 10).json()["accepted"] == 10
    assert as_lines(b"").n_events == 0


def test_limits_outside_of_their_range_are_refused_by_name() -> None:
    wrong: dict[str, Any] = {"max_connections": 0, "header_seconds": 0.0, "max_gzip_ratio": 1, "wrong_tokens": 0}
    for name, value in wrong.items():
        with pytest.raises(BadParameter, match=f"^{name} must be "):
            HttpLimits(**{name: value})


def test_wrong_tokens_make_an_address_wait_longer_and_longer_and_no_other() -> None:
    now = [0.0]
    brake = TokenBrake(3, clock=lambda: now[0])
    pauses = []
    for _ in range(12):
        now[0] += brake.seconds_left("a")
        brake.note("a", is_right=False)
        pauses.append(brake.seconds_left("a"))
    assert pauses == [0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    assert brake.seconds_left("b") == 0
    now[0] += 700
    brake.note("a", is_right=False)
    assert brake.seconds_left("a") == 0


def test_an_address_that_has_shown_the_right_token_is_never_kept_waiting() -> None:
    brake = TokenBrake(3, clock=lambda: 0.0)
    brake.note("proxy", is_right=True)
    for _ in range(50):
        brake.note("proxy", is_right=False)
    assert brake.seconds_left("proxy") == 0


def test_the_memory_of_wrong_tokens_does_not_grow() -> None:
    brake = TokenBrake(1, clock=lambda: 0.0)
    for i in range(30_000):
        brake.note(f"address {i}", is_right=i % 2 == 0)
    assert len(brake._wrong) == len(brake._known) == 10_000


def asked(port: int, *, of: str, token: str) -> int:
    transport = httpx.HTTPTransport(local_address=of)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", transport=transport, timeout=patience()) as client:
        return client.get("/released", headers={"Authorization": f"Bearer {token}"}).status_code


def test_guessing_is_braked_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine a second passes between two requests, and the pause is over.
    monkeypatch.setattr("queryveil.service.http.requests.TokenBrake", partial(TokenBrake, clock=lambda: 0.0))
    address = Address(port=0, token=TOKEN, limits=HttpLimits(wrong_tokens=5))
    sink = HttpSink(address)
    sink.open(delivered=0, n_bytes=0)
    try:
        found = [asked(sink.port, of="127.0.0.2", token=f"guess-{i}") for i in range(8)]
        assert found == [401] * 5 + [429] * 3
        # The address has to wait now, whatever it shows.
        assert asked(sink.port, of="127.0.0.2", token=TOKEN.decode()) == 429
        assert asked(sink.port, of="127.0.0.3", token=TOKEN.decode()) == 200
        with httpx.Client(base_url=f"http://127.0.0.1:{sink.port}", timeout=patience()) as client:
            # Who shows none has not guessed.
            assert {client.get("/released").status_code for _ in range(20)} == {401}
    finally:
        sink.close()

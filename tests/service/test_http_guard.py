"""Who may ask what over HTTP, and what every answer carries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.support.waiting import patience

from queryveil.errors import BadParameter
from queryveil.service.http._metrics import render
from queryveil.service.http.addresses import Address, find_token
from queryveil.service.http.server import HttpSink, HttpSource
from queryveil.service.ports import Histogram, Stats

TOKEN = b"made-up-token-0123456789"
EVERY_PATH = ("/", "/page.css", "/page.js", "/charts.js", "/icon.svg", "/healthz", "/readyz", "/metrics", "/stats",
              "/example", "/events", "/released", "/nosuch")  # fmt: skip


@contextmanager
def listening(address: Address) -> Iterator[httpx.Client]:
    """Listen without a service behind: a post that passes the guard is given back at once."""
    source, sink = HttpSource(address), HttpSink(address)
    source._server.state.queue_seconds = 0.05
    source.open(position=None, keys=())
    sink.open(delivered=0, n_bytes=0)
    with httpx.Client(base_url=f"http://127.0.0.1:{source.port}", timeout=patience()) as client:
        yield client
    source.close()
    sink.close()


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with listening(Address(port=0)) as found:
        yield found


@pytest.fixture
def guarded() -> Iterator[httpx.Client]:
    with listening(Address(port=0, token=TOKEN)) as found:
        yield found


def post(client: httpx.Client, **headers: str) -> int:
    given = {"Content-Type": "application/x-ndjson"} | {name.replace("_", "-"): text for name, text in headers.items()}
    return client.post("/events", content=b"{}\n", headers=given).status_code


def test_with_a_token_posting_and_pulling_need_it(guarded: httpx.Client) -> None:
    right = {"Authorization": f"Bearer {TOKEN.decode()}"}
    wrong = ["", "Bearer", "Bearer wrong", f"Basic {TOKEN.decode()}", f"Bearer {TOKEN.decode()}x", TOKEN.decode()]
    for text in wrong:
        assert post(guarded, Authorization=text) == 401
        answer = guarded.get("/released", headers={"Authorization": text})
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert TOKEN.decode() not in answer.text
    assert post(guarded, **right) == 503
    assert guarded.get("/released", headers=right).status_code == 200


def test_health_metrics_and_the_page_need_no_token(guarded: httpx.Client) -> None:
    for path in ("/", "/healthz", "/metrics", "/stats"):
        assert guarded.get(path).status_code == 200


def test_other_machines_may_not_reach_a_service_without_a_token() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "search.example"):
        for kind in (HttpSource, HttpSink):
            with pytest.raises(BadParameter, match=r"no token; name one with --token FILE or in QUERYVEIL_TOKEN"):
                kind(Address(host=host, port=0))
    Address(host="0.0.0.0", port=0, token=TOKEN).check_has_token()


def test_a_name_that_was_bent_to_this_machine_is_turned_away(client: httpx.Client) -> None:
    for path in EVERY_PATH:
        answer = client.get(path, headers={"Host": "evil.example:8080"})
        assert answer.status_code == 421
        assert answer.json() == {"error": "this service answers to localhost and 127.0.0.1 only"}
    for host in ("localhost:1", "127.0.0.1", "[::1]:8080"):
        assert client.get("/healthz", headers={"Host": host}).status_code == 200
    for host in ("localhost.evil.example", "127.0.0.1.evil.example", "[", "@127.0.0.1@x"):
        assert client.get("/healthz", headers={"Host": host}).status_code in (400, 421)


def test_pages_of_other_sites_can_neither_post_nor_confirm(client: httpx.Client) -> None:
    for site in ("cross-site", "same-site"):
        assert post(client, Sec_Fetch_Site=site) == 403
        assert client.get("/released?after=0", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert post(client, Origin="https://evil.example") == 403
    assert post(client, Origin="null") == 403
    assert post(client, Sec_Fetch_Site="same-origin") == 503
    preflight = client.options("/events", headers={"Origin": "https://evil.example"})
    assert preflight.status_code == 403
    assert not any(name.startswith("access-control") for name in preflight.headers)


def test_every_answer_carries_the_security_headers(client: httpx.Client) -> None:
    for path in EVERY_PATH:
        headers = client.get(path).headers
        assert "default-src 'none'; script-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert "server" not in headers


def test_the_page_needs_nothing_from_elsewhere_and_has_no_script_or_style_within(client: httpx.Client) -> None:
    page = client.get("/").text
    assert re.findall(r"<script(?![^>]*src=)", page) == []
    assert re.findall(r"<style|style=|\son\w+=", page) == []
    for path in ("/", "/page.css", "/page.js", "/charts.js"):
        assert re.findall(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)\w+\.\w+", client.get(path).text) == []
    for name in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert client.get(f"/{name}").status_code == 200


def test_a_fault_inside_is_one_line_without_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("quoting the query kestrel")

    monkeypatch.setattr("queryveil.service.http._metrics.render", fail)
    with listening(Address(port=0)) as client:
        answer = client.get("/metrics")
    assert (answer.status_code, answer.json()) == (500, {"error": "a fault of queryveil itself (RuntimeError)"})


def test_a_token_is_read_without_the_blanks_around_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b" " + TOKEN + b"\n")
    assert find_token(file) == TOKEN
    assert TOKEN.decode() not in repr(Address(token=TOKEN))


SAMPLE = re.compile(r'^queryveil_[a-z_]+(\{[a-z]+="(?:[^"\\\n]|\\.)*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+$')


def test_every_line_of_the_metrics_is_in_the_text_format_and_every_family_is_explained() -> None:
    stats = Stats(n_read=7, waiting={'a "b"\\': 3}, identifiers={"phone": 2}, latency=Histogram().with_one(0.02))
    lines = render(stats, requests={("/events", 200): 1}, post_seconds=Histogram()).splitlines()
    explained: dict[str, str] = {}
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            explained[name] = kind
            assert kind in ("counter", "gauge", "histogram")
        elif not line.startswith("# HELP "):
            assert SAMPLE.match(line), line
            name = re.split(r"[{ ]", line)[0]
            assert name in explained or re.sub("_(bucket|sum|count)$", "", name) in explained
            assert (explained.get(name) == "counter") == name.endswith("_total")
    assert "queryveil_events_read_total 7" in lines
    assert r'queryveil_pool_events{category="a \"b\"\\"} 3' in lines
    assert 'queryveil_batch_seconds_bucket{le="0.025"} 1' in lines
    assert 'queryveil_batch_seconds_bucket{le="0.01"} 0' in lines
    assert 'queryveil_batch_seconds_bucket{le="+Inf"} 1' in lines
    assert 'queryveil_http_requests_total{path="/events",code="200"} 1' in lines

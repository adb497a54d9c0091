"""Where the service listens, and what a monitor shows."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from tests.support.waiting import patience

from queryveil.errors import BadFile, BadParameter
from queryveil.release import ColumnPolicy, Ids
from queryveil.service.http.addresses import Address
from queryveil.service.http.server import HttpSink, HttpSource, serve_monitor
from queryveil.service.ports import Stats
from queryveil.service.settings import StreamSettings


def settings() -> StreamSettings:
    return StreamSettings(k=3, l=2, remembered=100, max_outbox_bytes=1000, columns=ColumnPolicy(ids=Ids.KEEP))


@dataclass
class Quiet:
    """A service to which nothing happens."""

    settings: StreamSettings = field(default_factory=settings)

    def stats(self) -> Stats:
        return Stats(is_ready=True)


def test_an_address_that_cannot_be_listened_at_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        source = HttpSource(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(BadParameter, match="one that no other program uses"):
            source.open(position=None, keys=())
        source.close()
    with pytest.raises(BadParameter, match="an address of this machine"):
        HttpSource(Address(host="192.0.2.1", port=0, token=b"x" * 16)).open(position=None, keys=())
    for url in (
        "http://127.0.0.1",
        "http://127.0.0.1:99999",
        "http://a:secret@127.0.0.1:1",
        "http://127.0.0.1:1/x?y=1",
    ):
        with pytest.raises(BadParameter) as refused:
            HttpSource(url)
        assert "secret" not in str(refused.value)
    short = tmp_path / "token"
    short.write_text("short\n")
    with pytest.raises(BadFile, match="at least 16"):
        HttpSource(f"http://127.0.0.1:1?token={short}")


def test_two_sources_at_one_address_are_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    first = HttpSource(url)
    with pytest.raises(BadParameter, match="address must be another for each source"):
        HttpSource(url)
    assert HttpSink(url).port == first.port


def test_a_monitor_shows_counts_and_takes_nothing() -> None:
    service = Quiet()
    # A port that was free a moment ago.
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    with (
        serve_monitor(service, Address(port=free)) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=patience()) as client,
    ):
        assert client.get("/metrics").text.startswith("# HELP queryveil_events_read_total")
        promise = client.get("/stats").json()["promise"]
        assert promise == {"k": 3, "l": 2, "in_words": service.settings.promise.in_words()}
        assert client.get("/readyz").json() == {"status": "ready"}
        for path in ("/", "/events", "/released", "/page.js"):
            assert client.get(path).status_code == 404


WITHOUT_STARLETTE = """
import sys
sys.modules["starlette"] = None
from queryveil.errors import MissingExtra
from queryveil.service import open_source
try:
    open_source("http://127.0.0.1:0")
except MissingExtra as error:
    print(error)
"""


@pytest.mark.slow
def test_without_the_extra_the_way_to_install_it_is_said() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_STARLETTE], capture_output=True, text=True, check=True)
    assert done.stdout == "HTTP needs an extra: pip install 'queryveil[service]'\n"

"""Events that are posted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from queryveil.service.http.guard import Address
from queryveil.service.http.intake import Intake
from queryveil.service.http.outlet import Outlet
from queryveil.service.http.server import Server
from queryveil.service.http.watched import Service
from queryveil.service.ports import Batch, Outgoing


class HttpSource:
    """Lines of POST /events, at `http://HOST:PORT` or `http://HOST:PORT?token=FILE`.

    A post is answered once it is committed. One that is sent again with its `Idempotency-Key` is taken once; without a
    key, whoever sends again after a lost answer may bring the same events twice.
    """

    name = "http"
    """What a store knows it by: another port is still the same source."""

    def __init__(self, url: str | Address, *, tell: Callable[[str], None] = lambda _: None) -> None:
        address = url if isinstance(url, Address) else Address.parse(url)
        self._intake = Intake()
        self._server = Server.at(address, intake=self._intake)
        self._tell = tell
        self._is_open = False

    @property
    def port(self) -> int:
        """The port that is listened at."""
        return self._server.port

    def watch(self, service: Service) -> None:
        """Show this service's stats at the same address."""
        self._server.watch(service)

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:
        """Listen."""
        self._intake.open(position=position, keys=keys)
        self._server.open()
        self._is_open = True
        self._tell(f"listening at {self._server.url}")

    def take(self, *, timeout: float) -> Batch | None:
        """Return what was posted, several posts together."""
        return self._intake.take(timeout=timeout)

    @property
    def is_finished(self) -> bool:
        """Somebody may always post."""
        return False

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:
        """Answer the posts of a batch."""
        self._intake.settle(batch, bad_lines=bad_lines)

    def close(self) -> None:
        """Take nothing more, and stop listening once everybody has an answer."""
        self._intake.close()
        if self._is_open:
            self._is_open = False
            self._server.close()


class HttpSink:
    """Lines of GET /released?after=N, at `http://HOST:PORT` or `http://HOST:PORT?token=FILE`.

    A batch is delivered once a client has asked for what comes after it.
    """

    name = "http"
    """What a store knows it by: another port is still the same sink."""

    def __init__(self, url: str | Address) -> None:
        address = url if isinstance(url, Address) else Address.parse(url)
        self._outlet = Outlet()
        self._server = Server.at(address, outlet=self._outlet)
        self._is_open = False

    @property
    def port(self) -> int:
        """The port that is listened at."""
        return self._server.port

    def watch(self, service: Service) -> None:
        """Show this service's stats at the same address."""
        self._server.watch(service)

    def open(self, *, delivered: int, n_bytes: int) -> None:  # noqa: ARG002 - clients count batches, not bytes
        """Listen."""
        self._outlet.open(delivered=delivered)
        self._server.open()
        self._is_open = True

    def offer(self, outgoing: Outgoing) -> None:
        """Let a client read ahead: a batch that is committed, before it is its turn to be delivered."""
        self._outlet.offer(outgoing)

    def deliver(self, outgoing: Outgoing) -> None:
        """Return when a client has confirmed the batch."""
        self._outlet.offer(outgoing)
        self._outlet.wait_for(outgoing.number)

    def close(self) -> None:
        """End every wait, and stop listening."""
        self._outlet.close()
        if self._is_open:
            self._is_open = False
            self._server.close()

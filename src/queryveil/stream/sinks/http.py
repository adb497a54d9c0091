"""Released events that are pulled."""

from __future__ import annotations

from queryveil.stream.http.addresses import Address
from queryveil.stream.http.outlet import Outlet
from queryveil.stream.http.server import Server
from queryveil.stream.http.watched import Service
from queryveil.stream.ports import Outgoing


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

"""Health, readiness, metrics and stats of a service that reads from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from queryveil.stream.http.addresses import Address
from queryveil.stream.http.server import Server
from queryveil.stream.http.watched import Service


@contextmanager
def serve_monitor(service: Service, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """Answer /healthz, /readyz, /metrics and /stats while the block runs; gives the port.

    They hold counts only, so any host may be named and there is no token.
    """
    server = Server.at(Address(host=host, port=port))
    server.watch(service)
    server.open()
    try:
        yield server.port
    finally:
        server.close()

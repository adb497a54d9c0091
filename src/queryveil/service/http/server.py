"""A server in a thread of its own, shared by a source and a sink at one address."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from weakref import WeakValueDictionary

from queryveil.errors import BadParameter, MissingExtra
from queryveil.service.http.guard import Address
from queryveil.service.http.intake import Intake
from queryveil.service.http.outlet import Outlet
from queryveil.service.http.watched import Service

try:
    import uvicorn

    from queryveil.service.http.app import Front, build_app
except ImportError:
    uvicorn = None  # type: ignore[assignment]

_GRACE_SECONDS = 5
_BACKLOG = 1024
_lock = Lock()
_servers: WeakValueDictionary[tuple[str, int], Server] = WeakValueDictionary()


class Server:
    """Listens at one address, from the first `open` to the last `close`."""

    def __init__(self, address: Address) -> None:
        if uvicorn is None:
            raise MissingExtra("HTTP", extra="service")
        self.front = Front(address=address)
        self._n_users = 0
        self._is_spent = False
        self._socket: socket.socket | None = None
        self._running: _Running | None = None
        self._lock = Lock()

    @classmethod
    def at(cls, address: Address, *, intake: Intake | None = None, outlet: Outlet | None = None) -> Server:
        """Return the server at this address, one for a source and a sink there, and put something behind its routes."""
        if intake is not None or outlet is not None:
            address.check_is_guarded()
        with _lock:
            server = _servers.get((address.host, address.port))
            if server is None or server._is_spent or (address.port == 0 and server._is_taken(intake, outlet)):
                server = _servers[address.host, address.port] = cls(address)
            if address.token != server.front.address.token:
                raise BadParameter("token", "two different ones", allowed="the same for source and sink")
            if server._is_taken(intake, outlet):
                raise BadParameter("address", f"{address.host}:{address.port} twice", allowed="another for each source")
            server.front.intake, server.front.outlet = intake or server.front.intake, outlet or server.front.outlet
            return server

    def _is_taken(self, intake: Intake | None, outlet: Outlet | None) -> bool:
        front = self.front
        return (intake is not None and front.intake is not None) or (outlet is not None and front.outlet is not None)

    def watch(self, service: Service) -> None:
        """Show this service's stats."""
        self.front.watched.service = service

    @property
    def port(self) -> int:
        """The port, also where any free one was asked for."""
        return self.front.address.port if self._socket is None else int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """Where a client on this machine finds it."""
        host = self.front.address.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def open(self) -> None:
        """Listen, if nobody has asked for it before."""
        with self._lock:
            if self._running is None:
                self._socket = _listen(self.front.address)
                self._running = _Running(self.front, listening=self._socket)
            self._n_users += 1

    def close(self) -> None:
        """Stop, if nobody else needs it: requests under way are answered first."""
        with self._lock:
            self._n_users -= 1
            if self._n_users == 0 and self._running is not None:
                self._is_spent = True
                self._running.stop(intake=self.front.intake)


class _Running:
    """uvicorn in a thread; signals stay with the main program."""

    def __init__(self, front: Front, *, listening: socket.socket) -> None:
        config = uvicorn.Config(
            build_app(front),
            log_config=None,
            log_level="critical",  # Privacy: a traceback of a library may quote a request
            access_log=False,
            lifespan="off",
            server_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, args=([listening],), name="queryveil-http", daemon=True)
        self._thread.start()

    def stop(self, *, intake: Intake | None) -> None:
        self._server.should_exit = True
        self._thread.join(_GRACE_SECONDS - 1)
        if intake is not None and self._thread.is_alive():
            intake.give_up()
        self._thread.join(_GRACE_SECONDS)


def _listen(address: Address) -> socket.socket:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
        # Connections inherit it. Without, every answer waits 40 ms for the client's acknowledgement of its head.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except socket.gaierror:
        raise BadParameter("host", address.host, allowed="an address of this machine") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise BadParameter("port", address.port, allowed="one that no other program uses") from None
        if error.errno == errno.EACCES:
            raise BadParameter("port", address.port, allowed="one that this user may open, 1024 or more") from None
        raise BadParameter("host", address.host, allowed="an address of this machine") from None
    return listening


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

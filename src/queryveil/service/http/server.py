"""The HTTP server, shared by a source and a sink at one address."""

import errno
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any
from weakref import WeakValueDictionary

from queryveil.errors import BadParameter, MissingExtra
from queryveil.service.http._queues import PostQueue, ReleasedQueue
from queryveil.service.http.addresses import Address, HttpLimits
from queryveil.service.ports import Batch, Monitored, Outgoing, Sink, Source

try:
    import uvicorn

    from queryveil.service.http._app import AppState, build_app
    from queryveil.service.http._connections import Connections, GuardedServer, fit_to_files
except ImportError:
    uvicorn = None  # type: ignore[assignment]

_GRACE_SECONDS = 5
_BACKLOG = 1024
_lock = Lock()
_servers: WeakValueDictionary[tuple[str, int], "Server"] = WeakValueDictionary()


class Server:
    """Listens at one address, from the first `open` to the last `close`."""

    def __init__(self, address: Address) -> None:
        if uvicorn is None:
            raise MissingExtra("HTTP", extra="service")
        self.state = AppState(address=address)
        self._users: set[object] = set()
        self._is_spent = False
        self._socket: socket.socket | None = None
        self._uvicorn: GuardedServer | None = None
        self.max_connections = address.limits.max_connections
        self._thread: Thread | None = None
        self._lock = Lock()

    @classmethod
    def at(cls, address: Address, *, posts: PostQueue | None = None, released: ReleasedQueue | None = None) -> "Server":
        """Return the server at this address, one for a source and a sink there, and put something behind its routes."""
        address.check_has_token()
        with _lock:
            server = _servers.get((address.host, address.port))
            if server is None or server._is_spent or (address.port == 0 and server._is_taken(posts, released)):
                server = _servers[address.host, address.port] = cls(address)
            before = server.state.address
            if (address.token, address.tls) != (before.token, before.tls):
                raise BadParameter("token", "two different ones", allowed="the same for source and sink, as for TLS")
            if server._is_taken(posts, released):
                raise BadParameter("address", f"{address.host}:{address.port} twice", allowed="another for each source")
            state = server.state
            state.posts, state.released = posts or state.posts, released or state.released
            return server

    def _is_taken(self, posts: PostQueue | None, released: ReleasedQueue | None) -> bool:
        return bool((posts and self.state.posts) or (released and self.state.released))

    @property
    def port(self) -> int:
        """The port, also where any free one was asked for."""
        return self.state.address.port if self._socket is None else int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """Where a client on this machine finds it."""
        host = self.state.address.host
        scheme = "http" if self.state.address.tls is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def open(self, user: object) -> None:
        """Listen, if nobody has asked for it before."""
        with self._lock:
            if self._uvicorn is None:
                address = self.state.address
                tls = None if address.tls is None else address.tls.context()
                self._socket = _listen(address)
                self.max_connections = fit_to_files(address.limits.max_connections)
                connections = Connections(address.limits, most=self.max_connections)
                config = _config(self.state)
                self._uvicorn = GuardedServer(config, listening=self._socket, connections=connections, tls=tls)
                # In a thread, where signals stay with the main program.
                self._thread = Thread(target=self._uvicorn.run, name="queryveil-http", daemon=True)
                self._thread.start()
            self._users.add(user)

    def close(self, user: object) -> None:
        """Stop, if nobody else needs it: requests under way are answered first."""
        with self._lock:
            is_last = self._users == {user}
            self._users.discard(user)
            if is_last and self._uvicorn is not None and self._thread is not None:
                self._is_spent = self._uvicorn.should_exit = True
                self._thread.join(_GRACE_SECONDS - 1)
                if self.state.posts is not None and self._thread.is_alive():
                    self.state.posts.abandon()
                self._thread.join(_GRACE_SECONDS)


def _config(state: "AppState") -> "uvicorn.Config":
    return uvicorn.Config(
        build_app(state),
        log_config=None,
        log_level="critical",  # Privacy: a traceback of a library may quote a request
        access_log=False,
        lifespan="off",
        server_header=False,
        http="h11",
        proxy_headers=False,  # whoever connects could say to be another
        timeout_keep_alive=state.address.limits.idle_seconds,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ws="none",
    )


def _listen(address: Address) -> socket.socket:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
        # Connections inherit it. Without, every answer waits 40 ms for the client's acknowledgement of its head.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise BadParameter("port", address.port, allowed="one that no other program uses") from None
        if error.errno == errno.EACCES:
            raise BadParameter("port", address.port, allowed="one that this user may open, 1024 or more") from None
        raise BadParameter("host", address.host, allowed="an address of this machine") from None
    return listening


@contextmanager
def serve_monitor(service: Monitored, address: Address) -> Iterator[int]:
    """Answer /healthz, /readyz, /metrics and /stats while the block runs; yield the port.

    They hold counts only, so on this machine there need be no token.
    """
    server = Server.at(address)
    server.state.service = service
    server.open(server)
    try:
        yield server.port
    finally:
        server.close(server)


class _HttpEnd:
    """What a source and a sink have in common: the server at their address."""

    name = "http"
    """Its name in a store: another port is still the same source or sink."""

    def __init__(self, url: str | Address, *, limits: HttpLimits | None, **queue: Any) -> None:
        address = url if isinstance(url, Address) else Address.parse(url, limits=limits)
        self._server = Server.at(address, **queue)

    @property
    def port(self) -> int:
        return self._server.port

    def watch(self, service: Monitored) -> None:
        self._server.state.service = service


class HttpSource(_HttpEnd, Source):
    """Takes the lines of POST /events.

    A post is answered once it is committed. One that is sent again with its `Idempotency-Key` is taken once; without a
    key, whoever sends again after a lost answer may bring the same events twice.

    - `url`: http://HOST:PORT, http://HOST:PORT?token=FILE or https://HOST:PORT?token=FILE&cert=FILE&key=FILE.
    - `tell`: called with the address once the server listens.
    - `limits`: what clients may take, if an address is not given as a whole.
    """

    def __init__(
        self, url: str | Address, *, tell: Callable[[str], None] = lambda _: None, limits: HttpLimits | None = None
    ) -> None:
        self._posts, self._tell = PostQueue(), tell
        super().__init__(url, limits=limits, posts=self._posts)

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:
        self._posts.open(position=position, keys=keys)
        self._server.open(self)
        self._tell(f"listening at {self._server.url}")
        n, wanted = self._server.max_connections, self._server.state.address.limits.max_connections
        if n < wanted:
            why = "this process may open no more files (ulimit -n)"
            self._tell(f"{n:,} connections at once instead of {wanted:,}: {why}")

    def take(self, *, timeout: float) -> Batch | None:
        return self._posts.take(timeout=timeout)

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:
        self._posts.settle(batch, bad_lines=bad_lines)

    def close(self) -> None:
        self._posts.close()
        self._server.close(self)


class HttpSink(_HttpEnd, Sink):
    """Answers GET /released?after=N with released lines; a batch is delivered once a client asks for what comes after.

    - `url`: http://HOST:PORT, http://HOST:PORT?token=FILE or https://HOST:PORT?token=FILE&cert=FILE&key=FILE.
    - `limits`: as for the source.
    """

    def __init__(self, url: str | Address, *, limits: HttpLimits | None = None) -> None:
        self._released = ReleasedQueue()
        super().__init__(url, limits=limits, released=self._released)

    def open(self, *, delivered: int, n_bytes: int) -> None:  # noqa: ARG002 - clients count batches, not bytes
        self._released.open(delivered=delivered)
        self._server.open(self)

    def offer(self, outgoing: Outgoing) -> None:
        self._released.offer(outgoing)

    def deliver(self, outgoing: Outgoing) -> None:
        self._released.offer(outgoing)
        self._released.wait_for(outgoing.number)

    def close(self) -> None:
        self._released.close()
        self._server.close(self)

"""The connections of the HTTP server: how many there may be, and how long each may take to send and to read.

uvicorn has a limit for all connections and requests together, which refuses honest clients once others have filled it,
and no deadline for a head or a body. So connections are accepted here, before TLS begins, and handed to its protocol.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import socket
import ssl
import time
from contextlib import suppress
from enum import IntEnum
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from queryveil.service.http.addresses import HttpLimits

_ACCEPTED_AT_ONCE = 32
"""Few enough that whoever has just come is heard before so many others come that it would have to go."""
_RESERVED_FILES = 64
_LINGER_SECONDS = 5.0
_TURNOVER_SECONDS = 2.0
_RETRY_SECONDS = 0.1
_MAX_SMALL_PIECES = 4096
_SMALL_PIECE_BYTES = 256
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Phase(IntEnum):
    """What a connection waits for, in the order in which one has to go when there are too many."""

    HEAD = 0
    IDLE = 1
    BODY = 2
    WORK = 3


def address_of(host: str) -> str:
    """Return under which name the clients of a host are counted: of IPv6 the network, as a client has all of it.

    >>> address_of("192.0.2.7"), address_of("2001:db8::1") == address_of("2001:db8::2"), address_of("::ffff:192.0.2.7")
    ('192.0.2.7', True, '192.0.2.7')
    """
    if ":" not in host:
        return host
    try:
        found = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    return str(found.ipv4_mapped) if found.ipv4_mapped else found.packed[:8].hex()


def fit_to_files(wanted: int) -> int:
    """Let this process open as many files as so many connections need; return how many connections it can have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    raised = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = raised
    return max(1, min(wanted, soft - _RESERVED_FILES))


class Connections:
    """All connections, by address."""

    def __init__(self, limits: HttpLimits, *, most: int) -> None:
        self.limits, self._most = limits, most
        self._by_address: dict[str, set[GuardedProtocol]] = {}
        self._n = 0

    def has_room(self, address: str) -> bool:
        """Return whether one more may come from an address, if need be in place of one that waits."""
        own = self._by_address.get(address, set())
        if len(own) >= self.limits.max_per_address and not self._end_one(own):
            return False
        if self._n < self._most:
            return True
        largest = max(self._by_address.values(), key=len)
        # Addresses with as many as any cannot take from others; each anew at once would keep the server busy.
        is_large = len(own) + 1 >= len(largest)
        return self._end_one(own if own and is_large else largest, seconds=_TURNOVER_SECONDS if is_large else 0)

    def add(self, protocol: GuardedProtocol) -> None:
        self._by_address.setdefault(protocol.address, set()).add(protocol)
        self._n += 1

    def remove(self, protocol: GuardedProtocol) -> None:
        own = self._by_address.get(protocol.address, set())
        if protocol in own:
            own.remove(protocol)
            self._n -= 1
        if not own:
            self._by_address.pop(protocol.address, None)

    def end_unfinished(self) -> None:
        """End all whose request has not come as a whole, so nothing of it was taken."""
        for protocol in [each for own in self._by_address.values() for each in own]:
            if protocol.phase in (Phase.HEAD, Phase.BODY):
                protocol.end()

    def _end_one(self, protocols: set[GuardedProtocol], *, seconds: float = 0.0) -> bool:
        """End the one that has waited longest, for so many seconds at least; false if there is none."""
        until = time.monotonic() - seconds
        waiting = [each for each in protocols if each.phase is not Phase.WORK and each.since <= until]
        longest = min(waiting, key=lambda each: (each.phase, each.since), default=None)
        if longest is None:
            return False
        self.remove(longest)
        longest.end()
        return True


class _MeteredConnection(h11.Connection):
    """Refuses bodies in very many small pieces: each costs as much work as a large one."""

    _n_pieces = _n_bytes = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._n_pieces = self._n_bytes = 0
        elif isinstance(event, h11.Data):
            self._n_pieces += 1
            self._n_bytes += len(event.data)
            if self._n_pieces > _MAX_SMALL_PIECES + self._n_bytes // _SMALL_PIECE_BYTES:
                raise h11.RemoteProtocolError("the body comes in too many small pieces")
        return event


class GuardedProtocol(H11Protocol):
    """One connection, which is ended if a head, a body or the reading of an answer takes too long."""

    def __init__(self, connections: Connections, *, address: str, config: uvicorn.Config, state: Any) -> None:
        super().__init__(config, state, {}, _loop=asyncio.get_running_loop())
        self.address, self.phase, self.since = address, Phase.HEAD, time.monotonic()
        self.handshake: asyncio.Task[Any] | None = None
        self._connections, self._limits = connections, connections.limits
        self._is_refused = False
        self._clock: asyncio.TimerHandle | None = None
        self._reader_clock: asyncio.TimerHandle | None = None
        self.conn = _MeteredConnection(h11.SERVER, max_incomplete_event_size=self._limits.max_header_bytes)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(self._limits.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        self.resume_writing()
        self._connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        try:
            super().data_received(data)
        except h11.LocalProtocolError:
            # What cannot be read came after the answer, so there is nothing left to say.
            self.end()
            return
        self._note_phase()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_phase()
        if self.phase is Phase.BODY and not self.transport.is_closing():
            # Refused before all of it was there. To hang up at once could take the answer from a client that still
            # sends and reads only afterwards; so that it ends, it is told that there will be no other answer.
            self._is_refused = True
            self.flow.resume_reading()
            if self.transport.can_write_eof():
                self.transport.write_eof()
            self._wait(min(_LINGER_SECONDS, self._limits.body_seconds))

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._reader_clock is None:
            self._reader_clock = self.loop.call_later(self._limits.body_seconds, self.end)

    def resume_writing(self) -> None:
        if self.flow is not None:
            super().resume_writing()
        if self._reader_clock is not None:
            self._reader_clock.cancel()
            self._reader_clock = None

    def end(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()

    def _note_phase(self) -> None:
        theirs = self.conn.their_state
        if theirs is h11.IDLE:
            has_begun = self.phase is Phase.HEAD or self.conn.trailing_data[0]
            phase = Phase.HEAD if has_begun else Phase.IDLE
        else:
            phase = Phase.BODY if theirs is h11.SEND_BODY else Phase.WORK
        if phase is self.phase:
            return
        self.phase, self.since = phase, time.monotonic()
        # A second more for a body: the route that reads it has a deadline of its own, and answers.
        seconds = {Phase.HEAD: self._limits.header_seconds, Phase.BODY: self._limits.body_seconds + 1}
        self._wait(seconds.get(phase))

    def _wait(self, seconds: float | None) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._clock = None if seconds is None else self.loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        if self.phase is Phase.HEAD and not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()
        else:
            self.end()


class GuardedServer(uvicorn.Server):
    """Accepts connections as far as there is room for them, with TLS if there is a context for it."""

    def __init__(
        self, config: uvicorn.Config, *, listening: socket.socket, connections: Connections, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(config)
        self._listening, self._connections, self._tls = listening, connections, tls
        # Privacy: asyncio's messages may quote what was sent, and go to stderr where nobody has asked for them.
        logging.getLogger("asyncio").addHandler(logging.NullHandler())

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - uvicorn's own
        await super().startup(sockets=[])
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        self._listening.setblocking(False)
        self._listen()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - uvicorn's own
        """Listen no more, and wait for the requests at work."""
        asyncio.get_running_loop().remove_reader(self._listening)
        self._listening.close()
        self._connections.end_unfinished()
        await super().shutdown(sockets=[])

    def _listen(self) -> None:
        if self._listening.fileno() >= 0:
            asyncio.get_running_loop().add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, peer = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError:
                # No file or memory is left: without a pause the loop would ask again at once, and do nothing else.
                loop.remove_reader(self._listening)
                loop.call_later(_RETRY_SECONDS, self._listen)
                return
            address = address_of(str(peer[0]))
            if not self._connections.has_room(address):
                self._refuse(accepted)
                continue
            self._begin(accepted, address)

    def _begin(self, accepted: socket.socket, address: str) -> None:
        protocol = GuardedProtocol(self._connections, address=address, config=self.config, state=self.server_state)
        self._connections.add(protocol)
        loop, tls = asyncio.get_running_loop(), self._tls
        seconds = None if tls is None else self._connections.limits.header_seconds
        begun = loop.connect_accepted_socket(lambda: protocol, accepted, ssl=tls, ssl_handshake_timeout=seconds)
        protocol.handshake = loop.create_task(begun)

        def note_begun(task: asyncio.Task[Any]) -> None:
            protocol.handshake = None
            if task.cancelled() or task.exception() is not None:
                self._connections.remove(protocol)
                accepted.close()

        # Not in the task: one that is cancelled before it begins does nothing at all.
        protocol.handshake.add_done_callback(note_begun)

    def _refuse(self, accepted: socket.socket) -> None:
        with accepted, suppress(OSError):
            if self._tls is None:
                accepted.setblocking(False)
                accepted.send(_BUSY)

"""Released batches that wait for a client to pull them, and the cursor that says what has arrived."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition

from queryveil.errors import Unreachable
from queryveil.service.ports import Outgoing

MAX_REPLY_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Up to which number everything has arrived, and up to which something is there."""

    confirmed: int
    last: int


class Outlet:
    """Where the sink leaves released batches, and where requests read them.

    A client that asks for what comes after N says that it has everything up to N. So a batch is handed out again until
    the client has gone on, and a client that stores N together with what it read has every row once.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._offered: dict[int, Outgoing] = {}
        self._confirmed = self._last = 0
        self._is_closed = False
        self._readers: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def open(self, *, delivered: int) -> None:
        """Begin behind what has arrived."""
        with self._changed:
            self._confirmed = delivered
            self._last = max(self._last, delivered)

    @property
    def is_closed(self) -> bool:
        """Whether nothing more comes."""
        return self._is_closed

    @property
    def cursor(self) -> Cursor:
        """Where this outlet stands."""
        with self._changed:
            return Cursor(confirmed=self._confirmed, last=self._last)

    def offer(self, outgoing: Outgoing) -> None:
        """Let clients read a batch that is committed."""
        with self._changed:
            if outgoing.number > self._confirmed:
                self._offered[outgoing.number] = outgoing
                self._last = max(self._last, outgoing.number)
        self._wake_readers()

    def wait_for(self, number: int) -> None:
        """Return once a client has confirmed this number."""
        with self._changed:
            while self._confirmed < number:
                if self._is_closed:
                    # Returning would say that it has arrived.
                    raise Unreachable("the client of /released", "it has not confirmed what is left")
                self._changed.wait()

    def confirm(self, number: int) -> None:
        """Note that everything up to a number has arrived, and forget it."""
        with self._changed:
            for gone in range(self._confirmed + 1, number + 1):
                self._offered.pop(gone, None)
            self._confirmed = max(self._confirmed, number)
            self._changed.notify_all()

    def read(self, *, after: int) -> Sequence[Outgoing]:
        """Return the batches that follow a number without a gap: at least one if it is there, then about 8 MB."""
        found: list[Outgoing] = []
        n_bytes = 0
        with self._changed:
            while (outgoing := self._offered.get(after + len(found) + 1)) is not None:
                n_bytes += len(outgoing.data)
                if found and n_bytes > MAX_REPLY_BYTES:
                    break
                found.append(outgoing)
        return found

    async def read_or_wait(self, *, after: int, seconds: float) -> Sequence[Outgoing]:
        """Read, or wait some seconds until there is something to read."""
        found = self.read(after=after)
        if found or seconds <= 0:
            return found
        reader = (asyncio.get_running_loop(), asyncio.Event())
        self._readers.add(reader)
        try:
            async with asyncio.timeout(seconds):
                while not (found := self.read(after=after)) and not self._is_closed:
                    await reader[1].wait()
                    reader[1].clear()
        except TimeoutError:
            return []
        finally:
            self._readers.discard(reader)
        return found

    def close(self) -> None:
        """End every wait."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._wake_readers()

    def _wake_readers(self) -> None:
        for loop, event in tuple(self._readers):
            with suppress(RuntimeError):  # its loop has just ended
                loop.call_soon_threadsafe(event.set)

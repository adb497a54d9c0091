"""Handing over what was committed, in a thread of its own."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Condition, Event, Thread

from queryveil.stream.attempts import GRACE_SECONDS, Attempts
from queryveil.stream.ports import Outgoing, Sink
from queryveil.stream.sinks.wishes import ReadAhead


class Delivery:
    """Gives the sink one batch after the other, and knows which ones have arrived."""

    def __init__(self, sink: Sink, *, patience: float | None, tell: Callable[[str], None] = lambda _: None) -> None:
        self._sink, self._tell = sink, tell
        self._waiting: deque[Outgoing] = deque()
        self._changed = Condition()
        self._stopping = Event()
        self._is_closed = False
        self._attempts = Attempts(stopping=self._stopping, patience=patience, note=self._note)
        self._thread = Thread(target=self._run, name="queryveil-delivery", daemon=True)
        self.delivered, self.n_bytes, self.n_rows, self.n_rows_delivered = 0, 0, 0, 0
        self.trouble: str | None = None
        self._failure: BaseException | None = None

    def start(self, *, delivered: int, waiting: Sequence[Outgoing]) -> None:
        """Begin behind what has arrived."""
        self.delivered = delivered
        for outgoing in waiting:
            self.put(outgoing)
        self._thread.start()

    def put(self, outgoing: Outgoing) -> None:
        """Have this handed over too."""
        if isinstance(self._sink, ReadAhead):
            self._sink.offer(outgoing)
        with self._changed:
            self._waiting.append(outgoing)
            self.n_bytes += len(outgoing.data)
            self.n_rows += outgoing.n_rows
            self._changed.notify_all()

    def wait(self, *, n_bytes: int, seconds: float) -> bool:
        """Wait until no more than so many bytes are waiting; say whether that is so. Raises what made delivery end."""
        until = time.monotonic() + seconds
        with self._changed:
            while self._failure is None and self.n_bytes > n_bytes and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            if self._failure is not None:
                raise self._failure
            return self.n_bytes <= n_bytes

    def stop(self) -> None:
        """Stop when everything is handed over, or after a while if the sink does not take it."""
        if self._is_closed:
            return
        self._stopping.set()
        if self._thread.is_alive() and self._failure is None:
            with self._changed:
                self._changed.wait_for(lambda: not self.n_bytes or self._failure is not None, timeout=GRACE_SECONDS)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._sink.close()
        if self._thread.is_alive():
            self._thread.join(timeout=1)

    def _note(self, trouble: str | None) -> None:
        if trouble is not None and trouble != self.trouble:
            self._tell(f"{trouble}; trying again")
        self.trouble = trouble

    def _run(self) -> None:
        try:
            while (outgoing := self._next()) is not None:
                self._hand_over(outgoing)
        except BaseException as error:
            with self._changed:
                if not self._is_closed:
                    self._failure = error
                self._changed.notify_all()

    def _next(self) -> Outgoing | None:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting) or self._is_closed)
            return None if self._is_closed else self._waiting[0]

    def _hand_over(self, outgoing: Outgoing) -> None:
        self._attempts.until_done(lambda: self._sink.deliver(outgoing), what="the sink")
        with self._changed:
            self._waiting.popleft()
            self.delivered = outgoing.number
            self.n_bytes -= len(outgoing.data)
            self.n_rows -= outgoing.n_rows
            self.n_rows_delivered += outgoing.n_rows
            self._changed.notify_all()

"""Deliver what was committed, in a thread, with retries."""

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Condition, Event, Thread
from typing import TypeVar

from queryveil.errors import Unreachable
from queryveil.service.ports import Outgoing, Sink

_T = TypeVar("_T")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
GRACE_SECONDS = 5.0
"""Seconds for which a step that was begun is still tried after the service was told to stop."""


class Retry:
    """Repeats an action with growing pauses until it succeeds, for `patience` seconds (None: for ever).

    Once `stopping` is set, only for five more. `trouble` is what is wrong now, and told when that changes.
    """

    def __init__(self, *, stopping: Event, patience: float | None, tell: Callable[[str], None]) -> None:
        self._stopping, self._patience, self._tell = stopping, patience, tell
        self.trouble: str | None = None

    def run(self, action: Callable[[], _T], *, what: str) -> _T:
        """Run an action until it succeeds; failures other than of a server or disk are raised at once."""
        pause, has_failed = _FIRST_PAUSE, False
        gives_up_at = float("inf") if self._patience is None else time.monotonic() + self._patience
        while True:
            try:
                result = action()
            except BrokenPipeError:
                # Whoever read has gone for good.
                raise
            except Unreachable as error:
                line = str(error)
            except OSError as error:
                # Privacy: the message of an OSError may quote what was written; its number does not.
                reason = os.strerror(error.errno).lower() if error.errno else type(error).__name__
                line = f"{what}: {reason}"
            else:
                if has_failed:
                    self.trouble = None
                return result
            has_failed = True
            if line != self.trouble:
                self._tell(f"{line}; trying again")
            self.trouble, now = line, time.monotonic()
            if now >= gives_up_at:
                raise Unreachable("gave up", f"{line}; run the same command again to go on") from None
            if self._stopping.is_set():
                gives_up_at = min(gives_up_at, now + GRACE_SECONDS)
            if self._stopping.wait(pause):
                time.sleep(_FIRST_PAUSE)
            pause = min(2 * pause, _LONGEST_PAUSE)


class Delivery:
    """Delivers committed batches to the sink one after the other, in a thread."""

    def __init__(self, sink: Sink, *, patience: float | None, tell: Callable[[str], None] = lambda _: None) -> None:
        self._sink = sink
        self._waiting: deque[Outgoing] = deque()
        self._changed, self._stopping, self._is_closed = Condition(), Event(), False
        self.retry = Retry(stopping=self._stopping, patience=patience, tell=tell)
        self._thread = Thread(target=self._run, name="queryveil-delivery", daemon=True)
        self.delivered, self.n_bytes, self.n_rows = 0, 0, 0
        self._failure: BaseException | None = None

    def start(self, *, delivered: int, waiting: Sequence[Outgoing]) -> None:
        self.delivered = delivered
        for outgoing in waiting:
            self.put(outgoing)
        self._thread.start()

    def put(self, outgoing: Outgoing) -> None:
        self._sink.offer(outgoing)
        with self._changed:
            self._waiting.append(outgoing)
            self.n_bytes += len(outgoing.data)
            self.n_rows += outgoing.n_rows
            self._changed.notify_all()

    def wait(self, *, n_bytes: int, seconds: float) -> bool:
        """Wait until at most so many bytes are waiting; return whether that is so. Raises what ended the delivery."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or self.n_bytes <= n_bytes, timeout=seconds)
            if self._failure is not None:
                raise self._failure
            return self.n_bytes <= n_bytes

    def stop(self) -> None:
        """Stop when everything is handed over, or after a while if the sink does not take it."""
        if self._is_closed:
            return
        self._stopping.set()
        with self._changed:
            if self._thread.is_alive():
                self._changed.wait_for(lambda: not self.n_bytes or self._failure is not None, timeout=GRACE_SECONDS)
            self._is_closed = True
            self._changed.notify_all()
        self._sink.close()
        if self._thread.is_alive():
            self._thread.join(timeout=1)

    def _run(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: bool(self._waiting) or self._is_closed)
                    if self._is_closed:
                        return
                    outgoing = self._waiting[0]
                self._deliver(outgoing)
        except BaseException as error:
            with self._changed:
                if not self._is_closed:
                    self._failure = error
                self._changed.notify_all()

    def _deliver(self, outgoing: Outgoing) -> None:
        self.retry.run(lambda: self._sink.deliver(outgoing), what="the sink")
        with self._changed:
            self._waiting.popleft()
            self.delivered = outgoing.number
            self.n_bytes -= len(outgoing.data)
            self.n_rows -= outgoing.n_rows
            self._changed.notify_all()

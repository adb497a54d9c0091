"""Trying again what a server or disk refuses for now."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import Event

from queryveil.errors import Unreachable

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
GRACE_SECONDS = 5.0
"""How long what was begun is still tried once the service is told to stop."""


class Attempts:
    """Does a thing until it succeeds, or until nobody wants to wait for it any longer.

    `note` is told in one line what is wrong, and None when it works again.
    """

    def __init__(self, *, stopping: Event, patience: float | None, note: Callable[[str | None], None]) -> None:
        self._stopping, self._patience, self._note = stopping, patience, note

    def until_done(self, action: Callable[[], None], *, what: str) -> None:
        """Do it; a failure that may pass is waited for, any other is raised."""
        pause, failing_since, stopped_at = _FIRST_PAUSE, time.monotonic(), float("inf")
        has_failed = False
        while True:
            try:
                action()
            except BrokenPipeError:
                # Whoever read has gone for good.
                raise
            except (Unreachable, OSError) as error:
                line = in_one_line(error, what=what)
            else:
                if has_failed:
                    self._note(None)
                return
            has_failed = True
            self._note(line)
            now = time.monotonic()
            if self._stopping.is_set():
                stopped_at = min(stopped_at, now)
            if (self._patience is not None and now - failing_since >= self._patience) or (
                now - stopped_at >= GRACE_SECONDS
            ):
                raise Unreachable("gave up", f"{line}; run the same command again to go on") from None
            if self._stopping.wait(pause):
                time.sleep(_FIRST_PAUSE)
            pause = min(2 * pause, _LONGEST_PAUSE)


def in_one_line(error: Exception, *, what: str) -> str:
    """Say what is wrong.

    >>> in_one_line(OSError(28, "No space left on device"), what="the sink")
    'the sink: no space left on device'
    """
    if not isinstance(error, OSError):
        return str(error)
    # Privacy: the message of an OSError may quote what was written; its number does not.
    reason = os.strerror(error.errno).lower() if error.errno else type(error).__name__
    return f"{what}: {reason}"

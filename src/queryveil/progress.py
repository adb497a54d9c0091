"""Report progress: long work calls `step`, and a watcher (the command line, a notebook) is called if there is one.

Notices about the machine (not the result) are shown once per process, by `notify`.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watcher = Callable[[str, float], None]

_watcher: ContextVar[Watcher | None] = ContextVar("queryveil_progress", default=None)


def step(name: str, share: float = 0.0) -> None:
    """Report that the work called `name` is done up to `share` (0 to 1)."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(name, share)


@contextmanager
def watch(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` with every step reported inside the block.

    >>> seen = []
    >>> with watch(lambda name, share: seen.append((name, share))):
    ...     step("pairs", 0.5)
    >>> seen
    [('pairs', 0.5)]
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


NoticeHandler = Callable[[str, bool], None]

_shown: set[str] = set()
_handlers: list[NoticeHandler] = []


def notify(text: str, *, is_routine: bool = False) -> None:
    """Show a notice, once per process; a program without a handler warns, unless it `is_routine`."""
    if text in _shown:
        return
    _shown.add(text)
    if _handlers:
        _handlers[-1](text, is_routine)
    elif not is_routine:
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def ignore_notices() -> None:
    """Show no notices in this process: the one that started it shows the same."""
    _handlers.append(lambda *_: None)


@contextmanager
def handle_notices(handler: NoticeHandler) -> Iterator[None]:
    """Call `handler` with the notices inside the block, and with whether each is routine.

    >>> with handle_notices(lambda text, is_routine: print(text)):
    ...     notify("a folder cannot be written")
    ...     notify("a folder cannot be written")
    a folder cannot be written
    """
    _handlers.append(handler)
    try:
        yield
    finally:
        _handlers.remove(handler)

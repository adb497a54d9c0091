"""Report progress: long work calls `step`, and a watcher (the command line, a notebook) is called if there is one.

What people should know of the machine and not of the result is told once a process, by `tell`.
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


Teller = Callable[[str, bool], None]

_told: set[str] = set()
_teller: list[Teller] = []


def tell(text: str, *, is_routine: bool = False) -> None:
    """Tell people something, once a process; a program without a teller warns, unless it `is_routine`."""
    if text in _told:
        return
    _told.add(text)
    if _teller:
        _teller[-1](text, is_routine)
    elif not is_routine:
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def leave_telling_to_parent() -> None:
    """Tell nothing in this process: the one that started it tells the same."""
    _teller.append(lambda *_: None)


@contextmanager
def telling(teller: Teller) -> Iterator[None]:
    """Call `teller` with what is told inside the block, and with whether it is routine.

    >>> with telling(lambda text, is_routine: print(text)):
    ...     tell("a folder cannot be written")
    ...     tell("a folder cannot be written")
    a folder cannot be written
    """
    _teller.append(teller)
    try:
        yield
    finally:
        _teller.remove(teller)

"""Report progress: long work calls `step`, and a watcher (the command line, a notebook) is called if there is one."""

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

"""What the checkers of swap find, in the words of a verdict."""

from __future__ import annotations

from collections.abc import Iterable

from queryveil.verify.verdict import Kind, Witness

NO_TIMES = "the release does not tell after which events rows left, so each pool is judged with all that ever came"


def swap_witness(kind: Kind, *, row: int, there: int, needed: int) -> Witness:
    """Point at a row that breaks a rule."""
    return Witness(kind=kind, size=1, support=there, needed=needed, rows=(row,), positions=())


def full_pools(n_left_over: Iterable[int], *, max_pool: int | None) -> tuple[str, ...]:
    """Say how many events must have been suppressed before the end, given what of each pool was never released.

    >>> full_pools([12, 3, 0], max_pool=10)
    ('full pools have lost at least 2 events, which are judged as if they had stayed',)
    """
    n_lost = 0 if max_pool is None else sum(max(0, n - max_pool) for n in n_left_over)
    if n_lost == 0:
        return ()
    events = "1 event, which is judged as if it" if n_lost == 1 else f"{n_lost:,} events, which are judged as if they"
    return (f"full pools have lost at least {events} had stayed",)

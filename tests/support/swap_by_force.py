"""The promise of swap judged by its definition: slow, plain, for small logs."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tests.support.plain_swap import fold

from queryveil.checks.arrivals import FINEST, Arrivals
from queryveil.checks.swap import NO_TIMES, OF_STREAM, full_pools
from queryveil.checks.verdict import Kind, Verdict, Witness
from queryveil.data import QueryLog
from queryveil.guarantees import SwapAnonymity, parse_window

_EPOCH = datetime(1970, 1, 1)


class _Event(NamedTuple):
    """An arrival, or a released row; a text that never came has no category."""

    user: str
    query: str
    category: int | None
    time: datetime | None


def verify_swap_by_force(released: QueryLog, promise: SwapAnonymity, *, original: Arrivals) -> Verdict:
    """Judge the promise as `verify_swap` does, by counting anew what waits after every arrival.

    >>> import polars as pl
    >>> came = pl.DataFrame({"user": ["1", "2", "3"], "query": ["tea", "rye", "oats"], "category": [0, 0, 0]})
    >>> released = QueryLog.from_frame({"user": ["2"], "query": ["tea"]})
    >>> verify_swap_by_force(released, SwapAnonymity(k=3, l=2), original=Arrivals(frame=came)).holds
    True
    """
    came = [_event(row, row["category"], unit=original.time_unit) for row in original.frame.iter_rows(named=True)]
    category_of = {event.query: event.category for event in reversed(came)}
    left = [_event(row, None, unit=original.time_unit) for row in released.frame.iter_rows(named=True)]
    left = [row._replace(category=category_of.get(row.query)) for row in left]
    has_times = "time" in original.frame.columns and any(row.time for row in left)

    windows = [0] * len(came)
    if promise.window is not None and promise.remembered is None and "time" in original.frame.columns:
        length = parse_window(promise.window)
        # Rows without a time share a window of their own.
        windows = [-1 if time is None else (time - _EPOCH) // length for time in original.frame["time"]]
    is_fresh = [not promise.once or not _is_repeat(came, place, promise.remembered) for place in range(len(came))]
    # Without a threshold nobody counts askers.
    for place in range(len(came) if promise.min_query_users > 1 else 0):
        is_fresh[place] &= _n_askers(came, place, windows) >= promise.min_query_users - promise.noise_bound

    found, now = list[Witness](), -1
    for place, row in enumerate(left):
        before = left[:place]
        latest = min(_last(came, row.time if has_times else None) for row in left[place:])
        if row.category is not None:
            possible = (t for t in range(now, latest + 1) if not _broken(row, came[: t + 1], is_fresh, before, promise))
            now = next(possible, latest)
        found += _broken(row, came[: now + 1], is_fresh, before, promise)
        issues = [j for j, event in enumerate(came) if _pair(event) == _pair(row)]
        if _is_own(issues, range(now, latest + 1), remembered=promise.remembered):
            found.append(_witness("own_query", row=place + 1, there=len(issues), needed=0))
    left_over = Counter(event.category for event, fresh in zip(came, is_fresh, strict=True) if fresh)
    left_over.subtract(row.category for row in left if row.category is not None)
    return Verdict(
        promise=promise,
        holds=not found,
        witnesses=tuple(sorted(found)[: Verdict.N_KEPT]),
        n_violations=len(found),
        n_users=released.n_users,
        n_checked_users=released.n_users,
        notes=(
            *((OF_STREAM,) if promise.min_query_users > 1 and promise.window and promise.remembered else ()),
            *((NO_TIMES,) if left and not has_times else ()),
            *full_pools(left_over.values(), max_pool=original.max_pool),
        ),
    )


def _event(row: dict[str, Any], category: int | None, *, unit: timedelta | None) -> _Event:
    query, time = row["query"], row.get("time") if unit else None
    for character in "\0\t\n\r":
        query = query.replace(character, " ")
    if time is not None and unit is not None:
        time -= (time - _EPOCH) % max(unit, FINEST)
    return _Event(row["user"], query, category, time)


def _last(came: list[_Event], time: datetime | None) -> int:
    """Return the last arrival that is not after a time."""
    if time is None:
        return len(came) - 1
    return max((j for j, event in enumerate(came) if event.time is not None and event.time <= time), default=-1)


def _n_askers(came: list[_Event], place: int, windows: list[int]) -> int:
    """Count the users who asked the same by then, and for the first time in the window of this one."""
    people: dict[str, int] = {}
    for event, window in zip(came[: place + 1], windows, strict=False):
        if fold(event.query) == fold(came[place].query):
            people.setdefault(event.user, window)
    return list(people.values()).count(windows[place])


def _is_repeat(came: list[_Event], place: int, remembered: int | None) -> bool:
    """Whether the user had asked this before, among the last so many events."""
    first = 0 if remembered is None else max(0, place - remembered)
    return any(_pair(event) == _pair(came[place]) for event in came[first:place])


def _broken(
    row: _Event, came: list[_Event], is_fresh: list[bool], before: list[_Event], promise: SwapAnonymity
) -> list[Witness]:
    """Return what forbids that a row leaves: the pool that it leaves from is what came less what left before."""
    number = len(before) + 1
    waited = [event for event, fresh in zip(came, is_fresh, strict=False) if fresh]
    n_entered = sum(fold(event.query) == fold(row.query) for event in waited)
    n_gone = 1 + sum(fold(other.query) == fold(row.query) for other in before)
    n_issued = sum(event.query == row.query for event in came)
    n_released = 1 + sum(other.query == row.query for other in before)
    found = []
    if n_released > n_issued:
        found.append(_witness("surplus_query", row=number, there=n_released, needed=n_issued))
    elif n_gone > n_entered:
        found.append(_witness("repeated_query", row=number, there=n_gone, needed=n_entered))
    if row.category is None:
        return found
    asked = Counter(event.user for event in waited if event.category == row.category)
    given = Counter(other.user for other in before if other.category == row.category)
    if given[row.user] >= asked[row.user]:
        found.append(_witness("surplus_row", row=number, there=given[row.user] + 1, needed=asked[row.user]))
    n_waiting = asked.total() - given.total()
    if n_waiting < promise.k:
        found.append(_witness("small_pool", row=number, there=max(0, n_waiting), needed=promise.k))
    n_users = len(asked - given)
    if n_users < promise.l:
        found.append(_witness("few_users", row=number, there=n_users, needed=promise.l))
    return found


def _pair(event: _Event) -> tuple[str, str]:
    return event.user, fold(event.query)


def _is_own(issues: list[int], moments: range, *, remembered: int | None) -> bool:
    """Whether a user was given a query of their own, whenever between the first and the last moment it was."""
    if remembered is None:
        return bool(issues)
    return all(any(t - remembered < j <= t for j in issues) for t in moments)


def _witness(kind: Kind, *, row: int, there: int, needed: int) -> Witness:
    return Witness(kind=kind, size=1, support=there, needed=needed, rows=(row,))

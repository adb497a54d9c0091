"""(k, m)-anonymity judged by its definition: slow, plain, for small logs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import combinations
from typing import NamedTuple

from queryveil.checks.km import why_windows_blur
from queryveil.checks.tokens import terms_of
from queryveil.checks.verdict import Verdict, Witness
from queryveil.data import QueryLog
from queryveil.guarantees import KmAnonymity, parse_window

_EPOCH = datetime(1970, 1, 1)


class _Owner(NamedTuple):
    """Whose history it is: a user, in one window where the promise has windows."""

    user: str
    window: int | None


class _Shared(NamedTuple):
    """What must be shared by k users of its window."""

    window: int | None
    terms: tuple[str, ...]


_History = dict[str, tuple[int, int]]
"""The terms of a history, each with the row and the position where it first stands."""


def verify_km_by_force(log: QueryLog, promise: KmAnonymity, *, time_unit: timedelta | None = None) -> Verdict:
    """Judge the promise as `verify_km` does, by listing every combination of every user.

    >>> log = QueryLog.from_frame({"user": ["1", "2", "3"], "query": ["red kettle", "kettle, red!", "kettle"]})
    >>> verify_km_by_force(log, KmAnonymity(k=2, m=2)).holds
    True
    """
    blur = why_windows_blur(log, promise, time_unit=time_unit)
    window = parse_window(promise.window) if promise.window and not blur else None
    histories, first_rows = _read(log, window, items=promise.items, with_times=promise.time_unit is not None)
    rare = _rare(histories, promise)
    verdict = Verdict(
        promise=promise,
        holds=not rare,
        witnesses=tuple(
            sorted(_witness(shared, n, histories, promise) for shared, n in rare.items())[: Verdict.N_KEPT]
        ),
        n_violations=len(rare),
        n_users=log.n_users,
        n_checked_users=sum(1 for history in histories.values() if history),
        notes=(blur,) if blur else (),
    )
    linked = [
        Witness(kind="linked_windows", support=len(rows), needed=1, rows=tuple(rows[:2]))
        for rows in first_rows.values()
        if len(rows) > 1
    ]
    return verdict.joined((len(linked), linked))


def _read(
    log: QueryLog, window: timedelta | None, *, items: bool, with_times: bool = False
) -> tuple[dict[_Owner, _History], dict[str, list[int]]]:
    """Return the histories, and the first row of each user in each of the user's windows."""
    histories: dict[_Owner, _History] = {}
    first_rows: dict[str, list[int]] = defaultdict(list)
    for row, record in enumerate(log.frame.iter_rows(named=True), start=1):
        time = record["time"] if window else None
        owner = _Owner(record["user"], (time - _EPOCH) // window if window and time else None)
        if owner not in histories:
            histories[owner] = {}
            first_rows[owner.user].append(row)
        for position, term in enumerate(terms_of(record["query"], items=items), start=1):
            histories[owner].setdefault(term, (row, position))
        if with_times and record["time"] is not None:
            # No term has a blank in it.
            histories[owner].setdefault(f" {record['time']}", (row, 0))
    return histories, first_rows


def _rare(histories: dict[_Owner, _History], promise: KmAnonymity) -> dict[_Shared, int]:
    """Return the combinations with fewer than k users, of the smallest size that has any, or whole histories."""
    if promise.m is None:
        return _fewer_than(promise.k, (_Shared(o.window, tuple(sorted(h))) for o, h in histories.items() if h))
    for size in range(1, promise.m + 1):
        rare = _fewer_than(
            promise.k,
            (_Shared(o.window, terms) for o, h in histories.items() for terms in combinations(sorted(h), size)),
        )
        if rare:
            return rare
    return {}


def _fewer_than(k: int, shared: Iterator[_Shared]) -> dict[_Shared, int]:
    return {what: n_users for what, n_users in Counter(shared).items() if n_users < k}


def _witness(shared: _Shared, n_users: int, histories: dict[_Owner, _History], promise: KmAnonymity) -> Witness:
    def has_it(owner: _Owner, history: _History) -> bool:
        if owner.window != shared.window:
            return False
        return set(shared.terms) == set(history) if promise.m is None else set(shared.terms) <= set(history)

    history = next(history for owner, history in histories.items() if has_it(owner, history))
    rows, positions = zip(*sorted(history[term] for term in shared.terms), strict=True)
    return Witness(
        kind="history" if promise.m is None else "combination",
        size=len(shared.terms),
        support=n_users,
        needed=promise.k,
        rows=rows,
        positions=positions,
    )

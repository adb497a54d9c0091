"""Verify (k, m)-anonymity of a log: every combination of up to m terms has k users, in each window."""

from collections import Counter
from datetime import timedelta
from heapq import nsmallest
from itertools import pairwise

import numpy as np
import polars as pl

from queryveil.checks._histories import Histories, read_histories
from queryveil.checks.combinations import rare_combinations
from queryveil.checks.tokens import Ints, starts_of
from queryveil.checks.verdict import Found, Kind, Verdict, found_in
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.guarantees import KmAnonymity, parse_window
from queryveil.progress import step


def why_windows_blur(log: QueryLog, promise: KmAnonymity, *, time_unit: timedelta | None) -> str | None:
    """Return why the windows of a promise cannot be distinguished in this log, or None.

    Then it is verified over the whole log, which is weaker: users who share a combination in a window do so in the log.
    """
    if time_unit is not None and time_unit <= timedelta(0):
        raise BadParameter("time_unit", time_unit, allowed="longer than nothing")
    if promise.window is None:
        return None
    if "time" not in log.columns:
        reason = "the log has no times"
    elif time_unit is not None and parse_window(promise.window) % time_unit:
        reason = f"times are rounded to {time_unit}"
    else:
        return None
    return f"{reason}, so windows of {promise.window} cannot be told apart; judged over the whole log"


def window_column(log: QueryLog, window: str) -> pl.Series:
    """Return the number of each row's window, counted from 1970-01-01; null, a window of its own, without a time."""
    length_us = parse_window(window) // timedelta(microseconds=1)
    return (log.frame["time"].dt.epoch("us") // length_us).alias("window")


def _linked_windows(log: QueryLog, windows: pl.Series) -> Found:
    """Return the number and witnesses of user ids that occur in more than one window."""
    rows = log.frame.select("user", window=windows).with_row_index("row", offset=1)
    by_user = rows.group_by("user", "window").agg(pl.col("row").min()).group_by("user")
    counted = by_user.agg(rows=pl.col("row").bottom_k(2).sort(), support=pl.len(), size=pl.lit(0), needed=pl.lit(1))
    return found_in(counted.filter(pl.col("support") > 1), kind="linked_windows")


_N_STEPS = 20
_SMALL = 100_000
"""A shorter line is processed in one step: starting the threads would take longer than the work."""


def verify_km(log: QueryLog, promise: KmAnonymity, *, time_unit: timedelta | None = None) -> Verdict:
    """Return the verdict on (k, m)-anonymity, exactly, up to the first size of combinations that has violations.

    `time_unit` is what the log's times were rounded to.

    >>> log = QueryLog.from_frame({"user": ["1", "2", "3"], "query": ["red kettle", "kettle, red!", "kettle"]})
    >>> verify_km(log, KmAnonymity(k=2, m=2)).holds
    True
    >>> verify_km(log, KmAnonymity(k=3, m=2)).witnesses[0].in_words()
    'a combination of 1 term is shared by 2 users, 3 are needed (row 1)'
    """
    step("histories")
    blur = why_windows_blur(log, promise, time_unit=time_unit)
    windows = window_column(log, promise.window) if promise.window and not blur else None
    with_times = promise.time_unit is not None and "time" in log.columns
    histories = read_histories(log, windows=windows, by_blanks=promise.items, with_times=with_times)
    kind: Kind = "history" if promise.m is None else "combination"
    n_rare, rarest = (_rare_histories if promise.m is None else _smallest_rare)(histories, promise)
    n_with_terms = int(np.count_nonzero(np.diff(histories.starts) > 1))
    verdict = Verdict(promise=promise, n_users=log.n_users, n_checked_users=n_with_terms)
    witnesses = [
        histories.witness(items, place=place, support=support, needed=promise.k, kind=kind)
        for support, items, place in rarest
    ]
    linked = [] if windows is None else [_linked_windows(log, windows)]
    return verdict.joined((n_rare, witnesses), *linked, notes=(blur,) if blur else ())


_Rare = tuple[int, tuple[int, ...], int]
"""A combination or history with too few users: their number, the items, and a position of the first in the line."""
_AllRare = tuple[int, list[_Rare]]
"""The number of rare combinations or histories, and the rarest of them."""


def _smallest_rare(histories: Histories, promise: KmAnonymity) -> _AllRare:
    """Return the combinations with fewer than k users, of the smallest size that has any."""
    longest = int(np.diff(histories.starts).max(initial=1)) - 1
    support, line = histories.support, histories.line
    n = int(np.count_nonzero(support < promise.k))
    # Items are numbered by rising support, so the rarest come first.
    rarest = range(min(n, Verdict.N_KEPT))
    found: _AllRare = n, [(int(support[item]), (item,), int(np.argmax(line == item))) for item in rarest]
    if n or longest < 2:
        return found
    # What follows an item in a history is its tail; the end marks are smaller than any item, hence sorted first.
    tails = np.argsort(line, kind="stable")[histories.starts.size - 1 :] + 1
    for size in range(2, min(promise.m or longest, longest) + 1):
        found = _rare_combinations(histories, tails, size=size, k=promise.k)
        if found[0]:
            break
    return found


def _rare_combinations(histories: Histories, tails: Ints, *, size: int, k: int) -> _AllRare:
    tail_starts = starts_of(histories.support)
    n_steps = _N_STEPS if histories.line.size > _SMALL else 1
    n, rarest = 0, list[_Rare]()
    for i in range(n_steps):
        step(f"combinations of {size}", i / n_steps)
        firsts = np.arange(i, histories.support.size, n_steps)
        n_rare, supports, items, places = rare_combinations(histories.line, tails, tail_starts, firsts, size, k)
        n += int(n_rare.sum())
        kept = zip(*np.nonzero(supports < k), strict=True)
        rarest += [(int(supports[at]), tuple(items[at].tolist()), int(places[at])) for at in kept]
    return n, sorted(rarest)[: Verdict.N_KEPT]


def _rare_histories(histories: Histories, promise: KmAnonymity) -> _AllRare:
    """Return the non-empty histories that fewer than k users have, each as a whole (m=None)."""
    starts = histories.starts.tolist()
    n_users, first_place = Counter[bytes](), dict[bytes, int]()
    for start, end in pairwise(starts):
        history = histories.line[start : end - 1].tobytes()
        n_users[history] += 1
        first_place.setdefault(history, start)
    rare = [(len(history), n, history) for history, n in n_users.items() if history and n < promise.k]
    return len(rare), [
        (n, tuple(np.frombuffer(history, np.int32).tolist()), first_place[history])
        for _, n, history in nsmallest(Verdict.N_KEPT, rare)
    ]

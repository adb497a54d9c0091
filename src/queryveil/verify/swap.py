"""Did queries change hands as promised? Judged fast, and by force."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.guarantees import SwapAnonymity
from queryveil.log import QueryLog
from queryveil.progress import step
from queryveil.verify.arrivals import Arrivals, Ints, as_written, has_times, latest_arrivals
from queryveil.verify.kernels.pools import FEW_USERS, SMALL_POOL, SURPLUS_QUERY, SURPLUS_ROW, Codes, replay
from queryveil.verify.leaving_order import leaving_order
from queryveil.verify.own_queries import own_queries
from queryveil.verify.swap_by_force import verify_swap_by_force
from queryveil.verify.swap_findings import NO_TIMES, full_pools, swap_witness
from queryveil.verify.tokens import Numbered, number
from queryveil.verify.verdict import Kind, Verdict, Witness

__all__ = ["Arrivals", "verify_swap", "verify_swap_by_force"]

_KINDS: dict[int, Kind] = {
    SMALL_POOL: "small_pool",
    FEW_USERS: "few_users",
    SURPLUS_ROW: "surplus_row",
    SURPLUS_QUERY: "surplus_query",
}


def verify_swap(released: QueryLog, promise: SwapAnonymity, *, original: Arrivals) -> Verdict:
    """Judge the promise beside what came in.

    When a row left is known only as far as its time tells, so what is looked for is a schedule that keeps the promise.
    After a given arrival, what waits for a row is what came less the rows before it, whenever those left; and the
    later the arrival, the more events, users and texts wait. So if any schedule allows a row, the earliest one does,
    in which each row leaves as soon as it can and no later than in truth: a row that it cannot place is a violation.
    Rows in no order are put into the one that `leaving_order` gives; if any order is allowed, that one is.

    Violations are rows, once for each rule that they break: fewer than k events or fewer than l users wait; the user
    has had as many rows of this category as queries of it; the text has left as often as it came; or the user
    issued the query, with other blanks, case or accents too. On a stream the last counts only if it is certain: if
    wherever the row left between its earliest and its latest arrival, the query was among the last remembered events.

    Which events were suppressed is not known. They are judged as if they had stayed, so nothing is called broken that
    is not, but a pool that was full and lost events may have been smaller than it seems.

    >>> came = pl.DataFrame({"user": ["1", "2", "3"], "query": ["tea", "rye", "oats"], "category": [0, 0, 0]})
    >>> released = QueryLog.from_frame({"user": ["2"], "query": ["tea"]})
    >>> verify_swap(released, SwapAnonymity(k=3, l=2), original=Arrivals(frame=came)).holds
    True
    >>> verify_swap(released, SwapAnonymity(k=4, l=2), original=Arrivals(frame=came)).witnesses[0].in_words()
    'a query left when at most 3 events waited, 4 are needed (row 1)'
    """
    step("numbers")
    numbers = _number(released, original)
    latest = latest_arrivals(released, original=original)
    order = np.arange(latest.size) if original.in_order else leaving_order(numbers.came[1], numbers.left[1], latest)
    latest = latest[order]
    step("pools")
    earliest, broken = replay(
        numbers.came,
        np.ascontiguousarray(numbers.left[:, order]),
        latest,
        numbers.n_pools,
        int(max(numbers.came[1].max(initial=-1), numbers.left[1].max(initial=-1))) + 1,
        len(numbers.texts.distinct),
        promise.k,
        promise.l,
    )
    broken[:, 0] = order[broken[:, 0]]
    # Back to how the rows stand.
    earliest, latest = (_at(order, each) for each in (earliest, latest))
    step("own queries")
    own = own_queries(numbers.users, numbers.texts, earliest=earliest, latest=latest, remembered=promise.remembered)
    n_users = released.n_users
    return Verdict(
        promise=promise, holds=True, witnesses=(), n_violations=0, n_users=n_users, n_checked_users=n_users
    ).joined(
        witnesses=[*_witnesses(broken), *own.witnesses],
        n_violations=len(broken) + own.n,
        notes=_notes(released, original, numbers),
    )


def _at(order: Ints, values: Ints) -> Ints:
    out = np.empty_like(values)
    out[order] = values
    return out


class _Numbers(NamedTuple):
    """Arrivals and rows as the kernel takes them; `users` and `texts` are those of the arrivals, then of the rows."""

    came: Codes
    left: Codes
    users: Numbered
    texts: Numbered
    n_pools: int


def _number(released: QueryLog, original: Arrivals) -> _Numbers:
    came, left, n_came = original.frame, released.frame, original.frame.height
    users = number(pl.concat([came["user"], left["user"]]))
    texts = number(as_written(pl.concat([came["query"], left["query"]])))
    pools = number(came["category"])
    n_pools = max(1, len(pools.distinct))
    pool_of = np.full(len(texts.distinct), -1, np.int64)
    # Backwards, because of several values the last one stays: the first arrival of a text says its category.
    pool_of[texts.codes[:n_came][::-1]] = pools.codes[::-1]
    pool = np.concatenate([pools.codes, pool_of[texts.codes[n_came:]]])
    members = number(pl.Series(users.codes * (n_pools + 1) + pool + 1)).codes
    both = np.vstack([pool, members, texts.codes]).astype(np.int32)
    came_codes, left_codes = np.ascontiguousarray(both[:, :n_came]), np.ascontiguousarray(both[:, n_came:])
    return _Numbers(came_codes, left_codes, users, texts, n_pools)


def _notes(released: QueryLog, original: Arrivals, numbers: _Numbers) -> tuple[str, ...]:
    """Say what could not be judged."""
    without_times = released.n_rows > 0 and not has_times(released, original=original)
    pool = numbers.left[0]
    n_left = np.bincount(pool[pool >= 0], minlength=numbers.n_pools)
    n_over = np.bincount(numbers.came[0], minlength=numbers.n_pools) - n_left
    return (*((NO_TIMES,) if without_times else ()), *full_pools(n_over.tolist(), max_pool=original.max_pool))


def _witnesses(broken: Ints) -> list[Witness]:
    """Give those that a verdict keeps."""
    kinds = [_KINDS[kind] for kind in range(len(_KINDS))]
    by_name = np.argsort(np.argsort(np.array(kinds)))
    rows, kind, there, needed = broken.T
    kept = np.lexsort((needed, rows, by_name[kind], there))[: Verdict.N_KEPT]
    return [
        swap_witness(kinds[kind[i]], row=int(rows[i]) + 1, there=int(there[i]), needed=int(needed[i])) for i in kept
    ]

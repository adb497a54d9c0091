"""Verify swap: pools of k events and l users, nobody assigned an own query, no surplus rows or texts."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.checks import arrivals
from queryveil.checks.arrivals import Arrivals
from queryveil.checks.tokens import Codes, Ints, number, term_lists
from queryveil.checks.verdict import Found, Kind, Verdict, found_in
from queryveil.data import QueryLog
from queryveil.guarantees import SwapAnonymity
from queryveil.progress import step

OF_STREAM = "who asked a text was counted over the whole stream, since its windows are not in the original"
NO_TIMES = "the release does not tell after which events rows left, so each pool is judged with all that ever came"


def full_pools(n_left_over: Iterable[int], *, max_pool: int | None) -> tuple[str, ...]:
    """Return a note on the events that full pools must have suppressed, given how many of each were never released.

    >>> full_pools([12, 3, 0], max_pool=10)
    ('full pools have lost at least 2 events, which are judged as if they had stayed',)
    """
    n_lost = 0 if max_pool is None else sum(max(0, n - max_pool) for n in n_left_over)
    if n_lost == 0:
        return ()
    events = "1 event, which is judged as if it" if n_lost == 1 else f"{n_lost:,} events, which are judged as if they"
    return (f"full pools have lost at least {events} had stayed",)


def own_queries(pairs: pl.Series, *, earliest: Ints, latest: Ints, remembered: int | None) -> Found:
    """Return rows whose user issued the query: ever, or certainly among the last `remembered` events before release.

    `pairs` numbers the user and query of each arrival, and then of each row.
    """
    n_came = len(pairs) - earliest.size
    issued = pl.DataFrame({"pair": pairs[:n_came], "arrival": np.arange(n_came)})
    rows = pl.DataFrame({"pair": pairs[n_came:], "earliest": earliest, "latest": latest})
    rows = rows.with_row_index("row", offset=1)
    own = rows.join(issued, on="pair", how="semi", maintain_order="left")
    issued = issued.join(own, on="pair", how="semi", maintain_order="left")
    if remembered is not None:
        own = _certain(own, issued=issued, remembered=remembered)
    counted = own.join(issued.group_by("pair").agg(support=pl.len(), needed=pl.lit(0)), on="pair")
    return found_in(counted, kind="own_query")


def repeats(pairs: pl.Series, *, remembered: int | None) -> np.ndarray:
    """Return which arrivals certainly repeat one of the same user: one among the last `remembered` events, or any.

    >>> repeats(pl.Series([7, 8, 7, 7]), remembered=1).tolist()
    [False, False, False, True]
    """
    arrivals = pl.DataFrame({"pair": pairs}).with_row_index("arrival").cast({"arrival": pl.Int64})
    before = pl.col("arrival").shift(1).over("pair")
    is_near = pl.lit(True) if remembered is None else pl.col("arrival") - before <= remembered
    return arrivals.select((before.is_not_null() & is_near).alias("is_repeat"))["is_repeat"].to_numpy()


def people_so_far(pairs: pl.Series, queries: Ints, windows: pl.Series) -> Ints:
    """Return how many users had asked the query of each arrival for the first time in its window by then.

    >>> people_so_far(pl.Series([1, 2, 1, 3]), np.array([0, 0, 0, 1]), pl.Series([0, 0, 0, 0])).tolist()
    [1, 2, 2, 1]
    """
    asked = pl.DataFrame({"is_first": pairs.is_first_distinct(), "query": queries, "window": windows})
    return asked.select(pl.col("is_first").cast(pl.Int64).cum_sum().over("query", "window"))["is_first"].to_numpy()


def _certain(own: pl.DataFrame, *, issued: pl.DataFrame, remembered: int) -> pl.DataFrame:
    """Return the rows whose pair is remembered at every arrival from the earliest to the latest.

    A pair that is issued again before it is forgotten stays remembered: such issues are one chain, up to its `end`.
    """
    arrival = pl.col("arrival")
    starts_anew = (arrival - arrival.shift(1).over("pair") > remembered).fill_null(True)
    chains = issued.sort("pair", "arrival").with_columns(chain=starts_anew.cum_sum())
    ends = chains.select("pair", "arrival", end=arrival.max().over("chain") + remembered - 1).sort("arrival")
    found = own.sort("earliest", maintain_order=True).join_asof(
        ends, left_on="earliest", right_on="arrival", by="pair", check_sortedness=False
    )
    return found.filter(pl.col("end") >= pl.col("latest")).select(own.columns)


def release_order(came: Codes, left: Codes, latest: Ints) -> Ints:
    """Return an order of rows that keeps the promise if any does; `came` and `left` number users within their pool.

    Rows are ordered by their latest arrival, after which the pool holds most. Among rows with the same one only the
    last matters: once all are released the same events remain, and before that more. Then those users wait who remain,
    and that one. So a user without remaining events goes last.

    >>> came, left = np.array([0, 0, 1], np.int32), np.array([1, 0], np.int32)
    >>> release_order(came, left, np.array([2, 2])).tolist()
    [1, 0]
    """
    n = came.size + 1
    asked = np.sort(came.astype(np.int64) * n + np.arange(came.size))
    until = left.astype(np.int64) * n + latest
    n_asked = np.searchsorted(asked, until, side="right") - np.searchsorted(asked, left.astype(np.int64) * n)
    given = np.sort(until)
    n_given = np.searchsorted(given, until, side="right") - np.searchsorted(given, left.astype(np.int64) * n - 1)
    return np.lexsort((n_given == n_asked, latest))


_KINDS: tuple[Kind, ...] = ("small_pool", "few_users", "surplus_row", "surplus_query", "repeated_query")
"""In the order in which `replay` numbers the rules."""


def verify_swap(released: QueryLog, promise: SwapAnonymity, *, original: Arrivals) -> Verdict:
    """Return the verdict on the promise of swap, given the events that arrived.

    The moment of a release is known only as far as its time shows it, so this searches for a schedule that keeps the
    promise. After an arrival the waiting events are those that arrived less the rows released before; and the later the
    arrival, the more events, users and texts wait. So if any schedule allows a row, the earliest one does, in which
    each row is released as soon as possible: a row that it cannot place is a violation. Rows in no order are put into
    that of `release_order`; if any order is allowed, that one is.

    Violations are rows, once for each rule that they break: fewer than k events or fewer than l users wait; the user
    already has as many rows of this category as queries of it; the text was released as often as it arrived, or the
    query, however typed, as often as it arrived without repeats and after enough others; or the user issued the query,
    however typed. On a stream the last counts only if it is certain, wherever between its earliest and latest arrival
    the row was released.

    Suppressed events are not known and treated as if they had stayed, so no false violation is reported, but a pool
    that was full and lost events may have been smaller than it seems.

    >>> came = pl.DataFrame({"user": ["1", "2", "3"], "query": ["tea", "rye", "oats"], "category": [0, 0, 0]})
    >>> released = QueryLog.from_frame({"user": ["2"], "query": ["tea"]})
    >>> verify_swap(released, SwapAnonymity(k=3, l=2), original=Arrivals(frame=came)).holds
    True
    >>> verify_swap(released, SwapAnonymity(k=4, l=2), original=Arrivals(frame=came)).witnesses[0].in_words()
    'a query left when at most 3 events waited, 4 are needed (row 1)'
    """
    step("numbers")
    numbers = _number(released, original, promise)
    latest = arrivals.latest_arrivals(released, original=original)
    order = np.arange(latest.size) if original.in_order else release_order(numbers.came[1], numbers.left[1], latest)
    latest = latest[order]
    step("pools")
    came, left = numbers.came, np.ascontiguousarray(numbers.left[:, order])
    n_members = int(max(came[1].max(initial=-1), left[1].max(initial=-1))) + 1
    earliest, broken = arrivals.replay(
        came, left, latest, numbers.n_pools, n_members, numbers.n_texts, promise.k, promise.l
    )
    rows = pl.DataFrame({"row": order[broken[:, 0]] + 1, "support": broken[:, 2], "needed": broken[:, 3]})
    found = [found_in(rows.filter(broken[:, 1] == rule), kind=kind) for rule, kind in enumerate(_KINDS)]
    # Back to the order of the rows in the release.
    place = np.argsort(order)
    earliest, latest = earliest[place], latest[place]
    step("own queries")
    own = own_queries(numbers.pairs, earliest=earliest, latest=latest, remembered=promise.remembered)
    verdict = Verdict(promise=promise, n_users=released.n_users, n_checked_users=released.n_users)
    # What could not be verified.
    without_times = released.n_rows > 0 and not arrivals.has_times(released, original=original)
    pools = (numbers.came[0], numbers.left[0])
    n_came, n_left = (np.bincount(pool[pool >= 0], minlength=numbers.n_pools) for pool in pools)
    lost = full_pools((n_came - n_left).tolist(), max_pool=original.max_pool)
    of_stream = promise.min_query_users > 1 and promise.window is not None and promise.remembered is not None
    notes = (*(OF_STREAM,) * of_stream, *(NO_TIMES,) * without_times, *lost)
    return verdict.joined(*found, own, notes=notes)


class _Numbers(NamedTuple):
    """Arrivals and rows as the kernel takes them; `pairs` numbers the user and query of both.

    Arrivals that never waited are in no pool, and of no member of one.
    """

    came: Codes
    left: Codes
    pairs: pl.Series
    n_texts: int
    n_pools: int


def _number(released: QueryLog, original: Arrivals, promise: SwapAnonymity) -> _Numbers:
    came, left, n_came = original.frame, released.frame, original.frame.height
    users = number(pl.concat([came["user"], left["user"]]))
    texts = number(arrivals.as_written(pl.concat([came["query"], left["query"]])))
    pools = number(came["category"])
    n_pools = max(1, len(pools.distinct))
    pool_of = np.full(len(texts.distinct), -1, np.int64)
    # Backwards, because of several values the last one stays: the first arrival of a text says its category.
    pool_of[texts.codes[:n_came][::-1]] = pools.codes[::-1]
    pool = np.concatenate([pools.codes, pool_of[texts.codes[n_came:]]])
    members = number(pl.Series(users.codes * (n_pools + 1) + pool + 1)).codes
    # Texts of the same terms are one query, however typed.
    words = pl.concat([texts.distinct.clear(), *(terms.list.join(" ") for terms in term_lists(texts.distinct))])
    queries = number(words).codes[texts.codes]
    both = np.vstack([pool, members, texts.codes, queries]).astype(np.int32)
    pairs = pl.Series(users.codes * (int(queries.max(initial=0)) + 1) + queries)
    is_rare = np.zeros(n_came, np.bool_)
    if promise.min_query_users > 1:
        window = promise.window if promise.remembered is None else None  # those of a stream are of its clock
        windows = arrivals.windows(came, window=window) if window else pl.zeros(n_came, eager=True)
        is_rare = people_so_far(pairs[:n_came], queries[:n_came], windows) < promise.fewest
        if original.row_windows is not None:
            # A row leaves in the window of its arrival.
            all_windows = pl.concat([windows, original.row_windows])
            both[3] = number(pl.Series(queries).cast(pl.String) + "/" + all_windows.cast(pl.String)).codes
    came_codes, left_codes = np.ascontiguousarray(both[:, :n_came]), np.ascontiguousarray(both[:, n_came:])
    if promise.once:
        came_codes[:2, repeats(pairs[:n_came], remembered=promise.remembered)] = -1
    # Those of a file arrive in random order where askers are counted: any of a text's askers may have waited.
    came_codes[slice(0, 2) if original.in_order else 3, is_rare] = -1
    return _Numbers(came_codes, left_codes, pairs, int(both[2:].max(initial=-1)) + 1, n_pools)

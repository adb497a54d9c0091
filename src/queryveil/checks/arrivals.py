"""Rebuild the events that swap received from the original log, and replay its pools against the released rows.

The one checker that classifies queries and removes identifiers with the code of the methods: the promise is about
these categories and about queries without these identifiers. Whether they are the right ones is another question.
The checker of ec-2026, whose promise is about names, addresses and phone numbers, has the rules for them from here.
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import timedelta
from itertools import product

import numpy as np
import polars as pl

from queryveil.checks.tokens import Codes, Ints, number
from queryveil.data import QueryLog
from queryveil.errors import BadInput, MissingColumn
from queryveil.guarantees import SwapAnonymity, parse_window
from queryveil.kernels import njit
from queryveil.progress import step
from queryveil.release import Ids, Release
from queryveil.text.classifier import CATEGORIES, Classifier
from queryveil.text.identifiers import find_identifiers, remove_identifiers

__all__ = ["Arrivals", "Classifier", "arrivals_of", "find_identifiers"]

FINEST = timedelta(seconds=1)
"""Times are compared to the second, because some formats hold whole seconds only."""
_NO_TIME = -(2**40)  # the window of rows without a time; no other has so low a number, not even one before 1970


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Arrivals:
    """The events that entered the pools, in the order of their arrival.

    - `frame`: `user` (by the id in the release), `query` (without identifiers), `category` (its number), any `time`.
    - `time_unit`: what released times, which are those of arrivals, are truncated to; None for a release without times.
    - `max_pool`: the most events that a pool holds, if known.
    - `in_order`: whether the rows of the release are in the order in which they were released.
    - `rows`: the released rows under the ids that users have here, if they were found.
    - `row_windows`: the window that each row left in, if ids tell it and askers are counted anew in each.
    """

    frame: pl.DataFrame
    time_unit: timedelta | None = None
    max_pool: int | None = None
    in_order: bool = True
    rows: QueryLog | None = None
    row_windows: pl.Series | None = None

    def __post_init__(self) -> None:
        for name in ("user", "query", "category"):
            if name not in self.frame.columns:
                raise MissingColumn("the arrivals", name, found=self.frame.columns)

    def __repr__(self) -> str:
        # Privacy: a frame's own repr would show queries.
        return f"Arrivals(n_events={self.frame.height}, n_categories={self.frame['category'].n_unique()})"


def as_written(queries: pl.Series) -> pl.Series:
    r"""Return texts with blanks for the characters that some file formats cannot hold.

    >>> as_written(pl.Series(["red\tkettle"])).to_list()
    ['red kettle']
    """
    return queries.str.replace_all("[\0\t\n\r]", " ").rename("query")


def latest_arrivals(released: QueryLog, *, original: Arrivals) -> Ints:
    """Return per released row the last arrival after which it can have been released, -1 if before all arrivals.

    A row has the time of the arrival that triggered its release, so it was released no later than the last arrival with
    that or an earlier time; where rows are in order of release, also no later than the rows after it.
    """
    last = original.frame.height - 1
    latest = np.full(released.n_rows, last, np.int64)
    if has_times(released, original=original) and original.time_unit is not None:
        unit = max(original.time_unit, FINEST)
        came = original.frame.select(step=_steps(original.frame["time"], unit)).with_row_index("arrival")
        came = came.drop_nulls("step").sort("step").with_columns(pl.col("arrival").cast(pl.Int64).cum_max())
        left = _steps(released.frame["time"], unit)
        known = left.is_not_null().to_numpy()
        place = np.searchsorted(came["step"].to_numpy(), left.drop_nulls().to_numpy(), side="right")
        latest[known] = np.concatenate([[-1], came["arrival"].to_numpy()])[place]
    return np.ascontiguousarray(np.minimum.accumulate(latest[::-1])[::-1]) if original.in_order else latest


def has_times(released: QueryLog, *, original: Arrivals) -> bool:
    """Return whether the original has times and some released row has one."""
    if original.time_unit is None or "time" not in released.columns or "time" not in original.frame.columns:
        return False
    return bool(released.frame["time"].is_not_null().any())


def _steps(times: pl.Series, unit: timedelta) -> pl.Series:
    """Return how many whole units of time lie between 1970 and each time."""
    return times.cast(pl.Datetime("us")).to_physical() // (unit // timedelta(microseconds=1))


def windows(came: pl.DataFrame, *, window: str) -> pl.Series:
    """Return the number of the window of each arrival; those without a time share one of their own."""
    if "time" not in came.columns:
        return pl.repeat(_NO_TIME, came.height, eager=True)
    return _steps(came["time"], parse_window(window)).fill_null(_NO_TIME)


_ID_LENGTH = 32
_MOST_WINDOWS = 100_000
_FOUND = {"name": pl.String, "user": pl.String, "window": pl.Int64}


def arrivals_of(
    log: QueryLog, *, release: Release, key: bytes | None = None, classifier: Classifier | None = None
) -> Arrivals:
    """Return the events of the original log in the order and under the user ids that the manifest states.

    Events are ordered by time, those without one last, unless the parameter `order` says that file order was used.
    """
    parameters, columns, rows = release.manifest.parameters, release.manifest.columns, release.log
    # Rows of a stream are in the order of release; those of a file are shuffled.
    is_stream = isinstance(release.promise, SwapAnonymity) and release.promise.remembered is not None
    is_by_time = parameters.get("order", "file" if is_stream else "time") == "time"
    kind = parameters.get("classifier")
    if classifier is None and kind not in ("evidence", "paper"):
        own = "--frequencies, --recommendations, --categories"
        raise BadInput(f"this release was made with tables of your own: give them too ({own})")
    if columns.ids is Ids.FRESH:
        raise BadInput(
            "its user ids are fresh, so who got whose query cannot be judged; anonymize with --ids keyed --key FILE"
        )
    if columns.ids is Ids.KEYED and key is None:
        raise BadInput("its user ids are keyed, so the key is needed to judge who got whose query: add --key FILE")
    frame, row_windows = log.frame.select(name for name in ("user", "query", "time") if name in log.columns), None
    if "time" in frame.columns and is_by_time:
        frame = frame.sort("time", nulls_last=True, maintain_order=True)
    step("categories")
    chosen = classifier or Classifier(kind=str(kind))
    frame = _events(frame, chosen, drops_unclassified=parameters.get("unclassified") == "drop")
    if columns.ids is Ids.KEYED and key is not None:
        users = number(frame["user"])
        names = pl.Series([_name(user, key) for user in users.distinct], dtype=pl.String)
        frame = frame.with_columns(user=names.gather(users.codes))
        people, row_windows = _people(release, frame, key)
        rows = rows.with_frame(rows.frame.with_columns(user=people))
        if rows.n_rows and not rows.frame["user"].is_in(frame["user"].unique().implode()).any():
            raise BadInput(
                "with this key no user of the release is found in the original; give the key it was made with"
            )
    max_pool = parameters.get("max_pool")
    # A service dates rows by its own clock, which may be behind that of the events; and where events did not come by
    # time, the times of rows in no order do not say which left first.
    tells_when = parameters.get("times") != "of release" and (is_stream or is_by_time)
    return Arrivals(
        frame=frame,
        time_unit=release.time_step if tells_when else None,
        max_pool=max_pool if isinstance(max_pool, int) else None,
        in_order=is_stream,
        rows=rows,
        row_windows=None if is_stream else row_windows,
    )


def _events(frame: pl.DataFrame, classifier: Classifier, *, drops_unclassified: bool) -> pl.DataFrame:
    """Return the events with identifiers removed and a category number, without those that are then empty."""
    queries = number(frame["query"])
    cleaned = remove_identifiers(queries.distinct).queries
    category = classifier.classify(cleaned).category
    stays = (cleaned.str.strip_chars() != "").to_numpy()
    if drops_unclassified:
        stays &= category >= 0
    category = np.where(category < 0, len(CATEGORIES), category).astype(np.int8)
    events = frame.with_columns(query=cleaned.gather(queries.codes), category=pl.Series(category[queries.codes]))
    return events.filter(pl.Series(stays[queries.codes]))


def _name(user: str, key: bytes) -> str:
    return hmac.digest(key, user.encode(), hashlib.sha256).hex()[:_ID_LENGTH]


def _people(release: Release, came: pl.DataFrame, key: bytes) -> tuple[pl.Series, pl.Series | None]:
    """Return the users of the released rows under the ids that hold in every window, and the windows of these ids.

    An id in a window is derived from that id and the number of the window, from 1970. Users are tried in the windows
    that they asked in, then in all. An id of nobody stays, and is of no window.
    """
    users, window = release.log.frame["user"], release.promise.window
    if window is None:
        return users, None
    tried = _windows(release, came, window=window)
    distinct, everybody = set(users), came["user"].unique().to_list()
    found = dict[str, tuple[str, int]]()
    for pairs in (tried.unique().iter_rows(), product(everybody, tried["window"].unique().to_list())):
        if len(found) < len(distinct):
            names = ((_name(f"{user}\0{number}", key), user, number) for user, number in pairs)
            found |= {name: (user, number) for name, user, number in names if name in distinct}
    known = pl.DataFrame([(name, *each) for name, each in found.items()], schema=_FOUND, orient="row")
    rows = users.to_frame("name").join(known, on="name", how="left", maintain_order="left")
    return rows["user"].fill_null(rows["name"]), rows["window"]


def _windows(release: Release, came: pl.DataFrame, *, window: str) -> pl.DataFrame:
    """Return users and windows that they may have left in: those they asked in, or all of a stream."""
    first, last = (release.manifest.parameters.get(f"{end}_window") for end in ("first", "last"))
    if isinstance(first, int) and isinstance(last, int):
        numbers = pl.DataFrame({"window": range(first, min(last, first + _MOST_WINDOWS) + 1)})
        return came.select("user").unique().join(numbers, how="cross")
    return came.select("user", window=windows(came, window=window))


SMALL_POOL, FEW_USERS, SURPLUS_ROW, SURPLUS_QUERY, REPEATED_QUERY = 0, 1, 2, 3, 4
_N_RULES = 5


@njit(cache=True)
def replay(
    came: Codes,
    left: Codes,
    latest: Ints,
    n_pools: int,
    n_members: int,
    n_texts: int,
    k: int,
    l: int,  # noqa: E741
) -> tuple[Ints, Ints]:
    """Replay arrivals one by one, releasing each row after the first arrival that allows it, up to its `latest`.

    `came` (arrivals) and `left` (released rows) have four lines: pools, members (users in one pool), texts and queries,
    which are texts however they are typed. An arrival of pool -1 never waits, the query of one of query -1 does not,
    and a row of pool -1 has a text that never arrived. Return per row the arrival after which it is released, and a
    line for each rule that a row breaks: row, rule, value found, value needed.
    """
    n_waiting, n_users = np.zeros(n_pools, np.int64), np.zeros(n_pools, np.int64)
    asked, given = np.zeros(n_members, np.int64), np.zeros(n_members, np.int64)
    issued, released = np.zeros(n_texts, np.int64), np.zeros(n_texts, np.int64)
    entered, gone = np.zeros(n_texts, np.int64), np.zeros(n_texts, np.int64)
    earliest = np.empty(latest.size, np.int64)
    broken, n_broken = np.empty((64, 4), np.int64), 0
    n_came = 0
    for row in range(latest.size):
        pool, member, text, query = left[0, row], left[1, row], left[2, row], left[3, row]
        while pool >= 0 and n_came <= latest[row]:
            can_leave = n_waiting[pool] >= k and n_users[pool] >= l
            is_there = issued[text] > released[text] and entered[query] > gone[query]
            if can_leave and is_there and asked[member] > given[member]:
                break
            issued[came[2, n_came]] += 1
            if came[0, n_came] >= 0:
                newcomer = came[1, n_came]
                asked[newcomer] += 1
                n_users[came[0, n_came]] += asked[newcomer] == given[newcomer] + 1
                n_waiting[came[0, n_came]] += 1
                if came[3, n_came] >= 0:
                    entered[came[3, n_came]] += 1
            n_came += 1
        earliest[row] = n_came - 1
        if n_broken + _N_RULES > len(broken):
            broken = np.concatenate((broken, np.empty_like(broken)))
        released[text] += 1
        gone[query] += 1
        if released[text] > issued[text]:
            n_broken = _write(broken, n_broken, row, SURPLUS_QUERY, released[text], issued[text])
        elif gone[query] > entered[query]:
            n_broken = _write(broken, n_broken, row, REPEATED_QUERY, gone[query], entered[query])
        if pool < 0:
            continue
        if n_waiting[pool] < k:
            n_broken = _write(broken, n_broken, row, SMALL_POOL, max(0, n_waiting[pool]), k)
        if n_users[pool] < l:
            n_broken = _write(broken, n_broken, row, FEW_USERS, n_users[pool], l)
        given[member] += 1
        if given[member] > asked[member]:
            n_broken = _write(broken, n_broken, row, SURPLUS_ROW, given[member], asked[member])
        # A row released before its event arrived is a debt: that event does not wait when it arrives.
        n_users[pool] -= asked[member] == given[member]
        n_waiting[pool] -= 1
    return earliest, broken[:n_broken]


@njit(cache=True)
def _write(broken: Ints, place: int, row: int, rule: int, there: int, needed: int) -> int:
    """Write a line of broken rules; return the position of the next."""
    broken[place, 0], broken[place, 1], broken[place, 2], broken[place, 3] = row, rule, there, needed
    return place + 1

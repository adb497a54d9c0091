"""Which columns of a log are released, and how ids and times change: the one rule for every engine.

On one machine `ColumnPolicy.apply` does it all; Spark and streams number users and shuffle rows in ways of their own.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

import msgspec
import numpy as np
import polars as pl

from queryveil.data import ROLES, Int32s, with_own_texts
from queryveil.errors import BadParameter
from queryveil.formats.read import parse_choice
from queryveil.guarantees import parse_window

EVENTS = "events"
"""What to keep so that the events of released rows leave."""
IDS_KEPT = "user ids are the original ones: whoever knows an id knows the person's rows"
"""The warning of a release with kept ids."""
_MIN_KEY_BYTES = 16
_ID_LENGTH = 32


def check_key(key: bytes | None, *, name: str = "key") -> None:
    """Raise if a secret key is shorter than 16 bytes."""
    if key is not None and len(key) < _MIN_KEY_BYTES:
        raise BadParameter(name, f"{len(key)} bytes", allowed=f"at least {_MIN_KEY_BYTES} secret bytes")


def new_key(rng: np.random.Generator | None = None) -> bytes:
    """Return a secret key of 32 bytes from the system's secure source, or from `rng` for runs that are to repeat."""
    return secrets.token_bytes(32) if rng is None else rng.bytes(32)


class Ids(StrEnum):
    """What the user column holds."""

    FRESH = "fresh"
    KEYED = "keyed"
    KEEP = "keep"


class TimeDetail(StrEnum):
    """How exact released times are."""

    DAY = "day"
    HOUR = "hour"
    KEEP = "keep"
    DROP = "drop"
    SHARED = "shared"

    @property
    def is_covered(self) -> bool:
        """Whether a promise covers what is released: no times, or days that users share."""
        return self in (TimeDetail.DROP, TimeDetail.SHARED)

    @property
    def unit(self) -> timedelta | None:
        """The step between two different released times; none if there are no times."""
        days = dict.fromkeys((TimeDetail.DAY, TimeDetail.SHARED), timedelta(days=1))
        return {**days, TimeDetail.HOUR: timedelta(hours=1), TimeDetail.KEEP: timedelta(microseconds=1)}.get(self)

    def truncate(self, times: pl.Series) -> pl.Series:
        """Return times as they are released; they are not released at all with `drop`.

        >>> from datetime import datetime
        >>> TimeDetail.HOUR.truncate(pl.Series([datetime(2026, 3, 4, 15, 16, 17)])).item()
        datetime.datetime(2026, 3, 4, 15, 0)
        """
        every = {TimeDetail.DAY: "1d", TimeDetail.HOUR: "1h", TimeDetail.SHARED: "1d"}.get(self)
        return times if every is None else times.dt.truncate(every)


class ColumnReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was done with the columns, for the manifest.

    Other columns that were dropped are only counted: their names may be data, as keys of JSON sometimes are.
    """

    ids: Ids
    time: TimeDetail
    kept: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    n_others_dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPolicy:
    """How the columns that a promise does not cover are released, if at all; times only if they are asked for.

    - `ids`: users get shuffled numbers that mean nothing outside the release (`fresh`), the same pseudonym in every
      release (`keyed`), or stay as they are (`keep`).
    - `time`: times are dropped, or released without being covered by the promise: truncated to the `day` or `hour`, or
      exact (`keep`); `shared` are those that the promise covers, in kdelta days that equal users share, in km starts of
      windows or days and weeks that count as terms, in swap the starts of the windows in which ids hold.
    - `keep`: other columns to release; any that is not named is dropped. `events` are all events of the released rows,
      with fresh numbers in place of search ids; `url` and `rank` are those of clicks alone, as are the events of a log
      whose rows are clicks.
    - `key`: the secret of keyed ids, at least 16 bytes: a pseudonym is the HMAC-SHA256 of the user id.

    >>> ColumnPolicy(time="hour", keep=("rank",))
    ColumnPolicy(ids=<Ids.FRESH: 'fresh'>, time=<TimeDetail.HOUR: 'hour'>, keep=('rank',))
    """

    ids: Ids = Ids.FRESH
    time: TimeDetail = TimeDetail.DROP
    keep: tuple[str, ...] = ()
    key: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", parse_choice(Ids, self.ids, name="ids"))
        object.__setattr__(self, "time", parse_choice(TimeDetail, self.time, name="time"))
        object.__setattr__(self, "keep", (self.keep,) if isinstance(self.keep, str) else tuple(self.keep))
        for name in self.keep:
            if name in ("user", "query", "time"):
                raise BadParameter("keep", name, allowed="other columns: ids and time say what becomes of these")
            if name == "search":
                raise BadParameter("keep", name, allowed="events, which bring numbers of the searches along")
            if name in ("rank", "url") and EVENTS in self.keep:
                raise BadParameter("keep", name, allowed="left out where events are kept, which have it")
        if self.ids is Ids.KEYED and self.key is None:
            raise BadParameter("key", "none", allowed="a file of at least 16 secret bytes when ids are keyed")
        if self.ids is not Ids.KEYED and self.key is not None:
            raise BadParameter("ids", str(self.ids), allowed="keyed when a key is given")
        check_key(self.key)

    def check(self, columns: list[str], *, shares_days: bool = False, has_events: bool = False) -> None:
        """Raise if a column to keep is not there, or if days are to be shared and the method cannot do it."""
        if not shares_days:
            self.check_not_shared()
        for name in self.kept(columns):
            if name not in columns and not (name == EVENTS and has_events):
                there = ", ".join(column for column in ("rank", "url") if column in columns) or "none here"
                raise BadParameter("keep", name, allowed=f"columns of the log, such as {there}")

    def check_not_shared(self) -> None:
        """Raise if days are to be shared."""
        if self.time is TimeDetail.SHARED:
            able = "kdelta, km, and swap where ids change release times that users share"
            raise BadParameter("time", "shared", allowed=f"drop, day, hour or keep here; only {able}")

    def kept(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Return what is kept of a log with these columns; where its rows are clicks, its events are these.

        >>> ColumnPolicy(keep="events").kept(["user", "query", "rank", "url"])
        ('rank', 'url')
        """
        clicks = [name for name in ("rank", "url") if name in columns]
        if EVENTS not in self.keep or EVENTS in columns or not clicks:
            return self.keep
        return (*(name for name in self.keep if name != EVENTS), *clicks)

    def report(self, columns: list[str], *, protected: tuple[str, ...] = ()) -> ColumnReport:
        """Return what is done with the columns of a log; `protected` are those that the promise covers."""
        released = ("time",) if self.time is not TimeDetail.DROP else ()
        keep = self.kept(columns)
        has_events = EVENTS in keep and EVENTS not in columns
        known = ("user", "query", *released, *protected, *(("search",) if has_events else ()))
        others = [name for name in columns if name not in known]
        return ColumnReport(
            ids=self.ids,
            time=self.time if "time" in columns else TimeDetail.DROP,
            kept=(*(name for name in others if name in keep), *((EVENTS,) if has_events else ())),
            dropped=tuple(name for name in others if name in ROLES and name not in keep),
            n_others_dropped=sum(name not in ROLES and name not in keep for name in others),
        )

    def warnings(self, columns: list[str], *, protected: tuple[str, ...] = (), n_alone: int | None = None) -> list[str]:
        """Return what the promise does not cover; `n_alone` is the number of users with a unique set of times."""
        found = []
        if self.ids is Ids.KEEP:
            found.append(IDS_KEPT)
        if self.ids is Ids.KEYED:
            found.append("user ids are the same in every release under this key: releases can be joined by them")
        if self.time is TimeDetail.KEEP and "time" in columns:
            found.append("times are exact: whoever knows when a person searched finds the person's rows")
        if n_alone is not None:
            alone = f"users with a set of them that nobody else has: {n_alone:,}"
            found.append(f"times are not covered by the promise; {alone}")
        kept = self.report(columns, protected=protected).kept
        # How many events are kept is said where they are counted.
        told = (name for name in kept if name in columns)
        return found + [f"column {name} was kept and is not covered by the promise" for name in told]

    def n_alone(self, released: pl.DataFrame) -> int | None:
        """Return how many released users have a set of times that nobody else has; None if the promise covers them.

        >>> from datetime import datetime
        >>> days = [datetime(2026, 3, 4), datetime(2026, 3, 5)]
        >>> released = pl.DataFrame({"user": ["1", "2", "3", "3"], "time": [days[0], days[0], *days]})
        >>> ColumnPolicy(time="day").n_alone(released)
        1
        """
        if "time" not in released.columns or self.time.is_covered:
            return None
        sets = released.select("user", "time").drop_nulls("time").group_by("user").agg(pl.col("time").unique().sort())
        return int((sets.group_by("time").len()["len"] == 1).sum())

    def released_names(self, columns: Iterable[str], *, protected: tuple[str, ...] = ()) -> list[str]:
        """Return the columns that are released: user, query, time unless dropped, protected ones and kept ones.

        Where events are kept, that is the search, too, until it gets a fresh number.
        """
        there = list(columns)
        keep = self.kept(there)
        if EVENTS in keep and EVENTS not in there:
            keep = (*keep, "search")
        released = {"user", "query", *protected, *keep, *(() if self.time is TimeDetail.DROP else ("time",))}
        return [name for name in there if name in released]

    def released_columns(self, frame: pl.DataFrame, *, protected: tuple[str, ...] = ()) -> pl.DataFrame:
        """Return the columns of a frame that are released, with times as exact as they may be."""
        out = frame.select(self.released_names(frame.columns, protected=protected))
        return out.with_columns(self.time.truncate(out["time"])) if "time" in out.columns else out

    def released_ids(self, users: pl.Series) -> pl.Series:
        """Return the id of each row's user: a pseudonym under the key, or the user's own."""
        # Fresh ids come later, from whoever has seen all users: here they are still the users' own.
        if self.key is None:
            return users
        distinct = users.unique(maintain_order=True)
        pseudonyms = keyed(distinct, key=self.key)
        return users.replace_strict(distinct, pseudonyms, return_dtype=pl.String).alias(users.name)

    def apply(
        self, frame: pl.DataFrame, owners: Int32s, *, rng: np.random.Generator, protected: tuple[str, ...] = ()
    ) -> pl.DataFrame:
        """Return the released columns with users renamed and rows shuffled, and no text of other rows."""
        # `owners` numbers the user (or the user in one window) of each row; with keyed ids and windows the caller has
        # made the user column distinct for each owner.
        out = self.released_columns(frame, protected=protected)
        users = fresh_ids(owners, rng=rng) if self.ids is Ids.FRESH else self.released_ids(frame["user"])
        # Owners are shuffled, and the rows of each, which stay together.
        n_owners = int(owners.max(initial=-1)) + 1
        order = pl.Series(np.lexsort((rng.random(len(owners)), rng.permutation(n_owners)[owners])))
        return with_own_texts(out.with_columns(users)[order], but=None if self.ids is Ids.KEEP else "user")


def fresh_ids(owners: Int32s, *, rng: np.random.Generator) -> pl.Series:
    """Return shuffled numbers for users, the same in each row of a user."""
    present, place = np.unique(owners, return_inverse=True)
    return pl.Series("user", (rng.permutation(len(present)) + 1)[place]).cast(pl.String)


def window_numbers(times: pl.Series, *, window: str) -> pl.Series:
    """Return the window of each time, counted from 1970; missing times share a number below that of any window.

    >>> from datetime import datetime
    >>> window_numbers(pl.Series([datetime(1970, 1, 1, 23), datetime(1970, 1, 3), None]), window="1d").to_list()
    [0, 2, -1099511627776]
    """
    microseconds = times.cast(pl.Datetime("us")).to_physical()
    return (microseconds // (parse_window(window) // timedelta(microseconds=1))).fill_null(-(2**40))


def window_starts(times: pl.Series, *, window: str) -> pl.Series:
    """Return the first moment of the window of each time; none for one that is missing."""
    length = parse_window(window) // timedelta(microseconds=1)
    return (times.to_physical() // length * length).cast(times.dtype)


def ids_per_window(users: pl.Series, windows: pl.Series) -> pl.Series:
    """Return another id for each window of a user, so that nobody can be followed from one window to the next."""
    return users + "\0" + windows.cast(pl.String)


def pseudonyms_of_window_ids(ids: pl.Series, *, people: pl.DataFrame, windows: Iterable[int], key: bytes) -> pl.Series:
    """Return the pseudonym behind each per-window id; unknown ids are returned unchanged."""
    # `people` has pseudonyms with the `window` that they are most likely in, which are tried before all `windows`.
    distinct, found = set(ids), dict[str, str]()
    pseudonyms = people.select("user").unique()
    for users in (people.unique(), *(pseudonyms.with_columns(window=pl.lit(n)) for n in windows)):
        if len(found) == len(distinct):
            break
        names = keyed(ids_per_window(users["user"], users["window"]), key=key)
        found |= {name: user for name, user in zip(names, users["user"], strict=True) if name in distinct}
    return ids.replace(found) if found else ids


def keyed(users: pl.Series, *, key: bytes) -> pl.Series:
    """Return the pseudonyms that users have in every release under this key."""
    # The key is hashed once and copied: that takes a quarter less than hmac.digest for each user.
    with_key = hmac.new(key, digestmod=hashlib.sha256)
    pseudonyms = []
    for user in users:
        digest = with_key.copy()
        digest.update(user.encode())
        pseudonyms.append(digest.hexdigest()[:_ID_LENGTH])
    return pl.Series(pseudonyms, dtype=pl.String)

"""Which columns of a log may leave, and how: a promise covers columns, the rest goes only when asked for."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

import msgspec
import numpy as np
import polars as pl

from queryveil.data import ROLES, Int32s, with_own_texts
from queryveil.errors import BadParameter

MIN_KEY_BYTES = 16
"""So long must a secret be."""
_ID_LENGTH = 32


class Ids(StrEnum):
    """What stands in the user column."""

    FRESH = "fresh"
    KEYED = "keyed"
    KEEP = "keep"


class TimeDetail(StrEnum):
    """How exact released times are."""

    DAY = "day"
    HOUR = "hour"
    KEEP = "keep"
    DROP = "drop"

    @property
    def unit(self) -> timedelta | None:
        """The step between two different released times; none if there are no times."""
        return {
            TimeDetail.DAY: timedelta(days=1),
            TimeDetail.HOUR: timedelta(hours=1),
            TimeDetail.KEEP: timedelta(microseconds=1),
            TimeDetail.DROP: None,
        }[self]


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
    """How the columns that a promise does not cover leave, if at all.

    Users get shuffled numbers that mean nothing outside the release (`fresh`), the same pseudonym in every
    release (`keyed`: HMAC-SHA256 with `key`) or stay as they are (`keep`). Times are cut to the `day`, the
    `hour`, kept or dropped. Any other column is dropped unless named in `keep`.

    Examples
    --------
    >>> ColumnPolicy(time="hour", keep=("rank",))
    ColumnPolicy(ids=<Ids.FRESH: 'fresh'>, time=<TimeDetail.HOUR: 'hour'>, keep=('rank',))
    """

    ids: Ids = Ids.FRESH
    time: TimeDetail = TimeDetail.DAY
    keep: tuple[str, ...] = ()
    key: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", _choice("ids", self.ids, Ids))
        object.__setattr__(self, "time", _choice("time", self.time, TimeDetail))
        object.__setattr__(self, "keep", (self.keep,) if isinstance(self.keep, str) else tuple(self.keep))
        for name in self.keep:
            if name in ("user", "query", "time"):
                raise BadParameter("keep", name, allowed="other columns: ids and time say what becomes of these")
        if self.ids is Ids.KEYED and self.key is None:
            raise BadParameter("key", "none", allowed="a file of at least 16 secret bytes when ids are keyed")
        if self.ids is not Ids.KEYED and self.key is not None:
            raise BadParameter("ids", str(self.ids), allowed="keyed when a key is given")
        if self.key is not None and len(self.key) < MIN_KEY_BYTES:
            raise BadParameter("key", f"{len(self.key)} bytes", allowed="at least 16 secret bytes")

    def check(self, columns: list[str]) -> None:
        """Raise if a column to keep is not there."""
        for name in self.keep:
            if name not in columns:
                there = [column for column in ("rank", "url") if column in columns]
                raise BadParameter(
                    "keep", name, allowed=f"columns of the log, such as {', '.join(there) or 'none here'}"
                )

    def report(self, columns: list[str], *, protected: tuple[str, ...] = ()) -> ColumnReport:
        """What becomes of the columns of a log; those that a promise covers are `protected` and leave unasked."""
        others = [name for name in columns if name not in ("user", "query", "time", *protected)]
        return ColumnReport(
            ids=self.ids,
            time=self.time if "time" in columns else TimeDetail.DROP,
            kept=tuple(name for name in others if name in self.keep),
            dropped=tuple(name for name in others if name in ROLES and name not in self.keep),
            n_others_dropped=sum(name not in ROLES and name not in self.keep for name in others),
        )

    def warnings(self, columns: list[str], *, protected: tuple[str, ...] = ()) -> list[str]:
        """Return what leaves that the promise does not cover."""
        found = []
        if self.ids is Ids.KEEP:
            found.append("user ids are the original ones: whoever knows an id knows the person's rows")
        if self.ids is Ids.KEYED:
            found.append("user ids are the same in every release under this key: releases can be joined by them")
        if self.time is TimeDetail.KEEP and "time" in columns:
            found.append("times are exact: whoever knows when a person searched finds the person's rows")
        kept = self.report(columns, protected=protected).kept
        found += [f"column {name} was kept and is not covered by the promise" for name in kept]
        return found

    def apply(
        self, frame: pl.DataFrame, owners: Int32s, *, rng: np.random.Generator, protected: tuple[str, ...] = ()
    ) -> pl.DataFrame:
        """Return the rows with released columns only, users renamed and rows shuffled, and no text of other rows.

        `owners` numbers the user (or the user in one window) of each row; with keyed ids and windows the caller
        has made the user column distinct for each owner.
        """
        names = [name for name in frame.columns if name in ("user", "query", *protected) or name in self.keep]
        if "time" in frame.columns and self.time is not TimeDetail.DROP:
            names = [name for name in frame.columns if name in (*names, "time")]
        out = frame.select(names).with_columns(self._user(frame["user"], owners, rng))
        if "time" in out.columns and self.time in (TimeDetail.DAY, TimeDetail.HOUR):
            out = out.with_columns(pl.col("time").dt.truncate("1d" if self.time is TimeDetail.DAY else "1h"))
        order = _shuffled_order(owners, rng)
        return with_own_texts(out[order], but=None if self.ids is Ids.KEEP else "user")

    def _user(self, users: pl.Series, owners: Int32s, rng: np.random.Generator) -> pl.Series:
        if self.ids is Ids.KEEP:
            return users.alias("user")
        if self.ids is Ids.KEYED and self.key is not None:
            distinct = users.unique(maintain_order=True)
            return users.replace_strict(distinct, keyed(distinct, key=self.key), return_dtype=pl.String).alias("user")
        present, place = np.unique(owners, return_inverse=True)
        numbers = rng.permutation(len(present)) + 1
        return pl.Series("user", numbers[place]).cast(pl.String)


def keyed(users: pl.Series, *, key: bytes) -> pl.Series:
    """Return the pseudonyms that users have in every release under this key."""
    pseudonyms = [hmac.digest(key, user.encode(), hashlib.sha256).hex()[:_ID_LENGTH] for user in users]
    return pl.Series(pseudonyms, dtype=pl.String)


def _shuffled_order(owners: Int32s, rng: np.random.Generator) -> pl.Series:
    """Shuffle the owners, and the rows of each; an owner's rows stay together."""
    n_owners = int(owners.max(initial=-1)) + 1
    return pl.Series(np.lexsort((rng.random(len(owners)), rng.permutation(n_owners)[owners])))


_Choice = TypeVar("_Choice", bound=StrEnum)


def _choice(name: str, value: str, kind: type[_Choice]) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        raise BadParameter(name, value, allowed="one of " + ", ".join(kind)) from None

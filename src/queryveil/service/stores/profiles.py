"""The profiles that a stream has made so far, read while it goes on writing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import polars as pl

from queryveil.data import QueryLog
from queryveil.errors import BadFile, BadParameter
from queryveil.methods.swap.preparing import prepare
from queryveil.service.stores import postgres, sqlite
from queryveil.service.stores._profile_blocks import NAMES, quote, read_backlog, read_blocks, unquote
from queryveil.text.classifier import Classifier

SCHEMA = pl.Schema({"user": pl.String(), **dict.fromkeys(NAMES, pl.Int64()), "total": pl.Int64()})
"""The columns of a table of profiles: a row for each user, and the number of queries in each category."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How many released queries one user has in each category; categories without any are left out."""

    user: str = field(repr=False)
    counts: dict[str, int] = field(repr=False)

    @property
    def n_rows(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class ProfileDatabase:
    """Reads the profiles in a store, by released user id, while the stream goes on; each call reads one snapshot.

    - `store`: a file, sqlite:FILE or postgresql://.
    """

    store: str | Path = field(repr=False)

    def table(self) -> pl.DataFrame:
        """Return all profiles: a row for each user, a column of counts for each category, and their total."""
        wide = self._read()
        return wide.sort("user").with_columns(total=pl.sum_horizontal(NAMES)).select(SCHEMA.names())

    def of_user(self, user: str) -> Profile | None:
        """Return one profile, if there is one."""
        wide = self._read(user)
        if wide.is_empty():
            return None
        counts = wide.row(0, named=True)
        return Profile(user=user, counts={name: counts[name] for name in NAMES if counts[name]})

    def _read(self, user: str | None = None) -> pl.DataFrame:
        if str(self.store).startswith(("postgresql://", "postgres://")):
            return self._from_server(user)
        if "://" in str(self.store) or str(self.store) in ("", "memory:"):
            raise BadParameter("store", "another", allowed="a file, sqlite:FILE or postgresql://user@host/database")
        path = Path(str(self.store).removeprefix("sqlite:"))
        if not path.is_file():
            raise BadFile(path.name, "there is no such store")
        key = None if user is None else quote(pl.Series([user]))[0]
        with sqlite.open_to_read(path) as connection:
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                raise BadFile(path.name, "there is no store in this file")
            # One moment of the file, whatever is written to it meanwhile.
            connection.execute("BEGIN")
            blocks = read_blocks(connection, user=key)
            backlog = read_backlog(connection)
        waiting = pl.concat([backlog.run, *backlog.fresh])
        if key is not None:
            blocks, waiting = blocks.filter(pl.col("user") == key), waiting.filter(pl.col("user") == key)
        if not waiting.is_empty():
            blocks = pl.concat([blocks, _wide(waiting)]).group_by("user").sum()
        return blocks.with_columns(unquote(blocks["user"]))

    def _from_server(self, user: str | None) -> pl.DataFrame:
        address = postgres.PostgresAddress(str(self.store))
        connection = address.connect()
        with address.errors(), connection, connection.cursor() as cursor:
            if not address.has_table(connection, "profiles"):
                raise BadFile(f"schema {address.schema}", f"there is no store in it on {address.name}")
            # The store writes it without null letters, which PostgreSQL's texts cannot hold.
            found, values = ("profiles", ()) if user is None else (_OF_USER, (user.replace("\0", "\ufffd"),))
            with cursor.copy(f"COPY {found} TO STDOUT WITH (FORMAT csv, FORCE_QUOTE (user_id))", values) as copy:
                text = b"".join(map(bytes, copy))
        rows = pl.read_csv(text, has_header=False, schema=_LONG) if text else pl.DataFrame(schema=_LONG)
        place = pl.col("category").replace_strict(NAMES, range(len(NAMES)), return_dtype=pl.Int64)
        return _wide(rows.with_columns(place))


_OF_USER = "(SELECT user_id, category, n FROM profiles WHERE user_id = %s)"
_LONG = pl.Schema({"user": pl.String(), "category": pl.String(), "n": pl.Int64()})


def _wide(rows: pl.DataFrame) -> pl.DataFrame:
    """Return each category a column; in `rows` it is a number."""
    columns = (pl.col("n").filter(pl.col("category") == i).sum().alias(name) for i, name in enumerate(NAMES))
    return rows.group_by("user").agg(columns)


_AFTER = "_after"


class ProfileComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Profiles before and after, beside each other.

    `distance` is the mean over users of both of how much of a profile's shares moved (total variation, 0 the same and
    1 nothing in common). Users with fewer rows have some in the pools still, or lost them.
    """

    n_users_before: int
    n_users_after: int
    n_users_both: int
    n_rows_before: int
    n_rows_after: int
    n_equal: int
    n_with_fewer_rows: int
    n_with_more_rows: int
    distance: float | None


def profiles_of_log(
    log: QueryLog, *, classifier: Classifier, pseudonyms: Callable[[pl.Series], pl.Series], unclassified: str = "pool"
) -> pl.DataFrame:
    """Return the profiles that a log's own users have, under the names that they got on release."""
    frame = prepare(log.frame.select("user", "query"), classifier=classifier, unclassified=unclassified).frame
    counted = _wide(frame.with_columns(n=pl.lit(1, pl.Int64))).with_columns(total=pl.sum_horizontal(NAMES))
    return counted.with_columns(pseudonyms(counted["user"]).alias("user")).select(SCHEMA.names()).sort("user")


def compare_profiles(before: pl.DataFrame, *, after: pl.DataFrame) -> ProfileComparison:
    """Compare two tables of profiles by user."""
    both = before.join(after, on="user", suffix=_AFTER)
    moved = pl.sum_horizontal(
        (pl.col(name) / pl.col("total") - pl.col(name + _AFTER) / pl.col("total" + _AFTER)).abs() for name in NAMES
    )
    equal = pl.all_horizontal(pl.col(name) == pl.col(name + _AFTER) for name in NAMES)
    facts = both.select(
        (moved / 2).mean().alias("distance"),
        equal.sum().alias("n_equal"),
        (pl.col("total" + _AFTER) < pl.col("total")).sum().alias("n_with_fewer_rows"),
        (pl.col("total" + _AFTER) > pl.col("total")).sum().alias("n_with_more_rows"),
    ).row(0, named=True)
    return ProfileComparison(
        n_users_before=len(before),
        n_users_after=len(after),
        n_users_both=len(both),
        n_rows_before=int(before["total"].sum()),
        n_rows_after=int(after["total"].sum()),
        **facts,
    )

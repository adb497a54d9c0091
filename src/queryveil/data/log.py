"""A query log as columns, whatever file or frame it came from, and counts of queries (dp, google-2024)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Self

import polars as pl

from queryveil.data.events import EVENTS_SCHEMA, is_click, to_events
from queryveil.data.frames import Framed, to_frame
from queryveil.errors import BadInput, BadParameter, MissingColumn

ROLES: Mapping[str, pl.DataType] = {
    "user": pl.String(),
    "query": pl.String(),
    "time": pl.Datetime("us"),
    "rank": pl.Int64(),
    "url": pl.String(),
    "device": pl.String(),
    "country": pl.String(),
    "language": pl.String(),
    "search": pl.String(),
}
"""The columns that have a meaning here, and their types; any other column is carried along.

A `search` is what one query brought up: rows with the same search, and the events that name it, belong together.
"""


class Format(StrEnum):
    """The kinds of file that hold query logs."""

    AOL = "aol"
    EXCITE = "excite"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    UBI = "ubi"
    TRANSACTIONS = "transactions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a log's file was written, so that a release of it can look the same.

    `names` gives the file's own name of each role (`{"user": "AnonID"}`), `columns` all its columns in order.
    """

    format: Format = Format.PARQUET
    names: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    has_header: bool = True
    time_format: str | None = None
    compression: str = ""

    @property
    def terms_are_items(self) -> bool:
        """Whether the terms of a query are items of a transaction: as they stand, parted by blanks."""
        return self.format is Format.TRANSACTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What had to be done to read a log; it goes into the manifest of every release made from it.

    - `n_foreign_documents`: documents of OpenSearch left out because their index is none of UBI.
    - `n_fields_left_out`: values of UBI documents that stand in a field for which there is no column.
    """

    n_bad_rows_skipped: int = 0
    n_latin1_rows: int = 0
    n_foreign_documents: int = 0
    n_fields_left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class QueryLog(Framed):
    """A query log: one row per query (or click), never changed once made.

    - `frame`: has at least `user` and `query`; the other columns of `ROLES` where the source had them, and whatever
      else it had. An empty query is `""`; other missing values are null.
    - `events`: what people did with the results (`EVENTS_SCHEMA`), where the source has it apart from the queries: then
      a row is a query, and its clicks are events. None where a row is a query or a click.
    - `layout`, `reading`: how the file was written, and what had to be done to read it.

    Examples
    --------
    >>> log = QueryLog.from_frame({"user": ["u1", "u2"], "query": ["jaguar", "jaguar price"]})
    >>> log
    QueryLog(n_rows=2, n_users=2, columns=['user', 'query'])
    """

    kind: ClassVar[str] = "log"
    noun: ClassVar[str] = "a log"
    caption: ClassVar[str] = "Query log"
    shown: ClassVar[Mapping[str, str]] = {"rows": "n_rows", "users": "n_users", "columns": "columns"}

    events: pl.DataFrame | None = None
    layout: Layout = field(default_factory=Layout)
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        if self.events is not None and self.events.schema != pl.Schema(EVENTS_SCHEMA):
            raise BadInput(f"events have the columns {', '.join(EVENTS_SCHEMA)}")
        for role in ("user", "query"):
            if role not in self.frame.columns:
                raise MissingColumn("the frame", role, found=self.frame.columns)
            if self.frame[role].null_count():
                raise BadInput(f"the {role} column has missing values; an empty query is the empty string")
        for role, dtype in ROLES.items():
            if role in self.frame.columns and self.frame.schema[role] != dtype:
                raise BadInput(f"the {role} column must be {dtype}, found {self.frame.schema[role]}")

    @classmethod
    def from_frame(
        cls,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        layout: Layout | None = None,
        events: Any = None,
    ) -> Self:
        """Take a Polars, pandas or Arrow frame, or a dict of columns.

        - `columns`: the column of each role where it is not called by its role: `{"user": "client_id"}`.
        - `layout`: how a release of it is written; by default as Parquet, and as UBI where there are events.
        - `events`: what people did with the results, in the same kinds of frame: `search` and `action`, and what there
          is of `object`, `object_field`, `rank`, `time` and `dwell`. The log has a column `search` then. Events of
          searches that the log does not have are kept, without a search.

        >>> queries = {"user": ["u1", "u2"], "query": ["jaguar", "gout"], "search": ["1", "2"]}
        >>> events = {"search": ["1", "1", "7"], "action": ["impression", "click", "click"], "rank": [1, 1, 3]}
        >>> QueryLog.from_frame(queries, events=events).events["search"].to_list()
        ['1', '1', None]
        """
        frame = to_frame(data, what="a query log")
        names = dict(columns or {})
        if len(set(names.values())) < len(names):
            raise BadParameter("columns", "one column for two roles", allowed="a different column for each role")
        for role, name in names.items():
            if role not in ROLES:
                raise BadParameter("a role in columns", role, allowed=f"one of {', '.join(ROLES)}")
            if name not in frame.columns:
                raise MissingColumn("the frame", role, found=frame.columns)
        clash = [role for role in names if role in frame.columns and role not in names.values()]
        frame = frame.drop(clash).rename({name: role for role, name in names.items()})
        casts = [_cast(frame, role) for role in ROLES if role in frame.columns]
        try:
            frame = frame.with_columns(casts)
        except pl.exceptions.PolarsError:
            # Privacy: the cause would quote the values, so it is dropped.
            raise BadInput("a column of the frame cannot be read as text, time or number as its role asks") from None
        if "user" in frame.columns and (frame["user"].str.strip_chars() == "").any():
            raise BadInput("the user column has ids that are empty; every row needs a user")
        if events is None:
            return cls(frame=frame, layout=layout or Layout())
        found = to_events(events, searches=frame["search"] if "search" in frame.columns else None)
        return cls(frame=frame, layout=layout or Layout(format=Format.UBI), events=found)

    def with_frame(self, frame: pl.DataFrame) -> Self:
        """Return a copy with another frame, and with the events of the searches in it alone."""
        # Privacy: events of rows that were left out must not come along, nor those of rows that name no search.
        events = None
        if self.events is not None and "search" in frame.columns:
            events = self.events.join(frame.select("search").unique(), on="search", how="semi", maintain_order="left")
        return replace(self, frame=frame, events=events)

    def with_clicks_as_rows(self) -> Self:
        """Return the log with one row for each click, its `rank` and `url` beside the query, and no other events.

        A search without clicks keeps its rows. Where several rows have one search, its clicks go to the first of them.

        >>> clicks = {"search": ["1", "1", "2"], "action": ["click", "item_click", "impression"]}
        >>> events = pl.DataFrame(clicks | {"object": ["a.com", "b.com", "c.com"]})
        >>> missing = [pl.lit(None, kind).alias(name) for name, kind in EVENTS_SCHEMA.items() if name not in events]
        >>> frame = pl.DataFrame({"user": ["u1", "u2"], "query": ["jaguar", "gout"], "search": ["1", "2"]})
        >>> log = QueryLog(frame=frame, events=events.with_columns(missing).select(EVENTS_SCHEMA.keys()))
        >>> log.with_clicks_as_rows().frame["query", "url"].rows()
        [('jaguar', 'a.com'), ('jaguar', 'b.com'), ('gout', None)]
        """
        if self.events is None:
            return self
        if "search" not in self.frame.columns:
            return replace(self, events=None)
        clicks = self.events.filter(is_click(pl.col("action"))).select("search", "rank", url="object")
        rows = self.frame.drop("rank", "url", strict=False).with_row_index("row")
        is_first = pl.col("search").is_first_distinct() & pl.col("search").is_not_null()
        of_first = rows.filter(is_first).select("row", "search").join(clicks, on="search", maintain_order="left")
        joined = rows.join(of_first.drop("search"), on="row", how="left", maintain_order="left_right").drop("row")
        order = [name for name in ROLES if name in joined.columns]
        return replace(self, frame=joined.select(*order, pl.exclude(order)), events=None)

    @property
    def n_users(self) -> int:
        """The number of distinct users."""
        return self.frame["user"].n_unique()

    @property
    def terms_are_items(self) -> bool:
        """Whether the terms of a query are items of a transaction: as they stand, parted by blanks."""
        return self.layout.terms_are_items


def _cast(frame: pl.DataFrame, role: str) -> pl.Expr:
    column, dtype = pl.col(role), frame.schema[role]
    if role == "query":
        return column.cast(pl.String).fill_null("")
    if role == "time" and isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None).cast(ROLES[role])
    if role == "time" and dtype == pl.String:
        return column.str.to_datetime(time_unit="us", strict=True)
    if role == "time" and dtype not in (pl.Datetime, pl.Date, pl.Null):
        raise BadInput(f"the time column must be times, dates or text, found {dtype}")
    if role == "rank" and dtype.is_float() and (frame[role] % 1 != 0).any():
        raise BadInput("the rank column must be whole numbers")
    return column.cast(ROLES[role])


TALLIES_SCHEMA: Mapping[str, pl.DataType] = {"query": pl.String(), "count": pl.Int64()}
"""The columns of counted queries and their types."""
CLICKS_SCHEMA: Mapping[str, pl.DataType] = {"query": pl.String(), "url": pl.String(), "count": pl.Int64()}
"""The columns of counted clicks and their types."""
MORE_CLICKS_SCHEMA: Mapping[str, pl.DataType] = {
    "device": pl.String(),
    "country": pl.String(),
    "views": pl.Int64(),
    "rank": pl.Float64(),
}
"""Columns that counted clicks may have, too: where they were made, how often the page was shown, its mean rank."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Tallies(Framed):
    """Counts of queries, noisy or exact; immutable.

    - `frame`: the columns `query` (unique) and `count`: of the users who asked it, with noise, or of its searches.
    - `clicks`: the columns `query`, `url` and `count`, where counts of clicks are released; where they are exact, also
      `device`, `country` (a row each then), `views` and the mean `rank`, as far as the log has them.
    - `layout`: the layout of the log that was counted.

    >>> Tallies(frame=pl.DataFrame({"query": ["jaguar", "red wine"], "count": [40, 31]}))
    Tallies(n_queries=2, n_clicks=0)
    """

    kind: ClassVar[str] = "queries"
    noun: ClassVar[str] = "queries with counts"
    caption: ClassVar[str] = "Tallies"
    shown: ClassVar[Mapping[str, str]] = {"queries": "n_queries", "queries with URLs": "n_clicks"}

    clicks: pl.DataFrame | None = None
    layout: Layout = field(default_factory=Layout)

    def __post_init__(self) -> None:
        _check_tallied(self.frame, TALLIES_SCHEMA, keys=["query"], what="queries")
        if self.clicks is not None:
            more = {name: kind for name, kind in MORE_CLICKS_SCHEMA.items() if name in self.clicks.columns}
            keys = [*("query", "url"), *(name for name in ("device", "country") if name in more)]
            _check_tallied(self.clicks, {**CLICKS_SCHEMA, **more}, keys=keys, what="clicks")

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return self.frame.height

    @property
    def n_clicks(self) -> int:
        """The number of pairs of a query and a URL."""
        return 0 if self.clicks is None else self.clicks.height


def _check_tallied(frame: pl.DataFrame, schema: Mapping[str, pl.DataType], *, keys: list[str], what: str) -> None:
    if frame.schema != pl.Schema(schema):
        raise BadInput(f"tallied {what} have the columns {', '.join(schema)}")
    # Of a page that was clicked no rank need be known.
    if frame.drop("rank", strict=False).null_count().sum_horizontal().sum():
        raise BadInput(f"tallied {what} have values that are missing")
    if frame.select(keys).is_duplicated().any():
        raise BadInput(f"tallied {what} name one of them twice")

"""Read and write OpenSearch User Behavior Insights (UBI): queries as rows, and what people did with results as events.

A file holds bulk pairs (an action line, then its document) or plain documents, of `ubi_queries`, `ubi_events` or
both. Every document of a query is a row and every one of an event is an event, also where it was sent twice: rows and
events with one query id have one `search`. Events without a query id, and those of queries that are not in the log,
have none. Of an object the `url` is taken, else its `object_id`. What stands in other fields is left out and counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import msgspec
import numpy as np
import polars as pl

from queryveil.data import EVENTS_SCHEMA, ROLES, Bytes, Format, Layout
from queryveil.formats import _time_kernels
from queryveil.formats.jsonl import JSON_REASONS, NOT_TEXT, as_text, iter_objects, scalar_as_text
from queryveil.formats.records import Reader, read_records
from queryveil.formats.streams import ByteStream
from queryveil.formats.values import BAD_TIME, ISO_ZONED, read_times, type_columns, write_times

APPLICATION = "queryveil"
"""What written documents say of the program that they come from."""
_ACTIONS = ("index", "create", "update", "delete")
_UNKNOWN_DOCUMENT = 107
_REASONS = {**JSON_REASONS, _UNKNOWN_DOCUMENT: "this is neither a query nor an event nor a bulk action"}
_NO_ROW, _ROW, _EVENT = 0, 1, 2
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "device": ("device", "device_type"),
    "country": ("country", "country_code"),
    "language": ("language", "lang"),
}
"""The columns that stand in the attributes of a query or an event, and their names there."""
_ROLE_NAMES = frozenset(name for names in ATTRIBUTES.values() for name in names)
_QUERIES = {
    **dict.fromkeys(("user", "query", "time", "search", *ATTRIBUTES), pl.String),
    "is_text": pl.Boolean,
}
_EVENTS = {**EVENTS_SCHEMA, "time": pl.String()}
_OF_ALL = ("query_id", "client_id", "user_query", "timestamp", "application")
_OF_QUERY = frozenset((*_OF_ALL, "query_attributes"))
# Whose event it is and what was asked says the query.
_OF_EVENT = frozenset((*_OF_ALL, "action_name", "event_attributes"))
_LARGEST = 2**63 - 1

_Event = tuple[str | None, str | None, str | None, str | None, int | None, str | None, float | None]


@dataclass(slots=True, kw_only=True)
class UbiReader(Reader):
    """Reads UBI files, and joins the events with the queries in `frames` when all are read."""

    found: list[pl.DataFrame] = field(default_factory=list)
    attributes: dict[str, dict[str, str]] = field(default_factory=lambda: {role: {} for role in ATTRIBUTES})

    def add(self, stream: ByteStream) -> None:
        index = ""
        for records, wrong in read_records(stream, tally=self.tally, reasons=_REASONS):
            kinds: list[int] = []
            queries: list[Any] = []
            events: list[_Event] = []
            # Each document is let go at once: a block of nested objects would keep the garbage collector busy.
            for one in iter_objects(records, wrong=wrong):
                kinds.append(_NO_ROW)
                target = _target(one)
                if target is not None:
                    index = target
                elif index.startswith("ubi_events") or (not index and "action_name" in one):
                    kinds[-1] = _EVENT
                    events.append(self._event(one))
                elif index.startswith("ubi_queries") or (not index and "user_query" in one):
                    kinds[-1] = _ROW
                    queries.append(self._query(one))
                elif not index:
                    kinds[-1] = _UNKNOWN_DOCUMENT
                else:
                    self.tally.n_foreign += 1
            faults = np.array(kinds, dtype=np.uint8)
            is_row, is_event = faults == _ROW, faults == _EVENT
            faults[is_row], faults[is_event] = self._take_queries(queries), self._take_events(events)
            wrong[wrong == 0] = faults

    def _take_queries(self, queries: list[Any]) -> Bytes:
        text = pl.DataFrame(queries, schema=_QUERIES, orient="row")
        typed = type_columns({column.name: column for column in text.drop("is_text").get_columns()})
        typed.wrong[~text["is_text"].to_numpy()] = NOT_TEXT
        self.frames.append(typed.frame())
        return typed.wrong

    def _take_events(self, events: list[_Event]) -> Bytes:
        text = pl.DataFrame(events, schema=_EVENTS, orient="row")
        times, kinds = read_times(text["time"])
        is_bad = kinds == _time_kernels.BAD
        self.found.append(text.with_columns(times).filter(pl.Series(~is_bad)))
        return np.where(is_bad, BAD_TIME, 0).astype(np.uint8)

    def _query(self, one: dict[str, Any]) -> tuple[Any, ...]:
        user, text, search = (one.get(name) for name in ("client_id", "user_query", "query_id"))
        attributes = _attributes(one.get("query_attributes"))
        of_roles = [_named(attributes, names) for names in ATTRIBUTES.values()] if attributes else _NO_ROLES
        n_others = _n_others(one, known=_OF_QUERY) + len(attributes)
        self.tally.n_fields += n_others - sum(value is not None for value in of_roles)
        shared = (scalar_as_text(user), scalar_as_text(text), as_text(one.get("timestamp")))
        return *shared, scalar_as_text(search) or None, *of_roles, isinstance(text, str | None)

    def _event(self, one: dict[str, Any]) -> _Event:
        search = _text(one.get("query_id"))
        attributes = _attributes(one.get("event_attributes"))
        thing, position = _attributes(attributes.get("object")), _attributes(attributes.get("position"))
        name, named_by, n_taken = _object(thing)
        ordinal, dwell = position.get("ordinal"), _seconds(attributes.get("dwell_time"))
        rank = ordinal if type(ordinal) is int and -_LARGEST - 1 <= ordinal <= _LARGEST else None
        n_taken += (rank is not None) + (dwell is not None) + bool(thing) + bool(position)
        if search is not None and not _ROLE_NAMES.isdisjoint(attributes):
            n_taken += self._take_attributes(attributes, search)
        n_all = _n_others(one, known=_OF_EVENT) + len(attributes) + len(thing) + len(position)
        self.tally.n_fields += n_all - n_taken
        action, time = one.get("action_name"), as_text(one.get("timestamp"))
        action = action if type(action) is str else scalar_as_text(action)
        return search, action, name, named_by, rank, time, dwell

    def _take_attributes(self, attributes: dict[str, Any], search: str) -> int:
        """Keep what an event tells of its search, where nothing did before; return how many values that are."""
        n_taken = 0
        for role, names in ATTRIBUTES.items():
            value = _named(attributes, names)
            if value is not None:
                n_taken += self.attributes[role].setdefault(search, value) == value
        return n_taken

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        """Return one row for each query, in the order of the files; `events` are then in the order of their rows."""
        empty = pl.DataFrame(schema={role: kind for role, kind in ROLES.items() if role in _QUERIES})
        queries = _of_one_person(pl.concat([empty, *self.frames]))
        first = queries.with_row_index("row").drop_nulls("search").unique("search", keep="first")
        events = pl.concat([pl.DataFrame(schema=EVENTS_SCHEMA), *self.found])
        joined = events.join(first.select("search", "row"), on="search", how="left", maintain_order="left")
        known = joined.with_columns(search=pl.when(pl.col("row").is_not_null()).then("search"))
        self.events = known.sort("row", nulls_last=True, maintain_order=True).drop("row")
        for role, of_search in self.attributes.items():
            if of_search:
                told = queries["search"].replace_strict(of_search, default=None, return_dtype=pl.String)
                queries = queries.with_columns(pl.coalesce(role, told))
        # Attributes that no query has are no columns.
        absent = [role for role in ATTRIBUTES if queries[role].null_count() == queries.height]
        layout = Layout(
            format=Format.UBI,
            names={role: role for role in ROLES},
            columns=tuple(ROLES),
            time_format=ISO_ZONED,
            compression=self.compression,
        )
        return queries.select(role for role in ROLES if role in queries.columns).drop(absent), layout


def _of_one_person(queries: pl.DataFrame) -> pl.DataFrame:
    """Return the queries without the ids that several people have: whose events those are nobody knows."""
    ids = queries.select("search", "user").drop_nulls("search").unique()
    if ids.height == ids["search"].n_unique():
        return queries
    of_one = ids.group_by("search").len().filter(pl.col("len") == 1)["search"]
    return queries.with_columns(search=pl.when(pl.col("search").is_in(of_one.implode())).then("search"))


def _target(one: dict[str, Any]) -> str | None:
    """Return the index named by a bulk action line; None for a document."""
    if len(one) != 1:
        return None
    (action, meta), *_ = one.items()
    if action not in _ACTIONS or not isinstance(meta, dict):
        return None
    return str(meta.get("_index") or "")


_NOTHING: dict[str, Any] = {}
_NO_ROLES: list[str | None] = [None] * len(ATTRIBUTES)


def _n_others(one: dict[str, Any], *, known: frozenset[str]) -> int:
    """Count the fields of a document that are not known; that it comes from this program tells nothing."""
    is_other = bool(one.get("application", APPLICATION) != APPLICATION)
    return len(one.keys() - known) + is_other


def _attributes(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else _NOTHING


def _object(thing: dict[str, Any]) -> tuple[str | None, str | None, int]:
    """Return what an object is called, the field that says so, and how many of its fields that are."""
    if url := _text(thing.get("url")):
        return url, "url", 1
    if object_id := _text(thing.get("object_id")):
        named_by = _text(thing.get("object_id_field"))
        return object_id, named_by, 1 + (named_by is not None)
    return None, None, 0


def _named(attributes: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next(filter(None, (_text(attributes[name]) for name in names if name in attributes)), None)


def _text(value: object) -> str | None:
    """Return text or a number as text; nothing for any other value, nor for an empty text."""
    return (value if type(value) is str else scalar_as_text(value)) or None


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LARGEST:
        return None
    return float(value) if isfinite(value) else None


def placed(events: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """Return events as they are written: in the order of the rows that they stand behind, whose places are in `row`."""
    rows = frame.select("search").with_row_index("row").drop_nulls("search").unique("search", keep="first")
    joined = events.join(rows, on="search", how="left", maintain_order="left")
    return joined.with_columns(write_times(events["time"], time_format=ISO_ZONED)).sort(
        "row", nulls_last=True, maintain_order=True
    )


def encode(frame: pl.DataFrame, *, first_id: int, events: pl.DataFrame | None = None) -> bytes:
    """Encode rows as bulk lines.

    Without events each row is a query with a new number as its id, and a click where it had one. With events, which
    are `placed`, a query has its search as its id, and is followed by the events that stand behind its row.
    """
    lines: list[bytes] = []
    behind = _by_row(events, first=first_id - 1, n_rows=frame.height)
    for number, row in enumerate(frame.iter_rows(named=True), start=first_id):
        search = str(number) if events is None else row["search"]
        shared = {"application": APPLICATION, "query_id": search, "client_id": row["user"]}
        if search is None:
            del shared["query_id"]
        of_query = {role: row[role] for role in ATTRIBUTES if row.get(role) is not None}
        time = {} if row.get("time") is None else {"timestamp": row["time"]}
        lines += _pair("ubi_queries", {**shared, **time, "user_query": row["query"], "query_attributes": of_query})
        if events is None and (row.get("url"), row.get("rank")) != (None, None):
            click = {"action": "click", "object": row.get("url"), "rank": row.get("rank"), "time": row.get("time")}
            lines += _pair("ubi_events", event_document(shared, click))
        for event in behind.get(number - 1, ()):
            lines += _pair("ubi_events", event_document(shared, event))
    return b"".join(line + b"\n" for line in lines)


def encode_others(events: pl.DataFrame) -> bytes:
    """Encode the events that stand behind no row."""
    others = events.filter(pl.col("row").is_null()).iter_rows(named=True)
    documents = (event_document({"application": APPLICATION}, event) for event in others)
    return b"".join(line + b"\n" for document in documents for line in _pair("ubi_events", document))


def event_document(shared: Mapping[str, Any], event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of an event: what it shares with its query, and what is known of itself."""
    document: dict[str, Any] = dict(shared)
    for key, name in (("timestamp", "time"), ("action_name", "action")):
        if event.get(name) is not None:
            document[key] = event[name]
    attributes: dict[str, Any] = {}
    if event.get("object") is not None:
        attributes["object"] = {"object_id": event["object"]}
        if event.get("object_field") is not None:
            attributes["object"]["object_id_field"] = event["object_field"]
    if event.get("rank") is not None:
        attributes["position"] = {"ordinal": event["rank"]}
    if event.get("dwell") is not None:
        attributes["dwell_time"] = event["dwell"]
    return document | {"event_attributes": attributes} if attributes else document


def _by_row(events: pl.DataFrame | None, *, first: int, n_rows: int) -> dict[int, list[dict[str, Any]]]:
    if events is None:
        return {}
    found: dict[int, list[dict[str, Any]]] = {}
    for event in events.filter(pl.col("row").is_between(first, first + n_rows - 1)).iter_rows(named=True):
        found.setdefault(event["row"], []).append(event)
    return found


def _pair(index: str, document: dict[str, Any]) -> list[bytes]:
    return [msgspec.json.encode({"index": {"_index": index}}), msgspec.json.encode(document)]

"""Read and write OpenSearch User Behavior Insights (UBI): queries left-joined with clicks on their results.

A file holds bulk pairs (an action line, then its document) or plain documents, of `ubi_queries`, `ubi_events` or
both. A click is an event whose `action_name` is `click` or ends with `_click` or `-click`, except `global_click`,
which is a click anywhere on the page. Other events, and clicks of queries that are not in the log, are left
out. The url is the clicked object's `url`, else its `object_id`; a position that is not a whole number is dropped.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import polars as pl

from queryveil.data import ROLES, Bytes, Format, Layout
from queryveil.formats.jsonl import JSON_REASONS, NOT_TEXT, as_text, iter_objects, scalar_as_text
from queryveil.formats.records import Reader, read_records
from queryveil.formats.streams import ByteStream
from queryveil.formats.values import ISO_ZONED, merge_formats, time_formats, type_columns

_ACTIONS = ("index", "create", "update", "delete")
_UNKNOWN_DOCUMENT = 107
_REASONS = {**JSON_REASONS, _UNKNOWN_DOCUMENT: "this is neither a query nor an event nor a bulk action"}
_NO_ROW, _ROW = 0, 1
_OF_QUERIES = ("user", "query", "time")
_QUERIES = {"user": pl.String, "query": pl.String, "time": pl.String, "query_id": pl.String, "is_text": pl.Boolean}
_CLICKS = {"query_id": pl.String, "rank": pl.String, "url": pl.String}

_Query = tuple[str | None, str | None, str | None, str | None, bool]
_Click = tuple[str | None, str | None, str | None]


@dataclass(slots=True, kw_only=True)
class UbiReader(Reader):
    """Reads UBI files, and joins the queries in `frames` with clicks when all are read."""

    clicks: list[pl.DataFrame] = field(default_factory=list)

    def add(self, stream: ByteStream) -> None:
        index = ""
        for records, wrong in read_records(stream, tally=self.tally, reasons=_REASONS):
            kinds: list[int] = []
            queries: list[_Query] = []
            clicks: list[_Click] = []
            # Each document is let go at once: a block of nested objects would keep the garbage collector busy.
            for one in iter_objects(records, wrong=wrong):
                kinds.append(_NO_ROW)
                target = _target(one)
                if target is not None:
                    index = target
                elif index.startswith("ubi_events") or (not index and "action_name" in one):
                    clicks.extend(_click(one))
                elif index.startswith("ubi_queries") or (not index and "user_query" in one):
                    kinds[-1] = _ROW
                    queries.append(_query(one))
                elif not index:
                    kinds[-1] = _UNKNOWN_DOCUMENT
                else:
                    self.tally.n_foreign += 1
            faults = np.array(kinds, dtype=np.uint8)
            faults[faults == _ROW] = self._read(queries)
            wrong[wrong == 0] = faults
            self.clicks.append(pl.DataFrame(clicks, schema=_CLICKS, orient="row"))

    def _read(self, queries: list[_Query]) -> Bytes:
        text = pl.DataFrame(queries, schema=_QUERIES, orient="row")
        typed = type_columns({column.name: column for column in text.drop("is_text").get_columns()})
        typed.wrong[~text["is_text"].to_numpy()] = NOT_TEXT
        self.time_formats |= time_formats(typed.time_kinds)
        self.frames.append(typed.frame())
        return typed.wrong

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        """Return one row per click, and one per query without clicks, in the order of the queries."""
        empty = pl.DataFrame(schema={**{role: ROLES[role] for role in _OF_QUERIES}, "query_id": pl.String()})
        queries = pl.concat([empty, *self.frames]).with_row_index("row")
        clicks = pl.concat([pl.DataFrame(schema=_CLICKS), *self.clicks]).with_row_index("click")
        # A query sent twice under one id has its clicks once.
        first = queries.filter(pl.col("query_id").is_not_null()).unique("query_id", keep="first", maintain_order=True)
        joined = first.select("row", "query_id").join(clicks, on="query_id").drop("query_id")
        frame = queries.join(joined, on="row", how="left").sort("row", "click")
        ranks = pl.col("rank").cast(pl.Int64, strict=False)
        layout = Layout(
            format=Format.UBI,
            names={role: role for role in ROLES},
            columns=tuple(ROLES),
            time_format=merge_formats(self.time_formats) or ISO_ZONED,
            compression=self.compression,
        )
        return frame.select("user", "query", "time", ranks, "url"), layout


def _target(one: dict[str, Any]) -> str | None:
    """Return the index named by a bulk action line; None for a document."""
    if len(one) != 1:
        return None
    (action, meta), *_ = one.items()
    if action not in _ACTIONS or not isinstance(meta, dict):
        return None
    return str(meta.get("_index") or "")


def _query(one: dict[str, Any]) -> _Query:
    user, text, query_id = (one.get(name) for name in ("client_id", "user_query", "query_id"))
    time, is_text = as_text(one.get("timestamp")), isinstance(text, str | None)
    return scalar_as_text(user), scalar_as_text(text), time, scalar_as_text(query_id), is_text


def _click(event: dict[str, Any]) -> list[_Click]:
    """Return the query id, rank and url of a click; nothing for any other event."""
    action = str(event.get("action_name") or "").lower()
    if action == "global_click" or not (action == "click" or action.endswith(("_click", "-click"))):
        return []
    thing, position = inside(event, "object"), inside(event, "position")
    url = scalar_as_text(thing.get("url")) or scalar_as_text(thing.get("object_id")) or None
    ordinal = position.get("ordinal")
    rank = str(ordinal) if isinstance(ordinal, int) and not isinstance(ordinal, bool) else None
    return [(scalar_as_text(event.get("query_id")), rank, url)]


def inside(event: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object under a key of an event's attributes; an empty one where there is none."""
    attributes = event.get("event_attributes")
    value = attributes.get(key) if isinstance(attributes, dict) else None
    return value if isinstance(value, dict) else {}


def encode(frame: pl.DataFrame, *, first_id: int) -> bytes:
    """Encode rows as bulk lines: per row a query with a new number as its id, and a click where it had one."""
    lines: list[bytes] = []
    for query_id, row in enumerate(frame.iter_rows(named=True), start=first_id):
        shared = {"application": "queryveil", "query_id": str(query_id), "client_id": row["user"]}
        if row.get("time") is not None:
            shared["timestamp"] = row["time"]
        lines += _pair("ubi_queries", {**shared, "user_query": row["query"], "query_attributes": {}})
        attributes: dict[str, Any] = {}
        if row.get("url") is not None:
            attributes["object"] = {"object_id": row["url"], "object_id_field": "url"}
        if row.get("rank") is not None:
            attributes["position"] = {"ordinal": row["rank"]}
        if attributes:
            lines += _pair("ubi_events", {**shared, "action_name": "click", "event_attributes": attributes})
    return b"".join(line + b"\n" for line in lines)


def _pair(index: str, document: dict[str, Any]) -> list[bytes]:
    return [msgspec.json.encode({"index": {"_index": index}}), msgspec.json.encode(document)]

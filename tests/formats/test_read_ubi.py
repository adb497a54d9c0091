from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from queryveil.data import QueryLog
from queryveil.errors import BadRows
from queryveil.formats import Format, read_log
from queryveil.methods import Km

T1, T2 = datetime(2024, 12, 10, 0, 1, 29, 378_000), datetime(2024, 6, 4, 19, 2, 42, 25_000)
QUERIES: list[dict[str, Any]] = [
    {"query_id": "q1", "client_id": "c1", "user_query": "kettle", "timestamp": "2024-12-10T00:01:29.378Z"},
    {"query_id": "q2", "client_id": "c2", "user_query": "", "timestamp": 1717527762025},
    {"query_id": "q3", "client_id": "c1", "user_query": "pan"},
]


def _event(action: str, query_id: str, ordinal: int | None = None, **thing: str) -> dict[str, Any]:
    attributes = {"object": thing, "position": {"ordinal": ordinal}}
    return {"action_name": action, "query_id": query_id, "client_id": "c", "event_attributes": attributes}


EVENTS = [
    _event("impression", "q1", 0, object_id="seen"),
    _event("click", "q1", 2, object_id="B2", url="/b2"),
    _event("item_click", "q1", 5, object_id="B5", object_id_field="sku"),
    _event("product_click", "q3", None, object_id="B1"),
    _event("global_click", "q2", 55, object_id="page"),
    _event("click", "of nobody", 1, object_id="B9"),
    {"action_name": "click", "query_id": "q2", "event_attributes": None},
    {"action_name": "login", "query_id": None},
]
ROWS = [
    ("c1", "kettle", T1, "q1"),
    ("c2", "", T2, "q2"),
    ("c1", "pan", None, "q3"),
]
# In the order of their queries; those of none come last.
HAPPENED = [
    ("q1", "impression", "seen", None, 0),
    ("q1", "click", "/b2", "url", 2),
    ("q1", "item_click", "B5", "sku", 5),
    ("q2", "global_click", "page", None, 55),
    ("q2", "click", None, None, None),
    ("q3", "product_click", "B1", None, None),
    (None, "click", "B9", None, 1),
    (None, "login", None, None, None),
]


def _file(folder: Path, documents: list[Any], name: str = "ubi.ndjson") -> Path:
    path = folder / name
    path.write_bytes(b"".join(msgspec.json.encode(document) + b"\n" for document in documents))
    return path


def _bulk(index: str, documents: list[Any]) -> list[Any]:
    return [line for one in documents for line in ({"index": {"_index": index, "_id": "x"}}, one)]


def _happened(log: QueryLog) -> list[tuple[Any, ...]]:
    assert log.events is not None
    return log.events.select("search", "action", "object", "object_field", "rank").rows()


def test_each_query_is_a_row_and_each_event_belongs_to_the_search_of_its_query(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, _bulk("ubi_queries", QUERIES) + _bulk("ubi_events", EVENTS)))
    assert log.layout.format is Format.UBI
    assert log.columns == ["user", "query", "time", "search"]
    assert log.frame.rows() == ROWS
    assert _happened(log) == HAPPENED


def test_events_may_come_before_their_queries(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, _bulk("ubi_events", EVENTS) + _bulk("ubi_queries", QUERIES)))
    assert log.frame.rows() == ROWS
    assert _happened(log) == HAPPENED


def test_plain_documents_are_told_apart_by_their_keys(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, QUERIES + EVENTS))
    assert (log.frame.rows(), _happened(log)) == (ROWS, HAPPENED)


def test_queries_and_events_may_lie_in_different_files(tmp_path: Path) -> None:
    _file(tmp_path, EVENTS, "a.ndjson")
    _file(tmp_path, QUERIES, "b.ndjson")
    log = read_log(str(tmp_path / "*.ndjson"))
    assert (log.frame.rows(), _happened(log)) == (ROWS, HAPPENED)


def test_clicks_become_rows_where_they_are_asked_for(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, QUERIES + EVENTS)).with_clicks_as_rows()
    assert log.frame.select("query", "rank", "url").rows() == [
        ("kettle", 2, "/b2"),
        ("kettle", 5, "B5"),
        ("", None, None),
        ("pan", None, "B1"),
    ]


def test_what_an_event_tells_of_time_dwell_and_place_is_read(tmp_path: Path) -> None:
    query = {**QUERIES[0], "query_attributes": {"device": "phone", "experiment": "b"}}
    attributes = {
        "dwell_time": 7,
        "lang": "de",
        "device": "tablet",
        "page_id": "/x",
        "position": {"ordinal": 1, "x": 3},
    }
    event = {"action_name": "view", "query_id": "q1", "timestamp": 1717527762025, "event_attributes": attributes}
    log = read_log(_file(tmp_path, [event, query, QUERIES[1]]))
    assert log.frame.select("device", "language", "search").rows() == [("phone", "de", "q1"), (None, None, "q2")]
    assert "country" not in log.columns
    assert log.events is not None
    assert log.events.select("time", "dwell", "rank").rows() == [(T2, 7.0, 1)]
    # The page, the place on it, and the experiment. What a query says of itself goes before what an event says of it.
    assert log.reading.n_fields_left_out == 3


def test_fields_without_a_column_are_counted_and_not_named(tmp_path: Path) -> None:
    named = {**QUERIES[0], "application": "shop", "somebody": "a name"}
    event = {**_event("click", "q1", 2, object_id="B2", url="/b2", description="a kettle"), "session_id": "s"}
    log = read_log(_file(tmp_path, [named, event]))
    assert log.reading.n_fields_left_out == 5
    warnings = Km(k=2, m=1).anonymize(log).manifest.warnings
    assert "fields of documents for which there is no column, left out: 5" in warnings


def test_a_document_sent_twice_is_two_rows_of_one_search_and_two_events(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, [QUERIES[0], QUERIES[0], EVENTS[1], EVENTS[1]]))
    assert log.frame["search"].to_list() == ["q1", "q1"]
    assert _happened(log) == [("q1", "click", "/b2", "url", 2)] * 2


def test_a_query_id_of_several_people_names_no_search(tmp_path: Path) -> None:
    # Whose events they are nobody can tell.
    other = {**QUERIES[1], "query_id": "q1"}
    log = read_log(_file(tmp_path, [QUERIES[0], other, QUERIES[2], EVENTS[1], EVENTS[3]]))
    assert log.frame["search"].to_list() == [None, None, "q3"]
    assert [search for search, *_ in _happened(log)] == ["q3", None]


@pytest.mark.parametrize(
    "attributes",
    [
        {"object": "a text"},
        {"object": {"object_id": ["a", "list"], "object_id_field": "sku"}, "position": [1]},
        {"object": {"object_id": "", "url": None}, "position": {"ordinal": 2.5}, "dwell_time": "long"},
        {"position": {"ordinal": True}, "dwell_time": False},
        {"position": {"ordinal": 10**30}, "dwell_time": 10**400},
        "a text",
        [],
    ],
)
def test_a_field_that_holds_something_else_than_it_should_is_left_out(tmp_path: Path, attributes: Any) -> None:
    event = {"action_name": "click", "query_id": "q1", "event_attributes": attributes}
    log = read_log(_file(tmp_path, [QUERIES[0], event]))
    assert _happened(log) == [("q1", "click", None, None, None)]
    assert log.events is not None
    assert log.events["dwell"].to_list() == [None]


def test_documents_of_other_indexes_are_passed_over(tmp_path: Path) -> None:
    path = _file(
        tmp_path, _bulk("ubi_queries", QUERIES[:1]) + _bulk("products", [{"user_query": "no", "client_id": "p"}])
    )
    assert read_log(path).n_rows == 1


def test_bad_documents_are_bad_rows(tmp_path: Path) -> None:
    documents = [QUERIES[0], {"query_id": "q", "user_query": "a"}, {"client_id": "c", "user_query": 5}, {"x": 1}, [1]]
    documents.append({"client_id": "c", "user_query": "a", "timestamp": "noon"})
    documents.append({"action_name": "click", "query_id": "q", "timestamp": "noon"})
    path = _file(tmp_path, documents)
    with pytest.raises(BadRows) as caught:
        read_log(path)
    assert [(row.line, row.reason) for row in caught.value.rows] == [
        (2, "the user is missing"),
        (3, "the query, user or url is not text"),
        (4, "this is neither a query nor an event nor a bulk action"),
        (5, "this is JSON but not an object"),
        (6, "the time cannot be read as a time"),
        (7, "the time cannot be read as a time"),
    ]
    skipped = read_log(path, bad_rows="skip")
    assert (skipped.n_rows, skipped.reading.n_bad_rows_skipped, _happened(skipped)) == (1, 6, [])


def test_documents_of_an_index_that_is_none_of_ubi_are_counted(tmp_path: Path) -> None:
    path = _file(tmp_path, _bulk("ubi_queries", QUERIES) + _bulk("shop_orders", [{"user_query": "pan"}] * 2))
    assert read_log(path, format="ubi").reading.n_foreign_documents == 2
    only = read_log(_file(tmp_path, _bulk("my_queries", QUERIES)), format="ubi")
    assert (only.n_rows, only.reading.n_foreign_documents) == (0, 3)
    assert Km(k=2, m=1).anonymize(only).manifest.warnings == ("documents of indexes that are none of UBI, left out: 3",)

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

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
    _event("item_click", "q1", 5, object_id="B5"),
    _event("product_click", "q3", None, object_id="B1"),
    _event("global_click", "q2", 55, object_id="page"),
    _event("click", "of nobody", 1, object_id="B9"),
    {"action_name": "click", "query_id": "q2", "event_attributes": None},
]
ROWS = [
    ("c1", "kettle", T1, 2, "/b2"),
    ("c1", "kettle", T1, 5, "B5"),
    ("c2", "", T2, None, None),
    ("c1", "pan", None, None, "B1"),
]


def _file(folder: Path, documents: list[Any], name: str = "ubi.ndjson") -> Path:
    path = folder / name
    path.write_bytes(b"".join(msgspec.json.encode(document) + b"\n" for document in documents))
    return path


def _bulk(index: str, documents: list[Any]) -> list[Any]:
    return [line for one in documents for line in ({"index": {"_index": index, "_id": "x"}}, one)]


def test_bulk_lines_of_queries_and_events_are_joined(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, _bulk("ubi_queries", QUERIES) + _bulk("ubi_events", EVENTS)))
    assert log.layout.format is Format.UBI
    assert log.frame.rows() == ROWS


def test_events_may_come_before_their_queries(tmp_path: Path) -> None:
    path = _file(tmp_path, _bulk("ubi_events", EVENTS) + _bulk("ubi_queries", QUERIES))
    assert read_log(path).frame.rows() == ROWS


def test_plain_documents_are_told_apart_by_their_keys(tmp_path: Path) -> None:
    assert read_log(_file(tmp_path, QUERIES + EVENTS)).frame.rows() == ROWS


def test_queries_and_events_may_lie_in_different_files(tmp_path: Path) -> None:
    _file(tmp_path, EVENTS, "a.ndjson")
    _file(tmp_path, QUERIES, "b.ndjson")
    assert read_log(str(tmp_path / "*.ndjson")).frame.rows() == ROWS


def test_documents_of_other_indexes_are_passed_over(tmp_path: Path) -> None:
    path = _file(
        tmp_path, _bulk("ubi_queries", QUERIES[:1]) + _bulk("products", [{"user_query": "no", "client_id": "p"}])
    )
    assert read_log(path).n_rows == 1


def test_a_query_sent_twice_has_its_clicks_once(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, [QUERIES[0], QUERIES[0], EVENTS[1]]))
    assert log.frame["url"].to_list() == ["/b2", None]


def test_bad_documents_are_bad_rows(tmp_path: Path) -> None:
    documents = [QUERIES[0], {"query_id": "q", "user_query": "a"}, {"client_id": "c", "user_query": 5}, {"x": 1}, [1]]
    documents.append({"client_id": "c", "user_query": "a", "timestamp": "noon"})
    path = _file(tmp_path, documents)
    with pytest.raises(BadRows) as caught:
        read_log(path)
    assert [(row.line, row.reason) for row in caught.value.rows] == [
        (2, "the user is missing"),
        (3, "the query, user or url is not text"),
        (4, "this is neither a query nor an event nor a bulk action"),
        (5, "this is JSON but not an object"),
        (6, "the time cannot be read as a time"),
    ]
    assert read_log(path, bad_rows="skip").n_rows == 1


def test_documents_of_an_index_that_is_none_of_ubi_are_counted(tmp_path: Path) -> None:
    path = _file(tmp_path, _bulk("ubi_queries", QUERIES) + _bulk("shop_orders", [{"user_query": "pan"}] * 2))
    assert read_log(path, format="ubi").reading.n_foreign_documents == 2
    only = read_log(_file(tmp_path, _bulk("my_queries", QUERIES)), format="ubi")
    assert (only.n_rows, only.reading.n_foreign_documents) == (0, 3)
    assert Km(k=2, m=1).anonymize(only).manifest.warnings == ("documents of indexes that are none of UBI, left out: 3",)

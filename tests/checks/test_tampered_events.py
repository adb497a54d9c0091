"""Whatever is put into the events of a release, or said of them, is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.release.test_events import a_log
from tests.support.forging import fault, forge

from queryveil.checks import verify
from queryveil.methods import Km
from queryveil.release import ColumnPolicy

_Document = dict[str, Any]


def _released(folder: Path, *keep: str, time: Any = "drop") -> Path:
    release = Km(k=2, m=1, columns=ColumnPolicy(keep=keep, time=time)).anonymize(a_log())
    return release.save(folder / "out")


def _changed(change: Callable[[_Document], None], *, action: str = "impression") -> Callable[[bytes], bytes]:
    """Return what changes the first event of this action."""

    def rewrite(data: bytes) -> bytes:
        documents = [json.loads(line) for line in data.splitlines()]
        change(next(one for one in documents if one.get("action_name") == action))
        return b"".join(
            json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for one in documents
        )

    return rewrite


_HIDDEN: dict[str, Callable[[_Document], None]] = {
    "a field": lambda one: one.update(message="quince"),
    "an attribute": lambda one: one["event_attributes"].update(page="quince"),
    "a field of the object": lambda one: one["event_attributes"]["object"].update(description="quince"),
    "a place": lambda one: one["event_attributes"]["position"].update(x=7),
    "somebody's id": lambda one: one.update(client_id="persona01"),
    "another program": lambda one: one.update(application="quince"),
    "a dwell in words": lambda one: one["event_attributes"].update(dwell_time="quince"),
}


@pytest.mark.parametrize("what", _HIDDEN)
def test_what_an_event_has_beside_its_columns_is_found(tmp_path: Path, what: str) -> None:
    folder = _released(tmp_path, "events")
    assert verify(folder).holds
    forge(folder, data=_changed(_HIDDEN[what]))
    assert fault(folder) == "log.ndjson holds 1 value that no column has"


@pytest.mark.parametrize("keep", [(), ("url",)])
def test_an_event_where_none_or_clicks_alone_were_kept_is_found(tmp_path: Path, keep: tuple[str, ...]) -> None:
    folder = _released(tmp_path, *keep)
    query = {"application": "queryveil", "query_id": "24", "client_id": "1"}
    view = json.dumps({**query, "action_name": "view"}).encode()
    forge(folder, data=lambda data: data + b'{"index":{"_index":"ubi_events"}}\n' + view + b"\n")
    assert fault(folder) == "log.ndjson holds 1 value that no column has"


def test_an_event_more_than_the_manifest_counts_is_found(tmp_path: Path) -> None:
    folder = _released(tmp_path, "events")
    forge(folder, data=lambda data: data + b"".join(data.splitlines(keepends=True)[-2:]))
    assert "and there are" in fault(folder)


def test_an_action_of_another_kind_than_the_manifest_counts_is_found(tmp_path: Path) -> None:
    folder = _released(tmp_path, "events")
    forge(folder, data=_changed(lambda one: one.update(action_name="purchase")))
    verdict = verify(folder)
    assert verdict.faults == (
        "manifest.json says 48 impression events, and there are 47 in the files",
        "manifest.json says 0 purchase events, and there are 1 in the files",
    )


def test_a_time_of_an_event_that_is_finer_than_said_is_found(tmp_path: Path) -> None:
    folder = _released(tmp_path, "events", time="day")
    forge(folder, data=_changed(lambda one: one.update(timestamp="2026-03-04T05:06:07Z")))
    assert fault(folder) == "log.ndjson: 1 event with a time finer than manifest.json says (day)"


def test_numbers_of_searches_that_tell_something_are_found(tmp_path: Path) -> None:
    folder = _released(tmp_path, "events")
    forge(folder, data=lambda data: data.replace(b'"query_id":"24"', b'"query_id":"77"'))
    assert fault(folder) == "log.ndjson: searches are not the numbers from 1 on in 1 row (row 24)"


_CLAIMS: dict[str, Callable[[_Document], Any]] = {
    "counts events of a kind that has no name": lambda said: said["events"]["dropped"].update(quince=1),
    "has a count of events that is negative or too large": lambda said: said["events"]["dropped"].update(view=-1),
    "counts events that were kept, and says that none were": lambda said: said["columns"].update(kept=[]),
}


@pytest.mark.parametrize("claim", _CLAIMS)
def test_what_a_manifest_cannot_say_of_events_is_found(tmp_path: Path, claim: str) -> None:
    folder = _released(tmp_path, "events")
    forge(folder, manifest=_CLAIMS[claim])
    assert any(claim in one for one in verify(folder).faults)


def test_other_counts_than_those_of_the_original_are_found(tmp_path: Path) -> None:
    folder = _released(tmp_path, "events")
    forge(folder, manifest=lambda said: said["events"]["dropped"].update(purchase=2))
    assert verify(folder).holds
    assert fault(folder, original=a_log()) == "manifest.json says 2 purchase events before, and the original has 1"


def test_a_device_that_was_dropped_and_is_there_is_found(tmp_path: Path) -> None:
    folder = _released(tmp_path, "device")
    assert verify(folder, original=a_log()).holds
    forge(folder, manifest=lambda said: said["columns"].update(kept=[], dropped=["time", "search", "device"]))
    assert "column device should be empty" in "".join(verify(folder).faults)

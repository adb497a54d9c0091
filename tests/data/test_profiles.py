"""Profiles and groups as values: made from frames, given back as frames, never shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from queryveil.data import GROUPS_SCHEMA as GROUPS
from queryveil.data import PROFILES_SCHEMA, Groups, Profiles
from queryveil.errors import BadFile, BadInput
from queryveil.formats import read_groups, write_groups

ROWS: dict[str, list[Any]] = {
    "user": ["u1", "u2", "u3"],
    "terms": [["kitten", "riding"], ["pup"], []],
    "weights": [[1.0, 0.8], [0.6], []],
}


def groups(*rows: tuple[Any, ...]) -> Groups:
    return Groups(frame=pl.DataFrame(list(rows), schema=GROUPS, orient="row"))


@pytest.mark.parametrize("make", [dict, pl.DataFrame, pl.LazyFrame, pd.DataFrame, pa.table], ids=lambda f: f.__name__)
def test_profiles_come_from_any_frame(make: Any) -> None:
    profiles = Profiles.from_frame(make(ROWS))
    assert profiles.frame.equals(pl.DataFrame(ROWS, schema=PROFILES_SCHEMA))
    assert (profiles.n_users, profiles.n_entries) == (3, 3)


def test_profiles_go_to_any_frame() -> None:
    profiles = Profiles.from_frame(ROWS)
    for back in (profiles.to_polars(), profiles.to_arrow(), profiles.to_pandas()):
        assert Profiles.from_frame(back).frame.equals(profiles.frame)


def test_profiles_come_from_dicts() -> None:
    profiles = Profiles.from_dicts({"u1": {"kitten": 1, "riding": 0.8}, "u2": {"pup": 0.6}, "u3": {}})
    assert profiles.frame.equals(Profiles.from_frame(ROWS).frame)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user": ["u1", "u1", "u3"]}, "every user has one profile"),
        ({"user": ["u1", "", "u3"]}, "an id that is not empty"),
        ({"terms": [["kitten", "kitten"], ["pup"], []]}, "stands twice"),
        ({"terms": [["kitten", ""], ["pup"], []]}, "missing or empty"),
        ({"terms": [["kitten"], ["pup"], []]}, "another number of terms"),
        ({"weights": [[1.0, 0.0], [0.6], []]}, "not a number above 0"),
        ({"weights": [[1.0, float("nan")], [0.6], []]}, "not a number above 0"),
        ({"weights": [[1.0, float("inf")], [0.6], []]}, "not a number above 0"),
        ({"terms": [["kitten", "riding"], None, []]}, "is missing"),
    ],
)
def test_profiles_that_make_no_sense_are_refused_without_their_text(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        Profiles.from_frame(pl.DataFrame({**ROWS, **change}, schema=PROFILES_SCHEMA))
    assert "kitten" not in str(caught.value)


def test_a_frame_without_a_column_of_profiles_is_refused() -> None:
    with pytest.raises(BadInput, match="no column weights"):
        Profiles.from_frame({"user": ["u1"], "terms": [["kitten"]]})
    with pytest.raises(BadInput, match="must be text"):
        Profiles.from_frame({"user": ["u1"], "terms": [["kitten"]], "weights": [["much"]]})


def test_a_group_without_members_or_with_a_number_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="at least one member"):
        groups((1, 0, 1, ["kitten"], [1.0], None))
    with pytest.raises(BadInput, match="the number of another"):
        groups((1, 2, 1, ["kitten"], [1.0], None), (1, 2, 1, ["pup"], [1.0], None))
    with pytest.raises(BadInput, match="holders"):
        groups((1, 2, 1, ["kitten"], [1.0], [1, 1]))
    with pytest.raises(BadInput, match="and not of others"):
        groups((1, 2, 2, ["kitten", "pup"], [1.0, 1.0], [1, None]))


def test_groups_are_the_same_when_read_back(tmp_path: Path) -> None:
    made = groups(
        (1, 3, 4, ["kitten", "größe"], [0.6, 0.3], [2, 2]), (2, 5, 0, [], [], []), (3, 2, 2, ["a"], [1.0], None)
    )
    write_groups(made, tmp_path / "groups.jsonl")
    assert read_groups(tmp_path / "groups.jsonl").frame.equals(made.frame)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"group": 1, "members": 2, "terms": {"secret": 1.0}}',
        b'{"group": 1, "members": 2, "size": 2, "terms": {"secret": "much"}}',
        b'{"group": 1, "members": 2, "size": 2, "terms": {"secret": 1.0}, "holders": {"other": 1}}',
        b'{"group": 1, "members": 2, "size": 2, "terms": {"secret": 1.0}, "names": ["jo"]}',
        b'{"group": 1, "members": 2, "size": 2, "terms": {"secret": -1.0}}',
        b'{"group": 1, "members": 2, "size": 2, "terms": {"\xff": 1.0}}',
        b'{"group": 1, "members": 9223372036854775808, "size": 2, "terms": {"secret": 1.0}}',
        b'{"group": 1, "members": 2, "size": 2, "terms": {"secret": 1.0}, "holders": {"secret": 18446744073709551616}}',
    ],
)
def test_a_damaged_file_of_groups_is_a_clear_error_without_its_text(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "groups.jsonl"
    path.write_bytes(b'{"group": 7, "members": 2, "size": 1, "terms": {"tea": 1.0}}\n' + line + b"\n")
    with pytest.raises(BadFile) as caught:
        read_groups(path)
    assert str(caught.value).startswith("groups.jsonl: ")
    assert "secret" not in str(caught.value)


def test_reprs_hide_terms_and_users() -> None:
    assert repr(Profiles.from_frame(ROWS)) == "Profiles(n_users=3, n_entries=3)"
    assert repr(groups((1, 3, 1, ["kitten"], [0.6], None))) == "Groups(n_groups=1, n_members=3)"

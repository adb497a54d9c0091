"""Profiles as files: what is read, what is refused, and by which line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil import read_profiles
from queryveil.data import Profiles
from queryveil.errors import BadFile, BadParameter, BadRows
from queryveil.formats import are_profiles

GOOD = (
    b'{"user": "u1", "terms": {"kitten": 1.0, "riding": 0.8}}\n\n'
    b'{"user": 7, "terms": ["pup", "programming language"]}\n'
)


def put(folder: Path, data: bytes, name: str = "profiles.jsonl") -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def rows(profiles: Profiles) -> list[tuple[str, list[str], list[float]]]:
    return profiles.frame.rows()


def test_weights_are_read_and_a_list_of_terms_weighs_one_each(tmp_path: Path) -> None:
    profiles = read_profiles(put(tmp_path, GOOD))
    assert rows(profiles) == [("u1", ["kitten", "riding"], [1.0, 0.8]), ("7", ["pup", "programming language"], [1, 1])]


@pytest.mark.parametrize("name", ["profiles.jsonl.gz", "profiles.gz", "people"])
def test_a_file_may_be_compressed_and_called_anything(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, gzip.compress(GOOD) if name.endswith("gz") else GOOD, name)
    assert read_profiles(path).n_users == 2
    assert are_profiles(path)


def test_several_files_are_one_set_of_profiles(tmp_path: Path) -> None:
    put(tmp_path, b'{"user": "a", "terms": []}\n', "1.jsonl")
    put(tmp_path, b'{"user": "b", "terms": {}, "age": 7}', "2.jsonl")
    assert rows(read_profiles(str(tmp_path / "*.jsonl"))) == [("a", [], []), ("b", [], [])]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"terms": ["kestrel"]}', "the user is missing"),
        (b'{"user": " ", "terms": ["kestrel"]}', "the user is missing"),
        (b'{"user": true, "terms": ["kestrel"]}', "the user is missing"),
        (b'{"user": {"id": 1}, "terms": ["kestrel"]}', "the user is missing"),
        (b'{"user": "u"}', "the terms are missing"),
        (b'{"user": "u", "terms": "kestrel"}', "the terms are missing"),
        (b'{"user": "u", "terms": ["kestrel", 3]}', "the terms are missing"),
        (b'{"user": "u", "terms": ["kestrel", "kestrel"]}', "a term stands twice"),
        (b'{"user": "u", "terms": {"kestrel": 1, " ": 1}}', "a term is empty"),
        (b'{"user": "u", "terms": {"kestrel": 0}}', "a weight is not a number above 0"),
        (b'{"user": "u", "terms": {"kestrel": -1}}', "a weight is not a number above 0"),
        (b'{"user": "u", "terms": {"kestrel": "1"}}', "a weight is not a number above 0"),
        (b'{"user": "u", "terms": {"kestrel": true}}', "a weight is not a number above 0"),
        (b'{"user": "u", "terms": {"kestrel": 1' + b"0" * 400 + b"}}", "a weight is not a number above 0|not JSON"),
        (b'{"user": "u", "terms": {"kestrel": 1e999}}', "not JSON"),
        (b'{"user": "u", "terms": {"kestrel": NaN}}', "not JSON"),
        (b'{"user": "u", "terms": {"kestrel": 1}', "not JSON"),
        (b'["kestrel"]', "JSON but not an object"),
        (b'{"user": "u\\ud800", "terms": ["kestrel"]}', "not JSON"),
        (b'{"user": "u", "terms": ["kes\0trel"]}', "NUL byte"),
        (b"[" * 5000, "not JSON"),
        (b'{"user": "u", "terms": ["kestrel", "' + b"a" * (1 << 21) + b'"]}', "longer than"),
    ],
)
def test_a_bad_line_is_named_without_its_text_or_left_out(tmp_path: Path, line: bytes, reason: str) -> None:
    path = put(tmp_path, GOOD + line + b"\n" + b'{"user": "last", "terms": {"fern": 2}}')
    with pytest.raises(BadRows, match=f"profiles.jsonl, line 4: .*({reason})") as caught:
        read_profiles(path)
    assert "kestrel" not in str(caught.value)
    profiles = read_profiles(path, bad_rows="skip")
    assert profiles.frame["user"].to_list() == ["u1", "7", "last"]
    assert profiles.reading.n_bad_rows_skipped == 1


def test_only_the_first_ten_bad_lines_are_listed(tmp_path: Path) -> None:
    with pytest.raises(BadRows, match=r"line 10: .*\nand 5 more\n15 rows cannot be read"):
        read_profiles(put(tmp_path, b"{}\n" * 15))


def test_a_user_on_two_lines_is_one_clear_line_that_names_the_second(tmp_path: Path) -> None:
    path = put(tmp_path, b'{"user": "1", "terms": ["fern"]}\n{"user": 2, "terms": []}\n{"user": 1, "terms": ["elm"]}\n')
    with pytest.raises(BadFile) as caught:
        read_profiles(path, bad_rows="skip")
    assert str(caught.value) == (
        "profiles.jsonl: line 3 has a user that stood before; put all terms of a user on one line"
    )


def test_lines_that_are_not_utf8_are_read_as_latin1_and_counted(tmp_path: Path) -> None:
    profiles = read_profiles(put(tmp_path, '{"user": "u", "terms": ["caf\xe9"]}'.encode("latin-1")))
    assert profiles.frame["terms"].to_list() == [["café"]]
    assert profiles.reading.n_latin1_rows == 1


def test_a_file_that_is_cut_off_missing_or_empty_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="ends in the middle"):
        read_profiles(put(tmp_path, gzip.compress(GOOD * 999)[:-20], "profiles.jsonl.gz"))
    with pytest.raises(BadFile, match="there is no such file"):
        read_profiles(tmp_path / "nowhere.jsonl")
    with pytest.raises(BadFile, match="the file is empty"):
        read_profiles(put(tmp_path, b"", "empty.jsonl"))
    with pytest.raises(BadParameter, match="bad_rows must be one of fail, skip"):
        read_profiles(tmp_path / "profiles.jsonl", bad_rows="perhaps")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (GOOD, True),
        (b'\n  {"terms": [], "user": 1}', True),
        (b'{"user": 1, "terms": {' + b",".join(b'"word%d": 1' % i for i in range(50_000)) + b"}}", True),
        (b'{"user": 1, "query": "fern", "terms": ["fern"]}', False),
        (b'{"user": 1, "query": "fern"}', False),
        (b'{"query_id": 1, "user_query": "fern", "terms": []}', False),
        (b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n", False),
        (b"[" * 5000, False),
        (b"\xff\xfe\0", False),
        (b"", False),
    ],
)
def test_profiles_are_told_from_logs_by_their_first_line(tmp_path: Path, head: bytes, expected: bool) -> None:
    assert are_profiles(put(tmp_path, head)) is expected


def test_what_is_not_there_or_comes_from_a_pipe_does_not_look_like_profiles(tmp_path: Path) -> None:
    assert not are_profiles(tmp_path / "nowhere.jsonl")
    assert not are_profiles("-")
    assert not are_profiles(tmp_path)


@examples(40)
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).filter(str.strip),
        st.dictionaries(
            st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).filter(str.strip),
            st.floats(1e-300, 1e300),
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_text_and_any_weight_is_read_as_it_was_written(people: dict[str, dict[str, float]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        text = "\n".join(json.dumps({"user": user, "terms": terms}) for user, terms in people.items())
        profiles = read_profiles(put(Path(folder), text.encode()))
    assert rows(profiles) == [(user, list(terms), list(terms.values())) for user, terms in people.items()]

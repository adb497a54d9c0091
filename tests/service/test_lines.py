"""Lines to events and back: the same rows as a reader of files gives, and garbage spoils only its own line."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.data import Layout
from queryveil.errors import BadFile, QueryveilError
from queryveil.formats import read_log
from queryveil.release import ColumnPolicy, Ids
from queryveil.service.lines import Parsed, find_layout, parse, write_lines
from queryveil.service.pipeline._workers import slice_lines

NOW = datetime(2026, 3, 4, 15, 16, 17, 180_000)
AOL = b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\nu1\tred kite\t2006-03-01 07:17:12\t3\thttp://a.example\n"


def read(data: bytes, *, format: str | None = None, keep: tuple[str, ...] = (), **names: str) -> tuple[Parsed, Layout]:  # noqa: A002
    layout = find_layout(data, format=format, names=names, source="lines")
    assert layout is not None
    parsed = parse(data, layout=layout, keep=keep)
    return parsed, replace(layout, time_format=layout.time_format or parsed.time_format)


def written(parsed: Parsed, layout: Layout, *, policy: ColumnPolicy, has_header: bool = True) -> str:
    return write_lines(parsed.frame, layout=layout, columns=policy, now=NOW, has_header=has_header).decode()


KEEP_IDS = ColumnPolicy(ids=Ids.KEEP, time="day")  # type: ignore[arg-type]


def test_aol_lines_come_back_with_their_columns_empty_but_for_what_leaves() -> None:
    parsed, layout = read(AOL)
    assert (parsed.n_read, parsed.bad_lines.tolist()) == (1, [])
    assert written(parsed, layout, policy=KEEP_IDS) == (
        "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\nu1\tred kite\t2026-03-04 00:00:00\t\t\n"
    )
    assert written(parsed, layout, policy=KEEP_IDS, has_header=False) == "u1\tred kite\t2026-03-04 00:00:00\t\t\n"


def test_kept_columns_travel_with_the_query() -> None:
    policy = ColumnPolicy(ids=Ids.KEEP, keep=("rank", "url"), time="hour")  # type: ignore[arg-type]
    parsed, layout = read(AOL, keep=policy.keep)
    line = written(parsed, layout, policy=policy).splitlines()[1]
    assert line == "u1\tred kite\t2026-03-04 15:00:00\t3\thttp://a.example"


def test_csv_has_the_names_and_the_order_of_its_header_and_only_what_leaves() -> None:
    data = b'shop,when,client_id,q\nA,2006-03-01T07:17:12Z,u1,"red, kite"\n'
    parsed, layout = read(data, user="client_id", query="q", time="when")
    policy = ColumnPolicy(ids=Ids.KEEP, time="keep")  # type: ignore[arg-type]
    assert written(parsed, layout, policy=policy) == ('when,client_id,q\n2026-03-04T15:16:17.180000Z,u1,"red, kite"\n')


def test_excite_lines_have_no_header_and_whole_seconds() -> None:
    data = b"u1\t970916105432\tred kite\n"
    parsed, layout = read(data)
    assert written(parsed, layout, policy=KEEP_IDS) == "u1\t260304000000\tred kite\n"


def test_json_keeps_its_keys_and_the_values_of_what_is_kept() -> None:
    data = (
        b'{"q": "red kite", "uid": 7, "ts": 1141197432, "shop": {"a": [1, 2.5]}, "rank": 3}\n{"uid": "u2", "q": ""}\n'
    )
    policy = replace(KEEP_IDS, keep=("shop",))
    parsed, layout = read(data, keep=policy.keep, user="uid")
    first, second = map(json.loads, written(parsed, layout, policy=policy).splitlines())
    assert first == {"q": "red kite", "uid": "7", "ts": 1772582400, "shop": {"a": [1, 2.5]}}
    assert second == {"q": "", "uid": "u2", "ts": 1772582400}


@pytest.mark.parametrize("time_format", ["drop", "day"])
def test_a_log_without_times_gets_none(time_format: str) -> None:
    parsed, layout = read(b"user\tquery\nu1\tred kite\n")
    policy = ColumnPolicy(ids=Ids.KEEP, time=time_format)  # type: ignore[arg-type]
    assert written(parsed, layout, policy=policy) == "user\tquery\nu1\tred kite\n"


def test_a_line_with_other_keys_moves_no_role_of_json() -> None:
    data = b'{"session": "u1", "q": "red kite"}\n' * 3 + b'{"session": "u2", "user": "u2", "query": "own"}\n'
    parsed, layout = read(data)
    assert layout.names == {"user": "session", "query": "q"}
    assert parsed.frame.rows() == [("u1", "red kite")] * 3 + [("u2", "")]


def test_json_is_told_from_garbage_however_much_of_it_comes_first() -> None:
    parsed, _ = read(b"rubbish\n\xff{\n" * 2000 + b'{"user": "u1", "query": "red kite"}\n', format="jsonl")
    assert (parsed.n_read, len(parsed.bad_lines)) == (4001, 4000)
    assert parsed.frame.rows() == [("u1", "red kite")]


def test_every_file_of_a_rotation_may_begin_with_a_header() -> None:
    header, row = AOL.split(b"\n")[:2]
    again = b"\n".join([header, row, row, header.upper(), row, b""])
    parsed, _ = read(again)
    assert (parsed.n_read, parsed.frame.height, parsed.bad_lines.tolist()) == (3, 3, [])
    table = b"query,user\nred kite,u1\nquery,user\nuser,query\n"
    parsed, _ = read(table)
    assert parsed.frame.rows() == [("u1", "red kite"), ("query", "user")]


def test_a_stray_quote_spoils_its_own_line_only() -> None:
    data = b'user,query\nu1,"open\nu2,red kite\nu3,"say ""hi"""\nu4,ends"\nu5,"shut"x\nu6,fine\n'
    parsed, _ = read(data)
    assert parsed.frame.rows() == [("u2", "red kite"), ("u3", 'say "hi"'), ("u4", 'ends"'), ("u6", "fine")]
    assert parsed.bad_lines.tolist() == [2, 6]
    assert parsed.n_read == 6


def test_stray_quotes_in_a_wide_table_of_many_lines_spoil_their_own_lines_only() -> None:
    n_columns = 900
    good = b"u,q" + b"," * (n_columns - 2) + b"\n"
    header = b"user,query," + b",".join(b"c%d" % i for i in range(n_columns - 2)) + b"\n"
    # More lines than are split at once, and stray quotes where the first part of them ends.
    data = header + good + b"x\n" * 18_600 + b'"x\n' * 100 + b"x\n" * 1300 + good
    parsed, _ = read(data)
    assert parsed.frame.rows() == [("u", "q")] * 2
    assert parsed.bad_lines.tolist() == list(range(3, 20_003))


def test_lines_that_cannot_be_read_are_named_by_number() -> None:
    row = b"u1\tred kite\t2006-03-01 07:17:12\t\t\n"
    bad = [b"\x00" + row, b"one\n", b"\t" + row[2:], row.replace(b"2006", b"20o6"), b"x" * (1 << 20) + row]
    data = row + b"\n" + b"".join(bad) + row
    parsed, _ = read(data)
    assert parsed.bad_lines.tolist() == [3, 4, 5, 6, 7]
    assert (parsed.n_read, parsed.frame.height) == (7, 2)


def test_json_garbage_is_named_by_number() -> None:
    good = b'{"user": "u1", "query": "red kite"}\n'
    bad = [b"{\n", b"[]\n", b'{"user": "u1", "query": 3}\n', b'{"query": "x"}\n', b"  \n", b"[" * 9000 + b"\n"]
    parsed, _ = read(good + b"".join(bad) + good)
    assert parsed.bad_lines.tolist() == [2, 3, 4, 5, 6, 7]
    assert parsed.frame.rows() == [("u1", "red kite")] * 2


def test_text_that_is_not_utf8_is_read_as_latin1_and_a_mark_is_no_text() -> None:
    parsed, _ = read(b"\xef\xbb\xbfuser\tquery\nu1\tcaf\xe9\n")
    assert parsed.frame.rows() == [("u1", "café")]
    parsed, _ = read(b'{"user": "u1", "query": "caf\xe9"}\n')
    assert parsed.frame.rows() == [("u1", "café")]


def test_what_is_no_stream_of_lines_is_refused() -> None:
    with pytest.raises(BadFile, match="cannot be read as a stream"):
        find_layout(b'{"query_id": 1, "user_query": "x"}\n', format=None, names={}, source="lines")
    assert find_layout(b"\n \n", format=None, names={}, source="lines") is None


FIELD = st.text(st.sampled_from('ab "\\é\t,:{}7'), max_size=6)
VALUE = st.one_of(
    FIELD, st.integers(-(2**70), 2**70), st.none(), st.booleans(), st.just([1]), st.floats(allow_nan=False)
)
OBJECT = st.dictionaries(st.sampled_from(["user", "query", "rank", "url", "time"]), VALUE)
LINE = st.one_of(
    OBJECT.map(json.dumps),
    st.tuples(FIELD, FIELD).map("\t".join),
    st.tuples(FIELD, FIELD).map(lambda pair: json.dumps({"user": pair[0], "query": pair[1]}, ensure_ascii=False)),
    FIELD,
    st.just(""),
)
FIRST = {"tsv": "user\tquery", "jsonl": '{"user": "first", "query": "one"}', "csv": "user,query"}


@pytest.mark.parametrize("format", list(FIRST))
@examples(40)
@given(lines=st.lists(LINE, max_size=12), encoding=st.sampled_from(["utf-8", "latin-1"]))
@example(lines=['"a,b"'], encoding="utf-8")
def test_lines_are_read_as_a_file_of_them_is(
    format: str,  # noqa: A002
    lines: list[str],
    encoding: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if format == "csv":
        # A reader of files takes a quoted line end for text; in a stream a line is an event.
        lines = [line.replace('"', "'") for line in lines]
    data = "".join(f"{line}\n" for line in [FIRST[format], *lines]).encode(encoding)
    path: Path = tmp_path_factory.getbasetemp() / f"lines.{format}"
    path.write_bytes(data)
    log = read_log(path, format=format, bad_rows="skip")
    parsed, _ = read(data, format=format)
    assert parsed.frame.rows() == log.frame.select("user", "query").rows()
    assert len(parsed.bad_lines) == log.reading.n_bad_rows_skipped
    assert parsed.n_read == log.n_rows + log.reading.n_bad_rows_skipped


@examples(40)
@given(data=st.binary(max_size=400))
def test_no_bytes_stop_a_stream(data: bytes) -> None:
    layouts = [read(AOL)[1], read(b"user,query\n")[1], read(b'{"user": "a", "query": "b"}\n')[1]]
    for layout in layouts:
        parsed = parse(data + b"\n", layout=layout)
        assert parsed.n_read == parsed.frame.height + len(parsed.bad_lines)
    # Whatever else it raises would be a fault.
    with suppress(QueryveilError):
        find_layout(data, format=None, names={}, source="lines")


@given(lines=st.lists(st.sampled_from(["", "a", "bb" * 9000, "ccc"]), max_size=9), n=st.integers(1, 5))
def test_slices_are_whole_lines_and_nothing_is_lost(lines: list[str], n: int) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    slices = slice_lines(data, n=n)
    assert b"".join(slices) == data
    assert len(slices) <= n
    assert all(each.endswith(b"\n") for each in slices if each)


def test_pseudonyms_are_those_of_a_release() -> None:
    policy = ColumnPolicy(ids=Ids.KEYED, key=b"a made-up secret of 32 bytes, 32")
    users = pl.Series("user", ["u1", "u2", "u1", "é", "x" * 200, ""])
    frame = pl.DataFrame({"user": users, "query": [str(i) for i in range(6)]})
    released = policy.apply(frame, np.arange(6, dtype=np.int32), rng=np.random.default_rng(1)).sort("query")
    assert policy.released_ids(users).to_list() == released["user"].to_list()
    assert policy.released_ids(users[::-1]).to_list() == released["user"].to_list()[::-1]

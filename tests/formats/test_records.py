"""Records and fields against plain definitions of them, however the bytes are cut into blocks."""

import csv
import io
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.formats import _field_kernels as fields
from queryveil.formats.records import COMMA, LINES, TAB, split

N_COLUMNS = 3
letters = st.sampled_from(
    [b"a", b"b", b",", b"\t", b'"', b'""', b"\n", b"\r\n", b"\r", b"\0", b"\xff", b"\xc3\xa9", b'"\n']
)
noise = st.lists(letters, max_size=40).map(b"".join)

Row = tuple[int, int, int, list[str | None]]


def _records(blocks: list[bytes], delimiter: str, max_bytes: int = 1 << 20) -> list[Row]:
    rows: list[Row] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queryveil.formats.records.MAX_RECORD_BYTES", max_bytes)
        found = list(split(iter(blocks), delimiter=delimiter, n_columns=N_COLUMNS))
    for records in found:
        sound = (records.flags & ~np.uint8(fields.LATIN1)) == 0
        for i in range(len(records.lines)):
            one = records.only(np.array([i]))
            flag, count = int(records.flags[i]), int(records.counts[i])
            texts = [one.column(j).item() for j in range(min(count, N_COLUMNS))] if sound[i] else []
            rows.append((int(records.lines[i]), flag, count if sound[i] else 0, texts))
    return rows


@examples(200)
@given(
    noise,
    st.sampled_from([COMMA, TAB, LINES]),
    st.lists(st.integers(0, 60), max_size=5),
    st.sampled_from([3, 8, 1 << 20]),
)
def test_cuts_between_blocks_change_nothing(data: bytes, delimiter: str, cuts: list[int], max_bytes: int) -> None:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    blocks = [data[start:stop] for start, stop in pairwise(places)]
    assert _records(blocks, delimiter, max_bytes) == _records([data], delimiter, max_bytes)


@given(noise)
def test_unquoted_lines_are_split_as_the_words_say(data: bytes) -> None:
    expected: list[Row] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        whole = line.removesuffix(b"\r") if number <= data.count(b"\n") or line != b"\r" else b""
        if not whole:
            continue
        flag = fields.HAS_NUL if b"\0" in whole else 0
        try:
            text = whole.decode()
        except UnicodeDecodeError:
            text, flag = whole.decode("latin-1"), flag | fields.LATIN1
        cells: list[str | None] = [*text.split("\t")]
        bad = flag & fields.HAS_NUL
        expected.append((number, flag, 0 if bad else len(cells), [] if bad else cells[:N_COLUMNS]))
    assert _records([data], TAB) == expected


@given(st.lists(st.lists(st.text(alphabet='ab,"\n\r é', max_size=6), min_size=1, max_size=4), max_size=6))
def test_well_formed_csv_is_split_as_the_standard_library_does(table: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(table)
    found = _records([text.getvalue().encode()], COMMA)
    assert [(flag, count, cells) for _, flag, count, cells in found] == [
        (0, len(row), row[:N_COLUMNS]) for row in table
    ]


@given(st.binary(min_size=1, max_size=8) | st.text(min_size=1, max_size=4).map(str.encode))
def test_latin1_is_what_is_not_utf8(data: bytes) -> None:
    data = data.replace(b"\0", b"").replace(b"\n", b"").replace(b"\r", b"") or b"x"
    try:
        expected = data.decode()
    except UnicodeDecodeError:
        expected = data.decode("latin-1")
    ((_, flag, _, cells),) = _records([data], LINES)
    assert cells == [expected]
    assert (flag == fields.LATIN1) == (expected.encode() != data)


def test_a_wide_table_of_many_lines_is_split_in_parts_with_exact_lines() -> None:
    # Places for all fields of all lines at once would take 160 MB for these 60 kB.
    n_columns, n_lines = 2000, 20_000
    data = b'a\n\n"b\nc",d\n' * (n_lines // 4) + b"," * (n_columns - 1) + b"\n"
    parts = list(split(iter([data]), delimiter=COMMA, n_columns=n_columns))
    assert len(parts) > 1
    assert all(part.starts.size <= 1 << 24 for part in parts)
    lines = np.concatenate([part.lines for part in parts])
    assert lines.tolist() == [*(line for i in range(0, n_lines, 4) for line in (i + 1, i + 3)), n_lines + 1]
    counts = np.concatenate([part.counts for part in parts])
    assert set(counts[:-1].tolist()) == {1, 2}
    assert counts[-1] == n_columns

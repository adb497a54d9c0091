"""Counts added to rows of JSON text, against the same done with dicts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.service.stores._profile_blocks import add_to_lines

N_PLACES = 4
users = st.text("abü[ ", max_size=3)
counts = st.lists(st.integers(0, 10**6) | st.sampled_from([0, 9, 10, 10**15]), min_size=N_PLACES, max_size=N_PLACES)
changes = st.lists(st.tuples(users, st.integers(0, N_PLACES - 1), st.integers(0, 12)), max_size=12)


def quoted(user: str) -> bytes:
    return json.dumps(user, ensure_ascii=False).encode()


def added(text: bytes, rows: list[tuple[str, int, int]]) -> tuple[bytes, list[int], int]:
    keys = [quoted(user) for user, _, _ in rows]
    out, starts, n_new = add_to_lines(
        np.frombuffer(text, np.uint8),
        np.frombuffer(b"".join(keys), np.uint8),
        np.cumsum([len(key) for key in keys], dtype=np.int64),
        np.array([place for _, place, _ in rows], np.int64),
        np.array([n for _, _, n in rows], np.int64),
        N_PLACES,
    )
    return out.tobytes(), starts.tolist(), n_new


@given(before=st.dictionaries(users, counts, max_size=8), rows=changes)
def test_rows_are_those_that_dicts_would_give(before: dict[str, list[int]], rows: list[tuple[str, int, int]]) -> None:
    in_order = sorted(before, key=quoted)
    lines = [json.dumps([user, *before[user]], ensure_ascii=False, separators=(",", ":")) for user in in_order]
    out, starts, n_new = added(",\n".join(lines).encode(), sorted(rows, key=lambda row: quoted(row[0])))
    wanted = {user: list(old) for user, old in before.items()}
    for user, place, n in rows:
        wanted.setdefault(user, [0] * N_PLACES)[place] += n
    found = [json.loads(line.removesuffix(",")) for line in out.decode().splitlines()]
    assert found == [[user, *wanted[user]] for user in sorted(wanted, key=quoted)]
    assert starts == [0, *(i + 1 for i, byte in enumerate(out) if byte == 10)][:-1]
    assert n_new == len(wanted) - len(before)


@pytest.mark.parametrize("count", [b"-5", b"1.5", b"", b"9" * 30, b"5-"])
def test_a_count_that_is_none_is_told_and_ends(count: bytes) -> None:
    assert added(b'["a",1,%s,3,4]' % count, [("a", 1, 1)])[2] == (-1 if count else 0)


def test_a_sum_that_fits_no_number_is_told() -> None:
    assert added(b'["a",1,2,3,4]', [("a", 1, 2**63 - 1)])[2] == -1


@pytest.mark.parametrize(
    "text", [b'["a",1,2', b"nonsense", b'["a"]', b'["a",1,2,3,4],\n["b",', b"]]]]]]]]", b'["b",1,2,3,4', b"[" * 40]
)
def test_text_that_is_damaged_is_told(text: bytes) -> None:
    for rows in ([("a", 0, 1)], [("b", 0, 1)], [("zz", 3, 1)]):
        assert added(text, rows)[2] in (-1, 0, 1)
    assert -1 in {added(text, rows)[2] for rows in ([("a", 0, 1)], [("b", 0, 1)], [("zz", 3, 1)])}

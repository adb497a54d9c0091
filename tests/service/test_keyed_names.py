"""Keyed names are HMAC-SHA256, whatever the length of key and text."""

from __future__ import annotations

import hashlib
import hmac

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.release import ColumnPolicy, Ids


def names_of(users: list[str], *, key: bytes) -> list[str]:
    return ColumnPolicy(ids=Ids.KEYED, key=key).released_ids(pl.Series("user", users, dtype=pl.String)).to_list()


def plainly(users: list[str], *, key: bytes) -> list[str]:
    return [hmac.digest(key, user.encode(), hashlib.sha256).hex()[:32] for user in users]


@pytest.mark.parametrize("n_key", [16, 63, 64, 65, 200])
def test_every_length_around_a_block_is_right(n_key: int) -> None:
    key = bytes(range(n_key))
    users = ["x" * n for n in (*range(130), 1000, 55, 0)]
    assert names_of(users, key=key) == plainly(users, key=key)


@given(users=st.lists(st.text(max_size=90), max_size=8), key=st.binary(min_size=16, max_size=80))
def test_names_are_the_same_as_the_library_makes_them(users: list[str], key: bytes) -> None:
    assert names_of(users, key=key) == plainly(users, key=key)


def test_a_part_of_a_column_is_named_as_the_whole_is() -> None:
    users = pl.Series("user", [f"member{i}" for i in range(50)])
    names = ColumnPolicy(ids=Ids.KEYED, key=bytes(32))
    assert names.released_ids(users[20:30]).to_list() == names.released_ids(users).to_list()[20:30]
    assert names.released_ids(pl.concat([users[:3], users[7:9]], rechunk=False)).to_list() == [
        *names.released_ids(users).to_list()[:3],
        *names.released_ids(users).to_list()[7:9],
    ]

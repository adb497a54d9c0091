"""Profiles: the paper's example, and counts that add up."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.methods.swap.preparing import CATEGORY_NAMES, increments, shares

FIFTY = {"Arts": 20, "Health": 5, "Science": 5, "Computers": 10, "Business": 10}


def released(rows: list[tuple[str, str]]) -> pl.DataFrame:
    numbers = [(user, CATEGORY_NAMES.index(category)) for user, category in rows]
    return pl.DataFrame(numbers, schema={"user": pl.String, "category": pl.Int8}, orient="row")


def test_the_papers_profile_of_fifty_queries_and_then_one_about_sports() -> None:
    assert shares(FIFTY) == {"Arts": 40.0, "Business": 20.0, "Computers": 20.0, "Health": 10.0, "Science": 10.0}
    counts = Counter(FIFTY)
    for user, category, n in increments(released([("A", "Sports")])).iter_rows():
        assert user == "A"
        counts[category] += n
    rounded = {category: round(share, 2) for category, share in shares(counts).items()}
    assert rounded == {
        "Arts": 39.22,
        "Business": 19.61,
        "Computers": 19.61,
        "Health": 9.8,
        "Science": 9.8,
        "Sports": 1.96,
    }


def test_an_empty_profile_has_no_shares() -> None:
    assert shares({}) == {}
    assert shares({"Arts": 0}) == {"Arts": 0.0}


def test_nothing_released_adds_nothing() -> None:
    nothing = increments(released([]))
    assert nothing.is_empty()
    assert nothing.schema == {"user": pl.String, "category": pl.String, "n": pl.Int64}


@given(rows=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(CATEGORY_NAMES)), max_size=60))
def test_increments_count_each_row_once(rows: list[tuple[str, str]]) -> None:
    found = increments(released(rows))
    assert {(user, category): n for user, category, n in found.iter_rows()} == Counter(rows)
    assert found.height == len(set(rows))
    if rows:
        counts = {category: n for user, category, n in found.iter_rows() if user == rows[0][0]}
        assert sum(shares(counts).values()) == pytest.approx(100)

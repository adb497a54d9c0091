"""The made-up marketing table: its marginals and its correlations."""

from __future__ import annotations

import re

import polars as pl
import pytest

from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.synthesis import synthesize, term_values

# Paper: table 3; the tolerance is what seeds and a frequency closer to the users than theirs leave open.
TABLE_3 = [
    ("frequency", "impressions", 0.111, 0.05),
    ("frequency", "clicks", 0.024, 0.04),
    ("frequency", "bid", 0.001, 0.03),
    ("frequency", "revenue", 0.002, 0.03),
    ("users", "impressions", 0.151, 0.04),
    ("users", "clicks", 0.031, 0.04),
    ("users", "bid", 0.002, 0.03),
    ("users", "revenue", 0.003, 0.03),
    ("bid", "revenue", 0.579, 0.06),
    ("bid", "impressions", 0.002, 0.03),
    ("bid", "clicks", -0.003, 0.04),
    ("clicks", "revenue", 0.040, 0.03),
    ("clicks", "impressions", 0.400, 0.05),
    ("impressions", "revenue", 0.020, 0.04),
]


@pytest.fixture(scope="module")
def log() -> QueryLog:
    return synthesize(users=25_000, seed=6, like="altavista").log


@pytest.mark.parametrize("seed", range(5))
def test_correlations_resemble_those_of_the_paper(log: QueryLog, seed: int) -> None:
    words = log.frame.select("user", term=pl.col("query").str.split(" ")).explode("term")
    counts = words.group_by("term").agg(frequency=pl.len(), users=pl.col("user").n_unique())
    assert counts.height >= 20_000
    table = term_values(log, seed=seed).join(counts, on="term")
    table = table.with_columns(revenue=pl.col("bid") * pl.col("clicks"))
    for one, other, expected, tolerance in TABLE_3:
        found = table.select(one, other).drop_nulls().select(pl.corr(one, other)).item()
        assert found == pytest.approx(expected, abs=tolerance), (one, other)


def test_about_half_of_the_terms_are_listed_and_half_of_those_have_clicks(log: QueryLog) -> None:
    table = term_values(log, seed=1)
    n_terms = log.frame["query"].str.split(" ").explode().n_unique()
    assert table["term"].is_unique().all()
    assert table.height / n_terms == pytest.approx(0.47, abs=0.001)
    assert table["clicks"].null_count() / table.height == pytest.approx(0.45, abs=0.02)
    assert table["bid"].is_between(0.05, 919).all()
    assert table["bid"].max() == 919
    assert 0.3 < table["bid"].median() < 0.6  # type: ignore[operator]


def test_the_most_used_terms_are_listed(log: QueryLog) -> None:
    words = log.frame.select("user", term=pl.col("query").str.split(" ")).explode("term").unique()
    frequent = words.group_by("term").len().filter(pl.col("len") >= 10)["term"]
    assert frequent.is_in(term_values(log, seed=1)["term"].implode()).all()


def test_a_seed_repeats(log: QueryLog) -> None:
    assert term_values(log, seed=3).equals(term_values(log, seed=3))
    assert not term_values(log, seed=3).equals(term_values(log, seed=4))


@pytest.mark.parametrize("queries", [[], [""], ["jaguar"], ["jaguar Jaguar", "äpfel 42"]])
def test_tiny_logs_have_a_table_too(queries: list[str]) -> None:
    log = QueryLog.from_frame(
        pl.DataFrame({"user": ["u"] * len(queries), "query": queries}, schema={"user": pl.String, "query": pl.String})
    )
    table = term_values(log, seed=0)
    assert table.schema == {"term": pl.String, "bid": pl.Float64, "clicks": pl.Int64, "impressions": pl.Int64}
    assert table.height <= 3


def test_a_negative_seed_is_a_clear_error(log: QueryLog) -> None:
    with pytest.raises(BadParameter, match=re.escape("seed must be 0 or more, got -1")):
        term_values(log, seed=-1)

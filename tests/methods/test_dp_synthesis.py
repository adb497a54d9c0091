"""Sessions made up from noisy counts."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import polars as pl
import pytest
from tests.support.releases import released_tallies

from queryveil.data import Format, Layout, Tallies
from queryveil.errors import BadInput, BadParameter
from queryveil.methods.dp.dp import MEAN_QUERIES, synthesize, synthesized
from queryveil.pairing import pseudonymised
from queryveil.release import read_release
from queryveil.rng import generator
from queryveil.testing.logs import tiny_log

COUNTS = {"jaguar": 60, "red wine": 30, "old oak": 10}


def near(share: float, *, n: int) -> object:
    # Six standard deviations; and the seeds are fixed.
    return pytest.approx(share, abs=6 * sqrt(share * (1 - share) / n))


def test_queries_are_drawn_by_their_counts() -> None:
    log = synthesize(released_tallies(COUNTS).tallies, n_users=20_000, rng=generator(3))
    shares = log.frame["query"].value_counts(normalize=True)
    assert dict(shares.iter_rows()) == {query: near(n / 100, n=log.n_rows) for query, n in COUNTS.items()}


def test_every_user_asks_something_and_three_queries_on_average() -> None:
    log = synthesize(released_tallies(COUNTS).tallies, n_users=20_000, rng=generator(3))
    assert log.n_users == 20_000
    assert log.n_rows / log.n_users == pytest.approx(MEAN_QUERIES, abs=0.15)
    assert log.columns == ["user", "query"]


@pytest.mark.slow
def test_the_counts_are_all_that_is_looked_at() -> None:
    one, other = (
        synthesize(
            Tallies(frame=released_tallies(COUNTS).tallies.frame, layout=Layout(format=kind)),
            n_users=50,
            rng=generator(5),
        )
        for kind in (Format.CSV, Format.AOL)
    )
    assert one.frame.equals(other.frame)
    assert (one.layout.format, other.layout.format) == (Format.CSV, Format.TSV)


def test_urls_are_drawn_by_the_clicks_of_their_query() -> None:
    clicks = {
        ("jaguar", "http://cars.example"): 30,
        ("jaguar", "http://cats.example"): 15,
        ("old oak", "http://o.example"): 40,
    }
    log = synthesize(released_tallies(COUNTS, clicks=clicks).tallies, n_users=30_000, rng=generator(3))
    by_query = {
        query: dict(rows["url"].value_counts(normalize=True).iter_rows())
        for (query,), rows in log.frame.group_by("query")
    }
    n = log.frame.filter(pl.col("query") == "jaguar").height
    assert by_query["jaguar"] == {
        "http://cars.example": near(0.5, n=n),
        "http://cats.example": near(0.25, n=n),
        None: near(0.25, n=n),
    }
    assert by_query["red wine"] == {None: 1.0}
    # Noise may lift clicks above their query: then every row has one.
    assert by_query["old oak"] == {"http://o.example": 1.0}


@pytest.mark.parametrize("clicks", [None, {}, {("jaguar", "http://cars.example"): 3}], ids=["none", "empty", "some"])
def test_where_nothing_was_released_nothing_is_made_up(clicks: dict[tuple[str, str], int] | None) -> None:
    log = synthesize(released_tallies({}, clicks=clicks).tallies, n_users=9, rng=generator(1))
    assert log.n_rows == 0
    assert synthesize(released_tallies(COUNTS, clicks={}).tallies, n_users=9, rng=generator(1)).n_users == 9


def test_a_seed_repeats_and_another_does_not() -> None:
    tallies = released_tallies(COUNTS).tallies
    logs = [synthesize(tallies, n_users=100, rng=generator(seed)).frame for seed in (1, 1, 2)]
    assert logs[0].equals(logs[1])
    assert not logs[0].equals(logs[2])


@pytest.mark.parametrize("n_users", [0, -1, 10**9])
def test_the_number_of_users_is_checked(n_users: int) -> None:
    with pytest.raises(BadParameter, match="synthesize must be between 1 and"):
        synthesize(released_tallies(COUNTS).tallies, n_users=n_users, rng=generator(1))


@pytest.mark.parametrize("kind", [Format.PARQUET, Format.CSV, Format.AOL, Format.JSONL, Format.UBI])
def test_a_release_says_that_all_its_rows_are_made_up_and_can_be_read_back(kind: Format, tmp_path: Path) -> None:
    clicks = {("jaguar", "http://cars.example"): 20}
    plain = released_tallies(COUNTS, clicks=clicks)
    tallies = Tallies(frame=plain.tallies.frame, clicks=plain.tallies.clicks, layout=Layout(format=kind))
    release = synthesized(type(plain)(data=tallies, manifest=plain.manifest), n_users=40, seed=2)
    assert release.promise == plain.promise
    assert release.manifest.noise == plain.manifest.noise
    assert release.manifest.parameters["synthesized"] is True
    assert release.manifest.changed == {"rows_added": release.log.n_rows}
    assert (release.manifest.counts.n_rows_before, release.manifest.counts.n_users_after) == (0, 40)
    again = read_release(release.save(tmp_path / "out"))
    assert again.log.frame.select("user", "query", "url").equals(release.log.frame)


def test_only_noisy_counts_are_made_into_sessions() -> None:
    with pytest.raises(BadInput, match="made up from noisy counts alone"):
        synthesized(pseudonymised(tiny_log()), n_users=3)

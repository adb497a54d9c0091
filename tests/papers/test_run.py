from __future__ import annotations

import msgspec
import polars as pl
import pytest

import queryveil.papers
from queryveil.data import QueryLog
from queryveil.errors import BadInput, BadParameter
from queryveil.papers import NAMES, Table, reproduce
from queryveil.progress import watch
from queryveil.synthesis import synthesize, term_values
from queryveil.testing import tiny_log


def values_for(terms: str, *, clicks: list[int | None]) -> pl.DataFrame:
    names = terms.split()
    return pl.DataFrame(
        {"term": names, "bid": [0.5 + i for i in range(len(names))], "clicks": clicks, "impressions": [70] * len(names)}
    )


def test_an_unknown_name_is_refused_with_all_that_there_are() -> None:
    with pytest.raises(
        BadParameter, match=r"^name must be one of km-table3, .*, km-fig2, clump-fig3, .*, swap-table4, got km-table4$"
    ):
        reproduce("km-table4")


def test_the_names_are_those_of_the_papers() -> None:
    assert (
        *("km-table3", "km-table5", "km-table6", "km-table7", "km-fig1", "km-fig2"),
        *("clump-fig3", "clump-fig4", "clump-fig5", "clump-fig6", "clump-fig7"),
        *("kdelta-fig1", "kdelta-fig2"),
        *("plink-fig2", "plink-fig3", "plink-fig4", "plink-fig5", "plink-fig6"),
        *("swap-table2", "swap-table3", "swap-fig4", "swap-fig5", "swap-fig6", "swap-fig7", "swap-fig8", "swap-table4"),
    ) == NAMES


def test_the_package_can_be_called() -> None:
    table = queryveil.reproduce("km-table3", users=300)
    assert isinstance(table, Table)
    assert table == reproduce("km-table3", users=300)


def test_users_with_a_given_log_are_refused() -> None:
    with pytest.raises(BadParameter, match="users must be left out when a log is given"):
        reproduce("km-table3", tiny_log(), users=10)


def test_a_made_up_log_is_called_made_up_and_a_given_one_given() -> None:
    made_up = reproduce("km-table3", users=300).notes
    assert made_up[0].startswith("the log is made up")
    assert "300 users" in made_up[0]
    assert made_up[1].startswith("the term values are made up")

    log = synthesize(users=50, seed=1).log
    assert reproduce("km-table3", log).notes[1].startswith("the term values are made up")
    given = reproduce("km-table3", log, values=term_values(log, seed=5)).notes
    assert given[0].startswith("the log was given")
    assert given[1].startswith("the term values were given")


def test_given_values_are_the_ones_that_count() -> None:
    values = values_for("Jaguar red wine price cheese", clicks=[8, None, 3, 1, 4])
    table = reproduce("km-table3", tiny_log(), values=values)
    n_ours = {row[:2]: row[7] for row in table.rows}
    # cheese is not in the log, and red has no clicks
    assert n_ours["term frq.", "max bid"] == 4
    assert n_ours["clicks", "impressions"] == 3
    # all impressions are equal, so nothing correlates with them
    assert [row[5] for row in table.rows if "impressions" in row[:2]] == [None] * 5


def test_a_table_of_values_without_clicks_is_refused() -> None:
    with pytest.raises(BadInput, match="no column clicks"):
        reproduce("km-table3", tiny_log(), values=pl.DataFrame({"term": ["red"], "bid": [1.0], "impressions": [2]}))


def test_values_that_no_term_of_the_log_has_are_refused() -> None:
    with pytest.raises(BadInput, match="no term of the log has a value for bid, clicks, impressions, revenue"):
        reproduce("km-fig1", tiny_log(), values=values_for("cheese", clicks=[1]))


def test_a_log_without_terms_is_refused() -> None:
    log = QueryLog.from_frame({"user": ["u1"], "query": ["?!"]})
    with pytest.raises(BadInput, match="no terms"):
        reproduce("km-fig1", log, values=values_for("cheese", clicks=[1]))


def test_bots_are_left_out_and_counted() -> None:
    frame = pl.DataFrame({"user": ["robot"] * 101, "query": [f"page {i}" for i in range(101)]})
    frame = frame.vstack(pl.DataFrame({"user": ["u1", "u2"], "query": ["red wine", "red carpet"]}))
    log = QueryLog.from_frame(frame.with_columns(time=pl.datetime(2024, 3, 1) + pl.duration(seconds=pl.int_range(103))))
    notes = reproduce("km-table3", log, values=values_for("red wine", clicks=[1, 2])).notes
    assert "2 users (1 bots left out), 2 queries, 3 distinct terms, 4 occurrences" in notes[0]


def test_the_same_seed_gives_the_same_figures_and_another_gives_others() -> None:
    first, again, other = (reproduce("km-fig2", users=400, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.rows != other.rows


def test_whoever_watches_is_told_which_run_it_is() -> None:
    seen: list[tuple[str, float]] = []
    with watch(lambda name, share: seen.append((name, share))):
        reproduce("km-fig1", users=100)
    runs = [(name, share) for name, share in seen if name.startswith("k=")]
    assert ("k=10, m=3, bid", 11 / 40) in runs
    assert len(runs) == 40
    assert not [name for name, _ in seen if "deleting" in name]


def test_no_note_or_cell_holds_a_term_of_the_log() -> None:
    values = values_for("jaguar zanzibar", clicks=[1, 2])
    text = str(reproduce("km-table5", tiny_log(), values=values))
    assert "zanzibar" not in text
    assert "jaguar" not in text


def test_a_table_can_be_written_as_json() -> None:
    decoded = msgspec.json.decode(msgspec.json.encode(reproduce("km-table3", users=300)))
    assert decoded["name"] == "km-table3"
    assert len(decoded["rows"]) == 15

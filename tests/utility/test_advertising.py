"""What the terms of a release are worth to advertisers."""

from __future__ import annotations

import polars as pl
import pytest
from tests.support.releases import released

from queryveil.errors import BadInput
from queryveil.methods import Clump, Km, Plink, Target
from queryveil.papers._km_runs import FOCUS, Measure, gather
from queryveil.release import ColumnPolicy, Ids
from queryveil.synthesis import synthesize, term_values
from queryveil.testing import food, log_of
from queryveil.utility import Measures, measure

VALUES = pl.DataFrame(
    {"term": ["A", "b", "c"], "bid": [1.0, 2.0, 4.0], "clicks": [3, None, 5], "impressions": [10, 20, 30]}
)


def values(found: Measures) -> dict[str, float]:
    return {score.name: score.value for score in found if score.group == "advertising"}


def test_each_measure_is_the_share_of_its_worth_that_is_kept() -> None:
    log = log_of({"u1": ["a b", "c c c"], "u2": ["a", "b"], "u3": ["d"]})
    after = log_of({"u1": ["a b"], "u2": ["a", "b"]})
    assert values(measure(log, released(after), values=VALUES)) == pytest.approx(
        {"bid_kept": 6 / 18, "clicks_kept": 6 / 21, "impressions_kept": 60 / 150, "revenue_kept": 6 / 66}
    )


@pytest.mark.parametrize(("after", "worth"), [(["a b c", "a b", "b c", "a c"], 9.9), (["c", "b d", "b d", "c"], 7.2)])
def test_the_example_of_the_paper_is_worth_what_it_says(after: list[str], worth: float) -> None:
    table = pl.DataFrame({"term": list("abcde"), "bid": [1.0, 1.1, 1.2, 1.3, 1.4]})
    before = log_of({"h1": ["a b c"], "h2": ["a b d"], "h3": ["b c d"], "h4": ["a c e"]})
    found = measure(before, released(log_of({f"h{i}": [query] for i, query in enumerate(after, 1)})), values=table)
    assert values(found)["bid_kept"] == pytest.approx(worth / 13.9)
    assert [text for text in found.notes if "no column" in text] == [
        f"{name} is left out: the table of term values has no column for it"
        for name in ("clicks", "impressions", "revenue")
    ]


def test_a_release_of_km_keeps_what_the_tables_of_the_paper_count() -> None:
    log = synthesize(users=300, seed=4).log
    table = term_values(log, seed=4)
    outcomes = gather(log, users=None, values=table, seed=4)
    settings = {"k": 5, "m": 2, "restore": False, "bot_threshold": None, "seed": 4}
    release = Km(target=Target.BID, values=table, columns=ColumnPolicy(ids=Ids.KEEP), **settings).anonymize(log)  # type: ignore[arg-type]
    found = measure(log, release, values=table)
    for which in FOCUS:
        score = found.named(which.replace(" ", "_") + "_kept")
        assert score is not None
        assert 100 * score.value == pytest.approx(outcomes.kept(which, target=Target.BID, m=2, k=5))
    assert Measure.REVENUE in FOCUS


def test_what_a_release_has_more_of_is_worth_nothing() -> None:
    after = log_of({"u1": ["a a a a a", "b"]})
    found = values(measure(log_of({"u1": ["a", "b"]}), released(after), values=VALUES))
    assert (found["bid_kept"], found["impressions_kept"]) == (1, 1)


def test_without_values_advertising_is_left_out_with_a_note() -> None:
    log = log_of({"u1": ["a"]})
    found = measure(log, released(log))
    assert values(found) == {}
    assert any("add --values FILE" in text for text in found.notes)


def test_a_table_that_values_no_term_of_the_log_says_nothing() -> None:
    log = log_of({"u1": ["zanzibar"]})
    found = measure(log, released(log), values=VALUES)
    assert values(found) == {}
    assert "bid is left out: no term of the log has a value for it" in found.notes


@pytest.mark.parametrize(
    "table", [{"term": ["a"]}, {"bid": [1.0]}, {"term": ["a", "A"], "bid": [1, 2]}, {"term": ["a"], "bid": [-1]}]
)
def test_a_table_that_cannot_be_read_is_a_clear_error(table: dict[str, list[object]]) -> None:
    log = log_of({"u1": ["a"]})
    with pytest.raises(BadInput, match="table of term values"):
        measure(log, released(log), values=pl.DataFrame(table))


def test_transactions_have_worth_and_groups_have_none() -> None:
    table = pl.DataFrame({"term": ["apple", "beef"], "bid": [1.0, 3.0]})
    log = log_of({"u1": ["apple beef"], "u2": ["orange beef"]})
    found = measure(log, Clump(k=2, taxonomy=food()).anonymize(log), taxonomy=food(), values=table)
    assert values(found)["bid_kept"] == pytest.approx(6 / 7)
    groups = measure(log, Plink(p=0.5).anonymize(log), values=table)
    assert values(groups) == {}
    assert any("groups do not say how often" in text for text in groups.notes)

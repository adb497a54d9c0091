"""Which run is best, which no other beats, and what is said of it."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.support.made_up_runs import found, judged, known, side_by_side

from queryveil.attacks.suite import Skipped
from queryveil.comparison.comparison import check_exposure, exposure_in
from queryveil.errors import BadParameter

pytestmark = pytest.mark.slow


def test_the_run_that_keeps_most_under_the_limit_is_picked() -> None:
    comparison = side_by_side(
        judged("low", known(0), kept=0.2),
        judged("middle", known(10), kept=0.4),
        judged("high", known(300), kept=0.9),
    )
    assert comparison.picked is not None
    assert comparison.picked.name == "middle"
    assert comparison.picked.command == "queryveil anonymize km LOG -o DIR --k 5 --m 2"
    assert "middle keeps most: log size kept 40 %, found 1 % (up to 1.83 %)" in comparison.in_words()


def test_the_upper_end_of_the_interval_must_be_under_the_limit_and_not_the_share_itself() -> None:
    few = side_by_side(judged("few", known(0, n_targets=20), kept=0.4))
    assert few.picked is None
    assert few.in_words().endswith("least is up to 16.1 %, in few.")
    many = side_by_side(judged("many", known(0, n_targets=200), kept=0.4))
    assert many.picked is not None


def test_what_promises_nothing_or_breaks_its_promise_or_failed_is_never_picked() -> None:
    for standing in ("promises nothing", "broken", "not judged", "failed"):
        comparison = side_by_side(judged("one", known(0), kept=0.9, standing=standing))
        assert comparison.picked is None
        assert comparison.in_words().startswith("No run keeps a promise")


def test_a_broken_run_is_loud_and_not_on_the_frontier() -> None:
    comparison = side_by_side(judged("bad", known(0), kept=0.9, standing="broken"), judged("good", known(0), kept=0.1))
    assert [row.name for row in comparison.broken] == ["bad"]
    assert [row.name for row in comparison.frontier] == ["good"]
    assert comparison.table()[1][0][2] == "BROKEN"


def test_the_frontier_goes_from_the_least_exposed_run_to_the_most_useful() -> None:
    comparison = side_by_side(
        judged("all", known(900), kept=1.0, standing="promises nothing"),
        judged("beaten", known(100), kept=0.3),
        judged("best", known(50), kept=0.5),
        judged("least", known(0), kept=0.1),
    )
    assert [row.name for row in comparison.frontier] == ["least", "best", "all"]


def test_other_figures_and_limits_need_no_new_run() -> None:
    one = judged("one", known(0), found("clock", 400, n_known=5), kept=0.2, distance=0.7)
    two = judged("two", known(100), found("clock", 3, n_known=5), kept=0.6, distance=0.1)
    comparison = side_by_side(one, two)
    assert comparison.picked is not None
    assert comparison.picked.name == "one"
    by_clock = comparison.by(exposure="clock")
    assert by_clock.picked is not None
    assert by_clock.picked.name == "two"
    assert comparison.by(limit=0.5).picked == by_clock.rows[1].__class__(
        judged=two, exposure=known(100), utility=two.scores[0], is_on_frontier=True, is_picked=True
    )
    nearest = comparison.by(utility="profile_distance", limit=1.0)
    assert nearest.picked is not None
    assert nearest.picked.name == "two"


def test_of_a_measure_of_which_less_is_better_less_is_better() -> None:
    near, far = judged("near", known(0), distance=0.1), judged("far", known(0), distance=0.9)
    comparison = side_by_side(judged("only", known(900), kept=1.0), near, far).by(utility="profile_distance")
    assert comparison.picked is not None
    assert comparison.picked.name == "near"
    assert [row.name for row in comparison.frontier] == ["near"]


def test_a_measure_that_no_run_has_is_one_line_with_those_there_are() -> None:
    comparison = side_by_side(judged("one", known(0), kept=0.2, distance=0.5))
    with pytest.raises(BadParameter, match="utility must be one of log_size_kept, profile_distance, got fame"):
        comparison.by(utility="fame")


def test_a_run_without_the_figure_says_why() -> None:
    skipped = (Skipped(attacker="known_terms", reason="the release has no rows"),)
    comparison = side_by_side(judged("groups", kept=0.5, skipped=skipped), judged("empty", kept=0.5))
    assert comparison.notes() == (
        "groups: known_terms does not apply: the release has no rows",
        "empty: known_terms does not apply: there was nobody to look for",
    )
    assert comparison.rows[0].exposure is None
    assert comparison.frontier == ()


def test_a_run_that_failed_is_a_row_with_its_reason() -> None:
    comparison = side_by_side(
        judged("gone", failed="too few users", standing="failed"), judged("ok", known(0), kept=0.1)
    )
    assert comparison.notes() == ("gone: too few users",)
    assert comparison.picked is not None
    assert comparison.table()[1][0][:5] == ("gone", "see note", "failed", "-", "-")


def test_the_worst_attacker_is_the_one_who_finds_most_among_those_who_beat_chance() -> None:
    lucky = found("shared_term", 40, n_targets=100, by_chance=40.0)
    run = judged("one", known(30), found("clock", 200, n_known=5), lucky, kept=0.5)
    worst = exposure_in(run, "worst")
    assert worst is not None
    assert worst.attacker == "clock"
    nobody = judged("two", found("vanity", 0, n_targets=4), known(0), kept=0.5)
    worst = exposure_in(nobody, "worst")
    assert worst is not None
    assert worst.attacker == "known_terms"


def test_who_else_finds_more_than_the_limit_in_the_picked_run_is_said() -> None:
    clock, sybil, rows = found("clock", 500, n_known=5), found("sybil", 900), found("added_rows", 950, what="rows")
    comparison = side_by_side(judged("one", known(0), clock, sybil, rows, kept=0.5))
    assert comparison.cautions() == (
        "But clock:5, who knows something, finds 50 % of its people in one (95 % interval 46.9 % to 53.1 %); "
        "blind guessing finds 0.1 %.",
        "But sybil, who knows something, finds 90 % of its people in one (95 % interval 88 % to 91.7 %); "
        "blind guessing finds 0.1 %.",
        "But added_rows, who knows something, finds 95 % of its rows in one (95 % interval 93.5 % to 96.2 %); "
        "blind guessing finds 0.1 %.",
    )
    assert comparison.by(exposure="worst").rows[0].exposure == clock
    assert side_by_side(judged("one", known(0), found("sybil", 9), kept=0.5)).cautions() == ()
    assert side_by_side(judged("one", known(900), kept=0.5)).cautions() == ()
    no_better_than_chance = found("sybil", 900, by_chance=890.0)
    assert side_by_side(judged("one", known(0), no_better_than_chance, kept=0.5)).cautions() == ()


def test_the_attacker_who_adds_users_is_not_the_worst_since_nothing_is_promised_against_it() -> None:
    run = judged("one", known(30), found("sybil", 900), kept=0.5)
    comparison = side_by_side(run, exposure="worst")
    assert comparison.rows[0].exposure == known(30)
    assert comparison.table()[1][0][4] == "3 % by known_terms:4"
    assert comparison.by(exposure="sybil").rows[0].exposure == found("sybil", 900)


def test_an_attacker_without_a_number_is_the_one_who_knows_most() -> None:
    run = judged("one", found("known_terms", 1, n_known=2), found("known_terms", 5, n_known=8), kept=0.5)
    most = exposure_in(run, "known_terms")
    assert most is not None
    assert most.n_known == 8
    assert exposure_in(run, "known_terms:4") is None


@pytest.mark.parametrize("name", ["known_terms:4", "known_terms", "worst", "clock", "rebuild_1+T", "as_released"])
def test_the_attackers_that_there_are_may_be_named(name: str) -> None:
    check_exposure(name)


@pytest.mark.parametrize("name", ["nosuch", "known_terms:5", "known_terms:four", "", "clock:1000"])
def test_other_attackers_are_one_line_with_those_there_are(name: str) -> None:
    with pytest.raises(
        BadParameter, match=r"exposure must be (worst or one of .*known_terms:2|an attacker and how much)"
    ):
        check_exposure(name)


def test_all_figures_are_given_to_machines() -> None:
    comparison = side_by_side(judged("one", known(0), kept=0.2), judged("gone", failed="why", standing="failed"))
    plain = json.loads(msgspec.json.encode(comparison.to_dict()))
    assert plain["picked"] == "one"
    assert plain["runs"][0]["exposure"]["interval"][0] == 0.0
    assert plain["runs"][0]["attacks"]["attempts"][0]["after"]["n_targets"] == 1000
    assert plain["runs"][1]["failed"] == "why"
    assert plain["before"]["attempts"][0]["after"]["share"] == 0.9


def test_a_notebook_shows_a_small_table() -> None:
    html = side_by_side(judged("<one>", known(0), kept=0.2))._repr_html_()
    assert "&lt;one&gt;" in html
    assert html.count("<tr>") == 2

"""Which runs qualify under a limit, which is best, which no other beats, and what is said of it."""

from __future__ import annotations

import json
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.made_up_runs import found, judged, known, many_kinds, side_by_side

from queryveil.attacks.attacker import Exposure
from queryveil.attacks.limits import risk
from queryveil.attacks.readers import READERS, attackers_of
from queryveil.attacks.suite import Skipped
from queryveil.comparison.comparison import Comparison, check_exposure
from queryveil.comparison.judged import Judged, Standing
from queryveil.comparison.row import exposure_in
from queryveil.errors import BadParameter

pytestmark = pytest.mark.slow


def names(comparison: Comparison) -> set[str]:
    return {row.name for row in comparison.rows if row.qualifies}


def test_the_run_that_keeps_most_under_the_limit_is_picked() -> None:
    comparison = side_by_side(
        judged("low", known(0), kept=0.2),
        judged("middle", known(10), kept=0.4),
        judged("high", known(300), kept=0.9),
    )
    assert comparison.picked is not None
    assert comparison.picked.name == "middle"
    assert comparison.picked.command == "queryveil anonymize km LOG -o DIR --k 5 --m 2"
    assert [row.outcome for row in comparison.rows] == ["qualifies", "best", "rejected"]
    assert comparison.in_words() == (
        "Best is middle: of the runs whose promise holds and in which no attacker is above 5 %, it keeps most (log "
        "size kept 40 %). 4 search terms, only if sure (known_terms:4) finds 1 % of its people (95 % interval 0.544 % "
        "to 1.83 %; by chance 0.1 %): of all, the nearest to the limit, with a risk of 1.83 %."
    )


def test_one_attacker_above_the_limit_rejects_a_run_in_which_all_others_find_nobody() -> None:
    comparison = side_by_side(
        judged("swap", known(0), found("neighbour", 960, by_chance=500), kept=0.9), judged("km", known(0), kept=0.1)
    )
    assert comparison.picked is not None
    assert comparison.picked.name == "km"
    swap = comparison.rows[0]
    assert (swap.outcome, swap.rejected_by) == ("rejected", "neighbour")


def test_what_attackers_find_of_rows_or_terms_or_by_adding_users_counts_too() -> None:
    for other in (
        found("sybil", 900),
        found("added_rows", 950, what="rows"),
        found("known_profile", 480, what="terms"),
    ):
        assert names(side_by_side(judged("one", known(0), other, kept=0.5))) == set()


def test_the_upper_end_of_the_interval_must_be_under_the_limit_and_not_the_share_itself() -> None:
    few = side_by_side(judged("few", known(0, n_targets=20), kept=0.4))
    assert few.picked is None
    assert "Nearest is few, with a risk of 16.1 %: " in few.in_words()
    assert few.notes() == (
        "known_terms:4: above 5 % in 1 run even if it finds no more than by chance, because it has only 20 targets, "
        "and needs 73",
    )
    assert side_by_side(judged("many", known(0, n_targets=73), kept=0.4)).picked is not None


def test_what_promises_nothing_or_breaks_its_promise_or_failed_is_never_picked() -> None:
    standings: tuple[Standing, ...] = ("promises nothing", "broken", "not judged", "failed")
    for standing in standings:
        comparison = side_by_side(judged("one", known(0), kept=0.9, standing=standing))
        assert comparison.picked is None
        assert comparison.in_words() == "No run keeps its promise, was attacked and has a measure of log size kept."


def test_a_broken_run_is_loud_and_not_on_the_frontier() -> None:
    comparison = side_by_side(judged("bad", known(0), kept=0.9, standing="broken"), judged("good", known(0), kept=0.1))
    assert [row.name for row in comparison.broken] == ["bad"]
    assert [row.name for row in comparison.frontier] == ["good"]
    assert comparison.table()[1][0][1] == "BROKEN"


def test_the_frontier_goes_from_the_least_exposed_run_to_the_most_useful() -> None:
    comparison = side_by_side(
        judged("all", known(900), kept=1.0, standing="promises nothing"),
        judged("beaten", known(100), kept=0.3),
        judged("best", known(50), kept=0.5),
        judged("least", known(0), kept=0.1),
    )
    assert [row.name for row in comparison.frontier] == ["least", "best", "all"]


def test_another_limit_purpose_reader_exception_or_picture_needs_no_new_run() -> None:
    comparison = side_by_side(*many_kinds(), limit=0.3, exceptions={"vanity": "no directory"})
    assert comparison.picked is not None
    assert comparison.picked.name == "too little"
    changes: tuple[tuple[dict[str, object], str], ...] = (
        ({"limit": "5%"}, "groups p=0.4"),
        ({"purpose": "ranking"}, "method k=9"),
        ({"limit": 0.02, "readers": ["acquaintance"]}, "method k=9"),
        ({"limit": 0.05, "exceptions": {"neighbour": "they have the log", "vanity": "no directory"}}, "method k=5"),
        ({"limit": 0.45, "exposure": "clock"}, "method k=2"),
    )
    for change, best in changes:
        again = comparison.by(**change)  # type: ignore[arg-type]
        assert again.picked is not None, change
        assert again.picked.name == best, change
    assert comparison.by(purpose="trends").utility == "trends_kept"
    assert comparison.by(purpose="trends").by(utility="log_size_kept").purpose is None
    assert comparison.by(exposure="clock").rows[0].exposure == found("clock", 400, n_known=5)


LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.99, 1.0)
ATTACKERS = (
    "known_terms",
    "clock",
    "vanity",
    "rare_pair",
    "site_owner",
    "neighbour",
    "membership",
    "sybil",
    "rebuild_1+T",
)


@st.composite
def exposures(draw: st.DrawFn) -> list[Exposure]:
    made = []
    for attacker in draw(st.lists(st.sampled_from(ATTACKERS), unique=True, max_size=4)):
        n = draw(st.sampled_from([10, 100, 1000]))
        by_chance = n * draw(st.sampled_from([0.0, 0.01, 0.05, 0.5]))
        made.append(found(attacker, draw(st.integers(0, n)), n_targets=n, by_chance=by_chance))
    return made


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    standings: st.SearchStrategy[Standing] = st.sampled_from(["holds", "holds", "holds", "promises nothing", "broken"])
    shares = st.sampled_from([0.1, 0.2, 0.9]) | st.none()
    runs: list[Judged] = [
        judged(f"run {i}", *draw(exposures()), kept=draw(shares), standing=draw(standings))
        for i in range(draw(st.integers(1, 5)))
    ]
    return side_by_side(
        *runs, judged("measured", kept=0.5), exceptions=draw(st.sampled_from([{}, {"clock": "no times"}]))
    )


@examples(60)
@given(comparison=comparisons())
def test_what_qualifies_under_a_limit_qualifies_under_any_higher_one(comparison: Comparison) -> None:
    under = [comparison.by(limit=limit) for limit in LIMITS]
    for stricter, looser in pairwise(under):
        assert names(stricter) <= names(looser)
        if stricter.picked is not None:
            assert looser.picked is not None
            assert looser.picked.gain >= stricter.picked.gain


@examples(60)
@given(
    comparison=comparisons(), limit=st.sampled_from(LIMITS), readers=st.sets(st.sampled_from([*READERS]), min_size=1)
)
def test_a_run_that_one_attacker_alone_rejects_is_never_best(
    comparison: Comparison, limit: float, readers: set[str]
) -> None:
    asked = attackers_of(readers) - set(comparison.rule.exceptions)
    judged_so = comparison.by(limit=limit, readers=readers)
    able = {
        row.name
        for row in judged_so.rows
        if row.judged.standing == "holds"
        and any(one.attacker.removesuffix("+T") in asked for one in row.judged.exposures)
        and all(risk(one) <= limit for one in row.judged.exposures if one.attacker.removesuffix("+T") in asked)
    }
    assert names(judged_so) == able
    picked = judged_so.picked
    assert picked is None or picked.name in able
    assert (picked is None) == (not any(row.utility for row in judged_so.rows if row.name in able))
    assert picked is None or all(row.gain <= picked.gain for row in judged_so.rows if row.name in able)


@examples(60)
@given(
    comparison=comparisons(), limit=st.sampled_from(LIMITS), readers=st.sets(st.sampled_from([*READERS]), min_size=1)
)
def test_fewer_readers_only_add_to_what_qualifies_of_the_runs_that_they_can_attack(
    comparison: Comparison, limit: float, readers: set[str]
) -> None:
    fewer = comparison.by(limit=limit, readers=readers)
    not_attacked = {row.name for row in fewer.rows if row.outcome == "not attacked"}
    assert names(comparison.by(limit=limit)) - not_attacked <= names(fewer)
    # Nobody who stands for these readers tried it, so nothing is known.
    assert not not_attacked & names(fewer)


def test_of_a_measure_of_which_less_is_better_less_is_better() -> None:
    near, far = judged("near", known(0), distance=0.1), judged("far", known(0), distance=0.9)
    comparison = side_by_side(judged("only", known(900), kept=1.0), near, far).by(utility="profile_distance")
    assert comparison.picked is not None
    assert comparison.picked.name == "near"
    assert [row.name for row in comparison.frontier] == ["near"]


def test_a_measure_or_purpose_that_no_run_has_is_one_line_with_those_there_are() -> None:
    comparison = side_by_side(judged("one", known(0), kept=0.2, distance=0.5, measured={"trends_kept": 0.5}))
    with pytest.raises(
        BadParameter, match="utility must be one of log_size_kept, profile_distance, trends_kept, got fame"
    ):
        comparison.by(utility="fame")
    with pytest.raises(BadParameter, match="for must be one of trends, which were measured, got ranking"):
        comparison.by(purpose="ranking")
    with pytest.raises(BadParameter, match=r"for must be one of ranking, suggestions, .*, got fame"):
        comparison.by(purpose="fame")
    with pytest.raises(BadParameter, match="utility must be left out where a purpose is named"):
        comparison.by(purpose="trends", utility="log_size_kept")
    with pytest.raises(BadParameter, match="for must be left out: of no purpose was a measure taken here"):
        side_by_side(judged("one", known(0), kept=0.2)).by(purpose="trends")


def test_a_limit_a_reader_or_an_exception_that_cannot_be_is_one_line() -> None:
    comparison = side_by_side(judged("one", known(0), kept=0.2))
    with pytest.raises(BadParameter, match=r"limit must be a share such as 5% or 0\.05, at most 100%, got 5"):
        comparison.by(limit="5")
    with pytest.raises(BadParameter, match=r"reader must be one or more of recipient, .*, got everybody"):
        comparison.by(readers=["everybody"])
    with pytest.raises(BadParameter, match=r"except must be one of .*, got nosuch"):
        comparison.by(exceptions={"nosuch": "why not"})


def test_a_run_without_a_figure_says_why() -> None:
    skipped = (Skipped(attacker="known_terms", reason="the release has no rows"),)
    comparison = side_by_side(judged("groups", kept=0.5, skipped=skipped), judged("empty", known(0)))
    assert comparison.notes() == (
        "groups: no attacker that is considered applies",
        "empty: log size kept was not measured",
    )
    assert comparison.frontier == ()
    assert comparison.rows[0].outcome == "not attacked"
    by_terms = comparison.by(exposure="known_terms:4")
    assert by_terms.notes()[0] == "groups: known_terms does not apply: the release has no rows"


def test_a_run_that_failed_is_a_row_with_its_reason() -> None:
    comparison = side_by_side(
        judged("gone", failed="too few users", standing="failed"), judged("ok", known(0), kept=0.1)
    )
    assert comparison.notes() == ("gone: too few users",)
    assert comparison.picked is not None
    assert comparison.table()[1][0][:5] == ("gone", "failed", "", "", "")


def test_exceptions_are_repeated_with_their_reason_and_what_they_let_pass() -> None:
    reasons = {"neighbour": "Who has the log has the log.", "vanity": "no names", "clock": "nobody knows times"}
    one = judged("one", known(0), found("neighbour", 960, by_chance=500), found("vanity", 0, n_targets=4), kept=0.5)
    comparison = side_by_side(one, exceptions=reasons, readers=("acquaintance", "insider"))
    assert comparison.picked is not None
    assert comparison.exceptions_in_words() == (
        "Not considered: With and without a person (neighbour), because: Who has the log has the log. In one, With and "
        "without a person (neighbour) finds 96 % of its people (95 % interval 94.6 % to 97 %; by chance 50 %).",
        "Not considered: A name and a town (vanity), because: no names. It stands for none of these readers.",
        "Not considered: Times of queries (clock), because: nobody knows times. It does not apply to one.",
    )
    assert "(acquaintance, insider)" in comparison.in_words()
    assert comparison.exceptions_in_words()[0] in comparison.to_dict()["said"]  # type: ignore[operator]


def test_when_nothing_qualifies_the_nearest_run_and_its_attacker_are_named() -> None:
    comparison = side_by_side(judged("far", known(500), kept=0.9), judged("near", known(60), known(100), kept=0.1))
    assert comparison.in_words() == (
        "No run can be recommended: in each, the promise does not hold, or an attacker may find more than 5 %, or none "
        "was tried. Nearest is near, with a risk of 12 %: 4 search terms, only if sure (known_terms:4) finds 10 % of "
        "its people (95 % interval 8.29 % to 12 %; by "
        "chance 0.1 %)."
    )
    assert comparison.table()[1][1][4] == "known_terms:4 and 1 more"


def test_an_attacker_without_a_number_is_the_one_who_knows_most() -> None:
    run = judged("one", found("known_terms", 1, n_known=2), found("known_terms", 5, n_known=8), kept=0.5)
    most = exposure_in(run, "known_terms")
    assert most is not None
    assert most.n_known == 8
    assert exposure_in(run, "known_terms:4") is None


@pytest.mark.parametrize("name", ["known_terms:4", "known_terms", "binding", "clock", "rebuild_1+T", "as_released"])
def test_the_attackers_that_there_are_may_be_shown(name: str) -> None:
    check_exposure(name)


@pytest.mark.parametrize("name", ["nosuch", "worst", "known_terms:5", "known_terms:four", "", "clock:1000"])
def test_other_attackers_are_one_line_with_those_there_are(name: str) -> None:
    with pytest.raises(
        BadParameter, match=r"exposure must be (binding or one of .*known_terms:2|an attacker and how much)"
    ):
        check_exposure(name)


def test_all_figures_are_given_to_machines() -> None:
    comparison = side_by_side(
        judged("one", known(0), kept=0.2), judged("gone", failed="why", standing="failed"), judged("far", known(80))
    )
    plain = json.loads(msgspec.json.encode(comparison.to_dict()))
    assert (plain["picked"], plain["nearest"], plain["limit"]) == ("one", "one", 0.05)
    assert plain["readers"] == [*READERS]
    assert plain["runs"][0]["binding"]["interval"][0] == 0.0
    assert plain["runs"][0]["attacks"]["attempts"][0]["after"]["n_targets"] == 1000
    assert plain["runs"][1]["failed"] == "why"
    assert plain["runs"][2]["rejected_by"] == ["known_terms:4"]
    assert plain["before"]["attempts"][0]["after"]["share"] == 0.9


def test_a_notebook_shows_a_small_table() -> None:
    html = side_by_side(judged("<one>", known(0), kept=0.2))._repr_html_()
    assert "&lt;one&gt;" in html
    assert html.count("<tr>") == 2

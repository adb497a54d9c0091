"""What is decided from runs that were judged: never a run that may not be released, and more under a higher limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.attacks import Attacks, Exposure
from queryveil.attacks.attacker import wilson
from queryveil.attacks.limits import Limit, is_beyond, n_targets_needed, risk
from queryveil.attacks.suite import Attempt
from queryveil.comparison.judged import Judged, Standing
from queryveil.comparison.plan import Run
from queryveil.planning import Planned, Wanted
from queryveil.planning.deciding import Decision, Finding, spoken_against, targets_in_words, to_go_on_with
from queryveil.utility.score import Score

MEASURE = "completions_kept"
ATTACKERS = ("vanity", "known_terms", "neighbour", "sybil", "site_owner")


def exposure(attacker: str, n_found: int, *, n: int = 1000, by_chance: float = 0.0) -> Exposure:
    return Exposure(attacker=attacker, knows="", what="people", n_targets=n, n_found=n_found, n_by_chance=by_chance)


def judged(
    name: str, *found: Exposure, utility: float | None = 0.5, standing: Standing = "holds", stopped_by: str = ""
) -> Judged:
    scores = () if utility is None else (Score(name=MEASURE, value=utility, better="more", about="", is_share=True),)
    attempts = tuple(Attempt(after=each, before=None) for each in found)
    return Judged(
        run=Run(name=name, method="km"),
        fingerprint="",
        standing=standing,
        attacks=Attacks(attempts=attempts),
        scores=scores,
        stopped_by=stopped_by,
    )


@st.composite
def results(draw: st.DrawFn) -> list[Judged]:
    """Return up to eight runs of any standing, attacked by some, useful in any measure or none."""
    runs = []
    for i in range(draw(st.integers(0, 8))):
        names = draw(st.lists(st.sampled_from(ATTACKERS), unique=True, max_size=4))
        found = []
        for name in names:
            n = draw(st.sampled_from([0, 20, 100, 2000]))
            found.append(exposure(name, draw(st.integers(0, n)), n=n, by_chance=draw(st.sampled_from([0, n / 2]))))
        standings: list[Standing] = ["holds", "holds", "holds", "broken", "promises nothing", "failed"]
        runs.append(
            judged(
                f"run {i}",
                *found,
                utility=draw(st.none() | st.floats(0, 1)),
                standing=draw(st.sampled_from(standings)),
                stopped_by=draw(st.sampled_from(["", "", "vanity"])),
            )
        )
    return runs


def decide(found: list[Judged], share: float) -> Decision:
    return Decision.of(found, limit=Limit(share=share), measure=MEASURE)


@given(found=results(), share=st.floats(0.01, 1))
@examples(200)
def test_a_run_that_may_not_be_released_is_never_picked(found: list[Judged], share: float) -> None:
    picked = decide(found, share).picked
    if picked is not None:
        assert picked.judged.standing == "holds"
        assert not picked.judged.stopped_by
        assert picked.useful > 0
        there = [each for each in picked.judged.exposures if each.n_targets]
        assert there
        assert all(risk(each) <= share for each in there)
        assert picked.useful == max(one.useful for one in decide(found, share).qualified)


@given(found=results(), shares=st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)))
@examples(200)
def test_under_a_higher_limit_more_qualify_and_the_pick_is_as_useful_at_least(
    found: list[Judged], shares: tuple[float, float]
) -> None:
    low, high = (decide(found, share) for share in sorted(shares))
    assert {one.name for one in low.qualified} <= {one.name for one in high.qualified}
    if low.picked is not None:
        assert high.picked is not None
        assert high.picked.useful >= low.picked.useful


@given(found=results(), share=st.floats(0.01, 0.5))
@examples(200)
def test_every_relaxation_lets_the_run_through_that_it_names(found: list[Judged], share: float) -> None:
    decision = decide(found, share)
    for one in decision.relaxations():
        relaxed = Decision.of(found, limit=one.limit, measure=MEASURE)
        assert one.finding.name in {each.name for each in relaxed.qualified}, one.option


@given(found=results(), share=st.floats(0.01, 0.5))
@examples(100)
def test_the_nearest_limit_is_the_least_under_which_a_run_qualifies(found: list[Judged], share: float) -> None:
    nearest = [one for one in decide(found, share).relaxations() if one.option.startswith("--limit")]
    for one in nearest:
        assert decide(found, max(0.001, one.limit.share - 0.0011)).picked is None or decide(found, share).picked


@given(found=results(), share=st.floats(0.01, 0.5), part=st.sampled_from([0.125, 0.25, 0.5]))
@examples(100)
def test_what_goes_on_was_not_ruled_out_and_is_half_of_the_runs_at_most_or_eight(
    found: list[Judged], share: float, part: float
) -> None:
    limit = Limit(share=share)
    findings = [Finding.of(each, limit=limit, measure=MEASURE) for each in found]
    kept = to_go_on_with(findings, share=part)
    assert len(kept) <= max(8, (len(findings) + 1) // 2)
    assert all(one.judged.standing != "broken" for one in kept)
    assert all(spoken_against(one) * part <= share for one in kept)
    within = [one for one in findings if one.qualifies]
    assert not within or max(one.useful for one in kept) >= max(one.useful for one in within)


def test_of_runs_as_useful_as_each_other_the_safer_is_picked() -> None:
    decision = decide([judged("a", exposure("vanity", 20)), judged("b", exposure("vanity", 10))], 0.05)
    assert decision.picked is not None
    assert decision.picked.name == "b"


def test_why_not_more_names_the_attacker_that_found_most() -> None:
    more = judged("more", exposure("vanity", 200), exposure("site_owner", 100), utility=0.9)
    decision = decide([more, judged("less", exposure("vanity", 0), utility=0.4)], 0.05)
    assert [(one.name, one.why_not) for one in decision.more_useful()] == [
        ("more", "vanity finds 20 % of its 1,000 people (95 % interval 17.6 % to 22.6 %)")
    ]


def test_one_exception_or_one_reader_may_let_the_most_useful_run_through() -> None:
    decision = decide(
        [
            judged("useful", exposure("vanity", 0), exposure("sybil", 400), exposure("known_terms", 90), utility=0.9),
            judged("fair", exposure("vanity", 0), exposure("sybil", 400), utility=0.6),
            judged("poor", exposure("vanity", 0), exposure("sybil", 60), utility=0.1),
        ],
        0.05,
    )
    assert decision.picked is None
    said = {one.option: one.finding.name for one in decision.relaxations()}
    assert said == {
        "--limit 7.7%": "poor",
        "--except sybil=REASON": "fair",
        "--reader recipient": "useful",
    }


def test_attackers_with_too_few_targets_are_left_out_together_where_nothing_else_stands_against_a_run() -> None:
    few, none = exposure("vanity", 0, n=1), exposure("neighbour", 20, n=43, by_chance=21.5)
    found = [
        judged("useful", few, exposure("known_terms", 300), none, utility=0.9),
        judged("fair", few, none, exposure("known_terms", 0), utility=0.6),
        judged("poor", few, none, exposure("sybil", 0, n=20), exposure("known_terms", 0), utility=0.7),
    ]
    told = [(one.option, one.finding.name) for one in decide(found, 0.05).relaxations() if "--except" in one.option]
    assert told == [("--except vanity=REASON --except neighbour=REASON", "fair")]
    useful, poor, fair = decide(found, 0.05).findings
    assert useful.why_not.startswith("known terms finds 30 %")
    assert {one.why_not for one in (poor, fair)} == {
        "vanity finds 0 % of its 1 people (95 % interval 0 % to 79.3 %); too few to tell"
    }


def test_a_run_that_was_refused_on_fresh_targets_lets_nothing_through() -> None:
    wanted = Wanted(purpose="suggestions", limit=0.05)
    limit = wanted.as_limit
    good = judged("good", exposure("vanity", 20), utility=0.9)
    other = judged("other", exposure("vanity", 90), utility=0.4)
    unlucky = Finding.of(judged("good", exposure("vanity", 60), utility=0.9), limit=limit, measure=MEASURE)
    planned = Planned(wanted=wanted, decision=decide([good, other], 0.05), rungs=(), refused=(unlucky,))
    (nearest,) = [one for one in planned.relaxations() if one.option.startswith("--limit")]
    assert nearest.option == "--limit 7.7%"
    told = [line for line in planned.lines() if line.startswith("Binding")]
    assert [line.split(":")[0] for line in told] == ["Binding   other (completions kept 40 %)"]


def test_of_an_excepted_attacker_the_most_that_it_finds_is_told_whatever_its_setting() -> None:
    wanted = Wanted(purpose="suggestions", exceptions={"rebuild_1": "rows are no people"})
    found = [exposure("rebuild_1", 400), exposure("rebuild_1+T", 900), exposure("rebuild_1", 100)]
    finding = Finding.of(judged("one", exposure("vanity", 0), *found), limit=wanted.as_limit, measure=MEASURE)
    decision = Decision.of([finding.judged], limit=wanted.as_limit, measure=MEASURE)
    planned = Planned(wanted=wanted, decision=decision, rungs=(), confirmed=finding)
    (told,) = (line for line in planned.lines() if line.startswith("Excepted"))
    assert told.startswith("Excepted  rebuild_1: rows are no people; ")
    assert "finds 90 %" in told


def test_a_run_that_was_given_up_never_qualifies_whatever_the_limit() -> None:
    found = [judged("given up", exposure("vanity", 0), stopped_by="vanity")]
    assert decide(found, 1.0).picked is None
    assert decide(found, 1.0).relaxations() == ()


def test_a_run_that_keeps_nothing_for_the_purpose_is_not_picked() -> None:
    decision = decide([judged("empty", exposure("vanity", 0), utility=0.0)], 0.05)
    assert decision.picked is None
    assert decision.findings[0].why_not == "it keeps nothing for the purpose"


def test_a_log_too_small_for_the_limit_is_told_with_what_it_has_and_needs() -> None:
    few = exposure("vanity", 0, n=40)
    one, other = judged("one", few), judged("other", few, exposure("known_terms", 0, n=30))
    too_few = decide([one, other], 0.05).too_few()
    assert targets_in_words(too_few, limit=0.05) == "vanity has 40 people and needs 73"
    assert decide([one, other], 0.1).too_few() == ()


@given(limit=st.floats(0.005, 0.5), by_chance=st.sampled_from([0.0, 0.1, 0.3, 0.5]))
@examples(60)
def test_so_many_targets_as_are_needed_are_enough_and_one_less_is_not(limit: float, by_chance: float) -> None:
    n = n_targets_needed(limit, chance_share=by_chance)
    assert wilson(by_chance * n, n=n)[1] - by_chance <= limit + 1e-9
    assert n == 1 or wilson(by_chance * (n - 1), n=n - 1)[1] - by_chance > limit - 1e-9


@given(n_found=st.integers(0, 500), share=st.floats(0.01, 0.9), by_chance=st.sampled_from([0, 10, 250]))
@examples(100)
def test_whoever_is_surely_beyond_the_limit_is_above_it(n_found: int, share: float, by_chance: float) -> None:
    found = exposure("vanity", n_found, n=500, by_chance=by_chance)
    if is_beyond(found, Limit(share=share)):
        assert risk(found) > share
        assert Limit(share=share).ruling([found]).over


@given(n=st.integers(1, 500), part=st.floats(0, 1), share=st.floats(0.01, 0.9), guessed=st.sampled_from([0, 0.1, 0.5]))
@examples(100)
def test_whoever_has_too_few_targets_is_above_the_limit_however_little_it_finds(
    n: int, part: float, share: float, guessed: float
) -> None:
    found = exposure("site_owner", int(part * n), n=n, by_chance=guessed * n)
    ruling = Limit(share=share).ruling([found])
    assert set(ruling.too_few) <= set(ruling.over)


def test_luck_below_guessing_does_not_make_up_for_targets_that_are_missing() -> None:
    unlucky = exposure("site_owner", 60, n=143, by_chance=71.5)
    assert unlucky.interval[1] - unlucky.chance_share < 0.05
    assert decide([judged("one", unlucky)], 0.05).picked is None
    assert Limit(share=0.05).ruling([exposure("site_owner", 480, n=1000, by_chance=500)]).is_met


@pytest.mark.parametrize(("part", "goes_on"), [(0.125, True), (0.5, False)])
def test_what_is_above_the_limit_on_a_small_sample_may_be_below_it_on_the_whole_log(part: float, goes_on: bool) -> None:
    limit = Limit(share=0.05)
    finding = Finding.of(judged("one", exposure("vanity", 300)), limit=limit, measure=MEASURE)
    assert bool(to_go_on_with([finding], share=part)) is goes_on

"""The three criteria, the readers, the limit and the seed of a report."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.support.made_up_reports import found, made_up_log, made_up_report, release_by

from queryveil.attacks import Attacks, Attempt, Exposure, Skipped, Surest, attackers
from queryveil.attacks.limits import Limit
from queryveil.attacks.names import base_name
from queryveil.attacks.readers import READERS
from queryveil.data import QueryLog
from queryveil.methods import Pseudonymise
from queryveil.release import ColumnPolicy
from queryveil.reports import Circumstances, Report, State, decision, render_html, report
from queryveil.reports._assessment_section import (
    criteria_section,
    facts_of,
    readers_section,
    risk_badge,
    strongest_figure,
    worst_off_section,
)
from queryveil.reports._blocks import Paragraph, Table
from queryveil.reports.assessment import CRITERIA, Isolation, Outcome, Risk, findings, isolation_of, risk_of
from queryveil.reports.inspection import count_alone
from queryveil.testing import log_of
from queryveil.text.histories import Histories


def attacks_of(*exposures: Exposure, skipped: tuple[Skipped, ...] = ()) -> Attacks:
    return Attacks(attempts=tuple(Attempt(after=each, before=None) for each in exposures), skipped=skipped)


def alone_by(found_alone: Isolation) -> dict[str, int | None]:
    return {each.by: each.n for each in found_alone.alone}


def histories_of(sets: list[set[int]], *, n_terms: int) -> Histories:
    users = np.array([i for i, own in enumerate(sets) for _ in own], np.int64)
    terms = np.array([term for own in sets for term in sorted(own)], np.int64)
    return Histories.of_pairs(users, terms, n_users=len(sets), n_terms=n_terms)[0]


@pytest.mark.parametrize("seed", range(40))
def test_who_is_alone_by_up_to_four_terms_is_counted_as_by_trying_all_combinations(seed: int) -> None:
    draw = random.Random(seed)
    n_terms, density = draw.randint(4, 9), draw.choice([0.4, 0.7, 0.9])
    sets = [{t for t in range(n_terms) if draw.random() < density} for _ in range(draw.randint(2, 14))]
    wanted = {
        m: sum(
            any(sum(set(some) <= other for other in sets) < 2 for n in range(1, m + 1) for some in combinations(own, n))
            for own in sets
        )
        for m in (1, 2, 3, 4)
    }
    assert count_alone(histories_of(sets, n_terms=n_terms), k=2, m=4).n_users == wanted


def test_a_user_who_is_told_by_four_terms_and_by_no_three_of_them_is_alone_by_four() -> None:
    sets = [{0, 1, 2, 3}, {0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}]
    assert count_alone(histories_of(sets, n_terms=4), k=2, m=4).n_users == {1: 0, 2: 0, 3: 0, 4: 1}


def test_records_alone_are_counted_by_terms_days_texts_and_clicks() -> None:
    rows = [
        ("u1", "red wine", datetime(2024, 3, 1), "a.example"),
        ("u2", "red wine", datetime(2024, 3, 1), "a.example"),
        ("u2", "wine red", datetime(2024, 3, 2), None),
        ("u3", "Red  Wine", datetime(2024, 3, 1), "b.example"),
    ]
    log = QueryLog.from_frame(pl.DataFrame(rows, schema=["user", "query", "time", "url"], orient="row"))
    policy = ColumnPolicy(time="day", keep=("url",))  # type: ignore[arg-type]
    counted = isolation_of(Pseudonymise(columns=policy, seed=1).anonymize(log))
    assert counted.n_records == 3
    by_terms = {"1 term": 0, "2 terms": 0, "3 terms": 0, "4 terms": 0}
    assert alone_by(counted) == by_terms | {"days": 1, "a text": 1, "a clicked page": 1}
    assert counted.n_alone == 1


def test_what_is_not_released_is_not_counted_and_says_why() -> None:
    counted = isolation_of(release_by("km"))
    assert {each.by: each.why for each in counted.alone if each.n is None} == {
        "days": "no times are released",
        "a clicked page": "no clicks are released",
    }
    assert alone_by(isolation_of(release_by("clump"))) == {"1 term": 0, "2 terms": 0, "3 terms": 0, "4 terms": 0}
    assert isolation_of(release_by("plink")).why == "a record is of a group of people"


def test_every_attacker_looks_into_exactly_one_criterion_and_stands_for_a_reader() -> None:
    looked = [name for criterion in CRITERIA for test in criterion.tests for name in test.attackers]
    assert len(looked) == len(set(looked))
    names = {base_name(each.name) for each in attackers(release_by("swap"))}
    assert names <= set(looked)
    assert names <= set(READERS["state"].attackers)


def outcomes(attacks: Attacks | None, **exceptions: str) -> dict[str, tuple[str, str]]:
    limit = Limit(exceptions=exceptions)
    of = findings(attacks, Isolation(), limit=limit)
    return {each.criterion.name: (str(each.outcome), str(each.in_context)) for each in of}


def test_a_criterion_fails_if_one_attacker_is_over_the_limit_and_in_context_only_if_nobody_ruled_it_out() -> None:
    attacks = attacks_of(found("known_terms", 0.2), found("membership", 0.0))
    assert outcomes(attacks)["linkage"] == ("fail", "fail")
    assert outcomes(attacks, known_terms="nobody knows terms")["linkage"] == ("fail", "not tested")
    # What nobody looked into is not passed.
    assert outcomes(attacks)["inference"] == ("not fully tested", "not fully tested")
    assert outcomes(None) == {
        "isolation": ("pass", "pass"),
        "linkage": ("not tested", "not tested"),
        "inference": ("not tested", "not tested"),
    }


def test_a_criterion_passes_if_all_its_tests_ran_or_have_nothing_to_find_in_the_release() -> None:
    tests = {criterion.name: [test.attackers[0] for test in criterion.tests] for criterion in CRITERIA}
    skipped = tuple(Skipped(attacker=name, reason="the release has no times") for name in tests["inference"][1:])
    attacks = attacks_of(found(tests["inference"][0], 0.01), skipped=skipped)
    assert outcomes(attacks)["inference"] == ("pass", "pass")
    needs = (*skipped[:-1], Skipped(attacker=tests["inference"][-1], reason="needs a public log: --public FILE"))
    assert outcomes(replace(attacks, skipped=needs))["inference"][0] == "not fully tested"


@pytest.mark.parametrize(
    ("n_targets", "n_found", "standing"),
    [
        (1000, 0, Risk.UNDER),
        (1000, 100, Risk.OVER),
        (20, 0, Risk.TOO_FEW),
        (20, 18, Risk.OVER),
        (0, 0, Risk.UNKNOWN),
    ],
)
def test_the_risk_is_beside_the_limit_and_few_targets_are_no_proof(
    n_targets: int, n_found: int, standing: Risk
) -> None:
    exposure = replace(found("vanity", 0.0), n_targets=n_targets, n_found=n_found, n_by_chance=0.0)
    assert risk_of(attacks_of(exposure), limit=Limit()) is standing
    made = replace(made_up_report(), attacks=attacks_of(exposure))
    words = {
        Risk.UNDER: ("Risk under 5 %", "Nothing found here speaks against"),
        Risk.OVER: ("Risk over 5 %", "Do not hand it out as it is: whoever looks for a name and a town finds"),
        Risk.TOO_FEW: ("Too few targets to show 5 %", "73 or more are needed"),
        Risk.UNKNOWN: ("Risk not known", "nobody has attacked it"),
    }[standing]
    assert risk_badge(made).text == words[0]
    assert words[1] in decision(made)


def test_what_speaks_against_a_release_is_told_with_what_blind_guessing_finds() -> None:
    def said(*, n_found: int, n_by_chance: float) -> str:
        exposure = replace(found("sybil", 0.0), n_targets=400, n_found=n_found, n_by_chance=n_by_chance)
        return decision(replace(made_up_report(), attacks=attacks_of(exposure)))

    guess = "A simulated attacker found 52 % of people, where blind guessing finds 49 %; it may be up to 7.85 % better"
    assert guess in said(n_found=208, n_by_chance=196)
    assert "it cannot be ruled out that whoever plants queries" in said(n_found=208, n_by_chance=196)
    assert "found 4 % of people, and may find up to 6.4 %; the limit is 5 %." in said(n_found=16, n_by_chance=0)
    assert "found 8 % of people; the limit is 5 %." in said(n_found=32, n_by_chance=0)


def test_the_attacker_named_first_is_over_the_limit_and_not_for_want_of_targets() -> None:
    few = replace(found("vanity", 0.0), n_targets=9, n_found=0, n_by_chance=0.0)
    made = replace(made_up_report(), attacks=attacks_of(few, found("membership", 0.1)))
    assert "whoever knows the history of a person" in decision(made)
    assert strongest_figure(made).value == "10 %"
    assert made.to_dict()["risk"]["strongest"]["attacker"] == "membership"


def test_what_may_be_done_begins_with_the_promise() -> None:
    under = replace(made_up_report(), attacks=attacks_of(found("vanity", 0.0)))
    assert decision(made_up_report(state=State.BROKEN)).startswith("Do not hand it out:")
    bare = replace(under, judgement=replace(under.judgement, state=State.NOTHING_PROMISED))
    assert decision(bare).startswith("It promises nothing, but nothing found here speaks against")
    assert decision(replace(bare, attacks=None)).startswith("Do not hand it out: nothing is promised")


def excepted(**exceptions: str) -> Report:
    return replace(made_up_report(), limit=Limit(share=0.3, exceptions=exceptions))


def test_an_attacker_that_was_ruled_out_is_named_with_its_reason_and_its_figure_stays() -> None:
    text = render_html(excepted(rebuild_2="the order is secret"))
    assert "Exchange undone (2), as its releaser says: the order is secret." in text
    assert "Risk under 30 %, some attackers ruled out" in text
    assert "without those ruled out" in text
    assert "Exchange undone (2, by time)" in text
    assert "No attacker was ruled out" in render_html(made_up_report())


def test_attackers_who_stand_for_no_reader_that_is_expected_are_ruled_out_and_told_so() -> None:
    attacks = attacks_of(found("vanity", 0.0), found("clock", 0.6), found("sybil", 0.9))
    made = replace(made_up_report(), attacks=attacks, limit=Limit(share=0.05, readers=("recipient", "site-owner")))
    assert made.risk is Risk.UNDER
    text = " ".join(render_html(made).replace("\u00a0", " ").split())
    assert "Risk under 5 %, some attackers ruled out" in text
    assert "no simulated attacker is above the limit of 5 %, but for those that were ruled out" in decision(made)
    assert "Its releaser expects these readers alone" in text
    assert "No attacker was ruled out" not in text
    assert "Found by the strongest attacker not ruled out" in text
    for lang in ("de", "fr", "es"):
        told = render_html(made, lang=lang)
        assert not any(
            f'lang="en">{word}' in told for word in ("Risk under", "Nothing found", "Its releaser", "Found by")
        )
    linkage, inference = made.findings[1:]
    assert (linkage.outcome, inference.outcome) == (Outcome.FAIL, Outcome.FAIL)
    assert Outcome.FAIL not in (linkage.in_context, inference.in_context)
    rows = {row[0]: row for block in criteria_section(made) if isinstance(block, Table) for row in block.rows}
    assert rows["Being in the log"][3] == "over, ruled out"
    assert rows["A phone book"][3] == "under"
    assert made.to_dict()["risk"]["readers"] == ["recipient", "site-owner"]
    everybody = replace(made, limit=Limit(share=0.05, readers=("state",)))
    assert "ruled out" not in decision(everybody)
    assert everybody.risk is Risk.OVER


def test_each_reader_has_a_row_with_the_most_that_its_attackers_find() -> None:
    [table] = [block for block in readers_section(made_up_report()) if isinstance(block, Table)]
    rows = {row[0]: row for row in table.rows}
    assert set(rows) == {reader.title for reader in READERS.values()}
    assert rows["Acquaintance"][1] == "8 % (6.47 % to 9.85 %)"
    assert rows["Recipient"][1] == "5 % (3.81 % to 6.53 %)"
    assert rows["Owner of a clicked site"][1] == "not tried"


def test_the_worst_off_are_told_by_the_attacker_that_is_certain_of_most() -> None:
    few, many = (Surest(n_targets=10, n_found=10, n_certain=n) for n in (3, 40))
    attacks = attacks_of(replace(found("vanity", 0.1), surest=few), replace(found("membership", 0.1), surest=many))
    blocks = worst_off_section(replace(made_up_report(), attacks=attacks))
    assert blocks[0] == Paragraph(
        "The attacker \u201cbeing in the log\u201d finds the most people with certainty: 40 of 1,000."
    )
    assert worst_off_section(made_up_report()) == []


def test_two_reports_on_one_release_say_the_same_and_another_release_has_another_seed() -> None:
    log = made_up_log()
    one, other = (report(release_by("pseudonymise"), original=log, n_targets=5) for _ in range(2))
    assert one.to_dict() == other.to_dict()
    assert one.validity.seed is not None
    assert report(release_by("km")).validity.seed != one.validity.seed
    # Privacy: a seed that was given may be that of the release.
    assert report(release_by("km"), seed=987654).validity.seed is None
    assert "987654" not in render_html(report(release_by("km"), seed=987654))


def test_a_report_in_the_folder_changes_nothing_of_the_next_one(tmp_path: Path) -> None:
    folder = release_by("km").save(tmp_path / "out")
    before = report(folder).to_dict()
    (folder / "report.html").write_text("a report")
    assert report(folder).to_dict() == before


def test_who_releases_what_to_whom_is_repeated_and_the_period_is_that_of_the_times() -> None:
    about = Circumstances(releaser="Town <library>", purpose="suggestions")
    made = report(release_by("km"), original=made_up_log(), n_targets=5, circumstances=about)
    assert dict(facts_of(made)) == {
        "Released by": "Town <library>",
        "Recipient": "not stated",
        "Purpose": "suggestions",
        "Period": "2024-03",
    }
    assert "<dd>Town &lt;library&gt;</dd>" in render_html(made)
    assert "<dd>March 2024</dd>" in render_html(made)
    assert dict(facts_of(report(release_by("km"))))["Period"] == "not stated"


def test_the_word_of_the_law_is_never_a_verdict() -> None:
    under = replace(made_up_report(), attacks=attacks_of(found("vanity", 0.0)))
    top = render_html(under).partition("<main>")[0]
    assert "anonymous" not in top
    assert "presumed anonymous; one failure means more analysis, and is not a verdict" in render_html(under)


def test_a_release_of_nobody_has_no_record_that_stands_alone() -> None:
    counted = isolation_of(Pseudonymise(seed=1).anonymize(log_of({})))
    assert (counted.n_alone, counted.n_records) == (0, 0)

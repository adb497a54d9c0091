"""What a notebook shows of each value: small tables of counts, and no text of a log."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest
from tests.support.html_trees import parsed
from tests.support.releases import released_tallies

from queryveil.attacks.attacker import Exposure
from queryveil.attacks.suite import Attacks, Attempt, Skipped
from queryveil.checks import verify
from queryveil.data import GROUPS_SCHEMA, Groups, Profiles, QueryLog, Transactions
from queryveil.methods import Clump, Km, Plink, Swap
from queryveil.methods.dp.dp import synthesized
from queryveil.release import Release
from queryveil.reports.inspection import inspect
from queryveil.testing import five_baskets, food, log_of

WORDS = ("kestrel", "lantern", "mulberry", "persona", "apple", "beef", "milk", "pork", "ripple.example")

NAMES = (
    "log",
    "transactions",
    "groups",
    "profiles",
    "release",
    "release of bags",
    "tallies",
    "release of tallies",
    "release of made-up sessions",
    "verdict",
    "verdict on tallies",
    "broken verdict",
    "inspection",
    "exposure",
    "attacks",
)


def a_log() -> QueryLog:
    log = log_of(
        {"persona1": ["kestrel lantern"], "persona2": ["kestrel lantern"], "persona3": ["mulberry <b> apple milk"]}
    )
    return log.with_frame(log.frame.with_columns(url=pl.lit("http://ripple.example/")))


def exposure(n_known: int | None = None) -> Exposure:
    return Exposure(
        attacker="known_terms", knows="4 terms & more", n_targets=100, n_found=7, n_by_chance=0.5, n_known=n_known
    )


@cache
def things() -> dict[str, object]:
    log = a_log()
    release = Km(k=2, m=2, seed=3).anonymize(log)
    tallied = released_tallies(
        {"kestrel lantern": 31}, clicks={("kestrel lantern", "http://ripple.example/"): 20}, threshold=13
    )
    groups = Groups(
        frame=pl.DataFrame([(1, 3, 4, ["apple", "beef"], [0.6, 0.3], None)], schema=GROUPS_SCHEMA, orient="row")
    )
    return {
        "log": log,
        "transactions": Transactions.from_frame({"items": [["apple", "milk"], ["beef"]]}),
        "groups": groups,
        "profiles": Profiles.from_dicts({"persona1": {"kestrel": 1.0}}),
        "release": release,
        "release of bags": Clump(k=2, taxonomy=food(), seed=1).anonymize(five_baskets()),
        "tallies": tallied.data,
        "release of tallies": tallied,
        "release of made-up sessions": synthesized(tallied, n_users=7, seed=1),
        "verdict": verify(release),
        "verdict on tallies": verify(tallied),
        "broken verdict": verify(Release(data=log, manifest=release.manifest)),
        "inspection": inspect(log),
        "exposure": exposure(),
        "attacks": Attacks(
            attempts=(Attempt(after=exposure(4), before=None), Attempt(after=exposure(), before=exposure())),
            skipped=(Skipped(attacker="clock", reason="the release has no times"),),
        ),
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_a_whole_table_without_text_of_the_log(name: str) -> None:
    shown = things()[name]._repr_html_()  # type: ignore[attr-defined]
    tree = parsed(shown)
    assert tree.all("table")
    assert tree.all("table")[0].all("caption")[0].text
    assert {node.name for node in tree.nodes} <= {"", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    for heading in tree.all("th"):
        assert heading.text
        assert heading.attributes["scope"] in ("row", "col")
    assert len(shown) < 6000
    for word in WORDS:
        assert word not in shown


def shown(name: str) -> str:
    return parsed(things()[name]._repr_html_()).text  # type: ignore[attr-defined]


def test_counts_are_what_is_shown() -> None:
    assert "rows3" in shown("log").replace("\n", "")
    assert "users3" in shown("log").replace("\n", "")
    assert "2 of 3" in shown("release")
    assert "members3" in shown("groups").replace("\n", "")
    assert "items3" in shown("transactions").replace("\n", "")


def test_of_noisy_counts_it_is_not_shown_how_large_the_log_was() -> None:
    assert "queries1" in shown("release of tallies").replace("\n", "")
    assert "users7, all made up" in shown("release of made-up sessions").replace("\n", "")
    for name in ("release of tallies", "release of made-up sessions"):
        assert "of 0" not in shown(name)


def test_a_verdict_says_first_whether_the_promise_holds() -> None:
    assert shown("verdict").strip().startswith("The promise holds")
    assert shown("broken verdict").strip().startswith("The promise is broken")
    assert "violation" in shown("broken verdict")


def test_attacks_show_before_beside_after_and_who_did_not_run() -> None:
    text = shown("attacks")
    for said in ("known terms, 4 known", "4 terms & more", "7 %", "0.5 %", "the release has no times"):
        assert said in text


def test_a_seeded_release_shows_its_warning_and_never_the_seed() -> None:
    release = Swap(k=2, seed=987654).anonymize(a_log())
    assert "warning" in parsed(release._repr_html_()).text
    assert "987654" not in release._repr_html_()


def test_a_release_of_groups_shows_its_promise() -> None:
    release = Plink(p=0.9, seed=3).anonymize(Profiles.from_dicts({f"persona{i}": {"kestrel": 1.0} for i in range(30)}))
    assert release.promise.in_words() in parsed(release._repr_html_()).text

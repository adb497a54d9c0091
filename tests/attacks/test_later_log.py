"""Somebody who has another log of the same people."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest
from tests.support.releases import released, released_tallies

from queryveil.attacks import AuxiliaryData, attack
from queryveil.attacks.attacker import Exposure
from queryveil.attacks.later_log import LaterLog, Things
from queryveil.comparison import compare
from queryveil.data import GROUPS_SCHEMA, Groups, QueryLog
from queryveil.methods import Km, Plink, Pseudonymise
from queryveil.pairing import Pair, pseudonymised
from queryveil.release import ColumnPolicy, Ids, Release
from queryveil.synthesis import synthesize
from queryveil.testing.logs import food, log_of, tiny_log


def attacked(log: QueryLog, release: Release, later: QueryLog, *, membership: pl.DataFrame | None = None) -> Exposure:
    pair, auxiliary = Pair(log, release=release), AuxiliaryData(later=later, membership=membership)
    assert LaterLog().skip_reason(pair, auxiliary=auxiliary) is None
    return LaterLog(seed=1).attack(pair, auxiliary=auxiliary)


def months(users: int, *, seed: int) -> tuple[QueryLog, QueryLog]:
    """Return the first and the last fortnight of made-up people."""
    log = synthesize(users=users, seed=seed).log
    is_late = pl.col("time") >= datetime(2024, 3, 16)
    return log.with_frame(log.frame.filter(~is_late)), log.with_frame(log.frame.filter(is_late))


def test_what_somebody_asks_again_tells_who_it_is_whatever_else_is_asked() -> None:
    log = log_of({f"u{i}": [f"club{i} results", "weather"] for i in range(30)})
    later = log_of({f"u{i}": [f"club{i} tickets", f"shop{i}", "weather"] for i in range(10, 40)})
    found = attacked(log, pseudonymised(log), later)
    # Twenty people are in both logs.
    assert (found.n_targets, found.n_found) == (20, 20)
    assert found.n_by_chance == pytest.approx(1.0)
    assert found.surest is not None
    assert found.surest.n_certain == 20


def test_whose_clicks_are_the_same_is_found_though_no_word_is() -> None:
    def clicks(word: str) -> QueryLog:
        users = [f"u{i}" for i in range(20)]
        pages = [f"https://page{i}.example/" for i in range(20)]
        return QueryLog.from_frame({"user": users, "query": [word] * 20, "url": pages})

    log, later = clicks("tea"), clicks("cup")
    assert attacked(log, pseudonymised(log), later).n_found == 20
    without = QueryLog(frame=log.frame.drop("url"))
    assert attacked(log, released(without), later).n_found <= 2


def test_categories_and_pages_are_numbered_behind_the_terms() -> None:
    log = QueryLog.from_frame({"user": ["u1", "u2"], "query": ["diabetes", "4711"], "url": ["a", "b"]})
    later = QueryLog.from_frame({"user": ["u2", "u1"], "query": ["flu", "4711 12"], "url": ["a", "c"]})
    pair = Pair.pseudonymised(log)
    things = Things(pair, later)
    # Two terms, two pages, sixteen categories; diabetes and flu are of the same one.
    assert things.holders.n_rows == 2 + 2 + 16
    health = 4 + int(pair.categories[0])
    holders = things.holders.to_lists()
    assert [holders[thing] for thing in (0, 1, 2, 3, health)] == [[0], [1], [0], [1], [0]]
    assert [sorted(row) for row in things.of(pl.Series([0, 1]).to_numpy()).to_lists()] == [[1], [2, health]]


def test_a_group_is_right_for_each_of_its_members_with_a_chance_of_one_in_their_number() -> None:
    log = log_of({f"u{i}": [f"club{i // 4}"] for i in range(8)})
    rows = [(1, 4, 4, ["club0"], [1.0], [4]), (2, 4, 4, ["club1"], [1.0], [4])]
    manifest = Plink(p=0.5, taxonomy=food(), seed=1).anonymize(tiny_log()).manifest
    release = Release(data=Groups(frame=pl.DataFrame(rows, schema=GROUPS_SCHEMA, orient="row")), manifest=manifest)
    membership = pl.DataFrame({"user": [f"u{i}" for i in range(8)], "group": [1 + i // 4 for i in range(8)]})
    found = attacked(log, release, log, membership=membership)
    # Everybody's group is named, and one in four of it is the one.
    assert (found.n_targets, found.n_found, found.n_by_chance) == (8, 2, 1)


@pytest.mark.slow
def test_a_fortnight_tells_who_people_were_in_the_one_before_and_km_hides_most() -> None:
    log, later = months(4000, seed=1)
    before = attacked(log, pseudonymised(log), later)
    assert before.share > 0.15
    assert before.chance_share < 0.002
    keep = ColumnPolicy(ids=Ids.KEEP)
    after = attacked(log, Km(k=5, m=2, columns=keep, seed=1).anonymize(log), later)
    assert after.beats_chance
    assert after.share < 0.05
    # Of other people nobody is found.
    other, _ = months(4000, seed=2)
    assert attacked(log, released(other), later).n_found <= 5


def test_it_is_run_with_a_later_log_only() -> None:
    log = log_of({f"u{i}": [f"club{i}"] for i in range(9)})
    release = Pseudonymise(seed=1).anonymize(log)
    skipped = attack(log, release, only=("later_log",), seed=1).skipped
    assert "--later FILE" in skipped[0].reason
    found = attack(log, release, later=log, only=("later_log",), seed=1).attempts[0]
    assert found.after.n_found == 9
    assert found.before is not None


def test_methods_are_compared_by_it_where_a_later_log_is_given() -> None:
    log = log_of({f"u{i}": [f"club{i}", "weather"] for i in range(20)})
    given, not_given = (compare(log, "pseudonymise", later=later, holdout=0, seed=1) for later in (log, None))
    found = {each.attacker: each for each in given.rows[0].judged.exposures}
    assert found["later_log"].n_found == 20
    assert "later_log" not in {each.attacker for each in not_given.rows[0].judged.exposures}


def test_it_says_why_it_does_not_apply() -> None:
    log = tiny_log()
    known = AuxiliaryData(later=log)
    strangers = AuxiliaryData(later=log_of({"v1": ["tea"]}))
    assert LaterLog().skip_reason(Pair.pseudonymised(log), auxiliary=strangers) == (
        "nobody of the log is in the other one, going by their ids"
    )
    counted = Pair(log, release=released_tallies({"tea": 4}))
    assert LaterLog().skip_reason(counted, auxiliary=known) == "the release has no rows that are one person's"
    hashed = Pair(log, release=released(log, method="token_hash"))
    assert LaterLog().skip_reason(hashed, auxiliary=known) == "the terms of the release are hashed"
    eaten = log_of({"u1": ["apple beef"], "u2": ["milk butter"]})
    grouped = Pair(eaten, release=Plink(p=0.5, taxonomy=food(), seed=1).anonymize(eaten))
    assert "--membership" in str(LaterLog().skip_reason(grouped, auxiliary=known))

"""Somebody who owns a clicked page."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.support.releases import released

from queryveil.attacks.attacker import AuxiliaryData, Exposure
from queryveil.attacks.site_owner import SiteOwner
from queryveil.data import QueryLog
from queryveil.methods import Km
from queryveil.pairing import Pair
from queryveil.release import TimeDetail
from queryveil.testing.logs import tiny_log

NOTHING = AuxiliaryData()
MONDAY, TUESDAY = datetime(2024, 3, 4, 9), datetime(2024, 3, 5, 9)


def log_of(**columns: list[Any]) -> QueryLog:
    return QueryLog.from_frame({"query": ["tea"] * len(columns["user"]), **columns})


def attacked(log: QueryLog, after: QueryLog | None = None, *, time: TimeDetail = TimeDetail.DROP) -> Exposure:
    release = released(after or log, time=time)
    assert SiteOwner().skip_reason(Pair(log, release=release), auxiliary=NOTHING) is None
    return SiteOwner(seed=1).attack(Pair(log, release=release), auxiliary=NOTHING)


def test_a_page_with_one_visitor_tells_whose_row_it_is_and_one_with_two_does_not() -> None:
    found = attacked(log_of(user=["u1", "u1", "u2", "u3"], url=["a", "a", "b", "b"]))
    assert (found.n_targets, found.n_found) == (4, 2)
    # The most frequent visitor of all has two of the four rows.
    assert found.n_by_chance == 2
    assert found.knows == "the page of every visit to its site"


def test_the_day_tells_two_visitors_of_a_page_apart() -> None:
    log = log_of(user=["u1", "u2"], url=["a", "a"], time=[MONDAY, TUESDAY])
    without = QueryLog(frame=log.frame.drop("time"))
    assert attacked(log, without).n_found == 0
    assert attacked(log, time=TimeDetail.DAY).n_found == 2
    assert attacked(log_of(user=["u1", "u2"], url=["a", "a"], time=[MONDAY, MONDAY]), time=TimeDetail.DAY).n_found == 0


def test_a_device_that_was_kept_tells_two_visitors_of_a_page_apart() -> None:
    log = log_of(user=["u1", "u2"], url=["a", "a"], device=["phone", "desk"])
    found = attacked(log)
    assert (found.n_found, found.knows) == (2, "the page and device of every visit to its site")


def test_a_made_up_row_is_attributed_wrongly() -> None:
    log = log_of(user=["u1", "u2"], url=["a", "b"])
    after = log_of(user=["u1", "u2", "u2"], url=["a", "b", "a"])
    found = attacked(log, after)
    assert (found.n_targets, found.n_found) == (3, 2)


def test_rows_without_a_page_are_nobodys() -> None:
    found = attacked(log_of(user=["u1", "u2", "u2"], url=["a", None, " "]))
    assert (found.n_targets, found.n_found) == (1, 1)


def test_a_release_without_pages_is_not_attacked() -> None:
    assert (
        SiteOwner().skip_reason(Pair.pseudonymised(tiny_log()), auxiliary=NOTHING) == "the release has no clicked pages"
    )
    log = log_of(user=["u1", "u2"], url=["a", "a"])
    release = Km(k=2, m=1, seed=1).anonymize(log)
    assert SiteOwner().skip_reason(Pair(log, release=release), auxiliary=NOTHING) == "the release has no clicked pages"

"""Somebody who owns a clicked page."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.releases import released, released_tallies

from queryveil.attacks.attacker import AuxiliaryData, Exposure
from queryveil.attacks.site_owner import SiteOwner, sole_visitors
from queryveil.data import CLICKS_SCHEMA, EVENTS_SCHEMA, TALLIES_SCHEMA, QueryLog, Tallies
from queryveil.methods import Km
from queryveil.pairing import Pair
from queryveil.release import Release, TimeDetail
from queryveil.testing.logs import tiny_log

NOTHING = AuxiliaryData()
MONDAY, TUESDAY = datetime(2024, 3, 4, 9), datetime(2024, 3, 5, 9)


def log_of(**columns: list[Any]) -> QueryLog:
    return QueryLog.from_frame({"query": ["tea"] * len(columns["user"]), **columns})


def plain_visitor(row: tuple[str, str | None], visits: list[tuple[str, str | None, int]]) -> int:
    """Return the one visitor whose visits a row fits: the page, and a language that may be the visit's or unknown."""
    page, told = row
    heard = {language for _, language, _ in visits} - {None}
    is_known = told in heard or any(str(language).startswith(f"{told}-") for language in heard)
    who = {
        visitor
        for url, language, visitor in visits
        if url == page and (not is_known or language == told or str(language).startswith(f"{told}-"))
    }
    return who.pop() if len(who) == 1 else -1


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


def test_what_was_made_coarser_fits_all_that_it_may_stand_for() -> None:
    log = log_of(user=["u1", "u2", "u3"], url=["a"] * 3, language=["en-GB", "en-US", "de"])
    after = log_of(user=["u1", "u2", "u3"], url=["a"] * 3, language=["en", "en-US", "de"])
    found = attacked(log, after)
    # Two visitors may stand behind English, one behind each of the others.
    assert (found.n_targets, found.n_found) == (3, 2)
    hidden = log_of(user=["u1", "u2", "u3"], url=["a"] * 3, language=["all", None, "de"])
    assert attacked(log, hidden).n_found == 1
    placed = log_of(user=["u1", "u2", "u3"], url=["a"] * 3, country=["DE", "fr", "JP"])
    regions = log_of(user=["u1", "u2", "u3"], url=["a"] * 3, country=["Europe", "fr", "Asia"])
    assert attacked(placed, regions).n_found == 2
    alone = log_of(user=["u1"], url=["b"], language=["fr"])
    assert attacked(alone, log_of(user=["u1"], url=["b"], language=["all"])).n_found == 1


@examples(40)
@given(
    visits=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["en-GB", "en", "de", None]), st.integers(0, 2))),
    rows=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["en-GB", "en", "de", "all", None]))),
)
def test_a_row_is_attributed_to_whom_the_plain_one_names(
    visits: list[tuple[str, str | None, int]], rows: list[tuple[str, str | None]]
) -> None:
    kinds = {"url": pl.String, "language": pl.String}
    access = pl.DataFrame(visits, schema={**kinds, "visitor": pl.Int64}, orient="row")
    found = sole_visitors(pl.DataFrame(rows, schema=kinds, orient="row"), visits=access)
    assert found.to_list() == [plain_visitor(row, visits) for row in rows]


def test_of_counted_clicks_a_row_is_attributed_if_one_person_made_it() -> None:
    log = QueryLog.from_frame(
        {
            "user": ["u1", "u1", "u2", "u3", "u4"],
            "query": ["Tea", "tea", "tea", "cup", "pot"],
            "url": ["a", "a", "b", "b", "c"],
        }
    )
    counted = {("tea", "a"): 2, ("tea", "b"): 1, ("cup", "b"): 1, ("pot", "c"): 1}
    frame = pl.DataFrame([(*key, n) for key, n in counted.items()], schema=CLICKS_SCHEMA, orient="row")
    tallies = Tallies(frame=pl.DataFrame({"query": ["tea"], "count": [3]}, schema=TALLIES_SCHEMA), clicks=frame)
    pair = Pair(log, release=Release(data=tallies, manifest=released(log).manifest))
    assert SiteOwner().skip_reason(pair, auxiliary=NOTHING) is None
    found = SiteOwner(seed=1).attack(pair, auxiliary=NOTHING)
    # The pages a and c have one visitor each, b has two.
    assert (found.n_targets, found.n_found) == (4, 2)
    noisy = Pair(log, release=released_tallies({"tea": 3}, clicks={("tea", "a"): 2}))
    assert SiteOwner().skip_reason(noisy, auxiliary=NOTHING) == "the counts of clicks are noisy"


def test_clicks_that_stand_apart_as_events_are_attributed() -> None:
    frame = pl.DataFrame({"user": ["u1", "u2"], "query": ["tea", "tea"], "search": ["1", "2"]})
    clicks = pl.DataFrame({"search": ["1", "2"], "action": ["click"] * 2, "object": ["a", "b"]})
    missing = [pl.lit(None, kind).alias(name) for name, kind in EVENTS_SCHEMA.items() if name not in clicks.columns]
    log = QueryLog(frame=frame, events=clicks.with_columns(missing).select(EVENTS_SCHEMA.keys()))
    assert attacked(log).n_found == 2


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

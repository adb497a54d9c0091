"""Somebody who runs the method with and without a person."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.attacks.attacker import AuxiliaryData, Exposure
from queryveil.attacks.neighbour import Neighbour, Seen, is_in
from queryveil.data import CLICKS_SCHEMA, TALLIES_SCHEMA, QueryLog, Tallies
from queryveil.methods import QueryThreshold
from queryveil.pairing import Pair, pseudonymised
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.testing.logs import log_of, tiny_log


def people(n: int) -> QueryLog:
    """Return people with a query that all ask, and one of their own."""
    return log_of({f"u{i}": ["tea", f"word{i} cup"] for i in range(n)})


def attacked(log: QueryLog, release: Release, auxiliary: AuxiliaryData, *, seed: int = 1) -> Exposure:
    pair = Pair(log, release=release)
    assert Neighbour().skip_reason(pair, auxiliary=auxiliary) is None
    return Neighbour(n_targets=20, seed=seed).attack(pair, auxiliary=auxiliary)


def test_words_of_their_own_tell_of_everybody_whether_they_are_in() -> None:
    log = people(100)
    found = attacked(log, pseudonymised(log), AuxiliaryData(remake=pseudonymised))
    assert (found.n_targets, found.n_found, found.n_by_chance) == (20, 20, 10)


def test_a_release_that_says_nothing_of_anybody_is_told_by_chance() -> None:
    log = people(400)
    nothing = log_of({"1": ["tea"], "2": ["tea"]})
    shares = [
        attacked(log, pseudonymised(nothing), AuxiliaryData(remake=lambda _: pseudonymised(nothing)), seed=seed).share
        for seed in range(30)
    ]
    assert sum(shares) / 30 == pytest.approx(0.5, abs=0.08)


def test_a_threshold_leaves_counts_that_tell() -> None:
    # Everybody asks one of the queries that pass: one row more or less, beside the rows of the others left out.
    log = log_of({f"u{i}": [f"word{i // 2}"] for i in range(200)})
    method = QueryThreshold(k=2, seed=1)
    found = attacked(log, method.anonymize(log), AuxiliaryData(remake=method.anonymize))
    assert found.n_found == 20


def test_two_who_ask_the_same_are_told_apart_since_all_others_are_known() -> None:
    # Rows of a text add up, so that whoever knows one of two knows the other.
    log = log_of({f"u{i}": [f"word{i // 2}"] * (1 + i % 3) for i in range(200)})
    found = attacked(log, pseudonymised(log), AuxiliaryData(remake=pseudonymised))
    assert found.n_found == 20


@examples(20)
@given(
    asked=st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 4), min_size=1), min_size=1, max_size=6),
    data=st.data(),
)
def test_of_counts_that_add_up_everybody_is_told(asked: list[dict[str, int]], data: st.DataObject) -> None:
    is_there = np.array(data.draw(st.lists(st.booleans(), min_size=len(asked), max_size=len(asked))))
    rows = [(place, thing, n) for place, own in enumerate(asked) for thing, n in own.items()]
    things = pl.DataFrame(rows, schema=["place", "thing", "n"], orient="row")

    def counted(people: np.ndarray) -> np.ndarray:
        sums = {
            thing: sum(own.get(thing, 0) for own, here in zip(asked, people, strict=True) if here) for thing in "abc"
        }
        return np.array([7.0 + sums[thing] for thing in things["thing"]])

    seen = Seen(counted(np.ones(len(asked))), counted(np.zeros(len(asked))), counted(is_there))
    assert is_in(things, seen, is_there=is_there, rng=generator(1)).tolist() == is_there.tolist()


def test_few_are_left_out_at_once_and_more_runs_serve_the_others() -> None:
    log, runs = people(100), []

    def remake(made: QueryLog) -> Release:
        runs.append(100 - made.n_users)
        return pseudonymised(made)

    found = Neighbour(n_targets=20, seed=1).attack(
        Pair(log, release=pseudonymised(log)), auxiliary=AuxiliaryData(remake=remake)
    )
    # One in thirty is three people: seven groups, each left out whole and in part.
    assert (found.n_targets, len(runs)) == (20, 14)
    assert max(runs) == 3
    assert sum(runs[::2]) == 20
    assert sum(runs[1::2]) == 10


def test_counted_clicks_tell_of_somebody_whose_query_is_not_counted() -> None:
    users = [f"u{i}" for i in range(100)]
    pages = {"user": users, "query": ["tea"] * 100, "url": [f"https://p{i // 2}.example/" for i in range(100)]}
    log = QueryLog.from_frame({**pages, "device": ["phone", "desk"] * 50})

    def remake(made: QueryLog) -> Release:
        cells = made.frame.group_by("query", "url").agg(count=pl.len()).cast(pl.Schema(CLICKS_SCHEMA))
        counted = Tallies(frame=pl.DataFrame({"query": [], "count": []}, schema=TALLIES_SCHEMA), clicks=cells)
        return Release(data=counted, manifest=pseudonymised(made).manifest)

    found = attacked(log, remake(log), AuxiliaryData(remake=remake))
    assert (found.n_targets, found.n_found) == (20, 20)


def test_without_the_method_nobody_is_told() -> None:
    reason = Neighbour().skip_reason(Pair.pseudonymised(people(20)), auxiliary=AuxiliaryData())
    assert reason == "needs the method and its settings, to run it without some people"
    few = Neighbour().skip_reason(Pair.pseudonymised(tiny_log()), auxiliary=AuxiliaryData(remake=pseudonymised))
    assert few == "too few people to leave some out"

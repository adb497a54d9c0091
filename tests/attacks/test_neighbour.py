"""Somebody who runs the method with and without a person."""

from __future__ import annotations

import pytest

from queryveil.attacks.attacker import AuxiliaryData, Exposure
from queryveil.attacks.neighbour import Neighbour
from queryveil.data import QueryLog
from queryveil.methods import QueryThreshold
from queryveil.pairing import Pair, pseudonymised
from queryveil.release import Release
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


def test_without_the_method_nobody_is_told() -> None:
    reason = Neighbour().skip_reason(Pair.pseudonymised(people(20)), auxiliary=AuxiliaryData())
    assert reason == "needs the method and its settings, to run it without some people"
    few = Neighbour().skip_reason(Pair.pseudonymised(tiny_log()), auxiliary=AuxiliaryData(remake=pseudonymised))
    assert few == "too few people to leave some out"

"""Somebody who sees rows without ids, and names pairs that are one person's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from tests.support.releases import released

from queryveil.attacks.attacker import AuxiliaryData
from queryveil.attacks.stitch import Stitch, _Looks, surest
from queryveil.data import QueryLog
from queryveil.methods import Clump, Pseudonymise, Swap
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids
from queryveil.rng import generator
from queryveil.synthesis import synthesize
from queryveil.testing.logs import log_of, tiny_log

NOTHING = AuxiliaryData()


def test_rows_with_a_word_of_their_own_are_linked_and_all_named_pairs_are_right() -> None:
    # Two rows of a person share a word that nobody else has: a pair in a hundred is named, and is right.
    log = log_of({f"u{i}": [f"name{i} tea", f"name{i} cup"] for i in range(60)})
    found = Stitch(seed=1).attack(Pair.pseudonymised(log), auxiliary=NOTHING)
    assert (found.n_targets, found.n_found) == (1, 1)
    # 30 people with 2 rows each: 30 of 60 * 59 / 2 pairs are one person's.
    assert found.n_by_chance == pytest.approx(30 / 1770)


def test_rows_with_nothing_in_common_are_linked_by_chance_only() -> None:
    rng = generator(1)
    log = log_of({f"u{i}": [f"w{w}" for w in rng.integers(0, 9, 8)] for i in range(200)})
    precisions = []
    for seed in range(5):
        found = Stitch(seed=seed).attack(Pair.pseudonymised(log), auxiliary=NOTHING)
        precisions.append(found.share - found.chance_share)
    assert abs(np.mean(precisions)) < 0.01


@pytest.mark.slow
def test_ids_that_are_gone_leave_rows_that_can_be_linked() -> None:
    log = synthesize(users=1000, seed=3).log
    found = Stitch(seed=1).attack(Pair(log, release=Pseudonymise(seed=1).anonymize(log)), auxiliary=NOTHING)
    assert found.beats_chance


def test_ids_are_not_looked_at() -> None:
    log = log_of({f"u{i}": [f"w{i % 5} tea", f"w{i % 3} cup"] for i in range(40)})
    other = QueryLog(frame=log.frame.with_columns(user=log.frame["user"].reverse()))
    one, two = (_Looks(each, unit=np.arange(each.n_rows)).pairs(np.arange(20), np.arange(190)) for each in (log, other))
    assert np.array_equal(one, two)


def test_pairs_are_named_until_one_in_a_hundred_true_ones_is() -> None:
    score = np.arange(1000.0)
    is_one = np.zeros(1000, np.bool_)
    is_one[[999, 900, 800]] = True
    assert surest(score, is_one=is_one, rng=generator(1)) == (1, 1)
    is_one[500:1000] = np.arange(500) % 2 == 0
    # Five of 250: every second row is a true one, from the second surest on.
    assert surest(score, is_one=is_one, rng=generator(1)) == (6, 3)


def test_texts_of_one_asker_are_linked_though_they_bear_other_ids() -> None:
    log = log_of({f"u{i}": [f"name{i} tea", f"name{i} cup", "weather"] for i in range(60)})
    release = Swap(k=2, l=2, seed=1, columns=ColumnPolicy(ids=Ids.KEEP)).anonymize(log)
    found = Stitch(seed=1).attack(Pair(log, release=release), auxiliary=NOTHING)
    # What everybody asked is nobody's; of the rest a person has two rows with a name that nobody else has.
    assert found.n_found == found.n_targets
    assert found.n_by_chance < 0.1 * found.n_targets


def in_mini_sessions(words: Callable[[int, int], str], *, n: int = 60) -> Pair:
    """Return people with four rows, of which two at a time are released under an id of their own."""
    rows = [(i, j) for i in range(n) for j in range(4)]
    log = log_of({f"u{i}": [words(i, j) for j in range(4)] for i in range(n)})
    after = QueryLog(frame=log.frame.with_columns(user=pl.Series([f"s{i}-{j // 2}" for i, j in rows])))
    return Pair(log, release=released(after, ids=Ids.FRESH))


def test_mini_sessions_with_a_word_of_their_own_are_linked() -> None:
    pair = in_mini_sessions(lambda i, j: f"name{i} word{i}x{j}")
    assert pair.n_candidates == 120
    found = Stitch(seed=1).attack(pair, auxiliary=NOTHING)
    assert (found.n_targets, found.n_found) == (1, 1)
    # Thirty people with two ids each: 30 of 60 * 59 / 2 pairs of ids are one person's.
    assert found.n_by_chance == pytest.approx(30 / 1770)


def test_mini_sessions_with_nothing_in_common_are_linked_by_chance_only() -> None:
    pair = in_mini_sessions(lambda i, j: f"word{i}x{j}", n=150)
    found = [Stitch(seed=seed).attack(pair, auxiliary=NOTHING) for seed in range(5)]
    assert abs(float(np.mean([each.share - each.chance_share for each in found]))) < 0.03


@pytest.mark.parametrize("name", ["device", "country", "language"])
def test_where_somebody_is_links_rows_that_share_no_word(name: str) -> None:
    log = log_of({f"u{i}": [f"a{i}", f"b{i}"] for i in range(60)})
    placed = QueryLog(frame=log.frame.with_columns(pl.Series(name, [f"kind{i // 2}" for i in range(120)])))
    found = Stitch(seed=1).attack(Pair.pseudonymised(placed), auxiliary=NOTHING)
    assert (found.n_targets, found.n_found) == (1, 1)


def test_what_has_no_rows_of_people_is_not_attacked() -> None:
    log = log_of({f"u{i}": ["apple", "cheese"] for i in range(10)})
    bags = Pair(log, release=Clump(k=2, seed=1).anonymize(log))
    assert Stitch().skip_reason(bags, auxiliary=NOTHING) == "the release has no rows that are one query"
    hashed = Pair(tiny_log(), release=released(tiny_log(), method="token_hash"))
    assert Stitch().skip_reason(hashed, auxiliary=NOTHING) == "the terms of the release are hashed"
    single = Pair.pseudonymised(log_of({"u1": ["tea"], "u2": ["cup"]}))
    assert Stitch().skip_reason(single, auxiliary=NOTHING) == "too few people have two rows or more"

"""Somebody who may add users of their own."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_judging import plain_times_seen
from tests.support.releases import released, released_bags

from queryveil.attacks.attacker import AuxiliaryData, Surest, wilson
from queryveil.attacks.sybil import Sybil, asked_in, decoys, k_of, own_queries, planted, times_seen
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.methods import Clump, Kdelta, Km, Plink, QueryThreshold, Swap
from queryveil.methods.swap.pools import Pools
from queryveil.pairing import Pair, pseudonymised
from queryveil.release import ColumnPolicy, Ids, Release
from queryveil.rng import generator
from queryveil.synthesis import synthesize
from queryveil.testing.logs import log_of, tiny_log

KEEP = ColumnPolicy(ids=Ids.KEEP)
KEY = b"sixteen secret bytes or more"
few_words = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map(" ".join)
rows = st.lists(st.tuples(st.sampled_from(["u1", "u2", "u3"]), few_words), min_size=1, max_size=12)


def combination(text: str) -> pl.DataFrame:
    return pl.DataFrame({"text": pl.Series([text]), "row": np.array([0])})


@pytest.fixture(scope="module")
def made() -> QueryLog:
    return synthesize(users=1500, seed=4).log


def found(method: Km | QueryThreshold | Swap | Kdelta | Clump | Plink, log: QueryLog) -> tuple[int, float]:
    pair = Pair(log, release=method.anonymize(log))
    auxiliary = AuxiliaryData(remake=method.anonymize)
    assert Sybil().skip_reason(pair, auxiliary=auxiliary) is None
    exposure = Sybil(n_targets=50, seed=1).attack(pair, auxiliary=auxiliary)
    return exposure.n_found, exposure.n_by_chance


def test_what_counts_users_falls_to_users_that_are_invented(made: QueryLog) -> None:
    assert found(QueryThreshold(k=5, columns=KEEP, seed=1), made) == (50, 0)
    n_found, n_by_chance = found(Km(k=5, m=2, columns=KEEP, seed=1), made)
    assert n_found >= 15
    assert n_by_chance <= 3


def test_where_queries_change_hands_rows_tell_as_much(made: QueryLog) -> None:
    n_found, n_by_chance = found(Swap(k=5, columns=KEEP, seed=1), made)
    assert n_found > 40
    assert n_by_chance < 5


@pytest.mark.parametrize("window", ["7d", None])
def test_users_who_open_a_text_early_learn_only_of_askers_in_their_order(
    made: QueryLog, window: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = Swap(k=5, window=window, min_query_users=4, columns=ColumnPolicy(ids=Ids.KEYED, key=KEY), seed=1)
    pair, auxiliary = Pair(made, release=swap.anonymize(made), key=KEY), AuxiliaryData(remake=swap.anonymize)
    attacker = Sybil(early=True, n_targets=50, seed=1)
    assert attacker.skip_reason(pair, auxiliary=auxiliary) is None
    assert attacker.attack(pair, auxiliary=auxiliary).n_found < 10
    # As it was: askers of the whole log, in the order of time.
    add = Pools.add
    monkeypatch.setattr(Pools, "add", lambda self, events, **_: add(self, events))
    monkeypatch.setattr(Swap, "_order", lambda self, frame, rows, rng: frame["time"].gather(rows).arg_sort().to_numpy())
    monkeypatch.setattr(Swap, "_windows", lambda self, frame: None)
    exposure = attacker.attack(pair, auxiliary=auxiliary)
    assert exposure.n_found > 20
    assert exposure.n_by_chance < 5
    assert exposure.knows == "a query that a person may have asked, and plants it for 7 more early"


def test_users_come_early_only_where_askers_are_counted(made: QueryLog) -> None:
    attacker, swap = Sybil(early=True, n_targets=50, seed=1), Swap(k=5, columns=KEEP, seed=1)
    reason = attacker.skip_reason(Pair(made, release=swap.anonymize(made)), auxiliary=AuxiliaryData())
    assert reason == "needs times, and queries that change hands once enough people asked them"
    timeless = made.with_frame(made.frame.drop("time"))
    swap = Swap(k=5, columns=KEEP, min_query_users=4, seed=1)
    assert attacker.skip_reason(Pair(timeless, release=swap.anonymize(timeless)), auxiliary=AuxiliaryData()) == reason


def test_rows_that_are_made_up_do_not_hide_it_all(made: QueryLog) -> None:
    n_found, n_by_chance = found(Kdelta(k=5, columns=KEEP, seed=1), made)
    assert n_found > n_by_chance + 3


@pytest.mark.slow
def test_bags_of_generalised_items_give_less(made: QueryLog) -> None:
    n_found, n_by_chance = found(Clump(k=5, seed=1), made)
    assert n_by_chance < n_found < 25


def test_everybody_is_found_where_nothing_was_done(made: QueryLog) -> None:
    exposure = Sybil(n_targets=50, seed=1).attack(
        Pair.pseudonymised(made), auxiliary=AuxiliaryData(remake=pseudonymised)
    )
    assert (exposure.n_found, exposure.n_targets, exposure.n_by_chance) == (50, 50, 0)
    assert exposure.surest == Surest(n_targets=1, n_found=1, n_certain=50)


def test_as_many_are_sought_by_default_that_any_share_is_told_to_five_points() -> None:
    low, high = wilson(Sybil().n_targets / 2, n=Sybil().n_targets)
    assert high - low <= 0.1


def test_half_of_those_who_are_suspected_did_not_ask() -> None:
    seen: list[QueryLog] = []

    def look(log: QueryLog) -> Release:
        seen.append(log)
        return pseudonymised(log)

    log = log_of({f"u{i}": [f"a{i} b{i}", f"B{i} a{i}", f"c{i} a{i} b{i}", "d"] for i in range(6)})
    Sybil(n_targets=3, seed=1).attack(Pair.pseudonymised(log), auxiliary=AuxiliaryData(remake=look))
    own = seen[0].frame.filter(pl.col("user").is_in(log.frame["user"].implode()))
    # Of those who did not ask, every query with the suspected terms is gone.
    n_left = sorted(own.group_by("user").len()["len"])
    assert n_left[3:] == [4, 4, 4]
    assert max(n_left[:3]) < 4


def test_a_method_that_releases_nothing_gives_nobody_away() -> None:
    def nothing(log: QueryLog) -> Release:
        return pseudonymised(log.with_frame(log.frame.clear()))

    assert (
        Sybil(n_targets=50, seed=1)
        .attack(Pair.pseudonymised(tiny_log()), auxiliary=AuxiliaryData(remake=nothing))
        .n_found
        == 0
    )


def test_a_method_that_shows_each_query_once_tells_nothing(made: QueryLog) -> None:
    def once(log: QueryLog) -> Release:
        return pseudonymised(log.with_frame(log.frame.unique("query", maintain_order=True)))

    exposure = Sybil(n_targets=50, seed=1).attack(Pair.pseudonymised(made), auxiliary=AuxiliaryData(remake=once))
    assert (exposure.n_found, exposure.n_by_chance) == (0, 0)


def test_a_method_whose_counts_are_drawn_tells_no_more_than_blind_guessing() -> None:
    def drawn_counts(log: QueryLog) -> Release:
        distinct = log.frame.unique("query", maintain_order=True)
        times = generator(2).integers(0, 40, distinct.height)
        again = distinct[pl.Series(np.repeat(np.arange(distinct.height), times))].with_row_index("n")
        return pseudonymised(log.with_frame(again.with_columns(user=pl.col("n").cast(pl.String)).drop("n")))

    log = log_of({f"u{i}": [f"a{i} b{i}"] for i in range(500)})
    exposure = Sybil(n_targets=200, seed=1).attack(
        Pair.pseudonymised(log), auxiliary=AuxiliaryData(remake=drawn_counts)
    )
    assert exposure.n_found < 40
    assert abs(exposure.n_found - exposure.n_by_chance) < 15


def test_only_queries_of_two_terms_that_one_person_asked_are_suspected() -> None:
    asked = {"u1": ["red wine", "jaguar", "red red"], "u2": ["Wine RED", "old red wine"], "u3": ["old wine", "a b"]}
    found = own_queries(Pair.pseudonymised(log_of(asked | {"u4": ["b a c"]})), n=9, rng=generator(1))
    assert sorted(found["text"].to_list()) == ["b a c", "old red wine"]


def test_the_rows_of_a_combination_are_those_of_the_one_who_asked_it() -> None:
    log = log_of({"u1": ["red wine", "wine", "old Wine RED"], "u2": ["red wine"]})
    one = pl.DataFrame({"text": log.frame["query"].gather([0]), "row": np.array([0])})
    assert asked_in(Pair.pseudonymised(log), combinations=one).tolist() == [0, 2]


def test_decoys_stand_in_no_query_of_the_log(made: QueryLog) -> None:
    asked = own_queries(Pair.pseudonymised(made), n=50, rng=generator(1))
    false = decoys(Pair.pseudonymised(made), like=asked, rng=generator(1))
    assert false.height == 50
    assert times_seen(false, release=pseudonymised(made)).tolist() == [0] * 50
    assert (false["text"].str.split(" ").list.len() >= 2).all()


def test_no_decoy_is_part_of_another() -> None:
    few = log_of({f"u{i}": [f"a{i} b{i}", f"a{i} c{i} d{i}"] for i in range(4)})
    asked = pl.DataFrame({"text": few.frame["query"], "row": np.arange(few.n_rows)})
    false = [set(text.split()) for text in decoys(Pair.pseudonymised(few), like=asked, rng=generator(1))["text"]]
    assert len(false) == 8
    assert not any(one <= other for i, one in enumerate(false) for j, other in enumerate(false) if i != j)


def test_invented_users_are_new_and_ask_at_the_same_time(made: QueryLog) -> None:
    asked = own_queries(Pair.pseudonymised(made), n=3, rng=generator(1))
    more = planted(made, combinations=asked, n_each=4, rng=generator(1))
    new = more.frame.tail(12)
    assert (more.n_rows, more.n_users) == (made.n_rows + 12, made.n_users + 12)
    assert new["time"].to_list() == made.frame["time"].gather(np.repeat(asked["row"], 4)).to_list()
    assert new["query"].to_list() == made.frame["query"].gather(np.repeat(asked["row"], 4)).to_list()


@examples(40)
@drawn(rows=rows, text=few_words)
def test_users_are_counted_as_the_definition_reads(rows: list[tuple[str, str]], text: str) -> None:
    log = QueryLog.from_frame(pl.DataFrame(rows, schema=["user", "query"], orient="row"))
    assert times_seen(combination(text), release=released(log)).tolist() == [plain_times_seen(text, rows)]


def test_bags_and_members_are_counted_too() -> None:
    bags = released_bags([["red", "wine"], ["wine", "old", "red"], ["red"], ["wine"]])
    assert times_seen(combination("Wine red"), release=bags).tolist() == [2]
    people = {f"u{i}": ["apple", "beef"] for i in range(4)} | {f"v{i}": ["apple", "milk"] for i in range(4)}
    for strict in (False, True):
        groups = Plink(p=1, seed=1, strict=strict).anonymize(log_of(people))
        assert times_seen(combination("apple beef"), release=groups).tolist() == [4]
        assert times_seen(combination("beef milk"), release=groups).tolist() == [0]


def test_k_is_what_the_release_asks_for() -> None:
    log = log_of({f"u{i}": ["apple", "beef"] for i in range(12)})
    assert k_of(Km(k=7, m=2).anonymize(log)) == 7
    assert k_of(QueryThreshold(k=3).anonymize(log)) == 3
    assert k_of(Plink(p=0.4).anonymize(log)) == 3
    assert k_of(Plink(p=0.2).anonymize(log)) == 5
    assert k_of(pseudonymised(log)) == 2


def test_it_needs_the_method_and_a_query_that_is_one_persons() -> None:
    pair = Pair.pseudonymised(tiny_log())
    assert Sybil().skip_reason(pair, auxiliary=AuxiliaryData()) == (
        "needs the method and its settings, to run it on a log with users of its own"
    )
    common = Pair.pseudonymised(log_of({"u1": ["red wine"], "u2": ["red wine"]}))
    assert Sybil().skip_reason(common, auxiliary=AuxiliaryData(remake=pseudonymised)) == (
        "nobody asked a query of two or more terms that is this person's alone"
    )


def test_no_targets_is_a_clear_error() -> None:
    with pytest.raises(BadParameter, match="n_targets must be 1 or more"):
        Sybil(n_targets=0)

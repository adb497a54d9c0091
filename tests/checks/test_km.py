"""The promise, on logs where the answer is known; every test asks the fast checker and the brute force."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import pytest
from tests.support.km_by_force import verify_km_by_force

from queryveil.checks import Verdict, verify_km
from queryveil.data import QueryLog
from queryveil.guarantees import KmAnonymity


def log_of(*histories: str) -> QueryLog:
    """One user per history; its words are the terms."""
    return QueryLog.from_frame({"user": [f"user {i}" for i in range(len(histories))], "query": list(histories)})


def frame_of(rows: Iterable[tuple[str, str]]) -> QueryLog:
    users, queries = zip(*rows, strict=True)
    return QueryLog.from_frame({"user": users, "query": queries})


class Judge(Protocol):
    def __call__(self, log: QueryLog, promise: KmAnonymity) -> Verdict: ...


@dataclass(frozen=True)
class Check:
    judge: Judge

    def __call__(self, log: QueryLog, *, k: int, m: int | None) -> Verdict:
        verdict = self.judge(log, KmAnonymity(k=k, m=m))
        assert verdict.holds == (verdict.n_violations == 0) == (not verdict.witnesses)
        return verdict


@pytest.fixture(params=[verify_km, verify_km_by_force], ids=["fast", "by force"])
def check(request: pytest.FixtureRequest) -> Check:
    return Check(request.param)


def test_an_empty_log_keeps_any_promise(check: Check) -> None:
    for m in (1, 3, None):
        assert check(log_of(), k=5, m=m).holds


def test_users_without_terms_need_nobody_else(check: Check) -> None:
    verdict = check(log_of("", "?!", "a b", "a b"), k=2, m=None)
    assert verdict.holds
    assert (verdict.n_users, verdict.n_checked_users) == (4, 2)


@pytest.mark.parametrize("histories", [("a b", "a b", "b"), ("b c", "b", "b c"), ("a b c", "a b", "b c", "a c")])
def test_the_valid_examples_of_the_paper_hold(check: Check, histories: tuple[str, ...]) -> None:
    assert check(log_of(*histories), k=2, m=2).holds


def test_the_examples_of_the_paper_are_broken_before_anything_is_deleted(check: Check) -> None:
    verdict = check(log_of("a b c", "a b d", "b c d"), k=2, m=2)
    assert [(w.size, w.support) for w in verdict.witnesses] == [(2, 1)] * 3
    assert check(log_of("a b c", "a b d", "b c d", "a c e"), k=2, m=1).n_violations == 1


def test_pairs_can_all_be_shared_and_the_triple_not(check: Check) -> None:
    log = log_of("a b c", "a b", "a c", "b c")
    assert check(log, k=2, m=2).holds
    verdict = check(log, k=2, m=3)
    assert verdict.n_violations == 1
    (witness,) = verdict.witnesses
    assert (witness.kind, witness.size, witness.support, witness.needed) == ("combination", 3, 1, 2)
    assert (witness.rows, witness.positions) == ((1, 1, 1), (1, 2, 3))


def town_log() -> QueryLog:
    """A log with the supports of table 1 of the paper: town 6, surname 167, state 1380."""
    with_town = ["town surname state"] + ["town state"] * 4 + ["town"]
    others = ["surname state"] * 14 + ["surname"] * 152 + ["state"] * (1380 - 5 - 14)
    return log_of(*with_town, *others)


def test_the_supports_of_table_1_give_6_1_anonymity_and_no_2_2_anonymity(check: Check) -> None:
    log = town_log()
    terms = [set(query.split()) for query in log.frame["query"]]
    supports = {
        names: sum(set(names) <= history for history in terms)
        for size in (1, 2, 3)
        for names in combinations(("town", "surname", "state"), size)
    }
    assert list(supports.values()) == [6, 167, 1380, 1, 5, 15, 1]

    assert check(log, k=6, m=1).holds
    assert not check(log, k=7, m=1).holds
    verdict = check(log, k=2, m=2)
    assert verdict.n_violations == 1
    (witness,) = verdict.witnesses
    assert (witness.size, witness.support, witness.rows) == (2, 1, (1, 1))
    assert verdict.show(log)[0].startswith("town + surname: ")


def test_a_log_that_keeps_k_m_keeps_smaller_k_and_smaller_m(check: Check) -> None:
    log = log_of(*["a b c d"] * 4, *["a b c"] * 2, "a d")
    assert check(log, k=4, m=4).holds
    assert all(check(log, k=k, m=m).holds for k in (2, 3, 4) for m in (1, 2, 3, 4))
    assert not check(log, k=5, m=4).holds


def test_a_violation_only_at_size_4_is_seen_at_4_and_above(check: Check) -> None:
    log = log_of("a b c d", "a b c", "a b d", "a c d", "b c d")
    assert check(log, k=2, m=3).holds
    for m in (4, 5, 9):
        verdict = check(log, k=2, m=m)
        assert [(w.size, w.support) for w in verdict.witnesses] == [(4, 1)]


def test_a_violation_only_at_size_5_is_seen(check: Check) -> None:
    log = log_of("a b c d e", *(" ".join(four) for four in combinations("abcde", 4)))
    assert check(log, k=2, m=4).holds
    assert [(w.size, w.support) for w in check(log, k=2, m=5).witnesses] == [(5, 1)]


def test_a_violation_of_the_last_user_alone_is_seen(check: Check) -> None:
    verdict = check(log_of(*["a b"] * 5, *["c d"] * 5, "a c"), k=2, m=2)
    assert [(w.size, w.support, w.rows) for w in verdict.witnesses] == [(2, 1, (11, 11))]


def test_k_copies_are_enough_and_one_less_is_not(check: Check) -> None:
    for m in (1, 2, 3, None):
        assert check(log_of(*["a b c"] * 5), k=5, m=m).holds
        assert not check(log_of(*["a b c"] * 4), k=5, m=m).holds


def test_supersets_help_combinations_and_not_whole_histories(check: Check) -> None:
    log = log_of("a b c", "a b c", "a b")
    assert check(log, k=2, m=3).holds
    verdict = check(log, k=2, m=None)
    assert [(w.kind, w.size, w.support, w.rows) for w in verdict.witnesses] == [("history", 2, 1, (3, 3))]


def test_a_short_history_is_held_to_its_own_size(check: Check) -> None:
    assert check(log_of("a b c", "a b c", "a"), k=2, m=3).holds
    assert not check(log_of("a b c", "a b c", "d"), k=2, m=3).holds


def test_a_combination_is_shared_across_the_different_queries_of_users(check: Check) -> None:
    rows = [("u", "a"), ("v", "b a"), ("u", "b"), ("w", "b"), ("w", "a")]
    assert check(frame_of(rows), k=3, m=2).holds
    assert check(frame_of(rows), k=3, m=None).holds


def test_a_pair_that_only_meets_in_one_users_different_queries_is_a_violation(check: Check) -> None:
    log = frame_of([("u", "left"), ("v", "left"), ("w", "right"), ("u", "right")])
    verdict = check(log, k=2, m=2)
    assert [(w.size, w.support, w.rows, w.positions) for w in verdict.witnesses] == [(2, 1, (1, 4), (1, 1))]


def test_a_term_counts_once_for_a_user_however_often_it_stands_there(check: Check) -> None:
    verdict = check(frame_of([("u", "a a a"), ("u", "a"), ("u", "A!")]), k=2, m=1)
    assert [(w.support, w.rows, w.positions) for w in verdict.witnesses] == [(1, (1,), (1,))]


def test_case_and_punctuation_make_no_other_term(check: Check) -> None:
    log = log_of("Blue-Bottle", "blue bottle", "BLUE, (bottle)", "bottle_blue")
    assert check(log, k=4, m=None).holds


def test_a_word_with_other_marks_is_another_term(check: Check) -> None:
    assert check(log_of("की", "की"), k=2, m=1).holds
    assert check(log_of("की", "का"), k=2, m=1).n_violations == 2
    assert check(log_of("cafe\u0301", "cafe"), k=2, m=1).n_violations == 2


def test_the_smallest_and_rarest_ten_witnesses_are_kept(check: Check) -> None:
    log = log_of(*[f"pair{i}" for i in range(12) for _ in range(1 + i % 2)])
    verdict = check(log, k=3, m=2)
    assert verdict.n_violations == 12
    assert [w.support for w in verdict.witnesses] == [1] * 6 + [2] * 4
    log = log_of(*[f"t{i}" for i in range(12)] * 9, *[f"t{i} t{i + 1}" for i in range(0, 12, 2)], "t0 t1", "t2 t3")
    assert [w.support for w in check(log, k=3, m=2).witnesses] == [1] * 4 + [2] * 2


def test_only_the_smallest_violated_size_is_counted(check: Check) -> None:
    verdict = check(log_of("a b c", "a b", "a c", "x"), k=2, m=3)
    assert (verdict.n_violations, verdict.witnesses[0].size) == (1, 1)


def test_the_rows_of_the_log_may_stand_in_any_order(check: Check) -> None:
    rows = [("u", "a b"), ("v", "c"), ("w", "b"), ("u", "c"), ("v", "b a"), ("w", "c b")]
    forwards, backwards = (check(frame_of(order), k=2, m=3) for order in (rows, rows[::-1]))
    assert forwards.n_violations == backwards.n_violations
    assert [(w.size, w.support) for w in forwards.witnesses] == [(w.size, w.support) for w in backwards.witnesses]

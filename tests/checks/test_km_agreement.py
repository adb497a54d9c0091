"""The fast checker and the brute force agree, on random logs and on logs that nearly keep the promise."""

from __future__ import annotations

from datetime import datetime, timedelta

import hypothesis
import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.km_by_force import verify_km_by_force

from queryveil.checks import Verdict, Witness, verify_km
from queryveil.checks.tokens import terms_of
from queryveil.data import QueryLog
from queryveil.guarantees import KmAnonymity

Row = tuple[str, str, datetime | None]

words = st.sampled_from(["a", "b", "c", "d", "e", "ö", "7"])
users = st.sampled_from(["1", "2", "3", "4", "5", "6"])
times = st.none() | st.datetimes(datetime(1969, 12, 30), datetime(1970, 1, 3))
queries = st.lists(words, max_size=4).map("-".join)
random_rows: st.SearchStrategy[list[Row]] = st.lists(st.tuples(users, queries, times), max_size=25)


@st.composite
def nearly_valid_rows(draw: st.DrawFn, k: int) -> list[Row]:
    """Each history k times, in one row or several; then one user lacks one term."""
    histories = draw(st.lists(st.sets(words, min_size=1, max_size=6), min_size=1, max_size=3))
    day = datetime(2020, 1, 1)
    rows: list[Row] = []
    for i, history in enumerate(histories):
        for copy in range(k):
            terms = draw(st.permutations(sorted(history)))
            cut = draw(st.integers(0, len(terms)))
            rows += [(f"{i} {copy}", " ".join(part), day) for part in (terms[:cut], terms[cut:])]
    broken = draw(st.integers(0, len(rows) - 1))
    user, query, time = rows[broken]
    rows[broken] = (user, " ".join(terms_of(query)[1:]), time)
    return draw(st.permutations(rows))


promises = st.builds(
    KmAnonymity, k=st.integers(2, 4), m=st.sampled_from([1, 2, 3, 4, None]), window=st.sampled_from([None, "12h", "1d"])
)


def log_of(rows: list[Row]) -> QueryLog:
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("user", "query", "time"))}
    return QueryLog.from_frame(columns)


def assert_they_agree(log: QueryLog, promise: KmAnonymity, time_unit: timedelta | None = None) -> None:
    fast, slow = (judge(log, promise, time_unit=time_unit) for judge in (verify_km, verify_km_by_force))
    if hypothesis.currently_in_test_context():
        event(f"holds: {slow.holds}")
    assert [(w.kind, w.size, w.support) for w in fast.witnesses] == [
        (w.kind, w.size, w.support) for w in slow.witnesses
    ]
    assert {fast.holds, slow.holds} == {not slow.witnesses}
    for name in ("n_violations", "n_users", "n_checked_users", "notes"):
        assert getattr(fast, name) == getattr(slow, name)
    for verdict in (fast, slow):
        assert_witnesses_are_true(log, verdict)


def assert_witnesses_are_true(log: QueryLog, verdict: Verdict) -> None:
    for witness in verdict.witnesses:
        assert len({log.frame["user"][row - 1] for row in witness.rows}) == 1
        if witness.kind == "linked_windows":
            assert len(set(witness.rows)) == 2
            continue
        terms = terms_at(log, witness)
        assert len(terms) == witness.size == len(witness.rows)
        assert isinstance(verdict.promise, KmAnonymity)
        assert witness.support < witness.needed == verdict.promise.k
        if verdict.promise.window is None:
            assert witness.support == support_of(terms, log, whole=verdict.promise.m is None)


def terms_at(log: QueryLog, witness: Witness) -> set[str]:
    places = zip(witness.rows, witness.positions, strict=True)
    return {terms_of(log.frame["query"][row - 1])[position - 1] for row, position in places}


def support_of(terms: set[str], log: QueryLog, *, whole: bool) -> int:
    histories: dict[str, set[str]] = {}
    for user, query in log.frame.select("user", "query").iter_rows():
        histories.setdefault(user, set()).update(terms_of(query))
    return sum(terms == history if whole else terms <= history for history in histories.values())


@given(rows=random_rows, promise=promises, time_unit=st.sampled_from([None, timedelta(hours=1), timedelta(days=1)]))
@examples(100)
def test_the_fast_checker_agrees_with_the_definition_on_random_logs(
    rows: list[Row], promise: KmAnonymity, time_unit: timedelta | None
) -> None:
    assert_they_agree(log_of(rows), promise, time_unit)


@given(data=st.data(), promise=promises)
@examples(100)
def test_the_fast_checker_agrees_with_the_definition_on_nearly_valid_logs(
    data: st.DataObject, promise: KmAnonymity
) -> None:
    assert_they_agree(log_of(data.draw(nearly_valid_rows(promise.k))), promise)


@examples(40)
@given(rows=random_rows, k=st.integers(2, 4), m=st.integers(1, 4))
def test_a_kept_promise_implies_every_weaker_one(rows: list[Row], k: int, m: int) -> None:
    log = log_of(rows)
    # Each user three more times, so that the promise is kept often enough to test something.
    copies = [(f"{user} {copy}", query, time) for copy in range(3) for user, query, time in rows]
    for some_log in (log, log_of(copies)):
        if verify_km(some_log, KmAnonymity(k=k, m=m)).holds:
            event("kept")
            assert all(verify_km(some_log, KmAnonymity(k=k, m=fewer)).holds for fewer in range(1, m))
            assert all(verify_km(some_log, KmAnonymity(k=less, m=m)).holds for less in range(2, k))


@examples(40)
@given(rows=random_rows, promise=promises)
def test_the_same_log_gives_the_same_verdict(rows: list[Row], promise: KmAnonymity) -> None:
    assert verify_km(log_of(rows), promise) == verify_km(log_of(rows), promise)


@pytest.mark.parametrize("n_lost", [0, 1, 5])
@pytest.mark.parametrize("promise", [KmAnonymity(k=5, m=2), KmAnonymity(k=5, m=3), KmAnonymity(k=5, m=4)])
def test_they_agree_on_a_log_of_some_hundred_users(promise: KmAnonymity, n_lost: int) -> None:
    """Thirty histories of up to nine of seventy terms, five whole copies and five partial ones; some terms are lost."""
    rng = np.random.default_rng(n_lost)
    histories = []
    for _ in range(30):
        base = np.unique((70 * rng.random(9) ** 2).astype(int))
        histories += [set(base) for _ in range(5)] + [set(base[rng.random(base.size) < 0.7]) for _ in range(5)]
    for i in rng.choice([i for i in range(300) if i % 10 < 5], n_lost, replace=False):
        histories[i].discard(rng.choice(sorted(histories[i])))
    assert_they_agree(log_of([(str(i), " ".join(f"t{t}" for t in h), None) for i, h in enumerate(histories)]), promise)

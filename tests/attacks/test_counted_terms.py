"""Somebody who knows a few terms of a person, and how often the person's queries have each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_attacks import Counts, plain_chance_of_counts, plain_likeliest_by_counts
from tests.support.releases import paired_histories, released_bags

from queryveil.attacks.attacker import AuxiliaryData, Exposure
from queryveil.attacks.counted_terms import MOST, CountedTerms, chance_of_counts
from queryveil.attacks.known_terms import KnownTerms
from queryveil.data import QueryLog
from queryveil.methods import Km, Swap, TokenHash
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy
from queryveil.synthesis import synthesize
from queryveil.testing.logs import log_of

NOTHING = AuxiliaryData()
KEEP = ColumnPolicy(ids="keep")  # type: ignore[arg-type]
PEOPLE = st.lists(
    st.lists(st.sampled_from("abcde"), min_size=2, max_size=2, unique=True).flatmap(
        lambda terms: st.tuples(*(st.tuples(st.just(term), st.integers(1, 5)) for term in terms)).map(dict)
    ),
    min_size=2,
    max_size=8,
)


def queries(people: list[Counts]) -> dict[str, list[str]]:
    return {f"u{i}": [term for term, n in counts.items() for _ in range(n)] for i, counts in enumerate(people)}


def by_counts(pair: Pair, *, n_known: int) -> Exposure:
    return CountedTerms(n_known=n_known, seed=1).attack(pair, auxiliary=NOTHING)


@examples(60)
@given(before=PEOPLE, data=st.data())
def test_who_is_named_is_whom_the_plain_one_names(before: list[Counts], data: st.DataObject) -> None:
    # Rows are left out and added, and one in the middle may be gone altogether.
    after = [{term: max(1, n + data.draw(st.integers(-1, 1))) for term, n in counts.items()} for counts in before]
    gone = data.draw(st.integers(0, len(before)))
    left = {user: rows for i, (user, rows) in enumerate(queries(after).items()) if i != gone}
    pair = paired_histories(queries(before), left)
    candidates = [counts for i, counts in enumerate(after) if i != gone]
    pairs = [(before[i], after[i]) for i in range(len(before)) if i != gone]
    chances = plain_chance_of_counts(pairs, most=MOST)
    assert chance_of_counts(pair) == pytest.approx(np.array(chances))
    best = [plain_likeliest_by_counts(counts, candidates, chances=chances, by_accident=0.1) for counts in before]
    own = [None if i == gone else i - (i > gone) for i in range(len(before))]
    n_sure = sum(named == [me] for named, me in zip(best, own, strict=True))
    n_most = sum(me in named for named, me in zip(best, own, strict=True))
    found = by_counts(pair, n_known=2)
    assert found.n_targets == len(before)
    assert n_sure <= found.n_found <= n_most


def test_the_chances_are_above_0_and_add_up() -> None:
    people: list[Counts] = [{"a": 100, "b": 2}, {"a": 3, "b": 1}]
    found = chance_of_counts(paired_histories(queries(people), queries(people)))
    assert found.min() > 0
    assert found.sum(axis=1) == pytest.approx(1)
    # A larger count is taken for the largest.
    assert found[MOST, MOST] > 0.5
    assert found[3, 3] > 0.5 > found[3, 2]


def test_equal_terms_in_other_numbers_tell_people_apart() -> None:
    people: list[Counts] = [{"a": i + 1, "b": 12 - i} for i in range(12)]
    pair = paired_histories(queries(people), queries(people))
    assert by_counts(pair, n_known=2).n_found == 12
    likely = KnownTerms(n_known=2, cautious=False, seed=1).attack(pair, auxiliary=NOTHING)
    assert likely.n_found < 6


@pytest.fixture(scope="module")
def made() -> QueryLog:
    return synthesize(users=2000, seed=1).log


@pytest.mark.parametrize("m", [3, None])
def test_counts_find_clearly_more_in_km_unless_repeats_leave_once(made: QueryLog, m: int | None) -> None:
    shares = {}
    for repeats in ("all", "once"):
        pair = Pair(made, release=Km(k=10, m=m, repeats=repeats, columns=KEEP, seed=1).anonymize(made))
        likely = KnownTerms(n_known=8, cautious=False, seed=1).attack(pair, auxiliary=NOTHING)
        shares[repeats] = (by_counts(pair, n_known=8), likely)
    counted, likely = shares["all"]
    assert counted.interval[0] > likely.interval[1]
    assert (counted.title, counted.n_by_chance) == ("counted terms, 8 known", likely.n_by_chance)
    assert counted.surest is not None
    counted, likely = shares["once"]
    assert counted.interval[0] < likely.interval[1]
    assert counted.share < likely.share + 0.04


def test_it_seeks_whoever_has_rows_of_their_own(made: QueryLog) -> None:
    small = made.with_frame(made.frame.head(400))
    reasons = {
        "the terms of the release are hashed": TokenHash(columns=KEEP, seed=1).anonymize(small),
        "what the release counts is not how often a person used a term": released_bags([["a", "b", "c"]]),
        "queries changed hands, so the rows of an id are not one person's": Swap(k=2, seed=1).anonymize(small),
    }
    for reason, release in reasons.items():
        assert CountedTerms().skip_reason(Pair(small, release=release), auxiliary=NOTHING) == reason
    few = Pair.pseudonymised(log_of({"u1": ["a b"], "u2": ["a"]}))
    assert CountedTerms().skip_reason(few, auxiliary=NOTHING) == "nobody in the log has 3 terms"
    assert CountedTerms(n_known=2).skip_reason(few, auxiliary=NOTHING) is None


def test_the_plain_one_is_the_one_without_counts_where_all_counts_are_one() -> None:
    people: list[Counts] = [{"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}]
    chances = plain_chance_of_counts([(each, each) for each in people], most=3)
    assert plain_likeliest_by_counts({"a": 1}, people, chances=chances, by_accident=0.1) == [0]

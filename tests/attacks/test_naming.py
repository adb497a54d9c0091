from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.plain_attacks import plain_alone, plain_confidence, plain_likeliest, plain_named

from queryveil.attacks._likelihood import BY_ACCIDENT, guess_likeliest_candidates
from queryveil.attacks._scoring import guess_candidates, holders_of_all
from queryveil.attacks.known_terms import alone_with_few
from queryveil.data.rows import Rows

LETTERS = "abcdefg"
HISTORIES = st.lists(st.sets(st.sampled_from(LETTERS)), max_size=9)
OWN = st.lists(st.sets(st.sampled_from(LETTERS)), max_size=5)


def holders_of(candidates: list[set[str]]) -> Rows[np.int32]:
    return Rows.from_lists([[i for i, each in enumerate(candidates) if letter in each] for letter in LETTERS])


def compressed(rows: list[list[int]]) -> Rows[np.int64]:
    ptr, values = Rows.from_lists(rows)
    return Rows(ptr, values.astype(np.int64))


def numbers(own: set[str]) -> list[int]:
    return [LETTERS.index(letter) for letter in sorted(own)]


@given(candidates=HISTORIES, known=OWN, eccentricity=st.sampled_from([0.0, 0.5, 1.5, 3.0]))
def test_who_is_named_is_whom_the_plain_one_names(
    candidates: list[set[str]], known: list[set[str]], eccentricity: float
) -> None:
    things, holders = compressed([numbers(each) for each in known]), holders_of(candidates)
    guesses = guess_candidates(things, holders=holders, n_candidates=len(candidates), eccentricity=eccentricity)
    plain = [plain_named(sorted(each), candidates, eccentricity=eccentricity) for each in known]
    assert guesses.candidate.tolist() == [-1 if number is None else number for number in plain]


@given(
    candidates=st.lists(st.lists(st.sampled_from(LETTERS), max_size=6), max_size=6),
    known=st.text("abcdefg", max_size=4),
)
def test_the_likeliest_are_those_of_the_plain_one_and_each_of_equals_is_drawn(
    candidates: list[list[str]], known: str
) -> None:
    holders = holders_of([set(each) for each in candidates])
    pairs = zip(holders.row_of_entry.tolist(), holders.values.tolist(), strict=True)
    counts = np.array([candidates[holder].count(LETTERS[letter]) for letter, holder in pairs], np.int64)
    things = compressed([[LETTERS.index(letter) for letter in known]] * 200)
    guesses = guess_likeliest_candidates(
        things, holders=holders, n_candidates=len(candidates), counts=counts, rng=np.random.default_rng(1)
    )
    plain = plain_likeliest(known, candidates, by_accident=BY_ACCIDENT)
    assert set(guesses.candidate.tolist()) == set(plain or [-1])
    assert guesses.confidence.tolist() == pytest.approx(
        [plain_confidence(known, candidates, by_accident=BY_ACCIDENT)] * 200
    )


@given(candidates=HISTORIES, own=OWN)
def test_who_is_alone_with_a_pair_or_triple_is_whom_the_plain_one_finds(
    candidates: list[set[str]], own: list[set[str]]
) -> None:
    things = compressed([numbers(each) for each in own])
    ptr, alone = alone_with_few(things, holders_of(candidates), len(candidates))
    found = [set(alone[ptr[i] : ptr[i + 1]].tolist()) for i in range(len(own))]
    assert found == [plain_alone(each, candidates) for each in own]
    assert len(alone) == sum(map(len, found))


@given(candidates=HISTORIES, things=st.sets(st.sampled_from(LETTERS), min_size=1))
def test_those_who_have_all_of_some_things_are_found(candidates: list[set[str]], things: set[str]) -> None:
    found = holders_of_all(holders_of(candidates), np.array(numbers(things))[:, None])
    assert found.tolist() == [number for number, each in enumerate(candidates) if things <= each]


@pytest.mark.parametrize("n_own", [60, 64])
def test_histories_of_sixty_terms_and_more_are_searched_to_the_last_triple(n_own: int) -> None:
    last = list(range(n_own - 3, n_own))
    # The first has all; others have everything but one of the last three, so that only that triple is the first's own.
    rows = [list(range(n_own)), *([thing for thing in range(n_own) if thing != gone] for gone in last)]
    holders = Rows.from_lists(rows).transpose(n_own)
    ptr, alone = alone_with_few(compressed([list(range(n_own))]), holders, len(rows))
    assert alone.tolist() == [0]
    for few in combinations(last, 2):
        shorter = [thing for thing in range(n_own) if thing not in last or thing in few]
        ptr, alone = alone_with_few(compressed([shorter]), holders, len(rows))
        assert ptr.tolist() == [0, 0]

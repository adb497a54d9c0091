"""Algorithm 1: the groups are those of plain Python, and each is large enough."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_plink import augment, companions, plain_groups

from queryveil import Plink, Profiles, Taxonomy
from queryveil.errors import TooFewUsers
from queryveil.methods.plink._groups import as_written, grouped, may_share, size_needed
from queryveil.methods.plink.profiles import COMPANIONS, TermProfiles, augmented, profiles_of
from queryveil.methods.plink.profiles import companions as kernel
from queryveil.methods.settings import Weights
from queryveil.testing.strategies import PLANTS, profiles

PARENTS = dict(PLANTS)
PLANT = Taxonomy.from_pairs(PLANTS)


class AsTheyStand(np.random.Generator):
    """A generator that leaves everything in its order."""

    def permutation(self, x: int) -> np.ndarray:  # type: ignore[override]
        return np.arange(x)


def in_order() -> np.random.Generator:
    return AsTheyStand(np.random.PCG64(0))


def numbered(data: Profiles) -> TermProfiles:
    return profiles_of(data, PLANT, weights=Weights.BINARY, bot_threshold=None)


def members(group_of: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(group_of == group).tolist() for group in range(group_of.max(initial=-1) + 1)]


shares = st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0])


def check_against_plain_python(data: Profiles, *, p: float, a: int, strict: bool, aversion: float = 1.0) -> None:
    found = numbered(data)
    n_companions = COMPANIONS if strict else 0
    vectors = augmented(found, PLANT, a=a, n_companions=n_companions)
    group_of = grouped(found, vectors, p=p, strict=strict, aversion=aversion, rng=in_order())
    rows = data.frame.select("terms", "weights").rows()
    terms = [dict(zip(terms, weights, strict=True)) for terms, weights in rows if terms]
    senses = {term: [term.lower()] for one in terms for term in one}
    beside = companions(terms, most=n_companions)
    plain = [augment(one, senses, PARENTS, a=a, beside=beside) for one in terms]
    expected = plain_groups(terms, plain, p=as_written(p), strict=strict, aversion=aversion) if terms else []
    assert members(group_of) == [sorted(group) for group in expected]


@examples(40)
@given(
    data=profiles(max_users=20),
    p=shares,
    a=st.integers(0, 2),
    strict=st.booleans(),
    aversion=st.sampled_from([0, 1, 4]),
)
def test_the_groups_are_those_of_plain_python(data: Profiles, p: float, a: int, strict: bool, aversion: float) -> None:
    if 0 < numbered(data).n_users < 1 / p:
        with pytest.raises(TooFewUsers, match="try a larger p"):
            check_against_plain_python(data, p=p, a=a, strict=strict, aversion=aversion)
    else:
        check_against_plain_python(data, p=p, a=a, strict=strict, aversion=aversion)


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
def test_the_groups_of_many_drawn_sets_are_those_of_plain_python(strict: bool) -> None:
    # Hypothesis draws mostly few users; who is left over at the end shows in larger sets.
    rng = np.random.default_rng(5)
    vocabulary = np.array([child for child, _ in PLANTS] + [f"word{i}" for i in range(12)])
    for _ in range(150):
        people = {}
        for user in range(rng.integers(8, 28)):
            terms = rng.choice(vocabulary, size=rng.integers(1, 7), replace=False)
            people[str(user)] = {str(term): float(rng.choice([0.3, 1.0, 1.0, 2.5])) for term in terms}
        p, a = float(rng.choice([0.15, 0.25, 0.3, 0.4, 0.5])), int(rng.integers(0, 3))
        aversion = float(rng.choice([0.0, 0.5, 1.0, 4.0]))
        check_against_plain_python(Profiles.from_dicts(people), p=p, a=a, strict=strict, aversion=aversion)


@examples(40)
@given(data=profiles(min_users=10, max_users=30), p=shares, strict=st.booleans(), seed=st.integers(0, 9))
def test_every_user_is_in_one_group_and_every_group_is_large_enough(
    data: Profiles, p: float, strict: bool, seed: int
) -> None:
    found = numbered(data)
    if found.n_users < 1 / p:
        return
    group_of = grouped(found, augmented(found, PLANT, a=1), p=p, strict=strict, rng=np.random.default_rng(seed))
    average = Fraction(len(found.terms), found.n_users)
    groups = members(group_of)
    assert sorted(user for group in groups for user in group) == list(range(found.n_users))
    for group in groups:
        assert average / int(found.user_terms.lengths[group].sum()) <= Fraction(str(p))
        assert not strict or len(group) >= 1 / p


def test_shares_are_the_numbers_that_were_written() -> None:
    assert [may_share(m, p=0.1) for m in (9, 10, 29, 30)] == [0, 1, 2, 3]
    assert may_share(100, p=0.29) == 29, "29.0 is a little more than 100 times the binary 0.29"
    data = Profiles.from_dicts({str(i): {f"t{i}{j}": 1.0 for j in range(3)} for i in range(10)})
    assert size_needed(numbered(data), p=0.3) == 10


def test_a_group_is_grown_from_those_who_mean_the_same() -> None:
    data = Profiles.from_dicts({"1": {"elm": 1}, "2": {"dahlia": 1}, "3": {"amber": 1}, "4": {"birch": 1}})
    group_of = grouped(numbered(data), augmented(numbered(data), PLANT, a=1), p=0.5, strict=False, rng=in_order())
    assert members(group_of) == [[0, 3], [1, 2]]


def test_strict_groups_bring_together_people_who_mean_the_same_by_other_words() -> None:
    same = {"1": {"elm": 1.0}, "2": {"elm": 1.0}, "3": {"birch": 1.0}, "4": {"birch": 1.0}}
    data = Profiles.from_dicts(same)
    vectors = augmented(numbered(data), PLANT, a=1)
    assert members(grouped(numbered(data), vectors, p=0.5, strict=False, rng=in_order())) == [[0, 1], [2, 3]]
    strict = grouped(numbered(data), vectors, p=0.5, strict=True, aversion=1.0, rng=in_order())
    assert members(strict) == [[0, 2], [1, 3]]


def test_strict_groups_bring_together_people_whose_terms_go_with_the_same_others() -> None:
    """Those who hide each other's terms are similar to whoever knows which terms go together."""
    known = [["oats", "hay"], ["oats", "saddle"], ["hay", "saddle"]] * 2 + [["rook", "pawn"], ["rook", "board"]] * 2
    people = [["oats"], ["board"], ["saddle"], ["pawn"], *known]
    data = numbered(Profiles.from_dicts({str(i): dict.fromkeys(terms, 1.0) for i, terms in enumerate(people)}))
    near, plain = (augmented(data, PLANT, a=1, n_companions=n) for n in (COMPANIONS, 0))
    assert plain.cosine(0, 2) == plain.cosine(0, 1) == plain.cosine(0, 3) == 0
    assert near.cosine(0, 2) > near.cosine(0, 1) == near.cosine(0, 3) == 0
    assert near.cosine(1, 3) > 0


@examples(60)
@given(data=profiles(max_users=15), most=st.integers(0, 4))
def test_companions_are_those_of_plain_python(data: Profiles, most: int) -> None:
    found = numbered(data)
    names = found.vocabulary.to_list()
    people = [dict.fromkeys((names[term] for term in row), 1.0) for row in found.user_terms.to_lists()]
    expected = companions(people, most=most, order=names)
    ours = kernel(found.user_terms, found.user_terms.transpose(len(names)), most)
    assert {names[t]: [names[k] for k in row if k >= 0] for t, row in enumerate(ours.tolist())} == {
        name: expected.get(name, []) for name in names
    }


def test_more_aversion_drops_fewer_terms() -> None:
    rng = np.random.default_rng(3)
    drawn = [rng.choice(40, size=8, replace=False, p=(w := 1 / np.arange(1, 41)) / w.sum()) for _ in range(400)]
    data = Profiles.from_dicts({str(i): {f"word{t}": 1.0 for t in terms} for i, terms in enumerate(drawn)})
    dropped = [
        Plink(p=0.4, strict=True, aversion=aversion, taxonomy=PLANT, seed=1).anonymize(data).manifest.removed
        for aversion in (0, 1, 4)
    ]
    first, second, third = (each["term_occurrences_dropped"] for each in dropped)
    assert first > second > third


def test_small_profiles_get_larger_groups_until_the_bound_holds() -> None:
    small = {f"small{i}": {"elm": 1.0} for i in range(30)}
    large = {f"large{i}": {f"word{i}{j}": 1.0 for j in range(10)} for i in range(3)}
    found = numbered(Profiles.from_dicts(small | large))
    group_of = grouped(found, augmented(found, PLANT, a=1), p=0.4, strict=False, rng=np.random.default_rng(0))
    sizes = [int(found.user_terms.lengths[group].sum()) for group in members(group_of)]
    assert min(sizes) >= 60 / 33 / 0.4
    assert max(len(group) for group in members(group_of)) >= 5


def test_the_last_ones_who_are_too_few_go_to_their_closest_group() -> None:
    people = ["elm", "dahlia", "birch", "amber", "cedar"]
    data = numbered(Profiles.from_dicts({str(i): {name: 1.0} for i, name in enumerate(people)}))
    group_of = grouped(data, augmented(data, PLANT, a=1), p=0.5, strict=False, rng=in_order())
    assert members(group_of) == [[0, 2, 4], [1, 3]]


def test_of_people_who_are_equally_far_or_close_the_first_counts() -> None:
    data = numbered(Profiles.from_dicts({str(i): {"elm": 1.0, f"word{i}": 1.0} for i in range(6)}))
    group_of = grouped(data, augmented(data, PLANT, a=0), p=0.5, strict=False, rng=in_order())
    assert members(group_of) == [[0, 1], [2, 3], [4, 5]]


def test_who_is_first_depends_on_the_generator() -> None:
    data = numbered(Profiles.from_dicts({str(i): {f"word{i}": 1.0} for i in range(12)}))
    vectors = augmented(data, PLANT, a=1)
    found = {
        tuple(grouped(data, vectors, p=0.5, strict=False, rng=np.random.default_rng(seed)).tolist())
        for seed in range(9)
    }
    assert len(found) > 1


def test_a_term_that_is_full_a_second_time_pushes_once() -> None:
    words = [["amber"], ["amber", "birch"], ["amber", "birch"], ["cedar", "dahlia"]]
    words += [["amber", "birch", "cedar", "dahlia"], ["amber", "birch", "cedar", "dahlia", "elm"]]
    data = Profiles.from_dicts({str(i): dict.fromkeys(terms, 0.25) for i, terms in enumerate(words)})
    check_against_plain_python(data, p=0.5, a=0, strict=True)

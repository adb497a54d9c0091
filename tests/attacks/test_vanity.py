"""Somebody with a phone book."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_attacks import plain_vanity
from tests.support.releases import paired_histories, released, released_bags

from queryveil.attacks.attacker import AuxiliaryData, Person
from queryveil.attacks.vanity import MOST_PAIRS, Vanity, entries_of_people, entries_of_tables
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.methods import Clump, Kdelta, Km, Partition, Plink, Pseudonymise, Swap
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids
from queryveil.rng import generator
from queryveil.synthesis import Synthetic, synthesize
from queryveil.testing.logs import log_of
from queryveil.text.tokens import encode

KEEP = ColumnPolicy(ids=Ids.KEEP)
BEFORE = {
    "u1": ["Ada Poe", "shoes Ulm"],
    "u2": ["poe poems", "ada lovelace"],
    "u3": ["Ulm weather"],
    "u4": ["shoes"],
}
ADA = Person(name="Ada Poe", town="Ulm", user="u1")


def found(pair: Pair, *people: Person) -> tuple[int, int]:
    exposure = Vanity(seed=1).attack(pair, auxiliary=AuxiliaryData(people=people))
    return exposure.n_found, exposure.n_targets


@pytest.fixture(scope="module")
def made() -> Synthetic:
    return synthesize(users=4000, seed=3)


def planted(made: Synthetic) -> AuxiliaryData:
    return AuxiliaryData(people=[Person(name=each.name, town=each.town, user=each.user) for each in made.secrets])


@pytest.mark.slow
def test_everybody_planted_is_found_in_a_pseudonymised_log(made: Synthetic) -> None:
    for release in (Pseudonymise(columns=KEEP).anonymize(made.log), Pseudonymise(seed=1).anonymize(made.log)):
        exposure = Vanity().attack(Pair(made.log, release=release), auxiliary=planted(made))
        assert exposure.n_found == exposure.n_targets == len(made.secrets) == 4
        assert exposure.beats_chance
    assert exposure.knows == "a directory of people: names and towns"


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        Km(k=5, m=2, columns=KEEP, seed=1),
        Km(k=10, m=3, seed=1),
        Kdelta(k=5, same_texts=True, columns=KEEP, seed=1),
        Clump(k=5, seed=1),
        Partition(k=5, seed=1),
        Swap(k=10, columns=KEEP, seed=1),
    ],
    ids=lambda method: type(method).__name__,
)
def test_nobody_planted_is_found_in_a_release_that_hides_pairs_of_terms(
    made: Synthetic, method: Km | Kdelta | Clump | Partition | Swap
) -> None:
    pair = Pair(made.log, release=method.anonymize(made.log))
    exposure = Vanity().attack(pair, auxiliary=planted(made))
    assert (exposure.n_found, exposure.n_targets) == (0, 4)


def test_a_promise_about_single_terms_does_not_hide_them(made: Synthetic) -> None:
    pair = Pair(made.log, release=Km(k=5, m=1, columns=KEEP, seed=1).anonymize(made.log))
    assert Vanity().attack(pair, auxiliary=planted(made)).n_found == 4


def test_one_of_several_mini_sessions_with_name_and_town_is_enough() -> None:
    log = log_of({"u1": ["Ada Poe Ulm", "poe ada ulm flats"], "u2": ["shoes", "ulm"]})
    after = QueryLog(frame=log.frame.with_columns(user=pl.Series(["s1", "s2", "s3", "s4"])))
    assert found(Pair(log, release=released(after, ids=Ids.FRESH)), ADA) == (1, 1)
    # Where everybody has one id, two with the name are two people.
    twins = log_of({"u1": ["Ada Poe Ulm"], "u2": ["Ada Poe Ulm"]})
    assert found(Pair.pseudonymised(twins), ADA) == (0, 1)


def test_groups_are_not_searched(made: Synthetic) -> None:
    pair = Pair(made.log, release=Plink(seed=1).anonymize(made.log))
    assert Vanity().skip_reason(pair, auxiliary=planted(made)) == "the release has no rows that are one person's"


def test_all_words_of_a_name_and_town_must_stand_in_one_history() -> None:
    pair = paired_histories(BEFORE, BEFORE)
    assert found(pair, ADA) == (1, 1)
    gone = BEFORE | {"u1": ["ada", "ulm"], "u2": ["poe"]}
    assert found(paired_histories(BEFORE, gone), ADA) == (0, 1)


def test_two_who_have_both_protect_each_other() -> None:
    both = BEFORE | {"u2": ["ada poe ulm"]}
    assert found(paired_histories(BEFORE, both), ADA) == (0, 1)


def test_the_wrong_person_is_not_found() -> None:
    exchanged = BEFORE | {"u1": ["shoes"], "u4": ["ada poe ulm"]}
    assert found(paired_histories(BEFORE, exchanged), ADA) == (0, 1)


def test_somebody_whose_user_is_not_told_is_the_only_one_who_fits() -> None:
    pair = paired_histories(BEFORE, BEFORE)
    stranger, twins = Person(name="Ib", town="Ulm"), Person(name="shoes", town="shoes")
    assert found(pair, Person(name="Ada Poe", town="Ulm"), stranger, twins) == (1, 1)
    assert Vanity().skip_reason(pair, auxiliary=AuxiliaryData(people=[stranger, twins])) == (
        "none of the people given is one user of the log"
    )
    told = Person(name="Ib", town="Ulm", user="nobody")
    assert Vanity().skip_reason(pair, auxiliary=AuxiliaryData(people=[told])) is not None


def test_somebody_who_never_asked_for_the_own_name_is_sought_and_not_found() -> None:
    pair = paired_histories(BEFORE, BEFORE)
    assert found(pair, Person(name="Ib", town="Ulm", user="u3"), ADA) == (1, 2)


def test_a_user_who_is_listed_twice_is_one_person() -> None:
    assert found(paired_histories(BEFORE, BEFORE), ADA, ADA) == (1, 1)


def test_half_a_chance_counts_half() -> None:
    log = log_of({"u1": ["ada ulm"], "u2": ["ada ulm"]})
    pair = Pair(log, release=released_bags([["ada", "ulm"]]))
    people = [Person(name="ada", town="ulm", user=user) for user in ("u1", "u2")]
    assert found(pair, *people) == (1, 2)


def test_only_so_many_people_are_sought(made: Synthetic) -> None:
    pair = Pair.pseudonymised(made.log)
    exposure = Vanity(n_targets=2, seed=1).attack(pair, auxiliary=planted(made))
    assert (exposure.n_targets, exposure.n_found) == (2, 2)
    assert exposure.n_by_chance == pytest.approx(2 / 4000)


def test_without_a_directory_names_and_towns_of_the_package_stand_in() -> None:
    histories = {
        "u1": ["ottinger family tree", "plumber duluth", "jennifer"],
        "u2": ["ottinger", "shoes"],
        "u3": ["duluth weather"],
        "u4": ["red shoes"],
    }
    pair = paired_histories(histories, histories)
    exposure = Vanity(seed=1).attack(pair, auxiliary=AuxiliaryData())
    assert exposure.knows == "a phone book: names and towns"
    assert (exposure.n_targets, exposure.n_found) == (1, 1)
    vocabulary = pair.vocabulary.to_list()
    entries = entries_of_tables(pair, n_targets=9, rng=generator(1))
    pairs = [{vocabulary[term] for term in entry.terms} for entry in entries]
    assert {"ottinger", "duluth"} in pairs
    assert all(len(pair) == 2 for pair in pairs)
    assert len(pairs) <= MOST_PAIRS
    # The first name is the rarest, so its pair comes first.
    assert pairs[0] == {"jennifer", "duluth"}


def test_one_word_that_is_both_a_name_and_a_town_is_no_pair() -> None:
    histories = {"u1": ["arnold shoes"], "u2": ["arnold lilburn"]}
    pair = paired_histories(histories, histories)
    assert Vanity(seed=1).attack(pair, auxiliary=AuxiliaryData()).n_targets == 1
    alone = paired_histories({"u1": ["arnold shoes"]}, {"u1": ["arnold shoes"]})
    reason = Vanity().skip_reason(alone, auxiliary=AuxiliaryData())
    assert reason is not None
    assert reason.endswith("give a directory: --people FILE")


def test_the_stand_in_finds_people_in_a_pseudonymised_log_and_nobody_after_km(made: Synthetic) -> None:
    before, after = (
        Vanity(seed=1).attack(pair, auxiliary=AuxiliaryData())
        for pair in (
            Pair.pseudonymised(made.log),
            Pair(made.log, release=Km(k=5, m=2, columns=KEEP, seed=1).anonymize(made.log)),
        )
    )
    assert before.n_targets == after.n_targets > 20
    assert before.beats_chance
    assert after.n_found == 0


HISTORIES = st.dictionaries(
    st.sampled_from(["u1", "u2", "u3", "u4"]), st.lists(st.sampled_from(["ada", "poe", "ulm", "shoes"]), max_size=4)
)


@examples(40)
@drawn(before=HISTORIES, after=HISTORIES, name=st.sampled_from(["ada", "ada poe"]), told=st.booleans())
def test_those_are_found_whom_the_plain_one_finds(
    before: dict[str, list[str]], after: dict[str, list[str]], name: str, told: bool
) -> None:
    original = log_of(before)
    release = log_of({user: words for user, words in after.items() if before.get(user)})
    pair = Pair(original, release=released(release))
    users = encode(original.frame["user"])[1].to_list()
    auxiliary = AuxiliaryData(people=[Person(name=name, town="ulm", user=user if told else None) for user in users])
    who = (
        {*users}
        if told
        else {users[at] for at in [plain_vanity(name, "ulm", [{*before[u]} for u in users])] if at is not None}
    )
    entries = entries_of_people(pair, people=auxiliary.people, n_targets=9, rng=generator(1))
    assert {users[entry.user] for entry in entries} == who
    candidates = pair.candidates.to_list()
    named = plain_vanity(name, "ulm", [{*after[user]} for user in candidates])
    if entries:
        exposure = Vanity().attack(pair, auxiliary=auxiliary)
        assert exposure.n_targets == len(who)
        assert exposure.n_found == (named is not None and candidates[named] in who)


def test_no_repr_shows_whom_an_entry_names() -> None:
    pair = paired_histories(BEFORE, BEFORE)
    entry = entries_of_people(pair, people=[ADA], n_targets=1, rng=np.random.default_rng(1))[0]
    assert repr(entry) == "Entry(n_terms=3)"


def test_nobody_cannot_be_sought() -> None:
    with pytest.raises(BadParameter, match="n_targets"):
        Vanity(n_targets=0)

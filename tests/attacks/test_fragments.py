"""Somebody who reads the release for texts that one person alone asked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from tests.support.examples import examples
from tests.support.plain_texts import form, people_of

from queryveil.attacks import AuxiliaryData, Exposure, Person, attackers
from queryveil.attacks.fragments import Fragments
from queryveil.data import Format, Layout, QueryLog
from queryveil.methods import Clump, Kdelta, Km, Plink, Pseudonymise, QueryThreshold, Swap, TokenHash
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids, Release
from queryveil.synthesis import Synthetic, synthesize
from queryveil.testing.logs import log_of
from queryveil.testing.strategies import logs

KEEP = ColumnPolicy(ids=Ids.KEEP)
NOTHING = AuxiliaryData()
ASKED = {
    "u1": ["Ada Poe", "shoes Ulm", "red wine"],
    "u2": ["poe poems", "Red  Wine", "shoes ulm"],
    "u3": ["ada poe ulm", "gout"],
}
ADA = Person(name="Ada Poe", town="Ulm", user="u1")


def found_in(release: Release, log: QueryLog, *people: Person) -> Exposure:
    attacker = Fragments(of_people=bool(people))
    return attacker.attack(Pair(log, release=release), auxiliary=AuxiliaryData(people=people))


def test_texts_of_one_person_are_counted_in_whatever_form_they_were_typed() -> None:
    log = log_of(ASKED)
    found = found_in(Pseudonymise(columns=KEEP).anonymize(log), log)
    assert (found.n_found, found.n_targets, found.n_by_chance, found.what) == (4, 6, 0, "texts")
    # Both queries of more than one person are left.
    assert found_in(QueryThreshold(k=2).anonymize(log), log).n_found == 0


def test_whose_name_stands_in_a_text_of_their_own_is_found() -> None:
    log, release = log_of(ASKED), Pseudonymise(columns=KEEP).anonymize(log_of(ASKED))
    unknown, absent = Person(name="Poe", town="Ulm"), Person(name="Eve", town="Ulm", user="u2")
    for person, n in ((ADA, (1, 1)), (unknown, (1, 1)), (absent, (0, 0))):
        found = found_in(release, log, person)
        assert (found.n_found, found.n_targets) == n
    assert found.what == "names"
    kept = found_in(QueryThreshold(k=2).anonymize(log), log, ADA)
    assert (kept.n_found, kept.n_targets) == (0, 1)


@examples(30)
@given(log=logs())
@pytest.mark.parametrize("k", [2, 3])
def test_the_figure_is_that_of_the_manifest(log: QueryLog, k: int) -> None:
    methods: list[Any] = [Km(k=k, m=2, columns=KEEP), Swap(k=k, columns=KEEP), Pseudonymise(columns=KEEP)]
    for method in methods:
        release = method.anonymize(log)
        texts = release.manifest.texts
        assert texts is not None
        found = found_in(release, log)
        assert (found.n_targets, found.n_found) == (texts.n_texts, texts.n_of_one_person)


@examples(30)
@given(log=logs())
def test_windows_do_not_make_several_people_of_one(log: QueryLog) -> None:
    release = Km(k=2, m=1, window="1d").anonymize(log)
    assert release.manifest.texts is not None
    # Who has which id is estimated, and nobody is taken for two.
    assert found_in(release, log).n_targets == release.manifest.texts.n_texts


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (Clump(k=2), "the release has no texts of queries"),
        (Plink(p=0.6), "the release has no texts of queries"),
        (TokenHash(), "the texts are hashes"),
    ],
)
def test_where_no_text_leaves_there_is_none_to_find(method: Any, reason: str) -> None:
    log = log_of({f"u{i}": ["apple beef", "apple"] for i in range(4)})
    pair = Pair(log, release=method.anonymize(log))
    assert Fragments().skip_reason(pair, auxiliary=NOTHING) == reason


def test_items_are_no_texts_and_names_are_sought_in_a_directory() -> None:
    items = QueryLog(frame=log_of(ASKED).frame, layout=Layout(format=Format.TRANSACTIONS))
    pair = Pair(items, release=Km(k=2, m=1).anonymize(items))
    assert Fragments().skip_reason(pair, auxiliary=NOTHING) == "the release has no texts of queries"
    pair = Pair.pseudonymised(log_of(ASKED))
    assert Fragments(of_people=True).skip_reason(pair, auxiliary=NOTHING) == (
        "it needs a directory of people: --people FILE"
    )
    assert Fragments(of_people=True).skip_reason(pair, auxiliary=AuxiliaryData(people=[ADA])) is None


def test_it_is_one_of_the_crowd() -> None:
    names = [each.name for each in attackers(Pseudonymise().anonymize(log_of(ASKED)))]
    assert {"fragments", "named_fragments"} <= set(names)


@pytest.fixture(scope="module")
def made() -> Synthetic:
    return synthesize(users=2000, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("method", [Kdelta(k=5, columns=KEEP, seed=1), Swap(k=10, columns=KEEP, seed=1)])
def test_unrelated_people_have_none_of_these_texts(made: Synthetic, method: Any) -> None:
    release = method.anonymize(made.log)
    found = found_in(release, made.log)
    assert found.beats_chance
    asked = made.log.frame.select("user", "query").rows()
    some = sorted({form(text) for text in release.log.frame["query"]})[:40]
    by_force = sum(len(people_of(text, asked)) == 1 for text in some)
    assert by_force > 0
    # Somebody else's log accounts for none of what is in the release.
    others = log_of({f"u{i}": [f"own{i} query"] for i in range(20)})
    assert found_in(release, others).n_found == 0

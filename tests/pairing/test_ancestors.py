"""What may stand for a term, and who is behind bags of such items."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.attacks import AuxiliaryData, attack
from queryveil.attacks.known_terms import KnownTerms, RarePair
from queryveil.data import QueryLog
from queryveil.errors import BadInput
from queryveil.methods import Clump, Km, Partition, Plink
from queryveil.pairing import Ancestors, Pair, is_generalised
from queryveil.release import ColumnPolicy, Ids
from queryveil.synthesis import synthesize
from queryveil.testing.logs import food, log_of
from queryveil.text.taxonomy import Taxonomy

KEEP = ColumnPolicy(ids=Ids.KEEP)
FOODS = ["apple", "orange", "banana", "milk", "cheese", "butter", "beef"]


def covered(ancestors: Ancestors, term: str) -> set[str]:
    found = ancestors.items_for(pl.Series([term]))
    assert found.n_rows == 1
    return set(ancestors.vocabulary.gather(found.values).to_list())


@examples(40)
@drawn(released=st.sets(st.sampled_from([*food().names, "dog"])), term=st.sampled_from([*FOODS, "dog", "cat"]))
def test_a_term_is_covered_by_itself_and_by_all_above_it(released: set[str], term: str) -> None:
    tree = food()
    texts = pl.Series([*tree.names, "dog"], dtype=pl.String)
    ancestors = Ancestors.of(texts, released=np.array([text in released for text in texts]), taxonomy=tree)
    above = {tree.names[node] for node in tree.ancestors(tree.find(term))} if tree.find(term) >= 0 else set()
    assert covered(ancestors, term) == ({term} | above) & released


def test_nodes_are_known_in_brackets_and_in_one_word() -> None:
    tree = Taxonomy.wordnet()
    texts = pl.Series(["<young_mammal>", "animal", "kittens", "zzz"])
    ancestors = Ancestors.of(texts, released=np.ones(4, np.bool_), taxonomy=tree)
    assert covered(ancestors, "kitten") == {"<young_mammal>", "animal"}
    assert covered(ancestors, "kittens") == {"<young_mammal>", "animal", "kittens"}
    assert covered(ancestors, "zzz") == {"zzz"}
    assert ancestors.n_unknown == 2
    assert "kitten" not in repr(ancestors)


def test_only_items_of_a_taxonomy_move_up() -> None:
    log = log_of({f"u{i}": ["apple", "milk"] for i in range(4)})
    assert is_generalised(Clump(k=2, taxonomy=food()).anonymize(log))
    assert is_generalised(Km(k=2, m=1, taxonomy=food()).anonymize(log))
    assert not is_generalised(Km(k=2, m=1).anonymize(log))
    assert not is_generalised(Plink(p=0.5, taxonomy=food()).anonymize(log))


def test_a_taxonomy_of_ones_own_must_be_given() -> None:
    log = log_of({f"u{i}": [FOODS[i % 7], FOODS[(i + 1) % 7]] for i in range(12)})
    for method in (Clump(k=2, taxonomy=food(), seed=1), Km(k=2, m=1, taxonomy=food(), columns=KEEP, seed=1)):
        release = method.anonymize(log)
        reason = KnownTerms(n_known=2).skip_reason(Pair(log, release=release), auxiliary=AuxiliaryData())
        assert reason == "its items moved up in a taxonomy that was not given: --taxonomy FILE"
        found = attack(log, release, taxonomy=food(), only=["known_terms", "rare_pair"])
        assert found.named("known_terms", n_known=2) is not None
    with pytest.raises(BadInput, match="items that the taxonomy does not know"):
        _ = Pair(
            log,
            release=Clump(k=2, taxonomy=food(), seed=1).anonymize(log),
            taxonomy=Taxonomy.from_pairs([("pup", "dog")]),
        ).identity


@pytest.mark.slow
@examples(40)
@drawn(people=st.lists(st.lists(st.sampled_from(FOODS), min_size=1, max_size=4), min_size=4, max_size=12))
def test_everybody_behind_a_bag_fits_it(people: list[list[str]]) -> None:
    log, tree = log_of({f"u{i:02}": foods for i, foods in enumerate(people)}), food()
    release = Clump(k=2, taxonomy=tree, seed=1).anonymize(log)
    who = Pair(log, release=release, taxonomy=tree).identity
    for bag, items in enumerate(release.data.frame["items"].to_list()):
        for user in who.users.row(bag).tolist():
            assert fits(items, people[user], tree)


def fits(items: list[str], terms: list[str], tree: Taxonomy) -> bool:
    """Try every way to let the items stand for terms, each for another."""
    if not items:
        return True
    node = int(tree.find_names(pl.Series(items[:1]))[0])
    return any(
        fits(items[1:], terms[:i] + terms[i + 1 :], tree)
        for i, term in enumerate(terms)
        if node in tree.ancestors(tree.find(term))
    )


@pytest.fixture(scope="module")
def made() -> QueryLog:
    return synthesize(users=1500, seed=9).log


@pytest.mark.parametrize("method", [Clump(k=5, seed=1), Partition(k=5, seed=1)])
def test_people_are_found_in_bags_more_often_than_by_chance_and_less_often_than_promised(
    made: QueryLog, method: Clump | Partition
) -> None:
    pair = Pair(made, release=method.anonymize(made))
    found = KnownTerms(n_known=4, cautious=False, seed=1).attack(pair, auxiliary=AuxiliaryData())
    assert found.beats_chance
    assert found.share < 0.2
    # At least five bags are equal, so nobody stands out.
    assert KnownTerms(n_known=4, seed=1).attack(pair, auxiliary=AuxiliaryData()).n_found == 0
    assert RarePair(seed=1).attack(pair, auxiliary=AuxiliaryData()).n_found == 0


def test_most_people_are_behind_some_bag(made: QueryLog) -> None:
    pair = Pair(made, release=Clump(k=5, seed=1).anonymize(made))
    n_people = pair.identity.users.lengths
    assert (n_people > 0).mean() > 0.95
    assert np.median(n_people) < 10
    assert not pair.identity.exact


def test_terms_that_moved_up_are_sought_by_what_stands_for_them(made: QueryLog) -> None:
    release = Km(k=5, m=2, taxonomy=Taxonomy.wordnet(), columns=KEEP, seed=1).anonymize(made)
    eight = KnownTerms(n_known=8, cautious=False, seed=1)
    found = eight.attack(Pair(made, release=release), auxiliary=AuxiliaryData())
    as_they_stand = eight.attack(
        Pair(made, release=Km(k=5, m=2, columns=KEEP, seed=1).anonymize(made)), auxiliary=AuxiliaryData()
    )
    assert found.n_found > as_they_stand.n_found

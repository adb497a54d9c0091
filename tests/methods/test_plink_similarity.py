"""How similar profiles are: the paper's examples, and agreement with plain Python."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import plain_plink
from tests.support.examples import examples
from tests.support.plain_wordnet import senses_of

from queryveil import Profiles, Taxonomy
from queryveil.data.rows import Rows
from queryveil.errors import BadParameter
from queryveil.methods.plink.profiles import augmented, profiles_of, similarity, synsets
from queryveil.methods.settings import Weights

UP1, UP2 = {"kitten": 1.0, "riding": 0.8}, {"pup": 0.6, "equitation": 1.0}
UP3 = {"mocha": 0.7, "java": 0.6, "coffee": 0.8}
UP4 = {"programming language": 0.6, "java": 1.0, "C++": 0.4}

PARENTS = {
    "tree": "plant", "flower": "plant", "plant": "all", "elm": "tree", "fir": "tree", "rose": "flower",
    "colour": "all", "pink": "colour", "red": "colour", "amber": "colour", "resin": "all", "moss": "plant",
}  # fmt: skip
SENSES = {
    "elm": ["elm"], "fir": ["fir"], "wood": ["tree"], "rose": ["rose", "pink"], "pink": ["flower", "pink"],
    "amber": ["resin", "amber", "flower"], "red": ["red"], "thing": ["all"], "moss": ["moss", "fir", "resin"],
}  # fmt: skip
UNKNOWN = ["zzyzx", "qwfpg"]


def tree() -> Taxonomy:
    """Return the tree above, with words of several senses."""
    grown = Taxonomy.from_pairs(PARENTS.items())
    words = sorted(SENSES)
    nodes = Rows.from_lists([[grown.find(name) for name in SENSES[word]] for word in words])
    return replace(grown, words=pl.Series(words), word_nodes=nodes)


TREE = tree()


def names_of(profile: dict[str, float], taxonomy: Taxonomy) -> list[str]:
    profiles = profiles_of(Profiles.from_dicts({"u": profile}), taxonomy, weights=Weights.BINARY, bot_threshold=None)
    nodes = synsets(profiles, taxonomy)
    return [taxonomy.names[node] if node < taxonomy.n_nodes else "own" for node in nodes.tolist()]


@pytest.mark.parametrize(("a", "expected"), [(None, 0.0), (0, 0.536), (1, 0.737)])
def test_the_papers_first_two_profiles_have_the_papers_similarity(a: int | None, expected: float) -> None:
    assert round(similarity(UP1, UP2, a=a), 3) == expected


def test_java_is_coffee_beside_mocha_and_a_language_beside_a_language() -> None:
    assert names_of(UP3, Taxonomy.wordnet()) == ["mocha (coffee)", "coffee", "coffee"]
    assert names_of(UP4, Taxonomy.wordnet()) == [
        "programming language",
        "java (object-oriented programming language)",
        "own",
    ]
    assert names_of({"java": 1.0}, Taxonomy.wordnet()) == ["java"]


def test_riding_beside_kittens_is_the_sport_which_is_its_first_sense() -> None:
    assert names_of(UP1, Taxonomy.wordnet()) == ["kitten", "riding"]


def test_words_that_the_taxonomy_does_not_know_meet_only_themselves() -> None:
    assert similarity({"zzyzx": 1}, {"ZZYZX ": 2}, a=3) == pytest.approx(1)
    assert similarity({"zzyzx": 1}, {"qwfpg": 2}, a=3) == 0


def test_plurals_meet_their_nouns() -> None:
    assert similarity({"kittens": 1}, {"kitten": 2}, a=0) == pytest.approx(1)
    assert similarity({"kittens": 1}, {"kitten": 2}, a=None) == 0


def test_weights_of_any_size_can_be_compared() -> None:
    assert similarity({"kitten": 1e300, "pup": 1e300}, {"kitten": 1e300, "pup": 1e300}) == pytest.approx(1)
    assert similarity({"kitten": 1e-300}, {"kitten": 1e300}) == pytest.approx(1)


def test_a_number_of_steps_that_makes_no_sense_is_refused() -> None:
    for a in (-1, 4, 0.5):
        with pytest.raises(BadParameter, match="a must be a whole number from 0 to 3"):
            similarity(UP1, UP2, a=a)  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="a profile must be terms with weights"):
        similarity(UP1, {})


profile = st.dictionaries(
    st.sampled_from([*SENSES, *UNKNOWN]), st.sampled_from([0.1, 0.5, 1.0, 2.0, 7.0]), min_size=1, max_size=6
)


@examples(40)
@given(people=st.lists(profile, min_size=1, max_size=4), a=st.integers(0, 3))
def test_senses_and_similarities_are_those_of_plain_python(people: list[dict[str, float]], a: int) -> None:
    senses = SENSES | {word: [word] for word in UNKNOWN}
    data = Profiles.from_dicts({str(i): one for i, one in enumerate(people)})
    profiles = profiles_of(data, TREE, weights=Weights.BINARY, bot_threshold=None)
    chosen = {
        (user, profiles.vocabulary[term]): TREE.names[node] if node < TREE.n_nodes else profiles.vocabulary[term]
        for user, node, term in zip(
            profiles.entry_user.tolist(), synsets(profiles, TREE).tolist(), profiles.terms.tolist(), strict=True
        )
    }
    # Weights are taken as shares of the largest here and there, or the margin between senses would differ.
    largest = max(weight for one in people for weight in one.values())
    scaled = [{term: weight / largest for term, weight in one.items()} for one in people]
    assert chosen == {
        (user, term): plain_plink.sense_of(term, one, senses, PARENTS)
        for user, one in enumerate(scaled)
        for term in one
    }
    vectors = augmented(profiles, TREE, a=a)
    plain = [plain_plink.augment(one, senses, PARENTS, a=a) for one in scaled]
    for i in range(len(people)):
        assert vectors.norms[i] == pytest.approx(sum(weight**2 for weight in plain[i].values()) ** 0.5)
        for j in range(len(people)):
            assert vectors.cosine(i, j) == pytest.approx(plain_plink.cosine(plain[i], plain[j]), abs=1e-12)


def test_all_senses_of_a_column_are_those_of_each_word() -> None:
    nouns = Taxonomy.wordnet()
    words = pl.Series(["java", "zzyzx", "Kittens", "", "programming language", "riding", "mice", "java"])
    assert nouns.all_senses(words).to_lists() == [senses_of(nouns, word).tolist() for word in words]
    cut, _ = nouns.restricted_to([nouns.find("coffee")])
    found = cut.all_senses(words)
    assert found.to_lists() == [senses_of(cut, word).tolist() for word in words]
    assert found.lengths[0] == 1

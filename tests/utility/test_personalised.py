"""Personalised search as a measure of groups of profiles."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from queryveil.data import GROUPS_SCHEMA, Groups, Profiles
from queryveil.errors import BadInput, BadParameter
from queryveil.utility.personalised import PersonalisedSearch, SearchPrecision, average_precision, personalised_search
from queryveil.utility.search_index import Corpus, SearchIndex

TOPICS = ("lamp candle lantern torch", "pear apple plum quince", "fiddle drum flute harp")


def corpus_of(*texts: str) -> Corpus:
    return Corpus(ids=tuple(map(str, range(len(texts)))), titles=("",) * len(texts), texts=texts)


def topical() -> Corpus:
    """120 documents that all have the word object, 40 of each topic with one to four of its words."""
    texts = []
    for topic in TOPICS:
        words = topic.split()
        texts += ["object " + " ".join(words[: 1 + i % 4]) + f" filler{i}" for i in range(40)]
    order = np.random.default_rng(0).permutation(len(texts))
    return corpus_of(*(texts[i] for i in order))


def group(number: int, terms: dict[str, float], *, members: int = 2) -> tuple[object, ...]:
    return (number, members, len(terms), list(terms), list(terms.values()), None)


def groups_of(*rows: tuple[object, ...]) -> Groups:
    return Groups(frame=pl.DataFrame(rows, schema=GROUPS_SCHEMA, orient="row"))


def membership_of(group_of: dict[str, int]) -> pl.DataFrame:
    return pl.DataFrame({"user": list(group_of), "group": list(group_of.values())})


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    return SearchIndex.of(topical())


@pytest.fixture(scope="module")
def profiles() -> Profiles:
    return Profiles.from_dicts({f"u{i}": dict.fromkeys(f"object {TOPICS[i % 3]}".split(), 1.0) for i in range(6)})


@pytest.mark.parametrize(
    ("places", "n_relevant", "expected"),
    [
        ([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 30, 1.0),
        ([0] * 12, 30, 0.0),
        # Precision is 1/1, 2/3 and 3/10 at the three that are relevant; ten could have been.
        ([1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1], 30, (1 + 2 / 3 + 3 / 10) / 10),
        # Only two are relevant, so that two on top are all that can be asked for.
        ([1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 2, 1.0),
        ([0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], 2, (1 / 2 + 2 / 5) / 2),
        # What comes after rank 10 does not count.
        ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1], 2, 0.0),
    ],
)
def test_average_precision_at_ten_is_as_worked_out_by_hand(places: list[int], n_relevant: int, expected: float) -> None:
    found = average_precision(np.array([places], np.bool_), n_relevant=n_relevant, at=10)
    assert found.tolist() == pytest.approx([expected])


def test_a_search_finds_by_any_word_and_by_its_stem_with_the_best_first() -> None:
    index = SearchIndex.of(corpus_of("a pear", "lamps and lamps and a pear", "nothing here", "The Lamp, oil and wick"))
    assert index.search(["lamp"], limit=10).tolist() == [1, 3]
    assert index.search(["pears", "LAMPS"], limit=10).tolist() == [1, 0, 3]
    assert index.search(["lamp"], limit=1).tolist() == [1]
    assert index.search(["the and of", "zanzibar"], limit=10).tolist() == []
    assert index.search([], limit=10).tolist() == []


def test_titles_are_searched_too() -> None:
    index = SearchIndex.of(Corpus(ids=("1", "2"), titles=("lamp", ""), texts=("it shines", "a pear")))
    assert index.search(["lamp"], limit=10).tolist() == [0]


def test_document_vectors_are_tf_idf_of_length_one() -> None:
    index = SearchIndex.of(corpus_of("lamp lamp pear", "pear", ""))
    assert index.doc_tokens.ptr.tolist() == [0, 2, 3, 3]
    lamp = (1 + np.log(2)) * (1 + np.log(4 / 2))
    pear = 1 + np.log(4 / 3)
    length = np.hypot(lamp, pear)
    by_token = dict(zip(index.doc_tokens.values[:2].tolist(), index.weights[:2].tolist(), strict=True))
    assert by_token == pytest.approx({index.vocabulary["lamp"]: lamp / length, index.vocabulary["pear"]: pear / length})
    assert index.weights[2] == pytest.approx(1)


def test_the_own_profile_as_group_profile_keeps_the_whole_order(index: SearchIndex, profiles: Profiles) -> None:
    own = groups_of(*(group(i, dict.fromkeys(f"object {TOPICS[i % 3]}".split(), 0.25)) for i in range(6)))
    found = personalised_search(
        own, profiles=profiles, membership=membership_of({f"u{i}": i for i in range(6)}), index=index
    )
    assert found.group_profile == 1
    assert found.without_profile < 0.9
    assert found.n_users == 6


def test_a_group_of_the_same_topic_is_better_than_one_of_all_and_both_than_another_topic(
    index: SearchIndex, profiles: Profiles
) -> None:
    search = PersonalisedSearch(profiles, index=index)
    same = groups_of(*(group(i, dict.fromkeys(TOPICS[i].split()[1:], 1.0)) for i in range(3)))
    everything = {word: 1.0 for topic in TOPICS for word in topic.split()}
    in_turn, one_on = ({f"u{i}": (i + shift) % 3 for i in range(6)} for shift in (0, 1))
    right = search.measure(same, membership=membership_of(in_turn)).group_profile
    mixed = search.measure(
        groups_of(group(0, everything)), membership=membership_of(dict.fromkeys(in_turn, 0))
    ).group_profile
    wrong = search.measure(same, membership=membership_of(one_on)).group_profile
    assert right > mixed > wrong


def test_who_is_in_no_group_or_in_one_without_terms_searches_without_a_profile(
    index: SearchIndex, profiles: Profiles
) -> None:
    search = PersonalisedSearch(profiles, index=index)
    nobody = membership_of({}).cast({"user": pl.String, "group": pl.Int64})
    alone = search.measure(groups_of(group(0, {"lamp": 1.0})), membership=nobody)
    assert alone.group_profile == alone.without_profile
    empty = search.measure(groups_of(group(0, {})), membership=membership_of({f"u{i}": 0 for i in range(6)}))
    unknown = search.measure(
        groups_of(group(0, {"zanzibar": 1.0})), membership=membership_of({f"u{i}": 0 for i in range(6)})
    )
    assert empty == unknown == alone


def test_the_weight_of_a_phrase_is_that_of_each_of_its_words() -> None:
    index = SearchIndex.of(topical())
    words = Profiles.from_dicts({"u1": {"object": 1.0, "pear": 2.0, "apple": 2.0}})
    search = PersonalisedSearch(words, index=index)
    phrase = groups_of(group(0, {"object": 0.5, "pear apple": 1.0}))
    assert search.measure(phrase, membership=membership_of({"u1": 0})).group_profile == 1


def test_users_ask_only_what_finds_a_hundred_documents(index: SearchIndex) -> None:
    asks = {"object": 1.0, "lamp": 1.0}
    profiles = Profiles.from_dicts({"u1": asks, "u2": {"lamp": 1.0}, "u3": {"zanzibar": 1.0}, "u4": {}})
    search = PersonalisedSearch(profiles, index=index)
    assert (search.n_users, search.n_queries) == (1, 1)
    with pytest.raises(BadInput, match="no query of the users' terms finds 100 documents"):
        PersonalisedSearch(Profiles.from_dicts({"u2": {"lamp": 1.0}}), index=index)


def test_a_query_takes_more_words_until_it_finds_enough(index: SearchIndex) -> None:
    # Each first word of a topic is in 40 documents: it takes all three of them to find a hundred.
    three = Profiles.from_dicts({"u1": {topic.split()[0]: 1.0 for topic in TOPICS}})
    assert PersonalisedSearch(three, index=index, queries_per_user=9).n_queries == 1


def test_a_word_is_asked_once(index: SearchIndex) -> None:
    # Only queries with the object, or with all three others, find a hundred.
    terms = {"object": 1.0} | {topic.split()[0]: 1.0 for topic in TOPICS}
    asked = {
        PersonalisedSearch(Profiles.from_dicts({"u1": terms}), index=index, queries_per_user=9, seed=seed).n_queries
        for seed in range(12)
    }
    assert asked == {1, 2}


def test_the_measure_is_what_its_definition_gives() -> None:
    rng, words = np.random.default_rng(0), " ".join(TOPICS).split()
    index = SearchIndex.of(corpus_of(*("object " + " ".join(rng.permutation(words)[: i % 7]) for i in range(150))))
    own, groups_own = {"object": 1.0, "pear": 2.0}, {"object": 1.0, "lamp": 0.9, "plum": 0.8, "pear": 1.0}
    found = personalised_search(
        groups_of(group(0, groups_own)),
        profiles=Profiles.from_dicts({"u1": own}),
        membership=membership_of({"u1": 0}),
        index=index,
    )
    # The two terms are drawn in either order: the object alone finds enough, the pear does not.
    by_definition = [precision_by_definition(index, query, own, groups_own) for query in (["object"], list(own))]
    assert 0 < found.group_profile < 1
    assert any(found.group_profile == pytest.approx(each) for each in by_definition)


def precision_by_definition(
    index: SearchIndex, query: list[str], own: dict[str, float], groups_own: dict[str, float]
) -> float:
    results = index.search(query, limit=100).tolist()

    def ranked_by(profile: dict[str, float]) -> list[int]:
        weight = {index.tokens_of(term)[0]: value for term, value in profile.items()}

        def similarity(document: int) -> float:
            mine = slice(*index.doc_tokens.ptr[document : document + 2])
            pairs = zip(index.doc_tokens.values[mine].tolist(), index.weights[mine].tolist(), strict=True)
            return round(float(sum(value * weight.get(token, 0.0) for token, value in pairs)), 9)

        return sorted(results, key=similarity, reverse=True)

    relevant = set(ranked_by(own)[:30])
    hits = [document in relevant for document in ranked_by(groups_own)[:10]]
    return sum(sum(hits[: rank + 1]) / (rank + 1) for rank, hit in enumerate(hits) if hit) / 10


@pytest.mark.slow
def test_a_seed_repeats_and_another_asks_other_queries() -> None:
    profiles = Profiles.from_dicts(
        {f"u{i}": dict.fromkeys(["music", "dog", "wine", "bank", "garden", "doctor", "ship"], 1.0) for i in range(8)}
    )
    index = SearchIndex.of()
    groups = groups_of(group(0, {"music": 1.0}))
    membership = membership_of({f"u{i}": 0 for i in range(8)})
    first, again, other = (
        personalised_search(groups, profiles=profiles, membership=membership, index=index, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    "membership",
    [
        membership_of({"u0": 7}),
        pl.concat([membership_of({"u0": 0}), membership_of({"u0": 0})]),
    ],
    ids=["no such group", "twice"],
)
def test_a_membership_that_does_not_fit_is_refused(
    index: SearchIndex, profiles: Profiles, membership: pl.DataFrame
) -> None:
    with pytest.raises(BadInput, match="membership must name each user once, with a group that there is"):
        PersonalisedSearch(profiles, index=index).measure(groups_of(group(0, {"lamp": 1.0})), membership=membership)


def test_too_small_a_corpus_and_no_queries_are_refused(index: SearchIndex, profiles: Profiles) -> None:
    with pytest.raises(BadInput, match="needs a corpus of 100 documents, not 2"):
        PersonalisedSearch(profiles, index=SearchIndex.of(corpus_of("a lamp", "a pear")))
    with pytest.raises(BadParameter, match="queries_per_user must be 1 or more, got 0"):
        PersonalisedSearch(profiles, index=index, queries_per_user=0)


def test_the_score_says_both_figures_and_reprs_hide_words(index: SearchIndex, profiles: Profiles) -> None:
    found = SearchPrecision(without_profile=0.4251, group_profile=0.7886, n_queries=3600, n_users=720)
    assert found.score.in_words() == (
        "average precision at 10: 0.7886 of the users' own order is kept, 1 is all of it, 0.4251 is no profile "
        "(more is better)"
    )
    shown = repr(index) + repr(PersonalisedSearch(profiles, index=index))
    assert "SearchIndex(n_documents=120" in shown
    assert not any(word in shown for word in ("lamp", "object", "u0"))


@pytest.mark.slow
def test_without_the_search_engine_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['tantivy'] = None\n"
        "from queryveil.errors import MissingExtra\n"
        "from queryveil.utility.search_index import SearchIndex\n"
        "try: SearchIndex.of()\nexcept MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "personalised search needs an extra: pip install 'queryveil[search]'"

"""Plink from a log or profiles to a release of groups: the house rules for groups, and what the manifest says."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil import Plink, Profiles, QueryLog, Taxonomy, read_profiles, read_release, verify
from queryveil.errors import BadParameter, TooFewUsers
from queryveil.formats import read_log
from queryveil.guarantees import Linkability
from queryveil.methods import Grouping
from queryveil.testing import log_of
from queryveil.testing.strategies import PLANTS, logs, profiles

PLANT = Taxonomy.from_pairs(PLANTS)
METHODS: list[dict[str, Any]] = [
    {"p": 0.4},
    {"p": 0.5, "strict": True},
    {"p": 0.3, "strict": True, "aversion": 4, "a": 0},
    {"p": 0.25, "representative": "union", "weights": "tfidf", "a": 2},
    {"p": 1.0, "weights": "count"},
]


def profiles_of_log(log: QueryLog) -> dict[str, dict[str, float]]:
    """Return binary profiles by hand: the words that the taxonomy of plants knows."""
    known = {name for pair in PLANTS for name in pair}
    found: dict[str, dict[str, float]] = {}
    for user, query in log.frame.select("user", "query").iter_rows():
        words = set(re.findall(r"\w+", query.lower())) & known
        found.setdefault(user, {}).update(dict.fromkeys(words, 1.0))
    return found


def as_dicts(data: Profiles) -> dict[str, dict[str, float]]:
    return {user: dict(zip(terms, weights, strict=True)) for user, terms, weights in data.frame.iter_rows()}


def check_house_rules(grouping: Grouping, people: dict[str, dict[str, float]], method: Plink) -> None:
    """Recompute everything from the membership and the profiles."""
    people = {user: terms for user, terms in people.items() if terms}
    release = grouping.release
    assert sorted(grouping.membership["user"].to_list()) == sorted(people), "every user with terms is in one group"
    assert release.groups.frame["group"].to_list() == list(range(1, release.groups.n_groups + 1))
    average = Fraction(sum(map(len, people.values())), max(1, len(people)))
    p = Fraction(str(method.p))
    largest = 0.0
    for number, n_members, size, terms, weights, holders in release.groups.frame.iter_rows():
        members = grouping.membership.filter(pl.col("group") == number)["user"].to_list()
        having = Counter(term for user in members for term in people[user])
        assert n_members == len(members) >= 1
        assert terms == sorted(terms)
        if method.strict:
            assert set(terms) == {term for term, n in having.items() if Fraction(n, n_members) <= p}
            assert holders == [having[term] for term in terms]
            assert size == sum(holders)
        else:
            assert set(terms) == set(having)
            assert holders is None
            assert size == sum(having.values())
            assert average / size <= p
        for term, weight in zip(terms, weights, strict=True):
            own = [people[user].get(term, 0.0) for user in members]
            expected = max(own) if method.representative == "union" else sum(own) / n_members
            if method.strict:
                expected = having[term] / n_members
            assert weight == pytest.approx(expected, abs=1e-6)
            largest = max(largest, having[term] / n_members)
    assert release.manifest.measures["largest_share"] == pytest.approx(largest, abs=1e-6)
    assert release.promise == method.promise == Linkability(p=method.p, strict=method.strict)


@pytest.mark.slow
@pytest.mark.parametrize("chosen", METHODS, ids=range(len(METHODS)))
@examples(40)
@given(data=profiles(max_users=16))
def test_a_release_of_any_profiles_keeps_the_house_rules(chosen: dict[str, Any], data: Profiles) -> None:
    method = Plink(taxonomy=PLANT, **chosen)
    people = as_dicts(data)
    n_people = sum(map(bool, people.values()))
    before = data.frame.clone()
    if 0 < n_people < 1 / method.p:
        with pytest.raises(TooFewUsers, match="try a larger p"):
            method.anonymize(data)
        return
    grouping = method.group(data)
    check_house_rules(grouping, people, method)
    assert data.frame.equals(before), "the input is untouched"
    assert grouping.release.manifest.removed["users_without_terms"] == len(people) - n_people
    verdict = verify(grouping.release, original=data)
    assert verdict.holds, verdict.in_words()
    manifest = msgspec.json.encode(grouping.release.manifest).decode()
    assert not any(text in manifest + repr(grouping) for text in (*PLANT.names, "user-"))


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
@examples(40)
@given(log=logs())
def test_a_release_of_any_log_keeps_the_house_rules(strict: bool, log: QueryLog) -> None:
    method = Plink(p=0.5, strict=strict, taxonomy=PLANT)
    people = profiles_of_log(log)
    n_people = sum(map(bool, people.values()))
    if n_people == 1:
        with pytest.raises(TooFewUsers, match="2 users with something to release are needed and there is 1"):
            method.anonymize(log)
        return
    grouping = method.group(log)
    check_house_rules(grouping, people, method)
    counts = grouping.release.manifest.counts
    assert (counts.n_rows_before, counts.n_users_before) == (log.n_rows, log.n_users)
    assert (counts.n_rows_after, counts.n_users_after) == (grouping.release.groups.n_groups, n_people)
    assert verify(grouping.release, original=log).holds


@examples(40)
@given(seed=st.integers(0, 99))
def test_a_seed_repeats_and_is_warned_of(seed: int) -> None:
    data = Profiles.from_dicts({str(i): {f"word{i % 7}": 1.0, f"other{i % 5}": 2.0} for i in range(20)})
    once, twice = (Plink(seed=seed, taxonomy=PLANT).group(data) for _ in range(2))
    assert once.release.groups.frame.equals(twice.release.groups.frame)
    assert once.membership.equals(twice.membership)
    assert any("seed" in warning for warning in once.release.manifest.warnings)
    assert "987654" not in repr(Plink(seed=987654))


def test_without_a_seed_groups_are_numbered_anew_each_time() -> None:
    data = Profiles.from_dicts({str(i): {f"word{i}": 1.0} for i in range(30)})
    runs = {tuple(Plink(p=0.5, taxonomy=PLANT).group(data).membership["group"].to_list()) for _ in range(5)}
    assert len(runs) > 1


def test_group_numbers_do_not_tell_the_order_in_which_groups_were_made() -> None:
    people = {str(i): {"elm": 1.0} for i in range(40)} | {"other": {f"word{j}": 1.0 for j in range(10)}}
    runs = [Plink(p=0.4, taxonomy=PLANT).group(Profiles.from_dicts(people)) for _ in range(12)]
    numbers = [run.membership.filter(pl.col("user") == "other")["group"].item() for run in runs]
    # The one who is unlike all others is the first or the second seed.
    assert max(numbers) > 2


def test_the_files_are_written_read_back_and_verified(tmp_path: Path) -> None:
    data = Profiles.from_dicts({str(i): {"elm": 1.0, f"word{i}": 0.5} for i in range(9)})
    for strict in (False, True):
        folder = Plink(p=0.4, strict=strict, taxonomy=PLANT).anonymize(data).save(tmp_path / str(strict))
        assert {path.name for path in folder.iterdir()} == {"manifest.json", "groups.jsonl"}
        back = read_release(folder)
        assert verify(back, original=data).holds
        assert ("elm" in (folder / "groups.jsonl").read_text()) is not strict


def test_strict_drops_what_all_share_and_counts_it() -> None:
    data = Profiles.from_dicts({str(i): {"elm": 1.0, f"word{i}": 0.5} for i in range(10)})
    release = Plink(p=0.5, strict=True, taxonomy=PLANT).anonymize(data)
    assert release.manifest.removed["terms_dropped"] == release.groups.n_groups == 5
    assert release.manifest.removed["term_occurrences_dropped"] == 10
    assert release.manifest.measures["largest_share_before_dropping"] == 1.0
    assert release.manifest.measures["largest_share"] == 0.5
    assert any("which terms of a group belong together" in warning for warning in release.manifest.warnings)
    assert not any("shared by more" in warning for warning in release.manifest.warnings)


def test_a_strict_group_whose_terms_are_all_shared_is_released_with_none(tmp_path: Path) -> None:
    data = Profiles.from_dicts({str(i): {"elm": 1.0} for i in range(4)})
    release = Plink(p=0.5, strict=True, taxonomy=PLANT).anonymize(data)
    assert release.groups.frame.select("members", "size", "terms").rows() == [(2, 0, [])] * 2
    assert release.manifest.measures["mean_similarity_to_group"] == 0
    assert verify(read_release(release.save(tmp_path / "release")), original=data).holds


def test_the_papers_promise_leaves_shared_terms_open_and_says_so() -> None:
    data = Profiles.from_dicts({str(i): {"elm": 1.0, f"word{i}": 1.0} for i in range(10)})
    manifest = Plink(p=0.5, taxonomy=PLANT).anonymize(data).manifest
    assert manifest.measures["largest_share"] == 1.0
    assert "in 5 groups a term is shared by more than p of the members; --strict drops such terms" in manifest.warnings
    assert any("the weight of a term is the share" in warning for warning in manifest.warnings)
    assert "largest_share_before_dropping" not in manifest.measures


def test_a_large_profile_is_never_a_group_of_one() -> None:
    people = {str(i): {"elm": 1.0} for i in range(9)} | {"large": {f"term{j}": 1.0 for j in range(9)}}
    for strict, fewest in ((False, 3), (True, 5)):
        release = Plink(p=0.4, strict=strict, taxonomy=PLANT).anonymize(Profiles.from_dicts(people))
        assert release.groups.frame["members"].to_numpy().min() >= fewest


def test_measures_are_those_of_the_paper() -> None:
    data = Profiles.from_dicts({"1": {"elm": 1, "word": 1}, "2": {"birch": 1}, "3": {"dahlia": 1, "amber": 1, "x": 1}})
    measures = Plink(p=0.5, taxonomy=PLANT, seed=1).anonymize(data).manifest.measures
    # The profiles have 2 terms on average; at p = 0.5 a group needs 4.
    assert measures["groups"] == 1
    assert measures["average_group_size"] == 3
    assert measures["average_linkability"] == measures["largest_linkability"] == round(2 / 6, 6)
    cosines = [2 / np.sqrt(2 * 6), 1 / np.sqrt(6), 3 / np.sqrt(3 * 6)]
    assert measures["mean_similarity_to_group"] == pytest.approx(np.mean(cosines), abs=1e-6)


def test_a_log_gives_words_that_wordnet_knows_without_stop_words() -> None:
    log = log_of({"1": ["the kittens zzyzx", "kittens in a basket"], "2": ["riding at it"], "3": ["zzyzx", "the"]})
    grouping = Plink(p=0.5).group(log)
    assert grouping.release.groups.frame["terms"].to_list() == [["basket", "kittens", "riding"]]
    assert grouping.membership["user"].to_list() == ["1", "2"]
    removed = grouping.release.manifest.removed
    assert removed["stop_word_occurrences"] == 6
    assert removed["term_occurrences_outside_the_taxonomy"] == 2
    assert removed["users_without_terms"] == 1


@pytest.mark.parametrize(
    ("weights", "expected"),
    [("binary", [0.5, 1.0]), ("count", [0.5, 2.0]), ("tfidf", [0.5 * (1 + np.log(2)), 2.0])],
)
def test_weights_are_counts_or_how_telling_a_term_is(weights: str, expected: list[float]) -> None:
    log = log_of({"1": ["kitten kitten", "basket kitten"], "2": ["kitten"]})
    release = Plink(p=0.5, weights=weights).anonymize(log)  # type: ignore[arg-type]
    assert release.groups.frame["terms"].to_list() == [["basket", "kitten"]]
    assert release.groups.frame["weights"].to_list()[0] == pytest.approx(expected, abs=1e-6)
    assert release.manifest.parameters["weights"] == weights


def test_programs_are_left_out_and_counted() -> None:
    start = datetime(2006, 3, 1)
    rows = [("bot", f"kitten {i}", start + timedelta(seconds=i)) for i in range(20)]
    rows += [(user, "riding basket", start) for user in ("1", "2")]
    log = QueryLog.from_frame(pl.DataFrame(rows, schema=["user", "query", "time"], orient="row"))
    release = Plink(p=0.5, bot_threshold=10).anonymize(log)
    assert (release.manifest.removed["bot_users"], release.manifest.removed["bot_rows"]) == (1, 20)
    assert "kitten" not in release.groups.frame["terms"].to_list()[0]
    everybody = Plink(p=0.4, bot_threshold=None).anonymize(log)
    assert any("kitten" in terms for terms in everybody.groups.frame["terms"].to_list())
    assert any("no times" in warning for warning in Plink().anonymize(log_of({})).manifest.warnings)


def test_nothing_at_all_is_fine() -> None:
    nothing = Profiles.from_dicts({})
    for data in (nothing, Profiles.from_dicts({"1": {}, "2": {}}), log_of({}), log_of({"1": ["the zzyzx"]})):
        for strict in (False, True):
            release = Plink(strict=strict).anonymize(data)
            assert release.groups.n_groups == 0
            assert release.manifest.measures["average_linkability"] == 0
            assert verify(release, original=data).holds


def test_weights_of_any_size_are_released() -> None:
    people = {"1": {"elm": 1e308, "fir": 1e-300}, "2": {"elm": 1e308, "oak": 1.0}, "3": {"elm": 5e-324}}
    for representative in ("centroid", "union"):
        method = Plink(p=0.5, representative=representative, taxonomy=PLANT)  # type: ignore[arg-type]
        release = method.anonymize(Profiles.from_dicts(people))
        weights = release.groups.frame["weights"].explode()
        assert weights.is_finite().all()
        assert (weights >= 1e-6).all()
        assert 0 <= release.manifest.measures["mean_similarity_to_group"] <= 1


@examples(40)
@given(data=profiles(min_users=6, max_users=16), p=st.sampled_from([0.3, 0.5, 1.0]), seed=st.integers(0, 9))
def test_a_strict_release_is_the_same_whatever_profiles_weigh_if_the_groups_are(
    data: Profiles, p: float, seed: int
) -> None:
    """Weights decide who is similar, and nothing of them leaves: all is holders, members and names."""
    if sum(map(bool, as_dicts(data).values())) < 1 / p:
        return
    grouping = Plink(p=p, strict=True, taxonomy=PLANT, seed=seed).group(data)
    held = as_dicts(data)
    for number, n_members, _, terms, weights, holders in grouping.release.groups.frame.iter_rows():
        users = grouping.membership.filter(pl.col("group") == number)["user"].to_list()
        for term, weight, n in zip(terms, weights, holders, strict=True):
            assert n == sum(term in held[user] for user in users)
            assert weight == pytest.approx(n / n_members, abs=5e-7)


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.1, 0.4])
def test_strict_holds_for_five_thousand_users_who_share_many_terms(p: float) -> None:
    rng = np.random.default_rng(0)
    popularity = 1 / np.arange(1, 61)
    drawn = [rng.choice(60, size=12, replace=False, p=popularity / popularity.sum()) for _ in range(5000)]
    data = Profiles.from_dicts({str(i): {f"word{t}": 1.0 for t in terms} for i, terms in enumerate(drawn)})
    method = Plink(p=p, strict=True, taxonomy=PLANT, seed=1)
    grouping = method.group(data)
    check_house_rules(grouping, as_dicts(data), method)
    removed = grouping.release.manifest.removed
    paper = Plink(p=p, taxonomy=PLANT, seed=1).anonymize(data).manifest
    assert paper.measures["largest_share"] == 1
    # Three in five of these people share the first word; with the closest together seven in ten terms would go.
    assert 0 < removed["term_occurrences_dropped"] < (0.45 if p == 0.4 else 0.8) * 60_000


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"p": 0}, "p must be above 0 and at most 1, got 0"),
        ({"p": 1.5}, "p must be above 0 and at most 1"),
        ({"p": float("nan")}, "p must be above 0 and at most 1"),
        ({"a": 4}, "a must be a whole number from 0 to 3, got 4"),
        ({"weights": "bm25"}, "weights must be binary, count or tfidf, got bm25"),
        ({"representative": "mean"}, "representative must be centroid or union, got mean"),
        ({"bot_threshold": 0}, "bot_threshold must be 1 or more"),
        ({"aversion": -1}, "aversion must be between 0 and 100, got -1"),
        ({"strict": True, "weights": "count"}, "weights must be binary if strict, where the only weight is the share"),
        ({"strict": True, "weights": "tfidf"}, "weights must be binary if strict, .*, got tfidf"),
        ({"strict": True, "representative": "union"}, "representative must be centroid if strict, .*, got union"),
        ({"seed": -1}, "seed must be 0 or more, got a negative number"),
    ],
)
def test_bad_settings_say_what_to_write_instead(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        Plink(**chosen)


def test_profiles_from_a_file_that_was_read_with_care_say_so(tmp_path: Path) -> None:
    path = tmp_path / "profiles.jsonl"
    path.write_bytes(b'{"user": 1, "terms": ["caf\xe9"]}\nnonsense\n{"user": 2, "terms": ["tea"]}\n')
    manifest = Plink(p=0.5).anonymize(read_profiles(path, bad_rows="skip")).manifest
    assert manifest.removed["bad_rows_skipped"] == 1
    assert any("Latin-1: 1" in warning for warning in manifest.warnings)
    assert manifest.parameters["weights"] == "given"


@pytest.mark.slow
@pytest.mark.real_data
def test_a_real_log_is_grouped_and_verified() -> None:
    path = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "excite-small.log"
    if not path.exists():
        pytest.skip("excite-small.log is not beside the checkout")
    log = read_log(path)
    for strict in (False, True):
        release = Plink(strict=strict).anonymize(log)
        assert verify(release, original=log).holds
        assert release.groups.n_groups > 10


def test_ways_to_write_a_term_are_one_term(tmp_path: Path) -> None:
    words = ["Café", "cafe\u0301", " CAFÉ ", "café"]
    data = Profiles.from_dicts({str(i): {word: 1.0, f"word{i}": 1.0} for i, word in enumerate(words)})
    release = Plink(p=0.5, strict=True, taxonomy=PLANT).anonymize(data)
    assert not any("café" in terms for terms in release.groups.frame["terms"].to_list())
    both = Profiles.from_dicts({"1": {"Elm": 0.5, "elm": 2.0}, "2": {"birch": 1.0}})
    release = Plink(p=0.5, representative="union", taxonomy=PLANT).anonymize(both)  # type: ignore[arg-type]
    assert release.groups.frame.select("size", "terms", "weights").rows() == [(2, ["birch", "elm"], [1.0, 2.0])]
    assert release.manifest.removed["terms_written_in_two_ways"] == 1
    assert verify(release, original=both).holds

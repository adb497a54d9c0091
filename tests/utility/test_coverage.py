"""What leaves as typed, the error of count queries, and that a manifest says the same as the measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_utility import plain_count
from tests.support.releases import released, released_tallies

from queryveil.data import Groups, QueryLog, Transactions
from queryveil.data.profiles import GROUPS_SCHEMA
from queryveil.errors import QueryveilError
from queryveil.methods import Clump, Kdelta, Km, Partition, Plink, Swap
from queryveil.pairing import Pair, pseudonymised
from queryveil.release import ColumnPolicy, Ids, Release
from queryveil.synthesis import synthesize
from queryveil.testing import food, log_of
from queryveil.testing.strategies import PLANTS, clicked_logs, logs
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import join_terms
from queryveil.utility import Measures, measure
from queryveil.utility.coverage import CountQueries, count_queries, counted_by_user

KEEP = ColumnPolicy(ids=Ids.KEEP)
LOG = {"u1": ["red wine", "Jaguar"], "u2": ["red wine", "jaguar"], "u3": ["red wine", "oak"], "u4": ["wine red"]}


def value(found: Measures, name: str) -> float:
    score = found.named(name)
    assert score is not None, name
    return score.value


def test_coverage_is_counted_by_hand() -> None:
    found = measure(log_of(LOG), released(log_of({"x": ["RED wine", "oak", "red"]})))
    # 3 rows of red wine and 1 of oak, of 7; of four queries red wine has three askers, jaguar two, the others one.
    assert value(found, "coverage_volume") == pytest.approx(4 / 7)
    assert value(found, "coverage_tail_5") == pytest.approx(2 / 4)
    # red, wine and oak leave as typed, of 3 times red, wine ... 11 words in all.
    assert value(found, "words_as_typed") == pytest.approx((2 + 1 + 1) / 11)


def test_a_query_of_five_users_is_not_of_the_tail_of_fewer_than_five() -> None:
    log = log_of({f"u{i}": ["red wine", "oak"][: 1 + (i < 4)] for i in range(5)})
    found = measure(log, released(log_of({"x": ["red wine"]})))
    assert [value(found, f"coverage_tail_{n}") for n in (5, 10)] == [0, 1 / 2]


def test_a_query_counts_as_covered_however_small_its_count_is() -> None:
    found = measure(log_of(LOG), released_tallies({"red wine": 1}))
    assert (value(found, "coverage_volume"), value(found, "rows_kept")) == pytest.approx((3 / 7, 1 / 7))


@examples(40)
@given(before=clicked_logs(), after=clicked_logs())
def test_coverage_is_that_of_the_definition(before: QueryLog, after: QueryLog) -> None:
    mine = list(zip(before.frame["user"], join_terms(before.frame["query"]), strict=True))
    asked, there = Counter(query for _, query in mine if query), set(join_terms(after.frame["query"]))
    askers = Counter(query for _, query in set(mine) if query)
    found = measure(before, released(after))
    whole = sum(asked.values())
    covered = sum(n for query, n in asked.items() if query in there)
    assert value(found, "coverage_volume") == pytest.approx(covered / whole if whole else 1)
    for n_users in (5, 10, 50):
        tail = {query for query, n in askers.items() if n < n_users}
        if tail:
            assert value(found, f"coverage_tail_{n_users}") == pytest.approx(len(tail & there) / len(tail))


def test_a_generalised_word_does_not_leave_as_typed() -> None:
    log, taxonomy = log_of({"u1": ["birch cedar"], "u2": ["elm cedar"], "u3": ["yew"]}), Taxonomy.from_pairs(PLANTS)
    found = measure(log, Km(k=2, m=2, taxonomy=taxonomy, columns=KEEP).anonymize(log), taxonomy=taxonomy)
    assert value(found, "words_as_typed") == pytest.approx(2 / 5)
    assert value(found, "log_size_kept") > value(found, "words_as_typed")


def test_an_answer_is_spread_over_the_words_below_what_was_generalised() -> None:
    log = log_of({"u1": ["apple"], "u2": ["orange"], "u3": ["banana"], "u4": ["beef"]})
    tree = food()
    release = Clump(k=2, taxonomy=tree, seed=1).anonymize(log)
    bags = [Counter(items) for items in release.transactions.frame["items"].to_list()]
    pair = Pair(log, release=release, taxonomy=tree)
    asked = counted_by_user(Pair.pseudonymised(log), seed=3)
    assert asked is not None
    assert pair.ancestors is not None

    def part(item: str, word: str) -> float:
        path = tree.names.gather(tree.ancestors(tree.find(word))).to_list()
        return (1.0 if item == word else 1 / tree.n_leaves[tree.find(item)]) if item in path else 0.0

    errors = []
    for words, answer in zip(asked.asked.to_lists(), asked.answers, strict=True):
        estimate = plain_count(bags, words=[asked.words[word] for word in words], part=part)
        errors.append(abs(estimate - answer) / max(1.0, answer))
    score = asked.measure(
        pair.after,
        vocabulary=pair.vocabulary,
        ancestors=pair.ancestors,
        people=np.ones(len(bags)),
        chance=np.ones(len(pair.after.terms)),
    )
    assert score.value == pytest.approx(np.mean(errors))
    assert score.value > 0
    assert value(measure(log, release, taxonomy=tree), "count_query_error") > 0


@examples(40)
@given(before=logs(), after=logs(), seed=st.integers(0, 5))
def test_count_queries_are_those_of_the_definition(before: QueryLog, after: QueryLog, seed: int) -> None:
    asked = counted_by_user(Pair.pseudonymised(before), seed=seed)
    pair = Pair(before, release=released(after))
    if asked is None:
        assert not any(join_terms(before.frame["query"]))
        return
    bags = [bags_of(log) for log in (before, after)]
    errors = []
    for words, answer in zip(asked.asked.to_lists(), asked.answers, strict=True):
        texts = [asked.words[word] for word in words]
        true, estimate = (plain_count(side, words=texts, part=lambda item, word: float(item == word)) for side in bags)
        assert answer == true >= 1
        errors.append(abs(estimate - true) / true)
    found = count_queries(pair, asked=asked, seed=seed)
    assert value(found, "count_query_error") == pytest.approx(np.mean(errors))


def bags_of(log: QueryLog) -> list[Counter[str]]:
    bags: dict[str, Counter[str]] = {}
    for user, query in zip(log.frame["user"], join_terms(log.frame["query"]), strict=True):
        bags.setdefault(user, Counter()).update(query.split())
    return list(bags.values())


def test_count_queries_ask_for_one_word_or_two_that_somebody_asked() -> None:
    log = synthesize(users=200, seed=4).log
    asked = counted_by_user(Pair.pseudonymised(log), seed=1)
    again = counted_by_user(Pair.pseudonymised(log), seed=1)
    assert isinstance(asked, CountQueries)
    assert again is not None
    assert set(asked.asked.lengths) == {1, 2}
    assert asked.answers.min() >= 1
    assert (asked.words.to_list(), asked.answers.tolist()) == (again.words.to_list(), again.answers.tolist())


def test_transactions_groups_and_counts_answer_count_queries_too() -> None:
    log = log_of({f"u{i}": ["kitten", "riding"] for i in range(4)})
    for release in (Plink(p=1.0, seed=1).anonymize(log), Clump(k=2, seed=1).anonymize(log), pseudonymised(log)):
        assert value(measure(log, release), "count_query_error") == 0
    assert value(measure(log, released_tallies({"kitten": 4, "riding": 4})), "count_query_error") > 0
    baskets = Transactions.from_frame({"items": [["apple", "beef"], ["apple", "beef"]]})
    same = Clump(k=2, taxonomy=food(), seed=1).anonymize(baskets)
    assert value(measure(baskets, same, taxonomy=food()), "count_query_error") == 0


@pytest.mark.parametrize(("holders", "both"), [(None, 4 * 0.75 * 0.75), ([2, 4], 2.0)])
def test_a_group_has_a_term_as_often_as_its_size_or_its_holders_say(holders: list[int] | None, both: float) -> None:
    log = log_of({"u1": ["kitten riding"], "u2": ["kitten riding"], "u3": ["riding"], "u4": ["riding"]})
    row = (1, 4, 6, ["kitten", "riding"], [1.0, 1.0], holders)
    data = Groups(frame=pl.DataFrame([row], schema=GROUPS_SCHEMA, orient="row"))
    manifest = Plink(p=1.0, seed=1).anonymize(log).manifest
    kitten, riding = (3.0, 3.0) if holders is None else (2.0, 4.0)
    estimates = {("kitten",): kitten, ("riding",): riding, ("kitten", "riding"): both}
    asked = counted_by_user(Pair.pseudonymised(log), seed=0)
    assert asked is not None
    errors = []
    for words, answer in zip(asked.asked.to_lists(), asked.answers, strict=True):
        texts = tuple(sorted(asked.words[word] for word in words))
        errors.append(abs(estimates[texts] - answer) / answer)
    found = measure(log, Release(data=data, manifest=manifest))
    assert value(found, "count_query_error") == pytest.approx(np.mean(errors))


METHODS: dict[str, Callable[[], Km | Kdelta | Swap | Clump | Partition | Plink]] = {
    "km": lambda: Km(k=2, m=2, columns=KEEP, seed=1),
    "km with a taxonomy": lambda: Km(k=2, m=2, taxonomy=Taxonomy.from_pairs(PLANTS), columns=KEEP, seed=1),
    "kdelta": lambda: Kdelta(k=2, columns=KEEP, seed=1),
    "swap": lambda: Swap(k=2, columns=KEEP, seed=1),
    "clump": lambda: Clump(k=2, taxonomy=Taxonomy.from_pairs(PLANTS), seed=1),
    "clump of queries": lambda: Clump(k=2, unit="query", taxonomy=Taxonomy.from_pairs(PLANTS), seed=1),  # type: ignore[arg-type]
    "clump2": lambda: Clump(k=2, dedupe=True, taxonomy=Taxonomy.from_pairs(PLANTS), seed=1),
    "partition": lambda: Partition(k=2, taxonomy=Taxonomy.from_pairs(PLANTS), seed=1),
    "plink": lambda: Plink(p=0.6, seed=1),
}


@pytest.mark.parametrize("method", METHODS)
@examples(15)
@given(log=clicked_logs(max_users=6))
def test_a_manifest_says_what_is_measured(method: str, log: QueryLog) -> None:
    if log.n_users < 2:
        return
    try:
        release = METHODS[method]().anonymize(log)
    except QueryveilError:
        return
    check(log, release)


def check(log: QueryLog, release: Release) -> None:
    manifest, taxonomy = release.manifest, Taxonomy.from_pairs(PLANTS)
    found = measure(log, release, taxonomy=None if manifest.method == "plink" else taxonomy)
    for name, said in manifest.measures.items():
        if (score := found.named(name)) is not None:
            assert score.value == pytest.approx(said, abs=0.01 if name == "ggd" else 1e-3), name
    counts, n_made_up = manifest.counts, manifest.changed.get("rows_added", 0)
    if found.named("rows_kept") is not None and counts.n_rows_before:
        kept = (counts.n_rows_after - n_made_up) / counts.n_rows_before
        assert value(found, "rows_kept") == pytest.approx(kept)
    if found.named("users_kept") is not None and counts.n_users_before:
        assert value(found, "users_kept") == pytest.approx(counts.n_users_after / counts.n_users_before)

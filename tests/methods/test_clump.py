"""Clump and Partition from a log or transactions to a release that is verified."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil import Clump, Partition, QueryLog, Taxonomy, TransactionAnonymity, Transactions, read_release, verify
from queryveil.data import Reading
from queryveil.data.rows import Rows
from queryveil.errors import BadParameter, BadRow
from queryveil.methods.clump.clump import Bags
from queryveil.testing import five_baskets, food, log_of
from queryveil.testing.strategies import PLANTS, logs

FOOD = food()
EXAMPLE = five_baskets()


def released(method: Clump | Partition) -> list[list[str]]:
    return sorted(sorted(items) for items in method.anonymize(EXAMPLE).transactions.frame["items"].to_list())


def test_the_papers_example_gives_the_papers_clusters_and_distortion() -> None:
    paper = Clump(k=2, taxonomy=FOOD, paper=True)
    assert released(paper) == [["beef", "food", "fruit"]] * 2 + [["chicken", "food"]] * 3
    assert paper.anonymize(EXAMPLE).manifest.measures["ggd"] == 6.57


def test_the_default_is_never_above_the_paper_on_the_example() -> None:
    assert Clump(k=2, taxonomy=FOOD).anonymize(EXAMPLE).manifest.measures["ggd"] <= 6.57


PLANT = Taxonomy.from_pairs(PLANTS)
METHODS = [
    Clump(k=2, taxonomy=PLANT),
    Clump(k=3, distinct=True, taxonomy=PLANT),
    Clump(k=2, dedupe=True, taxonomy=PLANT),
    Clump(k=2, paper=True, taxonomy=PLANT),
    Clump(k=2, unit="query", taxonomy=PLANT),  # type: ignore[arg-type]
    Partition(k=2, taxonomy=PLANT),
    Partition(k=3, taxonomy=PLANT),
]


def n_with_items(log: QueryLog, *, by_query: bool) -> int:
    known = {child for child, _ in PLANTS}
    rows = enumerate(log.frame.select("user", "query").iter_rows())
    words = [(str(row) if by_query else user, set(re.findall(r"\w+", query.lower()))) for row, (user, query) in rows]
    return len({owner for owner, mine in words if mine & known})


@pytest.mark.parametrize("method", METHODS, ids=range(len(METHODS)))
@examples(15)
@given(log=logs())
def test_a_release_of_any_log_keeps_the_promise_or_says_that_there_are_too_few(
    method: Clump | Partition, log: QueryLog
) -> None:
    by_query = method.unit == "query"
    n_transactions, n_people = n_with_items(log, by_query=by_query), n_with_items(log, by_query=False)
    if 0 < n_people < method.k:
        with pytest.raises(BadParameter, match="k must be"):
            method.anonymize(log)
        return
    release = method.anonymize(log)
    n_left_out = release.manifest.removed.get("transactions_of_too_few_people", 0)
    assert release.transactions.n_transactions == n_transactions - n_left_out
    assert release.manifest.counts.n_users_after == n_people
    assert release.promise == method.promise == TransactionAnonymity(k=method.k)
    verdict = verify(release, original=log, taxonomy=PLANT)
    assert verdict.holds, verdict.in_words()
    texts = {text for text in log.frame["query"] if len(text) > 6}
    assert not any(text in msgspec.json.encode(release.manifest).decode() for text in texts)


@pytest.mark.parametrize("method", [Clump(k=2, taxonomy=PLANT), Partition(k=2, taxonomy=PLANT)])
def test_what_the_reader_had_to_guess_is_warned_of(method: Clump | Partition, tmp_path: Path) -> None:
    log = replace(log_of({"1": ["birch"], "2": ["birch"]}), reading=Reading(n_latin1_rows=1, n_foreign_documents=2))
    release = read_release(method.anonymize(log).save(tmp_path / "release"))
    assert sum("Latin-1: 1" in each or "left out: 2" in each for each in release.manifest.warnings) == 2
    assert verify(release).holds


@examples(40)
@given(seed=st.integers(0, 99))
def test_a_seed_repeats(seed: int) -> None:
    log = log_of(
        {str(i): [f"{tree} {other}"] for i, tree in enumerate(["birch", "elm"] * 3) for other in ("fern", "elm")}
    )
    once, twice = (Clump(k=2, seed=seed, taxonomy=PLANT).anonymize(log) for _ in range(2))
    assert once.transactions.frame.equals(twice.transactions.frame)
    assert any("seed" in warning for warning in once.manifest.warnings)


def test_what_is_left_out_is_counted() -> None:
    log = log_of({"1": ["kitten zzyzx", "kitten"], "2": ["kittens dog"], "3": ["qwfpg"]})
    removed = Clump(k=2, distinct=True).anonymize(log).manifest.removed
    assert removed["words_outside_the_taxonomy"] == 2
    assert removed["duplicate_items"] == 1
    assert removed["transactions_without_items"] == 1


def test_a_transaction_may_be_a_query() -> None:
    log = log_of({"1": ["kitten", "dog"], "2": ["kitten", "dog"]})
    assert Clump(k=2, unit="query").anonymize(log).transactions.n_transactions == 4  # type: ignore[arg-type]
    assert Clump(k=2).anonymize(log).transactions.n_transactions == 2


@pytest.mark.parametrize("kind", [Clump, Partition])
def test_k_queries_of_one_person_are_no_crowd(kind: type[Clump] | type[Partition]) -> None:
    log = log_of({"1": ["kitten"] * 5, "2": ["dog"], "3": ["dog"]})
    release = kind(k=3, unit="query").anonymize(log)  # type: ignore[arg-type]
    manifest = release.manifest
    assert release.transactions.n_transactions == 3
    assert "kitten" not in set(release.transactions.frame["items"].explode())
    assert (manifest.counts.n_users_after, manifest.removed["transactions_of_too_few_people"]) == (3, 4)
    assert any("k people or more" in warning for warning in manifest.warnings)
    with pytest.raises(BadParameter, match="at most the number of people, 3"):
        kind(k=4, unit="query").anonymize(log)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(0, 9))
def test_nobody_is_twice_in_a_layer_and_nothing_is_in_two(people: list[int], seed: int) -> None:
    lengths = np.random.default_rng(seed).integers(1, 4, len(people))
    nodes = Rows.from_lists([[1] * n for n in lengths])
    bags = Bags(nodes=nodes, people=np.array(people, np.int32), removed={})
    layers = [layer.tolist() for layer in bags.layers(np.random.default_rng(seed))]
    assert sorted(row for layer in layers for row in layer) == list(range(len(people)))
    for layer in layers:
        assert len({people[row] for row in layer}) == len(layer)
    assert [len(layer) for layer in layers] == sorted(map(len, layers), reverse=True)


def test_the_files_are_written_read_back_and_verified(tmp_path: Path) -> None:
    folder = Clump(k=2, taxonomy=FOOD).anonymize(EXAMPLE).save(tmp_path / "release")
    assert {path.name for path in folder.iterdir()} == {"manifest.json", "transactions.parquet"}
    assert verify(read_release(folder), original=EXAMPLE, taxonomy=FOOD).holds


def test_an_item_outside_the_taxonomy_is_an_error_that_names_the_line() -> None:
    bags = Transactions.from_frame({"items": [["apple"], ["apple", "gravel"]]})
    with pytest.raises(BadRow, match="line 2: an item is outside the taxonomy") as caught:
        Clump(k=2, taxonomy=FOOD).anonymize(bags)
    assert "gravel" not in str(caught.value)


@pytest.mark.parametrize("method", [Clump(k=6, taxonomy=FOOD), Partition(k=6, taxonomy=FOOD)])
def test_k_larger_than_the_number_of_transactions_is_an_error(method: Clump | Partition) -> None:
    with pytest.raises(BadParameter, match="k must be"):
        method.anonymize(EXAMPLE)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [({"k": 1}, "k must be 2 or more, got 1"), ({"unit": "day"}, "unit must be user or query")],
)
def test_bad_settings_say_what_to_write_instead(settings_: dict[str, object], message: str) -> None:
    for kind in (Clump, Partition):
        with pytest.raises(BadParameter, match=message):
            kind(**settings_)  # type: ignore[arg-type]


def test_rows_do_not_come_in_the_order_of_the_original() -> None:
    bags = Transactions.from_frame({"items": [[name] for name in ("apple", "beef") for _ in range(50)]})
    items = Clump(k=2, taxonomy=FOOD).anonymize(bags).transactions.frame["items"].to_list()
    assert items != sorted(items)


@pytest.mark.slow
@pytest.mark.real_data
def test_a_benchmark_set_is_verified_at_every_k() -> None:
    path = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "bms-webview-1.txt"
    if not path.exists():
        pytest.skip("bms-webview-1.txt is not beside the checkout")
    from queryveil import read_transactions

    # A third of the set: what is shown of it, a true promise and less loss, needs no more.
    bags = read_transactions(path)
    bags = bags.with_frame(bags.frame.head(20_000))
    tree = Taxonomy.balanced(bags.frame["items"].explode(), fan_out=5)
    for k in (5, 50):
        release = Clump(k=k, taxonomy=tree).anonymize(bags)
        assert verify(release, original=bags, taxonomy=tree).holds
        assert release.manifest.measures["ggd"] < Partition(k=k, taxonomy=tree).anonymize(bags).manifest.measures["ggd"]


def test_frames_of_other_libraries_are_taken() -> None:
    frame = pl.DataFrame({"items": [["apple"], ["pear"]]}).to_pandas()
    assert Transactions.from_frame(frame).n_transactions == 2

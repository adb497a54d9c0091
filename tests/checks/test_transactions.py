"""Identical transactions, judged by hand-made near misses, by force, and against the original."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.transactions_by_force import verify_transactions_by_force

from queryveil.checks import Verdict, judge, verify, verify_transactions
from queryveil.data import TRANSACTIONS_SCHEMA, Format, Layout, QueryLog, Transactions
from queryveil.errors import BadInput, BadParameter
from queryveil.guarantees import Guarantee, KmAnonymity, TransactionAnonymity
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail, read_release
from queryveil.text.taxonomy import Taxonomy

KINDS = {"fruit": ["apple", "orange", "banana"], "meat": ["chicken", "beef"], "dairy": ["milk", "butter", "cheese"]}
FOOD = Taxonomy.from_pairs(
    [(kind, "food") for kind in KINDS] + [(item, kind) for kind, items in KINDS.items() for item in items]
)
BEFORE = [
    ["orange", "chicken", "beef"],
    ["banana", "beef", "cheese"],
    ["chicken", "milk", "butter"],
    ["apple", "chicken"],
    ["chicken", "beef"],
]
CLUMP = [["fruit", "beef", "food"]] * 2 + [["chicken", "food"]] * 3
TWO = TransactionAnonymity(k=2)


def baskets(items: list[list[str]]) -> Transactions:
    frame = pl.DataFrame({"id": [str(i) for i in range(1, len(items) + 1)], "items": items}, schema=TRANSACTIONS_SCHEMA)
    return Transactions(frame=frame)


def judged(items: list[list[str]], k: int = 2) -> Verdict:
    promise = TransactionAnonymity(k=k)
    fast, slow = verify_transactions(baskets(items), promise), verify_transactions_by_force(baskets(items), promise)
    assert fast == slow
    return fast


def test_k_identical_bags_keep_the_promise_and_one_less_breaks_it() -> None:
    assert judged([["tea", "milk"]] * 3, k=3).holds
    broken = judged([["tea", "milk"]] * 2, k=3)
    assert (broken.holds, broken.n_violations) == (False, 1)
    assert [(w.kind, w.size, w.support, w.needed, w.rows) for w in broken.witnesses] == [
        ("transaction", 2, 2, 3, (1, 2))
    ]


def test_the_order_of_items_does_not_matter() -> None:
    assert judged([["tea", "milk", "tea"], ["tea", "tea", "milk"]]).holds


def test_the_same_set_with_other_numbers_is_another_bag() -> None:
    assert judged([["tea", "milk"], ["tea", "milk", "milk"]]).n_violations == 2
    assert not judged([["tea", "tea", "milk"], ["tea", "milk", "milk"]]).holds


def test_a_subset_is_another_bag() -> None:
    assert judged([["tea"], ["tea"], ["tea", "milk"]]).n_violations == 1


def test_items_are_never_mixed_up_by_what_joins_them() -> None:
    for one, other in ((["a b"], ["a", "b"]), (["a|b"], ["a", "b"]), (["a", "bc"], ["ab", "c"]), (["A"], ["a"])):
        assert judged([one, other]).n_violations == 2


def test_an_empty_transaction_is_a_bag_like_any_other() -> None:
    assert judged([[], []]).holds
    assert judged([[], ["tea"], ["tea"]]).n_violations == 1
    assert judged([]).holds


def test_violations_are_distinct_bags_and_the_smallest_are_shown() -> None:
    verdict = judged([["a"] * size for size in range(1, 14)] + [["b"]] * 2, k=3)
    assert verdict.n_violations == 14
    assert [w.size for w in verdict.witnesses] == [1, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert (verdict.n_users, verdict.n_checked_users) == (15, 15)


@given(
    st.lists(st.lists(st.sampled_from("abc"), max_size=3), max_size=20),
    st.integers(2, 4),
    st.integers(1, 3),
)
def test_the_fast_checker_agrees_with_the_definition(items: list[list[str]], k: int, copies: int) -> None:
    event(f"holds: {judged(items * copies, k).holds}")


def test_a_verdict_holds_no_item_unless_it_is_asked_to_show_them() -> None:
    data = baskets([["quartz", "amber"], ["opal"], ["opal"]])
    verdict = verify_transactions(data, TWO, original=baskets([["jade"]]), taxonomy=FOOD)
    said = [repr(verdict), str(verdict.to_dict()), verdict.in_words(), *(w.in_words() for w in verdict.witnesses)]
    assert not any(word in text for text in said for word in ("quartz", "amber", "opal", "jade"))
    assert "amber + quartz: a bag of 2 items is held by 1 transaction, 2 are needed (row 1)" in verdict.show(data)
    with pytest.raises(BadInput, match="not the log that was judged"):
        verdict.show(baskets([]))
    held = verify_transactions(baskets([["a"]] * 2), TWO).in_words()
    assert held == "2-anonymity of transactions holds for 2 transactions."


def against(after: list[list[str]], before: list[list[str]] = BEFORE) -> list[tuple[str, int, int, int]]:
    """Return what is found beyond the promise itself: kind, size, and how many where how many were."""
    verdict = verify_transactions(baskets(after), TWO, original=baskets(before), taxonomy=FOOD)
    found = [w for w in verdict.witnesses if w.kind != "transaction"]
    assert verdict.n_violations == judged(after).n_violations + len(found)
    return [(w.kind, w.size, w.support, w.needed) for w in found]


def test_the_example_of_the_paper_invents_nothing() -> None:
    assert against(CLUMP) == []
    assert against([["fruit", "meat"]] * 2 + [["food"]] * 3) == []
    assert against(BEFORE) == []
    assert against([]) == []


def test_an_item_that_moves_to_another_branch_is_invented() -> None:
    assert against([["dairy", "chicken", "beef"], *BEFORE[1:]]) == [("invented_items", 1, 4, 3)]


def test_an_item_that_moves_down_is_invented_once_and_not_at_every_node_above() -> None:
    assert against([["orange", "orange"]]) == [("invented_items", 1, 2, 1)]
    assert against([["fruit"] * 4]) == [("invented_items", 1, 4, 3)]


def test_one_item_too_many_at_the_root_is_found() -> None:
    assert against([["food"] * 13]) == []
    assert against([["food"] * 14]) == [("invented_items", 0, 14, 13), ("invented_items", 1, 14, 13)]


def test_an_item_that_nobody_knows_is_invented() -> None:
    assert against([["quartz", "quartz"]]) == [("invented_items", 1, 2, 0)]


def test_an_item_of_the_original_that_the_taxonomy_lacks_may_stay_but_not_become_more() -> None:
    before = [["quartz", "apple"], ["apple"]]
    assert against([["quartz"], ["apple"]], before) == []
    assert against([["quartz"], ["quartz"]], before) == [("invented_items", 1, 2, 1)]


def test_more_transactions_or_items_than_before_are_invented_even_without_a_taxonomy() -> None:
    assert against([[] for _ in range(6)]) == [("invented_transactions", 0, 6, 5)]
    verdict = verify_transactions(baskets([["x"] * 7] * 2), TWO, original=baskets(BEFORE))
    assert [(w.kind, w.support, w.needed) for w in verdict.witnesses] == [("invented_items", 14, 13)]
    assert "without the taxonomy only the numbers" in verdict.notes[0]


def test_a_word_of_the_original_stands_where_the_taxonomy_finds_it() -> None:
    before = [["Apple"], ["ORANGE"]]
    assert against([["fruit"], ["fruit"]], before) == []
    assert against([["Apple"], ["ORANGE"]], before) == []
    assert against([["BANANA"]], before) == [("invented_items", 1, 1, 0)]


LEAVES = [item for items in KINDS.values() for item in items]


@examples(40)
@given(st.lists(st.lists(st.tuples(st.sampled_from(LEAVES), st.integers(0, 3)), max_size=4), max_size=6))
def test_moving_up_and_leaving_out_invents_nothing(moves: list[list[tuple[str, int]]]) -> None:
    after = []
    for row in moves:
        paths = [(FOOD.ancestors(FOOD.find(item)), steps) for item, steps in row]
        after.append([str(FOOD.names[path[steps]]) for path, steps in paths if steps < len(path)])
    assert against(after, [[item for item, _ in row] for row in moves]) == []


@examples(40)
@given(
    st.lists(st.lists(st.sampled_from(FOOD.names.to_list()), max_size=3), max_size=4),
    st.lists(st.lists(st.sampled_from(FOOD.names.to_list()), max_size=3), max_size=4),
)
def test_whatever_has_more_below_some_node_is_found(after: list[list[str]], before: list[list[str]]) -> None:
    def below(rows: list[list[str]], node: int) -> int:
        return sum(node in FOOD.ancestors(FOOD.find(item)) for row in rows for item in row)

    is_more = any(below(after, node) > below(before, node) for node in range(FOOD.n_nodes))
    event(f"more: {is_more}")
    assert bool(against(after, before)) == (is_more or len(after) > len(before))


def release_of(data: QueryLog | Transactions, promise: Guarantee) -> Release:
    counts = Counts(n_rows_before=0, n_rows_after=data.n_rows, n_users_before=data.n_rows, n_users_after=data.n_rows)
    columns = ColumnReport(ids=Ids.FRESH, time=TimeDetail.DROP)
    manifest = Manifest(method="by hand", promise=promise, parameters={}, counts=counts, removed={}, columns=columns)
    return Release(data=data, manifest=manifest)


@pytest.mark.parametrize("log_format", list(Format))
def test_a_release_of_transactions_is_written_read_and_judged(tmp_path: Path, log_format: Format) -> None:
    layout = Layout(format=log_format, compression="" if log_format is Format.PARQUET else "gz")
    data = Transactions(frame=baskets(CLUMP).frame, layout=layout)
    folder = release_of(data, TWO).save(tmp_path / "out")
    names = {file.name.partition(".")[0] for file in folder.iterdir()}
    back = read_release(folder)
    assert names == {"manifest", "transactions"}
    assert back.transactions.frame.equals(data.frame)
    assert back.promise == TWO
    assert verify(folder).holds
    assert verify(folder, original=baskets(BEFORE), taxonomy=FOOD).holds
    assert not verify(folder, original=baskets(BEFORE[1:]), taxonomy=FOOD).holds


def test_the_original_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "before.txt").write_text("\n".join(" ".join(row) for row in BEFORE))
    assert verify(release_of(baskets(CLUMP), TWO), original=tmp_path / "before.txt", taxonomy=FOOD).holds


def test_a_promise_is_judged_on_the_data_it_is_about() -> None:
    log = QueryLog.from_frame({"user": ["1"], "query": ["a"]})
    for data, promise in ((log, TWO), (baskets([]), KmAnonymity(k=2, m=1))):
        with pytest.raises(BadInput, match="this promise is about"):
            judge(data, promise)
        with pytest.raises(BadInput, match=r"this (release|promise)"):
            verify(release_of(data, promise))
    with pytest.raises(BadParameter, match="original must be a log"):
        verify(release_of(log, KmAnonymity(k=2, m=1)), original=baskets([]))
    assert judge(baskets(CLUMP), TWO).holds


def test_the_original_may_be_a_log_whose_users_are_the_transactions() -> None:
    log = QueryLog.from_frame(
        {
            "user": [str(i) for i, row in enumerate(BEFORE) for _ in row],
            "query": [item for row in BEFORE for item in row],
        }
    )
    assert verify(release_of(baskets(CLUMP), TWO), original=log, taxonomy=FOOD).holds
    fewer = log.with_frame(log.frame.filter(log.frame["user"] != "0"))
    assert not verify(release_of(baskets(CLUMP), TWO), original=fewer, taxonomy=FOOD).holds

"""Partition over arrays: the paper's example, and against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_clump import ancestors, losses, plain_partition

from queryveil.data.rows import Rows
from queryveil.errors import BadParameter
from queryveil.methods.clump._clustering import Clustering, total_distortion
from queryveil.methods.clump._partition import balance, partition

Bags = list[tuple[int, ...]]

NAMES = ["food", "fruit", "meat", "dairy", "apple", "orange", "banana", "chicken", "beef", "milk", "butter", "cheese"]
FOOD = [-1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
MEALS = ["orange chicken beef", "banana beef cheese", "chicken milk butter", "apple chicken", "chicken beef"]


def bag(text: str) -> tuple[int, ...]:
    return tuple(NAMES.index(name) for name in text.split())


def run(bags: Bags, parent: list[int], *, k: int) -> Clustering:
    return partition(Rows.from_lists(bags), np.array(parent, np.int32), np.array(losses(parent)), k=k)


def classes(found: Clustering) -> list[tuple[list[int], frozenset[int]]]:
    return [
        (np.flatnonzero(found.cluster_of == c).tolist(), frozenset(items))
        for c, items in enumerate(found.released.to_lists())
    ]


@st.composite
def cases(draw: st.DrawFn, min_items: int = 1) -> tuple[list[int], Bags, int]:
    n = draw(st.integers(3, 16))
    parent = [-1] + [draw(st.integers(max(0, node - 4), node - 1)) for node in range(1, n)]
    some = st.lists(st.integers(0, n - 1), min_size=min_items, max_size=5).map(tuple)
    bags = draw(st.lists(some, min_size=2, max_size=20))
    return parent, bags, draw(st.integers(2, min(4, len(bags))))


def test_the_papers_five_meals_come_out_as_in_its_first_table() -> None:
    bags = [bag(meal) for meal in MEALS]
    found = run(bags, FOOD, k=2)
    assert classes(found) == [([0, 3], frozenset(bag("fruit meat"))), ([1, 2, 4], frozenset(bag("food")))]
    # Differs: the paper gives [2 x (2/7 + 1/7) + 1] + [3 x 1 + 5] as 8.85; these terms sum to 9.857.
    distortion = total_distortion(found, n_items=sum(map(len, bags)), loss=np.array(losses(FOOD)))
    assert distortion == pytest.approx((2 * (2 / 7 + 1 / 7) + 1) + (3 * 1 + 5))
    assert round(distortion, 2) == 9.86


@given(cases())
def test_classes_are_those_of_plain_python(case: tuple[list[int], Bags, int]) -> None:
    parent, bags, k = case
    assert classes(run(bags, parent, k=k)) == plain_partition(bags, parent, k=k)


@examples(40)
@given(cases(min_items=0))
def test_every_class_has_k_members_and_every_released_item_stands_over_an_item_of_its_own(
    case: tuple[list[int], Bags, int],
) -> None:
    parent, bags, k = case
    found = classes(run(bags, parent, k=k))
    assert sorted(t for members, _ in found for t in members) == list(range(len(bags)))
    for members, release in found:
        assert len(members) >= k
        for t in members:
            lowest = [next((a for a in ancestors(item, parent) if a in release), -1) for item in bags[t]]
            assert set(lowest) - {-1} == release
            assert release == frozenset() or -1 not in lowest


def test_an_inner_item_stays_beside_the_children_of_the_others() -> None:
    found = run([bag("fruit apple"), bag("apple fruit"), bag("apple"), bag("apple")], FOOD, k=2)
    assert classes(found) == [([0, 1], frozenset(bag("fruit apple"))), ([2, 3], frozenset(bag("apple")))]


def test_too_few_left_over_get_company_from_the_largest_part() -> None:
    found = run([bag("apple"), bag("apple"), bag("apple"), bag("milk")], FOOD, k=2)
    assert classes(found) == [([0, 1], frozenset(bag("apple"))), ([2, 3], frozenset(bag("food")))]


def test_where_no_part_can_spare_a_member_the_last_one_merges_back() -> None:
    large, left = balance([np.array([0, 1]), np.array([2, 3]), np.array([4])], k=2)
    assert [group.tolist() for group in large] == [[0, 1]]
    assert left.tolist() == [2, 3, 4]


def test_a_split_that_would_leave_too_few_behind_is_not_made() -> None:
    found = run([bag("apple"), bag("apple"), bag("milk")], FOOD, k=2)
    assert classes(found) == [([0, 1, 2], frozenset(bag("food")))]


def test_transactions_without_items_are_released_without_items() -> None:
    assert classes(run([(), bag("apple"), (), bag("apple")], FOOD, k=2)) == [
        ([0, 2], frozenset()),
        ([1, 3], frozenset(bag("apple"))),
    ]


def test_too_few_without_items_take_the_shortest_others_along() -> None:
    bags = [(), bag("apple"), bag("milk beef"), bag("milk beef")]
    assert classes(run(bags, FOOD, k=2)) == [([0, 1], frozenset()), ([2, 3], frozenset(bag("milk beef")))]


@pytest.mark.parametrize(("k", "message"), [(1, "k must be 2 or more"), (6, "k must be at most the number of")])
def test_a_k_out_of_range_is_a_clear_error(k: int, message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        run([bag(meal) for meal in MEALS], FOOD, k=k)

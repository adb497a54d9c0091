"""Least common generalisations: the paper's examples, and the compiled kernel against plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_clump import ancestors, losses, plain_ggd, plain_lcg

from queryveil.data.rows import Rows
from queryveil.methods.clump._greedy_kernels import close_upwards, lcg_rows

NAMES = ["food", "fruit", "meat", "dairy", "apple", "orange", "banana", "chicken", "beef", "milk", "butter", "cheese"]
PARENT = [-1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
MODES = st.sampled_from(["carry", "paper"])


def bag(text: str) -> tuple[int, ...]:
    return tuple(NAMES.index(name) for name in text.split())


def lcg_of(bags: list[tuple[int, ...]], parent: list[int], mode: str) -> tuple[int, ...]:
    up, together = np.array(parent, np.int32), Rows(np.array([0, len(bags)]), np.arange(len(bags)))
    closures = close_upwards(Rows.from_lists(bags), up)
    return tuple(lcg_rows(together, closures, up, np.zeros(len(up)), mode == "carry").values.tolist())


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    """Draw parents that come before their children."""
    n = draw(st.integers(2, 14))
    return [-1] + [draw(st.integers(max(0, node - 5), node - 1)) for node in range(1, n)]


@st.composite
def trees_with_bags(
    draw: st.DrawFn, min_bags: int = 1, max_bags: int = 5, min_items: int = 0
) -> tuple[list[int], list[tuple[int, ...]]]:
    parent = draw(trees())
    some = st.lists(st.integers(0, len(parent) - 1), min_size=min_items, max_size=7).map(tuple)
    return parent, draw(st.lists(some, min_size=min_bags, max_size=max_bags))


def test_the_loss_of_each_kind_of_food_is_that_of_the_paper() -> None:
    loss = losses(PARENT)
    assert [loss[NAMES.index(name)] for name in ("food", "fruit", "meat", "dairy", "beef")] == [
        1,
        2 / 7,
        1 / 7,
        2 / 7,
        0,
    ]


@pytest.mark.parametrize("mode", ["carry", "paper"])
@pytest.mark.parametrize(
    ("transactions", "expected"),
    [
        (["orange beef", "apple chicken beef"], "fruit beef"),
        (["orange milk", "apple cheese butter"], "fruit dairy"),
        (["orange apple", "orange banana milk", "banana apple beef"], "fruit fruit"),
        (["orange beef", "apple milk"], "fruit food"),
    ],
)
def test_the_lcgs_of_the_paper_come_out(transactions: list[str], expected: str, mode: str) -> None:
    bags = [bag(text) for text in transactions]
    assert Counter(lcg_of(bags, PARENT, mode)) == Counter(bag(expected))


def test_the_distortion_of_the_papers_third_example_is_eleven_sevenths() -> None:
    bags = [bag("orange beef"), bag("apple chicken beef")]
    assert plain_ggd(bags, lcg_of(bags, PARENT, "paper"), losses(PARENT)) == pytest.approx(11 / 7)


def test_carrying_keeps_what_the_paper_loses_to_the_root() -> None:
    bags = [bag("apple apple"), bag("apple orange")]
    assert Counter(lcg_of(bags, PARENT, "paper")) == Counter(bag("apple food"))
    assert Counter(lcg_of(bags, PARENT, "carry")) == Counter(bag("apple fruit"))


def test_the_papers_lemma_fails_for_its_own_lcg() -> None:
    """Joining one by one loses to the root what joining all at once would keep."""
    bags = [bag("apple apple"), bag("apple orange"), bag("orange orange")]
    assert plain_lcg(bags, PARENT, carry=False) == bag("fruit fruit")
    assert lcg_of(bags, PARENT, "paper") == bag("fruit food")


@given(trees_with_bags(), MODES)
def test_the_kernel_joins_as_plain_python_does(case: tuple[list[int], list[tuple[int, ...]]], mode: str) -> None:
    parent, bags = case
    one_by_one = tuple(sorted(bags[0], reverse=True))
    for items in bags[1:]:
        one_by_one = plain_lcg([one_by_one, items], parent, carry=mode == "carry")
    assert lcg_of(bags, parent, mode) == one_by_one


@examples(40)
@given(trees_with_bags())
def test_with_carry_joining_one_by_one_is_joining_all_at_once(case: tuple[list[int], list[tuple[int, ...]]]) -> None:
    parent, bags = case
    assert lcg_of(bags, parent, "carry") == plain_lcg(bags, parent, carry=True)


@given(trees_with_bags(min_bags=2, max_bags=2))
def test_carry_is_at_least_as_specific_as_the_paper_for_a_pair(case: tuple[list[int], list[tuple[int, ...]]]) -> None:
    parent, bags = case
    loss = losses(parent)
    carried, papers = lcg_of(bags, parent, "carry"), lcg_of(bags, parent, "paper")
    assert len(carried) == len(papers) == min(map(len, bags))
    assert is_generalisation(papers, carried, parent)
    assert sum(loss[node] for node in carried) <= sum(loss[node] for node in papers) + 1e-12


@given(trees_with_bags())
def test_carry_loses_no_more_than_the_paper_for_any_set(case: tuple[list[int], list[tuple[int, ...]]]) -> None:
    parent, bags = case
    carried = lcg_of(bags, parent, "carry")
    for papers in (lcg_of(bags, parent, "paper"), plain_lcg(bags, parent, carry=False)):
        assert len(carried) == len(papers)
        assert is_generalisation(papers, carried, parent)


@given(trees_with_bags(), MODES)
def test_every_item_of_an_lcg_stands_for_a_distinct_item_of_each_transaction(
    case: tuple[list[int], list[tuple[int, ...]]], mode: str
) -> None:
    parent, bags = case
    found = lcg_of(bags, parent, mode)
    assert all(is_generalisation(found, items, parent) for items in bags)


@given(trees_with_bags())
def test_under_every_node_a_carried_lcg_has_as_many_items_as_the_least_transaction(
    case: tuple[list[int], list[tuple[int, ...]]],
) -> None:
    parent, bags = case
    found = items_under(lcg_of(bags, parent, "carry"), parent)
    per_bag = [items_under(items, parent) for items in bags]
    assert found == Counter({n: m for n in range(len(parent)) if (m := min(counts[n] for counts in per_bag))})


@given(trees_with_bags())
def test_a_closure_counts_the_items_at_and_below_each_ancestor(case: tuple[list[int], list[tuple[int, ...]]]) -> None:
    parent, bags = case
    ptr, nodes, own, under = close_upwards(Rows.from_lists(bags), np.array(parent, np.int32))
    for t, items in enumerate(bags):
        mine = slice(ptr[t], ptr[t + 1])
        assert nodes[mine].tolist() == sorted({a for item in items for a in ancestors(item, parent)}, reverse=True)
        assert own[mine].tolist() == [items.count(node) for node in nodes[mine]]
        assert dict(zip(nodes[mine].tolist(), under[mine].tolist(), strict=True)) == items_under(items, parent)


def items_under(items: tuple[int, ...], parent: list[int]) -> Counter[int]:
    return Counter(above for item in items for above in ancestors(item, parent))


def is_generalisation(general: tuple[int, ...], special: tuple[int, ...], parent: list[int]) -> bool:
    """Return whether each item of `general` stands over an item of `special` of its own: the lowest choose first."""
    free = list(special)
    for node in sorted(general, reverse=True):
        below = [item for item in free if node in ancestors(item, parent)]
        if not below:
            return False
        # Any will do: whatever stands over one of them and comes later stands over all of them.
        free.remove(below[0])
    return True

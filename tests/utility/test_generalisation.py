"""What generalising cost, counted from the released and the original transactions alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.data import Transactions
from queryveil.errors import BadInput
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility import Score, average_length, average_level, ggd, ncp

KINDS = {
    "fruit": ["apple", "orange", "banana"],
    "meat": ["chicken", "beef"],
    "dairy": ["milk", "butter", "cheese"],
}
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
PARTITION = [["fruit", "meat"]] * 2 + [["food"]] * 3


def baskets(items: list[list[str]]) -> Transactions:
    return Transactions.from_frame({"items": items}) if items else Transactions.from_frame({"items": [[]]})


def distortion(after: list[list[str]], before: list[list[str]] = BEFORE) -> float:
    return ggd(baskets(after), original=baskets(before), taxonomy=FOOD).value


def test_the_clusters_of_the_paper_have_the_distortion_it_prints() -> None:
    assert distortion(CLUMP) == pytest.approx(2 * (2 / 7 + 0 + 1) + (3 * (0 + 1) + 1))
    assert round(distortion(CLUMP), 2) == 6.57


def test_the_partition_of_the_paper_has_the_distortion_of_its_formula_and_not_the_number_beside_it() -> None:
    # Paper: section IV prints 8.85 for this sum, which is one too little.
    assert distortion(PARTITION) == pytest.approx((2 * (2 / 7 + 1 / 7) + 1) + (3 * 1 + 5))
    assert round(distortion(PARTITION), 2) == 9.86


def test_neither_the_order_of_rows_nor_that_of_items_matters() -> None:
    assert distortion([row[::-1] for row in CLUMP[::-1]]) == pytest.approx(distortion(CLUMP))


def test_what_was_not_released_is_suppressed() -> None:
    assert distortion(BEFORE[:3]) == 4
    assert distortion([[]]) == 13


def test_the_distortion_per_item_lies_between_nothing_and_all() -> None:
    def per_item(after: list[list[str]]) -> float:
        return ncp(baskets(after), original=baskets(BEFORE), taxonomy=FOOD).value

    assert per_item(BEFORE) == 0
    assert per_item([["food"] * len(row) for row in BEFORE]) == 1
    assert per_item([[] for _ in BEFORE]) == 1
    assert per_item(CLUMP) == pytest.approx(distortion(CLUMP) / 13)


def test_length_and_level_are_averages_over_the_release_alone() -> None:
    assert average_length(baskets(CLUMP)).value == pytest.approx(12 / 5)
    assert average_length(baskets(PARTITION)).value == pytest.approx(7 / 5)
    assert average_level(baskets(CLUMP), taxonomy=FOOD).value == pytest.approx((2 * (2 + 3 + 1) + 3 * (3 + 1)) / 12)
    assert average_level(baskets(PARTITION), taxonomy=FOOD).value == pytest.approx((2 * (2 + 2) + 3 * 1) / 7)


def test_a_release_without_transactions_can_be_measured() -> None:
    nothing = baskets(CLUMP).with_frame(baskets(CLUMP).frame.clear())
    assert ggd(nothing, original=nothing, taxonomy=FOOD).value == 0
    assert ncp(nothing, original=nothing, taxonomy=FOOD).value == 0
    assert average_length(nothing).value == 0
    assert average_level(nothing, taxonomy=FOOD).value == 0


def test_an_item_outside_the_taxonomy_is_a_clear_error_without_the_item() -> None:
    with pytest.raises(BadInput, match="items that the taxonomy does not know") as caught:
        distortion([["quartz"]])
    assert "quartz" not in str(caught.value)


def test_a_release_larger_than_its_original_is_a_clear_error() -> None:
    with pytest.raises(BadInput, match="more items than the original"):
        distortion(BEFORE + BEFORE)


def test_a_score_says_what_it_is_and_which_way_is_better() -> None:
    score = average_length(baskets(CLUMP))
    about, family = "items that a transaction has left", "generalisation"
    assert score == Score(name="average_length", value=2.4, better="more", about=about, group=family)
    assert score.in_words() == "average length: 2.4 items that a transaction has left (more is better)"
    assert ggd(baskets(CLUMP), original=baskets(BEFORE), taxonomy=FOOD).better == "less"


LEAVES = [item for items in KINDS.values() for item in items]


@examples(40)
@given(st.lists(st.lists(st.tuples(st.sampled_from(LEAVES), st.integers(0, 3)), max_size=5), min_size=1, max_size=6))
def test_the_totals_are_the_sum_over_matched_transactions(rows: list[list[tuple[str, int]]]) -> None:
    """Each item moves up by as many steps as drawn; three are out of the tree, which suppresses it."""
    expected, after = 0.0, []
    for row in rows:
        kept = []
        for item, steps in row:
            path = FOOD.ancestors(FOOD.find(item))
            expected += float(FOOD.loss[path[steps]]) if steps < len(path) else 1
            kept += [str(FOOD.names[path[steps]])] if steps < len(path) else []
        after.append(kept)
    assert distortion(after, [[item for item, _ in row] for row in rows]) == pytest.approx(expected)

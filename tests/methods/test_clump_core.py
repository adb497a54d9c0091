"""Clump over arrays: the paper's example, algorithm 1 against plain Python, and what refinement must keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_clump import ancestors, losses, plain_clump, plain_ggd, plain_lcg

from queryveil.data import Floats, Int32s
from queryveil.data.rows import Rows, group
from queryveil.errors import BadParameter
from queryveil.methods.clump import _clustering
from queryveil.methods.clump._clustering import (
    Algorithm,
    Clustering,
    clump,
    cost,
    gather_near,
    refine_clusters,
    total_distortion,
    vectors_of,
    without_duplicates,
)
from queryveil.methods.clump._exchange_kernels import WORK_ROWS, exchange
from queryveil.methods.clump._gather_kernels import split
from queryveil.methods.clump._greedy_kernels import close_upwards

Bags = list[tuple[int, ...]]

NAMES = ["food", "fruit", "meat", "dairy", "apple", "orange", "banana", "chicken", "beef", "milk", "butter", "cheese"]
FOOD = [-1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
MEALS = ["orange chicken beef", "banana beef cheese", "chicken milk butter", "apple chicken", "chicken beef"]
PAPER: dict[str, Any] = {"carry": False, "by_rise": False, "refine": False}


def bag(text: str) -> tuple[int, ...]:
    return tuple(NAMES.index(name) for name in text.split())


def arrays(bags: Bags, parent: list[int]) -> tuple[Rows[np.int32], Int32s, Floats]:
    return Rows.from_lists(bags), np.array(parent, np.int32), np.array(losses(parent))


def run(bags: Bags, parent: list[int], *, k: int, seed: int = 0, **settings: Any) -> Clustering:
    rng = np.random.default_rng(seed)
    return clump(*arrays(bags, parent), k=k, algorithm=Algorithm(**settings), rng=rng)


def distortion(found: Clustering, bags: Bags, parent: list[int]) -> float:
    return total_distortion(found, n_items=sum(map(len, bags)), loss=np.array(losses(parent)))


def distortion_of_run(bags: Bags, parent: list[int], **settings: Any) -> float:
    return distortion(run(bags, parent, **settings), bags, parent)


def releases(found: Clustering) -> list[tuple[int, ...]]:
    return [tuple(items) for items in found.released.to_lists()]


def as_sets(found: Clustering) -> dict[frozenset[int], tuple[int, ...]]:
    """Return the release of each set of transactions, numbered from 1 as in the paper."""
    return {
        frozenset((np.flatnonzero(found.cluster_of == c) + 1).tolist()): tuple(sorted(release))
        for c, release in enumerate(releases(found))
    }


@st.composite
def cases(draw: st.DrawFn, max_bags: int = 14) -> tuple[list[int], Bags, int]:
    n = draw(st.integers(3, 16))
    parent = [-1] + [draw(st.integers(max(0, node - 4), node - 1)) for node in range(1, n)]
    bags = draw(st.lists(st.lists(st.integers(0, n - 1), max_size=6).map(tuple), min_size=2, max_size=max_bags))
    return parent, bags, draw(st.integers(2, min(5, len(bags))))


def made_up(n_rows: int, *, seed: int = 0) -> tuple[list[int], Bags]:
    """Make transactions of uneven length over a tree of uneven depth."""
    rng = np.random.default_rng(seed)
    parent = [-1] + [int(rng.integers(max(0, node - 40), node)) for node in range(1, 300)]
    bags = [tuple(rng.choice(300, size=1 + rng.geometric(0.1)).tolist()) for _ in range(n_rows)]
    return parent, bags


def test_the_papers_five_meals_come_out_as_in_its_second_table() -> None:
    bags = [bag(meal) for meal in MEALS]
    found = run(bags, FOOD, k=2, **PAPER)
    assert as_sets(found) == {
        frozenset({1, 2}): tuple(sorted(bag("fruit beef food"))),
        frozenset({3, 4, 5}): tuple(sorted(bag("chicken food"))),
    }
    assert round(distortion(found, bags, FOOD), 2) == 6.57


def test_the_default_is_no_worse_on_the_papers_five_meals() -> None:
    bags = [bag(meal) for meal in MEALS]
    assert distortion_of_run(bags, FOOD, k=2) <= distortion_of_run(bags, FOOD, k=2, **PAPER)


@given(cases(), st.integers(1, 4), st.booleans(), st.booleans())
def test_algorithm_1_assigns_as_plain_python_does(
    case: tuple[list[int], Bags, int], r: int, carry: bool, by_rise: bool
) -> None:
    parent, bags, k = case
    found = run(bags, parent, k=k, r=r, carry=carry, by_rise=by_rise, refine=False)
    expected = plain_clump(bags, parent, k=k, r=r, carry=carry, by_rise=by_rise)
    assert [np.flatnonzero(found.cluster_of == c).tolist() for c in range(found.released.n_rows)] == [
        sorted(members) for members, _ in expected
    ]
    assert releases(found) == [release for _, release in expected]
    loss = losses(parent)
    assert distortion(found, bags, parent) == pytest.approx(
        sum(plain_ggd([bags[t] for t in members], release, loss) for members, release in expected)
    )


@given(cases(), st.integers(0, 3))
def test_every_cluster_has_k_members_and_releases_their_lcg(case: tuple[list[int], Bags, int], seed: int) -> None:
    parent, bags, k = case
    found = run(bags, parent, k=k, seed=seed)
    assert np.bincount(found.cluster_of, minlength=found.released.n_rows).min() >= k
    for c, release in enumerate(releases(found)):
        members = [bags[t] for t in np.flatnonzero(found.cluster_of == c)]
        assert release == plain_lcg(members, parent, carry=True)


@given(cases(), st.integers(0, 3))
def test_the_default_is_never_above_the_paper_nor_above_algorithm_1(
    case: tuple[list[int], Bags, int], seed: int
) -> None:
    parent, bags, k = case
    best = distortion_of_run(bags, parent, k=k, seed=seed)
    assert best <= distortion_of_run(bags, parent, k=k, **PAPER) + 1e-9
    assert best <= distortion_of_run(bags, parent, k=k, refine=False) + 1e-9


@given(cases(), st.integers(0, 3))
def test_gathering_and_swapping_keep_k_and_swapping_never_adds_distortion(
    case: tuple[list[int], Bags, int], seed: int
) -> None:
    parent, bags, k = case
    items, parents, loss = arrays(bags, parent)
    rng = np.random.default_rng(seed)
    vectors = vectors_of(close_upwards(items, parents), parents, loss, at_least=k)
    gathered = gather_near(vectors, k=k, rng=rng)
    refined = refine_clusters(gathered, vectors, k=k, rng=rng)
    for cluster_of in (gathered, refined):
        assert np.bincount(cluster_of).min() >= k
    assert plain_total(refined, bags, parent) <= plain_total(gathered, bags, parent) + 1e-9


@examples(40)
@given(cases(), st.integers(0, 5))
def test_swapping_reports_the_gain_it_makes_and_stops_where_no_single_swap_or_move_gains(
    case: tuple[list[int], Bags, int], seed: int
) -> None:
    parent, bags, k = case
    items, parents, loss = arrays(bags, parent)
    # A tree with a single leaf loses nothing anywhere: there is nothing to refine.
    assume(loss[0] == 1)
    v = vectors_of(close_upwards(items, parents), parents, loss, at_least=1)
    n_clusters = len(bags) // k
    before = np.random.default_rng(seed).permutation(np.arange(len(bags)) % n_clusters).astype(np.int32)
    after = before.copy()
    work = np.zeros((2, WORK_ROWS, len(v.weight)), np.int32)
    gain = exchange(np.arange(n_clusters), np.array([0, n_clusters]), group(before, n_clusters), v, k, work, after)
    total = plain_total(after, bags, parent)
    assert plain_total(before, bags, parent) - total == pytest.approx(gain, abs=1e-6)
    for a in range(len(bags)):
        for b in range(a):
            swapped = after.copy()
            swapped[[a, b]] = after[[b, a]]
            assert plain_total(swapped, bags, parent) >= total - 1e-6
        if (after == after[a]).sum() > k:
            for c in set(after.tolist()):
                moved = after.copy()
                moved[a] = c
                assert plain_total(moved, bags, parent) >= total - 1e-6
    assert not work[:, 0].any()


def plain_total(cluster_of: Int32s, bags: Bags, parent: list[int]) -> float:
    loss, total = losses(parent), 0.0
    for c in set(cluster_of.tolist()):
        members = [bags[t] for t in np.flatnonzero(cluster_of == c)]
        total += plain_ggd(members, plain_lcg(members, parent, carry=True), loss)
    return total


def test_a_cluster_of_more_members_than_leavers_still_counts_its_gains_right() -> None:
    parent, bags = made_up(60)
    items, parents, loss = arrays(bags, parent)
    v = vectors_of(close_upwards(items, parents), parents, loss, at_least=1)
    before = (np.arange(60) % 3).astype(np.int32)
    after = before.copy()
    work = np.zeros((1, WORK_ROWS, len(v.weight)), np.int32)
    gain = exchange(np.arange(3), np.array([0, 3]), group(before, 3), v, 15, work, after)
    assert gain > 0
    assert np.bincount(after).min() >= 15
    # A member that is not among the leavers is judged as if nothing were gained by its leaving: the gain is a floor.
    assert plain_total(before, bags, parent) - plain_total(after, bags, parent) >= gain - 1e-6


def test_refinement_lowers_the_distortion_by_a_third_on_uneven_transactions() -> None:
    parent, bags = made_up(400)
    assert distortion_of_run(bags, parent, k=5) < 0.67 * distortion_of_run(bags, parent, k=5, **PAPER)


def test_large_sets_skip_the_comparison_and_keep_k(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_clustering, "COMPARE_UP_TO", 0)
    parent, bags = made_up(403)
    found = run(bags, parent, k=5)
    assert found.released.n_rows <= 80
    assert np.bincount(found.cluster_of).min() >= 5
    assert distortion(found, bags, parent) == pytest.approx(plain_total(found.cluster_of, bags, parent))


def test_a_seed_repeats_the_outcome() -> None:
    parent, bags = made_up(300)
    first, second = run(bags, parent, k=4, seed=7), run(bags, parent, k=4, seed=7)
    assert first.cluster_of.tolist() == second.cluster_of.tolist()
    assert releases(first) == releases(second)


def test_blocks_hold_every_row_once_in_steps_of_k() -> None:
    parent, bags = made_up(403)
    items, parents, loss = arrays(bags, parent)
    v = vectors_of(close_upwards(items, parents), parents, loss, at_least=1)
    rows, ends = split(np.arange(403), v, 50, 7, np.random.default_rng(1).random(9))
    assert sorted(rows.tolist()) == list(range(403))
    assert ends[0] == 0
    assert ends[-1] == 403
    assert (np.diff(ends) <= 50).all()
    assert (np.diff(ends)[:-1] % 7 == 0).all()


def test_those_left_over_of_a_kind_join_their_kind_in_clusters_of_more_than_k() -> None:
    """Clusters of exactly 3 would have to mix kinds: 4 apples, 4 oranges, 4 milks."""
    bags = [bag(kind) for kind in ("apple", "orange", "milk") for _ in range(4)]
    found = run(bags, FOOD, k=3)
    assert np.bincount(found.cluster_of).tolist() == [4, 4, 4]
    assert distortion(found, bags, FOOD) == 0


def test_equal_transactions_end_together_at_no_cost() -> None:
    parent, some = made_up(8, seed=3)
    bags = [items for items in some for _ in range(4)]
    own_loss = sum(losses(parent)[item] for items in bags for item in items)
    assert distortion_of_run(bags, parent, k=4) == pytest.approx(own_loss)


def test_transactions_without_items_are_released_without_items() -> None:
    found = run([(), (), (4,), (4,)], FOOD, k=2)
    assert sorted(releases(found)) == [(), (4,)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 6}, "k must be at most the number of transactions, 5, got 6"),
        ({"k": 1}, "k must be 2 or more, got 1"),
        ({"k": 2, "r": 0}, "r must be 1 or more, got 0"),
        ({"k": 2, "carry": False}, "refine must be off with the paper's LCG"),
    ],
)
def test_a_setting_out_of_range_is_a_clear_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        run([bag(meal) for meal in MEALS], FOOD, **settings)


def test_without_duplicates_each_item_is_released_once_and_the_rest_counts_as_suppressed() -> None:
    bags = [bag("orange apple"), bag("orange banana milk"), bag("banana apple beef")]
    found = run(bags, FOOD, k=3, **PAPER)
    assert releases(found) == [bag("fruit fruit")]
    released = without_duplicates(found.released)
    assert released.to_lists() == [list(bag("fruit"))]
    assert distortion(replace(found, released=released), bags, FOOD) == pytest.approx(3 * 2 / 7 + 5)


@examples(30)
@given(cases())
def test_the_measures_are_those_of_their_definitions(case: tuple[list[int], Bags, int]) -> None:
    parent, bags, k = case
    found = run(bags, parent, k=k)
    bagged, _, loss = arrays(bags, parent)
    level = np.array([len(list(ancestors(node, parent))) for node in range(len(parent))], np.int32)
    measured = cost(found, bagged, loss=loss, level=level)
    mine = [releases(found)[c] for c in found.cluster_of]
    n_items, n_released = max(1, len(bagged.values)), max(1, sum(map(len, mine)))
    assert measured.distortion == pytest.approx(plain_total(found.cluster_of, bags, parent))
    assert measured.ncp == pytest.approx(
        sum(sum(loss[g] for g in release) + len(b) - len(release) for b, release in zip(bags, mine, strict=True))
        / n_items
    )
    assert measured.average_length == pytest.approx(sum(map(len, mine)) / len(bags))
    assert measured.average_level == pytest.approx(sum(level[g] for release in mine for g in release) / n_released)

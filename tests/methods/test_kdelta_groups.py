"""Groups and counts of kdelta: D as a metric, arrays against plain Python, and what the better groups must keep."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement, pairwise
from math import gcd

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_kdelta import exact_counts, plain_groups, rounded_counts, user_distance

from queryveil.data.rows import Rows, group
from queryveil.methods.kdelta import _groups
from queryveil.methods.kdelta._equal import share_groups, shared_counts
from queryveil.methods.kdelta._group_kernels import choose_centroids, swap_users
from queryveil.methods.kdelta._groups import Grouping, form, improve, users_as_centroids
from queryveil.methods.kdelta._objects import Holdings, hold

Users = list[Counter[int]]
N_CELLS = 7


def users(*, min_size: int = 2, max_size: int = 14) -> st.SearchStrategy[Users]:
    one = st.lists(st.integers(0, N_CELLS - 1), min_size=1, max_size=12).map(Counter)
    return st.lists(one, min_size=min_size, max_size=max_size)


def held(counts: Users) -> Holdings:
    owner = [user for user, mine in enumerate(counts) for _ in range(mine.total())]
    cell = [cell for mine in counts for cell in mine.elements()]
    return hold(np.array(owner, np.int32), np.array(cell, np.int32), n_owners=len(counts), n_cells=N_CELLS)


def as_counters(holdings: Holdings) -> Users:
    pairs = pairwise(holdings.owner_cells.ptr)
    return [
        Counter(dict(zip(holdings.cells[a:b].tolist(), holdings.counts[a:b].tolist(), strict=True))) for a, b in pairs
    ]


def members(grouping: Grouping) -> list[list[int]]:
    return [np.flatnonzero(grouping.group_of == g).tolist() for g in range(grouping.centroids.n_owners)]


def centroids(grouping: Grouping) -> Users:
    return as_counters(grouping.centroids)


def n_edits(have: Holdings, want: Holdings) -> int:
    return sum(_groups.edits_between(have, want))


def test_users_of_disjoint_urls_are_at_distance_one_and_equal_shares_at_none() -> None:
    assert user_distance({"u": 2}, {"v": 5}) == 1
    assert user_distance({"u": 2, "v": 4}, {"u": 1, "v": 2}) == 0


@given(users(min_size=3, max_size=3))
def test_the_distance_of_users_is_a_metric(three: Users) -> None:
    x, y, z = three
    assert user_distance(x, x) == 0
    assert 0 <= user_distance(x, y) == user_distance(y, x) <= 1
    assert user_distance(x, z) <= user_distance(x, y) + user_distance(y, z)


@given(users(), st.integers(2, 5))
def test_arrays_and_plain_python_form_the_same_groups(counts: Users, k: int) -> None:
    if len(counts) < k:
        return
    found, wanted = form(held(counts), k=k), plain_groups(counts, k=k)
    assert members(found) == [sorted(mine) for mine in wanted]
    for centroid, mine in zip(centroids(found), wanted, strict=True):
        assert user_distance(centroid, counts[mine[0]]) == 0
        assert gcd(*centroid.values()) == 1


@examples(40)
@given(users(), st.integers(2, 5), st.integers(0, 3))
def test_arrays_and_plain_python_aim_at_the_same_counts(counts: Users, k: int, seed: int) -> None:
    if len(counts) < k:
        return
    have = held(counts)
    for grouping in (form(have, k=k), improve(have, form(have, k=k), rng=np.random.default_rng(seed))):
        exact, rounded = _groups.exact_counts(have, grouping), _groups.rounded_counts(have, grouping)
        left = _groups.distances_left(rounded, grouping)
        for user, mine in enumerate(counts):
            centroid = centroids(grouping)[grouping.group_of[user]]
            assert as_counters(exact)[user] == exact_counts(mine, centroid=centroid)
            assert as_counters(rounded)[user] == rounded_counts(mine, centroid=centroid)
            assert user_distance(as_counters(exact)[user], centroid) == 0
            assert abs(left[user] - float(user_distance(as_counters(rounded)[user], centroid))) < 1e-12


@examples(40)
@given(users(), st.integers(2, 5), st.sampled_from([0.1, 0.3, 0.5, 0.9]), st.booleans())
def test_near_counts_lie_half_the_distance_from_the_centroid(counts: Users, k: int, near: float, rounded: bool) -> None:
    if len(counts) < k:
        return
    have, rng = held(counts), np.random.default_rng(1)
    grouping = improve(have, form(have, k=k), rng=rng)
    found = _groups.near_counts(have, grouping, max_distance=near, rounded=rounded, rng=rng)
    exact = _groups.exact_counts(have, grouping)
    for user, mine in enumerate(as_counters(found)):
        assert float(user_distance(mine, centroids(grouping)[grouping.group_of[user]])) <= near / 2 + 1e-9
    if not rounded:
        assert found.n_rows.tolist() == exact.n_rows.tolist()
        assert n_edits(have, found) <= n_edits(have, exact)


@given(users(), st.integers(2, 5), st.integers(0, 3))
def test_better_groups_keep_k(counts: Users, k: int, seed: int) -> None:
    if len(counts) < k:
        return
    have = held(counts)
    better = improve(have, form(have, k=k), rng=np.random.default_rng(seed))
    assert np.bincount(better.group_of).min() >= k


@given(users(min_size=4, max_size=20), st.integers(2, 4), st.permutations(range(20)))
def test_swaps_save_what_they_say_and_leave_sizes(counts: Users, k: int, order: list[int]) -> None:
    have = held(counts)
    papers = form(have, k=k)
    group_of, found = papers.group_of.copy(), papers.centroids
    turns = np.array([user for user in order if user < len(counts)])
    members = group(group_of, found.n_owners)
    saved = swap_users(turns, group_of, members, have, have.n_rows, found)
    swapped = Grouping(group_of=group_of, centroids=found)
    assert (np.bincount(group_of) == np.bincount(papers.group_of)).all()
    before, after = (n_edits(have, _groups.exact_counts(have, grouping)) for grouping in (papers, swapped))
    assert before - after == saved >= 0
    assert saved > 0 or (group_of == papers.group_of).all()


def edits_towards(counts: Users, mine: list[int], centroid: Counter[int]) -> int:
    wanted = {y: Counter(exact_counts(counts[y], centroid=centroid)) for y in mine}
    return sum(((wanted[y] - counts[y]) + (counts[y] - wanted[y])).total() for y in mine)


@examples(40)
@given(users(), st.integers(2, 5))
def test_chosen_centroids_cost_what_they_say(counts: Users, k: int) -> None:
    if len(counts) < k:
        return
    have = held(counts)
    papers = form(have, k=k)
    found, cost = choose_centroids(group(papers.group_of, papers.centroids.n_owners), have, have.n_rows)
    chosen = centroids(Grouping(group_of=papers.group_of, centroids=found))
    assert all(gcd(*centroid.values()) == 1 for centroid in chosen)
    assert cost == sum(edits_towards(counts, mine, chosen[g]) for g, mine in enumerate(members(papers)))


def cost_of_one_group(counts: Users) -> int:
    have = held(counts)
    return choose_centroids(Rows(np.array([0, len(counts)]), np.arange(len(counts))), have, have.n_rows)[1]


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4).map(Counter), min_size=2, max_size=4))
def test_of_all_centroids_of_one_sum_the_cheapest_is_chosen(counts: Users) -> None:
    # All have four rows, so the sums 4, 2 and 1 are tried; with these, every way to fill four cells.
    ways = (Counter(way) for total in (4, 2, 1) for way in combinations_with_replacement(range(4), total))
    assert cost_of_one_group(counts) == min(edits_towards(counts, [*range(len(counts))], way) for way in ways)


def test_the_number_of_rows_is_the_nearest_multiple_and_the_smaller_of_two() -> None:
    have = held([Counter({0: 2, 1: 2}), Counter({0: 3}), Counter({0: 4}), Counter({2: 1})])
    grouping = Grouping(group_of=np.zeros(4, np.int32), centroids=users_as_centroids(have, np.array([0])))
    assert _groups.exact_counts(have, grouping).n_rows.tolist() == [4, 2, 4, 2]


@examples(40)
@given(users(max_size=20), st.integers(2, 4))
def test_without_additions_groups_keep_multiples_of_what_they_share(counts: Users, k: int) -> None:
    have = held(counts)
    group_of = share_groups(have, k=k)
    kept = as_counters(shared_counts(have, group_of))
    assert all(mine <= before for mine, before in zip(kept, counts, strict=True))
    for g in range(int(group_of.max(initial=-1)) + 1):
        mine = np.flatnonzero(group_of == g).tolist()
        assert len(mine) >= k
        assert all(kept[user].total() for user in mine)
        assert all(user_distance(kept[mine[0]], kept[user]) == 0 for user in mine)
    # Whoever is left over shares no cell with k-1 others who are.
    alone = Counter(cell for user in np.flatnonzero(group_of < 0).tolist() for cell in counts[user])
    assert max(alone.values(), default=0) < k


def test_without_additions_a_group_keeps_the_most_of_three_ways() -> None:
    def n_kept(*counts: dict[int, int]) -> int:
        have = held([Counter(mine) for mine in counts])
        return int(shared_counts(have, np.zeros(len(counts), np.int32)).counts.sum())

    assert n_kept({0: 2, 1: 3}, {0: 2, 1: 4}) == 10
    assert n_kept({0: 9, 1: 1}, {0: 9, 1: 1}) == 20
    assert n_kept({0: 9, 1: 1}, {0: 8, 1: 2}) == 18
    assert n_kept({0: 5, 1: 5, 2: 1}, {0: 4, 1: 4, 2: 2}) == 18
    assert n_kept({0: 1, 1: 2}, {0: 9, 1: 3}) == 10
    assert n_kept({0: 1}, {1: 1}) == 0

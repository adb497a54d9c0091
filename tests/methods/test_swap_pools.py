"""Pools: the paper's example, the rules one by one, and what no sequence of events may break."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_swap import Event, PlainPools, fold

from queryveil.errors import BadInput, BadParameter
from queryveil.guarantees import SwapAnonymity
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap.pools import N_POOLS, Pools, RandomNumbers

SPORTS = 14
WAITING = [("A", "tennis titles"), ("B", "monza formula1 tickets"), ("C", "champions league final")]
ARRIVING = ("D", "european soccer barcelona players")
USERS = ("ann", "bo", "cy", "di", "ed", "flo")
TEXTS = ("red wine", "Red  Wine!", "white wine", "été", "ÉTÉ", "tea", "green tea", "soup", "???", "pear", "fig")


def frame(events: list[Event]) -> pl.DataFrame:
    schema = {"user": pl.String, "query": pl.String, "category": pl.Int8}
    return pl.DataFrame(events, schema=schema, orient="row")


def events(*, max_size: int = 120) -> st.SearchStrategy[list[Event]]:
    event = st.tuples(st.sampled_from(USERS), st.sampled_from(TEXTS), st.sampled_from([0, 3, 16]))
    return st.lists(event, max_size=max_size)


def pool_settings() -> st.SearchStrategy[PoolSettings]:
    def build(k: int, less: int, growth: float, more: int, repeats: str, shrink: bool) -> PoolSettings:
        return PoolSettings(
            k=k, l=max(2, k - less), growth=growth, max_pool=k + more, remembered=10_000, repeats=repeats, shrink=shrink
        )

    return st.builds(
        build,
        st.integers(2, 6),
        st.integers(0, 4),
        st.sampled_from([1.01, 1.2, 3.0]),
        st.integers(0, 9),
        st.sampled_from(["once", "all"]),
        st.booleans(),
    )


def rows(released: pl.DataFrame) -> list[tuple[object, ...]]:
    return released.select("user", "query", "category", "arrival").rows()


@pytest.mark.parametrize("seed", range(40))
def test_in_the_papers_example_one_pair_leaves_and_three_of_each_wait(seed: int) -> None:
    pools = Pools(PoolSettings(k=4), seed=seed)
    three = pools.add(frame([(user, query, SPORTS) for user, query in WAITING]))
    assert three.released.is_empty()
    one = pools.add(frame([(*ARRIVING, SPORTS)]))
    ((user, query, category, arrival),) = rows(one.released)
    assert (user, query) not in [*WAITING, ARRIVING]
    assert (category, arrival) == (SPORTS, 0)
    assert pools.waiting.tolist() == [3 if pool == SPORTS else 0 for pool in range(N_POOLS)]


def test_in_the_papers_example_every_pair_but_the_own_ones_is_equally_likely() -> None:
    people = [*WAITING, ARRIVING]
    data = frame([(user, query, pool) for pool in range(N_POOLS) for user, query in people])
    seen = Counter[tuple[object, ...]]()
    for seed in range(300):
        seen.update(
            Pools(PoolSettings(k=4, repeats="all"), seed=seed).add(data).released.select("user", "query").rows()
        )
    expected = 300 * N_POOLS / 12
    assert len(seen) == 12
    # Chi-squared with 11 degrees of freedom: above 31.3 once in a thousand; the seeds are fixed.
    assert sum((n - expected) ** 2 / expected for n in seen.values()) < 31.3


def test_if_all_users_are_the_same_k_grows_by_the_growth_and_nothing_leaves() -> None:
    pools = Pools(PoolSettings(k=4, l=2), seed=1)
    grown = []
    for i in range(9):
        assert pools.add(frame([("A", f"query {i}", SPORTS)])).released.is_empty()
        grown.append(int(pools.k_now[SPORTS]))
    assert grown == [4, 4, 4, 5, 6, 8, 8, 10, 10]
    assert pools.k_now[0] == 4
    assert pools.add(frame([("B", "another", SPORTS)])).released.height == 1


def test_a_pool_that_a_burst_of_one_user_made_large_shrinks_again() -> None:
    """Two leave at each arrival until no more wait than before the burst; in the paper they wait for ever."""
    burst = frame([("A", f"query {i}", SPORTS) for i in range(300)])
    left = {}
    for shrink in (True, False):
        pools = Pools(PoolSettings(k=4, l=2, shrink=shrink), seed=1)
        assert pools.add(burst).released.is_empty()
        assert pools.largest_k > 200
        for i in range(600):
            pools.add(frame([(f"user {i % 50}", f"other {i}", SPORTS)]))
        assert pools.largest_k > 200
        left[shrink] = int(pools.waiting[SPORTS]), int(pools.k_now[SPORTS])
    assert left[True] == (3, 4)
    assert min(left[False]) > 200


def test_what_waits_too_long_is_suppressed_and_the_oldest_wait_is_known() -> None:
    pools = Pools(PoolSettings(k=4, l=2), seed=1)
    assert pools.waiting_since is None
    for hour in range(3):
        pools.add(frame([("A", f"query {hour} {i}", i) for i in range(2)]), now=1000 + 3600 * hour)
    assert pools.waiting_since == 1000
    again = Pools.from_bytes(pools.to_bytes(), issued=[], settings=pools.settings, seed=1)
    for each in (pools, again):
        assert each.expire(before=1000) == 0
        assert each.expire(before=1000 + 3600) == 2
        assert each.waiting_since == 1000 + 3600
        assert each.waiting.sum() == 4
        assert each.expire(before=10**9) == 4
        assert each.waiting_since is None


def test_a_pool_of_too_few_users_waits_and_k_does_not_grow() -> None:
    pools = Pools(PoolSettings(k=4, l=3), seed=1)
    for i in range(20):
        assert pools.add(frame([("AB"[i % 2], f"query {i}", SPORTS)])).released.is_empty()
    assert pools.k_now[SPORTS] == 4
    assert pools.add(frame([("C", "another", SPORTS)])).released.height in (1, 2)


def test_queries_that_all_have_one_issuer_wait_though_their_users_differ() -> None:
    """Once b1 went to A, both A and B wait, but both queries are A's: B would surely be given one of A's."""
    firsts = set()
    for seed in range(30):
        pools = Pools(PoolSettings(k=2, l=2), seed=seed)
        first = pools.add(frame([("A", "a1", SPORTS), ("A", "a2", SPORTS), ("B", "b1", SPORTS)])).released
        firsts.update(first.select("user", "query").rows())
        assert pools.waiting[SPORTS] == 2
        assert pools.drain().released.is_empty()
    assert firsts == {("B", "a1"), ("B", "a2"), ("A", "b1")}


def test_nobody_is_given_a_query_they_typed_in_another_way() -> None:
    same = ["red wine", "Red Wine", " red   wine", "RED-WINE", "red wine!"]
    pools = Pools(PoolSettings(k=2, l=2), seed=3)
    swapped = pools.add(frame([("AB"[i % 2], same[i % 5], 0) for i in range(40)]))
    assert swapped.released.is_empty()
    assert pools.k_now[0] > 2


def test_what_is_released_is_as_it_was_typed() -> None:
    pools = Pools(PoolSettings(k=2, l=2), seed=3)
    released = pools.add(frame([("A", "Red  WINE", 0), ("B", "Green tea?", 0)])).released
    assert released["query"][0] in ("Red  WINE", "Green tea?")


def test_over_max_pool_the_oldest_user_and_query_go_and_are_counted() -> None:
    pools = Pools(PoolSettings(k=3, l=3, max_pool=5), seed=1)
    swapped = pools.add(frame([("A", f"old {i}", 0) for i in range(4)] + [("B", f"new {i}", 0) for i in range(5)]))
    assert swapped.released.is_empty()
    assert swapped.n_suppressed == 4
    assert pools.waiting[0] == 5
    left = pools.add(frame([("C", "last", 0), ("D", "very last", 0)]))
    assert not left.released["query"].str.starts_with("old").any()
    assert "A" not in left.released["user"].to_list()


def test_draining_releases_what_the_promise_allows_and_clearing_suppresses_the_rest() -> None:
    pools = Pools(PoolSettings(k=3, l=3), seed=5)
    waiting = [("AB"[i % 2], f"query {i}", 0) for i in range(10)]
    assert pools.add(frame(waiting)).released.is_empty()
    assert pools.drain().released.is_empty()
    assert pools.add(frame([("C", "third", 0), ("C", "fourth", 0)])).released.height == 4
    drained = pools.drain()
    n_left = int(pools.waiting.sum())
    assert drained.released.height + n_left == 8
    assert drained.released["arrival"].unique().to_list() in ([], [0])
    assert pools.clear() == n_left
    assert pools.waiting.sum() == 0
    assert pools.drain().released.is_empty()


def test_other_columns_travel_with_the_query() -> None:
    data = frame([(USERS[i % 6], f"query {i}", i % 2) for i in range(60)]).with_row_index("rank")
    pools = Pools(PoolSettings(k=3, repeats="all"), seed=5)
    released = pools.add(data).released
    assert released.columns == ["rank", "user", "query", "category", "arrival"]
    assert (released["query"] == "query " + released["rank"].cast(pl.String)).all()
    assert released["arrival"].is_sorted()
    n_waiting = pools.waiting.sum()
    later = pools.add(data.with_columns(url=pl.lit("w.example"))).released
    assert 0 < later["url"].null_count() <= n_waiting


@pytest.mark.parametrize("events_of", [0, 1])
def test_an_empty_batch_changes_nothing(events_of: int) -> None:
    pools = Pools(PoolSettings(k=3), seed=5)
    pools.add(frame([("A", "query", 0)] * events_of))
    swapped = pools.add(frame([]))
    assert swapped.released.columns == ["user", "query", "category", "arrival"]
    assert swapped.released.is_empty()
    assert swapped.issued == b""
    assert pools.waiting.sum() == events_of


def test_events_without_a_category_are_a_clear_error() -> None:
    pools = Pools(PoolSettings(k=3))
    with pytest.raises(BadInput, match="events need a column category"):
        pools.add(frame([]).drop("category"))
    with pytest.raises(BadInput, match="category column of the events has missing values"):
        pools.add(frame([("A", "query", 0)]).with_columns(category=pl.lit(None, dtype=pl.Int8)))
    for wrong in (-1, N_POOLS):
        with pytest.raises(BadInput, match="from 0 to 16"):
            pools.add(frame([("A", "query", wrong)]))
    assert pools.waiting.sum() == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 1}, "k must be 2 or more"),
        ({"k": 5, "l": 6}, r"l must be between 2 and k \(5\)"),
        ({"l": 1}, "l must be between 2"),
        ({"growth": 1.0}, "growth must be above 1"),
        ({"growth": float("nan")}, "growth must be above 1"),
        ({"growth": "1.2"}, "growth must be above 1, got 1.2"),
        ({"max_pool": None}, r"max_pool must be at least k \(10\)"),
        ({"max_pool": 9}, r"max_pool must be at least k \(10\)"),
        ({"remembered": 0}, "remembered must be 1 or more"),
    ],
)
def test_a_wrong_setting_is_a_clear_error(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        PoolSettings(**wrong)


def test_the_settings_say_what_they_promise() -> None:
    assert PoolSettings(k=5).promise == SwapAnonymity(k=5, l=5, remembered=32_000_000, once=True, window="1d")
    assert PoolSettings(k=5, l=2, repeats="all", window=None, remembered=None).promise == SwapAnonymity(k=5, l=2)


def test_what_a_user_asks_again_does_not_wait_again_however_it_is_typed() -> None:
    pools = Pools(PoolSettings(k=9, remembered=4), seed=1)
    asked = [("A", "red wine", 0), ("B", "Red Wine!", 0), ("A", "RED  wine", 0), ("A", "tea", 0)]
    assert pools.add(frame(asked)).n_repeated == 1
    assert pools.add(frame([("A", "red-wine", 0), ("B", "tea", 0)])).n_repeated == 1
    assert pools.waiting[0] == 4
    # A memory of four events has two generations of them, and forgets after that.
    for text in ("fig", "plum", "pear"):
        pools.add(frame([(f"U{i}", text, 0) for i in range(4)]))
    assert pools.add(frame([("A", "red wine", 0)])).n_repeated == 0


@examples(40)
@given(data=st.lists(events(), max_size=4), rules=pool_settings(), seed=st.integers(0, 2**40))
def test_pools_do_what_plain_python_does(data: list[list[Event]], rules: PoolSettings, seed: int) -> None:
    numbers = RandomNumbers(seed=seed).look(at_least=20_000).tolist()
    plain = PlainPools(
        k=rules.k,
        l=rules.n_distinct,
        growth=rules.growth,
        max_pool=rules.max_pool,
        numbers=iter(numbers[2:]),
        once=rules.repeats == "once",
        shrinks=rules.shrink,
    )
    pools = Pools(rules, seed=seed)
    n_suppressed = n_repeated = 0
    for batch in data:
        swapped = pools.add(frame(batch))
        assert rows(swapped.released) == [(r.user, r.query, r.category, r.arrival) for r in plain.add(batch)]
        n_suppressed += swapped.n_suppressed
        n_repeated += swapped.n_repeated
    assert (n_suppressed, n_repeated) == (plain.n_suppressed, plain.n_repeated)
    for category, pool in plain.pools.items():
        assert (pools.waiting[category], pools.k_now[category]) == (len(pool.users), pool.needed)
    assert rows(pools.drain().released) == [(r.user, r.query, r.category, r.arrival) for r in plain.drain()]


@given(data=events(max_size=300), rules=pool_settings(), seed=st.integers(0, 2**40))
def test_no_sequence_of_events_breaks_the_promise(data: list[Event], rules: PoolSettings, seed: int) -> None:
    """Each release is replayed: both must be waiting, in a pool of k events and l users, and never were a pair."""
    pools = Pools(rules, seed=seed)
    users: dict[int, Counter[str]] = {pool: Counter() for pool in range(N_POOLS)}
    queries: dict[int, Counter[str]] = {pool: Counter() for pool in range(N_POOLS)}
    own = {(user, fold(query)) for user, query, _ in data}
    swapped = pools.add(frame(data))
    leaving = iter(rows(swapped.released))
    upcoming = next(leaving, None)
    seen = set[tuple[str, str]]()
    for i, (user, query, category) in enumerate(data):
        if rules.repeats == "all" or (user, fold(query)) not in seen:
            users[category][user] += 1
            queries[category][query] += 1
        seen.add((user, fold(query)))
        while upcoming is not None and upcoming[3] == i:
            given_to, text, pool, _ = upcoming
            assert pool == category
            assert users[category][str(given_to)] > 0
            assert queries[category][str(text)] > 0
            assert users[category].total() >= rules.k
            assert len(+users[category]) >= rules.n_distinct
            assert (given_to, fold(str(text))) not in own
            users[category][str(given_to)] -= 1
            queries[category][str(text)] -= 1
            upcoming = next(leaving, None)
    assert upcoming is None
    left_out = swapped.n_suppressed + swapped.n_repeated
    assert left_out + swapped.released.height + pools.waiting.sum() == len(data)


@examples(30)
@given(data=events(max_size=200), seed=st.integers(0, 2**40), size=st.integers(1, 50))
def test_the_sizes_of_batches_only_change_what_counts_as_issued(data: list[Event], seed: int, size: int) -> None:
    distinct = [(user, f"{query} {i}", category) for i, (user, query, category) in enumerate(data)]
    at_once, piecemeal = (Pools(PoolSettings(k=3, l=2), seed=seed) for _ in range(2))
    whole = at_once.add(frame(distinct)).released.drop("arrival")
    parts = [piecemeal.add(frame(distinct[i : i + size])).released for i in range(0, len(distinct), size)]
    assert whole.rows() == [row for part in parts for row in part.drop("arrival").rows()]


def test_a_large_batch_lets_go_of_what_has_left() -> None:
    rng = np.random.default_rng(0)
    pools = Pools(PoolSettings(k=10, l=2, remembered=1000), seed=1)
    for _ in range(5):
        n = 20_000
        data = pl.DataFrame(
            {
                "user": pl.Series(rng.integers(0, 500, n)).cast(pl.String),
                "query": pl.Series(rng.integers(0, 10**9, n)).cast(pl.String),
                "category": pl.Series(rng.integers(0, N_POOLS, n).astype(np.int8)),
            }
        )
        swapped = pools.add(data)
        assert swapped.released.height > n - 10 * N_POOLS - 1
    assert len(pools._held.users) < 5000
    assert pools._held.queries.height < 5000


def test_a_huge_k_takes_no_memory_before_that_many_wait() -> None:
    pools = Pools(PoolSettings(k=2**31 - 1, max_pool=2**31), seed=1)
    assert pools.add(frame([("A", f"query {i}", 0) for i in range(3000)])).released.is_empty()
    restored = Pools.from_bytes(pools.to_bytes(), issued=[], settings=pools.settings)
    assert restored.waiting[0] == 3000
    assert restored.add(frame([("B", f"query {i}", 0) for i in range(3000)])).released.is_empty()


def test_reprs_show_neither_users_nor_queries() -> None:
    pools = Pools(PoolSettings(k=2), seed=1)
    swapped = pools.add(frame([("somebody", "secret wine", 0), ("another", "secret tea", 0)]))
    assert repr(swapped) == "Swapped(n_released=1, n_suppressed=0)"
    assert repr(pools) == "Pools(n_waiting=1)"

"""Pools put away and taken out again: the same continuation, the same refusals, and nothing kept that has left."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_swap import Event

from queryveil.errors import BadInput
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap._pool_state import PoolState
from queryveil.methods.swap.pools import N_POOLS, Pools

RULES = PoolSettings(k=3, l=2, max_pool=8, remembered=50)


def frame(events: list[Event]) -> pl.DataFrame:
    schema = {"user": pl.String, "query": pl.String, "category": pl.Int8}
    return pl.DataFrame(events, schema=schema, orient="row").with_columns(rank=pl.lit(7))


def batches() -> st.SearchStrategy[list[list[Event]]]:
    event = st.tuples(st.sampled_from("abcde"), st.sampled_from(["tea", "red wine", "fig", "été"]), st.integers(0, 2))
    return st.lists(st.lists(event, max_size=40), min_size=1, max_size=6)


@examples(40)
@given(before=batches(), after=batches(), seed=st.integers(0, 2**40))
def test_restored_pools_go_on_as_if_nothing_had_happened(
    before: list[list[Event]], after: list[list[Event]], seed: int
) -> None:
    pools = Pools(RULES, seed=seed)
    swapped = [pools.add(frame(batch)) for batch in before]
    issued = [(each.generation, each.issued) for each in swapped]
    restored = Pools.from_bytes(pools.to_bytes(), issued=issued, settings=RULES, seed=seed)
    assert restored.waiting.tolist() == pools.waiting.tolist()
    assert restored.k_now.tolist() == pools.k_now.tolist()
    for batch in after:
        ours, theirs = pools.add(frame(batch)), restored.add(frame(batch))
        assert ours.released.equals(theirs.released)
        assert (ours.n_suppressed, ours.generation, ours.issued) == (
            theirs.n_suppressed,
            theirs.generation,
            theirs.issued,
        )
        assert restored.to_bytes() == pools.to_bytes()
    assert (
        pools.drain().released.select("user", "query").rows()
        == restored.drain().released.select("user", "query").rows()
    )


def test_pools_that_may_hold_less_than_before_still_let_go() -> None:
    alone = [("a", f"fig {i}", 1) for i in range(100)]
    pools = Pools(PoolSettings(k=3, l=2, max_pool=1000), seed=1)
    pools.add(frame(alone))
    assert pools.k_now[1] > 20
    smaller = PoolSettings(k=3, l=2, max_pool=20)
    restored = Pools.from_bytes(pools.to_bytes(), issued=[], settings=smaller, seed=1)
    assert restored.k_now[1] == 20
    swapped = restored.add(frame([(f"b{i}", f"tea {i}", 1) for i in range(50)]))
    assert swapped.released.height > 0


def test_without_its_memory_a_pool_would_give_somebody_their_own_query() -> None:
    """What the memory is for: the same continuation without it breaks the promise for some seed."""
    own = 0
    for seed in range(40):
        pools = Pools(PoolSettings(k=2, l=2), seed=seed)
        swapped = pools.add(frame([("a", "red wine", 1)]))
        for issued in ([(swapped.generation, swapped.issued)], []):
            restored = Pools.from_bytes(pools.to_bytes(), issued=issued, settings=pools.settings, seed=seed)
            first = restored.add(frame([("b", "Red Wine", 0), ("a", "green tea", 0)])).released
            gave_own = (first["user"] == "a") & (first["query"] == "Red Wine")
            if issued:
                assert not gave_own.any()
            own += int(gave_own.any())
    assert own > 5


def test_generations_change_when_one_is_full_and_the_one_before_is_still_known() -> None:
    pools = Pools(PoolSettings(k=2, l=2, remembered=10), seed=1)
    seen = [pools.add(frame([("a", f"query {i}", 0)] * 4)).generation for i in range(9)]
    assert seen == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_the_memory_of_pairs_stays_the_same_size() -> None:
    pools = Pools(PoolSettings(k=2, l=2, remembered=50_000), seed=1)
    sizes = []
    for start in range(0, 500_000, 25_000):
        data = pl.DataFrame({"user": ["a"] * 25_000, "query": pl.int_range(start, start + 25_000, eager=True)})
        pools.add(data.cast(pl.String).with_columns(category=pl.lit(0, dtype=pl.Int8)))
        sizes.append(pools._issued.older.nbytes + pools._issued.newest.nbytes)
    assert set(sizes[2:]) == {2 * sizes[0]}
    assert sizes[-1] <= 2 * 50_000 * 12 / 8 + 128


@pytest.mark.slow
def test_what_was_issued_is_refused_for_as_long_as_it_is_remembered() -> None:
    """At least the last 100 events count, however they fall into generations."""
    for n_between in range(0, 100, 9):
        for seed in range(5):
            pools = Pools(PoolSettings(k=2, l=2, remembered=100), seed=seed)
            pools.add(frame([("z", f"before {i}", 2) for i in range(seed * 31)]))
            pools.add(frame([("a", "red wine", 1)]))
            for i in range(0, n_between, 3):
                pools.add(frame([("z", f"between {i} {j}", 2) for j in range(3)]))
            released = pools.add(frame([("b", "red wine", 0), ("a", "fig", 0)])).released
            assert released.select("user", "query").rows() in ([], [("b", "fig")])


def test_only_what_waits_is_kept() -> None:
    rng = np.random.default_rng(1)
    users = [f"a person of number {i:04}" for i in range(40)]
    texts = [f"a query of some length, number {i:04}" for i in range(400)]
    data = [(users[rng.integers(40)], text, int(rng.integers(0, N_POOLS))) for text in texts]
    pools = Pools(PoolSettings(k=4, l=2), seed=1)
    released = set(pools.add(frame(data)).released["query"])
    kept = pools.to_bytes()
    assert len(released) > 300
    assert not any(text.encode() in kept for text in released)
    assert sum(text.encode() in kept for text in texts) == pools.waiting.sum()
    restored = Pools.from_bytes(kept, issued=[], settings=pools.settings)
    assert restored.clear() == pools.clear() == len(data) - len(released)


def test_neither_the_seed_nor_the_memory_is_in_the_bytes() -> None:
    seed = 0x1234_5678_9ABC
    pools = Pools(RULES, seed=seed)
    swapped = pools.add(frame([("a", f"query {i}", 0) for i in range(6)]))
    kept = pools.to_bytes()
    assert seed.to_bytes(6, "little") not in kept
    assert seed.to_bytes(6, "big") not in kept
    assert swapped.issued not in kept
    assert "query" not in repr(PoolState.unpack(kept))


def test_new_pools_can_be_put_away_too() -> None:
    pools = Pools.from_bytes(Pools(RULES).to_bytes(), issued=[], settings=RULES)
    assert pools.waiting.sum() == 0
    assert pools.add(frame([("a", "tea", 0), ("b", "fig", 0), ("c", "pear", 0)])).released.height == 1


@pytest.mark.parametrize("data", [b"", b"nonsense", Pools(RULES).to_bytes()[:-40]])
def test_a_damaged_state_is_a_clear_error(data: bytes) -> None:
    with pytest.raises(BadInput, match="state of the pools is damaged"):
        Pools.from_bytes(data, issued=[], settings=RULES)


def waiting_pools() -> tuple[Pools, list[tuple[int, bytes]]]:
    pools = Pools(PoolSettings(k=8, l=2, remembered=50), seed=3)
    swapped = pools.add(frame([(f"member{i % 9}", f"pear tree {i}", i % 3) for i in range(60)]))
    return pools, [(swapped.generation, swapped.issued)]


def turned(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def test_pools_of_which_one_bit_was_turned_are_refused() -> None:
    pools, issued = waiting_pools()
    data, chance = pools.to_bytes(), random.Random(1)
    for _ in range(250):
        with pytest.raises(BadInput, match=r"^the state of the pools is damaged; go back to a copy of the store$"):
            Pools.from_bytes(turned(data, chance), issued=issued, settings=pools.settings, seed=3)


def without_checksum(pools: Pools) -> bytes:
    """Return the bytes that earlier releases wrote."""
    return msgspec.msgpack.encode(PoolState.unpack(pools.to_bytes()))


def test_pools_of_an_earlier_release_have_no_checksum_and_open() -> None:
    pools, issued = waiting_pools()
    restored = Pools.from_bytes(without_checksum(pools), issued=issued, settings=pools.settings, seed=3)
    assert restored.to_bytes() == pools.to_bytes()


def test_without_a_checksum_no_bit_makes_a_kernel_read_outside_of_its_arrays() -> None:
    pools, issued = waiting_pools()
    data, chance, n_opened = without_checksum(pools), random.Random(2), 0
    more = frame([(f"member{i}", f"fig {i}", i % 3) for i in range(40)])
    for _ in range(250):
        try:
            restored = Pools.from_bytes(turned(data, chance), issued=issued, settings=pools.settings, seed=3)
        except BadInput:
            continue
        n_opened += 1
        assert (restored.waiting >= 0).all()
        restored.add(more)
    assert n_opened < 250


@pytest.mark.parametrize(
    "changed",
    [
        {"needed": [3] * (N_POOLS - 1)},
        {"needed": [-3] * N_POOLS},
        {"key": (1, 2)},
        {"key": (-1, 3)},
        {"room": (1 << 40, 0)},
        {"room": (0, -1)},
        {"generation": -1},
        {"n_numbers": -1},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_state_with_a_number_that_cannot_be_is_refused(changed: dict[str, Any]) -> None:
    pools, issued = waiting_pools()
    state = msgspec.structs.replace(PoolState.unpack(pools.to_bytes()), **changed)
    with pytest.raises(BadInput, match="damaged"):
        Pools.from_bytes(msgspec.msgpack.encode(state), issued=issued, settings=pools.settings, seed=3)


@pytest.mark.parametrize(
    "column", [pl.Series("pool", [100], dtype=pl.Int8), pl.Series("age", [1 << 40]), pl.Series("pool", [None], pl.Int8)]
)
def test_a_place_outside_of_the_pools_is_refused_before_a_kernel_sees_it(column: pl.Series) -> None:
    pools, issued = waiting_pools()
    state = PoolState.unpack(pools.to_bytes())
    users = pl.read_ipc_stream(state.users)
    users = users.with_columns(pl.concat([column, users[column.name][1:]]))
    state = msgspec.structs.replace(state, users=users.write_ipc_stream(None).getvalue())
    with pytest.raises(BadInput, match="damaged"):
        Pools.from_bytes(msgspec.msgpack.encode(state), issued=issued, settings=pools.settings, seed=3)

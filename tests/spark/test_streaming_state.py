"""The parts of swap on Spark that need no Spark: random numbers, the order of events, the memory of a pool."""

from __future__ import annotations

import copy
import random
import unicodedata
from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl
import pytest
from pyspark.sql import Row

from queryveil.errors import BadParameter
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap._pool_state import PoolState, unseal
from queryveil.methods.swap.pools import BLOCK, Pools, RandomNumbers
from queryveil.spark.streaming._checkpoints import COUNT_NAMES, COUNTS
from queryveil.spark.streaming._pools import PoolProcessor, derived, hash_key, in_order_of_arrival, places
from queryveil.spark.streaming.swap import SwapStream
from queryveil.synthesis import synthesize
from queryveil.text.classifier import Classifier

SECRET = b"a made-up secret for the numbers"
SETTINGS = PoolSettings(k=3, l=2, remembered=20_000)


class OneValue:
    """A state of one value, in memory."""

    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value


class SomeValues:
    """A state of values by key, in memory; it notes how many bytes were written."""

    def __init__(self) -> None:
        self.by_key: dict[Any, Any] = {}
        self.n_bytes_written = 0

    def values(self) -> Iterator[Any]:
        return iter(self.by_key.values())

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802 - Spark's name
        self.by_key[key] = value
        self.n_bytes_written += len(value[0])

    def clear(self) -> None:
        self.by_key.clear()


class StateInMemory:
    """What Spark gives a processor to keep its state in."""

    def __init__(self) -> None:
        self.parts: dict[str, Any] = {}

    def getValueState(self, name: str, schema: str) -> OneValue:  # noqa: N802
        part: OneValue = self.parts.setdefault(name, OneValue())
        return part

    def getMapState(self, name: str, key: str, value: str) -> SomeValues:  # noqa: N802
        part: SomeValues = self.parts.setdefault(name, SomeValues())
        return part


def processor_on(state: Any, settings: PoolSettings = SETTINGS) -> PoolProcessor:
    processor = PoolProcessor(settings, secret=SECRET)
    processor.init(state)
    return processor


def batch_of(n: int, *, number: int, n_users: int = 30) -> pl.DataFrame:
    rng = random.Random(number)
    events = pl.DataFrame(
        {
            "user": [f"u{rng.randrange(n_users)}" for _ in range(n)],
            "query": [f"tea {rng.randrange(4 * n)}" for _ in range(n)],
            "category": pl.Series([5] * n, dtype=pl.Int8),
            "time": [rng.choice([None, 1, 2]) for _ in range(n)],
        },
        schema_overrides={"time": pl.Int64},
    )
    return events.with_columns(places(events, key=hash_key(SECRET)))


def rows_of(events: pl.DataFrame, *, seed: int) -> Iterator[Row]:
    """Return events packed as Spark would: in any order, cut anywhere."""
    rng = random.Random(seed)
    mixed = events[rng.sample(range(events.height), events.height)]
    cut = rng.randrange(events.height + 1)
    return iter(
        [Row(category=5, shard=0, events=part.write_ipc_stream(None).getvalue()) for part in (mixed[:cut], mixed[cut:])]
    )


def released_by(processor: PoolProcessor, events: pl.DataFrame, *, seed: int = 0) -> list[tuple[Any, ...]]:
    rows = processor.handleInputRows((5, 0), rows_of(events, seed=seed), None)  # type: ignore[arg-type]
    return [row for each in rows for row in pl.read_ipc_stream(each.events).select("user", "query").rows()]


def test_numbers_of_a_secret_are_the_same_again_and_those_of_another_are_others() -> None:
    first, again = RandomNumbers(secret=SECRET), RandomNumbers(secret=SECRET)
    assert first.look(at_least=3 * BLOCK).tolist() == again.look(at_least=3 * BLOCK).tolist()
    behind = RandomNumbers(secret=SECRET, n_taken=BLOCK + 5)
    assert behind.look(at_least=9)[:9].tolist() == first.look(at_least=3 * BLOCK)[BLOCK + 5 :][:9].tolist()
    firsts = {RandomNumbers(secret=derived(SECRET, f"pool {i} 0")).look()[0] for i in range(50)}
    assert len(firsts) == 50


def test_events_count_in_the_order_of_their_times_however_spark_mixes_them() -> None:
    events = batch_of(200, number=1)
    ordered = in_order_of_arrival(events)
    for seed in range(5):
        mixed = events[random.Random(seed).sample(range(200), 200)]
        assert in_order_of_arrival(mixed).equals(ordered)
    times = events.sort("time", "place", nulls_last=True)
    assert times["time"].drop_nulls().is_sorted()
    assert ordered["user"].to_list() == times["user"].to_list()
    assert not ordered["user"].is_sorted()


def test_a_batch_that_is_done_again_releases_the_same_rows_and_leaves_the_same_state() -> None:
    state, again = StateInMemory(), StateInMemory()
    for number in range(6):
        events = batch_of(50, number=number)
        assert released_by(processor_on(state), events, seed=1) == released_by(processor_on(again), events, seed=2)
        assert state.parts["pool"].value == again.parts["pool"].value
        assert state.parts["counts"].value == again.parts["counts"].value


def test_a_pool_goes_on_from_its_state_as_one_that_never_stopped_through_all_generations() -> None:
    settings = PoolSettings(k=3, l=2, remembered=25_000)
    state, pools = StateInMemory(), Pools(settings, secret=derived(SECRET, "pool 5 0"))
    generations = set()
    for number in range(22):
        events = batch_of(5000, number=number, n_users=100)
        swapped = pools.add(in_order_of_arrival(events))
        generations.add(swapped.generation)
        released = released_by(processor_on(state, settings), events)
        assert sorted(released) == sorted(swapped.released.select("user", "query").rows())
    assert len(generations) == 5
    pieces = [state.parts[name] for name in ("issuedEven", "issuedOdd")]
    # Each pair was written to a piece once, with a checksum, and those of two generations at most are still there.
    assert sum(each.n_bytes_written for each in pieces) <= 8 * 22 * 5000 + 7 * 22
    assert sum(len(value[0]) for each in pieces for value in each.values()) <= 8 * 2 * 30_000


def test_askers_are_counted_anew_in_the_window_of_each_batch() -> None:
    state, settings = StateInMemory(), PoolSettings(k=2, l=2, min_query_users=4, remembered=20_000)
    names = iter(range(1000))

    def n_rare(window: int, *, n: int) -> int:
        asked = pl.DataFrame({"user": [f"u{next(names)}" for _ in range(n)]}).with_columns(
            query=pl.lit("tea"), category=pl.lit(5, pl.Int8), time=pl.lit(None, pl.Int64)
        )
        asked = asked.with_columns(places(asked, key=hash_key(SECRET)))
        rows = [Row(category=5, shard=0, window=window, events=asked.write_ipc_stream(None).getvalue())]
        list(processor_on(state, settings).handleInputRows((5, 0), iter(rows), None))  # type: ignore[arg-type]
        counted = dict(zip(COUNT_NAMES, state.parts[COUNTS].value, strict=False))
        return int(counted["n_rare"])

    first = n_rare(20_000, n=6)
    assert 1 <= first <= 5
    assert n_rare(20_000, n=2) == first
    assert n_rare(20_001, n=1) == first + 1
    assert n_rare(20_000, n=2) == first + 1


def turned(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def with_much_in_it() -> StateInMemory:
    state = StateInMemory()
    for number in range(4):
        released_by(processor_on(state), batch_of(700, number=number))
    assert list(state.parts["issuedEven"].values())
    return state


@pytest.mark.parametrize("part", ["pool", "recent", "piece"])
def test_a_state_of_which_one_bit_was_turned_is_refused(part: str) -> None:
    whole, chance = with_much_in_it(), random.Random(part)
    for _ in range(40):
        state = copy.deepcopy(whole)
        pool, recent = state.parts["pool"].value
        if part == "pool":
            state.parts["pool"].value = (turned(pool, chance), recent)
        elif part == "recent":
            state.parts["pool"].value = (pool, turned(recent, chance))
        else:
            pieces = state.parts["issuedEven"].by_key
            key, (piece,) = next(iter(pieces.items()))
            pieces[key] = (turned(piece, chance),)
        with pytest.raises(Exception, match="damaged"):
            released_by(processor_on(state), batch_of(20, number=9))


def test_a_state_of_an_earlier_release_has_no_checksums_and_goes_on() -> None:
    state, earlier = with_much_in_it(), with_much_in_it()
    pool, recent = earlier.parts["pool"].value
    earlier.parts["pool"].value = (msgspec.msgpack.encode(PoolState.unpack(pool)), unseal(recent))
    pieces = earlier.parts["issuedEven"].by_key
    for key, (piece,) in list(pieces.items()):
        pieces[key] = (unseal(piece),)
    events = batch_of(50, number=9)
    assert released_by(processor_on(state), events) == released_by(processor_on(earlier), events)


def test_without_its_memory_a_pool_would_give_users_their_own_queries() -> None:
    own = {True: 0, False: 0}
    for has_memory in own:
        state = StateInMemory()
        issued: set[tuple[str, str]] = set()
        for number in range(120):
            few = pl.lit("tea ") + pl.col("place").mod(7).cast(pl.String)
            events = batch_of(20, number=number, n_users=4).with_columns(query=few)
            issued |= set(events.select("user", "query").rows())
            own[has_memory] += len(issued & set(released_by(processor_on(state, PoolSettings(k=2)), events)))
            if not has_memory:
                pool, _ = state.parts["pool"].value
                state.parts["pool"].value = (pool, msgspec.msgpack.encode([0, 0, b""]))
    assert own[True] == 0
    assert own[False] > 0


def test_a_text_has_the_same_category_however_it_is_typed() -> None:
    """What lets each pool do with its own memory."""
    queries = synthesize(users=200, seed=4).log.frame["query"].unique()
    classifier = Classifier()
    category = classifier.classify(queries).category
    accented = pl.Series([query.replace("e", "é") for query in queries])
    apart = pl.Series([unicodedata.normalize("NFD", query) for query in accented])
    assert (classifier.classify(apart).category == classifier.classify(accented).category).all()
    wide, listed = (lambda query: f" {query.replace(' ', '  ')}!"), (lambda query: query.replace(" ", ", "))
    for typed in (str.upper, str.title, wide, listed):
        others = pl.Series([typed(query) for query in queries])
        assert (classifier.classify(others).category == category).all()


def test_an_error_in_a_pool_quotes_nothing() -> None:
    rows = iter([Row(category=5, shard=0, events=b"kestrel lantern")])
    with pytest.raises(RuntimeError) as failed:
        list(processor_on(StateInMemory()).handleInputRows((5, 0), rows, None))  # type: ignore[arg-type]
    assert "kestrel" not in str(failed.value)
    assert failed.value.__cause__ is None


def test_no_secret_is_in_the_repr_of_a_stream() -> None:
    shown = repr(SwapStream(key=b"kestrel lantern key", secret=SECRET))
    assert "kestrel" not in shown
    assert "made-up" not in shown


@pytest.mark.parametrize(
    ("setting", "value"),
    [("shards", 0), ("key", b"short"), ("secret", b"short"), ("classifier", "best"), ("time", "year"), ("k", 1),
     ("unclassified", "keep"), ("remembered", None), ("keep", ("query",)), ("keep", ("category",))],
)  # fmt: skip
def test_settings_that_cannot_be_are_named(setting: str, value: object) -> None:
    with pytest.raises(BadParameter, match=f"^{setting} must be "):
        SwapStream(**({"key": b"kestrel lantern key"} | {setting: value}))  # type: ignore[arg-type]

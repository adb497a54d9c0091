"""Texts leave after enough people asked them: thresholds, their noise, and what no sequence of events may break."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from math import exp

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_swap import Event, fold

from queryveil.checks import verify
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap import Swap
from queryveil.methods.swap._askers import AskerCounts, may_leave, noise_bound
from queryveil.methods.swap.pools import Pools
from queryveil.release import ColumnPolicy

KEY = b"sixteen bytes.. "
KEPT = ColumnPolicy(ids="keep")  # type: ignore[arg-type]


def frame(events: list[Event]) -> pl.DataFrame:
    return pl.DataFrame(events, schema={"user": pl.String, "query": pl.String, "category": pl.Int8}, orient="row")


def windows_of(batch: list[Event], *, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-1, 2, len(batch))


def batches() -> st.SearchStrategy[list[list[Event]]]:
    event = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["tea", "Tea!", "rye", "fig"]), st.just(0))
    return st.lists(st.lists(event, max_size=40), min_size=1, max_size=5)


@examples(40)
@given(data=batches(), needed=st.integers(3, 6), seed=st.integers(0, 2**40), has_windows=st.booleans())
def test_no_text_leaves_that_fewer_people_asked_than_promised(
    data: list[list[Event]], needed: int, seed: int, has_windows: bool
) -> None:
    rules = PoolSettings(k=2, l=2, min_query_users=needed, remembered=10_000)
    pools, issued = Pools(rules, seed=seed), list[tuple[int, bytes]]()
    known = set[tuple[str, str]]()
    askers = Counter[tuple[str, int]]()
    n_left = Counter[str]()
    n_out = n_read = 0
    for number, batch in enumerate(data):
        pools = Pools.from_bytes(pools.to_bytes(), issued=issued, settings=rules, seed=seed)
        windows = windows_of(batch, seed=number)
        for (user, query, _), window in zip(batch, windows.tolist(), strict=True):
            if (user, fold(query)) not in known:
                known.add((user, fold(query)))
                askers[fold(query), window if has_windows else 0] += 1
        swapped = pools.add(frame(batch), window=windows if has_windows else None)
        issued.append((swapped.generation, swapped.issued))
        n_left.update(map(fold, swapped.released["query"]))
        n_out += swapped.n_repeated + swapped.n_rare + swapped.n_suppressed + swapped.released.height
        n_read += len(batch)
        for text, n in n_left.items():
            each = [n_asked for (asked, _), n_asked in askers.items() if asked == text]
            assert n <= sum(max(0, n_asked - rules.promise.fewest + 1) for n_asked in each)
    assert rules.promise.fewest == 2
    assert n_out + pools.waiting.sum() == n_read


@examples(40)
@given(data=batches(), seed=st.integers(0, 2**40))
def test_pools_that_are_restored_count_on_as_if_nothing_had_happened(data: list[list[Event]], seed: int) -> None:
    rules = PoolSettings(k=2, l=2, min_query_users=4, remembered=20)
    whole, parts = Pools(rules, seed=seed), Pools(rules, seed=seed)
    issued: list[tuple[int, bytes]] = []
    for batch in data:
        parts = Pools.from_bytes(parts.to_bytes(), issued=issued, settings=rules, seed=seed)
        window = seed % 3 or None if not batch else windows_of(batch, seed=seed)
        ours, theirs = parts.add(frame(batch), window=window), whole.add(frame(batch), window=window)
        issued.append((ours.generation, ours.issued))
        assert ours.released.equals(theirs.released)
        assert (ours.n_rare, ours.n_repeated, ours.issued) == (theirs.n_rare, theirs.n_repeated, theirs.issued)


@examples(40)
@given(texts=st.lists(st.lists(st.integers(1, 9), max_size=300), max_size=6), n=st.integers(0, 3))
def test_askers_are_counted_as_a_counter_does_over_two_generations(texts: list[list[int]], n: int) -> None:
    counts, known = AskerCounts(), [Counter[int](), Counter[int]()]
    for number, batch in enumerate(texts):
        generation = number // (n + 1)
        if generation > counts.generation:
            known = [known[1], Counter()]
        counts.turn_to(generation)
        expected = []
        for text in batch:
            known[1][text] += 1
            expected.append(known[0][text] + known[1][text])
        hashed = np.array(batch, np.uint64) * np.uint64(2**33 + 1)
        assert counts.add(hashed).tolist() == expected


@pytest.mark.parametrize("needed", [3, 5, 10])
def test_the_thresholds_of_texts_are_spread_as_the_noise_is(needed: int) -> None:
    """Golden: a threshold differs by z with a chance of e^-|z| over the sum of these."""
    bound, n = noise_bound(needed), 4000
    texts = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    shares = []
    for askers in range(needed - bound - 1, needed + bound + 1):
        leaves = may_leave(texts, np.full(n, askers), min_query_users=needed, key=KEY)
        shares.append(leaves.mean())
    weights = [exp(-abs(z)) for z in range(-bound, bound + 1)]
    expected = np.concatenate([[0.0], np.cumsum(weights) / sum(weights)])
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    # Five standard deviations; the key is fixed.
    assert np.abs(np.array(shares) - expected).max() < 5 * 0.5 / n**0.5
    other = may_leave(texts, np.full(n, needed), min_query_users=needed, key=b"another key here")
    assert (other != may_leave(texts, np.full(n, needed), min_query_users=needed, key=KEY)).mean() > 0.2


def test_each_window_of_a_text_has_noise_of_its_own() -> None:
    rules = PoolSettings(k=2, l=2, min_query_users=6)
    pools, n_rare = Pools(rules, seed=1), list[int]()
    for window in range(40):
        events: list[Event] = [(f"{window} {i}", "tea", 0) for i in range(12)]
        n_rare.append(pools.add(frame(events), window=window).n_rare)
    assert (min(n_rare), max(n_rare)) >= (1, 7)
    assert len(set(n_rare)) > 3
    assert pools.add(frame([("late", "tea", 0)]), window=40).n_rare == 1
    assert pools.add(frame([("later", "tea", 0)]), window=39).n_rare == 0


def daily(n_each: int) -> QueryLog:
    """Return a log of nine days, on each of which others ask the same three texts."""
    first = datetime(2026, 3, 1)
    rows = [
        (f"u{day} {i} {word}", f"{word} scores", first + timedelta(days=day, minutes=i))
        for day in range(9)
        for i in range(n_each)
        for word in ("tennis", "soccer", "hockey")
    ]
    return QueryLog.from_frame(pl.DataFrame(rows, schema=["user", "query", "time"], orient="row"))


def test_askers_of_other_windows_do_not_count_and_verify_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ColumnPolicy(ids="keyed", key=KEY)  # type: ignore[arg-type]
    swap = Swap(k=3, l=2, columns=columns, min_query_users=5, seed=1)
    assert swap.anonymize(daily(1)).manifest.removed["rows_of_rare_queries"] == 27
    often = swap.anonymize(daily(9))
    assert often.log.n_rows > 50
    assert verify(often, original=daily(9), key=KEY).holds
    assert "counted anew every 1d" in often.promise.in_words()
    whole = Swap(k=3, l=2, columns=columns, min_query_users=5, window=None, seed=1).anonymize(daily(1))
    assert whole.log.n_rows > 3
    assert verify(whole, original=daily(1), key=KEY).holds
    # A method that counts over the whole log, and says that it does not.
    add = Pools.add
    monkeypatch.setattr(Pools, "add", lambda self, events, **_: add(self, events))
    old = swap.anonymize(daily(1))
    verdict = verify(old, original=daily(1), key=KEY)
    assert old.log.n_rows > 3
    assert not verdict.holds
    assert verdict.n_violations >= old.log.n_rows


@examples(40)
@given(data=st.data(), window=st.sampled_from(["1d", "7d", None]), seed=st.integers(0, 2**40))
def test_in_each_window_of_a_release_no_text_has_more_rows_than_its_askers_there_allow(
    data: st.DataObject, window: str | None, seed: int
) -> None:
    words, first = st.sampled_from(["tennis", "Tennis!", "soccer scores"]), datetime(2026, 3, 1)
    hours = st.none() | st.integers(0, 72)
    rows = data.draw(st.lists(st.tuples(st.sampled_from("abcdefghijkl"), words, hours), min_size=20, max_size=80))
    times = [None if hour is None else first + timedelta(hours=hour) for *_, hour in rows]
    users, queries = [user for user, *_ in rows], [query for _, query, _ in rows]
    times[0] = first
    log = QueryLog.from_frame(pl.DataFrame({"user": users, "query": queries, "time": times}))
    columns = ColumnPolicy(ids="keyed", time="drop" if window is None else "shared", key=KEY)  # type: ignore[arg-type]
    drain = data.draw(st.sampled_from(["suppress", "release"]))
    swap = Swap(k=2, l=2, columns=columns, min_query_users=3, window=window, drain=drain, seed=seed)
    release = swap.anonymize(log)
    assert verify(release, original=log, key=KEY).holds
    removed = {name: n for name, n in release.manifest.removed.items() if name.startswith("rows_")}
    assert sum(removed.values()) + release.log.n_rows == log.n_rows
    length = timedelta(days=7 if window == "7d" else 1)

    def start(time: datetime | None) -> int:
        return 0 if window is None else -1 if time is None else (time - datetime(1970, 1, 1)) // length

    came: dict[tuple[str, str], int] = {}
    in_order = sorted(zip(users, queries, times, strict=True), key=lambda row: (row[2] is None, row[2] or first))
    for user, query, time in in_order:
        came.setdefault((user, fold(query)), start(time))
    askers = Counter((text, number) for (_, text), number in came.items())
    left = Counter((fold(row["query"]), start(row.get("time"))) for row in release.log.frame.iter_rows(named=True))
    assert all(n <= askers[place] - 1 for place, n in left.items())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"order": "file"}, "order must be time where texts need several people, got file"),
        ({"columns": ColumnPolicy(time="day")}, "time must be drop or shared where texts need several people, got day"),  # type: ignore[arg-type]
    ],
)
def test_what_tells_when_rows_came_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        Swap(min_query_users=3, **changed)  # type: ignore[arg-type]


def test_a_release_with_a_rare_text_put_back_is_caught() -> None:
    words = ("tennis", "soccer", "hockey")
    rows = [(f"u{i}", f"{words[i % 3]} scores") for i in range(60)]
    rare = [("u1", "kestrel tennis"), ("u2", "heron tennis")]
    users, queries = zip(*rows, *rare, strict=True)
    times = pl.datetime_range(pl.datetime(2026, 3, 1), pl.datetime(2026, 3, 9), "1h", eager=True)[: len(users)]
    log = QueryLog.from_frame({"user": users, "query": queries, "time": times})
    release = Swap(k=3, l=2, columns=KEPT, min_query_users=5, seed=1).anonymize(log)
    removed = release.manifest.removed
    assert verify(release, original=log).holds
    assert 2 + 3 < removed["rows_of_rare_queries"] < 2 + 3 * 9
    assert set(release.log.frame["query"]) == {f"{word} scores" for word in words}
    assert "about 5 people, at least 2" in release.promise.in_words()
    changed = release.log.frame.with_columns(
        query=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("kestrel tennis")).otherwise("query"),
        user=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("u9")).otherwise("user"),
    )
    verdict = verify(type(release)(data=log.with_frame(changed), manifest=release.manifest), original=log)
    assert "repeated_query" in {witness.kind for witness in verdict.witnesses}

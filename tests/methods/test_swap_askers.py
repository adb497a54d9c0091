"""Texts leave after enough people asked them: thresholds, their noise, and what no sequence of events may break."""

from __future__ import annotations

from collections import Counter
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
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap import Swap
from queryveil.methods.swap._askers import AskerCounts, may_leave, noise_bound
from queryveil.methods.swap.pools import Pools
from queryveil.release import ColumnPolicy

KEY = b"sixteen bytes.. "
KEPT = ColumnPolicy(ids="keep")  # type: ignore[arg-type]


def frame(events: list[Event]) -> pl.DataFrame:
    return pl.DataFrame(events, schema={"user": pl.String, "query": pl.String, "category": pl.Int8}, orient="row")


def batches() -> st.SearchStrategy[list[list[Event]]]:
    event = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["tea", "Tea!", "rye", "fig"]), st.just(0))
    return st.lists(st.lists(event, max_size=40), min_size=1, max_size=5)


@examples(40)
@given(data=batches(), needed=st.integers(3, 6), seed=st.integers(0, 2**40))
def test_no_text_leaves_that_fewer_people_asked_than_promised(data: list[list[Event]], needed: int, seed: int) -> None:
    rules = PoolSettings(k=2, l=2, min_query_users=needed, remembered=10_000)
    pools, issued = Pools(rules, seed=seed), list[tuple[int, bytes]]()
    people: dict[str, set[str]] = {}
    n_left = Counter[str]()
    n_out = n_read = 0
    for batch in data:
        pools = Pools.from_bytes(pools.to_bytes(), issued=issued, settings=rules, seed=seed)
        for user, query, _ in batch:
            people.setdefault(fold(query), set()).add(user)
        swapped = pools.add(frame(batch))
        issued.append((swapped.generation, swapped.issued))
        n_left.update(map(fold, swapped.released["query"]))
        n_out += swapped.n_repeated + swapped.n_rare + swapped.n_suppressed + swapped.released.height
        n_read += len(batch)
        for text, n in n_left.items():
            assert n <= len(people[text]) - rules.promise.fewest + 1
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
        ours, theirs = parts.add(frame(batch)), whole.add(frame(batch))
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

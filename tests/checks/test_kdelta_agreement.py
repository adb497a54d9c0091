"""The fast checker and the brute force agree on k-delta-anonymity, on random logs and on nearly valid ones."""

from __future__ import annotations

import random
from datetime import datetime

import msgspec
import polars as pl
from hypothesis import event, given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.kdelta_by_force import verify_kdelta_by_force

from queryveil.checks import Verdict, verify_kdelta
from queryveil.data import QueryLog
from queryveil.guarantees import KdeltaAnonymity

Row = tuple[str, str, str | None]

users = st.sampled_from(["1", "2", "3", "4", "5"])
queries = st.sampled_from(["", "a", "A", " a", "b", "c", "ö", "o\u0308", "\U0001f375"])
urls = st.sampled_from([None, "", "u", "v", "w", "x"])
rows_of_chance = st.lists(st.tuples(users, queries, urls), max_size=30)
deltas = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 0.9, 1.0])
distances = st.sampled_from([0.0, 0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9])
promises = st.builds(KdeltaAnonymity, k=st.integers(2, 4), delta=deltas, max_distance=distances)


@st.composite
def nearly_valid_rows(draw: st.DrawFn) -> list[Row]:
    """Each user's rows again for others, once or several times each; then perhaps one row goes."""
    rows: list[Row] = []
    for person in range(draw(st.integers(1, 3))):
        own = draw(st.lists(st.tuples(queries, urls), min_size=1, max_size=5))
        for copy in range(draw(st.integers(2, 4))):
            times = draw(st.integers(1, 3))
            rows += [(f"{person} {copy}", query, url) for query, url in own * times]
    if draw(st.booleans()):
        rows.pop(draw(st.integers(0, len(rows) - 1)))
    return draw(st.permutations(rows))


def log_of(rows: list[Row]) -> QueryLog:
    schema = {"user": [row[0] for row in rows], "query": [row[1] for row in rows], "url": [row[2] for row in rows]}
    return QueryLog.from_frame(schema)


def clusters_of(rows: list[Row], numbers: random.Random, *, merging: float) -> str:
    """Number the queries: mostly by what was clicked for them first, sometimes at random."""
    first: dict[str, str | None] = {}
    for _, query, url in rows:
        first.setdefault(query, url)
    by_click = {url: i for i, url in enumerate(dict.fromkeys(first.values()), start=1)}
    found = list[int]()
    for query in sorted(first):
        alone = 100 + len(found) if not first[query] else by_click[first[query]]
        found.append(numbers.randint(1, 3) if numbers.random() < merging else alone)
    return " ".join(map(str, found))


def both(log: QueryLog, promise: KdeltaAnonymity, clusters: str, original: QueryLog | None, *, adds: bool) -> Verdict:
    fast, slow = (
        check(log, promise, clusters=clusters, original=original, additions=adds)
        for check in (verify_kdelta, verify_kdelta_by_force)
    )
    event(f"holds: {slow.holds}, kinds: {sorted({w.kind for w in slow.witnesses})}")
    assert fast == slow
    return fast


@examples(40)
@given(rows_of_chance | nearly_valid_rows(), promises, st.randoms(), st.sampled_from([0.0, 0.2, 1.0]))
def test_they_agree_on_the_promise(
    rows: list[Row], promise: KdeltaAnonymity, numbers: random.Random, merging: float
) -> None:
    both(log_of(rows), promise, clusters_of(rows, numbers, merging=merging), None, adds=True)


@examples(40)
@given(nearly_valid_rows(), rows_of_chance, st.booleans(), st.integers(0, 20), st.randoms())
def test_they_agree_on_what_is_invented(
    rows: list[Row], others: list[Row], adds: bool, n_before: int, numbers: random.Random
) -> None:
    original = log_of([*rows[:n_before], *others])
    clusters = clusters_of(rows, numbers, merging=0)
    both(log_of(rows), KdeltaAnonymity(k=2, delta=1), clusters, original, adds=adds)


@examples(40)
@given(st.lists(st.sets(st.integers(0, 9), max_size=4), min_size=2, max_size=9), deltas, st.integers(0, 12))
def test_they_agree_on_the_width_of_one_cluster(sets: list[set[int]], delta: float, n_common: int) -> None:
    rows: list[Row] = []
    for i, elements in enumerate(sets):
        clicks = [f"{element}" for element in sorted(elements)] + [f"shared {i}" for i in range(n_common)]
        rows += [("1", f"q{i}", url) for url in clicks or [""]]
    verdict = both(log_of(rows), KdeltaAnonymity(k=2, delta=delta), " ".join("1" * len(sets)), None, adds=True)
    n_wide = sum(w.kind == "wide_cluster" for w in verdict.witnesses)
    assert verdict.n_violations == 1 + n_wide


@examples(40)
@given(nearly_valid_rows(), promises, st.permutations(range(1, 40)), st.randoms())
def test_neither_the_numbers_nor_the_order_of_rows_matter(
    rows: list[Row], promise: KdeltaAnonymity, names: list[int], numbers: random.Random
) -> None:
    clusters = clusters_of(rows, numbers, merging=0.3)
    renamed = " ".join(str(names[int(number) % 39] + 1000 * int(number)) for number in clusters.split())
    shuffled = numbers.sample(rows, len(rows))
    once = verify_kdelta(log_of(rows), promise, clusters=clusters)
    again = verify_kdelta(log_of(shuffled), promise, clusters=renamed)
    assert (once.holds, once.n_violations) == (again.holds, again.n_violations)


@examples(40)
@given(nearly_valid_rows(), promises, st.data())
def test_they_agree_where_days_are_promised_too(rows: list[Row], promise: KdeltaAnonymity, data: st.DataObject) -> None:
    # A day for each query and URL keeps what users share; one row with another day breaks it.
    days = [None, *(datetime(2026, 3, day) for day in (1, 2))]
    pairs = list(dict.fromkeys(row[1:] for row in rows))
    chosen: list[datetime | None] = data.draw(st.lists(st.sampled_from(days), min_size=len(pairs), max_size=len(pairs)))
    of_pair = dict(zip(pairs, chosen, strict=True))
    times = [of_pair[row[1:]] for row in rows]
    is_broken: bool = data.draw(st.booleans())
    if times and is_broken:
        times[data.draw(st.integers(0, len(times) - 1))] = datetime(2026, 3, 9)
    log = log_of(rows)
    log = log.with_frame(log.frame.with_columns(time=pl.Series(times, dtype=pl.Datetime("us"))))
    clusters = clusters_of(rows, random.Random(1), merging=0.0)
    found = both(log, msgspec.structs.replace(promise, same_days=True), clusters, None, adds=True)
    if found.holds:
        assert both(log, promise, clusters, None, adds=True).holds

"""km: repeats that leave once, and users who can be told by their counts."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil import Km, QueryLog
from queryveil.release import ColumnPolicy, Ids, Release, TimeDetail
from queryveil.testing import log_of
from queryveil.testing.strategies import logs
from queryveil.text.taxonomy import Taxonomy

NOON = datetime(2006, 3, 1, 12)


@examples(60)
@given(log=logs(), m=st.sampled_from([1, 2, None]), window=st.sampled_from([None, "1d"]), seed=st.integers(0, 99))
def test_repeats_once_leaves_each_text_of_an_id_once_and_the_same_texts(
    log: QueryLog, m: int | None, window: str | None, seed: int
) -> None:
    window = window if "time" in log.columns else None
    every, once = (Km(k=2, m=m, window=window, repeats=each, seed=seed).anonymize(log) for each in ("all", "once"))
    texts = [
        sorted(each.data.frame.group_by("user").agg(pl.col("query").unique().sort())["query"].to_list())
        for each in (every, once)
    ]
    assert texts[0] == texts[1]
    assert not once.data.frame.select("user", "query").is_duplicated().any()
    n_repeated = every.data.frame.height - once.data.frame.height
    assert once.manifest.removed == every.manifest.removed | {"rows_repeated": n_repeated}


def test_of_equal_texts_any_row_may_leave() -> None:
    rows = [("1", "red wine", NOON), ("1", "Red, wine", NOON + timedelta(days=1)), ("2", "red wine", NOON)]
    ranked = pl.DataFrame(rows, schema=["user", "query", "time"], orient="row").with_columns(rank=pl.Series([1, 2, 3]))
    policy = ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.KEEP, keep=("rank",))
    left = set()
    for seed in range(20):
        release = Km(k=2, m=2, repeats="once", columns=policy, seed=seed).anonymize(QueryLog(frame=ranked))
        assert release.manifest.removed["rows_repeated"] == 1
        kept = release.data.frame.filter(pl.col("user") == "1")
        left.add(kept.select("query", "time", "rank").row(0))
    assert left == {("red wine", NOON, 1), ("red wine", NOON + timedelta(days=1), 2)}


def counts_told(release: Release) -> int:
    told = [each for each in release.manifest.warnings if each.startswith("counts of terms")]
    return int(told[0].rpartition(" ")[2].replace(",", "")) if told else 0


@examples(80)
@given(log=logs(), m=st.sampled_from([1, 2, None]), repeats=st.sampled_from(["all", "once"]))
def test_the_warning_counts_who_is_alone_with_counts(log: QueryLog, m: int | None, repeats: str) -> None:
    release = Km(k=2, m=m, repeats=repeats, seed=1).anonymize(log)
    people: dict[str, Counter[str]] = {}
    for user, query in release.data.frame.select("user", "query").iter_rows():
        people.setdefault(user, Counter()).update(query.split())
    alike = Counter(frozenset(counts.items()) for counts in people.values())
    assert counts_told(release) == sum(n == 1 for n in alike.values())


def test_items_of_a_taxonomy_are_counted_as_they_are_released() -> None:
    taxonomy = Taxonomy.from_pairs([("apple", "fruit"), ("pear", "fruit"), ("fruit", "food"), ("tea", "food")])
    log = log_of({"1": ["apple", "apple"], "2": ["pear", "apple"], "3": ["apple"], "4": ["pear"]})
    release = Km(k=4, m=1, taxonomy=taxonomy, seed=1).anonymize(log)
    assert set(release.data.frame["query"]) == {"<fruit>"}
    # Two have it twice, two once.
    assert counts_told(release) == 0

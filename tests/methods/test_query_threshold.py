"""QueryThreshold: exactly the queries of k users leave; what that does not hide."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.house_rules import keep_the_house_rules

from queryveil import QueryThreshold, verify
from queryveil.data import Format, Layout, QueryLog
from queryveil.errors import BadInput, BadParameter, NothingPromised
from queryveil.release import ColumnPolicy, Ids, TimeDetail
from queryveil.reports.inspection import inspect
from queryveil.synthesis import synthesize
from queryveil.testing import log_of
from queryveil.testing.strategies import clicked_logs, logs

KEPT = ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.KEEP)
METHODS = [
    QueryThreshold(k=2),
    QueryThreshold(k=3, columns=ColumnPolicy(ids=Ids.KEYED, key=b"0123456789abcdef")),
]


def plain(text: str) -> str:
    return " ".join(normalize("NFC", text).lower().split())


def common_rows(log: QueryLog, *, k: int) -> Counter[tuple[str, str]]:
    """The definition: the rows whose query at least k users asked."""
    asked = [(user, plain(query)) for user, query in log.frame.select("user", "query").iter_rows()]
    users = defaultdict(set)
    for user, query in asked:
        users[query].add(user)
    return Counter((user, query) for user, query in asked if query and len(users[query]) >= k)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=["k=2", "k=3 keyed"])
@examples(8)
@given(log=st.one_of(logs(), logs(with_time=False), clicked_logs()))
def test_query_threshold_keeps_the_house_rules(method: QueryThreshold, log: QueryLog) -> None:
    keep_the_house_rules(method, log)


@pytest.mark.slow
def test_query_threshold_keeps_the_house_rules_on_a_log_of_sessions() -> None:
    keep_the_house_rules(QueryThreshold(), synthesize(users=60, seed=2).log)


@examples(50)
@given(log=st.one_of(logs(), clicked_logs()), k=st.integers(2, 4))
def test_exactly_the_rows_of_queries_that_k_users_asked_leave(log: QueryLog, k: int) -> None:
    release = QueryThreshold(k=k, columns=KEPT).anonymize(log)
    expected = common_rows(log, k=k)
    assert Counter(release.log.frame.select("user", "query").iter_rows()) == expected
    removed = release.manifest.removed
    texts = {plain(text) for text in log.frame["query"]}
    assert removed["rows_without_query"] == sum(plain(text) == "" for text in log.frame["query"])
    assert removed["distinct_queries"] == len(texts - {""} - {query for _, query in expected})
    assert removed["users_left_empty"] == log.n_users - len({user for user, _ in expected})


def test_k_counts_users_and_not_rows_and_a_query_counts_however_it_is_typed() -> None:
    log = log_of(
        {
            "persona1": ["Kestrel  LANTERN", "mulberry", "mulberry", "mulberry", "nutmeg"],
            "persona2": [" kestrel lantern", "nutmeg"],
            "persona3": ["KESTREL lantern ", "nutmeg tree"],
        }
    )
    assert QueryThreshold(k=3).anonymize(log).log.frame["query"].to_list() == ["kestrel lantern"] * 3
    assert QueryThreshold(k=4).anonymize(log).log.n_rows == 0
    assert set(QueryThreshold(k=2).anonymize(log).log.frame["query"]) == {"kestrel lantern", "nutmeg"}


def test_an_empty_query_is_left_out_however_many_asked_it() -> None:
    release = QueryThreshold(k=2).anonymize(log_of({f"persona{i}": ["", " "] for i in range(5)}))
    assert release.log.n_rows == 0
    assert release.manifest.removed["rows_without_query"] == 10
    assert release.manifest.removed["rows_of_rare_queries"] == 0


def test_what_leaves_by_default() -> None:
    rows = {
        "user": ["persona1", "persona2"],
        "query": ["kestrel"] * 2,
        "time": [datetime(2006, 3, 1, 7, 30)] * 2,
        "url": ["https://birds.example"] * 2,
    }
    release = QueryThreshold(k=2).anonymize(QueryLog.from_frame(rows))
    assert release.log.columns == ["user", "query", "time"]
    assert release.log.frame["time"].to_list() == [datetime(2006, 3, 1)] * 2
    kept = QueryThreshold(k=2, columns=ColumnPolicy(time=TimeDetail.DAY, keep=("url",))).anonymize(
        QueryLog.from_frame(rows)
    )
    assert kept.log.columns == ["user", "query", "time", "url"]
    assert kept.manifest.columns.kept == ("url",)


def test_two_common_queries_together_may_still_be_one_persons_alone() -> None:
    common = [("kestrel", "lantern"), ("lantern", "mulberry"), ("mulberry", "kestrel")]
    log = log_of({f"persona{i}": queries for i, queries in enumerate(common)})
    release = QueryThreshold(k=2).anonymize(log)
    assert release.log.n_rows == 6
    assert inspect(release.log, k=2, m=2).alone == {1: 0, 2: 3}


def test_whoever_asks_k_minus_one_times_sees_whether_somebody_else_asked() -> None:
    planted = {f"attacker{i}": ["kestrel clinic lanternford"] for i in range(4)}
    with_target = log_of({"persona1": ["kestrel clinic lanternford"], **planted})
    without = log_of({"persona1": ["mulberry"], **planted})
    assert QueryThreshold(k=5).anonymize(with_target).log.n_rows == 5
    assert QueryThreshold(k=5).anonymize(without).log.n_rows == 0


def test_the_manifest_says_plainly_that_nothing_is_promised() -> None:
    release = QueryThreshold(k=7).anonymize(log_of({"persona1": ["kestrel"]}))
    assert release.manifest.warnings[0].startswith("promises nothing: each query was asked by 7 people or more, but")
    assert release.manifest.parameters == {"k": 7}
    with pytest.raises(NothingPromised, match="each query was asked by 7 people or more, but two of them together"):
        verify(release)


@pytest.mark.parametrize("k", [1, 0, -3, 2.5, "5"])
def test_a_threshold_of_fewer_than_two_users_is_refused(k: object) -> None:
    with pytest.raises(BadParameter, match="k must be 2 or more, got"):
        QueryThreshold(k=k)  # type: ignore[arg-type]


def test_transactions_are_refused_and_so_is_a_bad_seed() -> None:
    bags = QueryLog(frame=log_of({"1": ["1 2 3"]}).frame, layout=Layout(format=Format.TRANSACTIONS))
    with pytest.raises(BadInput, match="query-threshold is for logs of queries; for transactions there are km"):
        QueryThreshold().anonymize(bags)
    with pytest.raises(BadParameter, match="seed must be 0 or more"):
        QueryThreshold(seed=-1)

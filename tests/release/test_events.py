"""Events leave only when they are asked for, only with their own rows, and every one of them is counted."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from tests.formats.test_write_ubi import logs
from tests.support.examples import examples

from queryveil.attacks.attacker import AuxiliaryData
from queryveil.attacks.site_owner import SiteOwner
from queryveil.checks import verify
from queryveil.data import EVENTS_SCHEMA, QueryLog, count_kinds
from queryveil.errors import BadParameter
from queryveil.methods import Clump, Dp, Kdelta, Km, Plink, Pseudonymise, QueryThreshold, Swap, TokenHash
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, EventCounts, read_release
from queryveil.utility import measure, measuring

KEPT = ColumnPolicy(keep=("events",))
_FIRST = datetime(2026, 3, 4, 5, 6, 7)


def a_log(n_users: int = 12) -> QueryLog:
    """Return a log in which each person asks what everybody asks, sees two results, clicks one, and asks a secret."""
    users = [f"persona{number:02}" for number in range(n_users)]
    queries = pl.DataFrame({"user": [*users, *users]}).with_row_index("row")
    queries = queries.with_columns(
        query=pl.when(pl.col("row") < n_users).then(pl.lit("kettle")).otherwise("quince " + pl.col("user")),
        time=pl.lit(_FIRST) + pl.col("row") * timedelta(minutes=37),
        device=pl.lit("phone"),
        search="id of " + pl.col("row").cast(pl.String),
    )
    each: list[dict[str, Any]] = []
    for row, search, time in queries.select("row", "search", "time").iter_rows():
        for rank, action in enumerate(("impression", "impression", "item_click", "quince opened")):
            more = {"rank": rank, "time": time + timedelta(seconds=rank), "dwell": 1.5 * rank}
            each.append({"search": search, "action": action, "object": f"thing {row % n_users}", **more})
    each.append({"search": "id of nobody", "action": "purchase"})
    return QueryLog.from_frame(queries.drop("row"), events=pl.DataFrame(each))


BEFORE = {"impression": 48, "click": 24, "purchase": 1, "other": 24}
METHODS = [Km(k=2, m=1), Kdelta(k=2), Swap(k=2), Clump(k=2), Plink(), Pseudonymise(), QueryThreshold(k=2), TokenHash()]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_without_a_word_no_event_leaves_and_each_is_counted(tmp_path: Path, method: Any) -> None:
    release = method.anonymize(a_log())
    counts = release.manifest.events
    assert counts.before() == BEFORE
    assert counts.kept == {}
    folder = release.save(tmp_path / "out")
    text = b"".join(path.read_bytes() for path in folder.iterdir())
    assert b"id of" not in text
    assert b"opened" not in text
    back = read_release(folder)
    assert getattr(back.data, "events", None) is None
    assert back.manifest.events == counts


def test_counts_with_noise_say_nothing_of_events() -> None:
    assert Dp(epsilon=8.0, delta=1e-2, seed=1).anonymize(a_log()).manifest.events is None


def test_kept_events_are_those_of_the_rows_that_leave_under_numbers_of_their_own(tmp_path: Path) -> None:
    log = a_log()
    release = Km(k=2, m=1, columns=KEPT).anonymize(log)
    # What nobody else asks does not leave, but for the word that all have.
    kept = QueryThreshold(k=2, columns=KEPT).anonymize(log)
    assert kept.log.n_rows == 12
    assert kept.manifest.events == EventCounts(
        kept={"impression": 24, "click": 12, "other": 12},
        dropped={"impression": 24, "click": 12, "purchase": 1, "other": 12},
    )
    assert "events that were kept, which the promise does not cover: 96, of 24 searches" in release.manifest.warnings
    events, frame = release.log.events, release.log.frame
    assert events is not None
    assert frame["search"].to_list() == [str(number) for number in range(1, 25)]
    assert events["time"].null_count() == events.height
    things = events.join(frame, on="search").select("user", "object").unique()
    # Each person has the events of one person.
    assert things.height == things["user"].n_unique() == things["object"].n_unique() == 12
    back = read_release(release.save(tmp_path / "out"))
    assert back.log.events is not None
    assert back.log.events.equals(events)
    assert back.log.frame.select(frame.columns).equals(frame)
    verdict = verify(tmp_path / "out", original=log)
    assert (verdict.holds, verdict.faults) == (True, ())


@pytest.mark.parametrize(("time", "second"), [("drop", None), ("hour", 0), ("day", 0), ("keep", 1)])
def test_times_of_events_are_as_exact_as_those_of_queries(time: Any, second: int | None) -> None:
    release = Pseudonymise(columns=ColumnPolicy(time=time, keep=("events",))).anonymize(a_log())
    events = release.log.events
    assert events is not None
    of_events = events["time"].dt.second().unique().to_list()
    assert of_events == [None] if second is None else (0 in of_events) is (second == 0)
    assert ("time" in release.log.columns) is (time != "drop")


def test_shared_times_leave_without_those_of_events() -> None:
    release = Km(k=2, m=1, window="7d", columns=ColumnPolicy(time="shared", keep=("events",))).anonymize(a_log())  # type: ignore[arg-type]
    assert release.log.frame["time"].null_count() == 0
    assert release.log.events is not None
    assert release.log.events["time"].null_count() == release.log.events.height


def test_where_queries_have_no_times_those_of_events_do_not_leave() -> None:
    log = a_log()
    release = Pseudonymise(columns=ColumnPolicy(time="keep", keep=("events",))).anonymize(  # type: ignore[arg-type]
        QueryLog(frame=log.frame.drop("time"), events=log.events)
    )
    assert release.manifest.columns.time == "drop"
    assert release.log.events is not None
    assert release.log.events["time"].null_count() == release.log.events.height


@pytest.mark.parametrize("texts", [["gout", "tea"], ["tea", "gout"]])
def test_events_of_a_search_of_several_texts_leave_only_if_all_of_these_do(texts: list[str]) -> None:
    queries = {"user": ["a", "a", "b", "b"], "query": [*texts, "tea", "tea"], "search": ["1", "1", "2", "2"]}
    events = {"search": ["1", "2"], "action": ["click", "click"], "object": ["gout.example", "tea.example"]}
    release = QueryThreshold(k=2, columns=KEPT).anonymize(QueryLog.from_frame(queries, events=events))
    assert release.log.frame["query"].to_list() == ["tea"] * 3
    assert release.log.events is not None
    assert release.log.events["object"].to_list() == ["tea.example"]
    assert release.manifest.events == EventCounts(kept={"click": 1}, dropped={"click": 1})


def test_a_search_that_lasts_from_one_window_to_the_next_does_not_join_them() -> None:
    queries = {"user": ["a"] * 2 + ["b"] * 2, "query": ["tea"] * 4, "search": ["1", "1", "2", "2"]}
    times = [datetime(2026, 3, 4), datetime(2026, 3, 5)] * 2
    log = QueryLog.from_frame(queries | {"time": times}, events={"search": ["1", "2"], "action": ["click", "click"]})
    released = Km(k=2, m=1, window="1d", columns=KEPT).anonymize(log).log
    assert released.n_users == 4
    assert released.frame["search"].n_unique() == 4
    assert released.events is not None
    assert released.events.height == 2


@pytest.mark.parametrize("keep", [("url",), ("rank", "url"), ("url", "device")])
def test_kept_urls_are_those_of_clicks_alone(tmp_path: Path, keep: tuple[str, ...]) -> None:
    log = a_log()
    release = Km(k=2, m=1, columns=ColumnPolicy(keep=keep)).anonymize(log)
    counts = release.manifest.events
    assert counts is not None
    assert (counts.clicks_as_rows, counts.kept, counts.before()) == (24, {}, BEFORE)
    assert counts.dropped == {"impression": 48, "purchase": 1, "other": 24}
    assert release.log.events is None
    assert set(release.log.columns) == {"user", "query", *keep}
    folder = release.save(tmp_path / "out")
    assert read_release(folder).log.frame.select(release.log.columns).equals(release.log.frame)
    assert verify(folder, original=log).holds


def test_kdelta_equals_shares_of_clicks_that_are_events(tmp_path: Path) -> None:
    log = a_log()
    release = Kdelta(k=2).anonymize(log)
    assert release.log.frame["url"].null_count() == 0
    assert verify(release.save(tmp_path / "out"), original=log).holds


def test_methods_whose_rows_are_no_longer_those_of_one_person_refuse_events_and_say_why() -> None:
    with pytest.raises(BadParameter, match="swap gives a query to somebody else, and its events would go with it"):
        Swap(k=2, columns=KEPT).anonymize(a_log())
    with pytest.raises(BadParameter, match="rows of kdelta are clicks"):
        Kdelta(k=2, columns=KEPT).anonymize(a_log())


def test_what_cannot_be_kept_is_refused() -> None:
    with pytest.raises(BadParameter, match="events, which bring numbers"):
        ColumnPolicy(keep=("search",))
    with pytest.raises(BadParameter, match="left out where events are kept"):
        ColumnPolicy(keep=("events", "url"))
    without = a_log().with_frame(a_log().frame.drop("search"))
    with pytest.raises(BadParameter, match="keep must be columns of the log, such as none here, got events"):
        Km(k=2, m=1, columns=KEPT).anonymize(without)


def test_in_a_log_whose_rows_are_clicks_events_are_ranks_and_urls() -> None:
    release = Km(k=2, m=1, columns=KEPT).anonymize(a_log().with_clicks_as_rows())
    assert set(release.log.columns) == {"user", "query", "rank", "url"}
    assert release.manifest.columns.kept == ("rank", "url")


@pytest.mark.parametrize("policy", [KEPT, ColumnPolicy(keep=("url",)), ColumnPolicy()])
def test_attackers_and_measures_see_the_clicks_of_both(policy: ColumnPolicy) -> None:
    log = a_log()
    release = Km(k=2, m=1, columns=policy).anonymize(log)
    pair = Pair(log, release=release)
    assert pair.mismatch is None
    assert pair.original_rows.height == pair.baseline.original_rows.height == pair.baseline.released_rows.height
    assert {score.name for score in measure(log, release).scores} >= ({"top_urls_kept"} if policy.keep else set())
    found = SiteOwner(seed=1).skip_reason(pair, auxiliary=AuxiliaryData())
    assert (found is None) is bool(policy.keep)


def test_releases_with_and_without_clicks_as_rows_are_measured_by_one_reference() -> None:
    log = a_log()
    reference = measuring.Reference(log=log)
    for method in (Km(k=2, m=1), Km(k=2, m=1, columns=KEPT), Kdelta(k=2)):
        release = method.anonymize(log)
        pair = Pair(log, release=release)
        shared = measuring.run(pair, reference=reference)
        assert shared.scores == measure(log, release).scores
        assert pair.given is log


@examples(40)
@given(logs())
def test_events_of_any_log_are_kept_or_counted(log: QueryLog) -> None:
    for policy in (ColumnPolicy(), KEPT, ColumnPolicy(keep=("url",))):
        release = Km(k=2, m=1, columns=policy).anonymize(log)
        counts = release.manifest.events
        assert counts is not None
        assert counts.before() == count_kinds(log.events)
        assert counts.kept == count_kinds(release.log.events)
    assert log.events is not None
    assert log.events.schema == pl.Schema(EVENTS_SCHEMA)

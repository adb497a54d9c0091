"""kdelta from a log to a release: the promise by its definition, what is added, what is left out, what is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.house_rules import keep_the_house_rules
from tests.support.plain_kdelta import clicks_of, diameter, shares, user_distance

from queryveil.checks import verify_kdelta
from queryveil.data import QueryLog
from queryveil.errors import BadParameter, TooFewUsers
from queryveil.guarantees import KdeltaAnonymity, NoPromise
from queryveil.methods.kdelta import Kdelta
from queryveil.methods.kdelta._equal import Table, added_rows
from queryveil.methods.kdelta._objects import hold, read_objects
from queryveil.release import ColumnPolicy, Release, TimeDetail
from queryveil.synthesis import synthesize
from queryveil.testing import tiny_log
from queryveil.testing.strategies import clicked_logs, logs

KEEP = ColumnPolicy(ids="keep", time="keep")  # type: ignore[arg-type]
METHODS = [
    Kdelta(k=2),
    Kdelta(k=3, delta=0.7, min_cluster_users=1),
    Kdelta(k=2, delta=0.0, centroids="paper"),
    Kdelta(k=2, delta=1.0),
    Kdelta(k=2, additions=False, min_cluster_users=1),
    Kdelta(k=3, additions=False, delta=0.8, min_query_users=2),
    Kdelta(k=2, same_texts=True, min_cluster_users=1),
    Kdelta(k=2, same_texts=True, additions=False, min_cluster_users=1),
    Kdelta(k=2, max_distance=0.4, min_cluster_users=1),
    Kdelta(k=3, mode="paper", max_distance=0.5, min_cluster_users=1),
]


def clicked(rows: Sequence[tuple[str, str, str | None]], **columns: list[Any]) -> QueryLog:
    user, query, url = map(list, zip(*rows, strict=True))
    return QueryLog.from_frame({"user": user, "query": query, "url": url} | columns)


def released(release: Release) -> list[tuple[str, str, str | None]]:
    frame = release.log.frame
    url = frame["url"].to_list() if "url" in frame.columns else [None] * frame.height
    return list(zip(frame["user"], frame["query"], url, strict=True))


def asked(log: QueryLog) -> Counter[tuple[str, str, str | None]]:
    """Return the users, queries and URLs of the original as they would be released."""
    rows = released(Release(data=log, manifest=None))  # type: ignore[arg-type]
    return Counter((user, " ".join(query.lower().split()), url or None) for user, query, url in rows)


def broken(release: Release, *, k: int, delta: float, max_distance: float = 0.0) -> list[str]:
    """Return what a release breaks of the definition, read from its rows and its clusters."""
    rows = released(release)
    queries = sorted({query for _, query, _ in rows})
    numbers = release.manifest.query_clusters.split()
    if release.manifest.parameters["same_texts"]:
        assert not numbers
        numbers = list(map(str, range(len(queries))))
    cluster = dict(zip(queries, numbers, strict=True))
    clicks = clicks_of((query, url) for _, query, url in rows)
    found = []
    for number in set(numbers):
        if diameter([query for query in queries if cluster[query] == number], clicks) > Fraction(delta) + Fraction(
            1, 10**9
        ):
            found.append("a cluster is wider than delta")
    cells: dict[str, Counter[Any]] = {}
    days = [None] * len(rows)
    if release.manifest.columns.time is TimeDetail.SHARED:
        days = release.log.frame["time"].to_list()
        assert all(day is None or day == datetime(day.year, day.month, day.day) for day in days)
    for (user, query, url), day in zip(rows, days, strict=True):
        cells.setdefault(user, Counter())[cluster[query], url, day] += 1
    limit = Fraction(max_distance) + (Fraction(1, 10**9) if max_distance else 0)
    near = [sum(user_distance(mine, other) <= limit for other in cells.values()) for mine in cells.values()]
    return found + ["shares of fewer than k users" for n in near if n < k]


def anonymize(method: Kdelta, log: QueryLog) -> Release | None:
    try:
        return method.anonymize(log)
    except TooFewUsers:
        assert log.n_users
        return None


@pytest.mark.parametrize("method", METHODS, ids=range(len(METHODS)))
@examples(25)
@given(log=clicked_logs())
def test_groups_of_k_have_equal_shares_over_tight_clusters(method: Kdelta, log: QueryLog) -> None:
    release = anonymize(method, log)
    if release is not None:
        delta = 0.0 if method.same_texts else method.delta
        near = method.max_distance
        promise = KdeltaAnonymity(k=method.k, delta=delta, same_texts=method.same_texts, max_distance=near)
        assert release.promise == promise
        assert not broken(release, k=method.k, delta=delta, max_distance=near)
        assert verify_kdelta(release.log, promise, clusters=release.manifest.query_clusters, original=log).holds


@pytest.mark.parametrize("method", METHODS, ids=range(len(METHODS)))
@examples(25)
@given(log=clicked_logs())
def test_added_rows_are_pairs_that_somebody_really_asked_at_a_time_of_the_users_own(
    method: Kdelta, log: QueryLog
) -> None:
    release = anonymize(replace(method, columns=KEEP), log)
    if release is None:
        return
    assert {row[1:] for row in released(release)} <= {row[1:] for row in asked(log)}
    times = set(zip(log.frame["user"], log.frame["time"], strict=True))
    assert set(zip(release.log.frame["user"], release.log.frame["time"], strict=True)) <= times


@pytest.mark.parametrize("method", [each for each in METHODS if not each.additions], ids=["0", "1", "2"])
@examples(40)
@given(log=clicked_logs())
def test_without_additions_every_released_row_is_a_row_of_its_user(method: Kdelta, log: QueryLog) -> None:
    release = anonymize(replace(method, columns=KEEP), log)
    if release is not None:
        assert Counter(released(release)) <= asked(log)
        assert release.manifest.changed == {"rows_added": 0, "queries_exchanged": 0}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=range(len(METHODS)))
@examples(4)
@given(log=st.one_of(clicked_logs(), clicked_logs(with_time=False), logs()))
def test_kdelta_keeps_the_house_rules(method: Kdelta, log: QueryLog) -> None:
    keep_the_house_rules(method, log)


@examples(25)
@given(log=clicked_logs())
def test_the_papers_rounding_makes_no_promise_and_says_how_far_it_is_off(log: QueryLog) -> None:
    method = Kdelta(k=2, mode="paper")
    release = anonymize(method, log)
    if release is None or not log.n_rows:
        return
    assert isinstance(release.promise, NoPromise)
    measures = release.manifest.measures
    assert 0 <= measures["mean_distance_left"] <= measures["largest_distance_left"] < 1
    assert bool(broken(release, k=2, delta=0.5)) <= (measures["largest_distance_left"] > 0)


def two_pairs() -> QueryLog:
    pairs = [("u1", "red wine", "w"), ("u2", "wine", "w"), ("u3", "cheese", "c"), ("u4", "blue cheese", "c")]
    return clicked([(user, query, url) for user, query, url in pairs for _ in range(3)])


def test_users_who_already_have_equal_shares_lose_and_gain_nothing() -> None:
    for method in (Kdelta(k=2), Kdelta(k=2, additions=False)):
        release = method.anonymize(two_pairs())
        assert release.manifest.changed == {"rows_added": 0, "queries_exchanged": 0}
        assert release.manifest.removed["rows_suppressed"] == 0
        assert release.manifest.measures["groups"] == 2
        assert release.manifest.query_clusters == "1 1 2 2"


def test_a_member_is_lifted_and_cut_to_a_multiple_of_its_centroid() -> None:
    rows = [("u1", "tea", "t"), ("u1", "wine", "w"), *[("u2", "tea", "t")] * 3]
    release = Kdelta(k=2, columns=KEEP, min_cluster_users=1).anonymize(clicked(rows))
    # The cheaper centroid is u2: u1 gets a second tea for its wine. With u1 as centroid three rows would change.
    assert Counter(released(release)) == Counter([("u1", "tea", "t")] * 2 + rows[2:])
    assert release.manifest.changed["rows_added"] == 1
    assert release.manifest.removed["rows_suppressed"] == 1


def test_the_paper_takes_the_user_with_most_rows_as_centroid() -> None:
    rows = [("u1", "tea", "t"), *[("u2", "tea", "t"), ("u2", "wine", "w"), ("u2", "jam", "j")]]
    method = Kdelta(k=2, columns=KEEP, min_cluster_users=1, centroids="paper")
    release = method.anonymize(clicked(rows))
    assert release.manifest.changed["rows_added"] == 2
    assert release.manifest.removed["rows_suppressed"] == 0
    best = replace(method, centroids="best").anonymize(clicked(rows)).manifest
    assert best.measures["additions_paper_centroids"] == 2
    assert best.changed["rows_added"] + best.removed["rows_suppressed"] <= 2


def test_an_added_query_is_drawn_equiprobably_from_the_rows_of_the_cell() -> None:
    # The cell has one query in 700 rows and another in 300: so they are drawn for the second user.
    rows = [*[("u1", "tea", "t")] * 700, *[("u1", "teas", "t")] * 300, *[("u2", "milk", "m")] * 1000]
    method = Kdelta(k=2, columns=KEEP, min_cluster_users=1, centroids="paper", seed=3)
    added = [query for user, query, _ in released(method.anonymize(clicked(rows))) if user == "u2"]
    assert len(added) == 1000
    assert 230 < added.count("teas") < 370


def test_whoever_lacks_rows_of_a_cell_repeats_the_own_ones() -> None:
    rows = [*[("u1", "tea", "t")] * 4, ("u2", "teas", "t"), ("u2", "milk", "m")]
    release = Kdelta(k=2, columns=KEEP, min_cluster_users=1, centroids="paper").anonymize(clicked(rows))
    assert Counter(released(release)) == Counter([*rows[:4], *[("u2", "teas", "t")] * 2])


def test_whoever_lacks_a_cell_gets_what_somebody_has_there_who_asks_as_often() -> None:
    often, twice = [("u1", "tea", "t")] * 9, [("u2", "teas", "t"), ("u2", "green tea", "t")]
    needy = [("u3", "milk", "m"), ("u3", "milk", "m"), ("u4", "milk", "m"), ("u4", "milk", "m"), ("u4", "cup", "c")]
    have = Table(read_objects(clicked([*often, *twice, *needy]).frame), np.zeros(5, np.int32))
    want = hold(
        np.repeat([2, 3], [2, 10]).astype(np.int32), np.full(12, have.cell[0]), n_owners=4, n_cells=have.n_cells
    )
    for seed in range(5):
        new = added_rows(have.user, have.cell, have.hold(), want, rng=np.random.default_rng(seed))
        assert sorted(new.source[new.user == 2].tolist()) == [9, 10]
        # Nobody has ten: the nine of the first are repeated.
        assert set(new.source[new.user == 3].tolist()) == set(range(9))


def test_queries_differ_by_text_alone_where_nobody_clicked() -> None:
    release = Kdelta(k=2).anonymize(tiny_log())
    assert "no clicks: queries are alike only if their texts are the same" in release.manifest.warnings
    assert set(release.log.frame["query"]) == {"red wine"}
    assert release.manifest.removed["rows_of_rare_clusters"] == 6
    assert release.manifest.removed["users_left_empty"] == 2


def test_rare_queries_and_rare_clusters_go_first_and_are_counted() -> None:
    rows = [("u1", "Tea", "t"), ("u2", "tea ", "t"), ("u3", "teas", "t"), ("u3", "zanzibar", "z"), ("u3", "", "t")]
    removed = Kdelta(k=3).anonymize(clicked(rows)).manifest.removed
    assert removed["rows_without_query"] == removed["rows_of_rare_clusters"] == 1
    with pytest.raises(TooFewUsers, match="3 users with something to release are needed and there are 2"):
        Kdelta(k=3, min_query_users=2).anonymize(clicked(rows))
    release = Kdelta(k=2, min_query_users=2).anonymize(clicked(rows))
    assert release.manifest.removed["rows_of_rare_queries"] == 2
    assert release.manifest.texts is not None
    assert release.manifest.texts.n_of_one_person == 0
    assert not any("only one user asked" in warning for warning in release.manifest.warnings)


def test_queries_of_one_user_are_counted_and_warned_of() -> None:
    release = Kdelta(k=2).anonymize(two_pairs())
    assert release.manifest.texts is not None
    assert release.manifest.texts.n_of_one_person == 4
    assert any("released queries that only one user asked: 4" in warning for warning in release.manifest.warnings)


def test_a_bot_never_becomes_a_centroid() -> None:
    rows = [*[("bot", f"tea {i}", "t") for i in range(150)], ("u1", "tea 1", "t"), ("u2", "tea 1", "t")]
    times = pl.datetime_range(pl.datetime(2006, 3, 1), pl.datetime(2006, 3, 1, 2, 31), "1m", eager=True)
    release = Kdelta(k=2).anonymize(clicked(rows, time=times.to_list()))
    assert release.manifest.removed["bot_users"] == 1
    assert release.manifest.removed["bot_rows"] == 150
    assert release.log.n_rows == 2


def test_blanks_case_and_empty_urls_mark_nobody() -> None:
    rows: list[tuple[str, str, str | None]] = [("u1", " Red  WINE", ""), ("u2", "red wine", None)]
    frame = Kdelta(k=2).anonymize(clicked(rows)).log.frame
    assert frame["query"].to_list() == ["red wine"] * 2
    assert frame["url"].to_list() == [None] * 2


def test_copied_rows_bring_the_rest_of_the_row_and_that_is_said() -> None:
    rows = [*[("u1", "tea", "t")] * 4, *[("u2", "milk", "m")] * 4]
    log = clicked(rows, rank=[1] * 4 + [7] * 4, city=["north"] * 4 + ["south"] * 4)
    columns = ColumnPolicy(ids="keep", keep=("rank", "city"))  # type: ignore[arg-type]
    release = Kdelta(k=2, min_cluster_users=1, columns=columns).anonymize(log)
    whole = set(release.log.frame.select("query", "url", "rank", "city").iter_rows())
    assert len(whole) == 1
    assert whole < {("tea", "t", 1, "north"), ("milk", "m", 7, "south")}
    assert any("recognised by the columns" in warning for warning in release.manifest.warnings)
    assert any("rows that were made up, copies of other users' rows: 4" in text for text in release.manifest.warnings)


@pytest.mark.slow
@pytest.mark.parametrize("like", ["aol", "web"])
def test_better_centroids_save_edits_on_a_made_up_log(like: str) -> None:
    release = Kdelta(k=5, seed=1).anonymize(synthesize(users=300, like=like, seed=2).log)
    manifest = release.manifest
    papers = manifest.measures["additions_paper_centroids"] + manifest.measures["suppressions_paper_centroids"]
    assert manifest.changed["rows_added"] + manifest.removed["rows_suppressed"] < 0.9 * papers
    assert not broken(release, k=5, delta=0.5)
    assert manifest.changed["queries_exchanged"] > 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"k": 1}, "k must be 2 or more, got 1"),
        ({"delta": 1.5}, "delta must be between 0 and 1, got 1.5"),
        ({"mode": "nearly"}, "mode must be exact or paper, got nearly"),
        ({"centroids": "any"}, "centroids must be best or paper, got any"),
        ({"mode": "paper", "additions": False}, "mode must be exact with --no-additions and with --same-texts"),
        ({"max_distance": 1.0}, "max_distance must be 0 or more and below 1, got 1.0"),
        ({"max_distance": 0.1, "same_texts": True}, "max_distance must be 0 with --no-additions and with --same-texts"),
        ({"min_query_users": 0}, "min_query_users must be 1 or more, got 0"),
        ({"min_cluster_users": 0}, "min_cluster_users must be 1 or more, got 0"),
        ({"bot_threshold": 0}, "bot_threshold must be 1 or more"),
        ({"seed": -1}, "seed must be 0 or more"),
    ],
    ids=str,
)
def test_bad_settings_say_what_to_write_instead(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        Kdelta(**setting)


def test_too_few_users_is_an_error_that_names_no_one() -> None:
    with pytest.raises(
        TooFewUsers, match="5 users with something to release are needed and there are 4; try a smaller k"
    ):
        Kdelta(k=5).anonymize(two_pairs())
    lonely = clicked([("u1", "tea", "t"), ("u2", "milk", "m")])
    with pytest.raises(TooFewUsers, match="too few users share a query and a URL"):
        Kdelta(k=2, additions=False, min_cluster_users=1).anonymize(lonely)


@examples(60)
@given(log=clicked_logs(), additions=st.booleans())
def test_with_the_same_texts_k_users_have_each_text_and_url_in_the_same_shares(log: QueryLog, additions: bool) -> None:
    method = Kdelta(k=2, same_texts=True, additions=additions, min_cluster_users=1)
    release = anonymize(method, log)
    if release is None:
        return
    assert release.promise == KdeltaAnonymity(k=2, delta=0.0, same_texts=True)
    users: dict[str, Counter[tuple[str, str | None]]] = {}
    for user, query, url in released(release):
        users.setdefault(user, Counter())[query, url] += 1
    alike = Counter(frozenset(shares(mine).items()) for mine in users.values())
    assert all(n >= 2 for n in alike.values())


def test_of_the_same_texts_the_one_that_most_people_asked_is_taken() -> None:
    rows = [
        ("u1", "tea", "t"),
        ("u2", "tea", "t"),
        ("u3", "tea of jo", "t"),
        ("u4", "tea of jo", "t"),
        ("u5", "tea", "t"),
    ]
    release = Kdelta(k=5, same_texts=True).anonymize(clicked(rows))
    assert [query for _, query, _ in released(release)] == ["tea"] * 5
    assert release.manifest.changed["queries_exchanged"] == 2


def test_of_the_same_texts_one_that_a_single_person_asked_is_taken_only_if_the_cell_has_no_other() -> None:
    alone = [("u1", "tea of jo", "t"), ("u2", "tea of flo", "t")]
    many = [(f"u{i}", "tea", "t") for i in range(3, 13) for _ in range(5)]
    release = Kdelta(k=2, same_texts=True, columns=KEEP, seed=1).anonymize(clicked([*alone, *many]))
    assert {query for _, query, _ in released(release)} == {"tea"}
    assert release.manifest.texts.n_of_one_person == 0  # type: ignore[union-attr]
    # Of two texts that one person each asked, one must be taken.
    lonely = Kdelta(k=2, same_texts=True).anonymize(clicked(alone))
    assert lonely.manifest.texts.n_of_one_person == 1  # type: ignore[union-attr]


def test_shares_that_may_differ_save_edits() -> None:
    rows = [("u1", f"q{i}", f"u{i}") for i in range(10)] + [("u2", f"q{i}", f"u{i}") for i in range(5, 15)]
    added = {
        near: Kdelta(k=2, max_distance=near, min_cluster_users=1, seed=1).anonymize(clicked(rows)).manifest
        for near in (0.0, 0.2, 0.4)
    }
    # Each has half of the rows in common; a fifth, then two fifths of ten rows may be their own.
    assert [each.changed["rows_added"] for each in added.values()] == [5, 4, 3]
    assert added[0.4].measures["largest_distance_left"] <= 0.2


@examples(60)
@given(log=clicked_logs(), k=st.integers(2, 4))
def test_our_centroids_never_need_more_edits_than_the_papers(log: QueryLog, k: int) -> None:
    release = anonymize(Kdelta(k=k, min_cluster_users=1), log)
    if release is None or not log.n_rows:
        return
    manifest = release.manifest
    ours = manifest.changed["rows_added"] + manifest.removed["rows_suppressed"]
    theirs = manifest.measures["additions_paper_centroids"] + manifest.measures["suppressions_paper_centroids"]
    assert ours <= theirs

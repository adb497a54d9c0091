"""Google2024 and Ec2026: who must have asked what leaves, cells of enough users, mini-sessions; house rules of all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.house_rules import keep_the_house_rules

from queryveil import AskedEntities, AskedTexts, BraveWdp, Ddg2026, Ec2026, Google2024, Mozilla, TextRule, verify
from queryveil.data import EVENTS_SCHEMA, Format, Layout, QueryLog
from queryveil.errors import BadInput, BadParameter, NotYet
from queryveil.methods.practice.ec import coarser, entities, mini_sessions
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids
from queryveil.spark import check_on_spark
from queryveil.testing import log_of
from queryveil.testing.strategies import clicked_logs, logs

KEYED = ColumnPolicy(ids=Ids.KEYED, key=b"0123456789abcdef")
START = datetime(2025, 1, 1)
METHODS = [
    Google2024(n_users=2, n_row_users=2),
    Google2024(n_users=3, n_row_users=2, within="2d", rows_within="1d"),
    Ec2026(n_users=2, cell_users=2),
    Ec2026(n_users=2, cell_users=2, within="1d", listed="2d", most_words=2, session_rows=2, columns=KEYED),
    Ddg2026(public_users=2),
    BraveWdp(most_characters=10, many_words=1, most_long_words=1),
    Mozilla(),
    Mozilla(users=True, english=0.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@examples(6)
@given(log=st.one_of(logs(), logs(with_time=False), clicked_logs()))
def test_methods_of_practice_keep_the_house_rules(method: Any, log: QueryLog) -> None:
    keep_the_house_rules(method, log)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_transactions_are_refused_and_so_is_a_cluster_for_now(method: Any) -> None:
    bags = QueryLog(frame=log_of({"1": ["1 2 3"]}).frame, layout=Layout(format=Format.TRANSACTIONS))
    with pytest.raises(BadInput, match="is for logs of queries; for transactions there are km, clump and partition"):
        method.anonymize(bags)
    with pytest.raises(NotYet, match="on Spark"):
        check_on_spark(method)


def test_the_defaults_are_the_published_numbers() -> None:
    assert Google2024().promise == AskedTexts(n_users=30, n_row_users=5, within="395d", rows_within="91d")
    assert Ec2026().promise == AskedEntities(n_users=50, cell_users=1000, within="395d", listed="1826d")
    assert BraveWdp().promise == TextRule(
        most_characters=120,
        most_logogram_characters=50,
        many_words=9,
        most_long_words=16,
        most_digits=7,
        longest_word=45,
        longest_odd_word=20,
        no_contacts=True,
    )
    assert BraveWdp().url_users == 20
    assert (Mozilla().least_characters, Mozilla().name_score) == (6, 0.2)


def dated(rows: Sequence[tuple[str, str, float]]) -> QueryLog:
    """Return a log of users, texts and days."""
    times = [START + timedelta(days=day) for *_, day in rows]
    return QueryLog.from_frame({"user": [row[0] for row in rows], "query": [row[1] for row in rows], "time": times})


def clicked(rows: Sequence[tuple[str, str, str | None]], **more: Sequence[Any]) -> QueryLog:
    columns = dict(zip(("user", "query", "url"), zip(*rows, strict=True), strict=True))
    return QueryLog.from_frame({name: list(values) for name, values in columns.items()} | more)


def test_google_counts_the_searches_of_texts_that_enough_users_asked() -> None:
    log = log_of({"u1": ["Tea", "tea", "gout", "gout"], "u2": [" TEA"], "u3": ["gout", ""]})
    release = Google2024(n_users=2).anonymize(log)
    assert dict(release.tallies.frame.iter_rows()) == {"tea": 3, "gout": 3}
    assert Google2024(n_users=3).anonymize(log).tallies.n_queries == 0
    assert release.manifest.removed["rows_without_query"] == 1
    assert release.manifest.counts.n_users_after == 0


def test_google_counts_users_in_the_last_13_months_and_rows_in_the_last_quarter() -> None:
    log = dated([("u1", "tea", 0), ("u2", "tea", 100), ("u3", "tea", 394), ("u1", "rye", 0), ("u2", "rye", 395)])
    texts = Google2024(n_users=3, within="395d", rows_within=None).anonymize(log).tallies.frame
    assert texts.height == 0
    # The log ends at day 395, so day 0 is just outside 395 days.
    assert dict(Google2024(n_users=3, within="396d", rows_within=None).anonymize(log).tallies.frame.iter_rows()) == {
        "tea": 3
    }
    quarter = Google2024(n_users=3, within=None).anonymize(log)
    assert dict(quarter.tallies.frame.iter_rows()) == {"tea": 1}
    assert quarter.manifest.removed["rows_of_earlier_times"] == 2


def test_google_counts_clicks_by_page_device_and_country_of_enough_users() -> None:
    rows = [(f"u{i}", "tea", "shop.example" if i < 3 else "own.example") for i in range(4)]
    log = clicked(rows, device=["phone"] * 4, country=["DE", "DE", "FR", None], rank=[1, 2, 3, 1])
    clicks = Google2024(n_users=2, n_row_users=2).anonymize(log).tallies.clicks
    assert clicks is not None
    assert clicks.to_dicts() == [
        {"query": "tea", "url": "shop.example", "count": 2, "device": "phone", "country": "DE", "rank": 1.5}
    ]
    few = Google2024(n_users=2, n_row_users=3).anonymize(log).tallies.clicks
    assert few is not None
    assert few.is_empty()


def test_google_takes_views_from_impressions_and_clicks_from_events() -> None:
    frame = pl.DataFrame({"user": ["1", "2", "3"], "query": ["tea"] * 3, "search": ["a", "b", "c"]})
    acts: list[tuple[str | None, str, str]] = [
        ("a", "impression", "x"),
        ("b", "impression", "x"),
        ("c", "impression", "y"),
        ("a", "click", "x"),
    ]
    acts += [("b", "click", "x"), (None, "impression", "x")]
    events = pl.DataFrame(
        {"search": [act[0] for act in acts], "action": [act[1] for act in acts], "object": [act[2] for act in acts]}
    )
    missing = [pl.lit(None, kind).alias(name) for name, kind in EVENTS_SCHEMA.items() if name not in events.columns]
    log = QueryLog(frame=frame, events=events.with_columns(missing).select(list(EVENTS_SCHEMA)))
    clicks = Google2024(n_users=2, n_row_users=2).anonymize(log).tallies.clicks
    assert clicks is not None
    assert clicks.select("query", "url", "count", "views").rows() == [("tea", "x", 2, 2)]
    assert verify(Google2024(n_users=2, n_row_users=2).anonymize(log), original=log).holds


def test_google_takes_clicks_and_views_from_the_first_row_of_a_search_alone() -> None:
    queries = {"user": ["1", "1", "2"], "query": ["zanzibar", "tea", "tea"], "search": ["a", "a", "b"]}
    events = {"search": ["a", "a", "b"], "action": ["click", "impression", "click"], "object": ["x", "x", "x"]}
    log = QueryLog.from_frame(queries, events=events)
    release = Google2024(n_users=2, n_row_users=2).anonymize(log)
    # The first row of search a is of another text, which is not released.
    assert release.tallies.clicks is not None
    assert release.tallies.clicks.is_empty()
    assert verify(release, original=log).holds


def test_google_is_defeated_by_whoever_plants_all_askers_but_one() -> None:
    planted = {f"attacker{i}": ["kestrel clinic lanternford"] for i in range(29)}
    with_target = log_of({"persona1": ["kestrel clinic lanternford"], **planted})
    assert Google2024().anonymize(with_target).tallies.n_queries == 1
    assert Google2024().anonymize(log_of(planted)).tallies.n_queries == 0


def test_ec_lets_a_text_leave_if_each_of_its_words_was_asked_by_enough_users() -> None:
    log = log_of({"u1": ["black tea, please!"], "u2": ["tea please"], "u3": ["black cat"]})
    assert set(Ec2026(n_users=2).anonymize(log).log.frame["query"]) == {"black tea, please!", "tea please"}
    assert set(Ec2026(n_users=3).anonymize(log).log.frame["query"]) == set()


def test_a_full_name_an_address_and_a_phone_number_count_as_one_word_each() -> None:
    texts = ["waltraud ottinger gout", "12 kestrel street, 55801", "call 212-555-0143", "plumber duluth mn", "!?"]
    found = entities(pl.Series(texts)).to_list()
    assert found[0] == ["waltraud ottinger", "gout"]
    assert found[1] == ["12 kestrel street, 55801"]
    assert found[2:] == [["212-555-0143", "call"], ["plumber", "duluth", "mn"], ["!?"]]


def test_a_rare_name_made_of_common_words_does_not_leave() -> None:
    common = {f"u{i}": ["waltraud songs", "ottinger shoes"] for i in range(3)}
    log = log_of(common | {"u9": ["waltraud ottinger"]})
    assert set(Ec2026(n_users=3).anonymize(log).log.frame["query"]) == {"waltraud songs", "ottinger shoes"}


def test_ec_counts_askers_in_stretches_of_13_months_as_far_back_as_they_are_listed() -> None:
    early = [("u1", "tea", 0.0), ("u2", "tea", 1)]
    log = dated([*early, ("u1", "rye", 600), ("u2", "rye", 0), ("u3", "oats", 600)])
    method = Ec2026(n_users=2, within="395d", listed="1826d")
    assert set(method.anonymize(log).log.frame["query"]) == {"tea"}
    assert Ec2026(n_users=2, within="395d", listed="500d").anonymize(log).log.n_rows == 0
    assert set(Ec2026(n_users=2, within=None).anonymize(log).log.frame["query"]) == {"tea", "rye"}


def test_ec_drops_texts_of_too_many_words() -> None:
    log = log_of({"u1": ["tea tea", "tea tea tea"], "u2": ["tea"]})
    release = Ec2026(n_users=2, most_words=2).anonymize(log)
    assert release.manifest.removed["rows_of_long_texts"] == 1
    assert release.log.n_rows == 2


def test_places_and_devices_become_coarser_step_by_step_and_what_is_left_alone_goes() -> None:
    frame = pl.DataFrame(
        {
            "device": ["phone", "phone", "tv", "phone", "tv", "phone", None],
            "country": ["DE", "DE", "DE", "DE", "fr", "AT", "BR"],
            "language": ["de", "de", "de", "en", "fr", "de", None],
        }
    )
    cells, is_small = coarser(frame, np.arange(7), names=["device", "country", "language"], least=2)
    rows = list(zip(*(each.to_list() for each in cells), strict=True))
    assert rows[:2] == [("phone", "DE", "de")] * 2
    assert rows[2:4] == [("all", "DE", "all")] * 2
    assert rows[4:6] == [("all", "Europe", "all")] * 2
    # That somebody is in Brazil is not settled, and the row goes.
    assert is_small.tolist() == [False] * 6 + [True]


def test_a_log_may_tell_regions_already_and_nothing_is_no_place() -> None:
    countries = ["Europe", "DE", "FR", "BR", "ZZ", "", None]
    log = clicked([(f"u{i}", "tea", None) for i in range(7)], country=countries)
    release = Ec2026(n_users=2, cell_users=2).anonymize(log)
    assert sorted(release.log.frame["country"]) == ["Europe"] * 3 + ["all"] * 4
    assert verify(release, original=log).holds


def test_a_row_of_a_cell_that_is_too_small_is_counted_and_does_not_leave() -> None:
    log = clicked([(f"u{i}", "tea", None) for i in range(3)], country=["DE", "DE", "BR"])
    release = Ec2026(n_users=2, cell_users=2).anonymize(log)
    assert release.log.frame["country"].to_list() == ["DE", "DE"]
    assert release.manifest.removed["rows_of_small_cells"] == 1


def test_mini_sessions_end_after_so_many_rows_or_after_a_pause() -> None:
    hours = [0.0, 0.1, 0.2, 0.3, 2, 2.1]
    frame = pl.DataFrame({"time": [START + timedelta(hours=hour) for hour in hours]})
    number = mini_sessions(frame, np.zeros(6, np.int32), np.ones(6, np.bool_), most_rows=3, minutes=30)
    assert number.tolist() == [0, 0, 0, 1, 2, 2]


def test_no_id_of_ec_has_more_rows_than_a_mini_session_and_keyed_ids_tell_the_owner_who_is_who() -> None:
    log = log_of({f"u{i}": ["tea"] * (i + 1) for i in range(5)})
    fresh = Ec2026(n_users=2, session_rows=2).anonymize(log)
    assert fresh.log.frame.group_by("user").len()["len"].max() == 2
    assert fresh.log.n_users == 9
    release = Ec2026(n_users=2, session_rows=2, columns=KEYED).anonymize(log)
    identity = Pair(log, release=release, key=KEYED.key).identity
    assert identity.exact
    assert sorted(identity.sole_user().tolist()) == [0, 1, 2, 2, 3, 3, 4, 4, 4]
    with pytest.raises(BadParameter, match="ids must be fresh or keyed"):
        Ec2026(columns=ColumnPolicy(ids=Ids.KEEP))


def test_common_words_together_can_still_be_one_persons_text() -> None:
    words = ("kestrel", "clinic", "gout")
    log = log_of({f"u{i}": [word] for i, word in enumerate(words * 2)} | {"u9": ["kestrel clinic gout"]})
    release = Ec2026(n_users=2).anonymize(log)
    assert "kestrel clinic gout" in set(release.log.frame["query"])
    assert release.manifest.texts is not None
    assert release.manifest.texts.n_of_one_person == 1

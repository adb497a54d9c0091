"""What people do with results in a made-up log: impressions, clicks, carts and purchases, and where people sit."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.synthesis import synthesize
from queryveil.synthesis.events import BOUGHT, CARTED, CORRECTED, PAGE, mistype
from queryveil.synthesis.shapes import WEB


@pytest.fixture(scope="module")
def log() -> QueryLog:
    return synthesize(users=5000, seed=5, format="ubi").log


@pytest.fixture(scope="module")
def plain() -> QueryLog:
    return synthesize(users=5000, seed=5).log


def events_of(log: QueryLog) -> pl.DataFrame:
    assert log.events is not None
    return log.events


def of(log: QueryLog, action: str) -> pl.DataFrame:
    return events_of(log).filter(pl.col("action") == action)


def edits(one: str, other: str) -> int:
    """Return how many letters must be added, taken away or changed."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        before, row = row, [i]
        for j, wanted in enumerate(other, start=1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != wanted)))
    return row[-1]


def check_order(log: QueryLog) -> None:
    """Every event has its search, and everything follows what it must follow."""
    events = events_of(log)
    assert log.frame["search"].is_unique().all()
    timed = events.join(log.frame.select("search", asked="time"), on="search", how="left")
    assert (timed["time"] >= timed["asked"]).all()
    assert events["rank"].is_between(1, PAGE).all()
    for earlier, later, keys in (
        ("impression", "click", ["search", "object", "object_field", "rank"]),
        ("click", "add_to_cart", ["search", "object", "object_field"]),
        ("add_to_cart", "purchase", ["search", "object", "object_field"]),
    ):
        before, after = of(log, earlier), of(log, later)
        assert not before.select(keys).is_duplicated().any()
        met = after.join(before, on=keys, how="left", suffix="_before")
        assert (met["time"] > met["time_before"]).sum() == after.height


@examples(15)
@given(users=st.integers(1, 40), seed=st.integers(0, 2**32), like=st.sampled_from(["web", "altavista", "aol"]))
def test_events_belong_to_searches_and_follow_one_another(users: int, seed: int, like: str) -> None:
    made = synthesize(users=users, seed=seed, like=like, format="ubi")
    assert made.log.n_users == users
    check_order(made.log)


def test_events_of_many_follow_one_another_too(log: QueryLog) -> None:
    check_order(log)
    assert of(log, "purchase").height > 50


def test_a_seed_gives_the_same_events_again() -> None:
    once, again, other = (synthesize(users=60, seed=seed, format="ubi").log for seed in (3, 3, 4))
    assert once.frame.equals(again.frame)
    assert events_of(once).equals(events_of(again))
    assert not events_of(once).equals(events_of(other))


def test_ranks_count_from_one_without_gaps(log: QueryLog) -> None:
    shown = (
        of(log, "impression")
        .group_by("search")
        .agg(pl.col("rank").min().alias("first"), pl.col("rank").max(), n=pl.len())
    )
    assert shown.height == log.n_rows
    assert (shown["first"] == 1).all()
    assert shown["rank"].equals(shown["n"].cast(pl.Int64), check_names=False)


def test_the_lower_a_result_stands_the_less_it_is_clicked(log: QueryLog) -> None:
    n_shown, n_clicked = (
        of(log, action).group_by("rank").len().sort("rank")["len"] for action in ("impression", "click")
    )
    share = (n_clicked / n_shown).to_list()
    assert share[:6] == sorted(share[:6], reverse=True)
    assert share[0] > 4 * share[5]
    assert n_clicked[0] / n_clicked.sum() == pytest.approx(0.45, abs=0.08)


def test_what_is_good_is_clicked_whatever_its_rank(log: QueryLog) -> None:
    """Else nothing could be learnt from clicks but ranks."""
    shown = log.frame.join(of(log, "impression"), on="search").filter(pl.col("rank") == 2)
    clicked = shown.join(
        of(log, "click").select("search", "object", is_clicked=True), on=["search", "object"], how="left"
    )
    by_result = clicked.group_by("query", "object").agg(n=pl.len(), share=pl.col("is_clicked").is_not_null().mean())
    usual = float((by_result["share"] * by_result["n"]).sum()) / float(by_result["n"].sum())
    often = by_result.filter(pl.col("n") * usual >= 5)
    # Pearson's chi-square of a coin that is the same for all results would be about the number of results.
    spread = ((often["share"] - usual) ** 2 * often["n"] / (usual * (1 - usual))).sum()
    assert often.height > 10
    assert spread > 2 * often.height


def test_as_many_searches_are_clicked_as_the_shape_says(log: QueryLog) -> None:
    clicks = of(log, "click")
    assert clicks["search"].n_unique() / log.n_rows == pytest.approx(WEB.clicked, abs=0.015)
    assert (clicks["dwell"] > 0).all()
    assert (
        events_of(log).filter(pl.col("action") != "click")["dwell"].null_count()
        == events_of(log).height - clicks.height
    )


def test_products_are_carried_off_and_bought_as_often_as_said(log: QueryLog) -> None:
    products = of(log, "click").filter(pl.col("object_field") == "object_id")
    carts, purchases = of(log, "add_to_cart"), of(log, "purchase")
    assert 0.02 < products.height / of(log, "click").height < 0.2
    assert carts.height / products.height == pytest.approx(CARTED, abs=0.04)
    assert purchases.height / carts.height == pytest.approx(BOUGHT, abs=0.08)
    assert set(carts["object_field"]) == set(purchases["object_field"]) == {"object_id"}
    assert of(log, "click").filter(pl.col("object_field") == "url")["object"].str.starts_with("http://www.").all()


def test_the_altavista_log_has_impressions_alone_as_it_has_no_clicks() -> None:
    assert set(events_of(synthesize(users=50, seed=1, like="altavista", format="ubi").log)["action"]) == {"impression"}


def test_the_queries_are_those_of_the_log_without_events_and_some_with_errors(log: QueryLog, plain: QueryLog) -> None:
    keys = ["user", "query", "time"]
    added = log.frame.join(plain.frame, on=keys, how="anti")
    assert plain.frame.select(keys).equals(log.frame.join(added, on="search", how="anti").select(keys))
    assert added.height == log.n_rows - plain.n_rows
    assert added.height / plain.n_rows == pytest.approx(CORRECTED, abs=0.003)


def test_an_error_is_corrected_by_the_next_query_within_a_minute(log: QueryLog, plain: QueryLog) -> None:
    added = log.frame.join(plain.frame, on=["user", "query", "time"], how="anti")
    following = {f"{name}_next": pl.col(name).shift(-1) for name in ("user", "query", "time")}
    pairs = log.frame.with_columns(**following).join(added.select("search"), on="search", how="semi")
    assert (pairs["user"] == pairs["user_next"]).all()
    assert (pairs["time_next"] - pairs["time"]).is_between(timedelta(seconds=5), timedelta(minutes=1)).all()
    apart = [edits(*pair) for pair in pairs.select("query", "query_next").iter_rows()]
    assert set(apart) == {1, 2}


def test_usual_errors_come_again(log: QueryLog, plain: QueryLog) -> None:
    """Else no correction could be learnt for another person."""
    added = log.frame.join(plain.frame, on=["user", "query", "time"], how="anti")
    words = added["query"].str.split(" ").explode().value_counts()
    unknown = words.join(plain.frame.select(pl.col("query").str.split(" ").explode()), on="query", how="anti")
    assert (unknown["count"] > 1).sum() > 10


@given(
    words=st.lists(st.text(alphabet="abcdefgz", min_size=1, max_size=8), min_size=1, max_size=3),
    luck=st.floats(0, 0.99),
)
def test_an_error_changes_one_word_by_a_letter_or_two(words: list[str], luck: float) -> None:
    query = " ".join([*words, "guitar"])
    typed = mistype(query, luck=luck)
    assert len(typed.split(" ")) == len(words) + 1
    assert edits(query, typed) in (1, 2)


def test_people_have_one_country_and_mostly_one_device(log: QueryLog) -> None:
    by_user = log.frame.group_by("user").agg(
        pl.col("country").n_unique(),
        same=pl.col("device").value_counts(normalize=True).struct.field("proportion").max(),
    )
    assert (by_user["country"] == 1).all()
    assert by_user["same"].mean() > 0.85  # type: ignore[operator]
    shares = dict(log.frame["device"].value_counts(normalize=True).iter_rows())
    assert shares["desktop"] == pytest.approx(0.46, abs=0.05)
    assert shares["tablet"] == pytest.approx(0.07, abs=0.03)
    countries = log.frame.unique("user")["country"].value_counts(normalize=True)
    assert dict(countries.iter_rows())["US"] == pytest.approx(0.42, abs=0.03)


def test_a_query_with_an_english_word_is_english_and_any_other_is_of_the_country(log: QueryLog) -> None:
    english = log.frame.filter(pl.col("query").str.contains(r"\b(of|the|free|price|music)\b"))
    assert set(english["language"]) == {"en"}
    site = log.frame.filter(pl.col("query").str.contains("^www [a-z]+ com$") & (pl.col("country") == "DE"))
    assert site.height > 20
    assert set(site["language"]) == {"de"}


def test_numbers_of_searches_tell_nothing_of_their_users(log: QueryLog) -> None:
    numbers = log.frame["search"].cast(pl.Int64)
    assert (
        abs(pl.DataFrame([numbers, pl.Series("row", range(log.n_rows))]).select(pl.corr("search", "row")).item()) < 0.02
    )


@pytest.mark.parametrize("name", ["csv", "tsv", "jsonl", "parquet"])
def test_formats_without_events_have_the_rows_of_old_and_places(name: str) -> None:
    old, new = synthesize(users=60, seed=3).log, synthesize(users=60, seed=3, format=name).log
    assert new.frame.drop("device", "country", "language").equals(old.frame)
    assert new.events is None


@pytest.mark.parametrize("name", ["aol", "excite"])
def test_formats_that_hold_no_places_have_the_rows_of_old(name: str) -> None:
    assert synthesize(users=60, seed=3, format=name).log.frame.equals(synthesize(users=60, seed=3).log.frame)


def test_a_format_that_is_none_is_a_clear_error() -> None:
    with pytest.raises(BadParameter, match="format must be one of aol, excite, csv, tsv, jsonl, parquet, ubi, got xml"):
        synthesize(users=5, format="xml")

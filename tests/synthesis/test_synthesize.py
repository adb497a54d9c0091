"""The made-up log: its size, its order, its words, and that it repeats."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from queryveil.errors import BadParameter
from queryveil.synthesis import ALTAVISTA, AOL, Synthetic, synthesize
from queryveil.synthesis.vocabulary import N_HEAD, invent, misspell, words


@pytest.fixture(scope="module")
def web() -> Synthetic:
    return synthesize(users=3000, seed=5)


@pytest.fixture(scope="module")
def altavista() -> pl.DataFrame:
    return synthesize(users=20_000, seed=5, like="altavista").log.frame


@pytest.fixture(scope="module")
def aol() -> pl.DataFrame:
    return synthesize(users=3000, seed=5, like="aol").log.frame


def terms_of(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select("user", term=pl.col("query").str.split(" ")).explode("term")


def users_with(frame: pl.DataFrame, *terms: str) -> int:
    asked = terms_of(frame).filter(pl.col("term").is_in(terms)).unique()
    return asked.group_by("user").len().filter(pl.col("len") == len(terms)).height


def longest_session(frame: pl.DataFrame) -> pl.DataFrame:
    rested = (pl.col("time").diff().over("user") > timedelta(minutes=30)).fill_null(value=False)
    sessions = frame.with_columns(session=rested.cum_sum().over("user")).group_by("user", "session").len()
    return sessions.group_by("user").agg(pl.col("len").max())


def test_the_same_seed_gives_the_same_log_and_secrets() -> None:
    once, again = (synthesize(users=300, seed=9, like="aol") for _ in range(2))
    assert once.log.frame.equals(again.log.frame)
    assert once.secrets == again.secrets


def test_another_seed_gives_another_log() -> None:
    assert not synthesize(users=50, seed=1).log.frame.equals(synthesize(users=50, seed=2).log.frame)


def test_a_log_is_the_same_on_every_machine() -> None:
    frame = synthesize(users=200, seed=3).log.frame
    text = "\n".join(
        str(value) for value in frame.select(pl.concat_str(pl.all().cast(pl.String), ignore_nulls=True))[:, 0]
    )
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "2f3085c637ec1049"


@pytest.mark.parametrize("like", ["web", "altavista", "aol"])
@pytest.mark.parametrize("users", [1, 2, 10, 1001])
def test_a_log_has_exactly_the_users_asked_for(users: int, like: str) -> None:
    made = synthesize(users=users, seed=1, like=like)
    assert made.log.n_users == users
    assert len(made.secrets) == min(users, 3)
    assert made.log.frame["query"].str.contains(r"^[a-z]+( [a-z]+)*$").all()


def test_a_web_log_has_a_thousand_users_unless_told() -> None:
    assert synthesize().log.n_users == 1000


def test_rows_are_in_order_of_user_and_time_and_ids_are_no_count(web: Synthetic) -> None:
    frame = web.log.frame.with_columns(pl.col("user").cast(pl.Int64))
    assert frame.equals(frame.sort("user", "time", maintain_order=True))
    assert frame["user"].unique().diff().drop_nulls().n_unique() > 20


def test_a_web_log_has_a_dozen_rows_a_user_over_a_month(web: Synthetic) -> None:
    frame = web.log.frame
    assert frame.height / 3000 == pytest.approx(12, rel=0.05)
    assert frame["time"].max() - frame["time"].min() > timedelta(days=28)  # type: ignore[operator]


def test_an_altavista_log_keeps_the_figures_in_proportion(altavista: pl.DataFrame) -> None:
    share = 20_000 / ALTAVISTA.users
    terms = terms_of(altavista)
    assert altavista.columns == ["user", "query", "time"]
    assert altavista.height == pytest.approx(1_846_134 * share, rel=0.02)
    assert terms.height == pytest.approx(5_501_825 * share, rel=0.03)
    assert terms["term"].n_unique() == pytest.approx(251_115 * share**0.9, rel=0.06)
    top = terms.unique().group_by("term").len()["len"].max()
    assert top == pytest.approx(31_974 * share, rel=0.1)


def test_an_altavista_log_lasts_a_day(altavista: pl.DataFrame) -> None:
    assert altavista["time"].min() >= datetime(2002, 9, 8)  # type: ignore[operator]
    assert altavista["time"].max() < datetime(2002, 9, 9)  # type: ignore[operator]


@pytest.mark.slow
def test_the_whole_altavista_log_has_the_figures_of_the_paper() -> None:
    frame = synthesize(seed=4, like="altavista").log.frame
    counts = terms_of(frame).group_by("user", "term").agg(n=pl.len())
    terms = counts.group_by("term").agg(users=pl.len(), n=pl.col("n").sum())
    assert frame["user"].n_unique() == 367_803
    assert frame.height == pytest.approx(1_846_134, rel=0.02)
    assert terms.height == pytest.approx(251_115, rel=0.02)
    assert terms["n"].sum() == pytest.approx(5_501_825, rel=0.02)
    for k, fewest, most, least_rows in ((2, 0.11, 0.25, 0.45), (10, 0.022, 0.04, 0.29), (100, 0.002, 0.0052, 0.19)):
        shared = terms.filter(pl.col("users") >= k)
        assert fewest < shared.height / terms.height < most
        assert int(shared["n"].sum()) / int(terms["n"].sum()) > least_rows
    assert counts.group_by("user").len()["len"].max() == pytest.approx(495, rel=0.1)


def test_an_aol_log_has_clicks_on_half_its_rows_and_repeated_queries(aol: pl.DataFrame) -> None:
    assert aol.columns == ["user", "query", "time", "rank", "url"]
    assert aol.height == pytest.approx(AOL.rows_per_user * 3000, rel=0.03)
    clicked = aol.filter(pl.col("rank").is_not_null())
    assert clicked.height / aol.height == pytest.approx(0.54, abs=0.02)
    assert clicked["url"].null_count() == 0
    assert aol["url"].null_count() == aol["rank"].null_count()
    assert aol.select("user", "query").n_unique() < 0.6 * aol.height
    assert aol["time"].max() - aol["time"].min() > timedelta(days=90)  # type: ignore[operator]
    by_rank = clicked.group_by("rank").len().sort("rank")["len"].to_list()
    assert by_rank[0] > by_rank[1] > by_rank[2] > by_rank[3]


def test_most_histories_are_short_and_some_are_long(altavista: pl.DataFrame) -> None:
    rows = altavista.group_by("user").len()["len"]
    assert (rows <= 3).mean() > 0.5  # type: ignore[operator]
    assert rows.max() > 300  # type: ignore[operator]


def test_only_bots_have_more_than_a_hundred_queries_in_a_session(web: Synthetic, altavista: pl.DataFrame) -> None:
    assert longest_session(web.log.frame).filter(pl.col("len") > 100).height == 3
    assert longest_session(altavista).filter(pl.col("len") > 100).height == 1


def test_queries_in_a_session_are_refined_word_by_word(web: Synthetic) -> None:
    soon = pl.col("time").diff() < timedelta(minutes=15)
    now, before = pl.col("query").str.split(" "), pl.col("query").str.split(" ").shift(1)
    pairs = web.log.frame.filter(soon & (pl.col("user") == pl.col("user").shift(1)) & (now != before))
    assert pairs.height > 1000
    kept = web.log.frame.select(
        soon=soon & (pl.col("user") == pl.col("user").shift(1)) & (now != before),
        shared=now.list.set_intersection(before).list.len() > 0,
    ).filter("soon")
    assert kept["shared"].mean() > 0.4  # type: ignore[operator]


@pytest.mark.slow
def test_words_of_a_topic_go_together(altavista: pl.DataFrame) -> None:
    topics = [[sub.split() for sub in topic] for topic in words()["topics"].values()]
    within = [users_with(altavista, topic[0][0], topic[0][1]) for topic in topics]
    across = [users_with(altavista, a[0][0], b[0][1]) for a, b in pairwise(topics)]
    assert sum(within) > 200
    assert np.mean(within) > 5 * np.mean(across)


def test_frequent_triples_exist(altavista: pl.DataFrame) -> None:
    assert users_with(altavista, *words()["topics"]["Arts"][0].split()[:3]) >= 5


def test_misspellings_names_towns_sites_and_stop_words_occur(web: Synthetic) -> None:
    counts = dict(terms_of(web.log.frame).group_by("term").len().iter_rows())
    wrong = {misspell(word, variant=v) for word in words()["general"][:6] for v in range(16)}
    assert sum(counts.get(word, 0) for word in wrong) > 10
    assert min(counts["of"], counts["the"], counts["www"], counts["free"]) > 50
    queries = web.log.frame["query"]
    assert queries.str.contains(r"^www [a-z]+ com$").sum() > 100
    surname = r"(brandt|mondy|sky|lundh|vyk|hartz|wyn|quist)$"
    assert queries.str.contains(r"^[a-z]+" + surname).sum() > 50
    assert queries.str.contains(r"^[a-z]+(nya|lyo) [a-z]+" + surname).sum() > 50
    assert (
        queries.str.contains(r"^[a-z]+(ford|bury|ville|mouth|worth) (" + "|".join(words()["business"]) + ")$").sum()
        > 50
    )


def test_no_word_stands_twice_in_the_word_lists() -> None:
    lists = words()
    subtopics = [sub.split() for topic in lists["topics"].values() for sub in topic]
    assert len(lists["topics"]) == 16
    assert {len(sub) for sub in subtopics} == {N_HEAD}
    everything = [w for sub in subtopics for w in sub] + [
        w for kind in ("stop", "general", "business", "illness", "care") for w in lists[kind]
    ]
    assert len(set(everything)) == len(everything)
    assert all(re.fullmatch("[a-z]+", word) for word in everything)


def test_invented_words_never_coincide() -> None:
    assert invent(np.arange(250_000, 500_000)).n_unique() == 250_000


def test_reprs_show_no_text(web: Synthetic) -> None:
    console = Console(width=300)
    with console.capture() as printed:
        console.print(web, web.secrets)
    secret = web.secrets[0]
    for text in (repr(web), str(web.secrets), printed.get()):
        assert not any(hidden in text for hidden in (secret.user, secret.name, secret.town, secret.illness))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"users": 0}, "users must be 1 or more, got 0"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
        ({"like": "lycos"}, "like must be web, altavista or aol, got lycos"),
    ],
)
def test_a_wrong_argument_is_a_clear_error(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(BadParameter, match=re.escape(message)):
        synthesize(**arguments)  # type: ignore[arg-type]

"""How many texts of a release one person alone asked, and how many hold an identifier."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_texts import Row, plain_counts

from queryveil.data import Format, Layout, QueryLog, Tallies
from queryveil.errors import TooFewUsers
from queryveil.methods import Clump, Dp, Kdelta, Km, Plink, Pseudonymise, QueryThreshold, Swap, TokenHash
from queryveil.methods.dp.dp import synthesized
from queryveil.release import ColumnPolicy, Ids, Release, ids_per_window, keyed, text_facts
from queryveil.release.texts import count_texts
from queryveil.testing.logs import log_of
from queryveil.testing.strategies import clicked_logs, logs
from queryveil.text.identifiers import remove_identifiers
from queryveil.text.tokens import join_terms, normal_form

KEEP = ColumnPolicy(ids=Ids.KEEP)
KEY = b"a key for tests only"
TEXTS = (
    "red wine",
    "Red  WINE",
    "red-wine",
    "gout",
    "GOUT ",
    "cafe\u0301",
    "caf\u00e9",
    "call 212-555-0143",
    "",
    " ",
    "a\0b",
    "a b",
)


def counts_of(release: Release) -> dict[str, int]:
    assert release.manifest.texts is not None
    counted: dict[str, int] = msgspec.structs.asdict(release.manifest.texts)
    return counted


def rows_of(log: QueryLog) -> list[Row]:
    return log.frame.select("user", "query").rows()


@examples(100)
@given(
    st.lists(st.tuples(st.sampled_from("uvw"), st.sampled_from(TEXTS)), max_size=12),
    st.lists(st.sampled_from(TEXTS), max_size=8),
)
def test_texts_are_counted_as_one_by_one(asked: list[Row], released: list[str]) -> None:
    found = count_texts(
        pl.Series(released, dtype=pl.String),
        asked=pl.Series([text for _, text in asked], dtype=pl.String),
        users=pl.Series([user for user, _ in asked], dtype=pl.String),
    )
    assert msgspec.structs.asdict(found) == plain_counts(released, asked)


@examples(200)
@given(st.lists(st.text(max_size=12), max_size=5))
def test_what_km_releases_is_in_normal_form_as_it_stands(texts: list[str]) -> None:
    """A cluster relies on it, where texts are grouped as they are."""
    terms = join_terms(pl.Series(texts, dtype=pl.String))
    assert normal_form(terms).to_list() == terms.to_list()


WHOLE: dict[str, Any] = {
    "pseudonymise": Pseudonymise(),
    "query threshold": QueryThreshold(k=2),
    "kdelta": Kdelta(k=2),
    "kdelta, same texts": Kdelta(k=2, same_texts=True),
    "kdelta, no additions": Kdelta(k=2, additions=False),
}


@pytest.mark.parametrize("method", WHOLE)
@examples(30)
@given(log=clicked_logs())
def test_whole_texts_are_those_of_the_people_who_asked_them(method: str, log: QueryLog) -> None:
    try:
        release = WHOLE[method].anonymize(log)
    except TooFewUsers:
        return
    assert counts_of(release) == plain_counts(release.log.frame["query"], rows_of(log))


@pytest.mark.parametrize("m", [1, 2])
@examples(30)
@given(log=logs())
def test_what_km_leaves_of_a_query_is_of_those_who_have_it(m: int, log: QueryLog) -> None:
    release = Km(k=2, m=m, columns=KEEP).anonymize(log)
    assert counts_of(release) == plain_counts(release.log.frame["query"], rows_of(release.log))


@examples(30)
@given(log=logs())
def test_in_windows_a_person_of_several_ids_is_one_person(log: QueryLog) -> None:
    columns = ColumnPolicy(ids=Ids.KEYED, key=KEY)
    release = Km(k=2, m=1, window="1d", columns=columns).anonymize(log)
    users = log.frame["user"].unique()
    names: dict[str, str] = {}
    for day in range(13_000, 13_400):
        ids = keyed(ids_per_window(users, pl.Series([day] * len(users))), key=KEY)
        names |= dict(zip(ids, users, strict=True))
    rows = [(names[user], query) for user, query in rows_of(release.log)]
    assert counts_of(release) == plain_counts(release.log.frame["query"], rows)


@examples(30)
@given(log=logs(with_time=False))
def test_a_swapped_text_is_of_those_who_asked_it_without_their_identifiers(log: QueryLog) -> None:
    named = log.with_frame(log.frame.with_columns(pl.concat_str("query", pl.lit(" 212-555-0143"))))
    release = Swap(k=2, columns=KEEP).anonymize(named)
    cleaned = named.with_frame(
        named.frame.with_columns(remove_identifiers(named.frame["query"]).queries.alias("query"))
    )
    assert counts_of(release) == plain_counts(release.log.frame["query"], rows_of(cleaned))


def test_programs_that_are_left_out_are_no_people() -> None:
    """All three click on the same page, so that every query is as good as another: each leaves."""
    rows = [("robot", f"query {i}") for i in range(9)]
    rows += [
        (user, query) for query in ("gout", "wine") for user in ("robot", "u1", "u2") if (user, query) != ("u2", "gout")
    ]
    frame = pl.DataFrame(rows, schema=["user", "query"], orient="row").with_columns(
        time=pl.lit(datetime(2026, 3, 4)), url=pl.lit("a.example")
    )
    release = Kdelta(k=2, bot_threshold=5).anonymize(QueryLog.from_frame(frame))
    assert set(release.log.frame["query"]) == {"gout", "wine"}
    assert counts_of(release)["n_of_one_person"] == 1


def test_no_text_is_counted_where_none_leaves_or_where_it_would_tell() -> None:
    log = log_of({f"u{i}": ["apple", "apple beef", f"own{i}"] for i in range(40)})
    counts = Dp(epsilon=20, delta=0.1, seed=1).anonymize(log)
    assert isinstance(counts.data, Tallies)
    silent = [counts, synthesized(counts, n_users=5, seed=1), TokenHash().anonymize(log)]
    silent += [Clump(k=2).anonymize(log), Plink(p=0.5).anonymize(log)]
    items = QueryLog(frame=log.frame, layout=Layout(format=Format.TRANSACTIONS))
    silent.append(Km(k=2, m=1).anonymize(items))
    for release in silent:
        assert release.manifest.texts is None
        assert text_facts(release.manifest) == {}


def test_the_counts_are_told_in_one_line_each() -> None:
    release = Pseudonymise().anonymize(log_of({"u1": ["wine", "gout", "gout"], "u2": ["wine", "212-555-0143"]}))
    assert text_facts(release.manifest) == {
        "texts that one person alone asked": "2 of 3 (66.7 %), in 60 % of rows",
        "texts with an identifier": "1 of 3 (33.3 %), in 20 % of rows",
    }
    assert "2 of 3 (66.7 %), in 60 % of rows" in release._repr_html_()
    assert release.manifest.texts is not None
    counts = msgspec.structs.replace(release.manifest.texts, n_of_one_person=None, n_rows_of_one_person=None)
    of_stream = replace(release, manifest=msgspec.structs.replace(release.manifest, texts=counts))
    assert text_facts(of_stream.manifest)["texts that one person alone asked"].startswith("not known: a stream")

"""The rules of BraveWdp, Mozilla and Ddg2026, number by number, just inside and just outside."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from queryveil import BraveWdp, Ddg2026, Mozilla
from queryveil.checks.practice import broken_by
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.guarantees import TextRule
from queryveil.methods.practice.rules import has_long_number
from queryveil.release import ColumnPolicy, Ids
from queryveil.testing import log_of


def kept(method: BraveWdp | Ddg2026 | Mozilla, *texts: str) -> set[str]:
    return set(method.anonymize(log_of({"u1": texts})).log.frame["query"])


INSIDE = {
    "120 characters": "abc " * 29 + "abcd",
    "50 characters with Chinese": "茶" * 20 + " abcd" * 6,
    "16 long words": " ".join(["pots"] * 16 + ["tea"] * 3),
    "nine words with Thai": "ชา " + " ".join(["tea"] * 8),
    "7 digits": "call 090/90-22",
    "7 digits between letters": "a1234567b1234567",
    "an ISSN": "nature issn 0028-0836",
    "an ISSN that ends in x": "issn 2434-561x",
    "an EAN-13": "ean 4006381333931",
    "an EAN-13 and a small number": "ean 4006381333931 x 12",
    "at without a domain": "tea @ home",
    "a colon and no at": "note:tea",
    "45 letters": "a" * 45,
    "a long German word": "straßenbahnhaltestelle",
    "20 odd characters": "kettle-kettle-kettle",
}
OUTSIDE = {
    "121 characters": "abc " * 29 + "abcde",
    "51 characters with Chinese": "茶" * 20 + " abcd" * 6 + "e",
    "17 long words": " ".join(["pots"] * 17),
    "ten words with Thai": "ชา " + " ".join(["tea"] * 9),
    "8 digits": "call 5555 3235",
    "8 digits parted by punctuation": "17.05.2023",
    "an ISSN with a wrong digit": "issn 0028-0837",
    "two ISSN": "0028-0836 0378-5955",
    "an EAN-13 with a wrong digit": "ean 4006381333932",
    "an EAN-13 that is parted": "ean 4006381 333931",
    "an EAN-13 and another number": "ean 4006381333931 x 123",
    "an e-mail": "ottinger@mail.example",
    "an e-mail of one letter": "a@b.c",
    "an e-mail written with %40": "ottinger%40mail.example",
    "an e-mail written with %2540": "ottinger%252540mail.example",
    "a password": "ottinger:kestrel@mail",
    "46 letters": "a" * 46,
    "21 odd characters": "kettle-kettle-kettles",
}


@pytest.mark.parametrize("text", INSIDE.values(), ids=INSIDE.keys())
def test_brave_keeps_what_is_just_inside_its_rules(text: str) -> None:
    assert kept(BraveWdp(), text) == {text}
    assert not list(broken_by(text, BraveWdp().promise))


@pytest.mark.parametrize("text", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_brave_drops_what_is_just_outside_its_rules(text: str) -> None:
    assert not kept(BraveWdp(), text)
    assert list(broken_by(text, BraveWdp().promise))


def test_each_number_of_brave_is_a_setting() -> None:
    assert kept(BraveWdp(most_characters=3), "tea", "teas") == {"tea"}
    assert kept(BraveWdp(most_logogram_characters=2), "茶茶", "茶茶茶", "teas") == {"茶茶", "teas"}
    assert kept(BraveWdp(many_words=1, most_long_words=1), "teas teas", "teas tea", "teas") == {"teas tea", "teas"}
    assert not has_long_number("123", most=3)
    assert has_long_number("1234", most=3)
    assert kept(BraveWdp(longest_word=3), "tea", "teas") == {"tea"}
    assert kept(BraveWdp(longest_odd_word=3), "t-a", "te-a", "teas") == {"t-a", "teas"}


def test_brave_gives_every_row_an_id_and_cuts_times_to_the_day() -> None:
    rows = {"user": ["1"] * 3, "query": ["tea"] * 3, "time": [datetime(2026, 3, 1, hour) for hour in (7, 8, 9)]}
    log = BraveWdp().anonymize(QueryLog.from_frame(rows)).log
    assert log.n_users == 3
    assert set(log.frame["time"]) == {datetime(2026, 3, 1)}


def test_brave_lets_an_address_leave_once_so_many_users_clicked_it() -> None:
    urls = ["shop.example"] * 3 + ["own.example"] * 2
    log = QueryLog.from_frame({"user": ["1", "2", "3", "4", "4"], "query": ["tea"] * 5, "url": urls})
    release = BraveWdp(url_users=3, columns=ColumnPolicy(keep=("url",))).anonymize(log)
    assert sorted(release.log.frame["url"].fill_null("")) == ["", "", *["shop.example"] * 3]
    assert release.manifest.removed["page_addresses_of_few_users"] == 2


def test_the_promise_of_brave_says_all_its_numbers() -> None:
    said = BraveWdp(most_digits=8, many_words=11).promise.in_words()
    assert all(f" {number} " in said for number in (120, 50, 8, 11, 16, 45, 20))


def test_brave_refuses_events_which_have_addresses_of_pages_whoever_clicked_them() -> None:
    for log in (
        QueryLog.from_frame({"user": ["1"], "query": ["tea"], "url": ["own.example"], "rank": [1]}),
        QueryLog.from_frame(
            {"user": ["1"], "query": ["tea"], "search": ["1"]}, events={"search": ["1"], "action": [""]}
        ),
    ):
        with pytest.raises(BadParameter, match="addresses of pages that enough users clicked are kept by url"):
            BraveWdp(columns=ColumnPolicy(keep=("events",))).anonymize(log)


@pytest.mark.parametrize("method", [BraveWdp, Mozilla])
def test_ids_that_would_join_rows_are_refused(method: type[BraveWdp | Mozilla]) -> None:
    with pytest.raises(BadParameter, match="ids must be fresh or keyed: kept ids would join what was taken apart"):
        method(columns=ColumnPolicy(ids=Ids.KEEP))


def test_mozilla_drops_short_texts_digits_ats_other_languages_and_names() -> None:
    texts = [
        "kettle",
        "teapot",
        "tea 4 me",
        "tea٣tea",
        "tea at @home",
        "rote grütze rezept",
        "waltraud ottinger tea shoes lamp",
    ]
    release = Mozilla().anonymize(log_of({"u1": [*texts, "tea", ""]}))
    assert set(release.log.frame["query"]) == {"kettle", "teapot"}
    reasons = {name: n for name, n in release.manifest.removed.items() if n and "rows" in name}
    assert reasons == {
        "rows_without_query": 1,
        "rows_of_short_texts": 1,
        "rows_of_digits": 2,
        "rows_of_contacts": 1,
        "rows_of_other_languages": 1,
        "rows_of_names": 1,
    }


def test_the_scores_of_mozilla_are_settings() -> None:
    half = "kettle waltraud"
    assert not kept(Mozilla(name_score=0.5), half)
    assert kept(Mozilla(name_score=0.6), half) == {half}
    assert not kept(Mozilla(english=0.6, name_score=1), half)
    assert kept(Mozilla(least_characters=3), "tea") == {"tea"}


def test_mozilla_keeps_rows_apart_unless_users_are_asked_for() -> None:
    log = log_of({"u1": ["kettle", "teapot"], "u2": ["kettle"]})
    assert Mozilla().anonymize(log).log.n_users == 3
    together = Mozilla(users=True).anonymize(log)
    assert together.log.n_users == 2
    assert together.promise == TextRule(least_characters=6, no_digits=True, no_at=True, alone=False)


PERSONAL = (
    "ottinger@mail.example",
    "call 212-555-0143",
    "12 kestrel street",
    "iban de89370400440532013000",
    "219-09-9999",
)


def test_ddg_drops_personal_data_and_keeps_towns_and_brands() -> None:
    fine = {"gout diet", "plumber duluth mn", "victoria secret", "windows 11"}
    assert kept(Ddg2026(), *PERSONAL, *fine) == fine


def test_ddg_keeps_the_names_of_people_whom_enough_users_ask_for() -> None:
    asked = {f"u{i}": ["waltraud ottinger songs"] for i in range(3)} | {"u9": ["hannelore ottinger"]}
    assert set(Ddg2026(public_users=3).anonymize(log_of(asked)).log.frame["query"]) == {"waltraud ottinger songs"}
    release = Ddg2026(public_users=4).anonymize(log_of(asked))
    assert release.log.n_rows == 0
    assert release.manifest.removed["rows_of_unknown_people"] == 4


def test_ddg_says_plainly_that_it_promises_nothing() -> None:
    release = Ddg2026().anonymize(log_of({"u1": ["gout"]}))
    assert release.promise.promises_nothing
    assert release.manifest.warnings[0].startswith("promises nothing: all queries of a person stay together")


def test_a_person_stays_together_under_ddg_and_so_a_few_texts_can_be_one_persons_alone() -> None:
    log = log_of({"u1": ["gout diet", "duluth weather"], "u2": ["gout diet"], "u3": ["duluth weather"]})
    out = Ddg2026().anonymize(log).log.frame
    both = out.group_by("user").agg(pl.col("query").n_unique()).filter(pl.col("query") == 2)
    assert both.height == 1

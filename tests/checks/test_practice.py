"""Checkers of AskedTexts, AskedEntities and TextRule: near misses, forged releases, and what needs the original."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.forging import fault, forge

from queryveil import AskedEntities, AskedTexts, BraveWdp, Ec2026, Google2024, Mozilla, TextRule, verify
from queryveil.checks.practice import parts_of, verify_asked_entities, verify_asked_texts, verify_text_rule
from queryveil.data import CLICKS_SCHEMA, MORE_CLICKS_SCHEMA, TALLIES_SCHEMA, Format, Layout, QueryLog, Tallies
from queryveil.errors import BadInput, BadParameter
from queryveil.methods.practice.ec import entities
from queryveil.release import Release, read_release
from queryveil.testing import log_of

TEXTS = AskedTexts(n_users=2, n_row_users=2, within=None, rows_within=None)
WORDS = AskedEntities(n_users=2, cell_users=2, within=None, listed=None)
LOG = QueryLog.from_frame(
    {
        "user": ["u1", "u2", "u3", "u3", "u3"],
        "query": ["Tea", "tea", "gout", "gout", "black tea"],
        "url": ["shop.example", "shop.example", "own.example", "own.example", None],
        "country": ["DE", "DE", "BR", "BR", "BR"],
    }
)


def texts(counts: dict[str, int], clicks: list[tuple[str, str, int]] = []) -> Tallies:  # noqa: B006 - it is not changed
    frame = pl.DataFrame({"query": list(counts), "count": list(counts.values())}, schema=TALLIES_SCHEMA)
    return Tallies(frame=frame, clicks=pl.DataFrame(clicks, schema=CLICKS_SCHEMA, orient="row"))


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (texts({"tea": 2}, [("tea", "shop.example", 2)]), []),
        (texts({}), []),
        (texts({"gout": 2}), ["unasked_query"]),
        (texts({"rye": 2}), ["unasked_query", "other_count"]),
        (texts({"tea": 3}), ["other_count"]),
        (texts({"Tea": 2}), ["untidy_query", "unasked_query", "other_count"]),
        (texts({"tea": 2}, [("tea", "own.example", 1)]), ["unmade_click", "other_click"]),
        (texts({"tea": 2}, [("tea", "shop.example", 1)]), ["other_click"]),
        (texts({"tea": 2}, [("gout", "own.example", 2)]), ["stray_click", "unmade_click"]),
    ],
)
def test_counts_of_texts_and_clicks_just_inside_and_just_outside(data: Tallies, kinds: list[str]) -> None:
    verdict = verify_asked_texts(data, TEXTS, original=LOG)
    assert {witness.kind for witness in verdict.witnesses} == set(kinds)
    assert verdict.holds is not bool(kinds)


def test_a_click_counts_for_the_country_that_its_row_tells() -> None:
    def in_country(name: str) -> Tallies:
        clicks = texts({}, [("tea", "shop.example", 2)]).clicks
        assert clicks is not None
        return Tallies(frame=texts({"tea": 2}).frame, clicks=clicks.with_columns(country=pl.lit(name)))

    assert verify_asked_texts(in_country("DE"), TEXTS, original=LOG).holds
    assert not verify_asked_texts(in_country("BR"), TEXTS, original=LOG).holds


def with_more(**columns: object) -> Tallies:
    clicks = texts({}, [("tea", "shop.example", 2)]).clicks
    assert clicks is not None
    more = [pl.lit(value, MORE_CLICKS_SCHEMA[name]).alias(name) for name, value in columns.items()]
    return Tallies(frame=texts({"tea": 2}).frame, clicks=clicks.with_columns(more))


def test_ranks_and_views_are_those_of_the_log() -> None:
    log = QueryLog(frame=LOG.frame.with_columns(rank=pl.Series([1, 2, 1, 1, 1])))
    assert verify_asked_texts(with_more(rank=1.5), TEXTS, original=log).holds
    for wrong in (1.25, None):
        data = with_more(rank=wrong)
        assert [each.kind for each in verify_asked_texts(data, TEXTS, original=log).witnesses] == ["other_rank"]
    # Nothing was shown in this log.
    found = verify_asked_texts(with_more(views=3), TEXTS, original=log).witnesses
    assert [each.in_words() for each in found] == ["a page was shown 3 times by its count, 0 in the original (row 1)"]


def released(*rows: str, country: str | None = None) -> QueryLog:
    frame = pl.DataFrame({"user": [str(i + 1) for i in range(len(rows))], "query": list(rows)})
    return QueryLog(frame=frame if country is None else frame.with_columns(country=pl.lit(country)))


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (released("tea", "tea"), []),
        (released("gout"), ["rare_part"]),
        (released("black tea"), ["rare_part"]),
        (released("tea", "tea", "tea"), ["surplus_query"]),
        (released("tea", country="DE"), []),
        (released("tea", country="BR"), ["small_cell"]),
        (released("tea", country="Europe"), []),
        (released("tea", country="all"), []),
        (released("tea", country="Asia"), ["small_cell"]),
    ],
)
def test_words_and_cells_just_inside_and_just_outside(data: QueryLog, kinds: list[str]) -> None:
    verdict = verify_asked_entities(data, WORDS, original=LOG)
    assert [witness.kind for witness in verdict.witnesses] == kinds
    assert verdict.holds is not bool(kinds)


def test_users_who_tell_a_finer_cell_do_not_hide_those_of_a_coarser_one() -> None:
    both = QueryLog(frame=pl.concat([released("tea", country="DE").frame, released("tea", country="all").frame]))
    # Two users are in Germany, and only one tells nothing of a country.
    assert [each.kind for each in verify_asked_entities(both, WORDS, original=LOG).witnesses] == ["small_cell"]


def test_a_full_name_is_counted_as_one() -> None:
    log = log_of({f"u{i}": ["waltraud songs", "ottinger shoes"] for i in range(3)} | {"u9": ["waltraud ottinger"]})
    assert verify_asked_entities(released("waltraud songs"), WORDS, original=log).holds
    assert not verify_asked_entities(released("waltraud ottinger"), WORDS, original=log).holds


@pytest.mark.parametrize("sign", ["\U0001fae8", "\U0001e030", "\u0378"], ids=["symbol", "mark", "nothing"])
def test_signs_younger_than_this_python_stand_at_ends_of_words_as_the_method_has_them(sign: str) -> None:
    log = log_of({"u1": [f"tea{sign}"], "u2": ["tea"], "u3": ["tea"]})
    release = Ec2026(n_users=2).anonymize(log)
    assert verify(release, original=log).holds
    assert sorted(entities(pl.Series([f"tea{sign}"]))[0]) == parts_of(f"tea{sign}")


PARTS = st.lists(
    st.sampled_from(["waltraud ottinger", "12 kestrel street", ",", "55801", "212-555-0143", "gout!", "(tea)", "?"]),
    min_size=1,
    max_size=5,
)


@given(parts=PARTS)
def test_method_and_checker_part_texts_alike_each_with_code_of_its_own(parts: list[str]) -> None:
    text = " ".join(parts)
    assert sorted(entities(pl.Series([text]))[0]) == sorted(parts_of(text))


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (TextRule(least_characters=6), "teas"),
        (TextRule(no_digits=True), "tea 4"),
        (TextRule(no_at=True), "tea@"),
        (TextRule(no_contacts=True), "a@b.c"),
        (BraveWdp().promise, "call 5555 3235"),
    ],
)
def test_a_text_that_breaks_the_rule_is_found_among_others(rule: TextRule, text: str) -> None:
    assert verify_text_rule(released("kettle", "kettles"), rule).holds
    verdict = verify_text_rule(released("kettle", text), rule)
    assert verdict.witnesses[0].rows == (2,)
    assert not verdict.holds


@pytest.mark.parametrize(
    ("method", "text", "stays"),
    [
        (BraveWdp(), "ad\u0131@mail.example", True),
        (BraveWdp(), "ad-\u017f@mail.example", True),
        (BraveWdp(), "adi@mail.example", False),
        (BraveWdp(most_digits=1), "route 66", False),
        (BraveWdp(most_digits=1), "route 6", True),
        (BraveWdp(most_digits=2), "route 6-6", True),
        (BraveWdp(most_digits=0), "route 6", False),
    ],
)
def test_method_and_checker_agree_on_letters_and_short_numbers(method: BraveWdp, text: str, *, stays: bool) -> None:
    assert (method.anonymize(log_of({"u1": [text]})).log.n_rows == 1) is stays
    assert verify_text_rule(released(text), method.promise).holds is stays


def test_rows_that_share_an_id_are_found_where_each_stands_alone() -> None:
    joined = QueryLog(frame=released("kettle", "kettles").frame.with_columns(user=pl.lit("1")))
    assert [each.kind for each in verify_text_rule(joined, TextRule()).witnesses] == ["joined_rows"]
    assert verify_text_rule(joined, TextRule(alone=False)).holds


def test_with_the_original_a_text_that_nobody_asked_is_found() -> None:
    assert verify_text_rule(released("gout"), TextRule(), original=LOG).holds
    assert not verify_text_rule(released("rye"), TextRule(), original=LOG).holds


METHODS: list[Google2024 | Ec2026 | BraveWdp | Mozilla] = [
    Google2024(n_users=2, n_row_users=2),
    Ec2026(n_users=2, cell_users=2),
    BraveWdp(),
    Mozilla(least_characters=3),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_folder_is_verified_and_a_promise_that_was_made_stronger_is_not(
    method: Google2024 | Ec2026 | BraveWdp | Mozilla, tmp_path: Path
) -> None:
    folder = method.anonymize(LOG).save(tmp_path / "out")
    release = read_release(folder)
    verdict = verify(release, original=LOG)
    assert verdict.holds, verdict.in_words()
    field = "most_characters" if method.name == "brave_wdp" else "least_characters"
    field, more = (field, 4) if isinstance(release.promise, TextRule) else ("n_users", 3)
    promise = msgspec.structs.replace(release.promise, **{field: more})
    manifest = msgspec.structs.replace(release.manifest, promise=promise)
    assert not verify(replace(release, manifest=manifest), original=LOG).holds


@pytest.mark.parametrize("method", [METHODS[0], METHODS[1]], ids=lambda method: method.name)
def test_without_the_original_nobody_can_count_who_asked(method: Google2024 | Ec2026) -> None:
    with pytest.raises(BadInput, match="can only be counted in the original: add --original LOG"):
        verify(method.anonymize(LOG))


@pytest.mark.parametrize("session_rows", [1, None, -7])
def test_ids_with_more_rows_than_a_mini_session_are_a_fault(session_rows: int | None, tmp_path: Path) -> None:
    log = log_of({f"u{i}": ["tea"] * 3 for i in range(3)})
    release = read_release(Ec2026(n_users=2).anonymize(log).save(tmp_path / "out"))
    assert verify(release, original=log).holds
    settings = release.manifest.parameters | {"session_rows": session_rows}
    manifest = msgspec.structs.replace(release.manifest, parameters=settings)
    found = verify(replace(release, manifest=manifest), original=log)
    assert any("ids have more rows than a mini-session" in fault for fault in found.faults)


def test_a_mini_session_of_any_length_may_be_stated_and_only_a_sensible_one_holds(tmp_path: Path) -> None:
    release = read_release(Ec2026(n_users=2).anonymize(log_of({"u1": ["tea"], "u2": ["tea"]})).save(tmp_path / "out"))
    settings = release.manifest.parameters | {"session_rows": 2**70}
    manifest = msgspec.structs.replace(release.manifest, parameters=settings)
    assert not verify(replace(release, manifest=manifest), original=log_of({"u1": ["tea"], "u2": ["tea"]})).holds


@pytest.mark.parametrize("change", [{"names": {"query": "quince"}}, {"has_header": False}, {"kind": "log"}])
def test_a_file_of_clicks_that_is_described_as_another_is_a_fault(change: dict[str, Any], tmp_path: Path) -> None:
    folder = Google2024(n_users=2, n_row_users=2).anonymize(LOG).save(tmp_path / "out")
    forge(folder, manifest=lambda said: said["clicks"].update(change))
    assert fault(folder, original=LOG).endswith("as no such file is")


def test_settings_that_the_promise_of_brave_repeats_are_there(tmp_path: Path) -> None:
    folder = BraveWdp().anonymize(LOG).save(tmp_path / "out")
    forge(folder, manifest=lambda said: said["parameters"].pop("many_words"))
    assert fault(folder) == "manifest.json promises many_words=9, and its settings say nothing"


def test_a_mean_of_ranks_has_no_room_for_a_message() -> None:
    log = QueryLog(frame=LOG.frame.with_columns(rank=pl.Series([1, 2, 1, 1, 1])))
    assert not verify_asked_texts(with_more(rank=1.5 + 1e-9), TEXTS, original=log).holds


def with_count(release: Release, count: int) -> Release:
    frame = release.tallies.frame.with_columns(count=pl.lit(count, pl.Int64))
    return replace(release, data=replace(release.tallies, frame=frame))


def test_counts_that_do_not_make_the_rows_that_are_left_are_a_fault(tmp_path: Path) -> None:
    release = read_release(Google2024(n_users=2, n_row_users=2).anonymize(LOG).save(tmp_path / "out"))
    found = verify(with_count(release, 7), original=LOG)
    assert any("rows to be counted, and the counts make" in fault for fault in found.faults)
    counts = msgspec.structs.replace(release.manifest.counts, n_rows_after=2)
    other = replace(release, manifest=msgspec.structs.replace(release.manifest, counts=counts))
    assert "manifest.json says 2 queries, and there are 1 in the files" in verify(other, original=LOG).faults


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_a_device_that_is_an_empty_text_is_unknown_like_one_that_is_missing(kind: str, tmp_path: Path) -> None:
    frame = LOG.frame.with_columns(device=pl.Series(["", None, "tv", "tv", None]))
    log = QueryLog(frame=frame, layout=Layout(format=Format(kind)))
    release = read_release(Google2024(n_users=2, n_row_users=2).anonymize(log).save(tmp_path / "out"))
    assert release.tallies.clicks is not None
    assert release.tallies.clicks.select("device", "count").rows() == [("unknown", 2)]
    assert verify(release, original=log).holds


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_counts_with_countries_and_ranks_come_back_from_a_file_as_they_went(kind: str, tmp_path: Path) -> None:
    from queryveil.formats import layout_for

    log = QueryLog(frame=LOG.frame.with_columns(rank=pl.lit(3, pl.Int64)), layout=layout_for(Path(f"log.{kind}")))
    release = Google2024(n_users=2, n_row_users=2).anonymize(log)
    again = read_release(release.save(tmp_path / "out"))
    assert again.tallies.clicks is not None
    assert release.tallies.clicks is not None
    assert again.tallies.clicks.equals(release.tallies.clicks)
    assert again.tallies.clicks.columns == ["query", "url", "count", "country", "rank"]
    assert verify(again, original=log).holds


@pytest.mark.parametrize(
    ("expect", "is_enough"),
    [
        ("google_2024 n_users=2", True),
        ("google_2024 n_users=3", False),
        ("ec_2026 n_users=2 cell_users=2", True),
        ("brave_wdp most_characters=120", True),
        ("brave_wdp most_characters=100", False),
    ],
)
def test_a_weaker_promise_than_expected_is_a_fault(expect: str, is_enough: bool) -> None:
    method = next(each for each in METHODS if each.name == expect.split(maxsplit=1)[0])
    assert verify(method.anonymize(LOG), original=LOG, expect=expect).holds is is_enough


def test_promises_that_make_no_sense_are_refused() -> None:
    with pytest.raises(BadParameter, match="k must be 2 or more"):
        AskedTexts(n_users=1, n_row_users=2, within=None, rows_within=None)
    with pytest.raises(BadParameter, match="within must be a number and a unit"):
        AskedEntities(n_users=2, cell_users=2, within="soon", listed=None)
    with pytest.raises(BadParameter, match="many_words must be given with most_long_words"):
        TextRule(many_words=9)

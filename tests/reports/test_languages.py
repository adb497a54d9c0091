"""A report in German, French and Spanish, by one table of sentences."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.made_up_reports import ALL, key_of, made_up_log, made_up_report, release_by

from queryveil.errors import BadParameter
from queryveil.guarantees import KmAnonymity
from queryveil.methods import Dp
from queryveil.release import Release
from queryveil.reports import Circumstances, Report, State, render, render_html, report
from queryveil.reports._document import document_of
from queryveil.reports.languages import END, LANGUAGES, START, Language, sentences, spoken, without_marks
from queryveil.reports.value import Judgement

OTHERS = LANGUAGES[1:]
MARKED = re.compile(f"{START}(.*?){END}", re.DOTALL)


def holes(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


def test_each_sentence_stands_in_all_languages_with_the_same_holes_and_once() -> None:
    assert len(sentences()) > 500
    assert [each for each in sentences() if set(each) != set(LANGUAGES)] == []
    assert [each["en"] for each in sentences() if len({tuple(holes(each[lang])) for lang in LANGUAGES}) > 1] == []
    assert [each["en"] for each in sentences() if not all(each[lang].strip() for lang in LANGUAGES)] == []
    english = [each["en"] for each in sentences()]
    assert len(english) == len(set(english))
    assert [each["en"] for each in sentences() if START in str(each) or END in str(each)] == []


def test_no_french_line_begins_with_a_sign_that_ends_something() -> None:
    assert [each["fr"] for each in sentences() if re.search(r" [:;?!»](?!\w)|« ", each["fr"])] == []


def test_sentences_are_said_in_each_language_and_not_left_in_english() -> None:
    long = [each for each in sentences() if len(each["en"].split()) > 6 and "raw" not in each["en"]]
    assert len(long) > 200
    assert [each["en"] for each in long if any(each[lang] == each["en"] for lang in OTHERS)] == []


@cache
def of_every_kind() -> tuple[Report, ...]:
    """Return reports on every kind of release, with and without the original, in every state."""
    alone = [report(release_by(method)) for method in ALL]
    beside = [report(release_by(each), original=made_up_log(), key=key_of(each), n_targets=5, seed=1) for each in ALL]
    noisy = Dp(epsilon=4.0, delta=1e-3, seed=1).anonymize(made_up_log())
    dp = [report(noisy), report(noisy, original=made_up_log(), n_targets=5)]
    return (*alone, *beside, *dp, *_in_every_state())


def _in_every_state() -> Iterator[Report]:
    made = replace(made_up_report(), attacks=None, why_no_attacks="", measures=None)
    for state in (State.HOLDS, State.NOTHING_PROMISED):
        yield replace(made, judgement=replace(made.judgement, state=state))
    yield replace(made, judgement=Judgement(state=State.NOTHING_PROMISED, reason="the texts are hashes"))
    yield _broken()


def _broken() -> Report:
    release = release_by("km")
    manifest = msgspec.structs.replace(release.manifest, promise=KmAnonymity(k=100, m=1))
    return report(Release(data=release.data, manifest=manifest))


@pytest.mark.slow
@pytest.mark.parametrize("lang", OTHERS)
def test_no_sentence_of_any_report_is_left_in_english(lang: str) -> None:
    left: set[str] = set()
    for made in of_every_kind():
        said = repr(spoken(lang).document(document_of(made)))
        left |= set(MARKED.findall(said.encode().decode("unicode_escape")))
    assert left == set()


@pytest.mark.slow
@pytest.mark.parametrize("lang", OTHERS)
@pytest.mark.parametrize("form", ["html", "md"])
def test_every_report_can_be_written_in_every_language(lang: str, form: str) -> None:
    for made in of_every_kind():
        text = render(made, format=form, lang=lang)
        assert isinstance(text, str)
        assert START not in text
        assert f'<html lang="{lang}">' in text or form == "md"


def test_what_nobody_translated_stays_english_and_is_marked_as_such() -> None:
    made = made_up_report(warnings=("sheep are grey", "column sheep was kept and is not covered by the promise"))
    text = render_html(made, lang="de")
    assert '<li><span lang="en">Sheep are grey.</span></li>' in text
    assert "Spalte sheep wurde behalten" in text
    assert '<span lang="en">' not in render_html(made)


@pytest.mark.parametrize("lang", OTHERS)
def test_a_warning_that_little_is_left_is_said_in_each_language(lang: str) -> None:
    left = "6,625 of 18,315 rows and 25 of 4,086 words as typed"
    ways = (
        "with --m 1 it would be 14,233 rows and 301 words, for less protection",
        "a smaller --n-users or --cell-users keeps more, for less protection; so does a log of more users",
        "weaker settings that were tried keep no more; a log of more users does",
    )
    warned = tuple(f"little was released: {left}; {way}" for way in ways)
    said = spoken(lang).document(document_of(made_up_report(warnings=warned)))
    assert START not in repr([each for each in said.sections if each.name == "warnings"]).encode().decode(
        "unicode_escape"
    )


def test_what_the_releaser_says_is_repeated_as_it_is() -> None:
    about = Circumstances(releaser="Stadtbücherei", recipient="Recipient 1,234.5")
    text = render_html(replace(made_up_report(), circumstances=about), lang="de")
    assert "<dd>Stadtbücherei</dd>" in text
    assert "<dd>Recipient 1,234.5</dd>" in text
    assert "<dd>nicht angegeben</dd>" in text


@pytest.mark.parametrize(
    ("lang", "figures", "day", "month"),
    [
        ("de", "1.234.567 12,5\xa0% 3", "31. März 2024", "März 2024"),
        ("fr", "1\u202f234\u202f567 12,5\xa0% 3", "31 mars 2024", "mars 2024"),
        ("es", "1\u202f234\u202f567 12,5\xa0% 3", "31 de marzo de 2024", "marzo de 2024"),
        ("en", "1,234,567 12.5 % 3", "31 March 2024", "March 2024"),
    ],
)
def test_numbers_and_dates_are_written_as_the_language_writes_them(
    lang: str, figures: str, day: str, month: str
) -> None:
    language = spoken(lang)
    assert language.figures("1,234,567 12.5 % 3") == figures
    assert language.text("2024-03-31") == day
    assert language.text("2024-03") == month


@pytest.mark.parametrize("text", ["queryveil 0.15.0", "numpy 2.4.6", "release-2024-03-31", "log.tsv", "1.2.3"])
def test_versions_and_names_are_no_numbers_and_no_dates(text: str) -> None:
    assert without_marks(Language("de").figures(text)) == text
    assert without_marks(spoken("de").text(text)) == text


def test_a_number_below_nothing_has_a_comma_too() -> None:
    assert spoken("de").figures("(-0.019 bits, 1.355 with the log)") == "(-0,019 bits, 1,355 with the log)"


def test_commands_stay_as_they_are_typed() -> None:
    for lang in OTHERS:
        assert "<pre><code>queryveil verify out\n" in render_html(made_up_report(), lang=lang)


def test_a_language_that_there_is_not_is_refused() -> None:
    with pytest.raises(BadParameter, match="lang must be en, de, fr or es, got it"):
        spoken("it")


def test_texts_of_a_release_are_not_translated_and_cannot_open_a_mark() -> None:
    made = replace(made_up_report(), top_queries=((f"user{START}", 3),))
    text = render_html(made, lang="de")
    assert START not in text
    assert '<th scope="row" style="text-align:left">user' in text


@examples(50)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_any_text_comes_through_and_nothing_is_lost_but_its_marks(text: str) -> None:
    said = spoken("de").text(text)
    assert said.count(START) == said.count(END)
    if said.startswith(START):
        assert without_marks(said).split() == text.replace(START, "\ufffd").replace(END, "\ufffd").split()

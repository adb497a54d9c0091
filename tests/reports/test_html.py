"""A report as HTML: in order, well formed, escaped, and clear about what is missing."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import msgspec
import pytest
from tests.support.made_up_reports import ALL, made_up_attacks, made_up_log, made_up_report, release_by

from queryveil.guarantees import (
    KdeltaAnonymity,
    KmAnonymity,
    Linkability,
    NoPromise,
    SwapAnonymity,
    TransactionAnonymity,
)
from queryveil.reports import State, in_short, render_html, report
from queryveil.reports._definitions import source_of
from queryveil.reports._document import document_of
from queryveil.reports._exposure_section import one_per_kind
from queryveil.reports.value import Judgement

VOID = {"meta", "link", "br", "hr", "img"}


class Outline(HTMLParser):
    """Collects headings and ids, and checks that every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


def test_sections_stand_in_the_order_in_which_one_decides() -> None:
    found = outline(render_html(made_up_report(warnings=("times are exact",))))
    assert found.headings == [
        "The three criteria",
        "Who could read it",
        "What is promised",
        "What is not promised",
        "Does it hold?",
        "Texts of one person",
        "What attackers find",
        "The more is known",
        "What it cost",
        "What was taken away",
        "What became of the columns",
        "Warnings",
        "Check it yourself",
        "Glossary",
        "How long this holds",
        "To sign",
    ]


def test_links_lead_to_sections_of_the_page_and_nowhere_else() -> None:
    found = outline(render_html(made_up_report()))
    inner = [link for link in found.links if link.startswith("#")]
    assert len(inner) > 8
    assert {link[1:] for link in inner} <= set(found.ids)
    assert [link[:5] for link in found.links if not link.startswith("#")] == ["data:"]
    assert "script" not in found.tags
    assert len(set(found.ids)) == len(found.ids)


@pytest.mark.parametrize("method", ALL)
def test_a_report_on_every_kind_of_release_is_well_formed(method: str) -> None:
    outline(render_html(report(release_by(method), original=made_up_log(), key=None, n_targets=5)))


@pytest.mark.parametrize(
    ("state", "badge", "kind"),
    [
        (State.HOLDS, "The promise holds", "good"),
        (State.BROKEN, "The promise is broken", "bad"),
        (State.NOTHING_PROMISED, "Nothing is promised", "open"),
        (State.NOT_JUDGED, "Not judged", "open"),
    ],
)
def test_the_verdict_is_a_badge_with_words(state: State, badge: str, kind: str) -> None:
    text = render_html(made_up_report(state=state))
    assert f'<span class="badge {kind}">{badge}</span> <span class="badge bad">Risk over 5 %</span>' in text
    assert ("Do not hand it out: it does not keep what it promises." in text) == (state is State.BROKEN)
    assert ("Do not rely on it" in text) == (state is State.NOTHING_PROMISED)


def test_why_there_is_no_verdict_is_said_at_the_top_and_below() -> None:
    made = made_up_report()
    made = replace(made, judgement=Judgement(state=State.NOT_JUDGED, reason="it needs the key: add --key FILE"))
    assert in_short(made).startswith("The promise was not judged: it needs the key: add --key FILE.")
    assert render_html(made).count("it needs the key: add --key FILE") == 2


def test_the_top_tells_apart_what_is_promised_and_what_was_only_tried() -> None:
    made = made_up_report()
    promised, tried = document_of(made).summary
    assert promised.startswith("Promised and checked: Whoever knows up to")
    assert tried.startswith("Not promised, but tried: Somebody who knows 4 search terms")
    alone = document_of(replace(made, attacks=None, measures=None)).summary
    assert alone == (promised, "Not tried: what attackers find of what is not promised.")
    [broken] = document_of(made_up_report(state=State.BROKEN)).summary
    assert broken.startswith("Promised, but broken: ")


def test_warnings_are_announced_at_the_top_and_listed_below() -> None:
    text = render_html(made_up_report(warnings=("times are exact: x", "column rank was kept")))
    assert (
        "The release was made with 2 warnings, listed below under \u201cWarnings\u201d." in text.partition("<main>")[0]
    )
    assert "<li>Times are exact: x.</li>" in text
    assert "warnings" not in render_html(made_up_report()).partition("<main>")[0]


def test_texts_that_one_person_alone_asked_are_a_figure_with_a_sentence_of_what_it_means() -> None:
    made = report(release_by("pseudonymise"))
    text = render_html(made)
    assert "Texts that one person alone asked: 30 of 38 (78.9 %), in 14.3 % of rows." in text
    assert "Texts with an identifier: 0 of 38." in text
    assert "learns that the person is in the log" in text
    assert "30 of the 38 different texts in the release were asked by one person alone" in text.partition("<main>")[0]
    assert made.to_dict()["manifest"]["texts"]["n_of_one_person"] == 30
    assert "Texts of one person" not in render_html(report(release_by("clump")))


def test_what_needs_the_original_says_in_one_line_how_to_get_it() -> None:
    text = render_html(report(release_by("query_threshold")))
    assert "What attackers find is not known without the original: queryveil report DIR --original LOG." in text
    assert "What it is still good for is not known without the original" in text
    assert "<figure" in text  # what was removed is in the manifest


def test_texts_are_escaped_wherever_they_come_from() -> None:
    made = replace(
        made_up_report(warnings=("<b>bold</b>",)), folder="<i>out</i>", top_queries=(("<script>alert(1)</script>", 3),)
    )
    text = render_html(made)
    found = outline(text)
    assert "script" not in found.tags
    assert not {"b", "i"} & found.tags
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "It holds texts of the release, because they were asked for." in text


def test_of_attackers_of_one_kind_one_is_in_the_picture_and_all_are_in_the_table() -> None:
    attempts = made_up_attacks().attempts
    kept = [(one.after.attacker, one.after.n_known, one.after.n_wrong) for one in one_per_kind(attempts)]
    assert kept == [("known_terms", 4, 0), ("likely_terms", 4, 0), ("rare_pair", None, 0), ("rebuild_2+T", None, 0)]
    text = render_html(made_up_report())
    assert "Exchange undone (1)" in text
    assert "Exchange undone (2, by time)" in text
    assert "Of the 2 that try to undo the exchange, the picture shows the one that found most." in text
    assert text.count("no queries changed hands") == 1
    assert "Clearly above blind guessing in the release: 4 search terms, only if sure, 4 search terms and " in text
    assert "Who is who was estimated" in text


def test_the_exposure_at_the_top_has_before_after_and_chance() -> None:
    top = render_html(made_up_report()).partition("<main>")[0]
    said = "Not promised, but tried: Somebody who knows 4 search terms of a person finds 4\u00a0% of people in it "
    assert said in top
    assert "(95\u00a0% interval up to 5.4\u00a0%); in the log with nothing but new user ids it was 50\u00a0%." in top
    interval = "likely 6.47\u00a0% to 9.85\u00a0% (95\u00a0% interval); blind guessing finds 0.1\u00a0%"
    strongest = f"<dd>8\u00a0%<small>of people, by \u201c8 search terms\u201d; {interval}</small>"
    assert strongest in top


def test_the_commands_to_check_name_the_folder_the_file_and_its_checksum(tmp_path: object) -> None:
    from pathlib import Path

    folder = release_by("clump").save(Path(str(tmp_path)) / "my release")
    made = report(folder)
    text = render_html(made)
    data = made.manifest.data
    assert data is not None
    assert f"sha256sum &#x27;my release&#x27;/{data.name}\n{data.sha256}" in text
    assert "queryveil verify &#x27;my release&#x27; --original LOG --taxonomy wordnet" in text
    assert "queryveil 0." in text


PROMISES = (
    KmAnonymity(k=5, m=2),
    KmAnonymity(k=5, m=None),
    KmAnonymity(k=5, m=1, window="7d"),
    TransactionAnonymity(k=5),
    KdeltaAnonymity(k=5, delta=0.5),
    KdeltaAnonymity(k=5, delta=0.0, same_texts=True),
    Linkability(p=0.4),
    Linkability(p=0.4, strict=True),
    SwapAnonymity(k=10, l=10),
    SwapAnonymity(k=10, l=2, remembered=1000),
)


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_every_promise_has_limits_a_definition_and_a_paper_with_its_year(promise: KmAnonymity) -> None:
    limits = promise.not_promised()
    assert len(limits) >= 3
    assert all(limit.endswith(".") for limit in limits)
    source = source_of(promise, method="km")
    assert source is not None
    assert re.search(r"\b20(09|1\d)\b", source.paper)
    made = made_up_report()
    made = replace(made, manifest=msgspec.structs.replace(made.manifest, promise=promise))
    outline(render_html(made))


def test_partition_and_clump_name_their_own_papers() -> None:
    papers = [source_of(TransactionAnonymity(k=5), method=method) for method in ("clump", "partition")]
    assert ["Naughton" in paper.paper for paper in papers if paper] == [False, True]
    assert source_of(NoPromise(reason="it was rounded"), method="kdelta") is None


def test_a_kept_column_is_said_to_be_uncovered_and_kdeltas_url_to_be_covered() -> None:
    kept = render_html(report(release_by("pseudonymise")))
    assert kept.count("released as it is, not covered by the promise") == 2
    assert "released, and covered by the promise" in render_html(report(release_by("kdelta")))
    clumped = render_html(report(release_by("clump")))
    assert clumped.count(">time</th>") == 1


def test_whoever_finds_more_than_those_who_know_a_few_terms_is_named_at_the_top() -> None:
    made = made_up_report()
    said = in_short(made)
    assert said.endswith(
        "Most is found by another attack, exchange undone (2, by time): 5 % of people (95 % interval 3.81 % to "
        "6.53 %, by chance 0.1 %)."
    )
    assert made.attacks is not None
    only_terms = tuple(one for one in made.attacks.attempts if one.after.attacker == "known_terms")
    assert "another attack" not in in_short(replace(made, attacks=replace(made.attacks, attempts=only_terms)))
    no_terms = tuple(one for one in made.attacks.attempts if not one.after.attacker.endswith("_terms"))
    without = in_short(replace(made, attacks=replace(made.attacks, attempts=no_terms)))
    assert "users. Most is found by exchange undone (2, by time): 5 % of people" in without


def test_why_nobody_attacked_is_said_at_the_top_where_the_original_was_given() -> None:
    made = replace(made_up_report(), attacks=None, why_no_attacks="No attacker was tried: add --key FILE.")
    assert in_short(made).endswith("No attacker was tried: add --key FILE.")
    assert "it needs the original" not in render_html(made)
    assert "it needs the original" in render_html(replace(made, measures=None))

"""The page of a comparison."""

from __future__ import annotations

from html.parser import HTMLParser

from tests.support.made_up_runs import found, judged, known, side_by_side

from queryveil.attacks.suite import Skipped
from queryveil.comparison.page import render_html

VOID = ("meta", "link", "br", "hr", "img", "input")


class Tags(HTMLParser):
    """Check that tags are closed in order, and keep what they say."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not any(name in ("src", "onclick") for name, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def words(text: str) -> str:
    return " ".join(text.replace("\u00a0", " ").split())


def test_the_page_is_whole_and_has_the_picture_the_table_and_the_command() -> None:
    skipped = (Skipped(attacker="known_terms", reason="the release has no rows"),)
    comparison = side_by_side(
        judged("ours & <theirs>", known(10), found("sybil", 900), kept=0.4, distance=0.3),
        judged("all of it", known(900), kept=1.0, standing="promises nothing"),
        judged("groups", kept=0.5, skipped=skipped),
        judged("gone", failed="too few users", standing="failed"),
    )
    page = Tags(render_html(comparison))
    assert page.open == []
    assert "svg" in page.seen
    assert "script" not in page.seen
    text = words(page.text)
    for said in (
        "best: ours & <theirs>",
        "queryveil anonymize km LOG -o DIR --k 5 --m 2",
        "sybil, who knows something, finds 90 %",
        "groups: known_terms does not apply: the release has no rows.",
        "gone: too few users.",
        "only ids changed",
        "profile distance",
    ):
        assert said in text


def test_a_broken_promise_stands_at_the_top() -> None:
    text = words(Tags(render_html(side_by_side(judged("bad", known(0), kept=0.9, standing="broken")))).text)
    assert "a promise is broken Do not use: bad." in text


def test_a_comparison_in_which_everything_failed_is_a_page_too() -> None:
    page = Tags(render_html(side_by_side(judged("gone", failed="too few users", standing="failed"))))
    assert page.open == []
    assert "nothing under the limit" in page.text

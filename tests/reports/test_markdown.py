"""A report as Markdown."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.support.made_up_reports import ALL, made_up_log, made_up_report, release_by

from queryveil.reports import render_html, render_markdown, report


def headings(text: str) -> list[str]:
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


def test_it_has_the_sections_and_the_words_of_the_page() -> None:
    made = made_up_report()
    text, page = render_markdown(made), render_html(made)
    assert headings(text) == re.findall(r"<h2>(.*?)</h2>", page)
    assert (
        "**The promise holds.** **Risk over 5 %.** Do not hand it out as it is: whoever knows a few search terms"
        in text
    )
    assert "(3, 2)-anonymity holds for 30 users." in text
    assert "<" not in text.replace("\\<", "")


def test_tables_stand_for_the_pictures() -> None:
    text = render_markdown(made_up_report())
    assert "| 8 search terms and 2 wrong ones, only if sure |" in text
    assert "| rank | before | after |" in text


@pytest.mark.slow
@pytest.mark.parametrize("method", ALL)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(method: str) -> None:
    text = render_markdown(report(release_by(method), original=made_up_log(), n_targets=5))
    for block in re.findall(r"(?:^\|.*\|$\n)+", text, flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1


def test_what_means_something_in_markdown_means_itself() -> None:
    made = replace(made_up_report(), top_queries=(("a|b *c*\nd `e`", 3),))
    assert r"| a\|b \*c\*\\u000ad \`e\` | 3 |" in render_markdown(made)


def test_texts_give_no_orders_to_a_terminal_and_become_no_links() -> None:
    texts = ("\x1b[31mred\x07\x9b", "a\u202eb", "http://shop.example www.shop.example", "&lt;b&gt; @somebody")
    made = replace(made_up_report(), folder="```\n\x1b", top_queries=tuple((text, 3) for text in texts))
    text = render_markdown(made)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert r"http\://shop.example www\.shop.example" in text
    assert r"\&lt;b\&gt; \@somebody" in text
    assert not re.search(r"^```", text, flags=re.MULTILINE)

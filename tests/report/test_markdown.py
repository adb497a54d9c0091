"""A report as Markdown."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from queryveil.report import render_html, render_markdown, report
from queryveil.testing.made_up_reports import ALL, made_up_log, made_up_report, release_by


def headings(text: str) -> list[str]:
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


def test_it_has_the_sections_and_the_words_of_the_page() -> None:
    made = made_up_report()
    text, page = render_markdown(made), render_html(made)
    assert headings(text) == re.findall(r"<h2>(.*?)</h2>", page)
    assert "**The promise holds.** The promise holds for 30 users." in text
    assert "<" not in text.replace("\\<", "")


def test_tables_stand_for_the_pictures() -> None:
    text = render_markdown(made_up_report())
    assert "| 8 search terms and 2 wrong ones |" in text
    assert "| rank | before | after |" in text


@pytest.mark.parametrize("method", ALL)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(method: str) -> None:
    text = render_markdown(report(release_by(method), original=made_up_log(), n_targets=5))
    for block in re.findall(r"(?:^\|.*\|$\n)+", text, flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1


def test_what_means_something_in_markdown_means_itself() -> None:
    made = replace(made_up_report(), top_queries=(("a|b *c*\nd `e`", 3),))
    assert r"| a\|b \*c\* d \`e\` | 3 |" in render_markdown(made)

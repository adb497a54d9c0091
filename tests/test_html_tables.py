from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.html_trees import parsed

from queryveil.html_tables import Html, escape, facts, number, percent, table


def test_text_is_escaped_once_and_html_never() -> None:
    assert escape("<b> & \"'") == "&lt;b&gt; &amp; &quot;&#x27;"
    assert escape(escape("<b>")) == "&lt;b&gt;"
    assert escape(Html("<b>")) == "<b>"


def test_a_table_has_a_caption_and_a_scope_for_every_heading() -> None:
    tree = parsed(table(["a", "b"], rows=[["x", 1], ["y", 2]], caption="<c>"))
    assert [node.text for node in tree.all("caption")] == ["<c>"]
    assert [node.attributes["scope"] for node in tree.all("th")] == ["col", "col", "row", "row"]
    assert [node.text for node in tree.all("td")] == ["1", "2"]


def test_columns_of_figures_stand_to_the_right_and_those_of_words_to_the_left() -> None:
    rows: list[list[str | float | None]] = [
        ["x", 1, "5 %", "< 3", "1st or none", None],
        ["y", 2, "none", "7", "second", 2.5],
    ]
    sides = [node.attributes["style"] for node in parsed(table("abcdef", rows=rows)).all("td")]
    assert sides[:5] == [f"text-align:{side}" for side in ("right", "left", "right", "left", "right")]


def test_a_table_without_rows_is_a_table() -> None:
    assert len(parsed(table(["a"], rows=[])).all("th")) == 1


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        table(["a", "b"], rows=[["x", 1, 2]])


@pytest.mark.parametrize(
    ("share", "said"),
    [(1e-9, "1e-07 %"), (0.99999999, "99.999999 %"), (1.0, "100 %"), (0.0, "0 %"), (nan, "n/a"), (1.5, "150 %")],
)
def test_nearly_all_and_nearly_nothing_are_not_rounded_away(share: float, said: str) -> None:
    assert percent(share) == said


@given(st.floats(allow_nan=True, allow_infinity=True) | st.integers())
def test_every_number_can_be_written(value: float) -> None:
    assert number(value)
    assert percent(value)


@given(st.lists(st.tuples(st.text(), st.text() | st.integers() | st.floats() | st.booleans() | st.none())))
def test_any_text_gives_a_table_that_is_whole(pairs: list[tuple[str, str | int | float | bool | None]]) -> None:
    for made in (facts(pairs, caption="c"), table(["a", "b"], rows=pairs)):
        made.encode()
        assert len(parsed(made).all("td")) == len(pairs)


def test_an_endless_number_is_said_in_words() -> None:
    assert (number(inf), number(-inf)) == ("infinite", "-infinite")

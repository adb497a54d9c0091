from __future__ import annotations

import re
from itertools import pairwise
from math import inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.html_trees import Node, parsed

from queryveil.html_tables import Html
from queryveil.reports.charts import Bar, BeforeAfter, Dot, Line, bar_chart, dot_chart, line_chart, paired_bar_chart
from queryveil.reports.charts._svg import WIDTH, linear, logarithmic, rooted, text_width, through, tick_text

ODD = (nan, inf, -inf, 0.0, -0.0, 1e-320, 1e308, -1e308, 1.0, -3.5, 1e15)
numbers = st.floats() | st.sampled_from(ODD)


def lines_of(*lines: Line, **wishes: bool) -> Html:
    return line_chart(title="T", description="D", x_label="x", y_label="y", lines=lines, **wishes)


def bars_of(*bars: Bar) -> Html:
    return bar_chart(title="T", description="D", bars=bars)


def dots_of(*dots: Dot, limit: float | None = None) -> Html:
    return dot_chart(title="T", description="D", x_label="x", y_label="y", dots=dots, limit=limit)


def pairs_of(*rows: BeforeAfter) -> Html:
    return paired_bar_chart(title="T", description="D", rows=rows)


def drawing(chart: Html) -> Node:
    """The drawing of a chart that is whole: named, described, and nowhere off the numbers."""
    tree = parsed(chart)
    (node,) = (each for each in tree.all("svg") if each.attributes.get("role") == "img")
    ids = [each.attributes["id"] for each in tree.nodes if "id" in each.attributes]
    assert len(set(ids)) == 2
    assert node.attributes["aria-labelledby"].split() == ids
    assert node.attributes["viewbox"].startswith("0 0 500 ")
    assert node.all("title")[0].text == tree.all("strong")[0].text
    assert node.all("desc")[0].text
    for inner in node.nodes:
        for name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "r"):
            value = inner.attributes.get(name)
            assert value is None or (isfinite(float(value)) and abs(float(value)) < 3000), (inner.name, name)
        assert "nan" not in inner.attributes.get("d", "")
        assert "inf" not in inner.attributes.get("d", "")
    return node


def texts(node: Node) -> list[str]:
    return [each.text for each in node.all("text")]


def boxes(node: Node) -> list[tuple[str, float, float, float]]:
    """Each text of a drawing with its left, its right and its base line."""
    found = []
    for each in node.all("text"):
        x, width = float(each.attributes["x"]), text_width(each.text)
        left = x - width * {"middle": 0.5, "end": 1.0}.get(each.attributes.get("text-anchor", ""), 0.0)
        found.append((each.text, left, left + width, float(each.attributes["y"])))
    return found


EMPTY = {
    "lines": lines_of(),
    "a line without points": lines_of(Line(name="a", points=())),
    "bars": bars_of(),
    "pairs": pairs_of(),
    "dots": dots_of(),
    "only NaN": dots_of(Dot(label="a", x=nan, y=0.5)),
    "0 on a log axis": lines_of(Line(name="a", points=((0, 0), (-1, 5))), is_log=True),
}


@pytest.mark.parametrize("chart", EMPTY.values(), ids=EMPTY)
def test_a_chart_without_figures_says_so(chart: Html) -> None:
    assert texts(drawing(chart)) == ["There is nothing to draw."]


def test_lines_are_named_above_the_chart_and_their_figures_stand_in_a_table() -> None:
    chart = lines_of(
        Line(name="before", points=((2, 0.2), (4, 0.6)), kind="before"),
        Line(name="after", points=((2, 0.0), (4, 0.05))),
        is_share=True,
    )
    assert [node.text for node in parsed(chart).of_class("legend")[0].all("li")] == ["before", "after"]
    assert {"2", "4", "0 %", "60 %"} <= set(texts(drawing(chart)))
    cells = [node.text for node in parsed(chart).all("details")[0].all("td")]
    assert cells == ["20 %", "0 %", "60 %", "5 %"]


def test_lines_are_drawn_where_their_figures_are() -> None:
    chart = lines_of(
        Line(name="a", points=((0, 0), (10, 100))), Line(name="b", points=((0, 50), (10, 50)), kind="before")
    )
    by_kind = {node.attributes["class"]: node.attributes["d"] for node in drawing(chart).all("path")}
    (x0, y0), (x1, y1) = places(by_kind["after"])
    (_, middle), (_, same) = places(by_kind["before"])
    assert x0 < x1
    assert y0 > y1
    assert middle == same == pytest.approx((y0 + y1) / 2)


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path)]


def test_before_after_and_chance_differ_without_colour() -> None:
    points = ((1.0, 1.0), (2.0, 2.0))
    chart = lines_of(*[Line(name=kind, points=points, kind=kind) for kind in ("before", "after", "chance", "other")])
    drawn = drawing(chart)
    looks = set()
    for kind in ("before", "after", "chance", "other"):
        marks = [n for n in drawn.nodes if n.attributes.get("class", "").split()[:1] == [kind] and n.name != "text"]
        line = next(n for n in marks if "stroke-linejoin" in n.attributes)
        looks.add((line.attributes.get("stroke-dasharray"), *sorted({n.name for n in marks})))
    assert len(looks) == 4


def test_a_line_of_many_points_has_a_table_of_forty_rows() -> None:
    chart = lines_of(Line(name="a", points=tuple((x, 1000 / x) for x in range(1, 5000))), is_log=True)
    assert len(parsed(chart).all("tbody")[0].all("tr")) == 40
    assert "40 of 4,999 places" in parsed(chart).text
    assert {"1", "10", "100", "1,000", "10,000"} <= set(texts(drawing(chart)))
    assert len(chart) < 40_000


def test_bars_are_as_long_as_their_values_and_say_them() -> None:
    drawn = drawing(bars_of(Bar(label="a", value=10, note="n"), Bar(label="b", value=5), Bar(label="c", value=0)))
    widths = [float(node.attributes["width"]) for node in drawn.all("rect")]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)
    assert widths[2] == 1
    assert {"10n", "5", "0"} <= set(texts(drawn))


def test_pairs_show_both_and_what_guessing_finds() -> None:
    chart = pairs_of(
        BeforeAfter(label="a", before=0.8, after=0.1, chance=0.05, interval=(0.08, 0.13)),
        BeforeAfter(label="b", before=None, after=0.5, chance=None),
    )
    drawn = drawing(chart)
    assert [node.attributes["class"].split()[0] for node in drawn.all("rect")] == ["before", "after", "after"]
    before, after, alone = (float(node.attributes["width"]) for node in drawn.all("rect"))
    assert before == pytest.approx(8 * after, abs=1)
    assert alone == pytest.approx(5 * after, abs=1)
    assert {"80 %", "10 %", "50 %"} <= set(texts(drawn))
    cells = [node.text for node in parsed(chart).all("details")[0].all("td")]
    assert cells == ["80 %", "10 %", "8 % to 13 %", "5 %", "", "50 %", "", ""]


def many_dots(n: int) -> list[Dot]:
    return [
        Dot(label=f"method k={i}", x=0.3 + 0.6 * ((i * 7) % n) / n, y=0.05 * ((i * 3) % 5) / 5, picked=i == 3)
        for i in range(n)
    ] + [Dot(label="baseline", x=1.0, y=0.9, kind="baseline")]


def test_dots_are_numbered_and_a_list_says_which_is_which() -> None:
    chart = dots_of(*many_dots(12))
    assert [str(i) for i in range(1, 14)] == sorted((node.text for node in drawing(chart).of_class("halo")), key=int)
    assert [node.text for node in parsed(chart).all("ol")[0].all("li")][3] == "method k=3"


def test_the_picked_dot_stands_out_and_the_limit_is_named() -> None:
    chart = dots_of(*many_dots(4), limit=0.05)
    assert [node.text for node in drawing(chart).of_class("picked")] == ["4"]
    assert [node.text for node in parsed(chart).all("ol")[0].of_class("picked")] == ["method k=3"]
    assert "limit 5 %" in texts(drawing(chart))


def test_small_shares_get_more_room_only_where_they_are_heaped_up_and_the_axis_says_so() -> None:
    heaped = [Dot(label=str(i), x=i / 10, y=0.01 * i) for i in range(5)] + [Dot(label="b", x=1, y=0.9)]
    even = [Dot(label=str(i), x=i / 10, y=i / 10) for i in range(10)]
    assert "y (small shares drawn larger)" in texts(drawing(dots_of(*heaped)))
    assert "y" in texts(drawing(dots_of(*even)))


def test_dots_on_one_spot_share_a_label() -> None:
    chart = dots_of(*[Dot(label=f"setting {i}", x=0.5, y=0.5) for i in range(25)])
    assert len(drawing(chart).all("circle")) == 25
    (shared,) = drawing(chart).of_class("halo")
    assert shared.text.startswith("1, 2, 3")


def test_odd_labels_are_escaped() -> None:
    odd = "<script>alert('&')</script>"
    charts = [
        lines_of(Line(name=odd, points=((1, 1), (2, 2)))),
        bars_of(Bar(label=odd, value=1, note=odd)),
        pairs_of(BeforeAfter(label=odd, before=0.1, after=0.1)),
        dots_of(Dot(label=odd, x=0.1, y=0.1)),
        bar_chart(title=odd, description=odd, bars=[]),
    ]
    for chart in charts:
        drawing(chart)
        assert "<script" not in chart


def test_charts_that_differ_have_ids_that_differ_and_the_same_chart_has_the_same() -> None:
    one, two = bars_of(Bar(label="a", value=1)), bars_of(Bar(label="a", value=2))
    ids = [{n.attributes["id"] for n in parsed(chart).nodes if "id" in n.attributes} for chart in (one, two)]
    assert not ids[0] & ids[1]
    assert one == bars_of(Bar(label="a", value=1))


@examples(60)
@given(st.lists(st.tuples(numbers, numbers), max_size=6), st.booleans(), st.booleans())
def test_any_numbers_make_a_line_chart(points: list[tuple[float, float]], log: bool, share: bool) -> None:
    drawing(lines_of(Line(name="a", points=tuple(points)), is_log=log, is_share=share))


@examples(60)
@given(st.lists(st.tuples(st.text(max_size=80), numbers), max_size=5))
def test_any_numbers_make_bars(bars: list[tuple[str, float]]) -> None:
    drawing(bars_of(*[Bar(label=label, value=value) for label, value in bars]))
    rows = [BeforeAfter(label=t, before=v, after=v, chance=v, interval=(v, v)) for t, v in bars]
    drawing(pairs_of(*rows))


@examples(30)
@given(st.lists(st.tuples(numbers, numbers), max_size=6), st.none() | numbers, st.booleans())
def test_any_numbers_make_a_dot_chart(points: list[tuple[float, float]], limit: float | None, share: bool) -> None:
    dots = [Dot(label=f"d{i}", x=x, y=y) for i, (x, y) in enumerate(points)]
    made = dot_chart(
        title="T", description="D", x_label="x", y_label="y", dots=dots, path=points, limit=limit, x_is_share=share
    )
    drawing(made)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=9))
def test_every_value_lies_between_few_ticks(values: list[float]) -> None:
    for scale in (linear(values, start=0, end=100), through(values, start=0, end=100)):
        assert 1 <= len(scale.ticks) <= 9
        assert all(scale.ticks[0] <= value <= scale.ticks[-1] * (1 + 1e-6) or value < 1e-300 for value in values)
        assert all(0 <= scale.place(value) <= 100 for value in values)
        assert len({tick_text(tick) for tick in linear(values, start=0, end=1).ticks}) == len(
            linear(values, start=0, end=1).ticks
        )


def test_ticks_are_round() -> None:
    assert linear([0, 0.85], start=0, end=1, most=1.0).ticks == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert linear([0, 0.93], start=0, end=1, n_ticks=4, most=1.0).ticks == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert logarithmic([1, 30_000_000], start=0, end=1).ticks == (1.0, 1e2, 1e4, 1e6, 1e8)
    assert rooted([0.3], start=0, end=1).ticks[-1] == 0.5


@pytest.mark.parametrize("values", [[5e-324], [0.0, 5e-324], [1e308], [1e15, 1e15 + 0.125], [-1e300, 1e300]])
def test_an_axis_can_be_made_of_the_smallest_and_the_largest(values: list[float]) -> None:
    for scale in (linear(values, start=0, end=100), through(values, start=0, end=100)):
        assert scale.ticks[0] < scale.ticks[-1]
        assert all(0 <= scale.place(value) <= 100 for value in values)


@examples(40)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=25), st.none() | st.floats(0, 1))
def test_no_text_lies_on_another_or_on_a_dot_or_off_the_drawing(
    points: list[tuple[float, float]], limit: float | None
) -> None:
    drawn = drawing(dots_of(*[Dot(label=f"d{i}", x=x, y=y) for i, (x, y) in enumerate(points)], limit=limit))
    numbers = {node.text for node in drawn.of_class("halo")}
    found = boxes(drawn)
    assert all(left >= -0.2 and right <= WIDTH + 0.2 for _, left, right, _ in found)
    for i, (text, left, right, base) in enumerate(found):
        if text not in numbers:
            continue
        for other, their_left, their_right, their_base in found[:i]:
            apart = right <= their_left + 0.2 or their_right <= left + 0.2 or abs(base - their_base) >= 15.8
            # A tick of the axis may be beside the plane at any height, but not in it.
            assert apart or their_right < 100, (text, other)
        for dot in drawn.all("circle"):
            x, y = float(dot.attributes["cx"]), float(dot.attributes["cy"])
            assert not (left < x < right and base - 13 < y < base + 3)


def test_every_one_of_twenty_five_settings_has_its_number() -> None:
    dots = [Dot(label=str(i), x=((i * 7) % 25) / 25, y=((i * 11) % 25) / 25) for i in range(25)]
    assert {node.text for node in drawing(dots_of(*dots)).of_class("halo")} == {str(i) for i in range(1, 26)}


def test_rows_of_bars_keep_their_labels_apart() -> None:
    label = "a label that is much too long to stand beside any bar on a phone, so it stands above and is cut"
    charts = (
        bars_of(*[Bar(label=label, value=10.0**i, note="a note of its own") for i in range(9)]),
        pairs_of(*[BeforeAfter(label=label, before=i / 9, after=i / 20, chance=0.01) for i in range(9)]),
    )
    for chart in charts:
        found = boxes(drawing(chart))
        assert all(left >= 0 and right <= WIDTH for _, left, right, _ in found)
        lines = sorted({base for text, _, _, base in found if not text.endswith("%") or text == "0 %"})
        assert all(b - a >= 15 for a, b in pairwise(lines))

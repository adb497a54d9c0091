"""Numbered dots in a plane: what each choice keeps, and what it exposes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Literal, NamedTuple

from queryveil.html_tables import Html, escape, number, percent, table
from queryveil.reports.charts import _svg as svg

Kind = Literal["method", "baseline", "broken", "other"]

_BOTTOM = 330.0
_RADIUS = 6.0
_LOOKS: dict[Kind, tuple[str, str, str]] = {
    "method": ("circle", "after filled", "promise kept"),
    "baseline": ("square", "before hollow", "promises nothing"),
    "broken": ("cross", "bad", "promise broken"),
    "other": ("diamond", "other hollow", "other"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A labelled dot; the `picked` one stands out, and one without a place (NaN) stands in the table only."""

    label: str
    x: float
    y: float
    kind: Kind = "method"
    picked: bool = False


def dot_chart(
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    dots: Sequence[Dot],
    path: Sequence[svg.Point] = (),
    limit: float | None = None,
    x_is_share: bool = True,
    movable: bool = False,
) -> Html:
    """Draw numbered dots and a list of their names; y is a share, `limit` the most it may be, `path` joins the best.

    If they are `movable`, shares have axes to 100 %, dots without a place are drawn hidden, and a script finds each as
    `[data-dot]`, the path and the limit in `[data-axes]`. The figures then stand in a table beside the chart.
    """
    placed = [dot for dot in dots if _has_place(dot)]
    frontier = [point for point in path if svg.drawable(point[0]) and svg.drawable(point[1])]
    limits = [limit] if limit is not None and svg.drawable(limit) else []
    height, parts = 0.0, list[Html]()
    if placed or (movable and dots):
        x, y = _scales(placed, limits, x_is_share=x_is_share, whole=movable)
        if y.shape == "root":
            y_label += " (small shares drawn larger)"
        height, parts = svg.axes(x, y, x_label=x_label, y_label=y_label, shares=(x_is_share, True))
        places = [(x.place(a), y.place(b)) for a, b in frontier]
        under = [svg.path(places, class_="after", width=1.2)] if len(frontier) > 1 else []
        axes = f"{x.start:g} {x.end:g} {x.ticks[0]:g} {x.ticks[-1]:g} {y.start:g} {y.end:g}" if movable else None
        marks, names, lines = _marks(dots, x, y, limits, movable=movable)
        parts += [svg.tag("g", *under, *lines, data_axes=axes), *marks, svg.tag("g", *names)]
    written = percent if x_is_share else number
    rows = [
        [dot.label + (" (picked)" if dot.picked else ""), written(dot.x), percent(dot.y), _LOOKS[dot.kind][2]]
        for dot in dots
    ]
    return svg.figure(
        title=title,
        description=description,
        height=height,
        parts=parts,
        table=table(["", x_label, y_label, "what it is"], rows=rows) if rows and not movable else None,
        above=_legend(dots if movable else placed),
        below=_key(dots, movable=movable) if parts else None,
    )


def _scales(dots: Sequence[Dot], limits: list[float], *, x_is_share: bool, whole: bool) -> tuple[svg.Scale, svg.Scale]:
    ys = sorted([dot.y for dot in dots] + limits)
    # Where half of all shares lie so low that a plain axis would heap them up, small ones get more room.
    if whole or (ys[0] >= 0 and ys[(len(ys) - 1) // 2] < 0.15 * ys[-1]):
        y = svg.rooted([1.0] if whole else ys, start=_BOTTOM, end=svg.TOP)
    else:
        y = svg.linear(ys, start=_BOTTOM, end=svg.TOP, most=1.0)
    xs = [0.0, 1.0] if whole and x_is_share else [dot.x for dot in dots]
    left, most = svg.left_of(y, percent=True), 1.0 if x_is_share else None
    return svg.linear(xs, start=left, end=svg.RIGHT, n_ticks=4, most=most), y


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "_Box") -> bool:
        across = min(self.right, other.right) - max(self.left, other.left)
        return across > 0 and min(self.bottom, other.bottom) > max(self.top, other.top)


def _marks(
    dots: Sequence[Dot], x: svg.Scale, y: svg.Scale, limits: list[float], *, movable: bool
) -> tuple[list[Html], list[Html], list[Html]]:
    """Return the marks, their numbers, and the line of the limit with its name."""
    places = {i: (x.place(dot.x), y.place(dot.y)) for i, dot in enumerate(dots) if _has_place(dot)}
    taken = [_Box(a - _RADIUS, b - _RADIUS, a + _RADIUS, b + _RADIUS) for a, b in places.values()]
    lines: list[Html] = []
    for limit in limits:
        place, text = y.place(limit), f"limit {svg.tick_text(limit, percent=True)}"
        left, width = x.start + 2, svg.text_width(text)
        boxes = [_Box(each, place - svg.LINE, each + width, place) for each in (left, x.end - width)]
        box = min(boxes, key=lambda each: sum(each.overlaps(dot) for dot in taken))
        lines.append(svg.line(x.start, place, x.end, place, class_="limit", width=1.4, dash="6 4"))
        lines.append(svg.label(text, box.left, place - 6, class_="limit"))
        taken.append(box)
    marks: list[Html] = []
    names: list[Html] = []
    spots = {i: (round(a), round(b)) for i, (a, b) in places.items()}
    for i, dot in enumerate(dots):
        if i not in places:
            marks += [_mark(dot, (x.start, y.start), number=i, hidden=True)] if movable else []
            continue
        marks.append(_mark(dot, places[i], number=i if movable else None))
        here = [j for j, spot in spots.items() if spot == spots[i]]
        if here[0] < i:
            continue
        text = svg.shortened(", ".join(str(j + 1) for j in here), width=90)
        found = _free_box(places[i], svg.text_width(text), taken, left=x.start)
        if found is not None:
            taken.append(found)
            look = "name halo picked" if any(dots[j].picked for j in here) else "name halo"
            middle, base = (found.left + found.right) / 2, (found.top + found.bottom) / 2 + 5
            names.append(svg.label(text, middle, base, class_=look, anchor="middle"))
    return marks, names, lines


def _has_place(dot: Dot) -> bool:
    return svg.drawable(dot.x) and svg.drawable(dot.y)


def _mark(dot: Dot, place: svg.Point, *, number: int | None, hidden: bool = False) -> Html:
    shape, class_, _ = _LOOKS[dot.kind]
    parts = [svg.marker("circle", *place, class_="chance hollow", size=8)] if dot.picked else []
    parts.append(svg.marker(shape, *place, class_=class_, size=4.5))
    at = None if number is None else f"{place[0]:.1f} {place[1]:.1f}"
    return svg.tag(
        "g", *parts, data_dot=None if number is None else str(number), data_at=at, display="none" if hidden else None
    )


def _free_box(point: svg.Point, width: float, taken: Sequence[_Box], *, left: float) -> _Box | None:
    """Return the first free box near a dot: right of it, then around it, then farther off; None if there is none."""
    for reach in (_RADIUS + 1, _RADIUS + 9, _RADIUS + 18):
        for step in range(8):
            across, down = cos(step * pi / 4), -sin(step * pi / 4)
            x, y = point[0] + across * (reach + width / 2), point[1] + down * (reach + 8)
            box = _Box(x - width / 2, y - 8, x + width / 2, y + 8)
            inside = box.left > left and box.right <= svg.WIDTH and box.top > svg.TOP - 14 and box.bottom < _BOTTOM
            if inside and not any(box.overlaps(other) for other in taken):
                return box
    return None


def _legend(dots: Sequence[Dot]) -> Html | None:
    kinds = [kind for kind in _LOOKS if any(dot.kind == kind for dot in dots)]
    items = [(svg.marker(_LOOKS[k][0], 13, 6, class_=_LOOKS[k][1]), _LOOKS[k][2]) for k in kinds]
    if any(dot.picked for dot in dots):
        items.append((svg.marker("circle", 13, 6, class_="chance hollow", size=5), "picked"))
    return svg.legend(items) if len(items) > 1 else None


def _key(dots: Sequence[Dot], *, movable: bool) -> Html:
    looks = [' class="picked"' if dot.picked and not movable else "" for dot in dots]
    items = [f"<li{look}>{escape(dot.label)}</li>" for dot, look in zip(dots, looks, strict=True)]
    return Html(f'<ol class="key">{"".join(items)}</ol>')

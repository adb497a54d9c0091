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
) -> Html:
    """Draw numbered dots and a list of their names; y is a share, `limit` the most it may be, `path` joins the best."""
    placed = [dot for dot in dots if svg.drawable(dot.x) and svg.drawable(dot.y)]
    frontier = [point for point in path if svg.drawable(point[0]) and svg.drawable(point[1])]
    limits = [limit] if limit is not None and svg.drawable(limit) else []
    height, parts = 0.0, list[Html]()
    if placed:
        x, y = _scales(placed, limits, x_is_share=x_is_share)
        if y.shape == "root":
            y_label += " (small shares drawn larger)"
        height, parts = svg.axes(x, y, x_label=x_label, y_label=y_label, shares=(x_is_share, True))
        if len(frontier) > 1:
            parts.append(svg.path([(x.place(a), y.place(b)) for a, b in frontier], class_="after", width=1.2))
        parts += _marks(placed, x, y, limits)
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
        table=table(["", x_label, y_label, "what it is"], rows=rows) if rows else None,
        above=_legend(placed),
        below=_key(placed) if placed else None,
    )


def _scales(dots: Sequence[Dot], limits: list[float], *, x_is_share: bool) -> tuple[svg.Scale, svg.Scale]:
    ys = sorted([dot.y for dot in dots] + limits)
    # Where half of all shares lie so low that a plain axis would heap them up, small ones get more room.
    is_heaped = ys[0] >= 0 and ys[(len(ys) - 1) // 2] < 0.15 * ys[-1]
    if is_heaped:
        y = svg.rooted(ys, start=_BOTTOM, end=svg.TOP)
    else:
        y = svg.linear(ys, start=_BOTTOM, end=svg.TOP, most=1.0)
    xs, left, most = [dot.x for dot in dots], svg.left_of(y, percent=True), 1.0 if x_is_share else None
    return svg.linear(xs, start=left, end=svg.RIGHT, n_ticks=4, most=most), y


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "_Box") -> bool:
        across = min(self.right, other.right) - max(self.left, other.left)
        return across > 0 and min(self.bottom, other.bottom) > max(self.top, other.top)


def _marks(dots: Sequence[Dot], x: svg.Scale, y: svg.Scale, limits: list[float]) -> list[Html]:
    places = [(x.place(dot.x), y.place(dot.y)) for dot in dots]
    taken = [_Box(a - _RADIUS, b - _RADIUS, a + _RADIUS, b + _RADIUS) for a, b in places]
    parts: list[Html] = []
    for limit in limits:
        place, text = y.place(limit), f"limit {svg.tick_text(limit, percent=True)}"
        left, width = x.start + 2, svg.text_width(text)
        boxes = [_Box(each, place - svg.LINE, each + width, place) for each in (left, x.end - width)]
        box = min(boxes, key=lambda each: sum(each.overlaps(dot) for dot in taken))
        parts.append(svg.line(x.start, place, x.end, place, class_="limit", width=1.4, dash="6 4"))
        parts.append(svg.label(text, box.left, place - 6, class_="limit"))
        taken.append(box)
    names: list[Html] = []
    spots = [(round(a), round(b)) for a, b in places]
    for i, (dot, (a, b)) in enumerate(zip(dots, places, strict=True)):
        shape, class_, _ = _LOOKS[dot.kind]
        if dot.picked:
            parts.append(svg.marker("circle", a, b, class_="chance hollow", size=8))
        parts.append(svg.marker(shape, a, b, class_=class_, size=4.5))
        if spots.index(spots[i]) < i:
            continue
        here = [j for j, spot in enumerate(spots) if spot == spots[i]]
        text = svg.shortened(", ".join(str(j + 1) for j in here), width=90)
        found = _free_box((a, b), svg.text_width(text), taken, left=x.start)
        if found is not None:
            taken.append(found)
            look = "name halo picked" if any(dots[j].picked for j in here) else "name halo"
            middle, base = (found.left + found.right) / 2, (found.top + found.bottom) / 2 + 5
            names.append(svg.label(text, middle, base, class_=look, anchor="middle"))
    return parts + names


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


def _key(dots: Sequence[Dot]) -> Html:
    looks = [' class="picked"' if dot.picked else "" for dot in dots]
    items = [f"<li{look}>{escape(dot.label)}</li>" for dot, look in zip(dots, looks, strict=True)]
    return Html(f'<ol class="key">{"".join(items)}</ol>')

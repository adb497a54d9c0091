"""The frame of a chart: few lines, ticks, and what the axes mean."""

from __future__ import annotations

from dataclasses import dataclass

from queryveil.html_tables import Html
from queryveil.report.charts import svg
from queryveil.report.charts.scales import Scale, tick_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where the axes of a chart stand."""

    width: float
    right: float
    bottom: float
    top: float = 34.0

    def left(self, y: Scale, *, percent: bool) -> float:
        """Leave room for the widest tick of the y axis."""
        return max(svg.text_width(tick_text(tick, percent=percent), size=svg.SMALL) for tick in y.ticks) + 10


def framed(
    frame: Frame, *, x: Scale, y: Scale, x_label: str, y_label: str, percent: bool = False, percent_x: bool = False
) -> svg.Drawing:
    """Draw both axes; the meaning of y stands above its ticks, that of x below its end."""
    parts = [svg.label(y_label, 0, 14, size=svg.SMALL)]
    for tick in y.ticks:
        place = y.place(tick)
        is_base = place == y.start
        parts.append(svg.line(x.start, place, x.end, place, class_="axis" if is_base else "grid"))
        text = tick_text(tick, percent=percent)
        parts.append(svg.label(text, x.start - 8, place + 4, anchor="end", size=svg.SMALL))
    parts += _x_ticks(frame, x, percent=percent_x)
    lines = svg.wrapped(x_label, width=frame.width, size=svg.SMALL)
    for i, text in enumerate(lines):
        place = max(x.end, min(frame.width, svg.text_width(text, size=svg.SMALL)))
        parts.append(svg.label(text, place, frame.bottom + 40 + i * 15, anchor="end", size=svg.SMALL))
    return frame.bottom + 48 + 15 * (len(lines) - 1), parts


def _x_ticks(frame: Frame, x: Scale, *, percent: bool) -> list[Html]:
    parts: list[Html] = []
    last_end = -1e9
    for tick in x.ticks:
        place, text = x.place(tick), tick_text(tick, percent=percent)
        width = svg.text_width(text, size=svg.SMALL)
        middle = min(max(place, width / 2), frame.width - width / 2)
        parts.append(svg.line(place, frame.bottom, place, frame.bottom + 4, class_="axis"))
        if middle - width / 2 > last_end + 6:
            parts.append(svg.label(text, middle, frame.bottom + 19, anchor="middle", size=svg.SMALL))
            last_end = middle + width / 2
    return parts

"""Axes: where values stand, round ticks, and both axes drawn."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, log10, sqrt
from typing import Literal

from queryveil.html_tables import Html
from queryveil.reports.charts import _svg as svg

TOP = 34.0
"""Where the plane of an axis chart begins; the meaning of y stands above."""
RIGHT = svg.WIDTH - 14
LINE_BELOW = svg.LINE + 2

_MOST, _LEAST = 1e300, 1e-300
"""Beyond these, differences and steps are no longer numbers."""
_ROOT_TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An axis from `low` to `high` (values) drawn from `start` to `end` (pixels), with its ticks.

    >>> Scale(low=0, high=10, start=100, end=200, ticks=(0, 5, 10)).place(5)
    150.0
    """

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    shape: Literal["linear", "log", "root"] = "linear"

    def place(self, value: float) -> float:
        """Return where a value stands; what is outside stands at the edge."""
        value = min(max(value, self.low), self.high)
        low, high, here = (self._bent(each) for each in (self.low, self.high, value))
        return self.start + (here - low) / (high - low) * (self.end - self.start)

    def _bent(self, value: float) -> float:
        return log10(value) if self.shape == "log" else sqrt(value) if self.shape == "root" else value


def drawable(value: float, *, is_log: bool = False) -> bool:
    """Return whether a value has a place on an axis; NaN has none."""
    return abs(value) <= _MOST and (not is_log or value >= _LEAST)


def linear(values: Iterable[float], *, start: float, end: float, n_ticks: int = 5, most: float | None = None) -> Scale:
    """Return an axis that has 0 on it and round ends; `most` is passed by no tick.

    >>> linear([3, 87], start=0, end=1).ticks
    (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
    """
    known = [value for value in values if drawable(value)] or [0.0]
    low, high = min(*known, 0.0), max(*known, 0.0)
    if high - low < _LEAST:
        low, high = 0.0, 1.0
    step = _step((high - low) / n_ticks)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = tuple(float(f"{i * step:.12g}") for i in range(first, last + 1))
    if most is not None and max(known) <= most < ticks[-1]:
        ticks = (*(tick for tick in ticks if tick < most), most)
    return Scale(low=ticks[0], high=ticks[-1], start=start, end=end, ticks=ticks)


def through(values: Iterable[float], *, start: float, end: float) -> Scale:
    """Return an axis from the least value to the greatest with a tick for each, if they are few whole numbers.

    >>> through([2, 3, 4, 6, 8], start=0, end=1).ticks
    (2, 3, 4, 6, 8)
    """
    known = sorted({value for value in values if drawable(value)})
    if 2 <= len(known) <= 8 and all(value == int(value) for value in known):
        return Scale(low=known[0], high=known[-1], start=start, end=end, ticks=tuple(known))
    return linear(known, start=start, end=end)


def logarithmic(values: Iterable[float], *, start: float, end: float, n_ticks: int = 6) -> Scale:
    """Return an axis where each step is ten times the last; values that are not above 0 have no place there.

    >>> logarithmic([3, 870], start=0, end=1).ticks
    (1.0, 10.0, 100.0, 1000.0)
    """
    known = [value for value in values if drawable(value, is_log=True)] or [1.0]
    first, last = floor(log10(min(known)) + 1e-9), ceil(log10(max(known)) - 1e-9)
    last = max(last, first + 1)
    apart = ceil((last - first) / n_ticks)
    last = first + apart * ceil((last - first) / apart)
    ticks = tuple(10.0**i for i in range(first, last + 1, apart))
    return Scale(low=ticks[0], high=ticks[-1], start=start, end=end, ticks=ticks, shape="log")


def rooted(shares: Iterable[float], *, start: float, end: float) -> Scale:
    """Return an axis of shares that gives small ones more room: places go with the square root.

    >>> rooted([0.002, 0.31], start=0, end=1).ticks
    (0.0, 0.01, 0.05, 0.1, 0.25, 0.5)
    """
    most = max((share for share in shares if drawable(share)), default=1.0)
    ticks = [tick for tick in _ROOT_TICKS if tick < most]
    ticks.append(next((tick for tick in _ROOT_TICKS if tick >= most), most))
    return Scale(low=0.0, high=ticks[-1], start=start, end=end, ticks=tuple(ticks), shape="root")


def tick_text(value: float, *, percent: bool = False) -> str:
    """Write a tick.

    >>> [tick_text(x) for x in (0.0, 0.25, 500.0, 20000.0, 2500000.0, 1e18)]
    ['0', '0.25', '500', '20,000', '2.5 M', '1e+18']
    >>> tick_text(0.125, percent=True)
    '12.5 %'
    """
    if percent:
        return f"{100 * value:.6g} %"
    for power, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if power <= abs(value) < 1e15:
            return f"{value / power:.6g} {name}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 and value == int(value) else f"{value:.6g}"


def _step(rough: float) -> float:
    """Return the least round number that is not below a rough one."""
    power = 10.0 ** floor(log10(rough))
    return next((f * power for f in (1.0, 2.0, 2.5, 5.0) if rough <= f * power * (1 + 1e-9)), 10 * power)


def left_of(y: Scale, *, percent: bool) -> float:
    """Return where the plane begins: right of the widest tick of the y axis."""
    return max(svg.text_width(tick_text(tick, percent=percent)) for tick in y.ticks) + 10


def axes(x: Scale, y: Scale, *, x_label: str, y_label: str, shares: tuple[bool, bool]) -> tuple[float, list[Html]]:
    """Draw both axes and return the height; the meaning of y stands above its ticks, that of x below its end."""
    bottom = y.start
    parts = [svg.label(svg.shortened(y_label, width=svg.WIDTH), 0, 16)]
    for tick in y.ticks:
        place = y.place(tick)
        parts.append(svg.line(x.start, place, x.end, place, class_="axis" if place == bottom else "grid"))
        parts.append(svg.label(tick_text(tick, percent=shares[1]), x.start - 8, place + 5, anchor="end"))
    last_end = -1e9
    for tick in x.ticks:
        place, text = x.place(tick), tick_text(tick, percent=shares[0])
        half = svg.text_width(text) / 2
        middle = min(max(place, half), svg.WIDTH - half)
        parts.append(svg.line(place, bottom, place, bottom + 4, class_="axis"))
        if middle - half > last_end + 6:
            parts.append(svg.label(text, middle, bottom + LINE_BELOW, anchor="middle"))
            last_end = middle + half
    parts.append(svg.label(svg.shortened(x_label, width=svg.WIDTH), svg.WIDTH, bottom + 2 * LINE_BELOW, anchor="end"))
    return bottom + 2 * LINE_BELOW + 8, parts

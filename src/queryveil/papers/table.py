"""A table of figures with notes, ready to be printed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Cell = str | int | float | None
"""None is an empty cell: there is no such figure."""

THEIRS, OURS = "theirs", "ours"
DRAWN_NOTE = "theirs: the figure is only drawn in the paper, so the cells hold no more than its text says"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A paper's table or figure, theirs beside ours; the notes say what ours was measured on."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def claim(text: str, *, holds: bool, figures: str) -> str:
    """Return whether a statement of the paper holds on this log.

    >>> claim("larger is better", holds=False, figures="3, 2")
    'the paper: larger is better; does not hold here: 3, 2'
    """
    return f"the paper: {text}; {'holds' if holds else 'does not hold'} here: {figures}"


def at_each(names: Iterable[object], figures: Iterable[float], *, digits: int = 4) -> str:
    """Write one figure for each setting.

    >>> at_each(["p=0.1", "p=0.2"], [0.5, 0.25])
    '0.5000 (p=0.1), 0.2500 (p=0.2)'
    """
    return ", ".join(f"{figure:.{digits}f} ({name})" for name, figure in zip(names, figures, strict=True))

"""A table of figures with notes, ready to be printed."""

from __future__ import annotations

from dataclasses import dataclass

Cell = str | int | float | None
"""None is an empty cell: there is no such figure."""

THEIRS, OURS = "theirs", "ours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A paper's table or figure, theirs beside ours; the notes say what ours was measured on."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

"""One measure of utility as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A measure: its `name`, its `value`, whether `more` or `less` of it is `better`, and what it is `about`.

    >>> Score(name="average_length", value=2.4, better="more", about="items that a transaction has left").in_words()
    'average length: 2.4 items that a transaction has left (more is better)'
    """

    name: str
    value: float
    better: Literal["more", "less"]
    about: str

    def in_words(self) -> str:
        """Say the measure in one line."""
        return f"{self.name.replace('_', ' ')}: {self.value:,.6g} {self.about} ({self.better} is better)"

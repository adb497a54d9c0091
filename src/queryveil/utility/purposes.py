"""Purposes that a release may serve, and the measure that says how well it does."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """What somebody needs a release for.

    - `name`: as in `--for`.
    - `title`: what people call it.
    - `measure`: the name of the score by which releases are compared; more is better, and 1 is as good as the log.
    """

    name: str
    title: str
    measure: str


_PURPOSES = (
    Purpose(name="ranking", title="Ranking of results", measure="ranking_kept"),
    Purpose(name="suggestions", title="Suggestions while typing", measure="completions_kept"),
    Purpose(name="spelling", title="Spelling correction", measure="spelling_kept"),
    Purpose(name="related", title="Related queries", measure="related_kept"),
    Purpose(name="trends", title="Trends from week to week", measure="trends_kept"),
    Purpose(name="advertising", title="Advertising", measure="revenue_kept"),
    Purpose(name="personalisation", title="Personalisation", measure="interests_kept"),
)
PURPOSES: Mapping[str, Purpose] = {purpose.name: purpose for purpose in _PURPOSES}
"""Every purpose by name."""

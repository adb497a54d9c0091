"""All measures of one release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from queryveil.html_tables import table
from queryveil.utility.score import Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """The `scores` of a release, and `notes` on what could not be measured and why.

    >>> rows = Score(name="rows_kept", value=0.5, better="more", about="of the rows", group="kept", is_share=True)
    >>> Measures(scores=(rows,)).named("rows_kept").value
    0.5
    """

    scores: tuple[Score, ...] = ()
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def __add__(self, other: Measures) -> Measures:
        return Measures(scores=self.scores + other.scores, notes=tuple(dict.fromkeys(self.notes + other.notes)))

    def named(self, name: str) -> Score | None:
        """Give the score of a name, None if it was not measured."""
        return next((score for score in self.scores if score.name == name), None)

    def by_group(self) -> dict[str, tuple[Score, ...]]:
        """Give the scores of each family, in their order."""
        names = dict.fromkeys(score.group for score in self.scores)
        return {name: tuple(score for score in self.scores if score.group == name) for name in names}

    def to_dict(self) -> dict[str, object]:
        """Give all figures, for machines."""
        return {"scores": [score.to_dict() for score in self.scores], "notes": list(self.notes)}

    def _repr_html_(self) -> str:
        rows = [(score.title, score.group, score.written, score.better) for score in self.scores]
        scores = table(
            ("measure", "family", "value", "better"), rows=rows, caption="What the release is still good for"
        )
        return scores + (table(("note",), rows=[(text,) for text in self.notes]) if self.notes else "")


def note(text: str) -> Measures:
    """Give no score, and the reason."""
    return Measures(notes=(text,))

"""One measure of utility as a value."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Literal, Self

from queryveil.html_tables import number, percent, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One measure of utility.

    - `name`, `value`: its name and its value.
    - `better`: whether `more` or `less` of it is better.
    - `about`: what the value counts, in words.
    - `group`: the family it belongs to: kept, coverage, search, counting, advertising, profiles or
      generalisation.
    - `is_share`: whether it lies between 0 and 1 and is written as per cent.

    >>> Score(name="average_length", value=2.4, better="more", about="items that a transaction has left").in_words()
    'average length: 2.4 items that a transaction has left (more is better)'
    """

    name: str
    value: float
    better: Literal["more", "less"]
    about: str
    group: str = ""
    is_share: bool = False

    @property
    def title(self) -> str:
        """The name as people write it."""
        return self.name.replace("_", " ")

    @property
    def written(self) -> str:
        """The value as people write it."""
        return percent(self.value) if self.is_share else number(self.value)

    def in_words(self) -> str:
        """Return the measure in one line."""
        return f"{self.title}: {self.written} {self.about} ({self.better} is better)"

    def to_dict(self) -> dict[str, object]:
        """Return the measure as plain values, for JSON."""
        return asdict(self)


def kept(name: str, value: float, *, about: str, group: str = "kept") -> Score:
    """Return the score of a share of the original that is kept."""
    return Score(name=name, value=value, better="more", about=about, group=group, is_share=True)


def share(part: float, whole: float) -> float:
    """Return part / whole; where there was nothing, all of it is kept.

    >>> share(1, 4), share(0, 0)
    (0.25, 1.0)
    """
    return float(part / whole) if whole else 1.0


def part_of_gain(found: float, *, whole: float, none: float) -> float:
    """Return how much of a gain is there, from 0 (no better than nothing) to 1 (as good as with the whole log).

    A release may be above the log by luck, or below nothing; what is beyond the ends counts as the end.

    >>> part_of_gain(0.5, whole=0.6, none=0.2), part_of_gain(0.1, whole=0.6, none=0.2)
    (0.75, 0.0)
    """
    if found == whole:
        return 1.0
    return min(1.0, max(0.0, (found - none) / (whole - none))) if whole > none else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """All measures of a release.

    - `scores`: the measures.
    - `notes`: what could not be measured, and why.

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

    def __add__(self, other: Self) -> Self:
        return replace(self, scores=self.scores + other.scores, notes=tuple(dict.fromkeys(self.notes + other.notes)))

    def named(self, name: str) -> Score | None:
        """Return the score of a name, None if it was not measured."""
        return next((score for score in self.scores if score.name == name), None)

    def by_group(self) -> dict[str, tuple[Score, ...]]:
        """Return the scores of each family, in their order."""
        names = dict.fromkeys(score.group for score in self.scores)
        return {name: tuple(score for score in self.scores if score.group == name) for name in names}

    def to_dict(self) -> dict[str, object]:
        """Return all figures as plain values, for JSON."""
        return {"scores": [score.to_dict() for score in self.scores], "notes": list(self.notes)}

    def _repr_html_(self) -> str:
        rows = [(score.title, score.group, score.written, score.better) for score in self.scores]
        caption = "What the release is still good for"
        scores = table(("measure", "family", "value", "better"), rows=rows, caption=caption)
        return scores + (table(("note",), rows=[(text,) for text in self.notes]) if self.notes else "")


def note(text: str) -> Measures:
    """Return no score, and the reason."""
    return Measures(notes=(text,))

"""What a report is made of, before it is written as HTML or Markdown: headings, sentences, tables, pictures."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from queryveil.html_tables import Cell, Html


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A few sentences; a `note` is set in small type, a `warning` stands out, a `quote` is somebody else's words."""

    text: str
    kind: Literal["plain", "note", "warning", "quote"] = "plain"


@dataclass(frozen=True, slots=True)
class Bullets:
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Figures in rows; the first cell of a row is its heading. `is_text` is of queries, which nobody translates."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str
    is_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A chart; where there are no pictures a table stands `instead`, unless one with these figures follows anyway."""

    svg: Html
    instead: Table | None


@dataclass(frozen=True, slots=True)
class Commands:
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Lines to fill in by hand, each with what belongs there."""

    fields: tuple[str, ...]


Block: TypeAlias = Paragraph | Bullets | Table | Picture | Commands | Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and what stands below it; `name` is what links lead to."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One of the few figures at the top of a report: a `value`, its label, and a note on how to read it."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Badge:
    """A verdict in two or three words, and whether it is good news."""

    text: str
    kind: Literal["good", "bad", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report: what the first screen says, and the sections below.

    `decision` says what may be done with the release, `facts` who releases it to whom and for what;
    `summary` is what is promised and what else was tried, a paragraph each.
    """

    title: str
    kicker: str
    badges: tuple[Badge, ...]
    decision: str
    summary: tuple[str, ...]
    alert: str
    facts: tuple[tuple[str, str], ...]
    figures: tuple[Figure, ...]
    sections: tuple[Section, ...]
    footer: str


def count(n: int, noun: str) -> str:
    """Return a number of things as text.

    >>> count(1, "warning"), count(1200, "row")
    ('1 warning', '1,200 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def lowered(text: str) -> str:
    return text[:1].lower() + text[1:]

"""What a report is made of, before it is written as HTML or Markdown: headings, sentences, tables, pictures."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from queryveil.attacks.exposure import Exposure
from queryveil.html_tables import Cell, Html, percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A few sentences; a `note` is set in small type, a `warning` stands out, a `quote` is somebody else's words."""

    text: str
    kind: Literal["plain", "note", "warning", "quote"] = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullets:
    """Short statements, one below the other."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Figures in rows; the first cell of a row is its heading."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A chart; where there are no pictures a table stands `instead`, unless one with these figures follows anyway."""

    svg: Html
    instead: Table | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Command lines to type."""

    lines: tuple[str, ...]


Block: TypeAlias = Paragraph | Bullets | Table | Picture | Commands


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report: what the first screen says, and the sections below."""

    title: str
    kicker: str
    badge: str
    badge_kind: Literal["good", "bad", "open"]
    summary: str
    alert: str
    figures: tuple[Figure, ...]
    sections: tuple[Section, ...]
    footer: str


_ATTACKERS = {
    "likely_terms": "Search terms, best guess",
    "rare_pair": "Two or three terms together",
    "vanity": "A name and a town",
    "clock": "Times of queries",
    "token_inversion": "Hashed terms undone",
    "membership": "Being in the log",
    "sybil": "Planted users",
    "added_rows": "Made-up rows told apart",
    "shared_term": "What a whole group shares",
    "as_released": "Rows taken as they stand",
}
_REBUILDERS = ("as_released", "rebuild_")


def attacker(found: Exposure) -> str:
    """Return the title of an attacker with what it knows.

    >>> one = Exposure(
    ...     attacker="known_terms", knows="", n_targets=9, n_found=1, n_by_chance=0, n_known=4, n_wrong=2
    ... )
    >>> attacker(one)
    '4 search terms and 2 wrong ones, only if sure'
    """
    if found.attacker in ("known_terms", "likely_terms") and found.n_known is not None:
        wrong = f" and {found.n_wrong} wrong ones" if found.n_wrong else ""
        guess = "" if found.attacker == "likely_terms" else ", only if sure"
        return f"{found.n_known} search terms{wrong}{guess}"
    return named(found.attacker)


def named(name: str) -> str:
    """Return the title of an attacker by its name alone.

    >>> named("rebuild_2+T"), named("known_terms"), named("nosuch_thing")
    ('Exchange undone (2, by time)', 'Search terms', 'Nosuch thing')
    """
    if name == "known_terms":
        return "Search terms"
    if name.startswith("rebuild_"):
        which = name.removeprefix("rebuild_")
        return f"Exchange undone ({which.removesuffix('+T')}{', by time' if which.endswith('+T') else ''})"
    return _ATTACKERS.get(name, capitalized(name.replace("_", " ")))


def is_rebuilder(name: str) -> bool:
    """Return whether an attacker tries to undo an exchange of queries."""
    return name.startswith(_REBUILDERS)


def share(found: Exposure) -> str:
    """Return the share found as text; without targets there is none."""
    return percent(found.share) if found.n_targets else "none sought"


def count(n: int, noun: str) -> str:
    """Return a number of things as text.

    >>> count(1, "warning"), count(1200, "row")
    ('1 warning', '1,200 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def capitalized(text: str) -> str:
    """Return a text with a capital first letter, the others as they are."""
    return text[:1].upper() + text[1:]


def lowered(text: str) -> str:
    """Return a text with a small first letter, the others as they are."""
    return text[:1].lower() + text[1:]

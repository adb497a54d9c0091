"""Reproduce a paper's table or figure by its name: gather a log, run each setting once, put theirs beside ours.

Each paper has a module of its name with `gather`, which returns `Runs` of settings on a log, and one function for each
table and figure, whose docstring is the title.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import polars as pl

from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.methods import bots
from queryveil.progress import step, watch
from queryveil.synthesis import synthesize
from queryveil.utility.search_index import Corpus

_TABLES = {
    "km": ("table3", "table5", "table6", "table7", "fig1", "fig2"),
    "clump": ("fig3", "fig4", "fig5", "fig6", "fig7"),
    "kdelta": ("fig1", "fig2"),
    "plink": ("fig2", "fig3", "fig4", "fig5", "fig6"),
    "swap": ("table2", "table3", "fig4", "fig5", "fig6", "fig7", "fig8", "table4"),
}

NAMES = tuple(f"{paper}-{table}" for paper, tables in _TABLES.items() for table in tables)
"""The tables and figures that can be reproduced."""

Cell = str | int | float | None  # None is an empty cell: there is no such figure
Cells: TypeAlias = tuple[Cell, ...]

THEIRS, OURS = "theirs", "ours"
DRAWN_NOTE = "theirs: the figure is only drawn in the paper, so the cells hold no more than its text says"
BOT_THRESHOLD = 100
BACK = 0.1  # a curve that rises or falls may step back by so much of its way


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A paper's table or figure, theirs beside ours; the notes say what ours was measured on."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Cells, ...]
    notes: tuple[str, ...] = ()


def reproduce(
    name: str,
    log: QueryLog | None = None,
    *,
    users: int | None = None,
    values: pl.DataFrame | None = None,
    corpus: Corpus | None = None,
    seed: int = 0,
) -> Table:
    """Measure what a paper's table or figure shows, and put theirs beside ours.

    The same arguments give the same figures, but for the seconds of clump-fig7, swap-fig4, swap-fig8 and swap-table2
    and the memory of swap-table3.

    - name: one of `NAMES`
    - log: the log to measure on; without one, a log of the paper's shape is made up
    - users: the number of users of the made-up log; without it, as many as the paper's
    - values: term values (term, bid, clicks, impressions) for the km tables; without them, values are made up
    - corpus: the documents that the plink figures search; without them, WordNet's glosses
    - seed: the seed of made-up logs and of every random choice

    Examples
    --------
    >>> reproduce("km-table3", users=200).rows[4][:5]
    ('term frq.', 'user frq.', 0.761, 0.0, 117916)
    """
    if name not in NAMES:
        raise BadParameter("name", name, allowed="one of " + ", ".join(NAMES))
    if log is not None and users is not None:
        raise BadParameter("users", users, allowed="left out when a log is given")
    paper, function = name.split("-")
    if corpus is not None and paper != "plink":
        raise BadParameter("corpus", "one", allowed=f"left out for {name}, which searches nothing")
    module = import_module(f"queryveil.papers.{paper}")
    build: Callable[..., Table] = getattr(module, function)
    if name == "swap-table4":
        if log is not None or users is not None or values is not None:
            raise BadParameter("name", name, allowed="given alone: the table is about labelled queries of the package")
        return build(Runs(notes=(), seed=seed))
    if values is not None and paper != "km":
        raise BadParameter("values", "a table", allowed=f"left out for {name}, which has no use for term values")
    more: dict[str, object] = {"values": values} if paper == "km" else {"corpus": corpus} if paper == "plink" else {}
    return build(module.gather(log, users=users, seed=seed, **more))


def given_or_made_up(log: QueryLog | None, *, like: str, users: int | None, seed: int) -> tuple[QueryLog, str]:
    """Return the log, or one made up in its place, and where it comes from in words."""
    if log is not None:
        return log, "the log was given"
    whose = "AOL's" if like == "aol" else "the paper's"
    return synthesize(like=like, users=users, seed=seed).log, f"the log is made up, in the shape of {whose}"


def without_bots(log: QueryLog) -> tuple[QueryLog, int]:
    """Return the log without the users who search as often as programs, and their number; 0 in a log without times."""
    removed: dict[str, int] = {}
    people = bots.without_bots(log, threshold=BOT_THRESHOLD, removed=removed)
    return log.with_frame(people), removed["bot_users"]


S = TypeVar("S", bound=Hashable)
F = TypeVar("F")
H = TypeVar("H", bound=Hashable)


# Privacy: without a repr of its own, none shows users and texts.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Runs(Generic[S, F]):
    """The runs of a paper's settings on one log; each setting is run once, however often it is asked for.

    The notes hold for all tables of these runs.
    """

    notes: tuple[str, ...]
    seed: int
    _found: dict[S, F] = field(default_factory=dict, init=False)

    def make(self, settings: Iterable[S]) -> list[F]:
        """Run the settings that were not run before, and return what each came to."""
        wanted = list(settings)
        missing = [setting for setting in dict.fromkeys(wanted) if setting not in self._found]
        for i, setting in enumerate(missing):
            step(str(setting), i / len(missing))
            # The steps inside a run would hide which run it is.
            with watch(lambda _name, _share: None):
                self._found[setting] = self._run(setting)
        return [self._found[setting] for setting in wanted]

    def make_rows(self, rows: Mapping[H, Sequence[S]]) -> dict[H, list[F]]:
        """Run the settings of several rows, and return what they came to by the names of the rows."""
        self.make(setting for row in rows.values() for setting in row)
        return {name: self.make(row) for name, row in rows.items()}

    def found(self, setting: S) -> F:
        return self.make([setting])[0]

    def _run(self, setting: S) -> F:
        raise NotImplementedError


class Content(NamedTuple):
    """What a table shows; its notes follow those of the runs."""

    columns: Iterable[str]
    rows: Iterable[Cells]
    notes: Iterable[str]


R = TypeVar("R", bound=Runs[Any, Any])


def table(build: Callable[[R], Content]) -> Callable[[R], Table]:
    """Make a table of what a function shows: the docstring is its title, module and function are its name."""
    paper = build.__module__.rpartition(".")[2].strip("_").partition("_")[0]

    @wraps(build)
    def built(runs: R) -> Table:
        columns, rows, notes = build(runs)
        return Table(
            name=f"{paper}-{build.__name__}",
            title=(build.__doc__ or "").removesuffix("."),
            columns=tuple(columns),
            rows=tuple(rows),
            notes=(*runs.notes, *notes),
        )

    return built


def claim(text: str, *, holds: bool) -> str:
    """Begin a note on a statement of the paper, and whether it holds on this log; our figures are to follow.

    >>> claim("larger is better", holds=False) + "3, 2"
    'the paper: larger is better; does not hold here: 3, 2'
    """
    return f"the paper: {text}; {'holds' if holds else 'does not hold'} here: "


def at_each(names: Iterable[object], figures: Iterable[float | str], *, digits: int = 4, unit: str = "") -> str:
    """Write one figure for each setting.

    >>> at_each(["p=0.1", "p=0.2"], [0.5, 0.25])
    '0.5000 (p=0.1), 0.2500 (p=0.2)'
    """
    written = (figure if isinstance(figure, str) else f"{figure:.{digits}f}{unit}" for figure in figures)
    return ", ".join(f"{figure} ({name})" for name, figure in zip(names, written, strict=True))


def theirs_row(*head: Cell, n: int) -> Cells:
    """Return a row of theirs without figures: the paper only draws them."""
    return (*head, THEIRS, *(None,) * n)


def ours_row(*head: Cell, figures: Iterable[float], digits: int | None) -> Cells:
    """Return a row of ours, rounded to so many digits; None rounds to whole numbers."""
    return (*head, OURS, *(round(figure, digits) for figure in figures))


def beside(
    ours: Mapping[Any, Iterable[float]], theirs: Mapping[Any, Iterable[Cell]], *, digits: int | None
) -> Iterator[Cells]:
    """Return a row of ours for each name, below one of theirs where the paper has one."""
    for name, figures in ours.items():
        if name in theirs:
            yield (str(name), THEIRS, *theirs[name])
        yield ours_row(str(name), figures=figures, digits=digits)


def falls(figures: Iterable[float]) -> bool:
    """Return whether no figure is above the one before it."""
    return all(a >= b for a, b in pairwise(figures))


def trend(figures: Iterable[float]) -> str:
    """Return which way figures go, if no step back is more than `BACK` of the way from the first to the last."""
    found = list(figures)
    steps = [b - a for a, b in pairwise(found)]
    if not any(steps):
        return "stays"
    way = found[-1] - found[0]
    if way > 0 and min(steps) >= -BACK * way:
        return "rises"
    return "falls" if way < 0 and max(steps) <= -BACK * way else "up and down"

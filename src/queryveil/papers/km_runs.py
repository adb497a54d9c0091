"""Run the paper's algorithm for many settings on one log, and measure what each run keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from queryveil.data import Floats, QueryLog
from queryveil.errors import BadInput
from queryveil.methods import Target
from queryveil.methods.bots import bots
from queryveil.methods.km._deletion import check_values
from queryveil.methods.km._deletion import term_values as worth_of_terms
from queryveil.methods.km._search import Wish, choose
from queryveil.papers.table import OURS, THEIRS, Cell
from queryveil.progress import step, watch
from queryveil.rng import generator
from queryveil.synthesis import synthesize, term_values
from queryveil.text import normalize, tokenize
from queryveil.text.histories import Histories, collect
from queryveil.text.tokens import encode

AGAINST = ("R", "W", "fis")
"""Random, the worst target function other than random, and fis."""


COLUMNS_NOTE = (
    "differences in percentage points of the best target function to random (R), to the worst other than random (W) "
    "and to fis; fis has its own column and is not among W"
)


Figures = Mapping[tuple[int, int], tuple[float, ...]]
"""Theirs by (m, k): R, W and fis of each measure in turn."""


def make_all(outcomes: Outcomes) -> None:
    """Make the runs that the differences are taken of."""
    outcomes.make(Run(target=target, m=m, k=k) for m in MS for k in KS for target in Target)


def heads(measures: tuple[Measure, ...]) -> tuple[str, ...]:
    """Name the columns."""
    return ("m", "k", "whose", *(f"{measure} {against}" for measure in measures for against in AGAINST))


def differences(outcomes: Outcomes, measure: Measure, *, m: int, k: int) -> tuple[float, float, float]:
    """Return how far random, the worst target function and fis are behind the best; below 0 where they are ahead."""
    best = outcomes.best(measure, m=m, k=k)
    others = (Target.RANDOM, outcomes.worst(measure, m=m, k=k), Target.FIS)
    random, worst, fis = (best - outcomes.kept(measure, target=target, m=m, k=k) for target in others)
    return random, worst, fis


def rows(outcomes: Outcomes, measures: tuple[Measure, ...], figures: Figures) -> Iterator[tuple[Cell, ...]]:
    """Put ours below theirs for each m and k."""
    for m in MS:
        for k in KS:
            yield (m, k, THEIRS, *figures[m, k])
            cells: list[Cell] = []
            for measure in measures:
                digits = 2 if measure is Measure.TERMS else 1
                cells += [round(value, digits) + 0.0 for value in differences(outcomes, measure, m=m, k=k)]
            yield (m, k, OURS, *cells)


def turned(outcomes: Outcomes, measures: tuple[Measure, ...], figures: Figures) -> list[str]:
    """List where ours is below 0 though theirs is above: there another way beats the measure's own target function."""
    found: dict[str, list[str]] = {}
    for (m, k), line in figures.items():
        for i, measure in enumerate(measures):
            ours = differences(outcomes, measure, m=m, k=k)
            for against, their_value, our_value in zip(AGAINST, line[3 * i : 3 * i + 3], ours, strict=True):
                if their_value > 0 and our_value <= -0.05:
                    found.setdefault(f"{measure} {against}", []).append(f"m={m}, k={k}")
    return [f"theirs above 0, ours below: {head} at {'; '.join(places)}" for head, places in found.items()]


def largest(outcomes: Outcomes, measure: Measure, against: str) -> float:
    """Return the largest difference over all m and k."""
    at = AGAINST.index(against)
    return max(differences(outcomes, measure, m=m, k=k)[at] for m in MS for k in KS)


# Paper: section 5.1.
BOT_THRESHOLD = 100
THEIR_LOG = "theirs: 367,803 users, 1,846,134 queries, 251,115 distinct terms, 5,501,825 occurrences of them"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Material:
    """A log's histories and the values of its terms.

    `worth` says for each target what one occurrence of each term is worth, 0 without a value; `terms` has a row for
    each term, with null where the table of values has nothing; `notes` say where it all comes from.
    """

    histories: Histories
    worth: Mapping[Target, Floats]
    terms: pl.DataFrame
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        # Privacy: the terms stay out of it.
        return f"Material(histories={self.histories!r})"


def gather(log: QueryLog | None, *, users: int | None, values: pl.DataFrame | None, seed: int) -> Material:
    """Take a log and a table of term values; what is not given is made up."""
    log_origin, values_origin = "the log was given", "the term values were given"
    if log is None:
        log = synthesize(like="altavista", users=users, seed=seed).log
        log_origin = "the log is made up, in the shape of the paper's"
    step("reading terms")
    people, n_bots = _without_bots(log.frame)
    if values is None:
        values = term_values(log.with_frame(people), seed=seed)
        values_origin = "the term values are made up, with correlations like those of the paper's table 3"

    tokens = tokenize(people["query"])
    owners, ids = encode(people["user"])
    histories = collect(tokens, owners, n_users=len(ids))
    if not len(histories.terms):
        raise BadInput("the log has no terms to measure on; give one whose queries hold letters or digits")
    terms = _terms(tokens.vocabulary, histories, values)
    n_occurrences = int(histories.counts.sum())
    return Material(
        histories=histories,
        worth={target: worth_of_terms(tokens.vocabulary, target=target, values=values)[0] for target in Target},
        terms=terms,
        notes=(
            f"{log_origin}: {len(ids):,} users ({n_bots:,} bots left out), {people.height:,} queries, "
            f"{terms.height:,} distinct terms, {n_occurrences:,} occurrences of them ({THEIR_LOG})",
            f"{values_origin}: {terms['bid'].count():,} terms have a bid, {terms['clicks'].count():,} have clicks",
        ),
    )


def _without_bots(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    if "time" not in frame.columns:
        return frame, 0
    found = bots(frame, threshold=BOT_THRESHOLD)
    return frame.filter(~pl.col("user").is_in(found.implode())), len(found)


def _terms(vocabulary: pl.Series, histories: Histories, values: pl.DataFrame) -> pl.DataFrame:
    for target in Target:
        check_values(target, values)
    numbers = (pl.col(name).cast(pl.Float64) for name in ("bid", "clicks", "impressions"))
    table = values.select(numbers, term=normalize(values["term"].cast(pl.String)))
    counts = pl.DataFrame({"term": vocabulary, "frequency": histories.frequency(), "users": histories.support()})
    return counts.join(table, on="term", how="left", maintain_order="left")


class Measure(StrEnum):
    """What is measured of an anonymized log, in per cent of the original."""

    TERMS = "dist. terms"
    LOG_SIZE = "log size"
    USERS = "users"
    BID = "bid"
    CLICKS = "clicks"
    IMPRESSIONS = "impressions"
    REVENUE = "revenue"


FOCUS: Mapping[Measure, Target] = {
    Measure.LOG_SIZE: Target.LOG_SIZE,
    Measure.USERS: Target.USERS,
    Measure.BID: Target.BID,
    Measure.CLICKS: Target.CLICKS,
    Measure.IMPRESSIONS: Target.IMPRESSIONS,
    Measure.REVENUE: Target.REVENUE,
}
"""The target function made for each measure; the distinct terms have none."""

MS = (2, 3)
KS = (2, 10, 20, 40, 100)

ALGORITHM_NOTE = "ours is the paper's algorithm: terms are deleted and none is given back (restore off)"
RANDOM_NOTE = "random is the average of two runs, as in the paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The settings of one anonymized log."""

    target: Target
    m: int
    k: int
    restore: bool = False


class Outcomes:
    """What each run keeps of one log; a run is made once, however often it is asked for."""

    def __init__(self, material: Material, *, seed: int) -> None:
        self.material, self.seed = material, seed
        self._found: dict[Run, dict[Measure, float]] = {}

    def make(self, runs: Iterable[Run]) -> None:
        """Make those of the runs that were not made yet."""
        missing = [run for run in dict.fromkeys(runs) if run not in self._found]
        for i, run in enumerate(missing):
            name = f"k={run.k}, m={run.m}, {run.target}" + (", restore" if run.restore else "")
            step(name, i / len(missing))
            # The steps inside a run would hide which run it is.
            with watch(lambda _name, _share: None):
                self._found[run] = self._measure(run)

    def kept(self, measure: Measure, *, target: Target, m: int, k: int, restore: bool = False) -> float:
        """Return what a run keeps, in per cent of the original."""
        run = Run(target=target, m=m, k=k, restore=restore)
        self.make([run])
        return self._found[run][measure]

    def best(self, measure: Measure, *, m: int, k: int) -> float:
        """Return what the measure's own target function keeps; for the distinct terms, the most that any keeps."""
        # Paper: section 5.3, "here, we only present the best outcome of any target function".
        targets = [FOCUS[measure]] if measure in FOCUS else list(Target)
        return max(self.kept(measure, target=target, m=m, k=k) for target in targets)

    def leader(self, measure: Measure, *, m: int, k: int) -> Target:
        """Find the target function that keeps most, random and fis among them."""
        return max(Target, key=lambda target: self.kept(measure, target=target, m=m, k=k))

    def worst(self, measure: Measure, *, m: int, k: int) -> Target:
        """Find the target function, other than random and fis, that keeps least."""
        return min(FOCUS.values(), key=lambda target: self.kept(measure, target=target, m=m, k=k))

    def _measure(self, run: Run) -> dict[Measure, float]:
        histories, worth = self.material.histories, self.material.worth
        whole = _amounts(histories, worth)
        empty = [measure for measure, amount in whole.items() if amount == 0]
        if empty:
            raise BadInput(
                f"no term of the log has a value for {', '.join(empty)}; give a table of term values with some"
            )
        wish = Wish(target=run.target, worth=worth[run.target], restore=run.restore)
        seeds = [self.seed, self.seed + 1] if run.target is Target.RANDOM else [self.seed]
        parts = [
            _amounts(histories.keep(choose(histories, wish, k=run.k, m=run.m, rng=generator(seed))), worth)
            for seed in seeds
        ]
        return {m: 100 * sum(part[m] for part in parts) / len(parts) / whole[m] for m in Measure}


def dominated(material: Material) -> list[str]:
    """Return which measures hang on a single term: it holds them up, until k passes its number of users."""
    frequency, support = material.histories.frequency(), material.histories.support()
    parts = []
    for measure in (Measure.BID, Measure.CLICKS, Measure.IMPRESSIONS, Measure.REVENUE):
        value = frequency * material.worth[FOCUS[measure]]
        top = int(value.argmax())
        if value[top] > 0.1 * value.sum():
            parts.append(f"{100 * value[top] / value.sum():.0f} % of {measure} (users: {support[top]:,})")
    return [f"one term alone is worth {'; '.join(parts)}: while it stays it holds the figures up"] if parts else []


def _amounts(histories: Histories, worth: Mapping[Target, Floats]) -> dict[Measure, float]:
    frequency = histories.frequency()
    values = {
        measure: float(frequency @ worth[target])
        for measure, target in FOCUS.items()
        if target not in (Target.LOG_SIZE, Target.USERS)
    }
    return {
        Measure.TERMS: float((frequency > 0).sum()),
        Measure.LOG_SIZE: float(frequency.sum()),
        Measure.USERS: float((histories.user_terms.lengths > 0).sum()),
        **values,
    }

"""Burghardt et al.: run the paper's algorithm for many settings on one log, and measure what each run keeps."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from queryveil.data import Floats, QueryLog
from queryveil.errors import BadInput
from queryveil.methods import Target
from queryveil.methods.km import _deletion
from queryveil.methods.km._deletion import Objective, choose
from queryveil.papers import driver
from queryveil.progress import step
from queryveil.rng import generator
from queryveil.synthesis import term_values
from queryveil.text.histories import Histories, collect
from queryveil.text.tokens import encode, join_terms, tokenize

# Paper: section 5.1.
THEIR_LOG = "theirs: 367,803 users, 1,846,134 queries, 251,115 distinct terms, 5,501,825 occurrences of them"


def gather(log: QueryLog | None, *, users: int | None, values: pl.DataFrame | None, seed: int) -> "Runs":
    """Read the histories of a log and the values of its terms; what is not given is made up."""
    log, log_origin = driver.given_or_made_up(log, like="altavista", users=users, seed=seed)
    step("reading terms")
    people, n_bots = driver.without_bots(log)
    values_origin = "the term values were given"
    if values is None:
        values = term_values(people, seed=seed)
        values_origin = "the term values are made up, with correlations like those of the paper's table 3"
    tokens = tokenize(people.frame["query"])
    owners, ids = encode(people.frame["user"])
    histories = collect(tokens, owners, n_users=len(ids))
    if not len(histories.terms):
        raise BadInput("the log has no terms to measure on; give one whose queries hold letters or digits")
    for target in Target:
        _deletion.check_values(target, values)
    numbers = (pl.col(name).cast(pl.Float64) for name in ("bid", "clicks", "impressions"))
    table = values.select(numbers, term=join_terms(values["term"].cast(pl.String)))
    terms = tokens.vocabulary.to_frame("term").with_columns(frequency=histories.frequency(), users=histories.support())
    terms = terms.join(table, on="term", how="left", maintain_order="left")
    n_occurrences = int(histories.counts.sum())
    return Runs(
        seed=seed,
        histories=histories,
        worth={target: _deletion.term_values(tokens.vocabulary, target=target, values=values)[0] for target in Target},
        terms=terms,
        notes=(
            f"{log_origin}: {len(ids):,} users ({n_bots:,} bots left out), {people.n_rows:,} queries, "
            f"{terms.height:,} distinct terms, {n_occurrences:,} occurrences of them ({THEIR_LOG})",
            f"{values_origin}: {terms['bid'].count():,} terms have a bid, {terms['clicks'].count():,} have clicks",
        ),
    )


class Measure(StrEnum):
    """What is measured of an anonymized log, in per cent of the original."""

    TERMS = "dist. terms"
    LOG_SIZE = "log size"
    USERS = "users"
    BID = "bid"
    CLICKS = "clicks"
    IMPRESSIONS = "impressions"
    REVENUE = "revenue"


# The target function made for each measure; the distinct terms have none.
FOCUS = {measure: Target[measure.name] for measure in Measure if measure is not Measure.TERMS}
MS = (2, 3)
KS = (2, 10, 20, 40, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The settings of one anonymized log."""

    target: Target
    m: int
    k: int
    restore: bool = False

    def __str__(self) -> str:
        return f"k={self.k}, m={self.m}, {self.target}" + (", restore" if self.restore else "")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Runs(driver.Runs[Run, dict[Measure, float]]):
    """What each run keeps of a log's histories."""

    histories: Histories
    worth: Mapping[Target, Floats]  # what one occurrence of each term is worth to each target, 0 without a value
    terms: pl.DataFrame  # a row for each term, with null where the table of values has nothing

    def kept(self, measure: Measure, *, target: Target, m: int, k: int, restore: bool = False) -> float:
        return self.found(Run(target=target, m=m, k=k, restore=restore))[measure]

    def best(self, measure: Measure, *, m: int, k: int, restore: bool = False) -> float:
        """Return what the measure's own target function keeps; for the distinct terms, the most that any keeps."""
        # Paper: section 5.3, "here, we only present the best outcome of any target function".
        every = FOCUS.values() if restore else Target
        targets = [FOCUS[measure]] if measure in FOCUS else every
        return max(self.kept(measure, target=target, m=m, k=k, restore=restore) for target in targets)

    def leader(self, measure: Measure, *, m: int, k: int) -> Target:
        """Find the target function that keeps most, random and fis among them."""
        return max(Target, key=lambda target: self.kept(measure, target=target, m=m, k=k))

    def worst(self, measure: Measure, *, m: int, k: int) -> Target:
        """Find the target function, other than random and fis, that keeps least."""
        return min(FOCUS.values(), key=lambda target: self.kept(measure, target=target, m=m, k=k))

    def _run(self, setting: Run) -> dict[Measure, float]:
        histories, worth = self.histories, self.worth
        whole = _amounts(histories, worth)
        empty = [measure for measure, amount in whole.items() if amount == 0]
        if empty:
            unknown = f"no term of the log has a value for {', '.join(empty)}"
            raise BadInput(f"{unknown}; give a table of term values with some")
        objective = Objective(target=setting.target, worth=worth[setting.target], restore=setting.restore)
        seeds = [self.seed, self.seed + 1] if setting.target is Target.RANDOM else [self.seed]
        parts = [
            _amounts(histories.keep(choose(histories, objective, k=setting.k, m=setting.m, rng=generator(seed))), worth)
            for seed in seeds
        ]
        return {m: 100 * sum(part[m] for part in parts) / len(parts) / whole[m] for m in Measure}


def _amounts(histories: Histories, worth: Mapping[Target, Floats]) -> dict[Measure, float]:
    frequency = histories.frequency()
    found = {Measure.TERMS: float((frequency > 0).sum())}
    found |= {measure: float(frequency @ worth[target]) for measure, target in FOCUS.items()}
    return found | {Measure.USERS: float((histories.user_terms.lengths > 0).sum())}


def differences(runs: Runs, measure: Measure, *, m: int, k: int) -> tuple[float, ...]:
    """Return how far random, the worst target function and fis are behind the best; below 0 where they are ahead."""
    best = runs.best(measure, m=m, k=k)
    others = (Target.RANDOM, runs.worst(measure, m=m, k=k), Target.FIS)
    return tuple(best - runs.kept(measure, target=target, m=m, k=k) for target in others)


def dominated(runs: Runs) -> list[str]:
    """Return a note on measures that hang on a single term: it holds them up, until k passes its number of users."""
    frequency, support = runs.histories.frequency(), runs.histories.support()
    parts = []
    for measure in (Measure.BID, Measure.CLICKS, Measure.IMPRESSIONS, Measure.REVENUE):
        value = frequency * runs.worth[FOCUS[measure]]
        top = int(value.argmax())
        if value[top] > 0.1 * value.sum():
            parts.append(f"{100 * value[top] / value.sum():.0f} % of {measure} (users: {support[top]:,})")
    return [f"one term alone is worth {'; '.join(parts)}: while it stays it holds the figures up"] if parts else []

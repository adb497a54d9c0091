"""Run the paper's algorithm for many settings on one log, and measure what each run keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from queryveil.errors import BadInput
from queryveil.histories import Histories
from queryveil.kernels.arrays import Floats
from queryveil.methods import Target
from queryveil.methods.km_search import Wish, choose
from queryveil.progress import step, watch
from queryveil.reproduce.km_material import Material
from queryveil.rng import generator


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
        """Give what a run keeps, in per cent of the original."""
        run = Run(target=target, m=m, k=k, restore=restore)
        self.make([run])
        return self._found[run][measure]

    def best(self, measure: Measure, *, m: int, k: int) -> float:
        """Give what the measure's own target function keeps; for the distinct terms, the most that any keeps."""
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
    """Say which measures hang on a single term: it holds them up, until k passes its number of users."""
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
        Measure.USERS: float((histories.row_ptr[1:] > histories.row_ptr[:-1]).sum()),
        **values,
    }

"""One run of a comparison as a row: what the limit says of it, what it keeps, and which attackers reject it."""

from dataclasses import dataclass, field
from typing import Literal

from queryveil.attacks import Exposure
from queryveil.attacks.limits import Ruling, risk
from queryveil.attacks.names import label, split_label, title
from queryveil.comparison.judged import Judged, Standing
from queryveil.comparison.methods import command
from queryveil.html_tables import percent
from queryveil.utility.score import Score

Outcome = Literal["best", "qualifies", "rejected", "not attacked", "promises nothing", "not judged", "broken", "failed"]
OUTCOMES: tuple[Outcome, ...] = Outcome.__args__  # type: ignore[attr-defined]
"""Every outcome of a run, in the order in which a page lists them."""

DRAWN: tuple[Standing, ...] = ("holds", "promises nothing", "not judged")
"""The standings of runs that others are compared with: no promise of theirs was broken."""


def exposure_in(judged: Judged, name: str) -> Exposure | None:
    """Return what an attacker found, None if it did not run; a name alone is the setting that knows most."""
    attacker, n_known = split_label(name)
    right = [one for one in judged.exposures if one.n_targets and one.n_wrong == 0]
    fitting = [one for one in right if one.attacker == attacker and n_known in (None, one.n_known)]
    return max(fitting, key=lambda one: one.n_known or 0, default=None)


def utility_in(judged: Judged, name: str) -> Score | None:
    return next((score for score in judged.scores if score.name == name), None)


def found_in_words(found: Exposure) -> str:
    """Return what an attacker found, in a line that begins with its plain name.

    >>> found_in_words(Exposure(attacker="clock", knows="", what="people", n_targets=200, n_found=10, n_by_chance=1))
    'Times of queries (clock) finds 5 % of its people (95 % interval 2.74 % to 8.96 %; by chance 0.5 %)'
    """
    return (
        f"{title(found)} ({label(found)}) finds {percent(found.share)} of its {found.what} "
        f"({found.interval_in_words}; by chance {percent(found.chance_share)})"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run.

    - `ruling`: what the limit says of what its attackers found.
    - `utility`: the measure that runs are compared by, None if it was not measured.
    - `exposure`: what the attacker found that the picture shows, None if it did not run.
    - `missing`: why one of the two is None.
    """

    judged: Judged
    ruling: Ruling = field(default_factory=Ruling)
    utility: Score | None = None
    exposure: Exposure | None = None
    missing: str = ""
    is_on_frontier: bool = False
    is_picked: bool = False

    @property
    def name(self) -> str:
        return self.judged.name

    @property
    def seconds(self) -> float:
        """The time of the run, judging included."""
        return sum(self.judged.seconds.values())

    @property
    def command(self) -> str:
        """What to type to make such a release."""
        run = self.judged.run
        return "" if run is None else command(run.method, run.settings)

    @property
    def qualifies(self) -> bool:
        """Whether its promise holds and no attacker considered is above the limit."""
        return self.judged.standing == "holds" and self.ruling.is_met

    @property
    def outcome(self) -> Outcome:
        """What became of it, in a word or two."""
        if self.is_picked:
            return "best"
        if self.judged.standing != "holds":
            return self.judged.standing
        if self.ruling.is_met:
            return "qualifies"
        return "rejected" if self.ruling.over else "not attacked"

    @property
    def gain(self) -> float:
        """The utility, signed so that more is better; without one it is worst of all."""
        if self.utility is None:
            return float("-inf")
        return self.utility.value if self.utility.better == "more" else -self.utility.value

    @property
    def keeps_something(self) -> bool:
        """Whether it was measured and is not worth nothing; of what errors leave, nobody can say where nothing is."""
        return self.utility is not None and (self.utility.better == "less" or self.utility.value > 0)

    @property
    def point(self) -> tuple[float, float]:
        """The risk in the picture, of which less is better, and the gain."""
        return (1.0 if self.exposure is None else risk(self.exposure)), self.gain

    @property
    def is_comparable(self) -> bool:
        """Whether it has both figures, and its promise, if it makes one, was not broken."""
        has_both = self.exposure is not None and self.utility is not None
        return has_both and self.judged.standing in DRAWN

    @property
    def rank(self) -> tuple[int, float, float]:
        """Its place in a list of all runs: the best first, then what qualifies by gain, then the rest by risk."""
        place, highest = OUTCOMES.index(self.outcome), self.ruling.risk
        return (place, -self.gain, highest) if self.qualifies else (place, highest, -self.gain)

    @property
    def rejected_by(self) -> str:
        """The attacker above the limit with the highest risk, and how many others are."""
        over = self.ruling.over
        more = f" and {len(over) - 1} more" if len(over) > 1 else ""
        return f"{label(over[0])}{more}" if over else ""

    def to_dict(self) -> dict[str, object]:
        judged, ruling = self.judged, self.ruling
        return {
            "name": self.name,
            "method": None if judged.run is None else judged.run.method,
            "settings": {} if judged.run is None else judged.run.settings,
            "promise": None if judged.promise is None else judged.promise.in_words(),
            "standing": judged.standing,
            "verdict": judged.verdict,
            "failed": judged.failed or None,
            "outcome": self.outcome,
            "qualifies": self.qualifies,
            "picked": self.is_picked,
            "on_frontier": self.is_on_frontier,
            "risk": None if ruling.binding is None else ruling.risk,
            "binding": None if ruling.binding is None else ruling.binding.to_dict(),
            "rejected_by": [label(found) for found in ruling.over],
            "too_few_targets": [label(found) for found in ruling.too_few],
            "excepted": [label(found) for found in ruling.excepted],
            "exposure": None if self.exposure is None else self.exposure.to_dict(),
            "utility": None if self.utility is None else self.utility.to_dict(),
            "missing": self.missing or None,
            "command": self.command,
            "seconds": judged.seconds,
            "attacks": None if judged.attacks is None else judged.attacks.to_dict(),
            "scores": [score.to_dict() for score in judged.scores],
            "notes": list(judged.notes),
        }

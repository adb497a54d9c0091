"""The result of an attack: the share of targets found, compared with blind guessing."""

from dataclasses import asdict, dataclass
from math import sqrt

from queryveil.errors import BadParameter
from queryveil.html_tables import facts, percent

Z = 1.959964
"""So many standard deviations either side hold 95 % of a normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """The figures of one attack.

    - `attacker`: its name.
    - `knows`: what it was given.
    - `what`: what its targets are: rows, people or terms.
    - `n_known`: how many facts about a target it was given, where that varies.
    - `n_wrong`: how many wrong facts it was given on top.
    - `n_targets`: the number of targets.
    - `n_found`: the number of targets that it found.
    - `n_by_chance`: the number of targets that blind guessing finds on average.

    >>> found = Exposure(
    ...     attacker="rebuild_1", knows="the release", what="rows", n_targets=200, n_found=10, n_by_chance=2.5
    ... )
    >>> found.share, found.chance_share
    (0.05, 0.0125)
    >>> print(found.in_words())
    rebuild_1, who knows the release, found 10 of 200 rows: 5 % (95 % interval 2.74 % to 8.96 %); blind guessing finds
    1.25 %.
    """

    attacker: str
    knows: str
    what: str = "targets"
    n_known: int | None = None
    n_wrong: int = 0
    n_targets: int
    n_found: int
    n_by_chance: float

    def __post_init__(self) -> None:
        if self.n_targets < 0:
            raise BadParameter("n_targets", self.n_targets, allowed="0 or more")
        for name, value in (("n_found", self.n_found), ("n_by_chance", self.n_by_chance)):
            if not 0 <= value <= self.n_targets:
                raise BadParameter(name, value, allowed=f"between 0 and n_targets ({self.n_targets})")

    @property
    def share(self) -> float:
        """The share of the targets that was found."""
        return self.n_found / self.n_targets if self.n_targets else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share found.

        It takes targets as found independently of each other, which rows of one user are not quite.
        """
        return wilson(self.n_found, n=self.n_targets)

    @property
    def chance_share(self) -> float:
        """The share of the targets that blind guessing finds on average."""
        return self.n_by_chance / self.n_targets if self.n_targets else 0.0

    @property
    def chance_interval(self) -> tuple[float, float]:
        """What one blind guesser finds in 95 of 100 cases, about."""
        return wilson(self.n_by_chance, n=self.n_targets)

    @property
    def beats_chance(self) -> bool:
        """Whether the whole interval lies above what blind guessing finds."""
        return self.interval[0] > self.chance_share

    def in_words(self) -> str:
        """Return the result in one line."""
        low, high = self.interval
        return (
            f"{self.attacker}, who knows {self.knows}, found {self.n_found:,} of {self.n_targets:,} {self.what}: "
            f"{_percent(self.share)} (95 % interval {_percent(low)} to {_percent(high)}); blind guessing finds "
            f"{_percent(self.chance_share)}."
        )

    @property
    def title(self) -> str:
        """The attacker, with how much it was given where that varies."""
        known = "" if self.n_known is None else f", {self.n_known} known"
        return f"{self.attacker.replace('_', ' ')}{known}" + (f", and {self.n_wrong} wrong" if self.n_wrong else "")

    def _repr_html_(self) -> str:
        low, high = self.interval
        rows = [
            ("knows", self.knows),
            ("found", f"{self.n_found:,} of {self.n_targets:,} {self.what}"),
            ("share", f"{percent(self.share)} (95 % interval {percent(low)} to {percent(high)})"),
            ("by blind guessing", percent(self.chance_share)),
        ]
        return facts(rows, caption=self.title)

    def to_dict(self) -> dict[str, object]:
        """Return all figures, for JSON."""
        return asdict(self) | {
            "share": self.share,
            "interval": list(self.interval),
            "chance_share": self.chance_share,
            "chance_interval": list(self.chance_interval),
            "beats_chance": self.beats_chance,
        }


def wilson(n_found: float, *, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share; for n = 0 it is everything from 0 to 1.

    >>> [round(end, 4) for end in wilson(10, n=100)]
    [0.0552, 0.1744]
    >>> wilson(0, n=0)
    (0.0, 1.0)
    """
    if n == 0:
        return 0.0, 1.0
    share, weight = n_found / n, Z * Z / n
    middle = share + weight / 2
    half = Z * sqrt((share * (1 - share) + weight / 4) / n)
    # Rounding may leave the ends just outside.
    low = 0.0 if n_found == 0 else max(0.0, (middle - half) / (1 + weight))
    high = 1.0 if n_found == n else min(1.0, (middle + half) / (1 + weight))
    return low, high


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"

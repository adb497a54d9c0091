"""The base class of attackers, what they are given and what they return."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import ceil, sqrt
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from queryveil.data import Floats, QueryLog
from queryveil.errors import BadFile, BadParameter
from queryveil.html_tables import facts, percent
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.rng import check_seed
from queryveil.settings import check_settings, setting


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whose name and town are known, as in the lines of a made-up log's `.secrets.jsonl`.

    - `name`, `town`: the name and the town.
    - `user`: the user id in the original, if known.
    """

    name: str
    town: str
    user: str | None = None

    def __repr__(self) -> str:
        # Privacy: neither names nor ids.
        return "Person(...)"


def read_people(path: str | Path) -> tuple[Person, ...]:
    """Read people from lines of JSON with a name, a town and, if it is known, a user; further fields are ignored."""
    file = Path(path)
    try:
        lines = file.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}") from None
    return tuple(_person(line, file=file, number=i) for i, line in enumerate(lines, start=1) if line.strip())


def _person(line: bytes, *, file: Path, number: int) -> Person:
    person = None
    # Privacy: the cause may quote the line, so it is dropped.
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        person = msgspec.json.decode(line, type=Person)
    if person is None or not any(map(str.isalnum, person.name)) or not any(map(str.isalnum, person.town)):
        raise BadFile(file.name, f'line {number} is no person; each is one line such as {{"name": "…", "town": "…"}}')
    return person


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class AuxiliaryData:
    """What attackers have beside the release (auxiliary information, background knowledge).

    - `public`: a log of the same kind by other people.
    - `people`: a directory of names and towns.
    - `remake`: runs the method of the release on another log.
    - `key`: the key of the release; not for the attackers, but to judge whether they were right.
    - `membership`: who is in which group, a table of user and group; for attackers who know the group of a person.
    - `later`: a log of the same people, under the same ids, from another time.
    """

    public: QueryLog | None = None
    people: Sequence[Person] = ()
    remake: Callable[[QueryLog], Release] | None = None
    key: bytes | None = field(default=None, repr=False)
    membership: pl.DataFrame | None = None
    later: QueryLog | None = None

    def __repr__(self) -> str:
        n_people, remake, later = len(self.people), self.remake is not None, self.later is not None
        return f"AuxiliaryData(public={self.public is not None}, n_people={n_people}, remake={remake}, later={later})"


CERTAIN = 0.95
"""The precision required for guesses to count as certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surest:
    """The results of an attacker's most confident guesses: the worst-off people, whom averages hide.

    - `n_targets`, `n_found`: one in a hundred targets, at least one, and how many of these it did find.
    - `n_certain`: how many it found among its most confident guesses, taken as long as 95 % of them are right.
    """

    n_targets: int
    n_found: int
    n_certain: int

    @classmethod
    def of(cls, right: Floats, *, confidence: Floats) -> "Surest | None":
        """Return the figures, given the chance that each guess is right and the confidence in it; None of no guesses.

        >>> Surest.of(np.array([0.0, 1, 1, 0]), confidence=np.array([0.1, 0.9, 0.8, 0.3]))
        Surest(n_targets=1, n_found=1, n_certain=2)
        """
        if not len(right):
            return None
        # Of guesses made with equal confidence each is as likely to be among the surest.
        _, level = np.unique(-confidence, return_inverse=True)
        sizes = np.bincount(level)
        so_far = np.cumsum(np.repeat(np.bincount(level, weights=right) / sizes, sizes))
        ends = np.cumsum(sizes)
        good = ends[so_far[ends - 1] >= CERTAIN * ends]
        n_top = ceil(len(right) / 100)
        n_certain = round(float(so_far[good[-1] - 1])) if len(good) else 0
        return cls(n_targets=n_top, n_found=round(float(so_far[n_top - 1])), n_certain=n_certain)

    @property
    def share(self) -> float:
        """The share found of those whom the attacker is surest of."""
        return self.n_found / self.n_targets

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of that share."""
        return wilson(self.n_found, n=self.n_targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """The figures of one attack.

    - `attacker`, `knows`: its name, and what it was given.
    - `what`: what its targets are: rows, people or terms.
    - `n_known`: how many facts about a target it was given, where that varies.
    - `n_wrong`: how many wrong facts it was given on top.
    - `n_targets`, `n_found`: the number of targets, and of those that it found.
    - `n_by_chance`: the number of targets that the best blind guess finds, such as naming the same user every time.
    - `surest`: the results of its most confident guesses, if it names people and says how sure it is.
    - `is_complete`: whether its targets are all that there are, and not a sample of them: then its share is exact.

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
    surest: Surest | None = None
    is_complete: bool = False

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
        """Wilson's 95 % interval of the share, as if all were found independently; one user's rows are not quite."""
        if self.is_complete and self.n_targets:
            return self.share, self.share
        return wilson(self.n_found, n=self.n_targets)

    @property
    def interval_in_words(self) -> str:
        """The interval as people write it, or that there are no other targets."""
        if self.is_complete:
            return "of all there are"
        low, high = map(percent, self.interval)
        return f"95 % interval {low} to {high}"

    @property
    def chance_share(self) -> float:
        """The share of the targets that the best blind guess finds."""
        return self.n_by_chance / self.n_targets if self.n_targets else 0.0

    @property
    def chance_interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of blind guessing."""
        return wilson(self.n_by_chance, n=self.n_targets)

    @property
    def beats_chance(self) -> bool:
        """Whether the whole interval lies above what blind guessing finds."""
        return self.interval[0] > self.chance_share

    def in_words(self) -> str:
        """Return the result in one line."""
        return (
            f"{self.attacker}, who knows {self.knows}, found {self.n_found:,} of {self.n_targets:,} {self.what}: "
            f"{percent(self.share)} ({self.interval_in_words}); blind guessing finds {percent(self.chance_share)}."
        )

    @property
    def title(self) -> str:
        """The attacker, with how much it was given where that varies."""
        known = "" if self.n_known is None else f", {self.n_known} known"
        return f"{self.attacker.replace('_', ' ')}{known}" + (f", and {self.n_wrong} wrong" if self.n_wrong else "")

    def _repr_html_(self) -> str:
        rows = {
            "knows": self.knows,
            "found": f"{self.n_found:,} of {self.n_targets:,} {self.what}",
            "share": f"{percent(self.share)} ({self.interval_in_words})",
            "by blind guessing": percent(self.chance_share),
        }
        if self.surest is not None:
            low, high = self.surest.interval
            interval = f"(95 % interval {percent(low)} to {percent(high)})"
            rows["of the surest 1 %"] = f"{percent(self.surest.share)} {interval}"
            rows["found with certainty"] = f"{self.surest.n_certain:,}"
        return facts(rows.items(), caption=self.title)

    def to_dict(self) -> dict[str, object]:
        """Return all figures, for JSON."""
        surest = self.surest
        more = {} if surest is None else {"share": surest.share, "interval": list(surest.interval)}
        return asdict(self) | {
            "surest": None if surest is None else asdict(surest) | more,
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
    # So many standard deviations either side hold 95 % of a normal distribution.
    z = 1.959964
    share, weight = n_found / n, z * z / n
    middle = share + weight / 2
    half = z * sqrt((share * (1 - share) + weight / 4) / n)
    # Rounding may leave the ends just outside.
    low, high = max(0.0, (middle - half) / (1 + weight)), min(1.0, (middle + half) / (1 + weight))
    return low if n_found else 0.0, 1.0 if n_found == n else high


Reasons = Iterator[str]
"""Why an attacker cannot attack a release, in half a sentence each; only the first is asked for."""


class Attacker(ABC):
    """Somebody who tries to undo a release, given as many facts as any settings `n_known` and `n_wrong` say."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the attacker, as in the docs."""

    @property
    def knows(self) -> str:
        """What it is given, in a phrase; empty where that depends on the release."""
        return ""

    @property
    def what(self) -> str:
        """What its targets are."""
        return "people"

    @property
    def is_complete(self) -> bool:
        """Whether its targets are all that there are in a release, and not a sample."""
        return False

    @abstractmethod
    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        """Yield why it cannot attack this release."""

    @abstractmethod
    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        """Attack, and count what was found."""

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:
        """Return why it cannot attack this release; None if it can."""
        return next(self.reasons(pair, auxiliary=auxiliary), None)

    def exposure(
        self, *, n_targets: int, n_found: int, n_by_chance: float, surest: Surest | None = None, knows: str = ""
    ) -> Exposure:
        """Return the figures of this attacker."""
        return Exposure(
            attacker=self.name,
            knows=knows or self.knows,
            what=self.what,
            n_known=getattr(self, "n_known", None),
            n_wrong=getattr(self, "n_wrong", 0),
            n_targets=n_targets,
            n_found=n_found,
            n_by_chance=n_by_chance,
            surest=surest,
            is_complete=self.is_complete,
        )

    def people_found(self, right: Floats, *, confidence: Floats, n_by_chance: float, knows: str = "") -> Exposure:
        """Return the figures, given the chance that each guess at a person is right and the confidence in it."""
        n_found, surest = round(float(right.sum())), Surest.of(right, confidence=confidence)
        return self.exposure(n_targets=len(right), n_found=n_found, n_by_chance=n_by_chance, surest=surest, knows=knows)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededAttacker(Attacker):
    """An attacker that draws; `seed` repeats what is drawn."""

    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(self)
        check_seed(self.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeker(SeededAttacker):
    """An attacker that draws targets, at most `n_targets`."""

    n_targets: int = setting(1000, at_least=1, help="The most targets that it draws.")

"""The protocol of attackers, what they are given, and the base class of those that draw targets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec
import polars as pl

from queryveil.attacks.exposure import Exposure
from queryveil.data import QueryLog
from queryveil.errors import BadFile, BadParameter
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.rng import check_seed
from queryveil.text.tokens import normalise


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whose name and town are known; `user` is who that is in the original, if known.

    The lines of a made-up log's `.secrets.jsonl` are people.
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
    decoder = msgspec.json.Decoder(Person)
    return tuple(_person(decoder, line, file=file, number=i) for i, line in enumerate(lines, start=1) if line.strip())


def _person(decoder: msgspec.json.Decoder[Person], line: bytes, *, file: Path, number: int) -> Person:
    try:
        person = decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Privacy: the cause may quote the line, so it is dropped.
        person = None
    if person is None or not any(map(str.isalnum, person.name)) or not any(map(str.isalnum, person.town)):
        raise BadFile(file.name, f'line {number} is no person; each is one line such as {{"name": "…", "town": "…"}}')
    return person


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class AuxiliaryData:
    """What attackers have beside the release (auxiliary information, background knowledge).

    Parameters
    ----------
    public
        A log of the same kind by other people.
    people
        A directory of names and towns.
    remake
        Runs the method of the release on another log.
    key
        The key of the release: not for the attackers, but to judge whether they were right.
    """

    public: QueryLog | None = None
    people: Sequence[Person] = ()
    remake: Callable[[QueryLog], Release] | None = None
    key: bytes | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        n_people, remake = len(self.people), self.remake is not None
        return f"AuxiliaryData(public={self.public is not None}, n_people={n_people}, remake={remake})"


class Attacker(Protocol):
    """Somebody who tries to undo a release."""

    @property
    def name(self) -> str:
        """What it is called, as in the docs."""

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:
        """Say in half a sentence why it cannot attack this release; None if it can."""

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        """Attack, and count what was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeker:
    """An attacker that seeks at most `n_targets`; a `seed` repeats what is drawn."""

    n_targets: int = 1000
    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_least("n_targets", self.n_targets, least=1)
        check_seed(self.seed)


def check_least(name: str, value: int, *, least: int) -> None:
    """Raise if a setting is too small."""
    if value < least:
        raise BadParameter(name, value, allowed=f"{least} or more")


def match(log: QueryLog, *, other: QueryLog) -> int:
    """Count the rows of one log that the other has too: the same user with the same query.

    A row counts as often as both logs have it. Queries are the same in any case and with any blanks; users must go by
    the same ids in both. Times, ranks and URLs do not matter.

    >>> one = QueryLog.from_frame({"user": ["u1", "u1", "u2"], "query": ["red wine", "Red  Wine", "jaguar"]})
    >>> two = QueryLog.from_frame({"user": ["u1", "u2", "u2"], "query": ["red wine", "jaguar", "jaguar"]})
    >>> match(one, other=two)
    2
    """
    both = _counts(log).join(_counts(other), on=["user", "query"], how="inner")
    # Paper: section 3.3.3, identical logs appearing in the two input streams.
    return int(both.select(pl.min_horizontal("n", "n_right").sum()).item())


def _counts(log: QueryLog) -> pl.DataFrame:
    folded = pl.DataFrame({"user": log.frame["user"], "query": normalise(log.frame["query"])})
    return folded.group_by("user", "query").agg(n=pl.len().cast(pl.Int64))

"""The protocol of attackers, what they are given, and the base class of those that draw targets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from queryveil.attacks.exposure import Exposure
from queryveil.data import QueryLog
from queryveil.errors import BadFile, BadParameter
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.rng import check_seed

__all__ = ["Attacker", "AuxiliaryData", "Exposure", "Person", "Seeker", "check_least", "read_people"]


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

    - `public`: a log of the same kind by other people.
    - `people`: a directory of names and towns.
    - `remake`: runs the method of the release on another log.
    - `key`: the key of the release; not for the attackers, but to judge whether they were right.
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
        """The name of the attacker, as in the docs."""

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:
        """Return in half a sentence why it cannot attack this release; None if it can."""

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        """Attack, and count what was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeker:
    """An attacker that draws targets.

    - `n_targets`: the most targets that it draws.
    - `seed`: repeats what is drawn.
    """

    n_targets: int = 1000
    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_least("n_targets", self.n_targets, least=1)
        check_seed(self.seed)


def check_least(name: str, value: int, *, least: int) -> None:
    """Raise if a setting is too small."""
    if value < least:
        raise BadParameter(name, value, allowed=f"{least} or more")

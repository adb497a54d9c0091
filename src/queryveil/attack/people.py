"""A directory of people: what a phone book or an employer's page tells of them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from queryveil.errors import BadFile


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

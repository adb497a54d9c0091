"""The words, names and places that identifiers are found by, read from the package."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib import resources
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from queryveil.text.identifiers import _kernels

TABLE = "identifiers.npz"
"""Made by tools/build_names.py.

words, tokens   words in lower case, sorted, as lines, and the classes of each (`queryveil.text.identifiers._kernels`)
cities, states  names of American cities as lines, and on the same line the states that have one
counties        names of American counties, without the word county
things          things that are called like people
"""
WORDS = "identifier_words.toml"  # written by hand
_NAMES = _kernels.FIRST | _kernels.FIRST_WORD | _kernels.SURNAME | _kernels.SURNAME_WORD | _kernels.COMMON_SURNAME
SITE_ENDINGS = ("com", "org", "net", "gov", "edu", "co.uk", "ca", "de", "fr")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Table:
    """Everything the rules look up."""

    tokens: dict[str, int]
    cities: dict[str, frozenset[str]]
    counties: frozenset[str]
    states: dict[str, str]  # the two letters of each, by its name and by themselves
    doubtful_states: frozenset[str]
    no_street: frozenset[str]
    zip_cues: frozenset[str]
    institutions: frozenset[str]
    products: frozenset[str]
    goods: frozenset[str]
    before: frozenset[str]
    phrases: frozenset[str]
    phrase_starts: frozenset[str]  # the first two words of each phrase
    sites: frozenset[str]
    services: frozenset[str]
    endings: frozenset[str]


@cache
def identifier_table() -> Table:
    """Read the tables of the package; once."""
    folder = resources.files("queryveil.text").joinpath("data")
    with folder.joinpath(TABLE).open("rb") as file, np.load(file) as table:
        columns: dict[str, Any] = dict(table)
    by_hand = tomllib.loads(folder.joinpath(WORDS).read_text(encoding="utf-8"))
    tokens = dict(zip(_lines(columns["words"]), columns["tokens"].tolist(), strict=True))
    names, places, sites = by_hand["names"], by_hand["places"], by_hand["sites"]
    listed = names.pop("phrases").split(",")
    phrases = frozenset(" ".join(phrase.split()) for phrase in listed).union(_lines(columns["things"]))
    known_sites = sites.pop("known").split()
    states = [entry.split() for entry in places.pop("state").split(",")]
    for name, (lost, gained) in _BY_HAND.items():
        for word in by_hand["tokens"][name].split():
            tokens[word] = tokens.get(word, 0) & ~lost | gained
    for word in chain.from_iterable(state[-2:] for state in states):
        tokens[word] = tokens.get(word, 0) | _kernels.STATE_END
    in_states = (frozenset(line.split()) for line in _lines(columns["states"]))
    return Table(
        tokens=tokens,
        cities=dict(zip(_lines(columns["cities"]), in_states, strict=True)),
        counties=frozenset(_lines(columns["counties"])),
        states={key: words[-1] for words in states for key in (" ".join(words[:-1]), words[-1])},
        phrases=phrases,
        phrase_starts=frozenset(" ".join(phrase.split()[:2]) for phrase in phrases),
        sites=frozenset(f"{name}.{ending}" for name in known_sites for ending in SITE_ENDINGS),
        **{name: frozenset(words.split()) for name, words in (names | places | sites).items()},
    )


def _lines(letters: Any) -> list[str]:
    return letters.tobytes().decode("ascii").split("\n")  # type: ignore[no-any-return]


_BY_HAND = {
    "first_word": (_kernels.FIRST, _kernels.FIRST_WORD),
    "first": (_kernels.FIRST_WORD, _kernels.FIRST),
    "not_town": (_kernels.SMALL_TOWN, _kernels.WORD),
    "not_first": (_kernels.FIRST | _kernels.FIRST_WORD, _kernels.WORD),
    "surname": (_kernels.SURNAME_WORD, _kernels.SURNAME),
    "common": (_kernels.SURNAME_WORD, _kernels.SURNAME | _kernels.COMMON_SURNAME),
    "surname_word": (_kernels.SURNAME | _kernels.COMMON_SURNAME, _kernels.SURNAME_WORD),
    "word": (_NAMES, _kernels.WORD),
    "title": (0, _kernels.TITLE),
    "person": (0, _kernels.PERSON),
    "particle": (0, _kernels.PARTICLE),
    "place_cue": (0, _kernels.PLACE_CUE),
    "contact_cue": (0, _kernels.CONTACT_CUE),
    "cue": (0, _kernels.CUE),
}
"""The lists written by hand, in the order in which they count: the classes that their words lose and get."""


class IdentifierKind(StrEnum):
    """A kind of identifier, by the letters of 45 CFR 164.514(b)(2)(i).

    (Q), full-face photographs, cannot stand in the text of a query and has no kind here.
    """

    NAME = "name"
    PLACE = "place"
    DATE = "date"
    PHONE = "phone"
    FAX = "fax"
    EMAIL = "email"
    SSN = "ssn"
    MEDICAL_RECORD = "medical_record"
    PLAN = "plan"
    ACCOUNT = "account"
    LICENCE = "licence"
    VEHICLE = "vehicle"
    DEVICE = "device"
    URL = "url"
    IP = "ip"
    BIOMETRIC = "biometric"
    NUMBER = "number"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Found:
    """An identifier in a query: it stands from `start` to before `end`, and `rule` found it."""

    start: int
    end: int
    kind: IdentifierKind
    rule: str

    @classmethod
    def of(cls, match: re.Match[str], kind: IdentifierKind, rule: str, *, group: int | str = 0) -> Found:
        """Return what a rule has matched, or a group of it."""
        start, end = match.span(group)
        return cls(start=start, end=end, kind=kind, rule=rule)


_SAME = {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-", "\u2010": "-",
         "\u2011": "-", "\u2212": "-", "\u3002": "."}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_SHORT = 4
_BLANKS = dict.fromkeys((*range(32), 127), " ")
MASK = "\0"  # replaces every letter of an identifier already found


def fold_text(query: str) -> str:
    """Write a query in lower case, with digits and letters of ASCII where they are some; its length stays.

    >>> fold_text("José \uff11\uff12"), len(fold_text("\u0130zmir"))
    ('jose 12', 5)
    """
    return query.lower().translate(_BLANKS) if query.isascii() else "".join(map(_fold_letter, query))


@lru_cache(maxsize=4096)
def _fold_letter(letter: str) -> str:
    if letter in _SAME:
        return _SAME[letter]
    digit = unicodedata.decimal(letter, None)
    if digit is not None:
        return str(digit)
    if letter.isspace() or ord(letter) < 32:
        return " "
    parts = unicodedata.normalize("NFKD", letter)
    plain = parts[0] if all(map(unicodedata.combining, parts[1:])) else letter
    return plain.lower() if len(plain.lower()) == 1 else plain


def without_runs(text: str) -> tuple[str, list[int]]:
    """Write one blank for many, and give the place that each letter had."""
    kept = [at for at in range(len(text)) if text[at : at + 2] != "  "]
    return "".join(text[at] for at in kept), kept


class Word(NamedTuple):
    """A word of a folded query: where it stands, how tables spell it, and its classes."""

    start: int
    end: int
    key: str
    token: int


def words_of(text: str) -> list[Word]:
    """Return the words of a folded query; letters other than ASCII's make a word that is no name."""
    tokens = identifier_table().tokens
    found = []
    for match in _WORD.finditer(text):
        key = match.group().removesuffix("'s").replace("'", "")
        token = tokens.get(key, 0)
        if len(key) == 1:
            token = _kernels.PARTICLE
        elif not key.isascii() or (not token and len(key) < _SHORT):
            # Privacy: short unknown words are abbreviations far more often than names.
            token = _kernels.WORD
        elif not token and key.endswith(_kernels.SURNAME_ENDS):
            token = _kernels.SURNAME
        found.append(Word(match.start(), match.end(), key, token))
    return found

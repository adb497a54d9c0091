"""Queries as the rules for identifiers read them, letter for letter."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from queryveil.kernels.identifier_classes import PARTICLE, SURNAME, SURNAME_ENDS, WORD
from queryveil.text.identifier_table import identifier_table

_SAME = {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-", "\u2010": "-",
         "\u2011": "-", "\u2212": "-", "\u3002": "."}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_SHORT = 4
_BLANKS = dict.fromkeys((*range(32), 127), " ")
GONE = "\0"
"""Stands for every letter that a rule has taken."""


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
    """Give the words of a folded query; letters other than ASCII's make a word that is no name."""
    tokens = identifier_table().tokens
    found = []
    for match in _WORD.finditer(text):
        key = match.group().removesuffix("'s").replace("'", "")
        token = tokens.get(key, 0)
        if len(key) == 1:
            token = PARTICLE
        elif not key.isascii() or (not token and len(key) < _SHORT):
            # Privacy: short unknown words are abbreviations far more often than names.
            token = WORD
        elif not token and key.endswith(SURNAME_ENDS):
            token = SURNAME
        found.append(Word(match.start(), match.end(), key, token))
    return found

"""Rules for names of people: a first name with a surname, a surname with a first name, a title with a surname.

A first name or a surname alone stays. Who is famous is a person all the same; brands and characters that look like
people are listed, and stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from queryveil.kernels import identifier_pairs
from queryveil.kernels.identifier_classes import (
    COMMON_SURNAME,
    FIRST,
    FIRST_WORD,
    PARTICLE,
    PERSON,
    SURNAME,
    SURNAME_WORD,
    TITLE,
)
from queryveil.text.identifier_folding import Word
from queryveil.text.identifier_kinds import Found, IdentifierKind
from queryveil.text.identifier_table import identifier_table

_GAP = re.compile(r"[ .\"'+-]{1,4}")
_GAP_OR_NONE = re.compile(r"\.? ?")
_COMMA = re.compile(r" ?, {0,2}")
_SUFFIX = re.compile(r",? (?:jr|sr|iii|iv)\b\.?")
_MOST_INITIALS = 4
_ANY_FIRST = FIRST | FIRST_WORD
_ANY_SURNAME = SURNAME | SURNAME_WORD
_MAY_BEGIN = _ANY_FIRST | _ANY_SURNAME | TITLE | PARTICLE

is_name = identifier_pairs.is_name.py_func
is_titled = identifier_pairs.is_titled.py_func
is_reversed = identifier_pairs.is_reversed.py_func


def names(text: str, words: Sequence[Word]) -> Iterator[Found]:
    """Find names of people."""
    person = any(word.token & PERSON for word in words)
    at = 0
    while at < len(words) - 1:
        token = words[at].token
        found = None
        if not token or token & _MAY_BEGIN:
            found = (
                _named(text, words, at, person=person)
                or _titled(text, words, at)
                or _reversed(text, words, at)
                or _initialled(text, words, at)
            )
        if found is None:
            at += 1
            continue
        first, last, rule = found
        first, last = _grow(text, words, first, last)
        end = words[last].end
        if suffix := _SUFFIX.match(text, end):
            end = suffix.end()
        yield Found(start=words[first].start, end=end, kind=IdentifierKind.NAME, rule=rule)
        at = last + 1


def _initialled(text: str, words: Sequence[Word], at: int) -> tuple[int, int, str] | None:
    """Find initials before a surname: two of them, or one with a dot."""
    last = at
    while (
        last < min(at + _MOST_INITIALS, len(words) - 1)
        and len(words[last].key) == 1
        and _GAP_OR_NONE.fullmatch(text, words[last].end, words[last + 1].start)
    ):
        last += 1
    is_written = last - at >= 2 or (last > at and text[words[at].end] == ".")
    if not is_written or not words[last].token & COMMON_SURNAME or _is_thing(words, at, last):
        return None
    return at, last, "initials and surname"


def next_word(text: str, words: Sequence[Word], at: int) -> int | None:
    """Give the next word beside this one that is neither an initial nor a particle."""
    for j in range(at + 1, min(at + 4, len(words))):
        if not _GAP.fullmatch(text, words[j - 1].end, words[j].start):
            return None
        # A hyphen joins two first names or two surnames, not one of each.
        if j == at + 1 and text[words[at].end : words[j].start] == "-":
            return None
        if not words[j].token & PARTICLE or (j + 1 == len(words) and len(words[j].key) > 1):
            return j
    return None


def _named(text: str, words: Sequence[Word], at: int, *, person: bool) -> tuple[int, int, str] | None:
    last = next_word(text, words, at)
    # A first name before makes a middle name of a word.
    person = person or bool(at and words[at - 1].token & FIRST and next_word(text, words, at - 1) == at)
    if last is None or not is_name(words[at].token, words[last].token, person):
        return None
    if _is_thing(words, at, last):
        return None
    return at, last, "first name and surname"


def _titled(text: str, words: Sequence[Word], at: int) -> tuple[int, int, str] | None:
    last = next_word(text, words, at)
    if last is None or not is_titled(words[at].token, words[last].token) or _is_thing(words, at, last):
        return None
    # The surname may well be the first name of a whole one.
    whole = _named(text, words, last, person=True)
    return at, last if whole is None else whole[1], "title and surname"


def _reversed(text: str, words: Sequence[Word], at: int) -> tuple[int, int, str] | None:
    last, first = words[at], words[at + 1]
    if not is_reversed(last.token, first.token):
        return None
    if _COMMA.fullmatch(text, last.end, first.start):
        return at, at + 1, "surname, first name"
    alone = len(words) == 2 and not text[: last.start].strip(" \"'") and not text[first.end :].strip(" \"'.")
    is_plain = last.token & SURNAME and not last.token & _ANY_FIRST
    is_first = first.token & FIRST and not first.token & _ANY_SURNAME
    if alone and is_plain and is_first and len(last.key) > 2 and text[last.end : first.start].isspace():
        return None if _is_thing(words, at, at + 1) else (at, at + 1, "surname and first name")
    return None


def _is_thing(words: Sequence[Word], first: int, last: int) -> bool:
    """Say whether two words that look like a person are a brand, a character, a town or an institution."""
    table = identifier_table()
    pair = f"{words[first].key} {words[last].key}"
    after = words[last + 1].key if last + 1 < len(words) else ""
    before = words[first - 1].key if first else ""
    if pair in table.phrases or pair in table.cities or before in table.before:
        return True
    is_sure = words[first].token & FIRST and words[last].token & SURNAME
    return after in table.institutions or (not is_sure and after in table.products)


def _grow(text: str, words: Sequence[Word], first: int, last: int) -> tuple[int, int]:
    """Take in more first names before, a title before those, and a second surname behind."""
    while (
        first
        and words[first - 1].token & (_ANY_FIRST | TITLE)
        and _GAP.fullmatch(text, words[first - 1].end, words[first].start)
    ):
        first -= 1
    after = words[last + 1] if last + 1 < len(words) else None
    if after is not None:
        is_joined = text[words[last].end : after.start] == "-"
        is_middle = words[last].token & _ANY_FIRST and after.token & SURNAME
        if is_joined or (is_middle and _GAP.fullmatch(text, words[last].end, after.start)):
            last += 1
    return first, last

"""What looks like a person and is none: brands, characters, towns, institutions, words that no table knows."""

from __future__ import annotations

from collections.abc import Sequence

from queryveil.kernels.identifier_classes import (
    COMMON_SURNAME,
    FIRST,
    FIRST_WORD,
    SURNAME,
    SURNAME_WORD,
    WORD,
)
from queryveil.text.identifier_folding import Word
from queryveil.text.identifier_table import identifier_table

_LONGEST = 4
_SHORTEST_PART = 4
# How English and German surnames end that are made of two words.
_SURNAME_ENDS = (
    "beck", "bell", "berg", "bird", "borne", "bourne", "bridge", "brook", "burg", "burn", "bury", "bush", "cliff",
    "cote", "craft", "croft", "dale", "fall", "feather", "field", "ford", "gate", "gold", "ham", "hart", "head", "heim",
    "hill", "hold", "hope", "horn", "horse", "house", "hurst", "land", "leigh", "ley", "ling", "lock", "man", "mann",
    "mead", "more", "pool", "port", "rose", "shaw", "shire", "side", "smith", "son", "stead", "stein", "stone",
    "thorpe", "ton", "tree", "wall", "ward", "water", "waters", "way", "well", "wick", "wood", "worth", "wright",
)  # fmt: skip
_NAMES = FIRST | FIRST_WORD | SURNAME | SURNAME_WORD


def is_thing(words: Sequence[Word], first: int, last: int, *, person: bool) -> bool:
    """Say whether two words that look like a person are something else; `person`: the query speaks of people."""
    table = identifier_table()
    is_sure = words[first].token & FIRST and words[last].token & SURNAME
    # Initials and particles between the two may be left out.
    pair = f"{words[first].key} {words[last].key}"
    if pair in table.phrases or _begins(words, first, past=last):
        # Privacy: people are called like characters and firms, too.
        return not (person and is_sure and words[last].token & COMMON_SURNAME)
    if pair in table.cities or is_institution(words, last + 1):
        return True
    if first and (words[first - 1].key in table.before or _is_in_phrase(words, first, past=last)):
        return True
    after = words[last + 1].key if last + 1 < len(words) else ""
    if after in table.goods or is_sure:
        return after in table.goods
    return after in table.products or _is_in_phrase(words, first, past=first) or _is_compound(words[last])


def _is_in_phrase(words: Sequence[Word], first: int, *, past: int) -> bool:
    """Say whether a phrase begins before a word and goes on to `past` at least."""
    return any(_begins(words, start, past=past) for start in range(max(0, first - _LONGEST + 1), first))


def _begins(words: Sequence[Word], start: int, *, past: int) -> bool:
    """Say whether a phrase begins here and goes on to `past` at least."""
    table = identifier_table()
    if f"{words[start].key} {words[start + 1].key}" not in table.phrase_starts:
        return False
    ends = range(past + 1, min(start + _LONGEST, len(words)) + 1)
    found = (" ".join([word.key for word in words[start:end]]) for end in ends)
    return any(phrase in table.phrases or phrase.removesuffix("s") in table.phrases for phrase in found)


def is_institution(words: Sequence[Word], at: int) -> bool:
    """Say whether the word here makes an institution of the name before it."""
    institutions = identifier_table().institutions
    if at >= len(words) or words[at].key != "state":
        return at < len(words) and words[at].key in institutions
    return at + 1 == len(words) or words[at + 1].key in institutions


def _is_compound(word: Word) -> bool:
    return not word.token & (_NAMES | WORD) and is_compound(word.key)


def is_compound(key: str) -> bool:
    """Say whether a word that no table knows is two English words written as one, as the names of sites are.

    >>> is_compound("sparkbooks"), is_compound("thornqvist")
    (True, False)
    """
    tokens = identifier_table().tokens
    return not key.endswith(_SURNAME_ENDS) and any(
        tokens.get(key[:at], 0) & WORD and tokens.get(key[at:], 0) & (WORD | SURNAME) == WORD
        for at in range(_SHORTEST_PART, len(key) - _SHORTEST_PART + 1)
    )

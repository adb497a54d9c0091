"""Rules for names of people: a first name with a surname, a surname with a first name, a title with a surname.

A first name or a surname alone stays. Who is famous is a person all the same; brands and characters that look like
people stay (listed in the table of identifiers).
"""

import re
from collections.abc import Iterator, Sequence

from queryveil.text.identifiers import _kernels
from queryveil.text.identifiers.table import Found, IdentifierKind, Word, identifier_table

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
_NAMES = _kernels.FIRST | _kernels.FIRST_WORD | _kernels.SURNAME | _kernels.SURNAME_WORD


def is_thing(words: Sequence[Word], first: int, last: int, *, person: bool) -> bool:
    """Return whether two words that look like a person are something else; `person`: the query speaks of people."""
    table = identifier_table()
    is_sure = words[first].token & _kernels.FIRST and words[last].token & _kernels.SURNAME
    # Initials and particles between the two may be left out.
    pair = f"{words[first].key} {words[last].key}"
    if pair in table.phrases or _begins(words, first, past=last):
        # Privacy: people are called like characters and firms, too.
        return not (person and is_sure and words[last].token & _kernels.COMMON_SURNAME)
    if pair in table.cities or is_institution(words, last + 1):
        return True
    if first and (words[first - 1].key in table.before or _is_in_phrase(words, first, past=last)):
        return True
    after = words[last + 1].key if last + 1 < len(words) else ""
    if after in table.goods or is_sure:
        return after in table.goods
    is_unknown = not words[last].token & (_NAMES | _kernels.WORD)
    is_site = is_unknown and is_compound(words[last].key)
    return after in table.products or _is_in_phrase(words, first, past=first) or is_site


def _is_in_phrase(words: Sequence[Word], first: int, *, past: int) -> bool:
    """Return whether a phrase begins before a word and goes on to `past` at least."""
    return any(_begins(words, start, past=past) for start in range(max(0, first - _LONGEST + 1), first))


def _begins(words: Sequence[Word], start: int, *, past: int) -> bool:
    """Return whether a phrase begins here and goes on to `past` at least."""
    table = identifier_table()
    if f"{words[start].key} {words[start + 1].key}" not in table.phrase_starts:
        return False
    ends = range(past + 1, min(start + _LONGEST, len(words)) + 1)
    found = (" ".join([word.key for word in words[start:end]]) for end in ends)
    return any(phrase in table.phrases or phrase.removesuffix("s") in table.phrases for phrase in found)


def is_institution(words: Sequence[Word], at: int) -> bool:
    """Return whether the word here makes an institution of the name before it."""
    institutions = identifier_table().institutions
    if at >= len(words) or words[at].key != "state":
        return at < len(words) and words[at].key in institutions
    return at + 1 == len(words) or words[at + 1].key in institutions


def is_compound(key: str) -> bool:
    """Return whether a word that no table knows is two English words written as one, as the names of sites are.

    >>> is_compound("sparkbooks"), is_compound("thornqvist")
    (True, False)
    """
    tokens = identifier_table().tokens
    return not key.endswith(_SURNAME_ENDS) and any(
        tokens.get(key[:at], 0) & _kernels.WORD
        and tokens.get(key[at:], 0) & (_kernels.WORD | _kernels.SURNAME) == _kernels.WORD
        for at in range(_SHORTEST_PART, len(key) - _SHORTEST_PART + 1)
    )


_GAP = re.compile(r"[ .\"'+-]{1,4}")
_GAP_OR_NONE = re.compile(r"\.? ?")
_QUOTES = " \"'.+"
_AND = re.compile(r" and ")
_COMMA = re.compile(r" ?, {0,2}")
_SUFFIX = re.compile(r",? (?:jr|sr|iii|iv)\b\.?")
_INITIAL = re.compile(r" [a-z]\b\.?")
# Particles that stand in hardly anything but names.
_OF = frozenset(("van", "von", "der", "den", "bin"))
_ABBREVIATIONS = frozenset(("us", "uk", "la", "dc", "ny", "sf", "am", "pm", "tv", "er"))
_TRADES = frozenset(("judge", "nurse", "attorney", "doctor", "pastor", "coach"))
_MOST_INITIALS, _SHORT = 4, 3
_ANY_FIRST = _kernels.FIRST | _kernels.FIRST_WORD
_ANY_SURNAME = _kernels.SURNAME | _kernels.SURNAME_WORD
_MAY_BEGIN = _ANY_FIRST | _ANY_SURNAME | _kernels.TITLE | _kernels.PARTICLE


def names(text: str, words: Sequence[Word]) -> Iterator[Found]:
    """Find names of people."""
    person = any(word.token & _kernels.PERSON for word in words)
    at = 0
    while at < len(words) - 1:
        token = words[at].token
        found = None
        if not token or token & _MAY_BEGIN:
            found = (
                _named(text, words, at, person=person)
                or _titled(text, words, at, person=person)
                or _reversed(text, words, at, person=person)
                or _initialled(text, words, at)
            )
        if found is None:
            at += 1
            continue
        first, last, rule = found
        first, last = _grow(text, words, first, last)
        at = last + 1
        if is_institution(words, at):
            continue
        end = words[last].end
        if initial := "," in rule and _INITIAL.match(text, end):
            end = initial.end()
        start = words[first].start
        gap = text[words[first - 1].end : start] if first else ""
        # An initial with a dot, or a name that a hyphen joins to this one.
        if gap == "-" or (gap == ". " and len(words[first - 1].key) == 1):
            start = words[first - 1].start
        if suffix := _SUFFIX.match(text, end):
            end = suffix.end()
        yield Found(start=start, end=end, kind=IdentifierKind.NAME, rule=rule)


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
    # Two initials with dots are a person's, whoever bears the surname.
    wanted = _kernels.SURNAME if last - at >= 2 and text[words[at].end] == "." else _kernels.COMMON_SURNAME
    is_written = is_written and "".join([word.key for word in words[at:last]]) not in _ABBREVIATIONS
    if not is_written or not words[last].token & wanted or is_thing(words, at, last, person=False):
        return None
    return at, last, "initials and surname"


def next_word(text: str, words: Sequence[Word], at: int) -> int | None:
    """Return the next word beside this one that is neither an initial nor a particle."""
    for j in range(at + 1, min(at + 4, len(words))):
        if not _GAP.fullmatch(text, words[j - 1].end, words[j].start):
            return None
        # A hyphen joins two first names or two surnames, not one of each.
        if j == at + 1 and text[words[at].end : words[j].start] == "-":
            return None
        if not words[j].token & _kernels.PARTICLE or (j + 1 == len(words) and len(words[j].key) > 1):
            return j
    return None


def _named(text: str, words: Sequence[Word], at: int, *, person: bool) -> tuple[int, int, str] | None:
    last = next_word(text, words, at)
    # A first name before makes a middle name of a word.
    person = person or bool(at and words[at - 1].token & _kernels.FIRST and next_word(text, words, at - 1) == at)
    # The parties of a case at law are none: roe v wade.
    if last is None or (last == at + 2 and text[words[at + 1].start - 1 : words[last].start] == " v "):
        return None
    person = person or (last > at + 1 and not _OF.isdisjoint([word.key for word in words[at + 1 : last]]))
    one, two = words[at].token, words[last].token
    is_pair = last == at + 1 and len(words[at].key) > _SHORT and text[words[at].end] != "."
    is_alone = is_pair and _kernels.is_name_alone.py_func(one, two) and _is_all(text, words, at, last)
    if not is_alone and not _kernels.is_name.py_func(one, two, person):
        return None
    # A shop is called like its owner: ottinger's.
    is_shop = _is_owner(text, words[last]) and last + 1 == len(words)
    if is_shop or _is_owner(text, words[at]) or is_thing(words, at, last, person=person):
        return None
    return at, last, "first name and surname"


def _is_all(text: str, words: Sequence[Word], first: int, last: int) -> bool:
    """Return whether there is nothing in a query but these words and quotes."""
    return not text[: words[first].start].strip(_QUOTES) and not text[words[last].end :].strip(_QUOTES)


def _is_owner(text: str, word: Word) -> bool:
    """Return whether a word ends in 's: what follows belongs to it and is no surname."""
    return text.startswith("'s", word.end - 2)


def _titled(text: str, words: Sequence[Word], at: int, *, person: bool) -> tuple[int, int, str] | None:
    last = next_word(text, words, at)
    if last is None or not _kernels.is_titled.py_func(words[at].token, words[last].token):
        return None
    # Without a dot it is a firm that makes software.
    if words[at].key == "ms" and text[words[at].end] != ".":
        return None
    # What is a trade first is a title only before a plain surname: judge ottinger, but nurse practitioner.
    is_trade = words[at].key in _TRADES and words[last].token & _kernels.SURNAME_WORD
    if is_trade or is_thing(words, at, last, person=person):
        return None
    # The surname may well be the first name of a whole one.
    whole = _named(text, words, last, person=True)
    return at, last if whole is None else whole[1], "title and surname"


def _reversed(text: str, words: Sequence[Word], at: int, *, person: bool) -> tuple[int, int, str] | None:
    last, first = words[at], words[at + 1]
    if not _kernels.is_reversed.py_func(last.token, first.token):
        return None
    end = at + 1
    if at + 2 < len(words) and words[at + 2].token & _ANY_FIRST and text[first.end : words[at + 2].start].isspace():
        end = at + 2
    if _COMMA.fullmatch(text, last.end, first.start):
        return at, end, "surname, first name"
    alone = _is_all(text, words, at, end)
    is_plain = last.token & _kernels.SURNAME and not last.token & _ANY_FIRST
    is_first = first.token & _kernels.FIRST and not first.token & _kernels.SURNAME
    is_said = (alone or person) and is_plain and is_first and len(last.key) > 2
    if is_said and text[last.end : first.start].isspace() and not is_thing(words, at, at + 1, person=person):
        return at, end, "surname and first name"
    return None


def _grow(text: str, words: Sequence[Word], first: int, last: int) -> tuple[int, int]:
    """Take in more first names before, a title before those, and a second surname behind."""
    while (
        first
        and words[first - 1].token & (_ANY_FIRST | _kernels.TITLE)
        and _GAP.fullmatch(text, words[first - 1].end, words[first].start)
    ):
        first -= 1
    # Couples share a surname.
    if (
        first > 1
        and words[first - 2].token & _kernels.FIRST
        and _AND.fullmatch(text, words[first - 2].end, words[first].start)
    ):
        first -= 2
    after = words[last + 1] if last + 1 < len(words) else None
    if after is not None:
        is_joined = text[words[last].end : after.start] == "-"
        is_middle = (words[last].token & _ANY_FIRST or not words[last].token) and after.token & _kernels.SURNAME
        if is_joined or (is_middle and _GAP.fullmatch(text, words[last].end, after.start)):
            last += 1
    return first, last

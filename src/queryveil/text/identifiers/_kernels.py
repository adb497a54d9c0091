"""Which queries may hold an identifier, read byte by byte.

A query that no flag is set for holds none that the rules would find; one with a flag may still be innocent.
"""

from typing import Final

import numpy as np

from queryveil.data import Bytes, Int32s, Int64s, UInt64s
from queryveil.kernels import njit
from queryveil.text._hash_tables import PRIME, START, find_hash

SURNAME_ENDS: Final = (
    "ulos", "ulou", "akis", "vich", "wicz", "enko", "sson", "ssen", "dsen", "ttir", "moto", "escu", "oglu", "vili",
    "wski", "nski", "lski", "czyk", "vska", "nska", "wska",
)  # fmt: skip
"""How words end that no table knows and that are surnames all the same."""
# The classes of words; a word may have several.
WORD: Final = 1  # stands in the English dictionary, names of people and brands among them
FIRST: Final = 2  # a first name, and hardly anything else
FIRST_WORD: Final = 4  # a first name that is a word as well: grace, mark, jordan
SURNAME: Final = 8
SURNAME_WORD: Final = 16  # a surname that is a word as well: king, black, stone
COMMON_SURNAME: Final = 32  # a surname that many bear
TITLE: Final = 64  # stands before a surname: dr, mrs
PERSON: Final = 128  # is asked about people: obituary, attorney, myspace
CITY_END: Final = 256  # the last word of the name of an American city
STATE_END: Final = 512  # an American state: the last word of its name, or its two letters
SMALL_TOWN: Final = 1024  # a name that only small American towns have
CUE: Final = 2048  # tells what a number beside it is: account, mrn, march, street
PLACE_CUE: Final = 4096  # makes a place of the word before it: county
PARTICLE: Final = 8192  # stands between a first name and a surname: van, de, and single letters
CONTACT_CUE: Final = 16384  # spells an address out: dot
SITE: Final = 32768  # no word but a well-known site, with its dot

_LOOSE_SURNAME = SURNAME | SURNAME_WORD
_PLACE = CITY_END | SMALL_TOWN


@njit(cache=True)
def is_name(first: int, last: int, person: bool) -> bool:
    """Return whether a first name and a surname make a person: at least one of them must be nothing else.

    With `person` the query speaks of people, and two names that are words will do; so they will where the first is no
    English word. A word that no table knows is taken for a surname after a first name that is nothing else, and for a
    first name before a surname that many bear.
    """
    # Towns are named after people: where nothing but a town is known of a word, it is not known as a word.
    unknown_last = (last & ~_PLACE) == 0
    if first & FIRST:
        # Abroad, surnames are first names as well.
        is_both = (last & FIRST_WORD) != 0 and (last & WORD) == 0
        return (last & _LOOSE_SURNAME) != 0 or unknown_last or is_both
    if first & FIRST_WORD:
        is_both = (last & FIRST) != 0 and (last & SURNAME_WORD) != 0
        is_word = (last & SURNAME_WORD) != 0
        is_foreign = (first & WORD) == 0
        return (last & SURNAME) != 0 or is_both or (is_word and is_foreign) or (person and (is_word or unknown_last))
    return first == 0 and (last & COMMON_SURNAME) != 0


@njit(cache=True)
def is_name_alone(first: int, last: int) -> bool:
    """Return whether two words that are all of a query make a person of whom only one name is known."""
    is_foreign = (first & FIRST_WORD) != 0 and (first & WORD) == 0
    is_surname = (first & SURNAME) != 0 and (first & WORD) == 0
    return ((first == 0 or is_surname) and (last & SURNAME) != 0) or (is_foreign and last == 0)


@njit(cache=True)
def is_titled(title: int, last: int) -> bool:
    """Return whether a title and what follows it make a person."""
    return (title & TITLE) != 0 and ((last & _LOOSE_SURNAME) != 0 or (last & ~_PLACE) == 0)


@njit(cache=True)
def is_reversed(last: int, first: int) -> bool:
    """Return whether these are a surname and a first name, where the query puts the surname first."""
    if (first & FIRST) != 0:
        return (last & _LOOSE_SURNAME) != 0 or last == 0
    return (first & FIRST_WORD) != 0 and (last & SURNAME) != 0


CONTACTS, NUMBERS, PLACES, NAMES = 1, 2, 4, 8
EVERYTHING = CONTACTS | NUMBERS | PLACES | NAMES
_SHORT = 4
_BLANK, _QUOTE, _APOSTROPHE, _PLUS, _COMMA, _HYPHEN, _DOT, _SLASH, _COLON, _AT, _UNDERSCORE, _S, _W = b" \"'+,-./:@_sw"
_ROUND, _SQUARE, _A, _T = b"([at"
# What a byte is: nothing, a digit, a letter of ASCII, one of those letters of UTF-8 that no name here has, the first
# byte of a Latin letter with a mark, or what only the rules themselves can read.
_DIGIT, _LATIN, _FOREIGN, _MARKED, _UNREAD = 1, 2, 3, 4, 5
_KIND = np.zeros(256, dtype=np.uint8)
_KIND[48:58] = _DIGIT
_KIND[65:91] = _KIND[97:123] = _LATIN
_KIND[128:256] = _UNREAD
_KIND[[0xD0, 0xD1, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEB, 0xEC]] = _FOREIGN
_KIND[0xC3] = _MARKED
# The letters U+00C0 to U+00FF without their marks; a blank where there is no such letter.
_PLAIN = np.frombuffer(b"aaaaaa ceeeeiiii nooooo  uuuuy  aaaaaa ceeeeiiii nooooo  uuuuy y", dtype=np.uint8)
# How words for streets end: gasse, platz, straat, laan, gatan; weg, str.
_STREETS = tuple(int.from_bytes(end, "big") for end in (b"asse", b"latz", b"raat", b"laan", b"atan"))
_SURNAME_ENDS = tuple(int.from_bytes(end.encode("ascii"), "big") for end in SURNAME_ENDS)
# Which last two letters they have: most words need no closer look.
_MAY_END = np.zeros(1024, dtype=np.bool_)
_MAY_END[[(end >> 8 & 31) << 5 | end & 31 for end in _SURNAME_ENDS]] = True
_SHORT_STREETS = tuple(int.from_bytes(end, "big") for end in (b"weg", b"str"))


@njit(cache=True)
def _lower(byte: int) -> int:
    return byte + 32 if 65 <= byte <= 90 else byte


@njit(cache=True)
def _letter(data: Bytes, at: int, stop: int) -> tuple[np.int64, int]:
    """Return the letter here and its bytes: 0 is none, 1 one that no name has, -1 what only the rules can read."""
    byte = data[at]
    kind = _KIND[byte]
    if kind == _LATIN:
        return np.int64(_lower(byte)), 1
    if kind < _LATIN:
        return np.int64(0), 1
    if kind == _FOREIGN:
        return np.int64(1), 2 if byte < 0xE0 else 3
    if kind == _MARKED and at + 1 < stop and 0x80 <= data[at + 1] <= 0xBF:
        plain = np.int64(_PLAIN[data[at + 1] - 0x80])
        return (plain, 2) if plain != _BLANK else (np.int64(-1), 1)
    return np.int64(-1), 1


@njit(cache=True)
def _read_word(data: Bytes, at: int, stop: int, keys: UInt64s, classes: Int32s) -> tuple[int, int, int]:
    """Return where the word here ends, its classes (-1: only the rules can read it) and its last four letters."""
    value, length, tail, foreign = START, 0, np.int64(0), False
    stem, stem_length = START, -1
    while at < stop:
        letter, n_bytes = _letter(data, at, stop)
        if letter < 0:
            return at, -1, 0
        if letter == 0:
            if data[at] != _APOSTROPHE or at + 1 >= stop or _KIND[data[at + 1]] < _LATIN:
                break
            stem, stem_length = value, length
        else:
            foreign = foreign or letter == 1
            value = (value ^ np.uint64(letter)) * PRIME
            length += 1
            tail = ((tail << 8) | letter) & 0xFFFFFFFF
        at += n_bytes
    if length - stem_length == 1 and stem_length > 0 and tail & 0xFF == _S:
        value, length = stem, stem_length
    token = max(find_hash(keys, classes, value), 0)
    if length == 1:
        token = PARTICLE
    elif foreign or (token == 0 and length < _SHORT):
        token = WORD
    elif token == 0 and _MAY_END[(tail >> 8 & 31) << 5 | tail & 31] and tail in _SURNAME_ENDS:
        token = SURNAME
    return at, token, int(tail)


@njit(cache=True)
def _pair_flags(one: int, two: int, three: int, token: int) -> tuple[int, bool]:
    """Judge a word by the three before it, with particles between: its flags, and whether it may end a loose name."""
    flags, loose, particles = 0, False, False
    for earlier in (one, two, three):
        if earlier < 0:
            break
        is_initialled = earlier == PARTICLE and (token & _LOOSE_SURNAME) != 0
        is_loose = is_name(earlier, token, True)
        if (is_loose and (particles or is_name(earlier, token, False))) or is_titled(earlier, token) or is_initialled:
            flags |= NAMES
        loose = loose or is_loose
        if not earlier & PARTICLE:
            break
        particles = True
    if token & STATE_END and (
        (one >= 0 and one & CITY_END) or (two >= 0 and two & CITY_END) or (three >= 0 and three & CITY_END)
    ):
        flags |= PLACES
    return flags, loose


@njit(cache=True)
def _screen_words(data: Bytes, start: int, stop: int, keys: UInt64s, classes: Int32s) -> tuple[int, int]:
    """Return the flags that words set, and all classes of words that were seen."""
    flags, seen, n_words = 0, 0, 0
    one, two, three = -1, -1, -1
    loose, turned, comma = False, False, False
    at = start
    while at < stop:
        kind = _KIND[data[at]]
        if kind < _LATIN:
            comma = comma or data[at] == _COMMA
            at += 1
            continue
        at, token, tail = _read_word(data, at, stop, keys, classes)
        if token < 0:
            return EVERYTHING, seen
        n_words += 1
        seen |= token
        if tail in _STREETS or (tail & 0xFFFFFF) in _SHORT_STREETS:
            seen |= CUE
        more, is_loose = _pair_flags(one, two, three, token)
        flags |= more
        loose = loose or is_loose
        if one >= 0 and is_reversed(one, token):
            turned = True
            if comma:
                flags |= NAMES
        one, two, three, comma = token, one, two, False
    if n_words == 2 and is_name_alone(two, one):
        flags |= NAMES
    if (loose and seen & (PERSON | FIRST)) or (turned and (n_words <= 3 or seen & PERSON)):
        flags |= NAMES
    if seen & SMALL_TOWN or (seen & PLACE_CUE and n_words > 1):
        flags |= PLACES
    return flags, seen


@njit(cache=True)
def _is_in_host(byte: int) -> bool:
    return _KIND[byte] == _DIGIT or _KIND[byte] == _LATIN or byte in (_DOT, _HYPHEN, _UNDERSCORE)


@njit(cache=True)
def _known_site_end(data: Bytes, dot: int, start: int, stop: int, keys: UInt64s, classes: Int32s) -> int:
    """Return where the well-known bare domain around a dot ends, -1 where it is something else."""
    first, end = dot, dot + 1
    while first > start and _is_in_host(data[first - 1]):
        first -= 1
    while end < stop and _is_in_host(data[end]):
        end += 1
    # Blanks, quotes and plus signs may stand around it; all else may make more of it.
    for at in (first - 1, end):
        if start <= at < stop and data[at] not in (_BLANK, _QUOTE, _PLUS):
            return -1
    n_w = 0
    while n_w < 3 and _lower(data[first + n_w]) == _W:
        n_w += 1
    if n_w == 3 and data[first + 3] == _DOT:
        first += 4
    value = START
    for at in range(first, end):
        value = (value ^ np.uint64(_lower(data[at]))) * PRIME
    return end if find_hash(keys, classes, value) == SITE else -1


@njit(cache=True)
def _screen_signs(data: Bytes, start: int, stop: int, seen: int, keys: UInt64s, classes: Int32s) -> int:
    """Return the flags that digits and signs set."""
    flags, known_end = 0, start
    n_digits, n_joined, n_turns, n_dots, n_colons, n_hyphens, slash = 0, 0, 0, 0, 0, 0, False
    before = 0
    for at in range(start, stop):
        byte = data[at]
        kind = _KIND[byte]
        follows = _KIND[data[at + 1]] if at + 1 < stop else 0
        if kind == _DIGIT:
            n_digits += 1
            n_turns += before >= _LATIN
        elif kind >= _LATIN:
            n_turns += before == _DIGIT
        elif byte == _AT or (byte == _COLON and at + 1 < stop and data[at + 1] == _SLASH):
            flags |= CONTACTS
        elif byte == _COLON:
            n_colons += 1
        elif byte in (_ROUND, _SQUARE):
            # An address spelt out: someone (at) example.com.
            if at + 2 < stop and _lower(data[at + 1]) == _A and _lower(data[at + 2]) == _T:
                flags |= CONTACTS
        elif byte == _SLASH and at + 1 < stop and data[at + 1] == _SLASH:
            flags |= CONTACTS
        elif follows and byte in (_DOT, _HYPHEN, _SLASH):
            n_joined += before == _DIGIT and follows == _DIGIT
            n_dots += byte == _DOT
            n_hyphens += byte == _HYPHEN
            slash = slash or (byte == _SLASH and before >= _LATIN and follows >= _LATIN)
            # Each end is looked for once, so that a long text takes no longer than its length.
            if byte == _DOT and follows >= _LATIN and at >= known_end and at > start and not flags & CONTACTS:
                end = _known_site_end(data, at, start, stop, keys, classes)
                if end < 0:
                    flags |= CONTACTS
                known_end = max(known_end, end)
        before = kind
    if n_colons >= 2 or n_dots >= 2 or n_hyphens >= 5 or seen & CONTACT_CUE:
        flags |= CONTACTS
    if n_digits >= 5 or n_joined >= 2 or n_turns >= 2 or (n_digits and (seen & CUE or slash)):
        flags |= NUMBERS
    return flags


@njit(cache=True)
def screen_rows(data: Bytes, offsets: Int64s, keys: UInt64s, classes: Int32s) -> Bytes:
    """Return the flags of every query; query i is the bytes from `offsets[i]` to `offsets[i + 1]`."""
    flags = np.zeros(len(offsets) - 1, dtype=np.uint8)
    for row in range(len(flags)):
        by_words, seen = _screen_words(data, offsets[row], offsets[row + 1], keys, classes)
        flags[row] = by_words | _screen_signs(data, offsets[row], offsets[row + 1], seen, keys, classes)
    return flags

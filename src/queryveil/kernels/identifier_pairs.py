"""Which two words beside each other make a name."""

from __future__ import annotations

from numba import njit

from queryveil.kernels.identifier_classes import (
    CITY_END,
    COMMON_SURNAME,
    FIRST,
    FIRST_WORD,
    SMALL_TOWN,
    SURNAME,
    SURNAME_WORD,
    TITLE,
    WORD,
)

_LOOSE_SURNAME = SURNAME | SURNAME_WORD
_PLACE = CITY_END | SMALL_TOWN


@njit(cache=True)
def is_name(first: int, last: int, person: bool) -> bool:
    """Say whether a first name and a surname make a person: at least one of them must be nothing else.

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
    """Say whether two words that are all of a query make a person of whom only one name is known."""
    is_foreign = (first & FIRST_WORD) != 0 and (first & WORD) == 0
    is_surname = (first & SURNAME) != 0 and (first & WORD) == 0
    return ((first == 0 or is_surname) and (last & SURNAME) != 0) or (is_foreign and last == 0)


@njit(cache=True)
def is_titled(title: int, last: int) -> bool:
    """Say whether a title and what follows it make a person."""
    return (title & TITLE) != 0 and ((last & _LOOSE_SURNAME) != 0 or (last & ~_PLACE) == 0)


@njit(cache=True)
def is_reversed(last: int, first: int) -> bool:
    """Say whether these are a surname and a first name, where the query puts the surname first."""
    if (first & FIRST) != 0:
        return (last & _LOOSE_SURNAME) != 0 or last == 0
    return (first & FIRST_WORD) != 0 and (last & SURNAME) != 0

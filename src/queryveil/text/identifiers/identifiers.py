"""Identifiers in queries: found one by one, or removed from a column.

The kinds are those of HIPAA's Safe Harbor rule. What is decided here:

- An identifier goes as a whole, with the year of a date and the state of a city.
- A first name, a surname or a city alone stays; a name that only small towns have goes. Counties go.
- Years, months, months with a year and days that everyone knows (July 4) stay.
- The bare domain of a well-known site stays, as do those of schools, governments and plain English words; all else
  with the shape of a URL goes.
- Amounts, measures, versions, models, books and chemicals stay. Six digits that nothing explains go.
- Famous people are people; brands, characters, shops, schools and bands that are called like people are not.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

import numpy as np
import polars as pl

from queryveil.data import Bytes, Int32s, UInt64s
from queryveil.text._hash_tables import find_words, place_hashes
from queryveil.text.identifiers import _contacts, _kernels, _names, _places
from queryveil.text.identifiers._numbers import books, checked_numbers, dates, long_numbers, phones
from queryveil.text.identifiers.table import MASK, Found, Word, fold_text, identifier_table, without_runs, words_of
from queryveil.text.tokens import text_bytes


def screen(queries: pl.Series) -> Bytes:
    """Return for every query the groups of rules that may find something in it.

    >>> screen(pl.Series(["red shoes", "myspace.com", "call 212-555-0143"])).tolist() == [0, 0, _kernels.NUMBERS]
    True
    """
    return _kernels.screen_rows(*text_bytes(queries), *_classes())


@cache
def _classes() -> tuple[UInt64s, Int32s]:
    """Return the classes of words and sites as a table of hashes."""
    table = identifier_table()
    lines = np.frombuffer("\n".join([*table.tokens, *table.sites]).encode("ascii"), np.uint8)
    words = find_words(lines, np.array([0, len(lines)]), np.arange(256) != ord("\n"))
    classes = [*table.tokens.values(), *[_kernels.SITE] * len(table.sites)]
    return place_hashes(words.hashes, np.array(classes, np.int32))


_CONTACT_RULES = (_contacts.emails, _contacts.urls, _contacts.machines)
_NUMBER_RULES = (_contacts.numbers_after_cues, checked_numbers, dates, _places.streets, phones)
_RULES_FOR_FEW_DIGITS = (_contacts.numbers_after_cues, dates, _places.streets)
_DIGIT = re.compile(r"\d")
_MANY_DIGITS = re.compile(r"(?:\d\D*){5}")
_BOOK = "\1"
_LEFT_OVER = re.compile(r"^[\s,;:.#()\"'+-]+|[\s,;:#(\"'+-]+$")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Cleaned:
    """Queries without their identifiers.

    `queries` is as long as the input; where nothing was found a query stays as it was, and one of nothing but
    identifiers is empty. `removed` lists the kinds found in each query, null where there are none.
    `counts` has how many of each kind were removed, and `by_rule` how many by each rule.
    """

    queries: pl.Series
    counts: dict[str, int]
    by_rule: dict[str, int]
    n_emptied: int
    removed: pl.Series

    def __repr__(self) -> str:
        # Privacy: the texts stay out of it.
        return f"Cleaned(n_queries={len(self.queries)}, n_emptied={self.n_emptied})"


def find_identifiers(query: str) -> list[Found]:
    """Find the identifiers in a query, in their order.

    >>> [(each.kind.value, each.start, each.end) for each in find_identifiers("call 212-555-0143 now")]
    [('phone', 5, 17)]
    """
    return _find(query, _kernels.EVERYTHING)


def remove_identifiers(queries: pl.Series) -> Cleaned:
    """Remove the identifiers from a column of queries.

    >>> cleaned = remove_identifiers(pl.Series(["plumber duluth mn", "219-09-9999", "red shoes"]))
    >>> cleaned.queries.to_list(), cleaned.counts, cleaned.n_emptied
    (['plumber', '', 'red shoes'], {'place': 1, 'ssn': 1}, 1)
    """
    queries = queries.cast(pl.String)
    flags = screen(queries)
    rows = np.flatnonzero(flags)
    asked = queries.gather(rows).to_list()
    seen: dict[str, list[Found]] = {}
    changed_rows, changed, kinds = [], [], []
    rules = Counter[str]()
    for row, group, query in zip(rows.tolist(), flags[rows].tolist(), asked, strict=True):
        if query not in seen:
            seen[query] = _find(query, group)
        if found := seen[query]:
            changed_rows.append(row)
            changed.append(_without(query, found))
            kinds.append([each.kind.value for each in found])
            rules.update([each.rule for each in found])
    # Null where nothing was found; not by Arrow, which loads pandas for it where that is installed.
    removed = pl.Series("removed", [*kinds, None], dtype=pl.List(pl.String))
    place = np.full(len(queries), len(kinds), dtype=np.int64)
    place[changed_rows] = np.arange(len(kinds))
    return Cleaned(
        queries=queries.clone().scatter(changed_rows, changed) if changed_rows else queries,
        counts=dict(sorted(Counter(chain.from_iterable(kinds)).items())),
        by_rule=dict(sorted(rules.items())),
        n_emptied=changed.count(""),
        removed=removed.gather(place),
    )


def _find(query: str, groups: int) -> list[Found]:
    text = fold_text(query)
    if "  " not in text:
        return _find_folded(text, groups)
    text, was_at = without_runs(text)
    found = _find_folded(text, groups)
    return [replace(each, start=was_at[each.start], end=was_at[each.end - 1] + 1) for each in found]


def _find_folded(text: str, groups: int) -> list[Found]:
    """Run the groups of rules that the screen asks for; what one rule has found is masked for the next."""
    found: list[Found] = []
    words: Sequence[Word] = ()
    read = ""

    def apply_rule(rule: Callable[[str], Iterable[Found]]) -> None:
        nonlocal text
        for each in list(rule(text)):
            if MASK not in text[each.start : each.end]:
                found.append(each)
                text = text[: each.start] + MASK * (each.end - each.start) + text[each.end :]

    def apply_word_rule(rule: Callable[[str, Sequence[Word]], Iterable[Found]]) -> None:
        nonlocal words, read
        if read is not text:
            words, read = words_of(text), text
        apply_rule(lambda text: rule(text, words))

    if groups & _kernels.CONTACTS:
        for rule in _CONTACT_RULES:
            apply_rule(rule)
    many_digits = bool(groups & _kernels.NUMBERS and _MANY_DIGITS.search(text))
    if groups & _kernels.NUMBERS:
        for start, end in books(text) if many_digits else ():
            text = text[:start] + _BOOK * (end - start) + text[end:]
        for rule in _NUMBER_RULES if many_digits else _RULES_FOR_FEW_DIGITS:
            # A query rarely has a second number.
            if _DIGIT.search(text):
                apply_rule(rule)
    if groups & _kernels.PLACES:
        apply_word_rule(_places.cities)
    if many_digits and _MANY_DIGITS.search(text):
        apply_word_rule(_places.zip_codes)
        apply_rule(long_numbers)
    if groups & _kernels.PLACES:
        apply_word_rule(_places.counties)
    if groups & _kernels.NAMES:
        apply_word_rule(_names.names)
    if groups & _kernels.PLACES:
        apply_word_rule(_places.small_towns)
    return sorted(found, key=lambda each: each.start)


def _without(query: str, found: list[Found]) -> str:
    for each in reversed(found):
        query = f"{query[: each.start]} {query[each.end :]}"
    return _LEFT_OVER.sub("", " ".join(query.split()))

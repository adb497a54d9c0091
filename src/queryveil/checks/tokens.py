"""The checkers' own tokeniser: queries to terms as the promise defines them, and values to numbers.

A term is a run of letters, marks and digits of any script in the lower-cased query, in Unicode's composed form (NFC);
everything else separates. A code point that this Python does not know yet counts as part of a term.

Where a promise is about items, a term is a run of characters between blanks (space, tab, line ends), unchanged.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

_CHUNK = 500_000
_ITEM = re.compile(r"[^ \t\r\n]+")


class _Separators(dict[int, int]):
    """For `str.translate`: a character of a term stays, any other becomes a space; filled as characters are met."""

    def __missing__(self, point: int) -> int:
        category = unicodedata.category(chr(point))
        in_term = category[0] in "LM" or category in ("Nd", "Cn")
        self[point] = point if in_term else ord(" ")
        return self[point]


_SEPARATORS = _Separators()


def terms_of(query: str, *, items: bool = False) -> list[str]:
    """Return the terms of one query, in their order.

    >>> terms_of("Wi-Fi für 2 Gäste?")
    ['wi', 'fi', 'für', '2', 'gäste']
    >>> terms_of("Wi-Fi <body_of_water>", items=True)
    ['Wi-Fi', '<body_of_water>']
    """
    if items:
        return _ITEM.findall(query)
    return unicodedata.normalize("NFC", query.lower()).translate(_SEPARATORS).split()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Tokens:
    """Terms of many queries as numbers: query i holds `terms[starts[i]:starts[i + 1]]`, in order.

    A number is the place of the term in `words`, which is sorted: the same text gives the same numbers.
    """

    starts: Ints
    terms: Ints
    words: pl.Series


def tokenise(queries: pl.Series, *, items: bool = False) -> Tokens:
    """Return the terms of queries as numbers, which do not depend on the order of the queries."""
    lengths, codes, words = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)], [pl.Series([], dtype=pl.String)]
    n_words = 0
    for lists in term_lists(queries, items=items):
        numbered = number(lists.explode(empty_as_null=False))
        lengths.append(lists.list.len().to_numpy().astype(np.int64))
        codes.append(numbered.codes + n_words)
        words.append(numbered.distinct)
        n_words += len(numbered.distinct)
    # A word that several chunks hold has several numbers so far.
    merged = number(pl.concat(words))
    order = merged.distinct.arg_sort().to_numpy()
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    terms = place[merged.codes][np.concatenate(codes)]
    return Tokens(starts=np.cumsum(np.concatenate(lengths)), terms=terms, words=merged.distinct.gather(order))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Numbered:
    """Values as numbers: value i is `distinct[codes[i]]`."""

    codes: Ints
    distinct: pl.Series


def number(values: pl.Series) -> Numbered:
    """Return the values as numbers, assigned by first appearance."""
    frame = values.to_frame("value")
    distinct = frame.unique(maintain_order=True).with_row_index("code")
    codes = frame.join(distinct, on="value", how="left", nulls_equal=True, maintain_order="left")["code"]
    return Numbered(codes=codes.to_numpy().astype(np.int64), distinct=distinct["value"])


def starts_of(lengths: npt.NDArray[Any]) -> Ints:
    """Return where each list begins if all stand one after another, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def term_lists(queries: pl.Series, *, items: bool = False) -> Iterator[pl.Series]:
    """Yield the terms of queries as lists, a chunk of queries at a time."""
    for chunk in queries.to_frame("query").iter_slices(_CHUNK):
        query = chunk["query"]
        if items:
            yield query.str.extract_all(_ITEM.pattern)
            continue
        is_ascii = query.str.len_bytes() == query.str.len_chars()
        # In ASCII there is nothing to look up, so Polars may do it; any other query is cut by the definition itself.
        spaced = query.str.to_lowercase().str.replace_all("[^a-z0-9]", " ")
        if not is_ascii.all():
            others = [" ".join(terms_of(text)) for text in query.filter(~is_ascii)]
            spaced = spaced.scatter((~is_ascii).arg_true(), others)
        yield spaced.str.extract_all("[^ ]+")


def folded(query: str) -> str:
    """Return a query in normal form: NFC, lower case, single blanks.

    >>> folded("  Red   Kettle ")
    'red kettle'
    """
    return " ".join(unicodedata.normalize("NFC", unicodedata.normalize("NFC", query).lower()).split())


def folded_all(queries: pl.Series) -> pl.Series:
    """Return queries in the normal form of `folded`."""
    is_ascii = queries.str.len_bytes() == queries.str.len_chars()
    # In ASCII there is nothing to compose, so Polars may do it; the blanks are those that Python splits at.
    plain = queries.str.to_lowercase().str.replace_all(r"[\x09-\x0d\x1c-\x20]+", " ").str.strip_chars(" ")
    if is_ascii.all():
        return plain
    return plain.scatter((~is_ascii).arg_true(), [folded(text) for text in queries.filter(~is_ascii)])


def lowered_all(queries: pl.Series) -> pl.Series:
    """Return queries in normal form by the tables of Polars, which know other letters than those of Python."""
    blanks = queries.str.replace_all(r"[\s\x1c-\x1f]+", " ").str.strip_chars(" ")
    return blanks.str.normalize("NFC").str.to_lowercase().str.normalize("NFC")

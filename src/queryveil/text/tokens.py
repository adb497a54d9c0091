"""Queries as terms: lower case, split at everything that is not a letter or a digit."""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.data import Bools, Bytes, Floats, Int32s, Int64s
from queryveil.data.rows import Rows, pointers
from queryveil.errors import BadInput


def encode(texts: pl.Series) -> tuple[Int32s, pl.Series]:
    """Return a number for every text, and the distinct texts by number.

    >>> codes, distinct = encode(pl.Series(["b", "a", "b"]))
    >>> codes.tolist(), distinct.to_list()
    ([0, 1, 0], ['b', 'a'])
    """
    array: Any = texts.cast(pl.String).rechunk().to_arrow()
    encoded = array.dictionary_encode()
    # Not by Arrow's own way to NumPy, which loads pandas where that is installed.
    codes: Int32s = pl.Series(encoded.indices).to_numpy()
    return codes, pl.Series(encoded.dictionary).cast(pl.String)


def text_bytes(texts: pl.Series) -> tuple[Bytes, Int64s]:
    """Return the bytes of a column of texts (UTF-8), and where each begins; the last number is where they end."""
    array: Any = texts.rechunk().to_arrow().cast(pa.large_string())
    if not len(array):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, letters = array.buffers()
    ptr = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return (np.frombuffer(letters, np.uint8) if letters is not None else np.zeros(0, np.uint8)), ptr


_CODES = np.arange(256)
_IS_DIGIT, _IS_SMALL = (ord("0") <= _CODES) & (ord("9") >= _CODES), (ord("a") <= _CODES) & (ord("z") >= _CODES)
IS_WORD_BYTE: Bools = _IS_DIGIT | _IS_SMALL | (_CODES >= 128)
LOWER_BYTES: Bytes = np.where((ord("A") <= _CODES) & (ord("Z") >= _CODES), _CODES + 32, _CODES).astype(np.uint8)

# Differs: the paper keeps a list of Latin letters; we keep letters and digits of every script, and the marks that
# letters carry, since Hindi or Thai words fall apart without them.
_SEPARATORS = r"[^\p{L}\p{M}\p{Nd}]+"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Tokens:
    """The terms of a column of queries.

    - row_query: the number of the distinct query that each row has
    - queries: the texts of the distinct queries
    - query_terms: the numbers of the terms of each distinct query, in their order
    - vocabulary: the texts of the distinct terms
    """

    row_query: Int32s
    queries: pl.Series
    query_terms: Rows[np.int32]
    vocabulary: pl.Series

    @property
    def terms(self) -> Int32s:
        """The terms of all distinct queries, one after another."""
        return self.query_terms.values

    @property
    def n_terms(self) -> int:
        """The number of distinct terms."""
        return len(self.vocabulary)

    def row_terms(self) -> Rows[np.int32]:
        """Return the terms of every row."""
        return self.query_terms.take(self.row_query)

    def __repr__(self) -> str:
        # Privacy: the texts stay out of it.
        return f"Tokens(n_rows={len(self.row_query)}, n_queries={len(self.queries)}, n_terms={self.n_terms})"


def join_terms(queries: pl.Series, *, by_blanks: bool = False) -> pl.Series:
    """Return queries as their terms in lower case with one blank between them; `by_blanks` their items as they stand.

    >>> join_terms(pl.Series(["Ad-Placement,  LONDON!", "?"])).to_list()
    ['ad placement london', '']
    """
    if by_blanks:
        return queries.str.replace_all(r"\s+", " ").str.strip_chars(" ")
    # Lower case comes first: that of a few letters (İ) is not in normal form itself.
    lower = queries.str.to_lowercase().str.normalize("NFC")
    return lower.str.replace_all(_SEPARATORS, " ").str.strip_chars(" ")


def tokenize(queries: pl.Series, *, by_blanks: bool = False) -> Tokens:
    """Take the terms out of a column of queries; each distinct query is looked at once.

    With `by_blanks` the terms are items of transactions: as they stand, with blanks between them.

    >>> tokens = tokenize(pl.Series(["Red wine", "wine; red!", "RED  WINE"]))
    >>> tokens
    Tokens(n_rows=3, n_queries=2, n_terms=2)
    """
    row_raw, raw = encode(queries)
    raw_query, distinct = encode(join_terms(raw, by_blanks=by_blanks))
    words = distinct.str.split(" ")
    flat = words.explode(empty_as_null=True) if len(words) else pl.Series([], dtype=pl.String)
    codes, vocabulary = encode(flat)
    lengths = words.list.len().to_numpy().astype(np.int64)

    # The empty query splits into one empty word, which is no term.
    is_empty = (distinct == "").to_numpy()
    lengths[is_empty] = 0
    empty_code = np.flatnonzero((vocabulary == "").to_numpy())
    if len(empty_code):
        codes = codes[codes != empty_code[0]]
        codes = codes - (codes > empty_code[0])
        vocabulary = vocabulary.filter(vocabulary != "")
    return Tokens(
        row_query=raw_query[row_raw] if len(raw) else row_raw,
        queries=distinct,
        query_terms=Rows(pointers(lengths), codes.astype(np.int32, copy=False)),
        vocabulary=vocabulary,
    )


def split_items(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each item in the `query` of each row: an item of a transaction is what a query is in a log."""
    return rows.with_columns(pl.col("query").str.split(" ")).explode("query", empty_as_null=False)


def normal_form(texts: pl.Series) -> pl.Series:
    """Return texts in one form: NFC, lower case, single blanks.

    >>> normal_form(pl.Series([" Red   WINE", "cafe" + chr(0x301) + ""])).to_list()
    ['red wine', 'café']
    """
    lowered, is_ascii = texts.str.to_lowercase(), texts.str.len_bytes() == texts.str.len_chars()
    if not is_ascii.all():
        # Lower case may leave letters and marks that have a composed form, hence the form is taken again.
        others = texts.filter(~is_ascii).str.normalize("NFC").str.to_lowercase().str.normalize("NFC")
        lowered = lowered.scatter((~is_ascii).arg_true(), others)
    return lowered.str.replace_all(r"[\s\x1c-\x1f]+", " ").str.strip_chars(" ")


def encode_normal_form(texts: pl.Series) -> tuple[Int32s, pl.Series]:
    """Return a number for every text by its normal form, and the distinct normal forms by number."""
    as_written, distinct = encode(texts)
    number, forms = encode(normal_form(distinct))
    return (number[as_written] if len(distinct) else as_written), forms


_LENGTH = 16
# It keeps the hash of a term apart from the pseudonym of a user who is called the same, if both have one key.
_WHAT = b"queryveil token\0"


def hash_tokens(vocabulary: pl.Series, *, key: bytes) -> pl.Series:
    """Return HMAC-SHA256 of each term, cut to 16 hexadecimal digits.

    >>> hash_tokens(pl.Series(["jaguar", "price", "jaguar"]), key=b"sixteen bytes or more").to_list()
    ['9851f04ec9f27739', '6d1af0c0e008124d', '9851f04ec9f27739']
    """
    hashes = [hmac.digest(key, _WHAT + term.encode(), hashlib.sha256).hex()[:_LENGTH] for term in vocabulary]
    return pl.Series(vocabulary.name, hashes, dtype=pl.String)


def hash_queries(tokens: Tokens, *, key: bytes) -> pl.Series:
    """Write every row's query with the hashes of its terms, in their order.

    >>> hash_queries(tokenize(pl.Series(["Price: JAGUAR", "?"])), key=b"sixteen bytes or more").to_list()
    ['6d1af0c0e008124d 9851f04ec9f27739', '']
    """
    hashes = hash_tokens(tokens.vocabulary, key=key).gather(tokens.terms)
    return tokens.query_terms.to_series(hashes).alias("query").list.join(" ").gather(tokens.row_query)


_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was
will with
"""

ENGLISH: Final = frozenset(_WORDS.split())
"""The 33 English stop words of Lucene's StandardAnalyzer."""


_MOST_WORTH = 1e200
_ODD_VALUES = f"the table of term values has values that are negative or not numbers up to {_MOST_WORTH:g}"


def worth_of_terms(vocabulary: pl.Series, *, values: pl.DataFrame, columns: Sequence[str]) -> tuple[Floats, int]:
    """Return the product of the columns of a table of term values for each term, and how many terms have none.

    >>> table = pl.DataFrame({"term": ["Wine", "jaguar"], "bid": [0.5, 2.0], "clicks": [10, None]})
    >>> worth, n_without = worth_of_terms(pl.Series(["jaguar", "wine", "red"]), values=table, columns=["bid", "clicks"])
    >>> worth.tolist(), n_without
    ([0.0, 5.0, 0.0], 2)
    """
    try:
        numbers = values.select(pl.col(name).cast(pl.Float64) for name in columns)
    except pl.exceptions.PolarsError:
        raise BadInput(_ODD_VALUES) from None
    table = numbers.with_columns(join_terms(values["term"].cast(pl.String)).alias("term"))
    n_twice = table.height - table["term"].n_unique()
    if n_twice:
        raise BadInput(f"the table of term values has {n_twice} terms more than once (case does not count)")
    worth = pl.lit(1.0)
    for name in columns:
        worth = worth * pl.col(name)
    table = table.select("term", worth=worth)
    # What many people ask for is worth a multiple of it.
    if not table["worth"].drop_nulls().is_between(0, _MOST_WORTH).all():
        raise BadInput(_ODD_VALUES)
    found = vocabulary.to_frame("term").join(table, on="term", how="left", maintain_order="left")["worth"]
    return found.fill_null(0.0).to_numpy(), found.null_count()

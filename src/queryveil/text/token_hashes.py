"""Terms as keyed hashes: what many publishers do to a log, and what frequencies undo."""

from __future__ import annotations

import hashlib
import hmac

import polars as pl
import pyarrow as pa

from queryveil.text.tokens import Tokens

_LENGTH = 16
# It keeps the hash of a term apart from the pseudonym of a user who is called the same, if both have one key.
_WHAT = b"queryveil token\0"


def hash_tokens(vocabulary: pl.Series, *, key: bytes) -> pl.Series:
    """Give HMAC-SHA256 of each term, cut to 16 hexadecimal digits.

    >>> hash_tokens(pl.Series(["jaguar", "price", "jaguar"]), key=b"sixteen bytes or more").to_list()
    ['9851f04ec9f27739', '6d1af0c0e008124d', '9851f04ec9f27739']
    """
    hashes = [hmac.digest(key, _WHAT + term.encode(), hashlib.sha256).hex()[:_LENGTH] for term in vocabulary]
    return pl.Series(vocabulary.name, hashes, dtype=pl.String)


def hash_queries(tokens: Tokens, *, key: bytes) -> pl.Series:
    """Write every row's query with the hashes of its terms, in their order.

    >>> from queryveil.text.tokens import tokenize
    >>> hash_queries(tokenize(pl.Series(["Price: JAGUAR", "?"])), key=b"sixteen bytes or more").to_list()
    ['6d1af0c0e008124d 9851f04ec9f27739', '']
    """
    words = hash_tokens(tokens.vocabulary, key=key).gather(tokens.terms).to_arrow().cast(pa.large_string())
    lists = pa.LargeListArray.from_arrays(pa.array(tokens.query_ptr), words)
    return pl.Series("query", lists).list.join(" ").gather(tokens.row_query)

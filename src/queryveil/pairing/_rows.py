"""The rows of both sides of a pair: their texts as tokens, their owners, times and URLs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from queryveil.data import Groups, Int32s, Profiles, QueryLog, Tallies, Transactions
from queryveil.data.rows import Rows
from queryveil.release import Release
from queryveil.text.tokens import Tokens, encode

Original = QueryLog | Transactions | Profiles
"""What a release may have been made from."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class LogRows:
    """The rows of a log: the number of each row's user and query (-1: a query without a term), its time and URL.

    `time` and `url` are None where the log has no such column, or an empty one.
    """

    user: Int32s
    query: Int32s
    time: pl.Series | None
    url: pl.Series | None

    @classmethod
    def of(cls, log: QueryLog, *, tokens: Tokens, user: Int32s) -> LogRows:
        """Take the rows of a log whose queries are numbered by `tokens`."""
        is_empty = (tokens.queries == "").to_numpy()
        query = np.where(is_empty[tokens.row_query], -1, tokens.row_query).astype(np.int32)
        return cls(user=user, query=query, time=_filled(log, "time"), url=_filled(log, "url"))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.query)

    def __repr__(self) -> str:
        return f"LogRows(n_rows={self.n_rows})"


def _filled(log: QueryLog, name: str) -> pl.Series | None:
    """Return a column; None if it is not there, or empty, as dropped ones are in AOL's format."""
    column = log.frame[name] if name in log.columns else None
    return None if column is None or (len(column) and column.null_count() == len(column)) else column


def released_rows(release: Release) -> tuple[Int32s, pl.Series, pl.Series]:
    """Return the candidate of each released row, the candidates, and the rows' texts."""
    data = release.data
    if isinstance(data, QueryLog):
        candidate, candidates = encode(data.frame["user"])
        return candidate, candidates, data.frame["query"]
    places = np.arange(data.frame.height, dtype=np.int32)
    if isinstance(data, Tallies):
        return places, pl.Series(places).cast(pl.String), data.frame["query"]
    lists = data.frame["terms"] if isinstance(data, Groups) else data.frame["items"]
    # An item may have blanks inside; they would part it.
    texts = lists.list.eval(pl.element().str.replace_all(r"\s", "_")).list.join(" ")
    return places, pl.Series(places).cast(pl.String), texts


def share_numbers(one: Tokens, other: Tokens) -> tuple[Tokens, Tokens]:
    """Return both with the same queries and terms: those of `one` keep their numbers, new ones of `other` follow.

    >>> from queryveil.text.tokens import tokenize
    >>> one, other = share_numbers(tokenize(pl.Series(["b a"])), tokenize(pl.Series(["c a", "b a"])))
    >>> other.row_query.tolist(), other.vocabulary.to_list(), other.terms.tolist()
    ([1, 0], ['b', 'a', 'c'], [0, 1, 2, 1])
    """
    if one is other:
        return one, one
    query, queries = encode(pl.concat([one.queries.rename(""), other.queries.rename("")]))
    term, vocabulary = encode(pl.concat([one.vocabulary.rename(""), other.vocabulary.rename("")]))
    query, term = query[len(one.queries) :], term[len(one.vocabulary) :]
    new = other.query_terms.take(np.flatnonzero(query >= len(one.queries)))
    query_terms = Rows(
        np.concatenate([one.query_terms.ptr, one.query_terms.ptr[-1] + new.ptr[1:]]),
        np.concatenate([one.terms, term[new.values]]),
    )
    shared = replace(one, queries=queries, query_terms=query_terms, vocabulary=vocabulary)
    return shared, replace(shared, row_query=query[other.row_query] if len(query) else other.row_query)


def bags_of(original: Original, *, tokens: Tokens | None, by_query: bool) -> Transactions:
    """Return the terms of each user, or of each query, as often as they stand there, as a transaction.

    `tokens` are those of an original log; other originals have none.
    """
    if isinstance(original, Transactions):
        return original
    if isinstance(original, Profiles) or tokens is None:
        return Transactions(frame=original.frame.select(id="user", items="terms"))
    words = pl.DataFrame(
        {"id": original.frame["user"], "items": tokens.queries.gather(tokens.row_query).str.split(" ")}
    )
    words = words.with_columns(pl.col("items").list.filter(pl.element() != ""))
    if by_query:
        return Transactions(frame=words.select(pl.int_range(1, pl.len() + 1).cast(pl.String).alias("id"), "items"))
    joined = words.group_by("id", maintain_order=True).agg(pl.col("items").explode(empty_as_null=False))
    return Transactions(frame=joined)

"""A log and a released log side by side: the same numbers for queries and terms of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import Floats, Int32s, Int64s, Profiles, QueryLog, Transactions
from queryveil.guarantees import KmAnonymity
from queryveil.release import Release
from queryveil.text.tokens import Tokens, encode, tokenize


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TermCounts:
    """How often the original and the release have each term.

    `real` is the share of released rows that were not made up; those that were are taken out of all terms alike.
    """

    vocabulary: pl.Series
    before: Int64s
    after: Int64s
    real: float = 1.0

    @property
    def kept(self) -> Floats:
        """How much of each term is left; what the release has more of was made up too."""
        return np.asarray(np.minimum(self.before, self.after * self.real), np.float64)

    def __repr__(self) -> str:
        # Privacy: the terms stay out of it.
        return f"TermCounts(n_terms={len(self.vocabulary)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Side:
    """The rows of one log: the number of each row's user and query (-1: a query without a term), and its time."""

    user: Int32s
    query: Int32s
    time: pl.Series | None
    url: pl.Series | None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.query)

    def __repr__(self) -> str:
        return f"Side(n_rows={self.n_rows})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Sides:
    """Two logs over the same queries and terms."""

    before: Side
    after: Side
    queries: pl.Series
    terms: TermCounts

    @classmethod
    def of(cls, original: QueryLog, *, release: Release) -> Sides:
        """Number queries by their terms in lower case.

        If the release has items, they are taken as they stand: words, and nodes of a taxonomy in angle brackets.
        """
        released = release.log
        has_items = isinstance(release.promise, KmAnonymity) and release.promise.items
        by_blanks = original.terms_are_items
        texts = [original.frame["query"].rename(""), released.frame["query"].rename("")]
        if has_items and not by_blanks:
            tokens = tokenize(texts[0])
            texts[0] = tokens.queries.gather(tokens.row_query).rename("")
        both = tokenize(pl.concat(texts), by_blanks=by_blanks or has_items)
        n = original.n_rows
        is_empty = (both.queries == "").to_numpy()
        rows = np.where(is_empty[both.row_query], -1, both.row_query).astype(np.int32)
        return cls(
            before=_side(original, rows[:n]),
            after=_side(released, rows[n:]),
            queries=both.queries,
            terms=TermCounts(
                vocabulary=both.vocabulary,
                before=_frequency(both, both.row_query[:n]),
                after=_frequency(both, both.row_query[n:]),
                real=n_real_rows(release) / max(1, released.n_rows),
            ),
        )

    def __repr__(self) -> str:
        # Privacy: the texts stay out of it.
        return f"Sides(before={self.before!r}, after={self.after!r}, n_queries={len(self.queries)})"


def n_real_rows(release: Release) -> int:
    """Count the released rows that somebody asked; the manifest says how many were made up."""
    return max(0, release.log.n_rows - release.manifest.changed.get("rows_added", 0))


def _side(log: QueryLog, query: Int32s) -> Side:
    return Side(
        user=encode(log.frame["user"])[0],
        query=query,
        time=_filled(log, "time"),
        url=_filled(log, "url"),
    )


def _filled(log: QueryLog, name: str) -> pl.Series | None:
    """Return a column; none if it is not there, or empty, as dropped ones are in AOL's format."""
    column = log.frame[name] if name in log.columns else None
    return None if column is None or (len(column) and column.null_count() == len(column)) else column


def _frequency(tokens: Tokens, row_query: Int32s) -> Int64s:
    asked = np.bincount(row_query, minlength=len(tokens.queries))
    times = np.repeat(asked, tokens.query_terms.lengths)
    return np.bincount(tokens.terms, weights=times, minlength=tokens.n_terms).astype(np.int64)


Original = QueryLog | Transactions | Profiles


def bags_of(original: Original, *, by_query: bool = False) -> Transactions:
    """Return the terms of each user, or of each query, as often as they stand there, as a transaction."""
    if isinstance(original, Transactions):
        return original
    if isinstance(original, Profiles):
        return Transactions(frame=original.frame.select(id="user", items="terms"))
    tokens = tokenize(original.frame["query"], by_blanks=original.terms_are_items)
    words = pl.DataFrame(
        {"id": original.frame["user"], "items": tokens.queries.gather(tokens.row_query).str.split(" ")}
    )
    words = words.with_columns(pl.col("items").list.filter(pl.element() != ""))
    if by_query:
        return Transactions(frame=words.select(pl.int_range(1, pl.len() + 1).cast(pl.String).alias("id"), "items"))
    joined = words.group_by("id", maintain_order=True).agg(pl.col("items").explode(empty_as_null=False))
    return Transactions(frame=joined)


def items_in(bags: Transactions | pl.Series) -> pl.Series:
    """Return all items one after another."""
    lists = bags.frame["items"] if isinstance(bags, Transactions) else bags
    return lists.explode(empty_as_null=False).rename("")


def count_items(before: pl.Series, *, after: pl.Series) -> TermCounts:
    """Count the items of two sides; an item is taken as it stands."""
    codes, vocabulary = encode(pl.concat([before.rename(""), after.rename("")]))
    n = len(before)
    return TermCounts(
        vocabulary=vocabulary,
        before=np.bincount(codes[:n], minlength=len(vocabulary)).astype(np.int64),
        after=np.bincount(codes[n:], minlength=len(vocabulary)).astype(np.int64),
    )

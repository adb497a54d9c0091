"""Combinations of terms: those that one person asked, those that nobody did, and how often a release shows them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.groups import Groups
from queryveil.guarantees import DifferentialPrivacy, SwapAnonymity
from queryveil.kernels.arrays import Int64s
from queryveil.kernels.rows import group
from queryveil.log import Format, QueryLog
from queryveil.release import Release
from queryveil.tallies import Tallies
from queryveil.text.codes import encode
from queryveil.text.normal_form import normalise
from queryveil.text.tokens import Tokens, tokenize

_N_COMMON = 500
"""Decoys are made of so many of the most common terms."""
_MOST_TRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Combinations:
    """Queries of two or more terms; `rows` are those of the log that asked them, or that lend them their columns."""

    texts: pl.Series
    rows: Int64s

    def some(self, places: Int64s) -> Combinations:
        """Give those at some places."""
        return Combinations(texts=self.texts.gather(places), rows=self.rows[places])

    def joined(self, other: Combinations) -> Combinations:
        """Give these and others."""
        texts = pl.concat([self.texts.rename(""), other.texts.rename("")])
        return Combinations(texts=texts, rows=np.concatenate([self.rows, other.rows]))

    def __repr__(self) -> str:
        # Privacy: the texts stay out of it.
        return f"Combinations(n={len(self.rows)})"


def own_queries(log: QueryLog) -> Combinations:
    """Give the queries of two or more terms that one person asked and nobody else, one for each such person.

    >>> rows = {"user": ["u1", "u2", "u2"], "query": ["red wine", "Red  Wine", "old red wine"]}
    >>> own_queries(QueryLog.from_frame(rows)).rows.tolist()
    [2]
    """
    tokens = _tokens(log)
    frame = pl.DataFrame({"user": log.frame["user"], "query": tokens.row_query, "row": np.arange(log.n_rows)})
    n_terms = pl.Series(_n_distinct(tokens)[tokens.row_query])
    alone = frame.filter(n_terms >= 2).filter(pl.col("user").n_unique().over("query") == 1)
    rows = alone.unique("user", keep="first", maintain_order=True)["row"].to_numpy()
    return Combinations(texts=log.frame["query"].gather(rows).alias(""), rows=rows)


def decoys(log: QueryLog, *, like: Combinations, rng: np.random.Generator) -> Combinations:
    """Make up as many combinations of common terms that stand in no query of the log; fewer if they are hard to find.

    None is part of another, or the users who are invented for one would be seen for the other.
    Each has as many terms as one of those it is to be `like`, and borrows the columns of that one's row.
    """
    tokens = _tokens(log)
    index = _Index(tokens)
    common = np.argsort(-np.diff(index.ptr), kind="stable")[:_N_COMMON]
    texts, rows, taken = [], [], list[set[int]]()
    sizes = _n_distinct(tokens)[tokens.row_query[like.rows]]
    for row, size in zip(like.rows.tolist(), sizes.tolist(), strict=True):
        for _ in range(_MOST_TRIES):
            terms = rng.choice(common, size=min(size, len(common)), replace=False)
            own = set(terms.tolist())
            if not any(own <= other or own >= other for other in taken) and not len(index.queries_with(terms)):
                taken.append(own)
                texts.append(" ".join(tokens.vocabulary.gather(terms)))
                rows.append(row)
                break
    return Combinations(texts=pl.Series(texts, dtype=pl.String), rows=np.array(rows, np.int64))


def times_seen(combinations: Combinations, *, release: Release) -> Int64s:
    """Count what shows each combination in a release: users, or rows where queries change hands; bags; members.

    Where noise was added to counts of whole queries, it is the count of the very query, or its made-up rows.
    """
    data = release.data
    if isinstance(data, Tallies):
        return _as_whole_queries(combinations, data.frame)
    if isinstance(release.promise, DifferentialPrivacy):
        return _as_whole_queries(combinations, release.log.frame.group_by("query").agg(count=pl.len()))
    if isinstance(data, Groups):
        return _in_groups(combinations, data)
    if isinstance(data, QueryLog):
        texts, (owner, _) = data.frame["query"], encode(data.frame["user"])
        if isinstance(release.promise, SwapAnonymity):
            owner = np.arange(data.n_rows, dtype=np.int32)
        by_blanks = data.layout.format is Format.TRANSACTIONS
    else:
        texts, owner, by_blanks = (
            data.frame["items"].list.join(" "),
            np.arange(data.n_transactions, dtype=np.int32),
            True,
        )
    n = len(combinations.rows)
    wanted = combinations.texts if by_blanks is False else _as_items(combinations.texts)
    tokens = tokenize(pl.concat([wanted.rename(""), texts.rename("")]), by_blanks=by_blanks)
    row_ptr, rows = group(tokens.row_query[n:], len(tokens.queries))
    index = _Index(tokens)
    seen = np.zeros(n, np.int64)
    for i, query in enumerate(tokens.row_query[:n].tolist()):
        terms = np.unique(tokens.terms[tokens.query_ptr[query] : tokens.query_ptr[query + 1]]).astype(np.int64)
        with_it = index.queries_with(terms)
        holders = [owner[rows[row_ptr[q] : row_ptr[q + 1]]] for q in with_it.tolist()]
        seen[i] = len(np.unique(np.concatenate(holders)))
    return seen


class _Index:
    """The distinct queries that hold each term."""

    def __init__(self, tokens: Tokens) -> None:
        query = np.repeat(np.arange(len(tokens.queries)), np.diff(tokens.query_ptr))
        self.ptr, places = group(tokens.terms, tokens.n_terms)
        self.queries = query[places]

    def queries_with(self, terms: Int64s) -> Int64s:
        """Give the queries that hold all of some terms."""
        by_length = sorted(terms.tolist(), key=lambda term: int(self.ptr[term + 1] - self.ptr[term]))
        found: Int64s = np.unique(self._of(by_length[0]))
        for term in by_length[1:]:
            found = found[np.isin(found, self._of(term))]
        return found

    def _of(self, term: int) -> Int64s:
        return self.queries[self.ptr[term] : self.ptr[term + 1]]


def _in_groups(combinations: Combinations, groups: Groups) -> Int64s:
    """Count the members that may have all of each combination: of each group as many as have its rarest term there.

    Where groups do not tell how many have a term, its weight is taken for their share.
    """
    told = groups.frame["holders"].null_count() == 0
    column = "holders" if told else "weights"
    entries = groups.frame.select("group", "members", "terms", column).explode("terms", column, empty_as_null=False)
    n = pl.col(column) if told else (pl.col(column).clip(0, 1) * pl.col("members")).round().cast(pl.Int64)
    held = entries.select("group", term="terms", n=n)
    words = _as_items(combinations.texts).str.split(" ").list.unique()
    wanted = pl.DataFrame({"place": np.arange(len(words)), "size": words.list.len(), "term": words}).explode("term")
    together = wanted.join(held, on="term").group_by("place", "size", "group").agg(n=pl.col("n").min(), found=pl.len())
    whole = together.filter(pl.col("found") == pl.col("size")).group_by("place").agg(pl.col("n").sum())
    seen = np.zeros(len(words), np.int64)
    seen[whole["place"].to_numpy()] = whole["n"].to_numpy()
    return seen


def _as_whole_queries(combinations: Combinations, counted: pl.DataFrame) -> Int64s:
    """Look the queries up, whole and in normal form, in a frame of query and count."""
    wanted = pl.DataFrame({"query": normalise(combinations.texts)})
    known = counted.select(pl.col("query"), pl.col("count").cast(pl.Int64))
    found = wanted.join(known, on="query", how="left", maintain_order="left")["count"]
    seen: Int64s = found.fill_null(0).to_numpy()
    return seen


def _as_items(texts: pl.Series) -> pl.Series:
    tokens = tokenize(texts)
    return tokens.queries.gather(tokens.row_query).rename("")


def _tokens(log: QueryLog) -> Tokens:
    return tokenize(log.frame["query"], by_blanks=log.layout.format is Format.TRANSACTIONS)


def _n_distinct(tokens: Tokens) -> Int64s:
    """Count the distinct terms of each query."""
    query = np.repeat(np.arange(len(tokens.queries)), np.diff(tokens.query_ptr))
    pairs = np.unique(query.astype(np.int64) * max(1, tokens.n_terms) + tokens.terms)
    return np.bincount(pairs // max(1, tokens.n_terms), minlength=len(tokens.queries)).astype(np.int64)

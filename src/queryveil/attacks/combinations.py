"""Combinations of terms that one person asked and that nobody asked, and how often a release shows them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import Groups, Int32s, Int64s, QueryLog, Tallies
from queryveil.data.rows import group
from queryveil.guarantees import DifferentialPrivacy, SwapAnonymity
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import Tokens, encode, normalise, tokenize

_N_COMMON = 500
"""Decoys are made of so many of the most common terms."""
_MOST_TRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Combinations:
    """Queries of two or more terms; `rows` are those of the log that asked them, or that lend them their columns."""

    texts: pl.Series
    rows: Int64s

    def some(self, places: Int64s) -> Combinations:
        """Return those at some places."""
        return Combinations(texts=self.texts.gather(places), rows=self.rows[places])

    def joined(self, other: Combinations) -> Combinations:
        """Return these and others."""
        texts = pl.concat([self.texts.rename(""), other.texts.rename("")])
        return Combinations(texts=texts, rows=np.concatenate([self.rows, other.rows]))

    def __repr__(self) -> str:
        # Privacy: the texts stay out of it.
        return f"Combinations(n={len(self.rows)})"


def own_queries(pair: Pair, *, n: int, rng: np.random.Generator) -> Combinations:
    """Draw n people with a query of two or more terms, no other having one with all of these, and such a query of each.

    >>> rows = {"user": ["u1", "u2", "u2", "u3"], "query": ["red wine", "Wine  Red", "old red wine", "old wine"]}
    >>> pair = Pair.pseudonymised(QueryLog.from_frame(rows))
    >>> own_queries(pair, n=3, rng=np.random.default_rng(1)).rows.tolist()
    [2]
    """
    tokens, user = pair.original_tokens, pair.user
    frame = pl.DataFrame({"user": user, "query": tokens.row_query, "row": np.arange(len(user))})
    n_terms = pl.Series(_n_distinct(tokens)[tokens.row_query])
    # Most queries fall out here, at little cost.
    alone = frame.filter(n_terms >= 2).filter(pl.col("user").n_unique().over("query") == 1)["row"].to_numpy()
    index, found = _Rows(tokens, user), dict[int, int]()
    # People in any order, and the queries of each in any order.
    order = np.lexsort((rng.random(len(alone)), rng.permutation(pair.n_users)[user[alone]]))
    for row in alone[order].tolist():
        if len(found) == n:
            break
        if user[row] not in found and len(index.owners(terms_of(tokens, row))) == 1:
            found[int(user[row])] = row
    rows = np.array(list(found.values()), np.int64)
    return Combinations(texts=pair.log.frame["query"].gather(rows).alias(""), rows=rows)


def asked_in(pair: Pair, *, combinations: Combinations) -> Int64s:
    """Return the rows of the original that have all terms of a combination and are by the user who asked it."""
    tokens, user = pair.original_tokens, pair.user
    index = _Rows(tokens, user)
    found = [np.empty(0, np.int64)]
    for row in combinations.rows.tolist():
        rows = index.rows(terms_of(tokens, row))
        found.append(rows[user[rows] == user[row]])
    return np.unique(np.concatenate(found))


def decoys(pair: Pair, *, like: Combinations, rng: np.random.Generator) -> Combinations:
    """Make up as many combinations of common terms that stand in no query of the log; fewer if they are hard to find.

    None is part of another, or the users who are invented for one would be seen for the other.
    Each has as many terms as one of those it is to be `like`, and borrows the columns of that one's row.
    """
    tokens = pair.original_tokens
    index = _Index(tokens)
    common = np.argsort(-index.queries.lengths, kind="stable")[:_N_COMMON]
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


def times_seen(combinations: Combinations, *, release: Release, taxonomy: Taxonomy | None = None) -> Int64s:
    """Count what shows each combination in a release: users, or rows where queries change hands; bags; members.

    Bags have nodes of a `taxonomy`: in them the terms that it knows are sought, by the names of their nodes.
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
        by_blanks = data.terms_are_items
    else:
        lists = data.frame["items"]
        texts = lists.list.eval(pl.element().str.replace_all(r"\s", "_")).list.join(" ")
        owner, by_blanks = np.arange(data.n_transactions, dtype=np.int32), True
    n = len(combinations.rows)
    wanted = _as_items(combinations.texts) if by_blanks else combinations.texts
    if taxonomy is not None and not isinstance(data, QueryLog):
        wanted = _as_nodes(wanted, taxonomy)
    tokens = tokenize(pl.concat([wanted.rename(""), texts.rename("")]), by_blanks=by_blanks)
    # What is looked for is nobody's.
    index = _Rows(tokens, np.concatenate([np.full(n, -1, np.int32), owner]))
    found = [index.owners(terms_of(tokens, row)) for row in range(n)]
    return np.array([np.count_nonzero(owners >= 0) for owners in found], np.int64)


def _as_nodes(texts: pl.Series, taxonomy: Taxonomy) -> pl.Series:
    """Write the names of the nodes for the terms that a taxonomy knows, nothing for fewer than two."""
    words = pl.DataFrame({"row": np.arange(len(texts)), "word": texts.str.split(" ")}).explode("word")
    node = taxonomy.find_all(words["word"])
    names = taxonomy.names.cast(pl.String).gather(np.maximum(node, 0)).str.replace_all(r"\s", "_")
    known = words.select("row", name=names).filter(pl.Series(node >= 0)).group_by("row").agg(pl.col("name").unique())
    known = known.filter(pl.col("name").list.len() >= 2)
    rows = pl.DataFrame({"row": np.arange(len(texts))}).join(known, on="row", how="left", maintain_order="left")
    return rows["name"].list.join(" ").fill_null("")


def terms_of(tokens: Tokens, row: int) -> Int64s:
    """Return the distinct terms of a row."""
    query = tokens.row_query[row]
    return np.unique(tokens.query_terms.row(query)).astype(np.int64)


class _Rows:
    """The rows whose query has some terms, and whose they are."""

    def __init__(self, tokens: Tokens, owner: Int32s) -> None:
        self._owner, self._index = owner, _Index(tokens)
        self._rows = group(tokens.row_query, len(tokens.queries))

    def rows(self, terms: Int64s) -> Int64s:
        """Return the rows that have all of some terms; none if there are no terms."""
        return self._rows.take(self._index.queries_with(terms)).values if len(terms) else np.empty(0, np.int64)

    def owners(self, terms: Int64s) -> Int32s:
        """Return those whose rows have all of some terms."""
        return np.unique(self._owner[self.rows(terms)])


class _Index:
    """The distinct queries that hold each term."""

    def __init__(self, tokens: Tokens) -> None:
        self.queries = tokens.query_terms.transpose(tokens.n_terms)

    def queries_with(self, terms: Int64s) -> Int32s:
        """Return the queries that hold all of some terms."""
        ptr, values = self.queries
        shortest, *others = sorted((values[ptr[term] : ptr[term + 1]] for term in terms.tolist()), key=len)
        found = np.unique(shortest)
        for queries in others:
            found = found[np.isin(found, queries)]
        return found


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


def _n_distinct(tokens: Tokens) -> Int64s:
    """Count the distinct terms of each query."""
    pairs = np.unique(tokens.query_terms.row_of_entry * max(1, tokens.n_terms) + tokens.terms)
    return np.bincount(pairs // max(1, tokens.n_terms), minlength=len(tokens.queries)).astype(np.int64)


def planted(log: QueryLog, *, combinations: Combinations, n_each: int, rng: np.random.Generator) -> QueryLog:
    """Return the log with `n_each` invented users for each combination, who ask it once.

    Their rows are like the row of the combination in all else: its time, its URL, and what other columns there are.
    """
    n_rows = len(combinations.rows) * n_each
    rows = np.repeat(combinations.rows, n_each)
    queries = combinations.texts.gather(np.repeat(np.arange(len(combinations.rows)), n_each))
    new = log.frame[pl.Series(rows)].with_columns(
        user=_new_names(log.frame["user"], n=n_rows, rng=rng), query=queries.cast(pl.String)
    )
    return log.with_frame(pl.concat([log.frame, new.select(log.frame.columns)]))


def without(log: QueryLog, *, rows: Int64s) -> QueryLog:
    """Return the log without some rows."""
    kept = np.ones(log.n_rows, np.bool_)
    kept[rows] = False
    return log.with_frame(log.frame.filter(pl.Series(kept)))


def _new_names(users: pl.Series, *, n: int, rng: np.random.Generator) -> pl.Series:
    """Invent ids that nobody has, in an order that tells nothing."""
    taken = set(users.unique())
    names: dict[str, None] = {}
    while len(names) < n:
        name = f"{int(rng.integers(1, 2**62))}"
        if name not in taken:
            names[name] = None
    return pl.Series("user", list(names), dtype=pl.String)

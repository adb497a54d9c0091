"""Utility for spelling correction: respellings, where somebody asks a query and then one that differs by one letter.

A respelling leads from one query to another that is asked more often and is one edit away: a letter too many, missing,
or wrong, or two neighbours exchanged; digits are not spelled, so that an edit of a digit is none. It counts as often as
there are people who made it: within half an hour where times are exact, on the same day where they are not, and at all
where there are none.

A release shows a respelling if somebody makes it there as well, as far as its times tell. Where nobody does, it can
still be guessed: the released query one edit away that is asked most often is taken for the right spelling, as anybody
does who has no more than a list of queries with counts.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from queryveil.data import Bools, Int32s, Int64s, UInt64s
from queryveil.data.rows import Rows, pointers
from queryveil.kernels import njit
from queryveil.utility.score import Measures, kept
from queryveil.utility.views import View

LEAST_LETTERS = 4  # of a query that is respelled: of shorter ones, any other is one edit away
_MINUTES = 30
_BASE = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def one_edit(one: Int32s, other: Int32s) -> bool:
    """Return whether two texts (code points) are one edit apart that is not of a digit."""
    if len(one) > len(other):
        one, other = other, one
    n, longer = len(one), len(other) - len(one)
    if longer > 1:
        return False
    i = 0
    while i < n and one[i] == other[i]:
        i += 1
    if i == len(other):
        return False
    for text in (one, other):
        if i < len(text) and 48 <= text[i] <= 57:
            return False
    if longer:
        return np.array_equal(one[i:], other[i + 1 :])
    if np.array_equal(one[i + 1 :], other[i + 1 :]):
        return True
    is_exchanged = i + 1 < n and one[i] == other[i + 1] and one[i + 1] == other[i]
    return is_exchanged and np.array_equal(one[i + 2 :], other[i + 2 :])


@njit(cache=True, nogil=True)
def deletion_hashes(texts: Rows[np.int32]) -> tuple[UInt64s, Int64s]:
    """Return the hashes of each text, and of it without one of its letters, and the text of each hash.

    Two texts one edit apart share one of these; what shares one by chance must be looked at.
    """
    n = len(texts.values) + len(texts.ptr) - 1
    hashes, owner, at = np.empty(n, np.uint64), np.empty(n, np.int64), 0
    for text in range(len(texts.ptr) - 1):
        letters = texts.values[texts.ptr[text] : texts.ptr[text + 1]]
        whole, before = np.uint64(0), np.uint64(0)
        # The hash of what follows each letter is taken away from that of the whole, from the end on.
        after, power = np.zeros(len(letters) + 1, np.uint64), np.ones(len(letters) + 1, np.uint64)
        for i in range(len(letters) - 1, -1, -1):
            power[i] = power[i + 1] * _BASE
            after[i] = after[i + 1] + np.uint64(letters[i]) * power[i + 1]
        whole = after[0]
        hashes[at], owner[at] = whole, text
        at += 1
        for i in range(len(letters)):
            hashes[at], owner[at] = before * power[i + 1] + after[i + 1], text
            before = before * _BASE + np.uint64(letters[i])
            at += 1
    return hashes, owner


@njit(cache=True, nogil=True)
def _are_one_edit(texts: Rows[np.int32], first: Int64s, second: Int64s) -> Bools:
    found = np.zeros(len(first), np.bool_)
    for i in range(len(first)):
        a, b = first[i], second[i]
        found[i] = one_edit(
            texts.values[texts.ptr[a] : texts.ptr[a + 1]], texts.values[texts.ptr[b] : texts.ptr[b + 1]]
        )
    return found


def neighbours(queries: pl.Series, *, among: Bools, of: Bools) -> pl.DataFrame:
    """Return pairs of a `query` that `of` marks and a `next` that `among` marks, one edit apart, by number."""
    is_long = (queries.str.len_chars() >= LEAST_LETTERS).to_numpy()
    number = np.flatnonzero((among | of) & is_long)
    some = queries.gather(number)
    lengths = some.str.len_chars().to_numpy().astype(np.int64)
    letters = np.frombuffer("".join(some).encode("utf-32-le"), np.int32)
    texts = Rows(pointers(lengths), letters)
    hashes, owner = deletion_hashes(texts)
    frame = pl.DataFrame({"hash": hashes, "text": owner})
    is_asked, is_there = pl.Series(of[number]), pl.Series(among[number])
    asked, there = (frame.filter(marked.gather(frame["text"])) for marked in (is_asked, is_there))
    pairs = asked.join(there.rename({"text": "other"}), on="hash").select("text", "other").unique()
    first, second = (pairs[name].to_numpy() for name in ("text", "other"))
    is_near = _are_one_edit(texts, first, second)
    columns = {"query": number[first[is_near]], "next": number[second[is_near]]}
    return pl.DataFrame(columns, schema={"query": pl.Int32, "next": pl.Int32})


def respelled(view: View, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return those pairs of `query` and `next` that somebody asked one after the other, and by how many people (`n`).

    The second of them must be asked more often.
    """
    n_asked = view.n_asked
    is_more = n_asked[pairs["next"].to_numpy()] > n_asked[pairs["query"].to_numpy()]
    pairs = pairs.filter(pl.Series(is_more)).select("query", "next")
    if view.rows is None:
        return pairs.with_columns(n=pl.lit(1, pl.Int64)).clear()
    if view.has_times and view.exact_times:
        # Of queries at one moment either may be the first.
        timed = view.rows.drop_nulls("time")
        first = timed.join(pairs, on="query")
        later = timed.select("user", next="query", next_time="time")
        soon = pl.col("next_time") - pl.col("time")
        made = first.join(later, on=["user", "next"]).filter(
            (soon >= pl.duration()) & (soon <= pl.duration(minutes=_MINUTES))
        )
    else:
        day = [pl.col("time").dt.date().alias("day")] if view.has_times else []
        rows = view.rows.drop_nulls("time") if view.has_times else view.rows
        asked = rows.select("user", "query", *day).unique()
        keys = [name for name in asked.columns if name != "query"]
        made = asked.join(pairs, on="query").join(asked.rename({"query": "next"}), on=[*keys, "next"])
    return made.select("user", "query", "next").unique().group_by("query", "next").agg(n=pl.len().cast(pl.Int64))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Respellings:
    """The respellings of a log: `query`, `next`, and by how many people (`n`)."""

    made: pl.DataFrame

    @classmethod
    def of(cls, view: View) -> Self | None:
        """Find the respellings of a log; None if there are none."""
        there = view.n_asked > 0
        made = respelled(view, neighbours(view.queries, among=there, of=there))
        return cls(made=made.sort("query", "next")) if made.height else None

    def measure(self, view: View) -> Measures:
        """Return the share of respellings that a release shows, or that can be guessed from its queries."""
        shown = respelled(view, self.made).select("query", "next")
        hidden = self.made.join(shown, on=["query", "next"], how="anti")
        guessed = hidden.join(_guesses(view, hidden["query"]), on=["query", "next"])
        n, n_hidden, n_guessed = (int(frame["n"].sum()) for frame in (self.made, hidden, guessed))
        about = f"of {n:,} corrections of a misspelt query can be learned ({n_guessed:,} of them guessed from counts)"
        return Measures(scores=(kept("spelling_kept", (n - n_hidden + n_guessed) / n, about=about, group="search"),))


def _guesses(view: View, queries: pl.Series) -> pl.DataFrame:
    """Return for each query the one that is most often asked of those one edit away, if it is asked more often."""
    of = np.zeros(len(view.queries), np.bool_)
    of[queries.to_numpy()] = True
    near = neighbours(view.queries, among=view.n_asked > 0, of=of)
    near = near.with_columns(n=view.n_asked[near["next"].to_numpy()], own=view.n_asked[near["query"].to_numpy()])
    more = near.filter(pl.col("n") > pl.col("own"))
    best = more.sort(["query", "n", "next"], descending=[False, True, False])
    return best.unique("query", keep="first", maintain_order=True).select("query", "next")

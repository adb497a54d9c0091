"""Utility for spelling correction: respellings, where somebody asks a query and then one that differs by one letter.

A respelling leads from one query to another that is asked more often and is one edit away: a letter too many, missing,
or wrong, or two neighbours exchanged; digits are not spelled, so that an edit of a digit is none. It counts as often as
there are people who made it on one day, and within half an hour where times are exact; at all where there are none.

A release shows a respelling if somebody makes it there as well, as far as its times tell. Where nobody does, it can
still be guessed: the released query one edit away that is asked most often is taken for the right spelling, as anybody
does who has no more than a list of queries with counts.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from queryveil.data import Bools, Int32s, Int64s, UInt64s
from queryveil.data.rows import Rows, order_of, pointers
from queryveil.kernels import njit
from queryveil.utility.score import Measures, kept
from queryveil.utility.views import View

LEAST_LETTERS = 4  # of a query that is respelled: of shorter ones, any other is one edit away
MOST_QUERIES = 100
"""Somebody with more different queries at a time is taken for a program and left out."""
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
def _hash_deletions(letters: Int32s, hashes: UInt64s, after: UInt64s, power: UInt64s) -> None:
    """Fill in the hash of a text, and that of it without each of its letters; the other arrays are room to work in."""
    n = len(letters)
    after[n], power[n] = np.uint64(0), np.uint64(1)
    for i in range(n - 1, -1, -1):
        power[i] = power[i + 1] * _BASE
        after[i] = after[i + 1] + np.uint64(letters[i]) * power[i + 1]
    hashes[0], before = after[0], np.uint64(0)
    for i in range(n):
        hashes[i + 1] = before * power[i + 1] + after[i + 1]
        before = before * _BASE + np.uint64(letters[i])


@njit(cache=True, nogil=True)
def one_edit_away(asked: Rows[np.int32], texts: Rows[np.int32]) -> tuple[Int64s, Int64s]:
    """Return the pairs of an asked text and another one that are one edit apart.

    Two such texts share one of the hashes of what they are without a letter; what shares one by chance is looked at.
    """
    longest = 1 + max(0, np.diff(asked.ptr).max() if len(asked.ptr) > 1 else 0)
    longest = max(longest, 1 + (np.diff(texts.ptr).max() if len(texts.ptr) > 1 else 0))
    room = [np.empty(longest + 1, np.uint64) for _ in range(3)]
    n = len(asked.values) + len(asked.ptr) - 1
    hashes, owner, at = np.empty(n, np.uint64), np.empty(n, np.int64), 0
    for i in range(len(asked.ptr) - 1):
        letters = asked.values[asked.ptr[i] : asked.ptr[i + 1]]
        _hash_deletions(letters, room[0], room[1], room[2])
        hashes[at : at + len(letters) + 1] = room[0][: len(letters) + 1]
        owner[at : at + len(letters) + 1] = i
        at += len(letters) + 1
    order = order_of(hashes)
    hashes, owner = hashes[order], owner[order]
    last = np.full(len(asked.ptr) - 1, -1, np.int64)
    first, second, n_found = np.empty(max(16, n), np.int64), np.empty(max(16, n), np.int64), 0
    for other in range(len(texts.ptr) - 1):
        letters = texts.values[texts.ptr[other] : texts.ptr[other + 1]]
        _hash_deletions(letters, room[0], room[1], room[2])
        for each in room[0][: len(letters) + 1]:
            place = np.searchsorted(hashes, each)
            while place < n and hashes[place] == each:
                i = owner[place]
                place += 1
                if last[i] == other or not one_edit(asked.values[asked.ptr[i] : asked.ptr[i + 1]], letters):
                    continue
                last[i] = other
                if n_found == len(first):
                    first = np.concatenate((first, np.empty(n_found, np.int64)))
                    second = np.concatenate((second, np.empty(n_found, np.int64)))
                first[n_found], second[n_found] = i, other
                n_found += 1
    return first[:n_found].copy(), second[:n_found].copy()


@njit(cache=True, nogil=True)
def _are_one_edit(texts: Rows[np.int32], first: Int64s, second: Int64s) -> Bools:
    found = np.zeros(len(first), np.bool_)
    for i in range(len(first)):
        a, b = first[i], second[i]
        found[i] = one_edit(
            texts.values[texts.ptr[a] : texts.ptr[a + 1]], texts.values[texts.ptr[b] : texts.ptr[b + 1]]
        )
    return found


def _letters(texts: pl.Series) -> Rows[np.int32]:
    """Return the code points of each text."""
    lengths = texts.str.len_chars().to_numpy().astype(np.int64)
    return Rows(pointers(lengths), np.array(np.frombuffer("".join(texts).encode("utf-32-le"), np.int32)))


def _is_long(queries: pl.Series) -> Bools:
    return np.array(queries.str.len_chars() >= LEAST_LETTERS, np.bool_)


def neighbours(queries: pl.Series, *, of: Bools, among: Bools) -> pl.DataFrame:
    """Return pairs of a `query` that `of` marks and a `next` that `among` marks, one edit apart, by number."""
    is_long = _is_long(queries)
    asked, there = np.flatnonzero(of & is_long), np.flatnonzero(among & is_long)
    first, second = one_edit_away(_letters(queries.gather(asked)), _letters(queries.gather(there)))
    columns = {"query": asked[first], "next": there[second]}
    return pl.DataFrame(columns, schema={"query": pl.Int32, "next": pl.Int32})


def _asked_together(view: View) -> pl.DataFrame:
    """Return pairs of queries, one edit apart, that somebody asked on one day, or at all where there are no times."""
    empty = pl.DataFrame(schema={"query": pl.Int32, "next": pl.Int32})
    if view.rows is None:
        return empty
    asked, keys = _by_day(view)
    is_long = _is_long(view.queries)
    asked = asked.filter(pl.Series(is_long[asked["query"].to_numpy()]))
    asked = asked.filter(pl.col("query").len().over(keys).is_between(2, MOST_QUERIES))
    pairs = asked.join(asked.rename({"query": "next"}), on=keys).select("query", "next").unique()
    numbers = pairs["query"].unique().sort()
    if not len(numbers):
        return empty
    place = np.full(len(view.queries), -1, np.int64)
    place[numbers.to_numpy()] = np.arange(len(numbers))
    first, second = (place[pairs[name].to_numpy()] for name in ("query", "next"))
    return pairs.filter(pl.Series(_are_one_edit(_letters(view.queries.gather(numbers)), first, second)))


def _by_day(view: View) -> tuple[pl.DataFrame, list[str]]:
    """Return who asked what, on each day if there are times, and the names of the columns beside the query."""
    assert view.rows is not None
    if not view.has_times:
        return view.rows.select("user", "query").unique(), ["user"]
    timed = view.rows.drop_nulls("time")
    return timed.select("user", pl.col("time").dt.date().alias("day"), "query").unique(), ["user", "day"]


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
        timed = view.rows.drop_nulls("time").with_columns(day=pl.col("time").dt.date())
        later = timed.select("user", "day", next="query", next_time="time")
        soon = pl.col("next_time") - pl.col("time")
        made = timed.join(pairs, on="query").join(later, on=["user", "day", "next"])
        made = made.filter((soon >= pl.duration()) & (soon <= pl.duration(minutes=_MINUTES)))
    else:
        asked, keys = _by_day(view)
        made = asked.join(pairs, on="query").join(asked.rename({"query": "next"}), on=[*keys, "next"])
    return made.select("user", "query", "next").unique().group_by("query", "next").agg(n=pl.len().cast(pl.Int64))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Respellings:
    """The respellings of a log: `query`, `next`, and by how many people (`n`)."""

    made: pl.DataFrame

    @classmethod
    def of(cls, view: View) -> Self | None:
        """Find the respellings of a log; None if there are none."""
        made = respelled(view, _asked_together(view))
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

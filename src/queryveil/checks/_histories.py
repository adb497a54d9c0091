"""Histories for verification: the distinct terms of each user, or of each user and window, as numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from queryveil.checks.tokens import Codes, Ints, number, terms_of, tokenise
from queryveil.checks.verdict import Kind, Witness
from queryveil.data import QueryLog
from queryveil.kernels import njit

UInts = npt.NDArray[np.uint32]


@njit(cache=True)
def gather_histories(
    owner: UInts, query: UInts, query_starts: Ints, query_terms: Ints, n_owners: int, n_terms: int
) -> tuple[Ints, Ints]:
    """Return the distinct terms of each owner's rows: owner i holds `terms[starts[i]:starts[i + 1]]`."""
    row_starts, n_most = np.zeros(n_owners + 1, np.int64), 0
    for row in range(owner.size):
        row_starts[owner[row] + 1] += 1
        n_most += query_starts[query[row] + 1] - query_starts[query[row]]
    row_starts = np.cumsum(row_starts)
    queries = np.empty(owner.size, np.uint32)
    cursor = row_starts[:-1].copy()
    for row in range(owner.size):
        queries[cursor[owner[row]]] = query[row]
        cursor[owner[row]] += 1

    # Memory that is not written is not taken.
    starts, terms = np.zeros(n_owners + 1, np.int64), np.empty(n_most, np.int64)
    last_owner = np.full(n_terms, -1, np.int64)
    n = 0
    for i in range(n_owners):
        for q in queries[row_starts[i] : row_starts[i + 1]]:
            for term in query_terms[query_starts[q] : query_starts[q + 1]]:
                if last_owner[term] != i:
                    last_owner[term] = i
                    terms[n] = term
                    n += 1
        starts[i + 1] = n
    return starts, terms[:n].copy()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Histories:
    """The histories of a log, one per user, or per user and window.

    An item is a term, or a term in one window, so that supports never mix windows. Items are numbered by rising
    support.

    - `log`, `by_blanks`: the log, and whether its terms are separated by blanks only.
    - `line`, `starts`: the histories one after another, each ascending and ended by -1, and where each begins.
    - `words`, `n_occurrences`: the distinct terms, sorted, and how often each occurs in all rows.
    - `support`, `word_of_item`: the number of histories with each item, and its word.
    - `history_of_row`: the history of each row.
    """

    log: QueryLog
    by_blanks: bool
    line: Codes
    starts: Ints
    support: Ints
    words: pl.Series
    n_occurrences: Ints
    word_of_item: Ints
    history_of_row: Ints

    def witness(self, items: Sequence[int], *, place: int, support: int, needed: int, kind: Kind) -> Witness:
        """Return a witness with the first rows in which the user of the history around `place` has the items."""
        history = np.searchsorted(self.starts, place, side="right") - 1
        numbers = {int(self.word_of_item[item]) for item in items}
        missing = {str(self.words[number]) for number in numbers if number < len(self.words)}
        found: list[tuple[int, int]] = []
        rows_of_user = np.flatnonzero(self.history_of_row == history)
        if len(missing) < len(items):
            moments = np.unique(self.log.frame["time"].drop_nulls().to_physical().to_numpy())
            held = self.log.frame["time"].to_physical().gather(rows_of_user)
            for number in sorted(numbers)[len(missing) :]:
                found.append((int(rows_of_user[held.index_of(moments[number - len(self.words)]) or 0]) + 1, 0))
        for row in rows_of_user:
            if not missing:
                break
            terms = terms_of(self.log.frame["query"][int(row)], items=self.by_blanks)
            for position, term in enumerate(terms, start=1):
                if term in missing:
                    missing.remove(term)
                    found.append((int(row) + 1, position))
        rows, positions = zip(*sorted(found), strict=True)
        return Witness(kind=kind, size=len(items), support=support, needed=needed, rows=rows, positions=positions)


def read_histories(
    log: QueryLog, *, windows: pl.Series | None = None, by_blanks: bool = False, with_times: bool = False
) -> Histories:
    """Return the histories of each user, or of each user and window; with times, these are items as terms are."""
    queries, (history_of_row, window) = number(log.frame["query"]), _owners(log, windows)
    tokens = tokenise(queries.distinct, items=by_blanks)
    n_words = len(tokens.words)
    owner, query = history_of_row.astype(np.uint32), queries.codes.astype(np.uint32)
    starts, terms = gather_histories(owner, query, tokens.starts, tokens.terms, window.size, n_words)
    if with_times:
        starts, terms = _with_times(starts, terms, history_of_row, log.frame["time"], n_words=n_words)
    if windows is None:
        items, word_of_item = terms, np.arange(max(n_words, int(terms.max(initial=-1)) + 1))
    else:
        keys = np.repeat(window, np.diff(starts)) * n_words + terms
        distinct, items = np.unique(keys, return_inverse=True)
        word_of_item = distinct % max(n_words, 1)
    support = np.bincount(items, minlength=word_of_item.size)
    rare_first = np.argsort(support, kind="stable")
    rank = np.empty(rare_first.size, np.int64)
    rank[rare_first] = np.arange(rare_first.size)
    n_rows = np.bincount(queries.codes, minlength=tokens.starts.size - 1)
    n_occurrences = np.zeros(n_words, np.int64)
    np.add.at(n_occurrences, tokens.terms, np.repeat(n_rows, np.diff(tokens.starts)))
    # Sorted by history and then by item at once.
    n_items = max(1, rank.size)
    keys = np.repeat(np.arange(starts.size - 1), np.diff(starts)) * n_items + rank[items]
    keys.sort()
    return Histories(
        log=log,
        by_blanks=by_blanks,
        line=np.insert((keys % n_items).astype(np.int32), starts[1:], -1),
        starts=starts + np.arange(starts.size),
        support=support[rare_first],
        words=tokens.words,
        n_occurrences=n_occurrences,
        word_of_item=word_of_item[rare_first],
        history_of_row=history_of_row,
    )


def _with_times(
    starts: Ints, terms: Ints, history_of_row: Ints, times: pl.Series, *, n_words: int
) -> tuple[Ints, Ints]:
    """Return the histories with the distinct times of their rows, numbered behind the words; no time is no item."""
    there = times.is_not_null().to_numpy()
    _, number_of_time = np.unique(times.drop_nulls().to_physical().to_numpy(), return_inverse=True)
    n_items = n_words + int(number_of_time.max(initial=-1)) + 1
    timed = np.unique(history_of_row[there] * n_items + n_words + number_of_time)
    owner = np.concatenate([np.repeat(np.arange(starts.size - 1), np.diff(starts)), timed // max(1, n_items)])
    items = np.concatenate([terms, timed % max(1, n_items)])
    order = np.argsort(owner, kind="stable")
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=starts.size - 1))]), items[order]


def _owners(log: QueryLog, windows: pl.Series | None) -> tuple[Ints, Ints]:
    """Return the history that each row belongs to, and the window of each history."""
    user = number(log.frame["user"])
    if windows is None:
        return user.codes, np.zeros(len(user.distinct), np.int64)
    window = number(windows)
    n_windows = max(len(window.distinct), 1)
    distinct, of_row = np.unique(user.codes * n_windows + window.codes, return_inverse=True)
    return of_row, distinct % n_windows

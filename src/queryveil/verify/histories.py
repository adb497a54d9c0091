"""A log as the checker sees it: who holds which terms, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from queryveil.log import QueryLog
from queryveil.verify.kernels.histories import gather_histories, lay_out
from queryveil.verify.tokens import Tokens, number, terms_of, tokenise
from queryveil.verify.verdict import Kind, Witness

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Histories:
    """The histories of a log, one per user, or per user and window.

    `line` holds them one after another, each ascending and ended by -1; history i begins at `starts[i]`. An item
    stands for a term, or for a term in one window: the same term in another window is another item, so that
    supports never mix windows. Items are numbered by rising support. `n_occurrences` counts each word in all rows.
    `by_blanks` tells that terms are what stands between blanks.
    """

    log: QueryLog
    by_blanks: bool
    line: npt.NDArray[np.int32]
    starts: Ints
    support: Ints
    words: pl.Series
    n_occurrences: Ints
    word_of_item: Ints
    history_of_row: Ints

    @property
    def n_not_empty(self) -> int:
        """The number of histories with at least one term."""
        return int(np.count_nonzero(np.diff(self.starts) > 1))

    def witness(self, items: Sequence[int], *, place: int, support: int, needed: int, kind: Kind) -> Witness:
        """Point at the first rows where the user whose history lies around `place` of the line has the items."""
        history = np.searchsorted(self.starts, place, side="right") - 1
        missing = {str(self.words[int(self.word_of_item[item])]) for item in items}
        found: list[tuple[int, int]] = []
        for row in np.flatnonzero(self.history_of_row == history):
            terms = terms_of(self.log.frame["query"][int(row)], items=self.by_blanks)
            for position, term in enumerate(terms, start=1):
                if term in missing:
                    missing.remove(term)
                    found.append((int(row) + 1, position))
            if not missing:
                break
        rows, positions = zip(*found, strict=True)
        return Witness(kind=kind, size=len(items), support=support, needed=needed, rows=rows, positions=positions)


def read_histories(log: QueryLog, *, windows: pl.Series | None = None, by_blanks: bool = False) -> Histories:
    """Gather the terms of each user, or of each user and window."""
    queries, owners = number(log.frame["query"]), _owners(log, windows)
    tokens = tokenise(queries.distinct, items=by_blanks)
    n_words = len(tokens.words)
    starts, terms = gather_histories(
        owners.of_row.astype(np.uint32),
        queries.codes.astype(np.uint32),
        tokens.starts,
        tokens.terms,
        owners.windows.size,
        n_words,
    )
    if windows is None:
        items, word_of_item = terms, np.arange(n_words)
    else:
        keys = np.repeat(owners.windows, np.diff(starts)) * n_words + terms
        distinct, items = np.unique(keys, return_inverse=True)
        word_of_item = distinct % max(n_words, 1)
    support = np.bincount(items, minlength=word_of_item.size)
    rare_first = np.argsort(support, kind="stable")
    rank = np.empty(rare_first.size, np.int64)
    rank[rare_first] = np.arange(rare_first.size)
    return Histories(
        log=log,
        by_blanks=by_blanks,
        line=lay_out(starts, rank[items]),
        starts=starts + np.arange(starts.size),
        support=support[rare_first],
        words=tokens.words,
        n_occurrences=_occurrences(tokens, np.bincount(queries.codes, minlength=tokens.starts.size - 1)),
        word_of_item=word_of_item[rare_first],
        history_of_row=owners.of_row,
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Owners:
    """Whose history each row belongs to, and the window that each of these histories is of."""

    of_row: Ints
    windows: Ints


def _owners(log: QueryLog, windows: pl.Series | None) -> _Owners:
    user = number(log.frame["user"])
    if windows is None:
        return _Owners(of_row=user.codes, windows=np.zeros(len(user.distinct), np.int64))
    window = number(windows)
    n_windows = max(len(window.distinct), 1)
    distinct, of_row = np.unique(user.codes * n_windows + window.codes, return_inverse=True)
    return _Owners(of_row=of_row, windows=distinct % n_windows)


def _occurrences(tokens: Tokens, n_rows: Ints) -> Ints:
    n_occurrences = np.zeros(len(tokens.words), np.int64)
    np.add.at(n_occurrences, tokens.terms, np.repeat(n_rows, np.diff(tokens.starts)))
    return n_occurrences

"""Does a release hold anything that its original does not? Deleting terms never adds, nor does moving them up."""

from __future__ import annotations

from dataclasses import dataclass
from unicodedata import category

import numpy as np
import polars as pl

from queryveil.guarantees import KmAnonymity
from queryveil.log import Format, QueryLog
from queryveil.verify.histories import Histories, read_histories
from queryveil.verify.nodes import accounted_for, is_marked
from queryveil.verify.tree import Tree
from queryveil.verify.verdict import Verdict, Witness
from queryveil.verify.windows import window_column


def invented(
    log: QueryLog, *, original: QueryLog, promise: KmAnonymity, taxonomy: Tree | None = None
) -> tuple[int, list[Witness]]:
    """Count what the released log has more of than the original, and point at it.

    Users have new ids, so they cannot be matched. What can be seen: a term that is not in the original, or has more
    users or more occurrences than there; more users or more rows. Under a promise with windows a user of the
    original counts once per window, for that is how ids are given out anew.

    Under a promise about items, nodes of the `taxonomy` may stand for what is below them; without it they are not
    judged. The original is cut at blanks only if it is a transaction file.
    """
    by_blanks = promise.items and original.layout.format is Format.TRANSACTIONS
    released = _counted(log, window=None, by_blanks=promise.items)
    before = _counted(original, window=promise.window, by_blanks=by_blanks)
    totals = [(released.n_owners, before.n_owners), (log.n_rows, original.n_rows)]
    found = [
        Witness(kind="invented", size=0, support=now, needed=then, rows=(), positions=())
        for now, then in totals
        if now > then
    ]
    more = _more(released, before)
    if more.height and not by_blanks:
        # A sign that this Python does not know may be a separator to the method, so both readings must agree.
        other = _counted(without_unknown(original), window=promise.window, by_blanks=False)
        more = more.join(_more(released, other).select("term"), on="term", how="semi", maintain_order="left")
    if promise.items and taxonomy is not None:
        more = more.filter(~accounted_for(more, before=before.histories, tree=taxonomy))
    elif promise.items:
        more = more.filter(~is_marked())
    found += [_term_witness(row, released.histories) for row in more.head(Verdict.N_KEPT).iter_rows(named=True)]
    return more.height + sum(now > then for now, then in totals), found


def _more(released: _Counted, before: _Counted) -> pl.DataFrame:
    """Give the terms that have more users or occurrences in the release than before."""
    return (
        released.terms.join(before.terms, on="term", how="left", suffix="_before")
        .with_columns(pl.col("n_users_before", "n_occurrences_before").fill_null(0))
        .filter(
            (pl.col("n_users") > pl.col("n_users_before")) | (pl.col("n_occurrences") > pl.col("n_occurrences_before"))
        )
        .sort("n_users", "term")
    )


def without_unknown(log: QueryLog) -> QueryLog:
    """Give the log with blanks for the code points that this Python does not know."""
    queries = log.frame["query"]
    strange = queries.filter(queries.str.contains(r"[^\x00-\x7f]")).unique()
    blanked = ["".join(" " if category(c) == "Cn" else c for c in query) for query in strange]
    return log.with_frame(log.frame.with_columns(query=queries.replace(strange, pl.Series(blanked, dtype=pl.String))))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Counted:
    """A log's histories, and for each term (column `term`) `n_users`, `n_occurrences` and its `item`."""

    histories: Histories
    terms: pl.DataFrame
    n_owners: int


def _counted(log: QueryLog, *, window: str | None, by_blanks: bool) -> _Counted:
    windows = window_column(log, window) if window and "time" in log.columns else None
    histories = read_histories(log, windows=windows, by_blanks=by_blanks)
    n_words = len(histories.words)
    n_users = np.zeros(n_words, np.int64)
    np.add.at(n_users, histories.word_of_item, histories.support)
    # With windows a term is several items; any one of them will do to point at it.
    item = np.zeros(n_words, np.int64)
    item[histories.word_of_item] = np.arange(histories.support.size)
    terms = pl.DataFrame(
        {
            "term": histories.words,
            "n_users": n_users,
            "n_occurrences": histories.n_occurrences,
            "item": item,
        }
    )
    return _Counted(histories=histories, terms=terms, n_owners=histories.starts.size - 1)


def _term_witness(row: dict[str, int], histories: Histories) -> Witness:
    what = "n_users" if row["n_users"] > row["n_users_before"] else "n_occurrences"
    return histories.witness(
        [row["item"]],
        place=int(np.argmax(histories.line == row["item"])),
        support=row[what],
        needed=row[f"{what}_before"],
        kind="invented",
    )

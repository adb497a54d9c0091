"""Times as items: the days, weeks or four weeks of a user count like terms, and stay where k users share them too."""

import numpy as np
import polars as pl

from queryveil.data import Int32s, Int64s
from queryveil.methods.km._deletion import build
from queryveil.text.histories import Histories

UNITS = ("1d", "7d", "28d")
LEAST_DATED = 0.5
"""In the released unit at least so many of the rows keep their time."""


def share_times(
    owners: Int32s, starts: dict[str, pl.Series], *, terms: Histories, k: int, m: int
) -> tuple[str | None, pl.Series]:
    """Return the finest unit in which half of the rows keep their time, and the times; None, and no time, if none does.

    - `owners`: the user of each row
    - `starts`: by unit, the start of the stretch of time that each row is in
    - `terms`: the released terms, which are (k, m)-anonymous; all of them stay
    """
    for unit, times in starts.items():
        number = times.rank("dense").fill_null(0).cast(pl.Int64).to_numpy() - 1
        is_kept = _kept(owners, number, terms=terms, k=k, m=m)
        if is_kept.sum() >= LEAST_DATED * max(1, len(owners)):
            return unit, times.set(pl.Series(~is_kept), None)
    return None, next(iter(starts.values())).clear(len(owners))


def _kept(owners: Int32s, number: Int64s, *, terms: Histories, k: int, m: int) -> np.ndarray:
    """Return which rows keep their time, given its number, or -1 if it has none."""
    n_items = terms.n_terms + int(number.max(initial=-1)) + 1
    is_timed, item = number >= 0, terms.n_terms + number
    users = np.concatenate([terms.entry_user, owners[is_timed]])
    items = np.concatenate([terms.terms, item[is_timed]])
    both, entry = Histories.of_pairs(users, items, n_users=terms.n_users, n_terms=n_items)
    # Terms come first, so that no time is the reason why one would have to go; among times those of most users.
    is_time, support = np.arange(n_items) >= terms.n_terms, both.support()
    order = np.lexsort((-support, is_time)).astype(np.int32)
    kept = build(both, order, k=k, m=max(1, min(m, int(both.user_terms.lengths.max(initial=1)))))
    assert kept[both.terms < terms.n_terms].all(), "released terms are anonymous already"
    is_timed[is_timed] = kept[entry[len(terms.terms) :]]
    return is_timed

"""In which order rows can have left, where a release does not tell."""

from __future__ import annotations

import numpy as np

from queryveil.verify.arrivals import Ints
from queryveil.verify.kernels.pools import Codes


def leaving_order(came: Codes, left: Codes, latest: Ints) -> Ints:
    """Give an order of rows that keeps the promise if any does; `came` and `left` number users within their pool.

    Rows go by their latest arrival, after which the pool holds most. Of those with the same one it does not matter who
    is first: once all have left the same events remain, and before that more. What matters is how many users wait when
    the last one leaves: those who remain, and that one. So a user of whom nothing remains goes last.

    >>> came, left = np.array([0, 0, 1], np.int32), np.array([1, 0], np.int32)
    >>> leaving_order(came, left, np.array([2, 2])).tolist()
    [1, 0]
    """
    n = came.size + 1
    asked = np.sort(came.astype(np.int64) * n + np.arange(came.size))
    until = left.astype(np.int64) * n + latest
    n_asked = np.searchsorted(asked, until, side="right") - np.searchsorted(asked, left.astype(np.int64) * n)
    given = np.sort(until)
    n_given = np.searchsorted(given, until, side="right") - np.searchsorted(given, left.astype(np.int64) * n - 1)
    return np.lexsort((n_given == n_asked, latest))

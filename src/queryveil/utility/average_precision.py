"""Average precision of rankings."""

from __future__ import annotations

import numpy as np

from queryveil.kernels.arrays import Bools, Floats


def average_precision(relevant: Bools, *, n_relevant: int, at: int) -> Floats:
    """Give the average precision at rank `at` of each ranking: a row says which of its places hold a relevant document.

    The sum of the precision at each of the first `at` ranks that hold a relevant document, divided by the smaller of
    `at` and the number of relevant documents there are: 1 if the first ranks are all relevant.

    >>> rankings = np.array([[True, False, True, False], [False, False, False, True], [True, True, False, False]])
    >>> average_precision(rankings, n_relevant=2, at=4).round(4).tolist()
    [0.8333, 0.125, 1.0]
    """
    first = relevant[:, :at]
    precision = np.cumsum(first, axis=1) / np.arange(1, first.shape[1] + 1)
    return np.asarray((precision * first).sum(axis=1) / max(1, min(at, n_relevant)), np.float64)

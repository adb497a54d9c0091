"""Rows of a log gathered into histories."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from queryveil.verify.kernels.sorting import sort_numbers

Ints = npt.NDArray[np.int64]


@nb.njit(cache=True)
def gather_histories(
    owner: npt.NDArray[np.uint32],
    query: npt.NDArray[np.uint32],
    query_starts: Ints,
    query_terms: Ints,
    n_owners: int,
    n_terms: int,
) -> tuple[Ints, Ints]:
    """Give the distinct terms of each owner's rows: owner i holds `terms[starts[i]:starts[i + 1]]`."""
    row_starts = np.zeros(n_owners + 1, np.int64)
    for row in range(owner.size):
        row_starts[owner[row] + 1] += 1
    row_starts = np.cumsum(row_starts)
    queries = np.empty(owner.size, np.uint32)
    cursor = row_starts[:-1].copy()
    for row in range(owner.size):
        queries[cursor[owner[row]]] = query[row]
        cursor[owner[row]] += 1

    starts = np.zeros(n_owners + 1, np.int64)
    terms = np.empty(0, np.int64)
    for is_writing in (False, True):
        if is_writing:
            starts = np.cumsum(starts)
            terms = np.empty(starts[-1], np.int64)
        last_owner = np.full(n_terms, -1, np.int64)
        n = 0
        for i in range(n_owners):
            before = n
            for q in queries[row_starts[i] : row_starts[i + 1]]:
                for term in query_terms[query_starts[q] : query_starts[q + 1]]:
                    if last_owner[term] != i:
                        last_owner[term] = i
                        if is_writing:
                            terms[n] = term
                        n += 1
            if not is_writing:
                starts[i + 1] = n - before
    return starts, terms


@nb.njit(cache=True, parallel=True)
def lay_out(starts: Ints, items: Ints) -> npt.NDArray[np.int32]:
    """Put the histories one after another, each in ascending order and ended by -1."""
    n_owners = starts.size - 1
    line = np.empty(items.size + n_owners, np.int32)
    for i in nb.prange(n_owners):
        a, b = starts[i], starts[i + 1]
        line[a + i : b + i] = items[a:b]
        sort_numbers(line[a + i : b + i])
        line[b + i] = -1
    return line

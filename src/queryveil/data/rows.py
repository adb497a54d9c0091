"""Rows of queries to histories of terms, and back to rows with fewer terms.

Numba's own sorts are closures whose names in the compiled cache can be the same for different sorts, and a process that
loads two of them from the cache may run the wrong one (seen with Numba 0.68): a wrong result or a crash.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.data.arrays import Int32s, Int64s, UInt64s

_SHORT = 32


@njit(cache=True, nogil=True)
def sort_in_place(values: Int32s | Int64s) -> None:
    """Sort numbers, the smallest first: by insertion if there are few, else by a heap."""
    n = len(values)
    if n <= _SHORT:
        for i in range(1, n):
            value = values[i]
            j = i
            while j > 0 and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
        return
    for start in range(n // 2 - 1, -1, -1):
        _sink(values, start, n)
    for end in range(n - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        _sink(values, 0, end)


@njit(cache=True, nogil=True)
def _sink(values: Int32s | Int64s, place: int, end: int) -> None:
    """Let the value at a place of a heap sink to where no child is larger."""
    while True:
        child = 2 * place + 1
        if child >= end:
            return
        if child + 1 < end and values[child + 1] > values[child]:
            child += 1
        if values[place] >= values[child]:
            return
        values[place], values[child] = values[child], values[place]
        place = child


@njit(cache=True, nogil=True)
def order_of(keys: Int64s | UInt64s) -> Int64s:
    """Return the places of the keys from the smallest to the largest, equal ones in their order: a merge sort."""
    n = len(keys)
    order = np.arange(n)
    other = np.empty(n, np.int64)
    width = 1
    while width < n:
        for first in range(0, n, 2 * width):
            middle, last = min(first + width, n), min(first + 2 * width, n)
            i, j = first, middle
            for k in range(first, last):
                if i < middle and (j >= last or keys[order[i]] <= keys[order[j]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order


@njit(cache=True, nogil=True)
def group(codes: Int32s, n_codes: int) -> tuple[Int64s, Int64s]:
    """Return the places of each code, as compressed rows, in ascending order."""
    ptr = np.zeros(n_codes + 1, np.int64)
    for code in codes:
        ptr[code + 1] += 1
    for i in range(n_codes):
        ptr[i + 1] += ptr[i]
    fill = ptr[:-1].copy()
    places = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        places[fill[codes[i]]] = i
        fill[codes[i]] += 1
    return ptr, places


@njit(cache=True, nogil=True)
def collect_histories(
    user_ptr: Int64s, user_rows: Int64s, row_query: Int32s, query_ptr: Int64s, query_terms: Int32s
) -> tuple[Int64s, Int32s, Int32s]:
    """Return each user's distinct terms in ascending order, and how often each occurs."""
    n_users = len(user_ptr) - 1
    n_total = 0
    for query in row_query:
        n_total += query_ptr[query + 1] - query_ptr[query]
    row_ptr = np.zeros(n_users + 1, np.int64)
    terms = np.empty(n_total, np.int32)
    counts = np.empty(n_total, np.int32)
    n = 0
    for user in range(n_users):
        size = 0
        for i in range(user_ptr[user], user_ptr[user + 1]):
            query = row_query[user_rows[i]]
            size += query_ptr[query + 1] - query_ptr[query]
        seen = np.empty(size, np.int32)
        size = 0
        for i in range(user_ptr[user], user_ptr[user + 1]):
            query = row_query[user_rows[i]]
            for j in range(query_ptr[query], query_ptr[query + 1]):
                seen[size] = query_terms[j]
                size += 1
        sort_in_place(seen)
        for i in range(size):
            if i == 0 or seen[i] != seen[i - 1]:
                terms[n], counts[n] = seen[i], 0
                n += 1
            counts[n - 1] += 1
        row_ptr[user + 1] = n
    return row_ptr, terms[:n].copy(), counts[:n].copy()


@njit(cache=True, nogil=True)
def find_words(
    row_user: Int32s,
    row_query: Int32s,
    query_ptr: Int64s,
    query_terms: Int32s,
    history_ptr: Int64s,
    history: Int32s,
    word: Int32s,
) -> tuple[Int64s, Int32s]:
    """Return what stands for the terms of each row, in their order, as compressed rows.

    `word` has what stands for each entry of the users' histories, -1 for nothing.
    """
    n_total = 0
    for query in row_query:
        n_total += query_ptr[query + 1] - query_ptr[query]
    found_ptr = np.zeros(len(row_user) + 1, np.int64)
    found = np.empty(n_total, np.int32)
    n = 0
    for row in range(len(row_user)):
        first, last = history_ptr[row_user[row]], history_ptr[row_user[row] + 1]
        for j in range(query_ptr[row_query[row]], query_ptr[row_query[row] + 1]):
            stands = word[first + np.searchsorted(history[first:last], query_terms[j])]
            if stands >= 0:
                found[n] = stands
                n += 1
        found_ptr[row + 1] = n
    return found_ptr, found[:n].copy()

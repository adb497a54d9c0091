"""Which bag of items a person may be behind: the first that has nothing the person lacks."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int32s, Int64s


@njit(cache=True, nogil=True)
def _has_all(items: Int64s, counts: Int64s, has: Int64s, has_counts: Int64s) -> bool:
    """Tell whether one ascending list with counts has all of another."""
    j = 0
    for i in range(len(items)):
        while j < len(has) and has[j] < items[i]:
            j += 1
        if j == len(has) or has[j] != items[i] or has_counts[j] < counts[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def first_that_fits(
    bag_ptr: Int64s,
    items: Int64s,
    counts: Int64s,
    user_ptr: Int64s,
    user_items: Int64s,
    user_counts: Int64s,
    posting_ptr: Int64s,
    postings: Int32s,
) -> Int32s:
    """Give the first bag whose items each user has, each at least as often, -1 where there is none.

    Items are ascending in every row; `posting_ptr` and `postings` give the users by item. A bag without items fits
    nobody.
    """
    n_users = len(user_ptr) - 1
    found = np.full(n_users, -1, np.int32)
    for bag in range(len(bag_ptr) - 1):
        first, end = bag_ptr[bag], bag_ptr[bag + 1]
        rarest, size = -1, n_users + 1
        for i in range(first, end):
            n_holders = posting_ptr[items[i] + 1] - posting_ptr[items[i]]
            if n_holders < size:
                rarest, size = items[i], n_holders
        if rarest < 0:
            continue
        for j in range(posting_ptr[rarest], posting_ptr[rarest + 1]):
            user = postings[j]
            start, stop = user_ptr[user], user_ptr[user + 1]
            if found[user] < 0 and _has_all(
                items[first:end], counts[first:end], user_items[start:stop], user_counts[start:stop]
            ):
                found[user] = bag
    return found

"""How alike documents and profiles are, for the documents that searches have found."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Floats, Int32s, Int64s


@njit(cache=True, nogil=True)
def similarities(
    found: Int32s,
    profile_of: Int64s,
    doc_ptr: Int64s,
    doc_tokens: Int32s,
    doc_weights: Floats,
    profile_ptr: Int64s,
    profile_tokens: Int32s,
    profile_weights: Floats,
    n_tokens: int,
) -> Floats:
    """Give the products of the documents of each search (a row of `found`) with the profile it is for.

    A profile of -1 is none: all products are 0. Searches for one profile that stand together share its unpacking.
    """
    n_searches, n_found = found.shape
    products = np.zeros((n_searches, n_found))
    unpacked = np.zeros(n_tokens)
    last = -1
    for i in range(n_searches):
        profile = profile_of[i]
        if profile < 0:
            continue
        if profile != last:
            if last >= 0:
                for j in range(profile_ptr[last], profile_ptr[last + 1]):
                    unpacked[profile_tokens[j]] = 0.0
            for j in range(profile_ptr[profile], profile_ptr[profile + 1]):
                unpacked[profile_tokens[j]] += profile_weights[j]
            last = profile
        for k in range(n_found):
            document = found[i, k]
            total = 0.0
            for j in range(doc_ptr[document], doc_ptr[document + 1]):
                total += doc_weights[j] * unpacked[doc_tokens[j]]
            products[i, k] = total
    return products

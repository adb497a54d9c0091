"""Kernels that find the released user who best matches what is known of a target."""

from math import log1p, sqrt

import numpy as np
from numba import njit

from queryveil.data import Floats, Int32s, Int64s

_NEARLY = 1e-9


@njit(cache=True, nogil=True)
def name_best(
    known_ptr: Int64s,
    known: Int64s,
    posting_ptr: Int64s,
    holders: Int32s,
    weight: Floats,
    n_candidates: int,
    eccentricity: float,
) -> Int64s:
    """Return the candidate with the highest score for each target, -1 where the second is too near.

    A candidate's score is the sum of the weights of the known things it holds. The best must lie above the second by
    `eccentricity` standard deviations of the scores of all candidates.
    """
    n_targets = len(known_ptr) - 1
    score = np.zeros(n_candidates)
    touched = np.empty(n_candidates, np.int32)
    named = np.full(n_targets, -1, np.int64)
    for target in range(n_targets):
        n_touched = 0
        for i in range(known_ptr[target], known_ptr[target + 1]):
            for j in range(posting_ptr[known[i]], posting_ptr[known[i] + 1]):
                candidate = holders[j]
                if score[candidate] == 0.0:
                    touched[n_touched] = candidate
                    n_touched += 1
                score[candidate] += weight[known[i]]
        best, second, total, squares = 0.0, 0.0, 0.0, 0.0
        first = np.int64(-1)
        for i in range(n_touched):
            mine = score[touched[i]]
            score[touched[i]] = 0.0
            total += mine
            squares += mine * mine
            if mine > best:
                best, second, first = mine, best, np.int64(touched[i])
            elif mine > second:
                second = mine
        mean = total / max(1, n_candidates)
        deviation = sqrt(max(0.0, squares / max(1, n_candidates) - mean * mean))
        if best - second > _NEARLY and best - second >= eccentricity * deviation - _NEARLY:
            named[target] = first
    return named


@njit(cache=True, nogil=True)
def name_likeliest(
    known_ptr: Int64s,
    item_ptr: Int64s,
    items: Int64s,
    posting_ptr: Int64s,
    holders: Int32s,
    odds: Floats,
    n_candidates: int,
    pick: Floats,
) -> Int64s:
    """Return the candidate whom all that is known favours most for each target, -1 where nobody holds any of it.

    Each known thing may stand there as any of some items: thing t as `items[item_ptr[t]:item_ptr[t + 1]]`. `odds` has
    one value above 0 for each holder of each item, beside `holders`; those of the items of one thing add up, and
    log(1 + odds) of things do. Of several who are best that one is taken which `pick`, from 0 up to 1, falls on.
    """
    n_targets = len(known_ptr) - 1
    score, part = np.zeros(n_candidates), np.zeros(n_candidates)
    touched, partly = np.empty(n_candidates, np.int32), np.empty(n_candidates, np.int32)
    named = np.full(n_targets, -1, np.int64)
    for target in range(n_targets):
        n_touched, best = 0, 0.0
        for i in range(known_ptr[target], known_ptr[target + 1]):
            n_partly = 0
            for item in items[item_ptr[i] : item_ptr[i + 1]]:
                for j in range(posting_ptr[item], posting_ptr[item + 1]):
                    candidate = holders[j]
                    if part[candidate] == 0.0:
                        partly[n_partly] = candidate
                        n_partly += 1
                    part[candidate] += odds[j]
            for candidate in partly[:n_partly]:
                if score[candidate] == 0.0:
                    touched[n_touched] = candidate
                    n_touched += 1
                score[candidate] += log1p(part[candidate])
                part[candidate] = 0.0
                best = max(best, score[candidate])
        n_best = 0
        for i in range(n_touched):
            candidate = touched[i]
            if score[candidate] > best - _NEARLY:
                touched[n_best] = candidate
                n_best += 1
            score[candidate] = 0.0
        if n_best > 0:
            named[target] = touched[int(pick[target] * n_best)]
    return named


@njit(cache=True, nogil=True)
def alone_with_few(
    own_ptr: Int64s, own: Int64s, posting_ptr: Int64s, holders: Int32s, n_candidates: int
) -> tuple[Int64s, Int32s]:
    """Return the candidates who alone hold some pair or triple of a target's own terms, as compressed rows.

    Own terms are at most 64 for each target.
    """
    n_targets = len(own_ptr) - 1
    mask = np.zeros(n_candidates, np.uint64)
    touched = np.empty(n_candidates, np.int32)
    n_by_pair, by_pair = np.zeros(64 * 64, np.int32), np.empty(64 * 64, np.int32)
    n_by_triple, by_triple = np.zeros(64 * 64 * 64, np.int32), np.empty(64 * 64 * 64, np.int32)
    marked_for = np.full(n_candidates, -1, np.int64)
    has = np.empty(64, np.int64)
    found_ptr = np.zeros(n_targets + 1, np.int64)
    found = np.empty(max(16, n_targets), np.int32)
    n_found = 0
    for target in range(n_targets):
        first, n_own = own_ptr[target], own_ptr[target + 1] - own_ptr[target]
        n_by_pair[:] = 0
        for a in range(n_own):
            for b in range(a + 1, n_own):
                n_by_triple[(a * 64 + b) * 64 : (a * 64 + b) * 64 + n_own] = 0
        n_touched = 0
        for i in range(n_own):
            for j in range(posting_ptr[own[first + i]], posting_ptr[own[first + i] + 1]):
                if mask[holders[j]] == 0:
                    touched[n_touched] = holders[j]
                    n_touched += 1
                mask[holders[j]] |= np.uint64(1) << np.uint64(i)
        for t in range(n_touched):
            candidate = touched[t]
            n_has = 0
            for i in range(n_own):
                if mask[candidate] >> np.uint64(i) & np.uint64(1):
                    has[n_has] = i
                    n_has += 1
            mask[candidate] = 0
            for a in range(n_has):
                for b in range(a + 1, n_has):
                    pair = has[a] * 64 + has[b]
                    n_by_pair[pair] += 1
                    by_pair[pair] = candidate
                    for c in range(b + 1, n_has):
                        triple = pair * 64 + has[c]
                        n_by_triple[triple] += 1
                        by_triple[triple] = candidate
        for a in range(n_own):
            for b in range(a + 1, n_own):
                pair = a * 64 + b
                for c in range(b, n_own):
                    # c is b: the pair itself.
                    alone = n_by_pair[pair] == 1 if c == b else n_by_triple[pair * 64 + c] == 1
                    candidate = by_pair[pair] if c == b else by_triple[pair * 64 + c]
                    if alone and marked_for[candidate] != target:
                        marked_for[candidate] = target
                        if n_found == len(found):
                            found = np.concatenate((found, np.empty(len(found), np.int32)))
                        found[n_found] = candidate
                        n_found += 1
        found_ptr[target + 1] = n_found
    return found_ptr, found[:n_found].copy()

"""Algorithm 1 of Zhu and Xiong: groups of similar profiles, each large enough for p-linkability."""

from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from queryveil import progress
from queryveil.data import Bools, Floats, Int8s, Int32s, Int64s
from queryveil.data.rows import Rows, group
from queryveil.errors import TooFewUsers
from queryveil.kernels import njit
from queryveil.methods.plink.profiles import TermProfiles, Vectors

_DIGITS = 1e9
"""Similarities are compared in whole billionths, so that rounding does not decide between equals."""

_FREE, _MEMBER, _DONE = 0, 1, 2


class Sparse(NamedTuple):
    """Compressed rows: `columns[ptr[r]:ptr[r + 1]]` with `values` beside them."""

    ptr: Int64s
    columns: Int32s
    values: Floats


class Enough(NamedTuple):
    """When a group is large enough: by the terms and by the members it has.

    A term is full once as many have it as `may_share` it in a group of the size to come (0: none ever is); full terms
    push further profiles away.
    """

    size: int
    members: int
    may_share: Int64s


@njit(cache=True, nogil=True)
def form_groups(
    vectors: Sparse, norms: Floats, postings: Sparse, profiles: Sparse, holdings: Sparse, enough: Enough
) -> tuple[Int32s, Floats]:
    """The group of each profile, -1 for the last ones that are too few for a group; and the length of each group.

    The first profile is the first seed; of equals the first counts. `postings` are the columns of `vectors`, `holdings`
    those of `profiles`, their values what a full term takes off a profile's similarity; both are used up.
    """
    n = len(norms)
    group_of, lengths, state = np.full(n, -1, np.int32), np.zeros(n), np.zeros(n, np.int8)
    near, is_met, met, n_met = np.zeros(n), np.zeros(n, np.bool_), np.empty(n, np.int32), 0
    push, is_pushed, pushed, n_pushed = np.zeros(n), np.zeros(n, np.bool_), np.empty(n, np.int32), 0
    from_seed, met_by_seed, n_by_seed = np.zeros(n, np.int64), np.empty(n, np.int32), 0
    ends, holding_ends = postings.ptr[1:].copy(), holdings.ptr[1:].copy()
    holders, is_full = np.zeros(len(holding_ends), np.int64), np.zeros(len(holding_ends), np.bool_)
    members = np.empty(n, np.int32)
    first_free, n_groups, n_free = 0, 0, n
    while n_free > 0:
        while state[first_free] == _DONE:
            first_free += 1
        user = _furthest(from_seed, state, first_free)
        for i in range(n_by_seed):
            from_seed[met_by_seed[i]] = 0
        size, square, n_members, is_enough = 0, 0.0, 0, False
        while True:
            # The square of the sum of the group and the profile.
            square += 2 * near[user] + norms[user] ** 2
            size += profiles.ptr[user + 1] - profiles.ptr[user]
            state[user], members[n_members] = _MEMBER, user
            n_members += 1
            is_enough = size >= enough.size and n_members >= enough.members
            if n_members == n_free or (is_enough and n_members > 1):
                break
            for i in range(vectors.ptr[user], vectors.ptr[user + 1]):
                n_met = _add(vectors.columns[i], vectors.values[i], postings, ends, state, near, is_met, met, n_met)
            if n_members == 1:
                n_by_seed = n_met
                for i in range(n_met):
                    met_by_seed[i] = met[i]
                    from_seed[met[i]] = _rounded(near[met[i]] / (norms[user] * norms[met[i]]))
            if is_enough:
                break
            full = enough.may_share[max(enough.members, n_members + 1)]
            for i in range(profiles.ptr[user], profiles.ptr[user + 1]):
                term = profiles.columns[i]
                holders[term] += 1
                # As a group grows more may share a term, so that one may become full a second time.
                if holders[term] == full and not is_full[term]:
                    is_full[term] = True
                    n_pushed = _add(term, 1.0, holdings, holding_ends, state, push, is_pushed, pushed, n_pushed)
            user = _closest(near, met[:n_met], push, norms, np.sqrt(square), state, first_free)
        for i in range(n_met):
            near[met[i]], is_met[met[i]] = 0, False
        for i in range(n_pushed):
            push[pushed[i]], is_pushed[pushed[i]] = 0, False
        n_met, n_pushed = 0, 0
        for i in range(n_members):
            for j in range(profiles.ptr[members[i]], profiles.ptr[members[i] + 1]):
                holders[profiles.columns[j]], is_full[profiles.columns[j]] = 0, False
        if not is_enough:
            break
        lengths[n_groups] = np.sqrt(square)
        group_of[members[:n_members]], state[members[:n_members]] = n_groups, _DONE
        n_groups += 1
        n_free -= n_members
    return group_of, lengths[:n_groups].copy()


@njit(cache=True, nogil=True)
def _rounded(similarity: float) -> int:
    return int(np.floor(similarity * _DIGITS + 0.5))


@njit(cache=True, nogil=True)
def _furthest(from_seed: Int64s, state: Int8s, first_free: int) -> int:
    """Return the free profile that is least similar to the last seed."""
    best = first_free
    for user in range(first_free, len(state)):
        if state[user] == _FREE and from_seed[user] < from_seed[best]:
            best = user
        if from_seed[best] == 0:
            break
    return best


@njit(cache=True, nogil=True)
def _add(
    column: int, weight: float, postings: Sparse, ends: Int64s, state: Int8s, total: Floats, is_met: Bools,
    met: Int32s, n_met: int,
) -> int:  # fmt: skip
    """Add a column to the totals of those who have it; profiles that have a group leave the postings.

    A total may stay 0 where weights are so small that their product is, hence the marks.
    """
    kept = postings.ptr[column]
    for i in range(postings.ptr[column], ends[column]):
        user = postings.columns[i]
        if state[user] == _DONE:
            continue
        if not is_met[user]:
            is_met[user], met[n_met] = True, user
            n_met += 1
        total[user] += weight * postings.values[i]
        postings.columns[kept], postings.values[kept] = user, postings.values[i]
        kept += 1
    ends[column] = kept
    return n_met


@njit(cache=True, nogil=True)
def _closest(
    near: Floats, met: Int32s, push: Floats, norms: Floats, length: float, state: Int8s, first_free: int
) -> int:
    """Return the free profile most similar to the group, what pushes it away taken off."""
    best, best_value = -1, 0
    for user in met:
        if state[user] == _FREE:
            value = _rounded(near[user] / (length * norms[user]) - push[user])
            if value > best_value or (value == best_value and 0 <= user < best):
                best, best_value = user, value
    if best >= 0:
        return best
    # Nobody is above 0, so the first at 0 is as good as any.
    best_value = np.iinfo(np.int64).min
    for user in range(first_free, len(state)):
        if state[user] == _FREE:
            value = _rounded(near[user] / (length * norms[user]) - push[user])
            if value > best_value:
                best, best_value = user, value
            if value == 0:
                break
    return best


def place_rest(group_of: Int32s, lengths: Floats, vectors: Sparse, n_nodes: int) -> Int32s:
    """Return the closest group of each profile that has none, of equals the first; groups count as they stand."""
    out = group_of.copy()
    owner = Rows(vectors.ptr, vectors.columns).row_of_entry
    is_grouped = group_of[owner] >= 0
    columns, values, entry_group = vectors.columns[is_grouped], vectors.values[is_grouped], group_of[owner[is_grouped]]
    for user in np.flatnonzero(group_of < 0):
        mine = slice(vectors.ptr[user], vectors.ptr[user + 1])
        own = np.zeros(n_nodes)
        own[vectors.columns[mine]] = vectors.values[mine]
        near = np.bincount(entry_group, weights=values * own[columns], minlength=len(lengths))
        out[user] = np.argmax(np.floor(near / (np.linalg.norm(vectors.values[mine]) * lengths) * _DIGITS + 0.5))
    return out


def as_written(p: float) -> Fraction:
    """Return the number that somebody who wrote 0.4 meant, which is not quite the binary one.

    >>> as_written(0.4)
    Fraction(2, 5)
    """
    return Fraction(str(p))


def may_share(n_members: int, *, p: float) -> int:
    """Return how many of a group's members may have a term.

    >>> may_share(5, p=0.4), may_share(4, p=0.4)
    (2, 1)
    """
    return floor(n_members * as_written(p))


def members_needed(n_users: int, *, p: float, strict: bool) -> int:
    """The least number of members of a group: 1/p, or, if groups are strict, up to twice as many where more may share.

    >>> members_needed(100, p=0.4, strict=False), members_needed(100, p=0.4, strict=True)
    (3, 5)
    """
    # Differs: profiles of the paper's experiments have one size, so that its bound on |G| means 1/p members. Where
    # sizes differ, one large profile would meet the bound alone, and its owner's terms would leave as they are.
    fewest = ceil(1 / as_written(p))
    if not strict:
        return fewest
    return max(
        range(fewest, max(fewest, min(2 * fewest - 1, n_users)) + 1), key=lambda m: Fraction(may_share(m, p=p), m)
    )


def size_needed(profiles: TermProfiles, *, p: float) -> int:
    """Return the least number of terms that a group must bring together."""
    # Paper: section 3.2; |G| >= |U|avg / p.
    return ceil(Fraction(len(profiles.terms), profiles.n_users) / as_written(p))


def grouped(
    profiles: TermProfiles, vectors: Vectors, *, p: float, strict: bool, aversion: float = 0.0, rng: np.random.Generator
) -> Int32s:
    """Return the group of each user, numbered from 0; raises if all users together are too few.

    `aversion` is what a profile loses in similarity, when groups are strict, if all its terms are full.
    """
    if profiles.n_users == 0:
        return np.zeros(0, np.int32)
    n_members = members_needed(profiles.n_users, p=p, strict=strict)
    if profiles.n_users < n_members:
        raise TooFewUsers(profiles.n_users, needed=n_members, way_out="a larger p")
    progress.step("grouping profiles")
    # Paper: algorithm 1. Differs: the paper does not say what to do with profiles that are equally far or close, and
    # most are equally far; we take the first in a random order, whose first is also the first seed.
    order = rng.permutation(profiles.n_users)
    rows = _reordered(vectors.user_nodes, vectors.weights, order)
    sizes = profiles.user_terms.lengths
    own = _reordered(profiles.user_terms, np.repeat(aversion / sizes, sizes), order)
    enough = Enough(
        size=size_needed(profiles, p=p),
        members=n_members,
        may_share=np.array([may_share(m, p=p) if strict else 0 for m in range(profiles.n_users + 1)]),
    )
    postings, holdings = _columns(rows, vectors.n_nodes), _columns(own, len(profiles.vocabulary))
    found, lengths = form_groups(rows, vectors.norms[order], postings, own, holdings, enough)
    group_of = np.empty(profiles.n_users, np.int32)
    group_of[order] = place_rest(found, lengths, rows, vectors.n_nodes)
    return group_of


def _reordered(columns: Rows[np.int32], values: Floats, order: Int64s) -> Sparse:
    ptr, places = columns.entries(order)
    return Sparse(ptr, columns.values[places], values[places])


def _columns(rows: Sparse, n_columns: int) -> Sparse:
    ptr, places = group(rows.columns, n_columns)
    owner = Rows(rows.ptr, rows.columns).row_of_entry.astype(np.int32)
    return Sparse(ptr, owner[places], rows.values[places])

"""Algorithm 1 of Zhu and Xiong: groups of similar profiles, each large enough for p-linkability."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np

from queryveil import progress
from queryveil.errors import TooFewUsers
from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.kernels.profile_groups import Enough, Sparse, form_groups, place_rest
from queryveil.kernels.rows import group
from queryveil.methods.plink_profiles import TermProfiles
from queryveil.methods.plink_similarity import Vectors

AVERSION = 4.0
"""What a profile loses in similarity, when groups are strict, if all its terms are full.

Similar people share terms, and shared terms are dropped. Of the term occurrences of 3,000 users made up like AOL's 47 %
were dropped at p=0.4 with 0 (the closest profile, whatever it shares), 6 % with 2, and 4 % with 4 to 16; members were
0.43 similar to what their group releases instead of 0.32.
"""


def as_written(p: float) -> Fraction:
    """Give the number that somebody who wrote 0.4 meant, which is not quite the binary one.

    >>> as_written(0.4)
    Fraction(2, 5)
    """
    return Fraction(str(p))


def may_share(n_members: int, *, p: float) -> int:
    """Say how many of a group's members may have a term.

    >>> may_share(5, p=0.4), may_share(4, p=0.4)
    (2, 1)
    """
    return floor(n_members * as_written(p))


def members_needed(n_users: int, *, p: float, strict: bool) -> int:
    """Give the least number of members of a group: 1/p, or, if groups are strict, up to twice as many where that helps.

    It helps where more of the members may share a term: one of three is fewer than two of five.

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
    """Give the least number of terms that a group must bring together."""
    # Paper: section 3.2; |G| >= |U|avg / p.
    return ceil(Fraction(len(profiles.terms), profiles.n_users) / as_written(p))


def grouped(profiles: TermProfiles, vectors: Vectors, *, p: float, strict: bool, rng: np.random.Generator) -> Int32s:
    """Give the group of each user, numbered from 0; raises if all users together are too few."""
    if profiles.n_users == 0:
        return np.zeros(0, np.int32)
    n_members = members_needed(profiles.n_users, p=p, strict=strict)
    if profiles.n_users < n_members:
        raise TooFewUsers(profiles.n_users, needed=n_members, way_out="a larger p")
    progress.step("grouping profiles")
    # Paper: algorithm 1. Differs: the paper does not say what to do with profiles that are equally far or close, and
    # most are equally far; we take the first in a random order, whose first is also the first seed.
    order = rng.permutation(profiles.n_users)
    rows = _reordered(Sparse(vectors.ptr, vectors.nodes, vectors.weights), order)
    push = np.repeat(AVERSION / profiles.sizes, profiles.sizes)
    own = _reordered(Sparse(profiles.ptr, profiles.terms, push), order)
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


def _reordered(rows: Sparse, order: Int64s) -> Sparse:
    sizes = np.diff(rows.ptr)[order]
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = np.repeat(rows.ptr[order] - ptr[:-1], sizes) + np.arange(ptr[-1])
    return Sparse(ptr, rows.columns[places], rows.values[places])


def _columns(rows: Sparse, n_columns: int) -> Sparse:
    ptr, places = group(rows.columns, n_columns)
    owner = np.repeat(np.arange(len(rows.ptr) - 1, dtype=np.int32), np.diff(rows.ptr))
    return Sparse(ptr, owner[places], rows.values[places])

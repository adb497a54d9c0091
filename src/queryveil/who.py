"""Who is who: which people of the original stand behind the users of a release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Floats, Int32s, Int64s
from queryveil.kernels.overlap import most_alike

_MOST_LOOKED_AT = 2_000
"""So many people are compared with a released user, and always all who share its rarest cell."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Who:
    """The people that each candidate of a release may be, as numbers of the original's users.

    Candidate c is one of `users[ptr[c]:ptr[c + 1]]`, each as likely as another. If `exact`, this is known from the ids;
    else it is an estimate: those whose history shares most with the candidate's, rare things counting more.
    """

    ptr: Int64s
    users: Int32s
    exact: bool

    @property
    def n_candidates(self) -> int:
        """The number of users, transactions or groups in the release."""
        return len(self.ptr) - 1

    def chance(self, candidate: Int64s, *, user: Int64s) -> Floats:
        """Give the chance that each candidate is the user beside it; of candidate -1 it is 0.

        >>> who = Who(ptr=np.array([0, 1, 3]), users=np.array([4, 0, 2], np.int32), exact=False)
        >>> who.chance(np.array([0, 1, 1, -1]), user=np.array([4, 2, 3, 0])).tolist()
        [1.0, 0.5, 0.0, 0.0]
        """
        asked = np.flatnonzero(candidate >= 0)
        start, end = self.ptr[candidate[asked]], self.ptr[candidate[asked] + 1]
        n_people = end - start
        place = np.arange(int(n_people.sum())) + np.repeat(start - (np.cumsum(n_people) - n_people), n_people)
        is_it = self.users[place] == np.repeat(user[asked], n_people)
        n_hits = np.bincount(np.repeat(asked, n_people), weights=is_it, minlength=len(candidate))
        chances = np.zeros(len(candidate))
        chances[asked] = n_hits[asked] / np.maximum(1, n_people)
        return chances

    def candidates_of(self, n_users: int) -> Floats:
        """Give how many candidates each user is, on average.

        >>> who = Who(ptr=np.array([0, 1, 3]), users=np.array([2, 0, 2], np.int32), exact=False)
        >>> who.candidates_of(3).tolist()
        [0.5, 0.0, 1.5]
        """
        n_people = np.diff(self.ptr)
        each = np.repeat(1 / np.maximum(1, n_people), n_people)
        return np.bincount(self.users, weights=each, minlength=n_users).astype(np.float64)

    def only(self) -> Int64s:
        """Give the user that each candidate must be, -1 where there is none or more than one."""
        found = np.full(self.n_candidates, -1, np.int64)
        alone = np.diff(self.ptr) == 1
        found[alone] = self.users[self.ptr[:-1][alone]]
        return found

    def __repr__(self) -> str:
        return f"Who(n_candidates={self.n_candidates}, exact={self.exact})"


def nobody(n_candidates: int) -> Who:
    """Say that no candidate is a person: groups are not."""
    return Who(ptr=np.zeros(n_candidates + 1, np.int64), users=np.empty(0, np.int32), exact=True)


def by_id(candidates: pl.Series, *, users: pl.Series) -> Who:
    """Take users by their ids."""
    place = pl.DataFrame({"id": users, "user": np.arange(len(users), dtype=np.int32)})
    found = candidates.alias("id").to_frame().join(place, on="id", how="left", maintain_order="left")["user"]
    is_there = found.is_not_null().to_numpy()
    ptr = np.concatenate([[0], np.cumsum(is_there)]).astype(np.int64)
    return Who(ptr=ptr, users=found.drop_nulls().to_numpy().astype(np.int32), exact=True)


def by_overlap(candidates: pl.DataFrame, *, users: pl.DataFrame, n_candidates: int, n_users: int) -> Who:
    """Estimate who is who from what both did; frames of `owner` and `cell`, a cell being any text or number.

    >>> one = pl.DataFrame({"owner": [0, 0, 1], "cell": ["a", "b", "b"]})
    >>> two = pl.DataFrame({"owner": [0, 1, 1, 2], "cell": ["b", "a", "b", "c"]})
    >>> who = by_overlap(one, users=two, n_candidates=2, n_users=3)
    >>> who.ptr.tolist(), who.users.tolist()
    ([0, 1, 3], [1, 0, 1])
    """
    distinct = users.select("cell").unique(maintain_order=True).with_row_index("code")
    theirs = users.unique().join(distinct, on="cell").sort("owner", "code")
    # A cell that nobody of the original has says nothing of anybody.
    mine = candidates.unique().join(distinct, on="cell").sort("owner", "code")
    support = np.bincount(theirs["code"].to_numpy(), minlength=distinct.height)
    by_cell = theirs.sort("code", "owner")
    found_ptr, found = most_alike(
        _ptr(mine["owner"], n_candidates),
        mine["code"].to_numpy().astype(np.int64),
        _ptr(theirs["owner"], n_users),
        theirs["code"].to_numpy().astype(np.int64),
        np.concatenate([[0], np.cumsum(support)]).astype(np.int64),
        by_cell["owner"].to_numpy().astype(np.int32),
        1 / np.log2(1.0 + support),
        _MOST_LOOKED_AT,
    )
    in_order = np.lexsort((found, np.repeat(np.arange(n_candidates), np.diff(found_ptr))))
    return Who(ptr=found_ptr, users=found[in_order], exact=False)


def _ptr(owner: pl.Series, n_owners: int) -> Int64s:
    counts = np.bincount(owner.to_numpy(), minlength=n_owners)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

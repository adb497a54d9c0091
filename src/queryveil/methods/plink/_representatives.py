"""What a group of profiles releases: its terms and their weights, as centroid or union, and what that is worth."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import GROUPS_SCHEMA, Bools, Floats, Groups, Int32s, Int64s
from queryveil.data.rows import Rows
from queryveil.methods.plink._groups import may_share
from queryveil.methods.plink.profiles import TermProfiles
from queryveil.methods.settings import Representative

_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Shared:
    """The terms of every group, by group and text, and how many members have each.

    Entry e of the profiles is of the term `place[e]` here; that is of group `group[t]` and reads `vocabulary[term[t]]`.
    """

    place: Int64s
    group: Int64s
    term: Int64s
    holders: Int64s
    members: Int64s

    @property
    def share(self) -> Floats:
        """The share of its group's members that have each term."""
        return np.asarray(self.holders / self.members[self.group], np.float64)

    def exceeds(self, p: float) -> Bools:
        """Tell which terms more than the share p of the members have."""
        limits = {m: may_share(m, p=p) for m in np.unique(self.members).tolist()}
        of_group = np.array([limits[m] for m in self.members.tolist()], np.int64)
        return np.asarray(self.holders > of_group[self.group])


def shared_terms(profiles: TermProfiles, group_of: Int32s) -> Shared:
    """Collect the terms of the members of each group."""
    by_text = profiles.vocabulary.arg_sort().to_numpy().astype(np.int64)
    n_terms = max(1, len(by_text))
    rank = np.empty(len(by_text), np.int64)
    rank[by_text] = np.arange(len(by_text))
    keys = group_of[profiles.entry_user].astype(np.int64) * n_terms + rank[profiles.terms]
    found, place, holders = np.unique(keys, return_inverse=True, return_counts=True)
    return Shared(
        place=place.astype(np.int64),
        group=found // n_terms,
        term=by_text[found % n_terms],
        holders=holders.astype(np.int64),
        members=np.bincount(group_of).astype(np.int64),
    )


def weights_of(profiles: TermProfiles, shared: Shared, representative: Representative) -> Floats:
    """Return the weight of each term in its group: the mean over all members, or the largest."""
    n_terms = len(shared.group)
    if representative is Representative.UNION:
        out = _largest(profiles.weights, shared.place, n_terms)
    else:
        # Divided first: a sum of large weights may be more than a number holds.
        parts = profiles.weights / shared.members[shared.group[shared.place]]
        out = np.bincount(shared.place, weights=parts, minlength=n_terms).astype(np.float64)
    # A weight that is rounded away would say that nobody has the term.
    return np.asarray(np.maximum(pl.Series(out).round(_DIGITS).to_numpy(), 10.0**-_DIGITS), np.float64)


def groups_of(profiles: TermProfiles, shared: Shared, weights: Floats, kept: Bools, *, with_holders: bool) -> Groups:
    """Write the groups in the order of their numbers, the kept terms of each in the order of their texts."""
    n_groups = len(shared.members)
    terms = Rows.from_entries(shared.group[kept], shared.term[kept], n_rows=n_groups)
    sizes = np.bincount(shared.group[kept], weights=shared.holders[kept], minlength=n_groups).astype(np.int64)
    frame = pl.DataFrame(
        {
            "group": np.arange(1, n_groups + 1),
            "members": shared.members,
            "size": sizes,
            "terms": terms.to_series(profiles.vocabulary.gather(terms.values)),
            "weights": terms.to_series(weights[kept]),
            "holders": terms.to_series(shared.holders[kept]) if with_holders else [None] * n_groups,
        },
        schema=GROUPS_SCHEMA,
    )
    return Groups(frame=frame)


def similarity_to_group(
    profiles: TermProfiles, group_of: Int32s, shared: Shared, weights: Floats, kept: Bools
) -> float:
    """Return the mean cosine of a member's profile with what its group releases; 0 where that is nothing."""
    if not profiles.n_users:
        return 0.0
    owner = profiles.entry_user
    # Only ratios count, and large weights have squares that no number holds.
    released = np.where(kept, weights, 0.0) / _largest(weights, shared.group, len(shared.members))[shared.group]
    mine = profiles.weights / _largest(profiles.weights, owner, profiles.n_users)[owner]
    products = np.bincount(owner, weights=mine * released[shared.place], minlength=profiles.n_users)
    length = np.sqrt(np.bincount(owner, weights=mine**2, minlength=profiles.n_users))
    of_group = np.sqrt(np.bincount(shared.group, weights=released**2, minlength=len(shared.members)))[group_of]
    return float(np.mean(products / (length * np.where(of_group > 0, of_group, 1.0))))


def _largest(values: Floats, row: Int32s | Int64s, n_rows: int) -> Floats:
    out = np.zeros(n_rows)
    np.maximum.at(out, row, values)
    return out

"""Utility for profiling: the number of queries of each user in each category."""

import numpy as np
import polars as pl

from queryveil.data import Floats, Int8s, Int64s
from queryveil.pairing import Identity, Pair
from queryveil.text.classifier import CATEGORIES, Classifier
from queryveil.utility.score import Measures, Score, kept

_N = len(CATEGORIES) + 1
"""The last one is for queries without a category."""

_ESTIMATED = "who is who was estimated, and profiles come out further from the original than they are"
_FRESH = f"ids are fresh, so {_ESTIMATED}; with --ids keyed they are measured exactly"
_CUT = f"ids are new in each window, so {_ESTIMATED}"


def category_profiles(pair: Pair) -> Measures:
    """Measure how many profiles are unchanged, and how far the others moved."""
    if not pair.n_users:
        return Measures(notes=("profiles are left out: the log has no users",))
    category = Classifier().classify(pair.queries).category
    before = _count(pair.original_rows, category, n_owners=pair.n_users)
    after = _count(pair.released_rows, category, n_owners=pair.n_candidates)
    # A released user who may be any of n people is a part of each of their profiles. With windows a person is several
    # released users, and all of them together make up the profile.
    is_cut = pair.release.manifest.parameters.get("window") is not None
    released, there = merged(after, identity=pair.identity, n_users=pair.n_users, is_cut=is_cut)
    same = there * (np.abs(before - released) < 1e-6).all(axis=1)
    moved = there * jensen_shannon(before, released) + (1.0 - there)
    notes = () if pair.identity.exact else (_CUT if is_cut else _FRESH,)
    about = "of the users have as many queries of each category as before"
    unmoved = kept("profiles_unchanged", float(same.mean()), about=about, group="profiles")
    about = "Jensen-Shannon distance of a user's categories from those before, 0 to 1, gone is 1"
    distance = Score(name="profile_distance", value=float(moved.mean()), better="less", about=about, group="profiles")
    return Measures(scores=(unmoved, distance), notes=notes)


def _count(rows: pl.DataFrame, category: Int8s, *, n_owners: int) -> Int64s:
    of_query = np.append(np.where(category < 0, _N - 1, category), _N - 1).astype(np.int64)
    # The query of a row without a term is -1, which is the last place.
    cells = rows["user"].to_numpy().astype(np.int64) * _N + of_query[rows["query"].to_numpy()]
    return np.bincount(cells, minlength=n_owners * _N).reshape(n_owners, _N).astype(np.int64)


def merged(counts: Int64s, *, identity: Identity, n_users: int, is_cut: bool) -> tuple[Floats, Floats]:
    """Return the released counts of each user, and how much of the user is there, 0 to 1.

    >>> from queryveil.data.rows import Rows
    >>> who = Identity(users=Rows.from_lists([[0], [1, 2]]), exact=False)
    >>> released, there = merged(np.array([[2, 0], [1, 4]]), identity=who, n_users=4, is_cut=False)
    >>> released.tolist(), there.tolist()
    ([[2.0, 0.0], [1.0, 4.0], [1.0, 4.0], [0.0, 0.0]], [1.0, 0.5, 0.5, 0.0])
    """
    owners = identity.users
    parts = counts / np.maximum(1, owners.lengths)[:, None]
    # One category at a time: there may be hundreds of owners to a candidate.
    of_category = (np.repeat(part, owners.lengths) for part in parts.T)
    summed = np.stack([np.bincount(owners.values, weights=each, minlength=n_users) for each in of_category], axis=1)
    weight = identity.n_candidates_of(n_users)
    there = np.minimum(1.0, weight)
    scale = np.where(weight > 0, there if is_cut else weight, 1.0)
    return summed / scale[:, None], there


def jensen_shannon(one: Int64s | Floats, other: Int64s | Floats) -> Floats:
    """Return the Jensen-Shannon distance (root of the divergence in bits) between the shares of two rows of counts.

    >>> jensen_shannon(np.array([[2, 2], [1, 0]]), np.array([[5, 5], [0, 3]])).tolist()
    [0.0, 1.0]
    """
    shares = [counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300) for counts in (one, other)]
    middle = (shares[0] + shares[1]) / 2
    ratios = [np.divide(p, middle, out=np.ones_like(p), where=p > 0) for p in shares]
    one_entropy, other_entropy = ((p * np.log2(ratio)).sum(axis=1) for p, ratio in zip(shares, ratios, strict=True))
    return np.asarray(np.sqrt(np.clip((one_entropy + other_entropy) / 2, 0.0, 1.0)), np.float64)

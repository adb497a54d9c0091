"""Is somebody in a release of which only frequencies are known? The statistic of Homer et al."""

from __future__ import annotations

import numpy as np
import polars as pl

from queryveil.groups import Groups
from queryveil.guarantees import DifferentialPrivacy
from queryveil.histories import Histories
from queryveil.kernels.arrays import Floats, Int64s
from queryveil.paired import Paired
from queryveil.release import Release
from queryveil.tallies import Tallies


def gains(population: Floats, *, released: Floats, weighted: bool) -> Floats:
    """Give what each term tells in favour of somebody who has it: released - pop, or that by the mean of both.

    >>> gains(np.array([0.25, 0.0]), released=np.array([0.75, 0.0]), weighted=True).tolist()
    [1.0, 0.0]
    """
    # Differs: Homer et al. have frequencies near a half, all of which vary alike; most terms are rare.
    pooled = (population + released) / 2
    return np.asarray((released - population) / np.where(weighted & (pooled > 0), pooled, 1.0), np.float64)


def statistic(histories: Histories, *, users: Int64s, gain: Floats, weighted: bool) -> Floats:
    """Give the sum over all terms of |x - pop| - |x - released| for some users, from each term's gain.

    >>> one = Histories(row_ptr=np.array([0, 1]), terms=np.array([0], np.int32), counts=np.array([1]), n_terms=2)
    >>> statistic(one, users=np.array([0]), gain=np.array([0.25, -0.5]), weighted=False).tolist()
    [0.75]
    """
    own = np.bincount(histories.entry_user, weights=gain[histories.terms], minlength=histories.n_users)[users]
    if weighted:
        return np.asarray(own / np.sqrt(np.maximum(1, np.diff(histories.row_ptr)[users])), np.float64)
    # Shares lie between 0 and 1: a term that is not the user's own adds pop - released, and one that is the opposite.
    return np.asarray(2 * own - gain.sum(), np.float64)


def share_of(histories: Histories, *, users: Int64s, n_terms: int) -> Floats:
    """Give the share of some users that have each term."""
    chosen = np.zeros(histories.n_users, np.bool_)
    chosen[users] = True
    n_holders = np.bincount(histories.terms[chosen[histories.entry_user]], minlength=n_terms)
    return np.asarray(n_holders / max(1, len(users)), np.float64)


def released_share(paired: Paired, *, vocabulary: pl.Series, population: Floats) -> Floats:
    """Give the share of the release that has each term; noisy counts are scaled to those of the `population`."""
    if isinstance(paired.release.promise, DifferentialPrivacy):
        return scaled(_counted(paired, n_terms=len(vocabulary)), population=population)
    if isinstance(paired.release.data, Groups):
        return _of_groups(paired.release, vocabulary=vocabulary)
    n_holders = np.bincount(paired.after.terms, minlength=len(vocabulary))
    return np.asarray(n_holders / paired.n_candidates, np.float64)


def scaled(counts: Floats, *, population: Floats) -> Floats:
    """Give counts as shares that add up to those of the same terms in the population; what has no count stays as it is.

    How many people noisy counts are of, and how many queries of each, is not told.

    >>> scaled(np.array([30.0, 10.0, 0.0]), population=np.array([0.2, 0.2, 0.1])).round(2).tolist()
    [0.3, 0.1, 0.1]
    """
    there = counts > 0
    total = float(counts[there].sum())
    share = counts * (float(population[there].sum()) / total if total else 0.0)
    return np.where(there, np.minimum(1.0, share), population)


def _counted(paired: Paired, *, n_terms: int) -> Floats:
    """Add up the counts of the queries with each term, or the made-up users who have it."""
    data = paired.release.data
    weight = data.frame["count"].to_numpy() if isinstance(data, Tallies) else np.ones(paired.n_candidates)
    counts = np.bincount(paired.after.terms, weights=weight[paired.after.entry_user], minlength=n_terms)
    return np.asarray(np.maximum(0.0, counts), np.float64)


def _of_groups(release: Release, *, vocabulary: pl.Series) -> Floats:
    """Give the share of all members that have each term, as far as it is told: a weight is taken for a share."""
    by_weight = (pl.col("weights").clip(0, 1) * pl.col("members")).alias("n")
    by_count = pl.col("holders").cast(pl.Float64).alias("n")
    frame = release.groups.frame
    told = frame["holders"].null_count() == 0
    columns = ["terms", "holders" if told else "weights"]
    entries = frame.select("members", *columns).explode(columns, empty_as_null=False)
    held = entries.select(pl.col("terms").str.replace_all(r"\s", "_"), by_count if told else by_weight)
    place = pl.DataFrame({"terms": vocabulary, "place": np.arange(len(vocabulary))})
    found = held.join(place, on="terms")
    n_holders = np.bincount(found["place"].to_numpy(), weights=found["n"].to_numpy(), minlength=len(vocabulary))
    return np.asarray(np.minimum(1.0, n_holders / release.groups.n_members), np.float64)

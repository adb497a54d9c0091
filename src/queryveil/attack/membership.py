"""Somebody who knows all that a person asked, and wonders whether the person is in the log: Homer et al."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from queryveil.attack.exposure import Exposure
from queryveil.attack.ports import Given
from queryveil.attack.scoring import draw_targets
from queryveil.errors import BadParameter
from queryveil.groups import Groups
from queryveil.guarantees import DifferentialPrivacy
from queryveil.histories import Histories, collect
from queryveil.kernels.arrays import Floats, Int64s
from queryveil.log import Format, QueryLog
from queryveil.paired import Paired
from queryveil.release import Release
from queryveil.rng import check_seed, generator
from queryveil.tallies import Tallies
from queryveil.text.codes import encode
from queryveil.text.tokens import tokenize

FALSE_POSITIVES = 0.01
"""So many of those who are not in the log may be taken for members."""
LEAST_NON_MEMBERS = 100
"""One in a hundred cannot be told from fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Know the whole history of a person and how common each term is, and tell whether the person is in the release.

    A person's statistic is the sum over all terms of |x - pop| - |x - released|: x is 1 for the person's own terms and
    0 for others, `released` is the share of the release's users, bags or members that have a term. If `weighted`, a
    term counts by how many times as common it is, and the sum is divided by the square root of the number of own terms;
    else the few common terms drown the many rare ones, and long histories the short ones.
    One half of the public log's users, drawn at random, gives `pop`; the other half are known not to be in the release,
    and the threshold is such that 1 in 100 of these is above it. Targets are people of the original; found are those
    above. Of generalised items only those that stand there as terms are looked at.
    Of noisy counts of queries, `released` is a term's part of all counts, scaled so that the released terms are as
    common in all as in the public log; a term that is not released tells nothing.

    >>> Membership().name
    'membership'
    """

    weighted: bool = True
    n_targets: int = 1000
    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.n_targets < 1:
            raise BadParameter("n_targets", self.n_targets, allowed="1 or more")
        check_seed(self.seed)

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "membership"

    def misses(self, paired: Paired, *, given: Given) -> str | None:
        """Say why it cannot attack this release."""
        if given.public is None:
            return "needs a public log of the same kind: --public FILE"
        if given.public.n_users < 2 * LEAST_NON_MEMBERS:
            return f"needs a public log of {2 * LEAST_NON_MEMBERS} people or more"
        if not paired.n_users or not paired.n_candidates:
            return "the release is empty"
        return None

    def attack(self, paired: Paired, *, given: Given) -> Exposure:
        """Set the threshold by people who are not in the release, and count the targets above it."""
        rng = generator(self.seed)
        public, vocabulary = _public(paired, given.public or paired.original)
        n_terms = len(vocabulary)
        of_public = rng.permutation(public.n_users)
        known, outside = np.split(of_public, [public.n_users // 2])
        population = _share(public, users=known, n_terms=n_terms)
        released = _released(paired, vocabulary=vocabulary, population=population)
        gain = gains(population, released=released, weighted=self.weighted)
        targets = draw_targets(np.arange(paired.n_users), n_targets=self.n_targets, rng=rng)
        threshold = above(statistic(public, users=outside, gain=gain, weighted=self.weighted))
        inside = statistic(paired.before, users=targets, gain=gain, weighted=self.weighted)
        return Exposure.counted(
            attacker=self.name,
            knows="all terms of a person, and how common they are",
            what="people",
            n_targets=len(targets),
            n_found=int((inside > threshold).sum()),
            n_by_chance=FALSE_POSITIVES * len(targets),
        )


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


def above(outside: Floats) -> float:
    """Give the lowest value that no more than 1 in 100 of those outside is above.

    >>> above(np.arange(300.0))
    296.0
    """
    return float(np.sort(outside)[::-1][int(FALSE_POSITIVES * len(outside))])


def _public(paired: Paired, log: QueryLog) -> tuple[Histories, pl.Series]:
    """Give the public histories in the numbers of the pair's terms, further terms being numbered on."""
    user, users = encode(log.frame["user"])
    tokens = tokenize(log.frame["query"], by_blanks=log.layout.format is Format.TRANSACTIONS)
    own = collect(tokens, user, n_users=len(users))
    both = pl.concat([paired.vocabulary.rename(""), tokens.vocabulary.rename("")])
    number, vocabulary = encode(both)
    terms = number[len(paired.vocabulary) :][own.terms]
    return Histories(row_ptr=own.row_ptr, terms=terms, counts=own.counts, n_terms=len(vocabulary)), vocabulary


def _share(histories: Histories, *, users: Int64s, n_terms: int) -> Floats:
    """Give the share of some users that have each term."""
    chosen = np.zeros(histories.n_users, np.bool_)
    chosen[users] = True
    n_holders = np.bincount(histories.terms[chosen[histories.entry_user]], minlength=n_terms)
    return np.asarray(n_holders / max(1, len(users)), np.float64)


def _released(paired: Paired, *, vocabulary: pl.Series, population: Floats) -> Floats:
    """Give the share of the release that has each term."""
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

"""Somebody who may add users of their own: Götz et al., why counting users is not enough."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

import numpy as np

from queryveil.attack.combinations import decoys, own_queries, times_seen
from queryveil.attack.exposure import Exposure
from queryveil.attack.planting import planted
from queryveil.attack.ports import Given
from queryveil.errors import BadParameter
from queryveil.guarantees import DifferentialPrivacy
from queryveil.kernels.arrays import Int64s
from queryveil.log import Format
from queryveil.paired import Paired
from queryveil.release import Release
from queryveil.rng import check_seed, generator

_LEAST = 2
_DECOYS_EACH = 4
"""Where noise decides, as many decoys for each target: half of them pass, so that few would tell the share badly."""
_MOST_PLANTED = 400_000
"""Where counts must be large to pass, fewer targets are tried than would need so many users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sybil:
    """Suspect that a person asked a query, let k-1 invented users ask it too, and see whether it comes through.

    Targets are people with a query of two or more terms that nobody else asked. As many decoys, combinations of common
    terms that nobody asked, are planted in the same way. The method runs once on the log with all invented users.
    A combination is taken to be somebody's if it is seen k times or more: in a log as users with a query that holds all
    of it (as rows, where queries change hands); in bags of items as bags with all of it; in groups as members, by what
    the groups tell of their terms. Found are the targets taken so, and by chance as large a share as of the decoys.
    Where noise was added to the counts of queries, k is the smallest threshold, at which about half of them pass, and
    whatever passes is taken to be somebody's.

    >>> Sybil().name
    'sybil'
    """

    n_targets: int = 50
    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.n_targets < 1:
            raise BadParameter("n_targets", self.n_targets, allowed="1 or more")
        check_seed(self.seed)

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "sybil"

    def misses(self, paired: Paired, *, given: Given) -> str | None:
        """Say why it cannot attack this release."""
        if given.remake is None:
            return "needs the method and its settings, to run it on a log with users of its own"
        if paired.release.manifest.method == "token_hash":
            return "the terms of the release are hashed"
        is_noisy = isinstance(paired.release.promise, DifferentialPrivacy)
        if is_noisy and paired.original.layout.format is Format.TRANSACTIONS:
            return "the release counts items one by one, and no combination of them"
        if not len(own_queries(paired.original).rows):
            return "nobody asked a query of two or more terms that is this person's alone"
        return None

    def attack(self, paired: Paired, *, given: Given) -> Exposure:
        """Plant, run the method, and count the targets and decoys that come through."""
        assert given.remake is not None  # misses() says so
        rng = generator(self.seed)
        k, noisy = k_of(paired.release), isinstance(paired.release.promise, DifferentialPrivacy)
        asked = own_queries(paired.original)
        n_sought = min(self.n_targets, max(1, _MOST_PLANTED // ((1 + _DECOYS_EACH) * k))) if noisy else self.n_targets
        targets = asked.some(rng.permutation(len(asked.rows))[:n_sought])
        like = targets.some(_repeated(len(targets.rows), times=_DECOYS_EACH)) if noisy else targets
        false = decoys(paired.original, like=like, rng=rng)
        both = targets.joined(false)
        release = given.remake(planted(paired.original, combinations=both, n_each=k - 1, rng=rng))
        through = times_seen(both, release=release) >= (1 if noisy else k)
        n_targets, n_decoys = len(targets.rows), len(false.rows)
        n_false = int(np.count_nonzero(through[n_targets:]))
        return Exposure.counted(
            attacker=self.name,
            knows=f"a query that a person may have asked, and plants it for {k - 1} more",
            what="people",
            n_targets=n_targets,
            n_found=int(np.count_nonzero(through[:n_targets])),
            n_by_chance=n_targets * n_false / max(1, n_decoys),
        )


def k_of(release: Release) -> int:
    """Give how many people a release asks for, or the smallest noisy count; two where it asks for none."""
    thresholds = [part.threshold for part in release.manifest.noise if part.what == "queries"]
    if thresholds:
        return max(_LEAST, min(thresholds))
    parameters = release.manifest.parameters
    k, p = parameters.get("k"), parameters.get("p")
    if isinstance(k, int) and k >= _LEAST:
        return k
    if release.manifest.method == "plink" and isinstance(p, int | float):
        return max(_LEAST, ceil(1 / p - 1e-9))
    return _LEAST


def _repeated(n: int, *, times: int) -> Int64s:
    return np.tile(np.arange(n, dtype=np.int64), times)

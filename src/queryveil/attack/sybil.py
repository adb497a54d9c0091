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
from queryveil.paired import Paired
from queryveil.release import Release
from queryveil.rng import check_seed, generator

_LEAST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sybil:
    """Suspect that a person asked a query, let k-1 invented users ask it too, and see whether it comes through.

    Targets are people with a query of two or more terms that nobody else asked. As many decoys, combinations of common
    terms that nobody asked, are planted in the same way. The method runs once on the log with all invented users.
    A combination is taken to be somebody's if it is seen k times or more: in a log as users with a query that holds all
    of it (as rows, where queries change hands); in bags of items as bags with all of it; in groups as members, by what
    the groups tell of their terms. Found are the targets taken so, and by chance as large a share as of the decoys.

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
        if not len(own_queries(paired.original).rows):
            return "nobody asked a query of two or more terms that is this person's alone"
        return None

    def attack(self, paired: Paired, *, given: Given) -> Exposure:
        """Plant, run the method, and count the targets and decoys that come through."""
        assert given.remake is not None  # misses() says so
        rng = generator(self.seed)
        k = k_of(paired.release)
        asked = own_queries(paired.original)
        targets = asked.some(rng.permutation(len(asked.rows))[: self.n_targets])
        false = decoys(paired.original, like=targets, rng=rng)
        both = targets.joined(false)
        release = given.remake(planted(paired.original, combinations=both, n_each=k - 1, rng=rng))
        through = times_seen(both, release=release) >= k
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
    """Give how many people a release asks for; two where it asks for none."""
    parameters = release.manifest.parameters
    k, p = parameters.get("k"), parameters.get("p")
    if isinstance(k, int) and k >= _LEAST:
        return k
    if release.manifest.method == "plink" and isinstance(p, int | float):
        return max(_LEAST, ceil(1 / p - 1e-9))
    return _LEAST

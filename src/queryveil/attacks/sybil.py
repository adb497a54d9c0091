"""Sybil attack: add users to the log before it is anonymized, after Götz et al."""

from dataclasses import dataclass
from math import ceil

import numpy as np

from queryveil.attacks.attacker import AuxiliaryData, Seeker
from queryveil.attacks.combinations import asked_in, decoys, own_queries, planted, times_seen, without
from queryveil.attacks.exposure import Exposure
from queryveil.data import Int64s
from queryveil.guarantees import DifferentialPrivacy
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.rng import generator

BY_CHANCE_UNDER_NOISE = (
    "how often the query leaves although the person never asked it; only the difference tells of the person"
)
"""What is by chance where noise decides what leaves."""
_LEAST = 2
FALSE_DECOYS = 0.05
"""So many decoys may be taken for queries that somebody asked."""
_NOT_ASKED_EACH = 4
"""Where noise decides, so many that nobody asked for each that somebody did: half pass, so few tell the share badly."""
_MOST_PLANTED = 400_000
"""Where counts must be large to pass, fewer targets are tried than would need so many users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sybil(Seeker):
    """Suspect that a person asked a query, let k-1 invented users ask it too, and see whether it comes through.

    Suspected are twice `n_targets` people, each of a query of two or more terms that no other has together in a query.
    Half of them, drawn at random, really asked it; from the log of the others it was taken out before the method ran,
    with all of their queries that have these terms. Who is in which half is what the attacker must tell.
    A combination is counted in a log as users with a query that holds all of it (as rows, where queries change hands),
    in bags of items as bags with all of it, in groups as members, by what the groups tell of their terms. The attacker
    takes it to be asked if it is seen more often than 19 in 20 decoys are: combinations of common terms that nobody
    asked, planted in the same way. Found are those who asked and are taken to have; by chance as large a share as of
    those who did not ask and are taken to have.
    Where noise was added to the counts of queries, k is the smallest threshold, at which about half of them pass, and
    whatever passes is taken to be asked. Decoys set no bar there: they count among what nobody asked.

    >>> Sybil().name
    'sybil'
    """

    n_targets: int = 50

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "sybil"

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:
        """Return why it cannot attack this release."""
        if auxiliary.remake is None:
            return "needs the method and its settings, to run it on a log with users of its own"
        if pair.release.manifest.method == "token_hash":
            return "the terms of the release are hashed"
        is_noisy = isinstance(pair.release.promise, DifferentialPrivacy)
        if is_noisy and pair.log.terms_are_items:
            return "the release counts items one by one, and no combination of them"
        if not len(own_queries(pair, n=1, rng=generator(self.seed)).rows):
            return "nobody asked a query of two or more terms that is this person's alone"
        return None

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        """Plant, run the method, and count who is rightly and who is wrongly taken to have asked."""
        assert auxiliary.remake is not None  # skip_reason() says so
        rng = generator(self.seed)
        k, log = k_of(pair.release), pair.log
        is_noisy = isinstance(pair.release.promise, DifferentialPrivacy)
        n_most = max(1, _MOST_PLANTED // ((1 + _NOT_ASKED_EACH) * k)) if is_noisy else self.n_targets
        suspected = own_queries(pair, n=2 * min(self.n_targets, n_most), rng=rng)
        n_asked = (len(suspected.rows) + 1) // 2
        n_not = len(suspected.rows) - n_asked
        each = np.tile(np.arange(n_asked), _NOT_ASKED_EACH - 1 if is_noisy else 1)
        combinations = suspected.joined(decoys(pair, like=suspected.some(each), rng=rng))
        with_plants = planted(log, combinations=combinations, n_each=k - 1, rng=rng)
        gone = asked_in(pair, combinations=suspected.some(np.arange(n_asked, n_asked + n_not)))
        release = auxiliary.remake(without(with_plants, rows=gone))
        taxonomy = None if pair.ancestors is None else pair.ancestors.taxonomy
        seen = times_seen(combinations, release=release, taxonomy=taxonomy)
        if is_noisy:
            bar, n_not = 0, len(seen) - n_asked
        else:
            bar = above_decoys(seen[n_asked + n_not :], n_planted=k - 1)
        through = seen[: n_asked + n_not] > bar
        n_false = int(np.count_nonzero(through[n_asked:]))
        return Exposure.counted(
            attacker=self.name,
            knows=f"a query that a person may have asked, and plants it for {k - 1} more",
            what="people",
            n_targets=n_asked,
            n_found=int(np.count_nonzero(through[:n_asked])),
            n_by_chance=n_asked * n_false / max(1, n_not),
        )


def above_decoys(seen: Int64s, *, n_planted: int) -> int:
    """Return how often at most a combination is seen that nobody asked, by decoys; without any, as often as planted.

    >>> above_decoys(np.array([0] * 96 + [3] * 4), n_planted=4), above_decoys(np.array([], np.int64), n_planted=4)
    (0, 4)
    """
    if not len(seen):
        return n_planted
    return int(np.sort(seen)[int((1 - FALSE_DECOYS) * (len(seen) - 1))])


def k_of(release: Release) -> int:
    """Return how many people a release asks for, or the smallest noisy count; two where it asks for none."""
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

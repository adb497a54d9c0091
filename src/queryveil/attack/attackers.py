"""All attackers, in the order in which a report tells of them."""

from __future__ import annotations

from collections.abc import Iterable
from secrets import randbits

from queryveil.attack.added_rows import AddedRows
from queryveil.attack.clock import Clock
from queryveil.attack.known_terms import KnownTerms
from queryveil.attack.membership import Membership
from queryveil.attack.ports import Attacker
from queryveil.attack.rare_pair import RarePair
from queryveil.attack.rebuild_1 import Rebuild1
from queryveil.attack.rebuild_2 import Rebuild2
from queryveil.attack.rebuild_3 import Rebuild3
from queryveil.attack.rebuild_4 import Rebuild4
from queryveil.attack.shared_term import SharedTerm
from queryveil.attack.swapped import OnSwapped, Sight
from queryveil.attack.sybil import Sybil
from queryveil.attack.token_inversion import TokenInversion
from queryveil.attack.vanity import Vanity
from queryveil.errors import BadParameter
from queryveil.guarantees import SwapAnonymity
from queryveil.release import Release
from queryveil.rng import check_seed

KNOWN = (2, 3, 4, 6, 8)
"""How many terms of a target are known to those who know some."""
N_WRONG = 2
_SEED_BITS = 63


def attackers(
    release: Release, *, n_targets: int = 1000, seed: int | None = None, only: Iterable[str] = ()
) -> list[Attacker]:
    """Give everybody there is, or those that are named, set up for a release; not all of them will fit it.

    A name stands for all settings of that attacker: `known_terms` for any number of terms, `rebuild_1` for both orders.
    """
    check_seed(seed)
    # The same people and facts are drawn for what stands side by side: the release, and the original beside it.
    seed = randbits(_SEED_BITS) if seed is None else seed
    if n_targets < 1:
        raise BadParameter("n_targets", n_targets, allowed="1 or more")
    crowd: list[Attacker] = [
        *(KnownTerms(n_known=n, n_wrong=w, n_targets=n_targets, seed=seed) for w in (0, N_WRONG) for n in KNOWN),
        *(KnownTerms(n_known=n, cautious=False, n_targets=n_targets, seed=seed) for n in KNOWN),
        RarePair(n_targets=n_targets, seed=seed),
        Vanity(n_targets=n_targets, seed=seed),
        Clock(n_targets=n_targets, seed=seed),
        Membership(n_targets=n_targets, seed=seed),
        Sybil(seed=seed),
        TokenInversion(seed=seed),
        AddedRows(seed=seed),
        SharedTerm(),
        *_of_swap(release, seed=seed),
    ]
    wanted = set(only)
    there = list(dict.fromkeys(_plain(attacker.name) for attacker in crowd))
    for name in sorted(wanted - set(there)):
        raise BadParameter("only", name, allowed=f"one of {', '.join(there)}")
    return [attacker for attacker in crowd if not wanted or _plain(attacker.name) in wanted]


def _of_swap(release: Release, *, seed: int | None) -> list[OnSwapped]:
    promise, sight = release.promise, Sight()
    # Whoever fits no release at all is listed once.
    k = promise.k if isinstance(promise, SwapAnonymity) else 2
    growth = release.manifest.parameters.get("growth")
    growth = growth if isinstance(growth, float) else 1.2
    rebuilders = [
        kind(k=k, growth=growth, by_time=by_time, seed=seed)
        for kind in (Rebuild1, Rebuild2, Rebuild3, Rebuild4)
        for by_time in (False, True)
    ]
    return [OnSwapped(sight=sight), *(OnSwapped(rebuilding=one, sight=sight) for one in rebuilders)]


def _plain(name: str) -> str:
    return name.removesuffix("+T")

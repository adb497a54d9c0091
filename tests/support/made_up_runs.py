"""Results of runs that were never done, to compare."""

from __future__ import annotations

from queryveil.attacks.attacker import Exposure
from queryveil.attacks.suite import Attacks, Attempt, Skipped
from queryveil.comparison.comparison import Comparison
from queryveil.comparison.judged import ComparisonInput, Judged, Standing
from queryveil.comparison.plan import Plan, Run
from queryveil.guarantees import Guarantee, KmAnonymity, NoPromise
from queryveil.testing import tiny_log
from queryveil.utility.score import Score


def found(
    attacker: str,
    n_found: int,
    *,
    n_targets: int = 1000,
    by_chance: float = 1.0,
    n_known: int | None = None,
    what: str = "people",
) -> Exposure:
    """What an attacker might have found."""
    return Exposure(
        attacker=attacker,
        knows="something",
        what=what,
        n_targets=n_targets,
        n_found=n_found,
        n_by_chance=by_chance,
        n_known=n_known,
    )


def judged(
    name: str,
    *exposures: Exposure,
    kept: float | None = None,
    distance: float | None = None,
    standing: Standing = "holds",
    skipped: tuple[Skipped, ...] = (),
    failed: str = "",
) -> Judged:
    """A run as it might have come out: `kept` is its log_size_kept, `distance` a measure of which less is better."""
    scores = []
    if kept is not None:
        scores.append(Score(name="log_size_kept", value=kept, better="more", about="kept", is_share=True))
    if distance is not None:
        scores.append(Score(name="profile_distance", value=distance, better="less", about="apart"))
    promise: Guarantee = NoPromise(reason="a test") if standing == "promises nothing" else KmAnonymity(k=5, m=2)
    attempts = tuple(Attempt(after=exposure, before=None) for exposure in exposures)
    return Judged(
        run=Run(name=name, method="km", settings={"k": 5, "m": 2}),
        fingerprint="f",
        standing=standing,
        verdict="The promise is broken: 1 violation." if standing == "broken" else "",
        promise=None if failed else promise,
        attacks=None if failed else Attacks(attempts=attempts, skipped=skipped),
        scores=tuple(scores),
        seconds={"anonymize": 1.0, "attack": 0.5},
        failed=failed,
    )


def known(n_found: int, *, n_targets: int = 1000) -> Exposure:
    """What `known_terms:4` might have found."""
    return found("known_terms", n_found, n_targets=n_targets, n_known=4)


def side_by_side(*runs: Judged, limit: float = 0.05, exposure: str = "known_terms:4") -> Comparison:
    """Compare made-up results."""
    plan = Plan(runs=tuple(each.run for each in runs if each.run is not None), limit=limit, exposure=exposure)
    original = Judged(
        run=None,
        fingerprint="f",
        standing="promises nothing",
        attacks=Attacks(attempts=(Attempt(after=known(900), before=None),)),
    )
    return Comparison.of(runs, original=original, plan=plan, inputs=ComparisonInput(log=tiny_log()))

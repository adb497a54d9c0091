"""Results of runs that were never done, to compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    measured: Mapping[str, float] | None = None,
) -> Judged:
    """A run as it might have come out: `kept` is its log_size_kept, `distance` a measure of which less is better."""
    scores = [
        Score(name=name, value=value, better="more", about="", is_share=True)
        for name, value in (measured or {}).items()
    ]
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
    return found("known_terms", n_found, n_targets=n_targets, by_chance=n_targets / 1000, n_known=4)


def side_by_side(*runs: Judged, **judging: Any) -> Comparison:
    """Compare made-up results, judged as a plan says."""
    plan = Plan(runs=tuple(each.run for each in runs if each.run is not None), **judging)
    original = Judged(
        run=None,
        fingerprint="f",
        standing="promises nothing",
        attacks=Attacks(attempts=(Attempt(after=known(900), before=None),)),
    )
    return Comparison.of(runs, original=original, plan=plan, inputs=ComparisonInput(log=tiny_log()))


def many_kinds() -> tuple[Judged, ...]:
    """Runs of every outcome, judged by attackers of several readers, and measured for two purposes."""
    few = found("vanity", 0, n_targets=20)

    def serves(trends: float | None = None, ranking: float | None = None) -> dict[str, float]:
        values = {"trends_kept": trends, "ranking_kept": ranking}
        return {name: value for name, value in values.items() if value is not None}

    return (
        judged(
            "method k=2", known(300), found("clock", 400, n_known=5), kept=0.9, measured=serves(trends=0.7, ranking=0.2)
        ),
        judged("method k=5", known(30), found("neighbour", 560, by_chance=500), kept=0.7, measured=serves(trends=0.9)),
        judged("method k=9", known(3), found("site_owner", 200), kept=0.6, measured=serves(trends=0.3, ranking=0.9)),
        judged("groups p=0.4", found("shared_term", 310, by_chance=311), kept=0.5, measured=serves(ranking=0.8)),
        judged(
            "groups p=0.2", found("shared_term", 160, by_chance=311), known(9), kept=0.3, measured=serves(ranking=0.3)
        ),
        judged("</script> & such", few, known(0), kept=0.4, measured=serves(trends=0.2, ranking=0.4)),
        judged("too little", known(0, n_targets=20), kept=0.8, measured=serves(trends=0.8)),
        judged("nobody", kept=0.2, measured=serves(trends=0.1)),
        judged("no words", known(1)),
        judged("empty", known(0), kept=0.0, measured=serves(trends=0.0, ranking=0.0)),
        judged("open", known(990), found("vanity", 20, n_targets=20), kept=1.0, standing="promises nothing"),
        judged("gone", failed="too few users", standing="failed"),
    )

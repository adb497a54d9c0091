"""The verb: attack a release with everybody who fits it, and the original beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from queryveil import progress
from queryveil.attack.attackers import attackers
from queryveil.attack.attacks import Attacks, Attempt, Skipped
from queryveil.attack.people import Person
from queryveil.attack.ports import Attacker, Given
from queryveil.errors import BadInput, MissingExtra
from queryveil.formats import read_log
from queryveil.log import QueryLog
from queryveil.paired import Paired, another_log, pseudonymised
from queryveil.release import Release, read_release
from queryveil.text.taxonomy import Taxonomy


def attack(
    original: QueryLog | Path | str,
    release: Release | Path | str,
    *,
    key: bytes | None = None,
    taxonomy: Taxonomy | None = None,
    public: QueryLog | None = None,
    people: Sequence[Person] = (),
    remake: Callable[[QueryLog], Release] | None = None,
    only: Iterable[str] = (),
    n_targets: int = 1000,
    seed: int | None = None,
) -> Attacks:
    """Let every attacker that fits try a release, and the pseudonymised original beside it.

    Attackers never see the `original` but for what they are said to know; it is there to judge them. Some need more: a
    `public` log of the same kind by other people, a directory of `people`, or `remake`, the method of the release, to
    run it on a log with users of their own. `key` is that of keyed ids or hashed terms, `taxonomy` the one that items
    moved up in if it is not WordNet. At most `n_targets` people are
    sought by each. `only` names the attackers to run.
    """
    log = original if isinstance(original, QueryLog) else read_log(original)
    judged = release if isinstance(release, Release) else read_release(release)
    if reason := another_log(log.n_rows, release=judged):
        # By another log nobody would be found, as if the release were safe.
        raise BadInput(reason)
    given = Given(public=public, people=people, remake=remake, key=key)
    progress.step("telling who is who")
    after = Paired.of(log, release=judged, key=key, taxonomy=taxonomy)
    before = Paired.pseudonymised(log)
    return run(attackers(judged, n_targets=n_targets, seed=seed, only=only), after, before=before, given=given)


def run(crowd: Sequence[Attacker], after: Paired, *, before: Paired | None, given: Given) -> Attacks:
    """Let attackers try a release, and if it is given the pseudonymised original beside it."""
    # Nothing was promised of the original, so whoever adds users to it finds them all.
    given_before = replace(given, remake=pseudonymised)
    attempts, skipped = [], []
    for i, attacker in enumerate(crowd):
        progress.step(f"attacking: {attacker.name}", i / len(crowd))
        reason = attacker.misses(after, given=given)
        if reason is not None:
            skipped.append(Skipped(attacker=attacker.name, reason=reason))
            continue
        try:
            found = attacker.attack(after, given=given)
        except MissingExtra as error:
            # The method of the release cannot be run here, and whoever needs it cannot attack.
            reason = f"needs the extra {error.extra} (pip install 'queryveil[{error.extra}]')"
            skipped.append(Skipped(attacker=attacker.name, reason=reason))
            continue
        found_before = None
        if before is not None and attacker.misses(before, given=given_before) is None:
            found_before = attacker.attack(before, given=given_before)
        attempts.append(Attempt(after=found, before=found_before))
    return Attacks(attempts=tuple(attempts), skipped=_once(skipped), exact=after.who.exact)


def _once(skipped: Iterable[Skipped]) -> tuple[Skipped, ...]:
    return tuple(dict.fromkeys(skipped))

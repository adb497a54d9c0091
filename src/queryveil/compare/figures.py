"""One figure of a run by its name: an exposure such as `known_terms:4`, a utility such as `log_size_kept`."""

from __future__ import annotations

from queryveil.attack.attackers import attackers
from queryveil.attack.exposure import Exposure
from queryveil.compare.judged import Judged
from queryveil.errors import BadParameter
from queryveil.log import QueryLog
from queryveil.paired import pseudonymised
from queryveil.utility.score import Score

WORST = "worst"
PEOPLE = "people"
ACTIVE = "sybil"
"""The attacker who adds users before a log is anonymized; no method that counts to k promises anything against it."""


def check_exposure(name: str) -> None:
    """Raise if there is no such attacker."""
    attacker, n_known = _parted(name)
    everybody = attackers(pseudonymised(QueryLog.from_frame({"user": [], "query": []})))
    there = {(each.name, getattr(each, "n_known", None)) for each in everybody}
    names = {each for each, _ in there}
    if name != WORST and ((attacker, n_known) not in there if n_known is not None else attacker not in names):
        shown = sorted({f"{each}:{n}" if n and each.endswith("_terms") else each for each, n in there})
        raise BadParameter("exposure", name, allowed=f"{WORST} or one of {', '.join(shown)}")


def exposure_in(judged: Judged, name: str) -> Exposure | None:
    """Give what an attacker found, None if it did not run.

    A name without a number stands for the setting that knows most. `worst` is who finds the largest share of people
    among those who beat blind guessing, or among all if nobody does; but for the attacker who adds users.
    """
    if judged.attacks is None:
        return None
    found = [attempt.after for attempt in judged.attacks.attempts if attempt.after.n_targets]
    if name == WORST:
        # A share of rows or of hashed terms is another thing than a share of people.
        of_people = [one for one in found if one.what == PEOPLE and one.attacker != ACTIVE]
        better = [one for one in of_people if one.beats_chance] or of_people
        return max(better, key=lambda one: (one.share, one.n_targets), default=None)
    attacker, n_known = _parted(name)
    fitting = [one for one in found if one.attacker == attacker and one.n_wrong == 0]
    fitting = [one for one in fitting if n_known is None or one.n_known == n_known]
    return max(fitting, key=lambda one: one.n_known or 0, default=None)


def alarms(judged: Judged, *, limit: float) -> list[Exposure]:
    """Give who beats blind guessing and finds more than the limit: the worst for people, who adds users, and the rest.

    Of the rest, who look for rows or hashed terms, it is the one who finds most.
    """
    attempts = () if judged.attacks is None else judged.attacks.attempts
    others = [one.after for one in attempts if one.after.what != PEOPLE and one.after.attacker != ACTIVE]
    found = [
        exposure_in(judged, WORST),
        exposure_in(judged, ACTIVE),
        max(others, key=lambda one: one.share, default=None),
    ]
    return [one for one in found if one is not None and one.beats_chance and one.share > limit]


def reason_for(judged: Judged, name: str) -> str:
    """Say why an exposure is not there."""
    skipped = () if judged.attacks is None else judged.attacks.skipped
    attacker, _ = _parted(name)
    reason = next((one.reason for one in skipped if one.attacker == attacker), "there was nobody to look for")
    return f"{attacker} does not apply: {reason}"


def utility_in(judged: Judged, name: str) -> Score | None:
    """Give the score of a name, None if it was not measured."""
    return next((score for score in judged.scores if score.name == name), None)


def label(found: Exposure) -> str:
    """Give the name of an exposure, as in `--exposure`.

    >>> one = Exposure.counted(attacker="known_terms", knows="", n_targets=9, n_found=1, n_by_chance=0, n_known=4)
    >>> label(one)
    'known_terms:4'
    """
    known = "" if found.n_known is None else f":{found.n_known}"
    return f"{found.attacker}{known}" + (f", {found.n_wrong} wrong" if found.n_wrong else "")


def _parted(name: str) -> tuple[str, int | None]:
    """Part the attacker from what it knows.

    >>> _parted("known_terms:4"), _parted("clock")
    (('known_terms', 4), ('clock', None))
    """
    attacker, colon, number = name.partition(":")
    if colon and not (number.isascii() and number.isdigit()):
        raise BadParameter("exposure", name, allowed="an attacker and how much it knows, such as known_terms:4")
    return attacker, int(number) if number else None

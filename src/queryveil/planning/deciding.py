"""Which of the runs that were judged is released, why not a more useful one, and what would let one through."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from queryveil.attacks import Exposure
from queryveil.attacks.limits import GUESSED, Limit, Ruling, is_beyond, n_targets_needed
from queryveil.attacks.names import base_name
from queryveil.comparison.judged import Judged
from queryveil.html_tables import percent
from queryveil.utility.score import Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One run, what it keeps for the purpose, and what the limit says of it.

    - `judged`: what came of the run.
    - `limit`: the limit.
    - `ruling`: what the limit says of the attackers that were tried.
    - `utility`: the score of the purpose; None if it was not measured.
    """

    judged: Judged
    limit: Limit
    ruling: Ruling
    utility: Score | None

    @classmethod
    def of(cls, judged: Judged, *, limit: Limit, measure: str) -> Self:
        utility = next((score for score in judged.scores if score.name == measure), None)
        return cls(judged=judged, limit=limit, ruling=limit.ruling(judged.exposures), utility=utility)

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.judged.name

    @property
    def useful(self) -> float:
        """How much it keeps for the purpose; 0 if that was not measured."""
        return 0.0 if self.utility is None else self.utility.value

    @property
    def keeps(self) -> str:
        """What it keeps for the purpose, in words."""
        return "not measured" if self.utility is None else f"{self.utility.title} {self.utility.written}"

    @property
    def is_promised(self) -> bool:
        """Whether it keeps something for the purpose, and what it promises."""
        return self.judged.standing == "holds" and not self.judged.failed and self.useful > 0

    @property
    def is_whole(self) -> bool:
        """Whether it was attacked to the end, so that one knows what all attackers find in it."""
        return self.judged.attacks is not None and not self.judged.failed and not self.judged.stopped_by

    @property
    def qualifies(self) -> bool:
        """Whether it may be released: its promise holds, and no attacker that counts is above the limit."""
        return self.is_promised and self.is_whole and self.ruling.is_met

    @property
    def untold(self) -> tuple[Exposure, ...]:
        """The attackers above the limit for want of targets alone: they did not find so many."""
        few = (found for found in self.ruling.over if found in self.ruling.too_few)
        return tuple(found for found in few if not is_beyond(found, self.limit))

    @property
    def why_not(self) -> str:
        """What speaks against it, in half a sentence; empty if nothing does."""
        judged = self.judged
        if judged.failed:
            return judged.failed
        if judged.standing != "holds":
            return judged.standing if judged.standing != "broken" else f"its promise is broken: {judged.verdict}"
        if self.ruling.over:
            # Who is sure to find too much says more than who has too few targets to show anything.
            against = next((found for found in self.ruling.over if found not in self.untold), None)
            return f"{in_words(self.untold[0])}; too few to tell" if against is None else in_words(against)
        if not self.is_whole or not self.ruling.n_considered:
            return "no attacker of these readers can be tried on it"
        if self.utility is None:
            return "what it keeps for the purpose was not measured"
        return "" if self.useful > 0 else "it keeps nothing for the purpose"


def in_words(found: Exposure) -> str:
    """Say what an attacker found, as the rule takes it.

    >>> in_words(Exposure(attacker="vanity", knows="", what="people", n_targets=200, n_found=10, n_by_chance=0))
    'vanity finds 5 % of its 200 people (95 % interval 2.74 % to 8.96 %)'
    """
    chance = f"; blind guessing {percent(found.chance_share)}" if found.chance_share >= GUESSED else ""
    whose = f"{percent(found.share)} of its {found.n_targets:,} {found.what}"
    return f"{found.title} finds {whose} ({found.interval_in_words}{chance})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """A change of what was asked under which a run would qualify.

    - `finding`: the most useful run that would.
    - `limit`: what would have to be asked.
    - `option`: how to ask for it.
    """

    finding: Finding
    limit: Limit
    option: str

    def in_words(self) -> str:
        """Say what the change would give."""
        return f"{self.option} lets {self.finding.name} through ({self.finding.keeps})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What follows from the runs that were judged on the whole log.

    - `limit`, `measure`: what was asked.
    - `findings`: all runs: those that qualify first, the most useful first.
    """

    limit: Limit
    measure: str
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, found: Iterable[Judged], *, limit: Limit, measure: str) -> Self:
        """Judge runs by a limit; what was found does not depend on it, so that more qualify under a higher one."""
        findings = [Finding.of(judged, limit=limit, measure=measure) for judged in found]
        # Of runs as useful as each other the safer is released; names settle the rest.
        findings.sort(key=lambda one: (not one.qualifies, -one.useful, one.ruling.risk, one.name))
        return cls(limit=limit, measure=measure, findings=tuple(findings))

    def but(self, found: Iterable[Finding]) -> "Decision":
        """Return what follows if these runs came out as found, and not as before."""
        changed = {one.name: one.judged for one in found}
        judged = [changed.get(one.name, one.judged) for one in self.findings]
        return Decision.of(judged, limit=self.limit, measure=self.measure)

    @property
    def qualified(self) -> tuple[Finding, ...]:
        """The runs that may be released, the most useful first."""
        return tuple(one for one in self.findings if one.qualifies)

    @property
    def picked(self) -> Finding | None:
        """The most useful run that may be released."""
        return next(iter(self.qualified), None)

    @property
    def unpromised(self) -> tuple[Finding, ...]:
        """The runs that promise nothing, which are never picked."""
        return tuple(one for one in self.findings if one.judged.standing == "promises nothing")

    def more_useful(self) -> tuple[Finding, ...]:
        """Return the runs that would keep more than the one that is picked but may not be released."""
        least = 0.0 if self.picked is None else self.picked.useful
        return tuple(
            one
            for one in self.findings
            if not one.qualifies and one.useful > least and one.judged.standing != "promises nothing"
        )

    def too_few(self) -> tuple[Exposure, ...]:
        """Return the attackers whose targets are too few for the limit in every run that was judged to the end."""
        whole = [one for one in self.findings if one.is_promised and one.is_whole]
        if not whole:
            return ()
        named = [{base_name(found.attacker): found for found in one.ruling.too_few} for one in whole]
        return tuple(found for name, found in named[0].items() if all(name in others for others in named[1:]))

    def relaxations(self) -> tuple[Relaxation, ...]:
        """Return the least changes that would let a run through: a higher limit, exceptions, or one reader alone."""
        whole = [one for one in self.findings if one.is_promised and one.is_whole and one.ruling.n_considered]
        found = [self._nearest(whole)] if whole else []
        names = dict.fromkeys(base_name(over.attacker) for one in whole for over in one.ruling.over)
        for name in names:
            changed = replace(self.limit, exceptions={**self.limit.exceptions, name: "to be given"})
            found += self._through(whole, changed, option=f"--except {name}=REASON")
        found += self._without_untold(whole)
        for reader in self.limit.readers if len(self.limit.readers) > 1 else ():
            found += self._through(whole, replace(self.limit, readers=(reader,)), option=f"--reader {reader}")
        return tuple(found)

    def _nearest(self, whole: Sequence[Finding]) -> Relaxation:
        nearest = min(whole, key=lambda one: (one.ruling.risk, -one.useful, one.name))
        # Rounded up to a tenth of a per cent, as people type it.
        share = min(1.0, -(-nearest.ruling.risk * 1000 // 1) / 1000)
        return Relaxation(finding=nearest, limit=replace(self.limit, share=share), option=f"--limit {share * 100:.3g}%")

    def _without_untold(self, whole: Sequence[Finding]) -> list[Relaxation]:
        """Leave out the attackers with too few targets, where several of them are all that stands against a run."""
        able = [one for one in whole if one.ruling.over and len(one.untold) == len(one.ruling.over)]
        named = [tuple(dict.fromkeys(base_name(found.attacker) for found in one.untold)) for one in able]
        several = [names for names in named if len(names) > 1]
        if not several:
            return []
        # Of those that leave out the fewest the first, which is the most useful.
        names = min(several, key=len)
        changed = replace(self.limit, exceptions={**self.limit.exceptions, **dict.fromkeys(names, "to be given")})
        return self._through(whole, changed, option=" ".join(f"--except {name}=REASON" for name in names))

    def _through(self, whole: Sequence[Finding], limit: Limit, *, option: str) -> list[Relaxation]:
        through = Decision.of((one.judged for one in whole), limit=limit, measure=self.measure).picked
        return [] if through is None else [Relaxation(finding=through, limit=limit, option=option)]


def targets_in_words(too_few: Iterable[Exposure], *, limit: float) -> str:
    """Say how many targets attackers have and need."""
    said = [
        f"{found.title} has {found.n_targets:,} {found.what} and needs "
        f"{n_targets_needed(limit, chance_share=found.chance_share):,}"
        for found in too_few
    ]
    return "; ".join(said)


def spoken_against(finding: Finding) -> float:
    """Return by how much the attacker who finds most is sure to find more than blind guessing; 0 if nobody attacked."""
    ends = [
        found.interval[0] - (found.chance_share if found.chance_share >= GUESSED else 0.0)
        for found in (*finding.ruling.over, *((finding.ruling.binding,) if finding.ruling.binding else ()))
    ]
    return float(max((0.0, *ends)))


def is_ruled_out(finding: Finding, *, share: float) -> bool:
    """Return whether a run that was judged on a share of the users is above the limit on all of them.

    Exposure falls with the number of users at most in proportion: a person is one of twice as many. So a run that is
    above the limit on a sample may pass on the whole log, unless the sure part of what was found is above the limit
    even when scaled down by the share of users in the sample.
    """
    return spoken_against(finding) * share > finding.limit.share


def to_go_on_with(findings: Sequence[Finding], *, share: float) -> tuple[Finding, ...]:
    """Return the runs that are worth judging on more users, the most promising first: half of them, or eight.

    - `share`: the share of the users of the log that the runs were judged on.
    """
    known = [one for one in findings if one.judged.standing in ("holds", "failed", "promises nothing")]
    possible = [one for one in known if not is_ruled_out(one, share=share)]
    possible.sort(key=lambda one: -one.useful)
    within = [one for one in possible if not is_ruled_out(one, share=1.0)]
    above = [one for one in possible if is_ruled_out(one, share=1.0)]
    n_most = max(_FEWEST, (len(findings) + 1) // 2)
    # By turns: the useful ones may all turn out to be above the limit, the safe ones to keep nothing.
    turns = [one for both in _zip_longest(within, above) for one in both]
    return tuple(turns[:n_most])


_FEWEST = 8


def _zip_longest(one: Sequence[Finding], other: Sequence[Finding]) -> Iterable[tuple[Finding, ...]]:
    return ((*one[i : i + 1], *other[i : i + 1]) for i in range(max(len(one), len(other))))

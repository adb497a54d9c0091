"""What all attackers together found."""

from __future__ import annotations

from dataclasses import dataclass

from queryveil.attack.exposure import Exposure
from queryveil.html_tables import percent, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attacker: what it found in the release (`after`), and in the log with nothing but the ids changed (`before`).

    `before` is None where the attack means nothing there.
    """

    after: Exposure
    before: Exposure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """An attacker that did not run, and why."""

    attacker: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacks:
    """All attempts on a release, and the attackers that did not fit it.

    If not `exact`, the release has fresh ids, and who is who was estimated: a right guess at a candidate who may be one
    of n people counts 1/n.
    """

    attempts: tuple[Attempt, ...]
    skipped: tuple[Skipped, ...] = ()
    exact: bool = True

    def named(self, attacker: str, *, n_known: int | None = None, n_wrong: int = 0) -> Attempt | None:
        """Give the attempt of an attacker, None if it did not run."""
        for attempt in self.attempts:
            found = attempt.after
            if (found.attacker, found.n_known, found.n_wrong) == (attacker, n_known, n_wrong):
                return attempt
        return None

    def _repr_html_(self) -> str:
        columns = ["attacker", "knows", "before", "after", "95 % interval", "blind guessing"]
        rows = [
            [
                found.title,
                found.knows,
                None if attempt.before is None else percent(attempt.before.share),
                percent(found.share),
                f"{percent(found.interval[0])} to {percent(found.interval[1])}",
                percent(found.chance_share),
            ]
            for attempt in self.attempts
            for found in (attempt.after,)
        ]
        tables = [table(columns, rows=rows, caption="What attackers found: shares of their targets")]
        if not self.exact:
            tables.append(table(("note",), rows=[("who is who was estimated, since ids do not tell it",)]))
        if self.skipped:
            skipped = [[each.attacker.replace("_", " "), each.reason] for each in self.skipped]
            tables.append(table(["did not run", "because"], rows=skipped))
        return "\n".join(tables)

    def to_dict(self) -> dict[str, object]:
        """Give all figures, for machines."""
        return {
            "exact": self.exact,
            "attempts": [
                {"after": a.after.to_dict(), "before": None if a.before is None else a.before.to_dict()}
                for a in self.attempts
            ],
            "skipped": [{"attacker": s.attacker, "reason": s.reason} for s in self.skipped],
        }

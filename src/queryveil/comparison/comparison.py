"""The result of a comparison: exposure and utility of each run, the frontier, and the best run under a limit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from queryveil.attacks import Exposure, attackers
from queryveil.comparison.judged import ComparisonInput, Judged
from queryveil.comparison.methods import command
from queryveil.comparison.plan import Plan
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.html_tables import percent, table
from queryveil.pairing import ESTIMATED, pseudonymised
from queryveil.utility.score import Score


def frontier(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the Pareto-optimal points of exposure (less is better) and utility (more), by exposure.

    One that is as good in one and better in the other beats a point; of equal ones all stay.
    """
    kept: list[int] = []
    for i in sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1])):
        if not kept or points[i][1] > points[kept[-1]][1] or points[i] == points[kept[-1]]:
            kept.append(i)
    return kept


WORST = "worst"
PEOPLE = "people"
ACTIVE = ("sybil", "sybil_early")
"""Attackers who add users before a log is anonymized; no method that counts to k promises anything against it."""


def check_exposure(name: str) -> None:
    """Raise if there is no such attacker."""
    attacker, n_known = _split(name)
    everybody = attackers(pseudonymised(QueryLog.from_frame({"user": [], "query": []})))
    there = {(each.name, getattr(each, "n_known", None)) for each in everybody}
    names = {each for each, _ in there}
    if name != WORST and ((attacker, n_known) not in there if n_known is not None else attacker not in names):
        shown = sorted({f"{each}:{n}" if n and each.endswith("_terms") else each for each, n in there})
        raise BadParameter("exposure", name, allowed=f"{WORST} or one of {', '.join(shown)}")


def exposure_in(judged: Judged, name: str) -> Exposure | None:
    """Return what an attacker found, None if it did not run.

    A name without a number stands for the setting that knows most. `worst` is the attacker with the largest share of
    people found (sybil excluded), among those above chance if there are any.
    """
    found = [one for one in judged.exposures if one.n_targets]
    if name == WORST:
        # A share of rows or of hashed terms is another thing than a share of people.
        of_people = [one for one in found if one.what == PEOPLE and one.attacker not in ACTIVE]
        better = [one for one in of_people if one.beats_chance] or of_people
        return max(better, key=lambda one: (one.share, one.n_targets), default=None)
    attacker, n_known = _split(name)
    fitting = [one for one in found if one.attacker == attacker and one.n_wrong == 0 and n_known in (None, one.n_known)]
    return max(fitting, key=lambda one: one.n_known or 0, default=None)


def utility_in(judged: Judged, name: str) -> Score | None:
    return next((score for score in judged.scores if score.name == name), None)


def label(found: Exposure) -> str:
    """Return the name of an exposure, as in `--exposure`.

    >>> one = Exposure(attacker="known_terms", knows="", n_targets=9, n_found=1, n_by_chance=0, n_known=4)
    >>> label(one)
    'known_terms:4'
    """
    known = "" if found.n_known is None else f":{found.n_known}"
    return f"{found.attacker}{known}" + (f", {found.n_wrong} wrong" if found.n_wrong else "")


def _split(name: str) -> tuple[str, int | None]:
    """Return the attacker and how much it knows.

    >>> _split("known_terms:4"), _split("clock")
    (('known_terms', 4), ('clock', None))
    """
    attacker, colon, number = name.partition(":")
    if colon and not (number.isascii() and number.isdigit()):
        raise BadParameter("exposure", name, allowed="an attacker and how much it knows, such as known_terms:4")
    return attacker, int(number) if number else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run: its `exposure` and `utility` by the chosen figures, or None and the reason in `missing`."""

    judged: Judged
    exposure: Exposure | None = None
    utility: Score | None = None
    missing: str = ""
    is_on_frontier: bool = False
    is_picked: bool = False

    @property
    def name(self) -> str:
        return self.judged.name

    @property
    def seconds(self) -> float:
        """The time of the run, judging included."""
        return sum(self.judged.seconds.values())

    @property
    def command(self) -> str:
        """What to type to make such a release."""
        run = self.judged.run
        return "" if run is None else command(run.method, run.settings)

    @property
    def is_comparable(self) -> bool:
        """Whether it has both figures, and its promise, if it makes one, was not broken."""
        has_both = self.exposure is not None and self.utility is not None
        return has_both and self.judged.standing in ("holds", "promises nothing", "not judged")

    def is_under(self, limit: float) -> bool:
        """Whether it keeps a promise and the upper end of its exposure is at most the limit."""
        is_kept = self.judged.standing == "holds" and self.utility is not None
        return is_kept and self.exposure is not None and self.exposure.interval[1] <= limit

    def to_dict(self) -> dict[str, object]:
        judged = self.judged
        return {
            "name": self.name,
            "method": None if judged.run is None else judged.run.method,
            "settings": {} if judged.run is None else judged.run.settings,
            "promise": None if judged.promise is None else judged.promise.in_words(),
            "standing": judged.standing,
            "verdict": judged.verdict,
            "failed": judged.failed or None,
            "exposure": None if self.exposure is None else self.exposure.to_dict(),
            "utility": None if self.utility is None else self.utility.to_dict(),
            "missing": self.missing or None,
            "on_frontier": self.is_on_frontier,
            "picked": self.is_picked,
            "command": self.command,
            "seconds": judged.seconds,
            "attacks": None if judged.attacks is None else judged.attacks.to_dict(),
            "scores": [score.to_dict() for score in judged.scores],
            "notes": list(judged.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Runs compared by one exposure and one utility.

    The picked run has the highest utility of those whose promise holds and whose exposure is under the limit.

    Parameters
    ----------
    rows: the runs; one that promises nothing is never picked
    original: the log with nothing but its ids changed
    exposure, utility: the figures that runs are compared by
    limit: the most of the targets that may be found, at the upper end of the 95 % interval
    n_users, n_public: people who were released, and others who stood for the public
    left_out: which methods could not be run here, if nobody asked for them by name
    """

    rows: tuple[Row, ...]
    original: Judged
    exposure: str
    utility: str
    limit: float
    n_users: int
    n_public: int
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Sequence[Judged], *, original: Judged, plan: Plan, inputs: ComparisonInput) -> "Comparison":
        """Put results side by side as the plan asks."""
        return cls(
            rows=tuple(Row(judged=judged) for judged in found),
            original=original,
            exposure=plan.exposure,
            utility=plan.utility,
            limit=plan.limit,
            n_users=inputs.log.n_users,
            n_public=0 if inputs.public is None else inputs.public.n_users,
        ).by()

    def by(
        self, *, exposure: str | None = None, utility: str | None = None, limit: float | None = None
    ) -> "Comparison":
        """Return the same runs by other figures or under another limit; nothing is run again."""
        exposure, utility = exposure or self.exposure, utility or self.utility
        limit = self.limit if limit is None else limit
        measured = [row.judged for row in self.rows if row.judged.scores]
        if measured and not any(utility_in(judged, utility) for judged in measured):
            there = sorted({score.name for judged in measured for score in judged.scores})
            raise BadParameter("utility", utility, allowed=f"one of {', '.join(there)}")
        rows = [_row(row.judged, exposure=exposure, utility=utility) for row in self.rows]
        places = [i for i, row in enumerate(rows) if row.is_comparable]
        on = {places[i] for i in frontier([_point(rows[place]) for place in places])}
        under = [i for i, row in enumerate(rows) if row.is_under(limit)]
        best = max(under, key=lambda i: (_point(rows[i])[1], -_point(rows[i])[0]), default=None)
        marked = tuple(replace(row, is_on_frontier=i in on, is_picked=i == best) for i, row in enumerate(rows))
        return replace(self, rows=marked, exposure=exposure, utility=utility, limit=limit)

    @property
    def picked(self) -> Row | None:
        """The best run under the limit, if there is one."""
        return next((row for row in self.rows if row.is_picked), None)

    @property
    def frontier(self) -> tuple[Row, ...]:
        """The runs that no other beats, the least exposed first."""
        return tuple(sorted((row for row in self.rows if row.is_on_frontier), key=_point))

    @property
    def before(self) -> Exposure | None:
        """The exposure of the log with nothing but its ids changed."""
        return exposure_in(self.original, self.exposure)

    @property
    def broken(self) -> tuple[Row, ...]:
        """The runs whose promise does not hold."""
        return tuple(row for row in self.rows if row.judged.standing == "broken")

    def in_words(self) -> str:
        """Say in one line which run is best, or why none is."""
        who = "the worst attacker" if self.exposure == WORST else self.exposure
        most = f"{who} finds at most {percent(self.limit)} in (upper end of the 95 % interval)"
        row = self.picked
        if row is None or row.exposure is None or row.utility is None:
            ends = [(row.exposure.interval[1], row.name) for row in self.rows if row.exposure and row.is_under(1.0)]
            if not ends:
                return f"No run keeps a promise and has both figures, {self.exposure} and {self.utility}."
            high, name = min(ends)
            return f"There is no run that keeps its promise and that {most}; least is up to {percent(high)}, in {name}."
        return (
            f"Of the runs that keep their promise and that {most}, {row.name} keeps most: {row.utility.title} "
            f"{row.utility.written}, found {percent(row.exposure.share)} (up to {percent(row.exposure.interval[1])})."
        )

    def cautions(self) -> tuple[str, ...]:
        """Return warnings about attackers that beat chance and exceed the limit in the picked run.

        These are the worst for people, who adds users, and of the rest (rows, hashed terms) the one who finds most.
        """
        if self.picked is None:
            return ()
        judged = self.picked.judged
        others = [one for one in judged.exposures if one.what != PEOPLE and one.attacker not in ACTIVE]
        most = max(others, key=lambda one: one.share, default=None)
        return tuple(
            f"But {label(found)}, who knows {found.knows}, finds {percent(found.share)} of its {found.what} in "
            f"{self.picked.name} (95 % interval {percent(found.interval[0])} to {percent(found.interval[1])}); blind "
            f"guessing finds {percent(found.chance_share)}."
            for found in (*(exposure_in(judged, each) for each in (WORST, *ACTIVE)), most)
            if found is not None and found.beats_chance and found.share > self.limit
        )

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the columns and rows of a table for people."""
        utility = self.utility.replace("_", " ")
        columns = ("run", "", "promise", utility, "found", "95 % interval", "by chance", "seconds")
        return columns, [_cells(row, names_attacker=self.exposure == WORST) for row in self.rows]

    def notes(self) -> tuple[str, ...]:
        """Return why figures are missing, and which are estimates."""
        reasons: dict[str, list[str]] = {}
        for row in self.rows:
            if row.missing:
                reasons.setdefault(row.missing, []).append(row.name)
            elif row.judged.attacks is not None and not row.judged.attacks.exact:
                reasons.setdefault(ESTIMATED, []).append(row.name)
        return (*(f"{', '.join(names)}: {reason}" for reason, names in reasons.items()), *self.left_out)

    def to_dict(self) -> dict[str, object]:
        return {
            "exposure": self.exposure,
            "utility": self.utility,
            "limit": self.limit,
            "n_users": self.n_users,
            "n_public": self.n_public,
            "picked": None if self.picked is None else self.picked.name,
            "command": None if self.picked is None else self.picked.command,
            "cautions": list(self.cautions()),
            "left_out": list(self.left_out),
            "frontier": [row.name for row in self.frontier],
            "before": None if self.original.attacks is None else self.original.attacks.to_dict(),
            "runs": [row.to_dict() for row in self.rows],
        }

    def _repr_html_(self) -> str:
        columns, rows = self.table()
        cells = [["" if cell == "-" else cell for cell in row] for row in rows]
        notes = [(text,) for text in (*self.cautions(), *self.notes())]
        return table(columns, rows=cells, caption=self.in_words()) + (table(("note",), rows=notes) if notes else "")


def _row(judged: Judged, *, exposure: str, utility: str) -> Row:
    found, score = exposure_in(judged, exposure), utility_in(judged, utility)
    missing = judged.failed
    if not missing and found is None:
        skipped, (attacker, _) = () if judged.attacks is None else judged.attacks.skipped, _split(exposure)
        reason = next((one.reason for one in skipped if one.attacker == attacker), "there was nobody to look for")
        missing = f"{attacker} does not apply: {reason}"
    elif not missing and score is None:
        missing = f"{utility.replace('_', ' ')} was not measured"
    return Row(judged=judged, exposure=found, utility=score, missing=missing)


def _point(row: Row) -> tuple[float, float]:
    """Return exposure, of which less is better, and utility, signed so that more is better."""
    if row.exposure is None or row.utility is None:
        return 1.0, float("-inf")
    sign = 1.0 if row.utility.better == "more" else -1.0
    return row.exposure.share, sign * row.utility.value


def _cells(row: Row, *, names_attacker: bool) -> tuple[str, ...]:
    found, score = row.exposure, row.utility
    marks = {"best": row.is_picked, "frontier": row.is_on_frontier, "see note": row.missing}
    return (
        row.name,
        ", ".join(mark for mark, applies in marks.items() if applies),
        row.judged.standing.upper() if row.judged.standing == "broken" else row.judged.standing,
        "-" if score is None else score.written,
        "-" if found is None else percent(found.share) + (f" by {label(found)}" if names_attacker else ""),
        "-" if found is None else f"{percent(found.interval[0])} to {percent(found.interval[1])}",
        "-" if found is None else percent(found.chance_share),
        f"{row.seconds:.1f}",
    )

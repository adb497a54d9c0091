"""The result of a comparison: which runs qualify under the limit, which is best, and what rejects the others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from queryveil.attacks import Exposure, attackers
from queryveil.attacks.limits import Limit, n_targets_needed, risk
from queryveil.attacks.names import base_name, label, name_title, split_label
from queryveil.attacks.readers import READERS, attackers_of
from queryveil.comparison.judged import ComparisonInput, Judged
from queryveil.comparison.plan import BINDING, Plan, check_purpose
from queryveil.comparison.row import Row, exposure_in, found_in_words, utility_in
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.html_tables import percent, table
from queryveil.pairing import ESTIMATED, pseudonymised
from queryveil.settings import parse_share
from queryveil.utility.purposes import PURPOSES, Purpose


def frontier(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the Pareto-optimal points of exposure (less is better) and utility (more), by exposure.

    One that is as good in one and better in the other beats a point; of equal ones all stay.
    """
    kept: list[int] = []
    for i in sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1])):
        if not kept or points[i][1] > points[kept[-1]][1] or points[i] == points[kept[-1]]:
            kept.append(i)
    return kept


def check_exposure(name: str) -> None:
    """Raise if there is no such attacker to be shown."""
    if name == BINDING:
        return
    attacker, n_known = split_label(name)
    everybody = attackers(pseudonymised(QueryLog.from_frame({"user": [], "query": []})))
    there = {(each.name, getattr(each, "n_known", None)) for each in everybody}
    names = {each for each, _ in there}
    if (attacker, n_known) not in there if n_known is not None else attacker not in names:
        shown = sorted({f"{each}:{n}" if n and each.endswith("_terms") else each for each, n in there})
        raise BadParameter("exposure", name, allowed=f"{BINDING} or one of {', '.join(shown)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Runs compared by what attackers find in them, under a limit, and by what they keep.

    The picked run is the one that keeps most of those that qualify: its promise holds, and no attacker that the rule
    considers is above the limit, by the upper end of its interval. One that keeps nothing is not picked.

    Parameters
    ----------
    rows: the runs; one that promises nothing is never picked
    original: the log with nothing but its ids changed
    rule: the limit, the readers whose attackers are considered, and the exceptions with their reasons
    utility: the measure that runs are compared by
    purpose: the purpose that it is the measure of, if one was named
    exposure: the attacker that the picture shows; `binding` is the one with the highest risk in each run
    n_users, n_public: people who were released, and others who stood for the public
    left_out: which methods could not be run here, if nobody asked for them by name
    """

    rows: tuple[Row, ...]
    original: Judged
    rule: Limit
    utility: str
    purpose: str | None = None
    exposure: str = BINDING
    n_users: int
    n_public: int
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Sequence[Judged], *, original: Judged, plan: Plan, inputs: ComparisonInput) -> "Comparison":
        """Put results side by side as the plan asks."""
        return cls(
            rows=tuple(Row(judged=judged) for judged in found),
            original=original,
            rule=plan.rule,
            utility=plan.measure,
            purpose=plan.purpose,
            exposure=plan.exposure,
            n_users=inputs.log.n_users,
            n_public=0 if inputs.public is None else inputs.public.n_users,
        ).by()

    def by(
        self,
        *,
        limit: float | str | None = None,
        purpose: str | None = None,
        readers: Iterable[str] | None = None,
        exceptions: Mapping[str, str] | None = None,
        utility: str | None = None,
        exposure: str | None = None,
    ) -> "Comparison":
        """Return the same runs under another limit, for another purpose or reader; nothing is run again."""
        if purpose is not None:
            check_purpose(purpose, utility=utility)
            utility = PURPOSES[purpose].measure
        elif utility is None:
            purpose, utility = self.purpose, self.utility
        rule = Limit(
            share=self.rule.share if limit is None else parse_share(limit),
            readers=self.rule.readers if readers is None else tuple(readers),
            exceptions=self.rule.exceptions if exceptions is None else dict(exceptions),
        )
        self._check_measured(utility, purpose)
        exposure = exposure or self.exposure
        rows = [_row(row.judged, rule=rule, utility=utility, exposure=exposure) for row in self.rows]
        places = [i for i, row in enumerate(rows) if row.is_comparable]
        on = {places[i] for i in frontier([rows[place].point for place in places])}
        able = [i for i, row in enumerate(rows) if row.qualifies and row.keeps_something]
        best = max(able, key=lambda i: (rows[i].gain, -rows[i].ruling.risk), default=None)
        marked = tuple(replace(row, is_on_frontier=i in on, is_picked=i == best) for i, row in enumerate(rows))
        return replace(self, rows=marked, rule=rule, utility=utility, purpose=purpose, exposure=exposure)

    def _check_measured(self, utility: str, purpose: str | None) -> None:
        there = {score.name for row in self.rows for score in row.judged.scores}
        if not there or utility in there:
            return
        if purpose is None:
            raise BadParameter("utility", utility, allowed=f"one of {', '.join(sorted(there))}")
        served = ", ".join(each.name for each in self.purposes)
        told = f"one of {served}, which were measured" if served else "left out: of no purpose was a measure taken here"
        raise BadParameter("for", purpose, allowed=told)

    @property
    def limit(self) -> float:
        """The highest risk that a run may have."""
        return self.rule.share

    @property
    def purposes(self) -> tuple[Purpose, ...]:
        """The purposes whose measure was taken of at least one run."""
        there = {score.name for row in self.rows for score in row.judged.scores}
        return tuple(purpose for purpose in PURPOSES.values() if purpose.measure in there)

    @property
    def picked(self) -> Row | None:
        """The best run under the limit, if there is one."""
        return next((row for row in self.rows if row.is_picked), None)

    @property
    def nearest(self) -> Row | None:
        """The run with the lowest risk of those whose promise holds, if any was attacked and measured."""
        holding = [row for row in self.rows if row.judged.standing == "holds" and row.utility is not None]
        attacked = [row for row in holding if row.ruling.binding is not None]
        return min(attacked, key=lambda row: (row.ruling.risk, -row.gain), default=None)

    @property
    def ranked(self) -> tuple[Row, ...]:
        """All runs, the best first, then what qualifies by what it keeps, then the rest by risk."""
        return tuple(sorted(self.rows, key=lambda row: row.rank))

    @property
    def frontier(self) -> tuple[Row, ...]:
        """The runs that no other beats, the least exposed first."""
        return tuple(sorted((row for row in self.rows if row.is_on_frontier), key=lambda row: row.point))

    @property
    def before(self) -> Exposure | None:
        """What the attacker that the picture shows finds in the log with nothing but its ids changed."""
        if self.exposure == BINDING:
            return self.rule.ruling(self.original.exposures).binding
        return exposure_in(self.original, self.exposure)

    @property
    def broken(self) -> tuple[Row, ...]:
        """The runs whose promise does not hold."""
        return tuple(row for row in self.rows if row.judged.standing == "broken")

    def in_words(self) -> str:
        """Say in one line which run is best, or which is nearest and who rejects it."""
        titles = [READERS[name].title for name in self.rule.readers]
        who = "" if len(titles) == len(READERS) else f" ({', '.join(each[:1].lower() + each[1:] for each in titles)})"
        rule = f"no attacker{who} is above {percent(self.limit)}"
        row, near = self.picked, self.nearest
        if row is not None and row.utility is not None and row.ruling.binding is not None:
            return (
                f"Best is {row.name}: of the runs whose promise holds and in which {rule}, it keeps most "
                f"({row.utility.title} {row.utility.written}). {found_in_words(row.ruling.binding)}: of all, the "
                f"nearest to the limit, with a risk of {percent(row.ruling.risk)}."
            )
        if near is None or near.ruling.binding is None:
            return f"No run keeps its promise, was attacked and has a measure of {self.utility.replace('_', ' ')}."
        if near.qualifies:
            what = self.utility.replace("_", " ")
            return f"Of the runs whose promise holds and in which {rule}, none keeps anything of {what}."
        return (
            f"No run can be recommended: in each, the promise does not hold, or an attacker{who} may find more than "
            f"{percent(self.limit)}, or none was tried. Nearest is {near.name}, with a risk of "
            f"{percent(near.ruling.risk)}: {found_in_words(near.ruling.binding)}."
        )

    def exceptions_in_words(self, *, named: bool = True) -> tuple[str, ...]:
        """Return each exception with its reason, and if `named` what it finds in the picked or nearest run."""
        row, said = self.picked or self.nearest, []
        excepted = () if row is None else row.ruling.excepted
        for name, reason in self.rule.exceptions.items():
            most = max((one for one in excepted if name == base_name(one.attacker)), key=risk, default=None)
            where = "" if row is None else f" It does not apply to {row.name}."
            if not named:
                where = ""
            elif name not in attackers_of(self.rule.readers):
                where = " It stands for none of these readers."
            elif most is not None and row is not None:
                where = f" In {row.name}, {found_in_words(most)}."
            said.append(f"Not considered: {name_title(name)} ({name}), because: {reason.strip().rstrip('.')}.{where}")
        return tuple(said)

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the columns and rows of a table for people."""
        columns = ("run", "outcome", self.utility.replace("_", " "), "highest risk", "rejected by", "seconds")
        return columns, [_cells(row) for row in self.rows]

    def notes(self, *, lasting: bool = False) -> tuple[str, ...]:
        """Return why figures are missing, which are estimates, and which attackers had too few targets.

        The `lasting` ones hold under any limit, for any purpose and reader.
        """
        reasons: dict[str, list[str]] = {}
        for row in self.rows:
            if row.judged.failed or (row.missing and not lasting):
                reasons.setdefault(row.judged.failed or row.missing, []).append(row.name)
            if row.judged.attacks is not None and not row.judged.attacks.exact:
                reasons.setdefault(ESTIMATED, []).append(row.name)
        told = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
        return (*told, *([] if lasting else self._too_few()), *self.left_out)

    def _too_few(self) -> list[str]:
        """Return which attackers cannot be under the limit for want of targets, and how many they would need."""
        few: dict[str, list[Exposure]] = {}
        for found in (one for row in self.rows for one in row.ruling.too_few):
            few.setdefault(label(found), []).append(found)
        said = []
        for name, each in few.items():
            fewest = min(found.n_targets for found in each)
            needs = max(_needed(found, self.limit) for found in each)
            runs = "1 run" if len(each) == 1 else f"{len(each)} runs"
            more = f", and needs {needs:,}" if needs else ""
            said.append(
                f"{name}: above {percent(self.limit)} in {runs} even if it finds no more than by chance, because it "
                f"has only {fewest:,} targets{more}"
            )
        return said

    def to_dict(self) -> dict[str, object]:
        nearest = self.nearest
        return {
            "limit": self.limit,
            "readers": list(self.rule.readers),
            "exceptions": dict(self.rule.exceptions),
            "purpose": self.purpose,
            "utility": self.utility,
            "exposure": self.exposure,
            "n_users": self.n_users,
            "n_public": self.n_public,
            "picked": None if self.picked is None else self.picked.name,
            "command": None if self.picked is None else self.picked.command,
            "nearest": None if nearest is None else nearest.name,
            "said": [self.in_words(), *self.exceptions_in_words()],
            "left_out": list(self.left_out),
            "frontier": [row.name for row in self.frontier],
            "before": None if self.original.attacks is None else self.original.attacks.to_dict(),
            "runs": [row.to_dict() for row in self.rows],
        }

    def _repr_html_(self) -> str:
        columns, rows = self.table()
        notes = [(text,) for text in (*self.exceptions_in_words(), *self.notes())]
        return table(columns, rows=rows, caption=self.in_words()) + (table(("note",), rows=notes) if notes else "")


def _needed(found: Exposure, limit: float) -> int:
    return n_targets_needed(limit, chance_share=found.chance_share) if limit > 0 else 0


def _row(judged: Judged, *, rule: Limit, utility: str, exposure: str) -> Row:
    ruling, score = rule.ruling(judged.exposures), utility_in(judged, utility)
    shown = ruling.binding if exposure == BINDING else exposure_in(judged, exposure)
    missing = judged.failed
    if not missing and score is None:
        missing = f"{utility.replace('_', ' ')} was not measured"
    elif not missing and shown is None and exposure == BINDING:
        missing = "no attacker that is considered applies"
    elif not missing and shown is None:
        skipped, (attacker, _) = () if judged.attacks is None else judged.attacks.skipped, split_label(exposure)
        reason = next((one.reason for one in skipped if one.attacker == attacker), "there was nobody to look for")
        missing = f"{attacker} does not apply: {reason}"
    return Row(judged=judged, ruling=ruling, utility=score, exposure=shown, missing=missing)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        "BROKEN" if row.outcome == "broken" else row.outcome,
        "" if row.utility is None else row.utility.written,
        "" if row.ruling.binding is None else percent(row.ruling.risk),
        row.rejected_by,
        f"{row.seconds:.1f}",
    )

"""A report as a value: everything that is known of a release, before anybody writes it down."""

from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any

import msgspec
import numpy as np
import polars as pl

from queryveil.attacks import Attacks, Exposure
from queryveil.attacks.limits import Limit, Ruling
from queryveil.checks.verdict import Verdict
from queryveil.data import Int64s, QueryLog, Tallies, Transactions
from queryveil.html_tables import facts
from queryveil.pairing import Pair
from queryveil.release import Manifest
from queryveil.reports.assessment import Finding, Isolation, Risk, exposures, findings, is_over, risk_of
from queryveil.text.tokens import Tokens, encode, join_terms
from queryveil.utility.score import Measures
from queryveil.version import __version__

JSON_VERSION = 1
"""The version of the JSON twin; it grows when a field goes away or changes its meaning."""
_N_POINTS = 40

Points = tuple[tuple[int, int], ...]
"""Pairs of a rank and how often that which has this rank was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Frequencies by rank in the original and in the release, and `what` they are of: queries or terms.

    Before, rows are counted. After, too, unless the release is noisy counts `of_people`.
    """

    what: str
    before: Points
    after: Points
    of_people: bool = False


def curves_of(pair: Pair) -> Curves | None:
    """Return the frequencies of queries, of terms where transactions were released, of nothing where groups were."""
    data = pair.release.data
    if isinstance(data, Transactions):
        counts = data.frame["items"].explode(empty_as_null=False).value_counts(name="n")["n"]
        before, after = points_of(pair.before.frequency()), points_of(counts.cast(pl.Int64).to_numpy())
        return Curves(what="terms", before=before, after=after)
    if not isinstance(data, QueryLog | Tallies):
        return None
    is_counted = isinstance(data, Tallies)
    asked = data.frame["count"].to_numpy() if is_counted else _asked(pair.release_tokens)
    before = points_of(_asked(pair.original_tokens))
    return Curves(
        what="queries", before=before, after=points_of(asked), of_people=pair.release.promise.is_noisy and is_counted
    )


def points_of(counts: Int64s) -> Points:
    """Return ranks and counts: all of the first ranks, then ever fewer, and the last."""
    ordered = np.sort(counts[counts > 0])[::-1]
    if not len(ordered):
        return ()
    spread = np.rint(np.geomspace(1, len(ordered), _N_POINTS)).astype(np.int64)
    tens = 10 ** np.arange(1 + int(np.log10(len(ordered))))
    ranks = np.union1d(spread, tens)
    return tuple((int(rank), int(ordered[rank - 1])) for rank in ranks)


def _asked(tokens: Tokens) -> Int64s:
    """Count the rows of each query that has a term; queries are the same if their words are."""
    code, texts = encode(join_terms(tokens.queries))
    row = code[tokens.row_query] if len(texts) else code
    return np.bincount(row[(texts != "").to_numpy()[row]]).astype(np.int64)


class State(StrEnum):
    """What came of judging a promise."""

    HOLDS = "holds"
    BROKEN = "broken"
    NOTHING_PROMISED = "nothing promised"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the checker said, or why it said nothing; `beside_original` if it also looked for what was invented."""

    state: State
    verdict: Verdict | None = None
    reason: str = ""
    beside_original: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Who releases what to whom, for what and covering which period, as the releaser states it.

    - `releaser`, `recipient`, `purpose`, `period`: in the releaser's words, which a report repeats; may be empty.
    """

    releaser: str = ""
    recipient: str = ""
    purpose: str = ""
    period: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """From what a report was made, so that it can be made again, and how long it may be relied on.

    - `seed`: what the targets of attackers were drawn from; None if the seed was given and is not repeated.
    - `commitment`: the SHA-256 of what the seed follows from, or of the seed that was given.
    - `until`: the day after which the attacks should be run again.
    - `n_targets`: the most targets of each attacker.
    """

    seed: int | None = None
    commitment: str = ""
    until: date | None = None
    n_targets: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report:
    """What a release promises, whether it holds, what attackers find, and what it cost.

    Parameters
    ----------
    folder: the name of the folder, without the path to it
    columns, n_clicks: those of the data; None if no clicks were tallied
    attacks, measures: None where `why_no_attacks` and `why_no_measures` say why
    limit: how much attackers may find, and which of them were ruled out with a reason
    isolation: how many records stand alone in the release
    circumstances, months: who releases it to whom and for what, and the first and last month of the log's times
    validity: what repeats the report, and how long it may be relied on
    top_queries: texts of the release with their rows, if they were asked for; nothing else in it is text of a log
    """

    folder: str
    manifest: Manifest
    columns: tuple[str, ...]
    n_clicks: int | None = None
    judgement: Judgement
    attacks: Attacks | None = None
    why_no_attacks: str = ""
    measures: Measures | None = None
    why_no_measures: str = ""
    curves: Curves | None = None
    limit: Limit = field(default_factory=Limit)
    isolation: Isolation = field(default_factory=Isolation)
    circumstances: Circumstances = field(default_factory=Circumstances)
    months: tuple[str, str] | None = None
    validity: Validity = field(default_factory=Validity)
    top_queries: tuple[tuple[str, int], ...] | None = None
    made_on: date
    made_with: str = __version__

    @property
    def state(self) -> State:
        return self.judgement.state

    @property
    def risk(self) -> Risk:
        """Where what attackers find stands, beside the limit."""
        return risk_of(self.attacks, limit=self.limit)

    @property
    def ruling(self) -> Ruling:
        """What the rule of the limit says of all attackers that were not ruled out."""
        return self.limit.ruling([] if self.attacks is None else exposures(self.attacks))

    @property
    def strongest(self) -> Exposure | None:
        """What the strongest attacker found; if one is over the limit, of those that are not for want of targets."""
        over = (each for each in self.ruling.over if is_over(each, limit=self.limit))
        return next(over, self.ruling.binding)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What came of each criterion of the guidelines."""
        return findings(self.attacks, self.isolation, limit=self.limit)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, as its schema describes them (docs/reference/report.schema.json)."""
        judged, strongest = self.judgement, self.strongest
        plain: dict[str, Any] = {
            "version": JSON_VERSION,
            "folder": self.folder,
            "made_on": self.made_on.isoformat(),
            "made_with": self.made_with,
            "circumstances": asdict(self.circumstances),
            "months": None if self.months is None else list(self.months),
            "validity": msgspec.to_builtins(self.validity),
            "risk": {
                "standing": str(self.risk),
                "limit": self.limit.share,
                "strongest": None if strongest is None else strongest.to_dict(),
                "readers": list(self.limit.readers),
                "exceptions": dict(self.limit.exceptions),
            },
            "isolation": msgspec.to_builtins(self.isolation),
            "criteria": [
                {
                    "name": each.criterion.name,
                    "outcome": str(each.outcome),
                    "in_context": str(each.in_context),
                    "tests": [
                        {"title": t.title, "why": t.why, "found": None if t.found is None else t.found.to_dict()}
                        for t in each.tried
                    ],
                }
                for each in self.findings
            ],
            "promise": self.manifest.promise.in_words(),
            "not_promised": list(self.manifest.promise.not_promised()),
            "state": str(judged.state),
            "reason": judged.reason,
            "beside_original": judged.beside_original,
            "verdict": None if judged.verdict is None else judged.verdict.to_dict(),
            "attacks": None if self.attacks is None else self.attacks.to_dict(),
            "why_no_attacks": self.why_no_attacks,
            "measures": None if self.measures is None else self.measures.to_dict(),
            "why_no_measures": self.why_no_measures,
            "curves": None if self.curves is None else msgspec.to_builtins(self.curves),
            "manifest": msgspec.to_builtins(self.manifest),
        }
        if self.top_queries is not None:
            plain["top_queries"] = [{"query": query, "rows": n} for query, n in self.top_queries]
        return plain

    def _repr_html_(self) -> str:
        n_above = None if self.attacks is None else sum(one.after.beats_chance for one in self.attacks.attempts)
        pairs = [
            ("method", self.manifest.method),
            ("promise", self.manifest.promise.in_words()),
            ("state", str(self.state)),
            ("attacks above chance", n_above),
            ("warnings", len(self.manifest.warnings)),
        ]
        return facts(pairs, caption="Report on a release")

    def __repr__(self) -> str:
        # Privacy: no texts, though a report may hold some.
        return f"Report(method={self.manifest.method!r}, state={str(self.state)!r})"

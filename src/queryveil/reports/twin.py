"""The JSON twin of a report: its shape as types, and the schema that is made of them."""

from typing import Annotated, Any, Literal

import msgspec

from queryveil.release import Manifest
from queryveil.reports.assessment import Isolation, Outcome, Risk
from queryveil.reports.value import JSON_VERSION, Circumstances, Curves, State, Validity
from queryveil.utility.score import Score

_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Interval = tuple[_Share, _Share]


class SurestTwin(msgspec.Struct, kw_only=True):
    """The most confident guesses of an attacker."""

    n_targets: _Count
    n_found: _Count
    n_certain: _Count
    share: _Share
    interval: _Interval


class ExposureTwin(msgspec.Struct, kw_only=True):
    """What one attacker found."""

    attacker: str
    knows: str
    what: str
    n_known: int | None
    n_wrong: int
    n_targets: _Count
    n_found: _Count
    n_by_chance: Annotated[float, msgspec.Meta(ge=0)]
    surest: SurestTwin | None
    share: _Share
    interval: _Interval
    chance_share: _Share
    chance_interval: _Interval
    beats_chance: bool


class AttemptTwin(msgspec.Struct, kw_only=True):
    """One attacker on the release, and on the log with nothing but its ids changed."""

    after: ExposureTwin
    before: ExposureTwin | None


class SkippedTwin(msgspec.Struct, kw_only=True):
    """An attacker that did not run, and why."""

    attacker: str
    reason: str


class AttacksTwin(msgspec.Struct, kw_only=True):
    """All attacks; `exact` says whether ids tell who is who."""

    exact: bool
    attempts: tuple[AttemptTwin, ...]
    skipped: tuple[SkippedTwin, ...]


class TestTwin(msgspec.Struct, kw_only=True):
    """One test of a criterion: what its strongest attacker found, or why it was not tried."""

    title: str
    why: str
    found: ExposureTwin | None


class CriterionTwin(msgspec.Struct, kw_only=True):
    """A criterion of the guidelines: its outcome by all attackers, and without those that were ruled out."""

    name: Literal["isolation", "linkage", "inference"]
    outcome: Outcome
    in_context: Outcome
    tests: tuple[TestTwin, ...]


class RiskTwin(msgspec.Struct, kw_only=True):
    """Where the release stands by the limit, by which attacker, for which readers, and who was ruled out and why."""

    standing: Risk
    limit: _Share
    strongest: ExposureTwin | None
    readers: list[str]
    exceptions: dict[str, str]


class MeasuresTwin(msgspec.Struct, kw_only=True):
    """All measures, and what could not be measured."""

    scores: tuple[Score, ...]
    notes: tuple[str, ...]


class QueryTwin(msgspec.Struct, kw_only=True):
    """A text of the release; there only if it was asked for."""

    query: str
    rows: int


class ReportTwin(msgspec.Struct, kw_only=True):
    """A report as `queryveil report --format json` writes it. New fields may come; `version` grows when one goes."""

    version: Annotated[int, msgspec.Meta(ge=JSON_VERSION, le=JSON_VERSION)]
    folder: str
    made_on: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    made_with: str
    circumstances: Circumstances
    months: tuple[str, str] | None
    validity: Validity
    risk: RiskTwin
    isolation: Isolation
    criteria: tuple[CriterionTwin, ...]
    promise: str
    not_promised: tuple[str, ...]
    state: State
    reason: str
    beside_original: bool
    verdict: dict[str, Any] | None
    attacks: AttacksTwin | None
    why_no_attacks: str
    measures: MeasuresTwin | None
    why_no_measures: str
    curves: Curves | None
    manifest: Manifest
    top_queries: tuple[QueryTwin, ...] | None = None


def read_json(text: str | bytes) -> ReportTwin:
    """Return a report from its JSON; raise `msgspec.ValidationError` if it is none."""
    return msgspec.json.decode(text, type=ReportTwin)


def schema() -> dict[str, Any]:
    """Return the JSON schema of a report, as docs/reference/report.schema.json has it."""
    return msgspec.json.schema(ReportTwin)

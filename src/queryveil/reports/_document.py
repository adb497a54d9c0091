"""Turn a report value into headings, sentences, tables and pictures, in the order in which a signer reads them."""

from collections.abc import Callable, Mapping
from typing import Literal

from queryveil.attacks import Attacks, Attempt
from queryveil.attacks.limits import risk
from queryveil.attacks.names import title as attacker
from queryveil.errors import printable
from queryveil.html_tables import percent
from queryveil.reports import _assessment_section as assessment
from queryveil.reports import _cost_section as cost
from queryveil.reports import _exposure_section as exposure
from queryveil.reports import _promise_sections as promise
from queryveil.reports._blocks import Badge, Block, Document, Figure, Paragraph, Section, Table, count, lowered
from queryveil.reports._exposure_section import TYPICAL, one_per_kind, share, typical
from queryveil.reports.value import Report, State

_BADGES: Mapping[State, str] = {
    State.HOLDS: "The promise holds",
    State.BROKEN: "The promise is broken",
    State.NOTHING_PROMISED: "Nothing is promised",
    State.NOT_JUDGED: "Not judged",
}
_KEEP_IT = (
    "Keep this report to yourself: it was made beside the original, and its figures are exact. Handed out with the "
    "release, they would not be covered by the promise."
)


def document_of(report: Report) -> Document:
    """Return the whole report as headings, sentences, tables and pictures."""
    sections = [Section(name=name, title=title, blocks=tuple(of(report))) for name, title, of in _SECTIONS]
    is_plain = report.top_queries is None
    text = "no query, no URL and no user id" if is_plain else "texts of the release, because they were asked for"
    verdict = report.judgement.verdict
    is_faulty = report.state is State.BROKEN and verdict is not None and verdict.faults and not verdict.n_violations
    promised = "The release has a fault" if is_faulty else _BADGES[report.state]
    kinds: dict[State, Literal["good", "bad", "open"]] = {State.HOLDS: "good", State.BROKEN: "bad"}
    return Document(
        title=f"Release \u201c{report.folder}\u201d",
        kicker=f"Report on a released search log; method: {report.manifest.method}",
        badges=(Badge(promised, kinds.get(report.state, "open")), assessment.risk_badge(report)),
        decision=assessment.decision(report),
        summary=_summary(report),
        alert=_alert(report),
        facts=assessment.facts_of(report),
        figures=(assessment.strongest_figure(report), *_kept(report), *_text_figures(report)),
        sections=tuple(section for section in sections if section.blocks),
        footer=f"Made on {report.made_on.isoformat()} with queryveil {report.made_with}. It holds {text}.",
    )


def _kept(report: Report) -> tuple[Figure, ...]:
    return assessment.kept_figures(report) or cost.size_figures(report)


_PROMISED: Mapping[State, str] = {
    State.HOLDS: "Promised and checked:",
    State.BROKEN: "Promised, but broken:",
    State.NOT_JUDGED: "Promised, but not checked:",
}


def _summary(report: Report) -> tuple[str, ...]:
    """Return the promise in words for somebody who has not read the paper, if it was checked, and what was tried."""
    promised = f"{_PROMISED.get(report.state, '')} {report.manifest.promise.in_words()}"
    first = "" if report.state is State.NOTHING_PROMISED else promised
    tried = "" if report.state is State.BROKEN else _exposure_in_words(report)
    if report.attacks is None and report.measures is None and report.state is not State.BROKEN:
        tried = "Not tried: what attackers find of what is not promised."
    elif tried and report.attacks is not None:
        tried = f"Not promised, but tried: {tried}"
    return tuple(filter(None, (f"{first} {_judged_in_words(report)}".strip(), tried)))


def in_short(report: Report) -> str:
    """Return the verdict and what attackers found, in a sentence or two."""
    first = _judged_in_words(report)
    # Where a promise is broken, nothing else matters.
    return first if report.state is State.BROKEN else f"{first} {_exposure_in_words(report)}".strip()


def _judged_in_words(report: Report) -> str:
    judgement = report.judgement
    match report.state:
        case State.NOTHING_PROMISED:
            return report.manifest.promise.in_words()
        case State.NOT_JUDGED:
            return f"The promise was not judged: {judgement.reason}."
        case _:
            return "" if judgement.verdict is None else judgement.verdict.in_words()


def _exposure_in_words(report: Report) -> str:
    """Return the share of people found by a few known terms, and by the attack that found most."""
    if report.attacks is None:
        # Without an original nobody expects attacks.
        return report.why_no_attacks if report.measures is not None else ""
    known = typical(report.attacks)
    if known is None:
        return _most(report.attacks, known)
    who = f"Somebody who knows {TYPICAL} search terms of a person finds"
    up_to = f"95 % interval up to {percent(known.after.interval[1])}"
    before = "" if known.before is None else f"; in the log with nothing but new user ids it was {share(known.before)}"
    return f"{who} {share(known.after)} of people in it ({up_to}){before}. {_most(report.attacks, known)}".strip()


def _most(attacks: Attacks, known: Attempt | None) -> str:
    """Return the attack that found most, if clearly above chance and `known`, whose low figure alone would reassure."""
    above = [one.after for one in one_per_kind(attacks.attempts) if one.after.beats_chance and one is not known]
    most = max(above, key=risk, default=None)
    if most is None or (known is not None and most.share <= known.after.share):
        return ""
    name, other = attacker(most), "" if known is None else "another attack, "
    certainty = f"{most.interval_in_words}, by chance {percent(most.chance_share)}"
    return f"Most is found by {other}{lowered(name)}: {share(most)} of {most.what} ({certainty})."


def _alert(report: Report) -> str:
    """Return the warning on top: a broken promise, warnings of the manifest, a report to keep private."""
    n = len(report.manifest.warnings)
    warned = f"The release was made with {count(n, 'warning')}, listed below under \u201cWarnings\u201d." if n else ""
    if report.manifest.promise.is_noisy and report.measures is not None:
        warned = f"{warned} {_KEEP_IT}".strip()
    first = {
        State.NOTHING_PROMISED: "Do not rely on it: what no attacker found here, another may find.",
    }
    return f"{first.get(report.state, '')} {warned}".strip()


def _text_figures(report: Report) -> tuple[Figure, ...]:
    """Return the share of the texts that one person alone asked, where it is known."""
    texts = report.manifest.texts
    if texts is None or texts.n_of_one_person is None:
        return ()
    n_alone, n = texts.n_of_one_person, texts.n_texts
    note = f"{n_alone:,} of the {n:,} different texts in the release were asked by one person alone"
    return (Figure(value=percent(n_alone / max(1, n)), label="Texts of one person", note=note),)


def _queries_section(report: Report) -> list[Block]:
    if report.top_queries is None:
        return []
    n = "count" if "count" in report.columns else "rows"
    rows = tuple((printable(query), n_rows) for query, n_rows in report.top_queries)
    said = Paragraph("These are texts of the release; the rest of this report holds none.", kind="note")
    return [said, Table(columns=("query", n), rows=rows, caption="", is_text=True)]


_SECTIONS: tuple[tuple[str, str, Callable[[Report], list[Block]]], ...] = (
    ("criteria", "The three criteria", assessment.criteria_section),
    ("readers", "Who could read it", assessment.readers_section),
    ("worst-off", "The worst-off people", assessment.worst_off_section),
    ("promise", "What is promised", promise.promise_section),
    ("not-promised", "What is not promised", promise.limits_section),
    ("verdict", "Does it hold?", promise.verdict_section),
    ("single-texts", "Texts of one person", promise.texts_section),
    ("exposure", "What attackers find", exposure.exposure_section),
    ("known-terms", "The more is known", exposure.known_terms_section),
    ("cost", "What it cost", cost.cost_section),
    ("removed", "What was taken away", cost.edits_section),
    ("columns", "What became of the columns", promise.columns_section),
    ("warnings", "Warnings", promise.warnings_section),
    ("texts", "Its most frequent queries", _queries_section),
    ("check", "Check it yourself", promise.checking_section),
    ("glossary", "Glossary", promise.glossary_section),
    ("validity", "How long this holds", assessment.validity_section),
    ("signature", "To sign", assessment.signature_section),
)
"""Name, title and contents of each section; a section without contents is left out."""

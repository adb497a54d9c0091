"""The sections of an officer: the three criteria, who could read the release, the worst-off, validity, a signature."""

from shlex import quote

from queryveil.attacks import Exposure, Surest
from queryveil.attacks.limits import GUESSED, n_targets_needed, risk
from queryveil.attacks.names import name_title
from queryveil.attacks.names import title as attacker
from queryveil.attacks.readers import READERS
from queryveil.html_tables import Cell, percent
from queryveil.release import Ids
from queryveil.reports._blocks import Badge, Block, Bullets, Commands, Figure, Form, Paragraph, Table, count, lowered
from queryveil.reports._exposure_section import interval, meaning, share
from queryveil.reports.assessment import (
    Finding,
    Outcome,
    Risk,
    Tried,
    by_reader,
    exposures,
    is_over,
    is_too_few,
    strongest,
)
from queryveil.reports.value import Report, State

NOT_STATED = "not stated"
_GUIDELINES = (
    "The draft Guidelines 02/2026 of the European Data Protection Board name three criteria. First all attackers are "
    "taken at full strength (simplified assessment); then without those that the releaser ruled out, each with a "
    "reason (contextual assessment)."
)
_MEANING = (
    "Under the draft, three passes mean that a release is presumed anonymous; one failure means more analysis, and is "
    "not a verdict. This report states facts and judges neither."
)
_THESE_READERS = "Its releaser expects these readers alone; attackers that stand for none of them are ruled out:"
_NOBODY_RULED_OUT = "No attacker was ruled out, so that both assessments are the same."
_RECORD = "A record is all that is known to concern one person: here, all rows of one id, or one transaction."
_WORST_OFF = (
    "Averages hide people. Surest 1 %: of the one in a hundred whom the attacker is surest of, the share that it "
    "found. Certain: how many it found among its most confident guesses, taken as long as 95 % of them are right. One "
    "person is enough, if the attacker knows which guess is right."
)
_AGAIN = (
    "Whenever other data about the same people becomes public, or a second release about them is planned.",
    "With every new version of queryveil that has further attackers: machines make attacks cheaper.",
    "If recipient, purpose or the people who can read it change.",
    "At the latest on the day named above.",
)
_SEED = "Two reports on one release say the same: whom attackers look for is drawn from this seed, which nobody chose."
_OWN_SEED = "The seed was given by whoever made the report, who can make it again; it is not repeated here."


def decision(report: Report) -> str:
    """Return what may be done with the release, in a sentence or two, as far as the figures say it."""
    limit = percent(report.limit.share)
    if report.state is State.BROKEN:
        return "Do not hand it out: it does not keep what it promises."
    if report.state is State.NOTHING_PROMISED and report.risk is not Risk.UNDER:
        return "Do not hand it out: nothing is promised, and no attack shows that it is safe."
    match report.risk:
        case Risk.UNKNOWN:
            return (
                "It cannot be said yet whether it may be handed out: nobody has attacked it. Have the report made with "
                "the original."
            )
        case Risk.TOO_FEW:
            return (
                "It cannot be said yet whether it may be handed out: an attacker had too few targets to show a risk of "
                f"at most {limit}; {n_targets_needed(max(report.limit.share, 0.001)):,} or more are needed."
            )
        case Risk.OVER:
            found = report.strongest
            assert found is not None
            return _against(found, limit=report.limit.share)
        case Risk.UNDER:
            first = "It promises nothing, but nothing" if report.state is State.NOTHING_PROMISED else "Nothing"
            but = ", but for those that were ruled out" if _rules_some_out(report) else ""
            return (
                f"{first} found here speaks against handing it to this recipient for this purpose: no simulated "
                f"attacker is above the limit of {limit}{but}. Whoever signs decides, and should know what is not "
                "promised."
            )


def _against(found: Exposure, *, limit: float) -> str:
    """Return why a release may not be handed out: what an attacker found, or may find, beside the limit."""
    high, said = percent(risk(found)), f"A simulated attacker found {share(found)} of {found.what}"
    unsure = "" if found.beats_chance else "it cannot be ruled out that "
    if found.chance_share >= GUESSED:
        guessed = f"blind guessing finds {percent(found.chance_share)}; it may be up to {high} better than guessing"
        said = f"{said}, where {guessed}, and the limit is {percent(limit)}."
    elif found.share <= limit:
        said = f"{said}, and may find up to {high}; the limit is {percent(limit)}."
    else:
        said = f"{said}; the limit is {percent(limit)}."
    return f"Do not hand it out as it is: {unsure}{meaning(found)}. {said}"


def _rules_some_out(report: Report) -> bool:
    """Return whether an attacker is left out that was tried, or would be."""
    return bool(report.limit.exceptions) or not report.limit.is_for_all


def strongest_figure(report: Report) -> Figure:
    """Return what the strongest attacker found that was not ruled out, with its interval and blind guessing."""
    label = "Found by the strongest attacker" + (" not ruled out" if _rules_some_out(report) else "")
    found = report.strongest
    if found is None:
        why = "it needs the original" if report.measures is None else "see what attackers find"
        return Figure(value="not tried", label=label, note=why)
    low, high = map(percent, found.interval)
    by = f"of {found.what}, by \u201c{lowered(attacker(found))}\u201d"
    likely = "all were looked at" if found.is_complete else f"likely {low} to {high} (95 % interval)"
    note = f"{by}; {likely}; blind guessing finds {percent(found.chance_share)}"
    return Figure(value=share(found), label=label, note=note)


def facts_of(report: Report) -> tuple[tuple[str, str], ...]:
    """Return who releases it to whom, for what, and which time it covers, as far as it is stated."""
    said = report.circumstances
    months = "" if report.months is None else " to ".join(dict.fromkeys(report.months))
    return (
        ("Released by", said.releaser or NOT_STATED),
        ("Recipient", said.recipient or NOT_STATED),
        ("Purpose", said.purpose or NOT_STATED),
        ("Period", said.period or months or NOT_STATED),
    )


def criteria_section(report: Report) -> list[Block]:
    """Return the three criteria with their outcomes, and the figures behind each."""
    found, excepted, is_partial = report.findings, report.limit.exceptions, _rules_some_out(report)
    columns = ("criterion", "all attackers", *(["without those ruled out"] if is_partial else []), "asks")
    rows: list[tuple[Cell, ...]] = [
        (
            each.criterion.title,
            str(each.outcome),
            *([str(each.in_context)] if is_partial else []),
            each.criterion.asks,
        )
        for each in found
    ]
    blocks: list[Block] = [
        Paragraph(_GUIDELINES),
        Table(columns=columns, rows=tuple(rows), caption="The three criteria"),
        Paragraph(_MEANING, kind="warning" if any(each.outcome is Outcome.FAIL for each in found) else "plain"),
    ]
    if not report.limit.is_for_all:
        titles = tuple(READERS[name].title for name in report.limit.readers)
        blocks += [Paragraph(_THESE_READERS), Bullets(titles)]
    if excepted:
        said = [f"{name_title(name)}, as its releaser says: {reason.rstrip('.')}." for name, reason in excepted.items()]
        blocks += [Paragraph("Ruled out by the releaser, and why:"), Bullets(tuple(said))]
    if not is_partial:
        blocks.append(Paragraph(_NOBODY_RULED_OUT, kind="note"))
    blocks += _isolation(report)
    blocks += [_tests(each, report) for each in found if each.criterion.tests]
    limit = (
        f"Over: what is found, or found beyond blind guessing, may be above the limit of {percent(report.limit.share)}."
    )
    return [*blocks, Paragraph(limit, kind="note")]


def _isolation(report: Report) -> list[Block]:
    found = report.isolation
    caption = "Isolation: records that stand alone in the release"
    if found.why:
        return [Table(columns=("by", "records"), rows=(("records", found.why),), caption=caption)]
    rows: list[tuple[Cell, ...]] = []
    for each in found.alone:
        part = f" ({percent(each.n / found.n_records)})" if each.n and found.n_records else ""
        least = "at least " if each.is_least else ""
        rows.append((each.by, each.why if each.n is None else f"{least}{each.n:,}{part}"))
    said = f"{_RECORD} There are {count(found.n_records, 'record')}."
    return [Table(columns=("by", "records"), rows=tuple(rows), caption=caption), Paragraph(said, kind="note")]


def _tests(finding: Finding, report: Report) -> Table:
    is_linkage = finding.criterion.name == "linkage"
    caption = "Linkage: what the release was linked with" if is_linkage else "Inference: what could be learned"
    rows = tuple(_row(each, report) for each in finding.tried)
    return Table(columns=("tried", "found", "by chance", "standing"), rows=rows, caption=caption)


def _row(tried: Tried, report: Report) -> tuple[Cell, ...]:
    found = tried.found
    if found is None:
        return tried.title, "not tried" if tried.applies else "nothing to try", "", tried.why
    return tried.title, _with_interval(found), percent(found.chance_share), _standing(found, report)


def _with_interval(found: Exposure | Surest) -> str:
    return f"{percent(found.share)} ({interval(found)})"


def _standing(found: Exposure, report: Report) -> str:
    if is_over(found, limit=report.limit):
        said = "over"
    else:
        said = "too few targets" if is_too_few(found, limit=report.limit) else "under"
    return f"{said}, ruled out" if report.limit.rules_out(found.attacker) else said


def readers_section(report: Report) -> list[Block]:
    """Return a row for each reader: what they find at most, by which attacker, and what they know."""
    if report.attacks is None:
        return [Paragraph(report.why_no_attacks)]
    rows: list[tuple[Cell, ...]] = []
    for reader, found in by_reader(report.attacks).items():
        most = strongest(found)
        if most is None:
            rows.append((reader.title, "not tried", "", reader.knows))
            continue
        rows.append((reader.title, _with_interval(most), _stand_for(found), reader.knows))
    said = (
        "One row for each reader. An attacker that stands for several is shown for each of them; the first named is "
        "the one that finds most, beyond blind guessing where that finds much."
    )
    columns = ("reader", "finds at most", "attackers that stand for them", "knows")
    return [
        Paragraph(said),
        Table(columns=columns, rows=tuple(rows), caption=""),
        Paragraph("Whoever releases it has the log itself, and needs no release.", kind="note"),
    ]


def _stand_for(found: tuple[Exposure, ...]) -> str:
    titles = dict.fromkeys(name_title(each.attacker) for each in found)
    shown = list(titles)[:3]
    more = f"; and {len(titles) - 3} more" if len(titles) > 3 else ""
    return "; ".join(lowered(title) if i else title for i, title in enumerate(shown)) + more


def worst_off_section(report: Report) -> list[Block]:
    """Return the attackers that are surest of some people; nothing if none says how sure it is."""
    found = [] if report.attacks is None else [each for each in exposures(report.attacks) if each.surest is not None]
    found.sort(key=lambda each: (-each.surest.n_certain, -each.surest.share) if each.surest else (0, 0.0))
    if not found or found[0].surest is None:
        return []
    first, n = found[0], found[0].surest.n_certain
    by = f"The attacker \u201c{lowered(attacker(first))}\u201d"
    said = f"{by} finds the most people with certainty: {n:,} of {first.n_targets:,}."
    rows = tuple(
        (attacker(each), f"{each.surest.n_certain:,}", _with_interval(each.surest), share(each))
        for each in found[:6]
        if each.surest is not None
    )
    columns = ("attacker", "certain", "surest 1 %", "all")
    sentence = said if n else "Nobody was found with certainty."
    return [Paragraph(sentence), Table(columns=columns, rows=rows, caption=""), Paragraph(_WORST_OFF, kind="note")]


_AS_TYPED = {
    "Words kept as typed": ("words_as_typed", "log_size_kept", "terms_kept"),
    "Queries kept as typed": ("coverage_volume", "rows_kept", "users_kept"),
}
"""The first figures of a report on what is kept, and the scores that say it, the best one first."""


def kept_figures(report: Report) -> tuple[Figure, ...]:
    """Return the words and queries kept as typed; what comes nearest, under its own name, where that was not measured.

    Nothing if nothing was measured.
    """
    found = []
    for label, names in _AS_TYPED.items():
        scores = [] if report.measures is None else [report.measures.named(name) for name in names]
        score = next((each for each in scores if each is not None), None)
        if score is not None:
            is_typed = score.name == names[0]
            title = label if is_typed or "log_size" not in score.name else "Words kept, generalised ones in part"
            title = title if is_typed or "log_size" in score.name else score.title.capitalize()
            found.append(Figure(value=score.written, label=title, note=score.about))
    return tuple(found)


def validity_section(report: Report) -> list[Block]:
    """Return the date, the versions, the seed, until when it may be relied on, and what to run again."""
    held, versions = report.validity, report.manifest.versions
    rows: list[tuple[Cell, ...]] = [
        ("made on", report.made_on.isoformat()),
        ("valid until", "" if held.until is None else held.until.isoformat()),
        ("made with", f"queryveil {report.made_with}"),
        ("release made with", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("targets of each attacker, at most", held.n_targets),
    ]
    if held.seed is not None:
        rows.append(("seed of the targets", str(held.seed)))
        rows.append(("it follows from", f"sha256 {held.commitment}"))
    folder = quote(report.folder)
    key = " --key FILE" if report.manifest.columns.ids is Ids.KEYED else ""
    return [
        Table(columns=("what", "value"), rows=tuple(rows), caption=""),
        Paragraph(_SEED if held.seed is not None else _OWN_SEED, kind="note"),
        Paragraph("Run it again:"),
        Bullets(_AGAIN),
        Commands((f"queryveil report {folder} --original LOG{key} --limit {100 * report.limit.share:g}%",)),
    ]


_SIGNED = "What is signed is the release with this checksum, for this recipient and this purpose, and no other:"
_ELECTRONIC = "To sign the folder itself, so that its recipient can check whose release it is:"
_I_SIGN = (
    "I have read this report. I know what the promise does not cover, and what attackers find. For the recipient and "
    "the purpose named above I regard the remaining risk as acceptable until the day named above."
)
_FIELDS = ("Name", "Function", "Place and date", "Signature")


def signature_section(report: Report) -> list[Block]:
    """Return what is signed, the lines to sign on, and the commands that sign the folder."""
    data, folder = report.manifest.data, quote(report.folder)
    file = (f"sha256 {data.sha256}  {data.name}",) if data is not None else ()
    blocks: list[Block] = [Paragraph(_SIGNED), Commands(file)] if file else []
    return [
        *blocks,
        Paragraph(_I_SIGN),
        Form(fields=_FIELDS),
        Paragraph(_ELECTRONIC, kind="note"),
        Commands((f"queryveil sign {folder} --key FILE", f"queryveil verify {folder} --signed-by FILE")),
    ]


def risk_badge(report: Report) -> Badge:
    """Return the badge of the risk that attackers find somebody, beside the limit."""
    limit = percent(report.limit.share)
    ruled_out = ", some attackers ruled out" if _rules_some_out(report) else ""
    match report.risk:
        case Risk.UNDER:
            return Badge(f"Risk under {limit}{ruled_out}", "good")
        case Risk.OVER:
            return Badge(f"Risk over {limit}{ruled_out}", "bad")
        case Risk.TOO_FEW:
            return Badge(f"Too few targets to show {limit}", "open")
        case Risk.UNKNOWN:
            return Badge("Risk not known", "open")

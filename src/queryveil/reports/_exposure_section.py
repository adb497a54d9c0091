"""The sections on exposure: what attackers find in the release, and in the log with only the ids changed."""

from collections.abc import Iterable

from queryveil.attacks import Attacks, Attempt, Exposure, Surest
from queryveil.attacks.names import name_title
from queryveil.attacks.names import title as attacker
from queryveil.attacks.suite import ESTIMATED_EXPOSURE
from queryveil.attacks.sybil import BY_CHANCE_UNDER_NOISE
from queryveil.html_tables import percent
from queryveil.reports._blocks import Block, Bullets, Paragraph, Picture, Table, capitalized, lowered
from queryveil.reports.charts import BeforeAfter, Line, line_chart, paired_bar_chart
from queryveil.reports.value import Report

TYPICAL = 4
"""The number of known terms that one attack is shown for, in place of all numbers."""
_BY_TERMS = ("known_terms", "likely_terms")
_COLUMNS = ("attacker", "after", "95 % interval", "by chance", "before", "sought", "knows")
_BY_NAME = "whoever knows a few search terms of a person can find the person's rows"
_BY_TIME = "whoever knows when a person searched can find the person's rows"
_BY_PLANTING = "whoever plants queries beforehand learns whether a person asked them"
_MEANINGS = {
    **dict.fromkeys((*_BY_TERMS, "counted_terms"), _BY_NAME),
    **dict.fromkeys(("clock", "clock_equals"), _BY_TIME),
    **dict.fromkeys(("sybil", "sybil_early"), _BY_PLANTING),
    "rare_pair": "two or three terms together single a person out",
    "vanity": "whoever looks for a name and a town finds the person who asked for both",
    "token_inversion": "hashed terms can be read",
    "membership": "whoever knows the history of a person can tell that the person is in the log",
    "added_rows": "made-up rows can be told from real ones",
    "shared_term": "what a whole group shares is learned of each of its members",
    "repeats": "a query that one person repeats stands out",
    "fragments": "texts that one person alone asked stand in it, and may tell whose they are",
    "named_fragments": "names stand in texts that one person alone asked",
    "stitch": "rows of one person can be linked with each other",
    "site_owner": "the owner of a clicked page can find its visitors",
    "neighbour": "whoever knows the rest of the log can tell whether a person is in it",
    "shared_weight": "terms of one weight can be taken for those of one person",
    "known_profile": "whoever knows some terms of a person learns another one",
    "later_log": "whoever has later searches of the same people finds them again",
    "sensitive": "sensitive interests of one person can be guessed",
}
_GIVEN_BACK = "rows can be given back to those who asked them"


def meaning(found: Exposure) -> str:
    """Return in plain words what it means that an attacker succeeds.

    >>> meaning(Exposure(attacker="rebuild_1", knows="", n_targets=9, n_found=1, n_by_chance=0))
    'rows can be given back to those who asked them'
    """
    if _is_rebuilder(found.attacker):
        return _GIVEN_BACK
    return _MEANINGS.get(found.attacker, f"the attacker \u201c{lowered(attacker(found))}\u201d succeeds")


def _is_rebuilder(name: str) -> bool:
    """Return whether an attacker tries to undo an exchange of queries."""
    return name.startswith(("as_released", "active_id", "rebuild_"))


def share(found: Exposure) -> str:
    """Return the share found as text; without targets there is none."""
    return percent(found.share) if found.n_targets else "none sought"


def interval(found: Exposure | Surest) -> str:
    if isinstance(found, Exposure) and found.is_complete:
        return found.interval_in_words
    return " to ".join(map(percent, found.interval))


def exposure_section(report: Report) -> list[Block]:
    if report.attacks is None:
        return [Paragraph(report.why_no_attacks)]
    attempts = report.attacks.attempts
    blocks: list[Block] = [Paragraph(_reading(report.attacks))]
    if attempts:
        blocks += [_bars(attempts), _table("All attacks", _not_by_terms(attempts))]
    n_rebuilders = sum(_is_rebuilder(one.after.attacker) for one in attempts)
    if n_rebuilders > 1:
        # The best of several, chosen once all are known, looks better than any one of them is.
        best = f"Of the {n_rebuilders} that try to undo the exchange, the picture shows the one that found most."
        blocks.append(Paragraph(best, kind="note"))
    if report.manifest.promise.is_noisy and report.attacks.named("sybil") is not None:
        blocks.append(Paragraph(f"{name_title('sybil')}, by chance: {BY_CHANCE_UNDER_NOISE}.", kind="note"))
    if not report.attacks.exact:
        blocks.append(Paragraph(f"{capitalized(ESTIMATED_EXPOSURE)}.", kind="note"))
    if report.attacks.skipped:
        blocks += [Paragraph("Not tried, and why:"), Bullets(_skipped(report.attacks))]
    return blocks


def known_terms_section(report: Report) -> list[Block]:
    """Return the share of people found by the number of known terms; nothing if fewer than two numbers were tried."""
    attempts = () if report.attacks is None else report.attacks.attempts
    known = [one for one in attempts if one.after.attacker in _BY_TERMS]
    likely = [one for one in known if one.after.attacker == "likely_terms"]
    sure = [one for one in known if one.after.attacker == "known_terms" and not one.after.n_wrong]
    best = likely or sure
    if len(best) < 2:
        return []
    by_chance = tuple((one.after.n_known or 0, one.after.chance_share) for one in best)
    lines = [
        Line(name="before", points=_points(one.before for one in best), kind="before"),
        Line(name="after", points=_points(one.after for one in best)),
        Line(name="by chance", points=by_chance, kind="chance"),
    ]
    if likely:
        lines += [
            Line(name="before, if sure", points=_points(one.before for one in sure), kind="before", thin=True),
            Line(name="after, if sure", points=_points(one.after for one in sure), thin=True),
        ]
    chart = line_chart(
        title="People found by what is known of them",
        description="Share of people found by somebody who knows some of their search terms and guesses, or names only "
        "who stands out.",
        x_label="search terms known",
        y_label="people found",
        lines=[line for line in lines if line.points],
        is_share=True,
    )
    first, last = best[0].after, best[-1].after
    slope = f"Whoever knows {first.n_known} search terms of a person finds {share(first)} of people in the release; "
    slope += f"whoever knows {last.n_known} finds {share(last)}."
    return [Paragraph(slope), Picture(svg=chart, instead=_table("By what is known", known))]


def typical(attacks: Attacks) -> Attempt | None:
    """Return the attack by four known terms, all of them right; None if it did not run."""
    return attacks.named("likely_terms", n_known=TYPICAL) or attacks.named("known_terms", n_known=TYPICAL)


def one_per_kind(attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """Return one attack of each kind: by terms that with four, and of those that undo an exchange the best one."""
    kept = _not_by_terms(attempts)
    rebuilders = [one for one in kept if _is_rebuilder(one.after.attacker)]
    best = sorted(rebuilders, key=lambda attempt: -attempt.after.share)[:1]
    return (*(one for one in kept if one not in rebuilders), *best)


def _reading(attacks: Attacks) -> str:
    ran = one_per_kind(attacks.attempts)
    if not ran:
        return "No attacker fits this release."
    above = [lowered(attacker(one.after)) for one in ran if one.after.beats_chance]
    first = (
        "Each attacker tried the release (after), and beside it the original with nothing changed but the user ids "
        "(before). Near blind guessing, this attacker learned nothing; another may."
    )
    if not above:
        return f"{first} In the release nobody found clearly more than by blind guessing."
    listed = " and ".join([", ".join(above[:-1]), above[-1]] if len(above) > 1 else above)
    return f"{first} Clearly above blind guessing in the release: {listed}."


def _bars(attempts: Iterable[Attempt]) -> Picture:
    chart = paired_bar_chart(
        title="Found before and after",
        description="Share of what each attacker sought and found; the mark is blind guessing.",
        rows=[
            BeforeAfter(
                label=attacker(one.after),
                before=None if one.before is None else one.before.share,
                after=one.after.share,
                chance=one.after.chance_share,
                interval=one.after.interval,
            )
            for one in one_per_kind(attempts)
        ],
    )
    return Picture(svg=chart, instead=None)


def _not_by_terms(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Return the attacks without those by terms, except by four: the others have a picture of their own."""
    found = [(one, one.after) for one in attempts]
    return [one for one, it in found if it.attacker not in _BY_TERMS or (it.n_known, it.n_wrong) == (TYPICAL, 0)]


def _table(caption: str, attempts: Iterable[Attempt]) -> Table:
    rows = []
    for one in attempts:
        before, after = one.before, one.after
        was = "" if before is None else share(before)
        if before is not None and before.n_targets:
            was += f" ({interval(before)})"
        sought, chance = f"{after.n_targets:,} {after.what}", percent(after.chance_share)
        rows.append((attacker(after), share(after), interval(after), chance, was, sought, after.knows))
    return Table(columns=_COLUMNS, rows=tuple(rows), caption=caption)


def _skipped(attacks: Attacks) -> tuple[str, ...]:
    names: dict[str, dict[str, None]] = {}
    for one in attacks.skipped:
        name = "exchange undone" if _is_rebuilder(one.attacker) else name_title(one.attacker)
        names.setdefault(one.reason, {})[name] = None
    # Some names have commas of their own.
    return tuple(f"{capitalized('; '.join(map(lowered, found)))}: {reason}." for reason, found in names.items())


def _points(found: Iterable[Exposure | None]) -> tuple[tuple[float, float], ...]:
    return tuple((one.n_known or 0, one.share) for one in found if one is not None)

"""The sections on exposure: what attackers find in the release, and in the log with only the ids changed."""

from collections.abc import Iterable

from queryveil.attacks.exposure import Exposure
from queryveil.attacks.suite import Attacks, Attempt
from queryveil.attacks.sybil import BY_CHANCE_UNDER_NOISE
from queryveil.html_tables import percent
from queryveil.reports._blocks import (
    Block,
    Bullets,
    Paragraph,
    Picture,
    Section,
    Table,
    attacker,
    capitalized,
    is_rebuilder,
    lowered,
    named,
    share,
)
from queryveil.reports.charts import BeforeAfter, Line, line_chart, paired_bar_chart
from queryveil.reports.value import Report

TYPICAL = 4
"""The number of known terms that one attack is shown for, in place of all numbers."""
_BY_TERMS = ("known_terms", "likely_terms")
_COLUMNS = ("attacker", "knows", "sought", "before", "after", "95 % interval", "by chance")
_ESTIMATED = (
    "The ids of the release do not tell who is who. It was estimated from what people did; "
    "where n people fit equally well, naming one of them counts as 1/n found."
)


def exposure_section(report: Report) -> Section:
    """Return the share that each attacker found, before and after."""
    title = "What attackers find"
    if report.attacks is None:
        return Section(name="exposure", title=title, blocks=(Paragraph(text=report.why_no_attacks),))
    attempts = report.attacks.attempts
    blocks: list[Block] = [Paragraph(text=_reading(report.attacks))]
    if attempts:
        blocks += [_bars(attempts), _table("All attacks", _not_by_terms(attempts))]
    n_rebuilders = sum(is_rebuilder(one.after.attacker) for one in attempts)
    if n_rebuilders > 1:
        # The best of several, chosen once all are known, looks better than any one of them is.
        best = f"Of the {n_rebuilders} that try to undo the exchange, the picture shows the one that found most."
        blocks.append(Paragraph(text=best, kind="note"))
    if report.manifest.promise.is_noisy and report.attacks.named("sybil") is not None:
        blocks.append(Paragraph(text=f"{named('sybil')}, by chance: {BY_CHANCE_UNDER_NOISE}.", kind="note"))
    if not report.attacks.exact:
        blocks.append(Paragraph(text=_ESTIMATED, kind="note"))
    if report.attacks.skipped:
        blocks += [Paragraph(text="Not tried, and why:"), Bullets(items=_skipped(report.attacks))]
    return Section(name="exposure", title=title, blocks=tuple(blocks))


def known_terms_section(report: Report) -> Section | None:
    """Return the share of people found by the number of known terms; None if fewer than two numbers were tried."""
    if report.attacks is None:
        return None
    known = [one for one in report.attacks.attempts if one.after.attacker in _BY_TERMS]
    likely = [one for one in known if one.after.attacker == "likely_terms"]
    sure = [one for one in known if one.after.attacker == "known_terms" and not one.after.n_wrong]
    best = likely or sure
    if len(best) < 2:
        return None
    lines = [
        Line(name="before", points=_points(one.before for one in best), kind="before"),
        Line(name="after", points=_points(one.after for one in best), kind="after"),
        Line(
            name="by chance",
            points=tuple((one.after.n_known or 0, one.after.chance_share) for one in best),
            kind="chance",
        ),
    ]
    if likely:
        lines += [
            Line(name="before, if sure", points=_points(one.before for one in sure), kind="before", thin=True),
            Line(name="after, if sure", points=_points(one.after for one in sure), kind="after", thin=True),
        ]
    chart = line_chart(
        title="People found by what is known of them",
        description="Share of people found by somebody who knows some of their search terms and guesses, or names only "
        "who stands out.",
        x_label="search terms known",
        y_label="people found",
        lines=[line for line in lines if line.points],
        percent=True,
    )
    picture = Picture(svg=chart, instead=_table("By what is known", known))
    return Section(name="known-terms", title="The more is known", blocks=(Paragraph(text=_slope(best)), picture))


def typical(attacks: Attacks | None) -> Attempt | None:
    """Return the attack by four known terms, all of them right; None if it did not run."""
    if attacks is None:
        return None
    return attacks.named("likely_terms", n_known=TYPICAL) or attacks.named("known_terms", n_known=TYPICAL)


def one_per_kind(attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """Return one attack of each kind: by terms that with four, and of those that undo an exchange the best one."""
    kept, rebuilders = list[Attempt](), list[Attempt]()
    for attempt in attempts:
        found = attempt.after
        if is_rebuilder(found.attacker):
            rebuilders.append(attempt)
        elif found.attacker not in _BY_TERMS or (found.n_known, found.n_wrong) == (TYPICAL, 0):
            kept.append(attempt)
    best = sorted(rebuilders, key=lambda attempt: -attempt.after.share)[:1]
    return (*kept, *best)


def _reading(attacks: Attacks) -> str:
    ran = one_per_kind(attacks.attempts)
    if not ran:
        return "No attacker fits this release."
    above = [attacker(one.after) for one in ran if one.after.beats_chance]
    first = (
        "Each attacker tried the release (after), and beside it the original with nothing changed but the user ids "
        "(before). Near blind guessing, this attacker learned nothing; another may."
    )
    if not above:
        return f"{first} In the release nobody found clearly more than by blind guessing."
    return f"{first} Clearly above blind guessing in the release: {_listed(above)}."


def _bars(attempts: Iterable[Attempt]) -> Picture:
    rows = [
        BeforeAfter(
            label=attacker(one.after),
            before=None if one.before is None else one.before.share,
            after=one.after.share,
            chance=one.after.chance_share,
            interval=one.after.interval,
        )
        for one in one_per_kind(attempts)
    ]
    chart = paired_bar_chart(
        title="Found before and after",
        description="Share of what each attacker sought and found; the mark is blind guessing.",
        rows=rows,
    )
    return Picture(svg=chart, instead=None)


def _not_by_terms(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Return the attacks without those by terms, except by four: the others have a picture of their own."""
    return [one for one in attempts if one.after.attacker not in _BY_TERMS or one in one_per_kind([one])]


def _table(caption: str, attempts: Iterable[Attempt]) -> Table:
    rows = []
    for one in attempts:
        found = one.after
        low, high = found.interval
        rows.append(
            (
                attacker(found),
                found.knows,
                f"{found.n_targets:,} {found.what}",
                "" if one.before is None else share(one.before),
                share(found),
                f"{percent(low)} to {percent(high)}",
                percent(found.chance_share),
            )
        )
    return Table(columns=_COLUMNS, rows=tuple(rows), caption=caption)


def _skipped(attacks: Attacks) -> tuple[str, ...]:
    """Return the reasons why attackers did not run, each with its attackers."""
    names: dict[str, dict[str, None]] = {}
    for one in attacks.skipped:
        name = "exchange undone" if is_rebuilder(one.attacker) else named(one.attacker)
        names.setdefault(one.reason, {})[name] = None
    # Some names have commas of their own.
    return tuple(f"{capitalized('; '.join(map(lowered, found)))}: {reason}." for reason, found in names.items())


def _slope(right: list[Attempt]) -> str:
    first, last = right[0].after, right[-1].after
    return (
        f"Whoever knows {first.n_known} search terms of a person finds {share(first)} of people in the release; "
        f"whoever knows {last.n_known} finds {share(last)}."
    )


def _points(found: Iterable[Exposure | None]) -> tuple[tuple[float, float], ...]:
    return tuple((one.n_known or 0, one.share) for one in found if one is not None)


def _listed(names: list[str]) -> str:
    *first, last = map(lowered, names)
    return f"{', '.join(first)} and {last}" if first else last

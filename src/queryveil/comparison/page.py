"""A comparison as one HTML file that opens offline: the picture, the table, and what to type."""

from collections.abc import Sequence

from queryveil.attacks import Exposure
from queryveil.comparison.comparison import WORST, Comparison, label
from queryveil.html_tables import Html, escape, percent, table
from queryveil.reports.charts.dots import Dot, Kind, dot_chart
from queryveil.reports.render import badge, command, page, paragraph, scrolling, section, tiles
from queryveil.version import __version__

_RUNS_SIDE_BY_SIDE = 5
_KINDS: dict[str, Kind] = {"holds": "method", "broken": "broken", "promises nothing": "baseline"}


def render_html(comparison: Comparison) -> str:
    """Return the page; it holds no text and no id of the log."""
    return page(
        title="Methods side by side",
        kicker=f"queryveil compare: {comparison.n_users:,} people",
        lead=_lead(comparison),
        body=[
            _frontier(comparison),
            _runs(comparison),
            *([_attacks(comparison)] if any(_exposures(comparison)) else []),
            *([_scores(comparison)] if any(row.judged.scores for row in comparison.rows) else []),
            _how(comparison),
        ],
        footer=f"Made by queryveil {__version__}.",
    )


def _lead(comparison: Comparison) -> list[Html]:
    picked, before = comparison.picked, comparison.before
    if comparison.broken:
        names = ", ".join(row.name for row in comparison.broken)
        parts = [badge("a promise is broken", kind="bad"), paragraph(f"Do not use: {names}.", kind="warning")]
    elif picked is None:
        parts = [badge("nothing under the limit", kind="open")]
    else:
        parts = [badge(f"best: {picked.name}", kind="good")]
    parts.append(paragraph(comparison.in_words(), kind="lead"))
    parts += [paragraph(caution, kind="warning") for caution in comparison.cautions()]
    if picked is not None and picked.exposure is not None and picked.utility is not None:
        was = "" if before is None else f"{percent(before.share)} with nothing but ids changed"
        parts.append(
            tiles(
                [
                    (_found_by(comparison), percent(picked.exposure.share), was),
                    (picked.utility.title, picked.utility.written, picked.utility.about),
                    ("limit", percent(comparison.limit), "upper end of the 95 % interval"),
                ]
            )
        )
        parts.append(command(picked.command))
    return parts


def _frontier(comparison: Comparison) -> Html:
    title = comparison.utility.replace("_", " ")
    dots = [
        Dot(
            label=row.name,
            x=row.utility.value,
            y=row.exposure.share,
            kind=_KINDS.get(row.judged.standing, "other"),
            picked=row.is_picked,
        )
        for row in comparison.rows
        if row.utility is not None and row.exposure is not None
    ]
    places = {dot.label: (dot.x, dot.y) for dot in dots}
    scores = [row.utility for row in comparison.rows if row.name in places]
    chart = dot_chart(
        title="What each run keeps, and what it exposes",
        description=f"Each dot is a run: across, {title}; up, the share of targets {_found_by(comparison)}. "
        "The line joins the runs that no other beats.",
        x_label=title,
        y_label=_found_by(comparison),
        dots=dots,
        path=[places[row.name] for row in comparison.frontier],
        limit=comparison.limit,
        x_is_share=all(score is not None and score.is_share for score in scores),
    )
    return section("The frontier", body=[chart], name="frontier")


def _runs(comparison: Comparison) -> Html:
    columns, rows = comparison.table()
    promises = [
        (_whole(row.name), Html(f"{escape(row.judged.promise.in_words())}<br><code>{escape(row.command)}</code>"))
        for row in comparison.rows
        if row.judged.promise is not None
    ]
    cells = [tuple("" if cell == "-" else _whole(cell) for cell in row[:-1]) for row in rows]
    caption = "One row for each run; the best one under the limit is marked"
    return section(
        "The runs",
        body=[
            scrolling(table(columns[:-1], rows=cells, caption=caption)),
            *(paragraph(f"{note}.", kind="note") for note in comparison.notes()),
            scrolling(table(("run", "what it promises, and what to type"), rows=promises)),
        ],
        name="runs",
    )


def _attacks(comparison: Comparison) -> Html:
    found = _exposures(comparison)
    names = dict.fromkeys(name for each in found for name in each)
    rows = [(_whole(name), *(_whole(each.get(name, "")) for each in found)) for name in names]
    columns = ("attacker", "only ids changed", *(row.name for row in comparison.rows))
    tables = _in_parts(columns, rows, n_first=2, caption="Share of its targets that each attacker found")
    said = "In brackets the 95 % interval. Empty: the attacker does not apply to such a release."
    note = paragraph(said, kind="note")
    return section("All attackers", body=[*tables, note], name="attackers")


def _scores(comparison: Comparison) -> Html:
    scores = {score.name: score for row in comparison.rows for score in row.judged.scores}
    found = [{score.name: _whole(score.written) for score in row.judged.scores} for row in comparison.rows]
    rows = [
        (_whole(score.title), f"{score.better} is better", *(each.get(name, "") for each in found))
        for name, score in scores.items()
    ]
    columns = ("measure", "", *(row.name for row in comparison.rows))
    tables = _in_parts(columns, rows, n_first=2, caption="Each measure of what is kept")
    return section("All measures", body=tables, name="measures")


def _in_parts(columns: Sequence[str], rows: Sequence[Sequence[str]], *, n_first: int, caption: str) -> list[Html]:
    """Cut a table that has a column for each run into some that fit a page; the first columns stand in all of them.

    A row that has nothing in a part is left out of it.
    """
    parts = []
    for start in range(n_first, len(columns), _RUNS_SIDE_BY_SIDE):
        chosen = [*range(n_first), *range(start, min(start + _RUNS_SIDE_BY_SIDE, len(columns)))]
        kept = [[row[i] for i in chosen] for row in rows if any(row[i] for i in chosen[n_first:])]
        said = caption if start == n_first else f"{caption} (more runs)"
        parts.append(scrolling(table([columns[i] for i in chosen], rows=kept, caption=said)))
    return parts


def _how(comparison: Comparison) -> Html:
    lines = [
        "Each run made a release, which was verified, attacked and measured, and then thrown away. User ids were kept "
        "inside, which no attacker reads, so that who was found is known.",
        "A run is best if its promise holds, the upper end of the 95 % interval of its exposure is at most the limit, "
        "and it keeps most. What promises nothing is drawn to compare with and never chosen.",
    ]
    if comparison.n_public:
        lines.append(
            f"{comparison.n_public:,} other people stood for the public: attackers who learn from a log of the "
            "same kind learned from theirs."
        )
    lines.append("These are figures of one log. What an attacker knows who is not among these, they do not say.")
    return section("How it was done", body=[paragraph(line) for line in lines], name="how")


def _found_by(comparison: Comparison) -> str:
    return "found by the worst attacker" if comparison.exposure == WORST else f"found by {comparison.exposure}"


def _whole(text: str) -> str:
    """Let no line end within a text: a figure parted from its sign is hard to read, and wide tables scroll."""
    return text.replace(" ", "\u00a0")


def _exposures(comparison: Comparison) -> list[dict[str, str]]:
    """Return the share that each attacker found with its interval, in the original and in each run."""
    sides = [comparison.original, *(row.judged for row in comparison.rows)]
    return [{label(one): _share(one) for one in side.exposures} for side in sides]


def _share(found: Exposure) -> str:
    low, high = (percent(end).removesuffix(" %") for end in found.interval)
    return f"{percent(found.share)} ({low} to {high})"

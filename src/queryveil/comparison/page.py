"""A comparison as one HTML file that opens offline: the choice of a limit, the picture, the table, and what to type.

A small script ranks the runs anew when somebody moves the limit or chooses another purpose or reader. Without it the
page shows the choice that it was made with. What Python writes and what the script writes are the same words.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from math import nan
from typing import Any

import msgspec

from queryveil.attacks import Exposure
from queryveil.attacks.limits import least_risk, risk
from queryveil.attacks.names import base_name, label, title
from queryveil.attacks.readers import READERS
from queryveil.comparison.comparison import Comparison
from queryveil.comparison.plan import BINDING
from queryveil.comparison.row import DRAWN, OUTCOMES, Row, utility_in
from queryveil.html_tables import Html, escape, percent, table
from queryveil.reports.charts.dots import Dot, Kind, dot_chart
from queryveil.reports.render import bullets, joined, page, paragraph, scrolling, section
from queryveil.utility.score import Score
from queryveil.version import __version__

_KINDS: dict[str, Kind] = {"holds": "method", "broken": "broken", "promises nothing": "baseline"}
_BROKEN = "a promise is broken"
_OUTCOMES = (
    "Rejected: an attacker may find more than the limit. Promises nothing: a run to compare with, which is never "
    "chosen. Too few targets: so few to look for that the limit could not be shown even if none were found."
)
_LIMITS = (0.001, 0.002, 0.005, *(i / 100 for i in range(1, 11)), 0.12, *(i / 20 for i in range(3, 11)))
_HIGH_LIMITS = (0.6, 0.7, 0.8, 0.9, 1.0)
_LITERALS = re.compile(r"""(`[^`]*`|"[^"]*"|/ %/g)""")


def render_html(comparison: Comparison) -> str:
    """Return the page; it holds no text and no id of the log."""
    shown = _Shown(comparison)
    body = [
        _choice(shown),
        _runs(shown),
        _frontier(shown),
        *([_attackers(shown)] if shown.attackers else []),
        *([_measures(shown)] if any(row.judged.scores for row in comparison.rows) else []),
        _promises(comparison),
        _how(comparison),
        Html(f'<script type="application/json" id="figures">{_json(shown.figures())}</script>'),
    ]
    return page(
        title="Methods side by side",
        kicker=f"Runs, each a method with its settings, on a search log of {comparison.n_users:,} people",
        lead=_lead(comparison),
        body=body,
        footer=f"Made by queryveil {__version__}.",
        style=_template("compare.css"),
        script=_squeezed(_template("compare.js")),
    )


class _Shown:
    """What the page can show of a comparison: the attackers that ran, and the measures and limits to choose from."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        sides = [comparison.original, *(row.judged for row in comparison.rows)]
        ran = [found for side in sides for found in side.exposures if found.n_targets]
        self.attackers: dict[str, Exposure] = {}
        for found in ran:
            self.attackers.setdefault(label(found), found)
        self.limits = sorted({*_LIMITS, *_HIGH_LIMITS, comparison.limit})
        self.measures = self._measures()

    def _measures(self) -> list[Score]:
        """Return one score of each measure to choose from: those of purposes, and the one chosen."""
        rows = self.comparison.rows
        chosen = self.comparison.utility
        names = dict.fromkeys([chosen, *(purpose.measure for purpose in self.comparison.purposes)])
        found = [utility_in(row.judged, name) for name in names for row in rows]
        scores = {score.name: score for score in reversed(found) if score is not None}
        if not scores.get(chosen) or not scores[chosen].is_share:
            # It has an axis of its own.
            names = {chosen: None}
        return [scores.get(name) or Score(name=name, value=nan, better="more", about="") for name in names]

    def option(self, score: Score) -> str:
        """Return the words for a measure to choose."""
        titles = [each.title for each in self.comparison.purposes if each.measure == score.name]
        return f"{titles[0]} ({score.title})" if titles else score.title[:1].upper() + score.title[1:]

    def figures(self) -> dict[str, Any]:
        """Return what the script needs: figures and names of methods, attackers and measures."""
        comparison, places = self.comparison, {name: i for i, name in enumerate(self.attackers)}
        excepted = zip(comparison.rule.exceptions, comparison.exceptions_in_words(named=False), strict=True)
        return {
            "limits": self.limits,
            "purposes": [{"title": one.title, "sign": -1 if one.better == "more" else 1} for one in self.measures],
            "readers": [{"title": one.title, "attackers": one.attackers} for one in READERS.values()],
            "exceptions": dict(excepted),
            "attackers": [
                {"title": title(one), "label": name, "name": base_name(one.attacker), "what": one.what}
                for name, one in self.attackers.items()
            ],
            "broken": _BROKEN if comparison.broken else "",
            "outcomes": OUTCOMES,
            "drawn": DRAWN,
            "shown": comparison.exposure != BINDING,
            "runs": [
                {
                    "name": row.name,
                    "standing": row.judged.standing,
                    "kept": [_kept(utility_in(row.judged, one.name)) for one in self.measures],
                    "found": [_found(one, by=places[label(one)]) for one in row.judged.exposures if one.n_targets],
                    "shown": None if row.exposure is None else risk(row.exposure),
                }
                for row in comparison.rows
            ],
        }


def _kept(score: Score | None) -> dict[str, float | str] | None:
    return None if score is None else {"value": score.value, "text": score.written}


def _found(found: Exposure, *, by: int) -> dict[str, float | str]:
    shares = {name: float(f"{share:.6g}") for name, share in (("share", found.share), ("chance", found.chance_share))}
    return {
        "by": by,
        "risk": risk(found),
        "least": least_risk(found),
        "n": found.n_targets,
        "sure": found.interval_in_words,
        **shares,
    }


def _json(figures: dict[str, Any]) -> Html:
    # A run may be called anything, "</script>" too.
    return Html(msgspec.json.encode(figures).decode().replace("<", "\\u003c"))


def _lead(comparison: Comparison) -> list[Html]:
    picked = comparison.picked
    kind, said = ("good", f"best: {picked.name}") if picked else ("open", "none is under the limit")
    if comparison.broken:
        kind, said = "bad", _BROKEN
    warning = [paragraph(f"Do not use: {', '.join(row.name for row in comparison.broken)}.", kind="warning")]
    hidden, text = ("", picked.command) if picked else (" hidden", "")
    exceptions = [paragraph(_unbroken(said), kind="warning") for said in comparison.exceptions_in_words()]
    return [
        Html(f'<p aria-live="polite"><span id="badge" class="badge {kind}">{escape(said)}</span></p>'),
        *(warning if comparison.broken else []),
        Html(f'<p class="lead" id="said">{escape(_unbroken(comparison.in_words()))}</p>'),
        Html(f'<pre id="command"{hidden}><code>{_typed(text)}</code></pre>'),
        Html(f'<div id="exceptions">{"".join(exceptions)}</div>'),
    ]


def _choice(shown: _Shown) -> Html:
    comparison = shown.comparison
    place = shown.limits.index(comparison.limit)
    options = [f'<option value="{i}">{escape(shown.option(one))}</option>' for i, one in enumerate(shown.measures)]
    readers = [
        f'<label><input type="checkbox" name="reader"{" checked" if name in comparison.rule.readers else ""}>'
        f"<span>{escape(one.title)} <small>{escape(one.knows)}</small></span></label>"
        for name, one in READERS.items()
    ]
    form = f"""<form id="choice" autocomplete="off" hidden>
<p>The sentence above, the table and the picture follow what you choose here. The risk of a run is the most that an
attacker may find in it; one with few people to look for leaves much open.</p>
<div><p><label for="limit">Limit: an attacker may find at most <output name="shown" for="limit"></output></label>
<input type="range" id="limit" name="limit" min="0" max="{len(shown.limits) - 1}" step="1" value="{place}"></p>
<p><label for="purpose">What the release is for, or should keep</label>
<select id="purpose" name="purpose">{"".join(options)}</select></p>
</div>
<fieldset><legend>Who may read it, and what they know</legend>{"".join(readers)}</fieldset>
</form>
<noscript><p class="note">This is the choice that the page was made with. Where scripts run, the limit, the purpose and
the readers can be chosen here.</p></noscript>"""
    return section("Choose", body=[Html(form)], name="choose")


def _runs(shown: _Shown) -> Html:
    comparison = shown.comparison
    numbers = {row.name: i for i, row in enumerate(comparison.rows)}
    lines = [
        f'<tr data-run="{numbers[row.name]}" class="{_look(row)}"><th scope="row"><i>{numbers[row.name] + 1}</i> '
        f"{_breakable(row.name)}</th><td>{row.outcome}</td>"
        f"<td>{escape(_unbroken('' if row.utility is None else row.utility.written))}</td>"
        f"<td><b>{_unbroken('' if row.ruling.binding is None else percent(row.ruling.risk))}</b> "
        f"<span>{escape(_whose(row))}</span></td></tr>"
        for row in comparison.ranked
    ]
    head = "".join(
        f'<th scope="col"{class_}>{escape(name)}</th>'
        for name, class_ in (
            ("run", ""),
            ("outcome", ""),
            (comparison.utility.replace("_", " "), ' class="measure"'),
            ("highest risk, and by which attacker", ""),
        )
    )
    drawn = joined([Html(f"<table><thead><tr>{head}</tr></thead><tbody>"), *lines, Html("</tbody></table>")])
    notes = [escape(_unbroken(f"{note}.")) for note in comparison.notes(lasting=True)]
    said = [paragraph(_OUTCOMES, kind="note"), *([bullets(notes)] if notes else [])]
    return section("The runs", body=[drawn, *said], name="runs")


def _look(row: Row) -> str:
    return "best" if row.is_picked else "" if row.qualifies else "out"


def _whose(row: Row) -> str:
    """Return the plain name of the attacker that binds, and whether it has too few targets."""
    found, n_more = row.ruling.binding, len(row.ruling.over) - 1
    if found is None:
        return ""
    more = f", and {n_more} more" if n_more > 0 else ""
    return title(found) + more + (f" (too few targets: {found.n_targets})" if found in row.ruling.too_few else "")


def _frontier(shown: _Shown) -> Html:
    comparison = shown.comparison
    dots = [
        Dot(
            label=row.name,
            x=nan if row.utility is None else row.utility.value,
            y=nan if row.exposure is None else risk(row.exposure),
            kind=_KINDS.get(row.judged.standing, "other"),
            picked=row.is_picked,
        )
        for row in comparison.rows
    ]
    on = [row for row in comparison.frontier if row.utility is not None]
    by = "highest risk" if comparison.exposure == BINDING else f"risk by {comparison.exposure}"
    chart = dot_chart(
        title="What each run keeps, and what it risks",
        description="Each dot is a run, numbered as in the table. The line joins the runs that no other beats.",
        x_label=shown.measures[0].title,
        y_label=by,
        dots=dots,
        path=[(row.utility.value, row.point[0]) for row in on if row.utility is not None],
        limit=comparison.limit,
        x_is_share=shown.measures[0].is_share,
        movable=True,
    )
    return section("What is kept, and what is risked", body=[chart], name="frontier")


def _attackers(shown: _Shown) -> Html:
    sides = [shown.comparison.original, *(row.judged for row in shown.comparison.rows)]
    found = [{label(one): one for one in side.exposures if one.n_targets} for side in sides]
    considered = [{*row.ruling.considered} for row in shown.comparison.rows]
    lines = []
    for name, attacker in shown.attackers.items():
        cells = [each.get(name) for each in found]
        is_in = [cell in each for cell, each in zip(cells[1:], considered, strict=True)]
        overs = [
            one is not None and it and risk(one) > shown.comparison.limit
            for one, it in zip(cells[1:], is_in, strict=True)
        ]
        texts = [_short(None if cell is None else 100 * risk(cell)) for cell in cells]
        lines.append((title(attacker), texts, [False, *overs], any(is_in)))
    said = (
        "Per cent of its targets that each attacker finds: the upper end of the 95 % interval, or what this is beyond "
        "blind guessing where that finds 5 % or more. Bold: above the limit. Grey: not considered. Empty: it does not "
        "apply. Shares, intervals and numbers of targets are in table.csv."
    )
    drawn = _matrix("attacker", lines, runs=shown.comparison.rows, first="ids only")
    return section("Every attacker", body=[scrolling(drawn), paragraph(_unbroken(said), kind="note")], name="matrix")


def _measures(shown: _Shown) -> Html:
    rows = shown.comparison.rows
    scores = {score.name: score for row in rows for score in row.judged.scores}
    lines = []
    for name, score in scores.items():
        unit = ", %" if score.is_share else ""
        less = ", less is better" if score.better == "less" else ""
        values = [utility_in(row.judged, name) for row in rows]
        texts = [_short(None if one is None else one.value * (100 if one.is_share else 1)) for one in values]
        lines.append((f"{score.title}{unit}{less}", texts, [False] * len(rows), True))
    return section("Every measure", body=[scrolling(_matrix("measure", lines, runs=rows))], name="measures")


def _matrix(
    what: str, lines: Iterable[tuple[str, list[str], list[bool], bool]], *, runs: Sequence[Row], first: str = ""
) -> Html:
    """Return a table with a narrow column for each run; those above the limit are marked, and lines without any."""
    heads = [f'<th scope="col">{escape(first)}</th>'] if first else []
    heads += [
        f'<th scope="col"><abbr title="{escape(row.name)}">{i}</abbr></th>' for i, row in enumerate(runs, start=1)
    ]
    body = []
    for name, texts, overs, is_in in lines:
        cells = "".join(
            f'<td class="over">{escape(text)}</td>' if over else f"<td>{escape(text)}</td>"
            for text, over in zip(texts, overs, strict=True)
        )
        body.append(f'<tr class="{"" if is_in else "out"}"><th scope="row">{escape(name)}</th>{cells}</tr>')
    head = f'<thead><tr><th scope="col">{what}</th>{"".join(heads)}</tr></thead>'
    return joined([Html(f'<table class="matrix">{head}<tbody>'), *body, Html("</tbody></table>")])


def _short(value: float | None) -> str:
    """Write a figure in few letters.

    >>> [_short(value) for value in (96.61, 4.96, 0.04, 0.0, 123456.0, None)]
    ['97', '5', '0.04', '0', '1.2e+05', '']
    """
    return "" if value is None else f"{value:.2g}" if value < 99.5 or value > 999 else f"{value:.0f}"


def _promises(comparison: Comparison) -> Html:
    rows = [
        (
            Html(f"{i} {_breakable(row.name)}"),
            Html(
                f"{escape('' if row.judged.promise is None else row.judged.promise.in_words())} "
                f"<code>{_typed(row.command)}</code>"
            ),
        )
        for i, row in enumerate(comparison.rows, start=1)
    ]
    drawn = table(("run", "what it promises, and what to type"), rows=rows)
    return section("Promises and commands", body=[drawn], name="promises")


def _how(comparison: Comparison) -> Html:
    lines = [
        "Each run made a release, which was verified, attacked and measured, and then thrown away. User ids were kept "
        "inside, which no attacker reads, so that who was found is known.",
        "A run qualifies if its promise holds and no attacker of the readers chosen has a risk above the limit. The "
        "risk is the upper end of the 95 % interval of what it finds, or what this is beyond blind guessing where that "
        "finds 5 % or more. The best run is the one of these that keeps most. What promises nothing is never chosen.",
    ]
    if comparison.n_public:
        lines.append(
            f"{comparison.n_public:,} other people stood for the public: attackers who learn from a log of the "
            "same kind learned from theirs."
        )
    lines.append("These are figures of one log. What an attacker knows who is not among these, they do not say.")
    return section("How it was done", body=[paragraph(_unbroken(line)) for line in lines], name="how")


def _breakable(name: str) -> Html:
    """Return a name that may end a line after its signs, and nowhere else."""
    return Html(escape(name).replace("=", "=<wbr>").replace("_", "_<wbr>"))


def _typed(command: str) -> Html:
    """Return a command of which lines end between words only, and not within an option."""
    return Html(" ".join(f"<span>{escape(word)}</span>" for word in command.split(" ") if word))


def _unbroken(text: str) -> str:
    """Return a text in which no line ends between a number and its per cent sign."""
    return text.replace(" %", "\u00a0%")


def _squeezed(script: str) -> str:
    r"""Return a script without comments and without blanks around signs; texts stay as they are.

    >>> print(_squeezed("// Why.\nconst a = [ 1, 2 ];\n  put(`a = ${ b }`, x);"))
    const a=[1,2];put(`a = ${ b }`,x);
    """
    lines = (line.strip() for line in script.splitlines())
    parts = _LITERALS.split("\n".join(line for line in lines if not line.startswith("//")))
    parts[::2] = [re.sub(r"\s*([=<>{}()\[\],;:?&|+*-])\s*", r"\1", part) for part in parts[::2]]
    return "".join(parts)


@cache
def _template(name: str) -> str:
    return files("queryveil.comparison").joinpath("templates", name).read_text(encoding="utf-8")

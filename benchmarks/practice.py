"""What industry and regulators do beside the papers' methods: exposure against what is covered, on one log.

    python -m benchmarks.practice --users 20000 --table practice.md --picture practice.svg
    python -m benchmarks.practice --log searches.ndjson --runs km:k=5:m=2,google_2024,dp

Each run is judged as `compare` judges it: a quarter of the users stand for the public, and every attacker that applies
is tried. The first table has a row for each run, the second one for each attacker; the picture shows the first.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from queryveil.attacks import Person
from queryveil.attacks.limits import Limit, risk
from queryveil.attacks.names import label
from queryveil.attacks.readers import READERS
from queryveil.comparison.judged import ComparisonInput, Judged
from queryveil.comparison.plan import plan_of
from queryveil.comparison.running import judge_all
from queryveil.formats import read_log
from queryveil.html_tables import escape, percent
from queryveil.reports.charts.dots import Dot, Kind, dot_chart
from queryveil.synthesis import synthesize

SCORES = (
    *("coverage_volume", "queries_kept", "coverage_tail_5", "coverage_tail_10", "coverage_tail_50"),
    *("ranking_kept", "words_as_typed"),
)
RUNS = (
    *(
        "km:k=10:m=3:keep=url+rank",
        "km:k=10:m=3:taxonomy=wordnet:keep=url+rank",
        "kdelta:k=5",
        "swap:k=10:keep=url+rank",
    ),
    *("plink:p=0.2:strict=true", "clump:k=5", "partition:k=5", "dp:epsilon=4:max_queries=1:clicks=0.3"),
    *("google_2024", "ec_2026", "ddg_2026:keep=url+rank", "brave_wdp:keep=url+rank", "mozilla:keep=url+rank"),
    *("query_threshold:k=5:keep=url+rank", "pseudonymise"),
)
"""With clicks, as far as a method can release them: ranking is learned from these."""
HOLDOUT = 0.25
_KINDS: dict[str, Kind] = {"holds": "method", "promises nothing": "baseline", "broken": "broken"}
_LEGEND = "Filled: the promise was checked and holds. Hollow: nothing is promised."
_LOOK = """
svg { --page: #ffffff; --ink: #16191d; --soft: #545d68; --grid: #e6e9ec; }
svg { --before: #6a737d; --after: #0b63a5; --other: #9a5b00; --bad: #a8330b; background: var(--page); }
@media (prefers-color-scheme: dark) {
  svg { --page: #14171a; --ink: #e9ebee; --soft: #a4aeb9; --grid: #2a3037; }
  svg { --before: #98a2ad; --after: #6bb6f5; --other: #e3ab57; --bad: #f6a07a; }
}
text { font-size: 11.5px; fill: var(--soft); } .name { fill: var(--ink); }
.grid { stroke: var(--grid); } .axis { stroke: var(--soft); } line.limit { stroke: var(--bad); }
text.limit { fill: var(--bad); } .before { stroke: var(--before); } .after { stroke: var(--after); }
.other { stroke: var(--other); } .bad { stroke: var(--bad); } .filled.after { fill: var(--after); }
.hollow { fill: var(--page); } .halo { paint-order: stroke; stroke: var(--page); stroke-width: 4px; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """The runs that were judged, and the rule for their exposure."""

    found: Sequence[Judged]
    limit: Limit

    def markdown(self) -> str:
        """Return both tables."""
        return f"{self._by_run()}\n\n{self._by_attacker()}\n"

    def _by_run(self) -> str:
        names = [name for name in SCORES if any(_score(each, name) is not None for each in self.found)]
        rows = []
        for each in self.found:
            ruling = self.limit.ruling(each.exposures)
            most = (
                f"{percent(ruling.risk)}, {label(ruling.binding)}" if ruling.binding else each.failed or "not attacked"
            )
            n_over = f"{len(ruling.over)} of {ruling.n_considered}"
            kept = (_score(each, name) for name in names)
            rows.append(
                [each.name, each.standing, *("-" if one is None else percent(one) for one in kept), most, n_over]
            )
        above = f"attackers above {percent(self.limit.share)}"
        return _table(["run", "promise", *names, "highest risk", above], rows)

    def _by_attacker(self) -> str:
        """Return the highest risk of each attacker; ° where its targets are too few for a risk below the limit."""
        there = [each for each in self.found if each.exposures]
        rows = []
        for name in sorted({one.attacker for each in there for one in each.exposures}):
            cells = []
            for each in there:
                too_few = self.limit.ruling(each.exposures).too_few
                tried = [one for one in each.exposures if one.attacker == name and one.n_targets]
                most = max(tried, key=risk, default=None)
                cells.append("-" if most is None else percent(risk(most)) + (" °" if most in too_few else ""))
            rows.append([name, *cells])
        return _table(["risk by attacker", *(each.name for each in there)], rows)

    def picture(self, *, across: str, readers: Sequence[str]) -> str:
        """Return a drawing of the highest risk of each run from the attackers of readers, against a score."""
        limit = replace(self.limit, readers=tuple(readers))
        dots = [
            Dot(
                label=re.sub(r" (keep|clicks)=\S+", "", each.name),
                x=score,
                y=limit.ruling(each.exposures).risk,
                kind=_KINDS.get(each.standing, "other"),
            )
            for each in self.found
            if limit.ruling(each.exposures).binding and (score := _score(each, across)) is not None
        ]
        chart = dot_chart(
            title="What is kept, and what is exposed",
            description=_LEGEND,
            x_label=across.replace("_", " "),
            y_label=f"highest risk of any attacker ({', '.join(READERS[name].title for name in readers)})",
            dots=dots,
            limit=limit.share,
        )
        return _alone(str(chart), names=[dot.label for dot in dots])


def _alone(figure: str, *, names: Sequence[str]) -> str:
    """Return the drawing of a figure as a file of its own, with its look and the names of its numbers."""
    drawing = re.search(r"<svg[^>]*aria-labelledby.*?</svg>", figure, re.DOTALL)
    assert drawing is not None
    text = drawing[0]
    frame = re.search(r'viewBox="0 0 (\d+) (\d+)"', text)
    assert frame is not None
    width, height = int(frame[1]), int(frame[2])
    half = (len(names) + 1) // 2
    lines = [
        f'<text class="name" x="{14 + width // 2 * (i // half)}" y="{height + 18 * (1 + i % half)}">'
        f"{i + 1} {escape(name)}</text>"
        for i, name in enumerate(names)
    ]
    lines.append(f'<text x="14" y="{height + 18 * (half + 1)}">{escape(_LEGEND)}</text>')
    box = f'viewBox="-8 0 {width + 16} {height + 18 * (half + 2)}" width="{width * 3 // 2}"'
    text = text.replace(frame[0], box, 1)
    text = text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    inside = text.index(">") + 1
    return f"{text[:inside]}<style>{_LOOK}</style>{text[inside:-6]}{''.join(lines)}</svg>\n"


def _score(judged: Judged, name: str) -> float | None:
    return next((score.value for score in judged.scores if score.name == name), None)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def input_of(given: argparse.Namespace) -> ComparisonInput:
    """Read the log, or make one up, with the people to be looked for."""
    if given.log is not None:
        return ComparisonInput(log=read_log(given.log), n_targets=given.targets, seed=given.seed)
    made = synthesize(users=given.users, seed=given.seed, format="ubi")
    people = [Person(name=each.name, town=each.town, user=each.user) for each in made.secrets]
    return ComparisonInput(log=made.log, people=people, n_targets=given.targets, seed=given.seed)


def main() -> None:
    """Parse the options, judge, and write the tables and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--log", type=Path, help="a log in place of made-up users")
    parser.add_argument(
        "--runs", default=",".join(RUNS), help="methods with settings, as `compare --methods` takes them"
    )
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=0.05)
    parser.add_argument("--reader", help="readers of the release, with commas; all if none are named")
    parser.add_argument("--across", default="coverage_tail_10", help="the score that the picture has across")
    parser.add_argument("--shown", default="recipient", help="the readers whose attackers the picture shows")
    parser.add_argument("--table", type=Path, help="a file for the tables in Markdown")
    parser.add_argument("--picture", type=Path, help="a file for the picture, SVG")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    limit = Limit(share=given.limit, readers=given.reader.split(",")) if given.reader else Limit(share=given.limit)
    runs = plan_of(given.runs).runs
    inputs = input_of(given).with_holdout(HOLDOUT)
    practice = Practice(found=judge_all(runs, inputs, jobs=given.jobs), limit=limit)
    print(f"{inputs.log.n_users:,} users, {inputs.log.n_rows:,} rows; {HOLDOUT:.0%} of the users were left out\n")
    print(practice.markdown())
    if given.table is not None:
        given.table.write_text(practice.markdown(), encoding="utf-8")
    if given.picture is not None:
        given.picture.write_text(
            practice.picture(across=given.across, readers=given.shown.split(",")), encoding="utf-8"
        )


if __name__ == "__main__":
    main()

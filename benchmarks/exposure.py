"""Every attacker against every method with its defaults, and what each release is still good for, as Markdown.

    python -m benchmarks.exposure [--users N | --log FILE] [--other CHECKOUT] [--methods km,swap:k=50] [--json FILE]

Without `--log`, on made-up users; a quarter of the users is held out for attackers who learn from a public log.
With `--other` the methods of another checkout, such as the state before a change, are attacked too, by the attackers of
this one: a cell is then `before → after`. Releases are made in processes with the sources of their checkout and written
as folders, and so is what sybil makes anew.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from queryveil import attack, measure, read_log, read_release
from queryveil.attacks import Exposure, Person
from queryveil.comparison import plan_of
from queryveil.comparison.judged import split
from queryveil.comparison.methods import METHODS, build_method
from queryveil.data import QueryLog
from queryveil.methods import Plink
from queryveil.release import Release
from queryveil.synthesis import synthesize
from queryveil.utility import Score

HERE = Path(__file__).resolve().parents[1]
HOLDOUT = 0.25
LEAST_BLIND = 0.005
LEFT_OUT = {("known_terms", n, wrong) for n in (2, 3, 6, 8) for wrong in (0, 2)} | {
    ("likely_terms", n, 0) for n in (3, 6)
}
"""Attackers by how many terms they know, and how many wrong ones, that only the JSON has."""
Figures = dict[str, dict[str, str]]
"""What stands in each cell, by row and method."""


def make(method: str, log: Path, folder: Path, *, seed: int) -> None:
    """Make a release with the sources that are imported; ids are kept or keyed, so that who is who is known."""
    # A name alone is the method with its own defaults, not with those of a comparison.
    name, _, settings = method.partition(":")
    built: Any = build_method(name, plan_of(method).runs[0].settings if settings else {}, seed=seed)
    if name == "swap" and getattr(built, "window", None):
        # Ids that change with time, as by default.
        built = replace(built, columns=replace(built.columns, ids="keyed", key=os.urandom(32)))
    if isinstance(built, Plink):
        grouping = built.group(read_log(log))
        grouping.release.save(folder)
        grouping.membership.write_parquet(folder.with_suffix(".members"))
    else:
        built.anonymize(read_log(log)).save(folder)
    key = getattr(built, "key", None) or built.columns.key if hasattr(built, "columns") else None
    if key is not None:
        folder.with_suffix(".key").write_bytes(key)


class Maker:
    """Makes releases with a method of a checkout, in a process of its own."""

    def __init__(self, checkout: Path, method: str, *, folder: Path, seed: int) -> None:
        self._checkout, self._method, self._folder, self._seed = checkout, method, folder, seed
        self._n_made = 0

    def __call__(self, log: QueryLog) -> Release:
        self._n_made += 1
        self.place = self._folder / f"{self._method}-{self._n_made}"
        file = self.place.with_suffix(".parquet")
        log.frame.write_parquet(file)
        command = [sys.executable, __file__, "--make", self._method, str(file), str(self.place), str(self._seed)]
        sources = os.pathsep.join([str(self._checkout / "src"), str(self._checkout)])
        environment = os.environ | {"PYTHONPATH": sources}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(f"{self._method} of {self._checkout}: {done.stderr.strip().splitlines()[-1]}")
        return read_release(self.place)


def judged(
    maker: Maker, log: QueryLog, *, public: QueryLog, people: Iterable[Person], seed: int
) -> tuple[list[Exposure], tuple[Score, ...]]:
    """Make a release, and return what attackers find in it and what it is good for."""
    release = maker(log)
    key, members = maker.place.with_suffix(".key"), maker.place.with_suffix(".members")
    secret = key.read_bytes() if key.is_file() else None
    membership = pl.read_parquet(members) if members.is_file() else None
    there = set(log.frame["user"])
    found = attack(
        log,
        release,
        key=secret,
        membership=membership,
        public=public,
        people=[person for person in people if person.user in there],
        remake=maker,
        seed=seed,
    )
    scores = measure(log, release, key=secret, membership=membership).scores
    return [attempt.after for attempt in found.attempts], scores


@dataclass
class Tables:
    """The cells of all tables."""

    found: Figures = field(default_factory=dict)
    blind: Figures = field(default_factory=dict)
    surest: Figures = field(default_factory=dict)
    measures: Figures = field(default_factory=dict)

    def add(self, method: str, found: list[Exposure], scores: tuple[Score, ...], *, is_first: bool) -> None:
        """Add what came of a release."""
        for each in shown(found):
            low, high = (f"{100 * end:.3g}" for end in each.interval)
            _put(self.found, each.title, method, f"{100 * each.share:.3g} ({low} to {high})", is_first=is_first)
            if each.chance_share >= LEAST_BLIND:
                _put(self.blind, each.title, method, f"{100 * each.chance_share:.2g}", is_first=is_first)
            if each.surest is not None:
                cell = f"{100 * each.surest.share:.3g}, {each.surest.n_certain}"
                _put(self.surest, each.title, method, cell, is_first=is_first)
        for score in scores:
            _put(self.measures, score.title, method, score.written, is_first=is_first)
        if not is_first:
            for figures in (self.found, self.blind, self.surest, self.measures):
                _close(figures, method)

    def markdown(self, methods: list[str]) -> str:
        """Return all tables."""
        titles = {
            "found in % (95 % interval)": self.found,
            f"best blind guess in %, where it is {LEAST_BLIND:.1%} or more": self.blind,
            "found of the surest 1 % in %, and found with certainty": self.surest,
            "measure": self.measures,
        }
        return "\n\n".join(markdown(figures, methods, title=title) for title, figures in titles.items())


def shown(found: Iterable[Exposure]) -> list[Exposure]:
    """Return the attacks that the tables show: few numbers of known terms, and the best of those that rebuild pools."""
    there = [each for each in found if each.n_targets]
    kept = [each for each in there if (each.attacker, each.n_known, each.n_wrong) not in LEFT_OUT]
    rebuilders = [each for each in kept if each.attacker.startswith("rebuild_")]
    best = max(rebuilders, key=lambda each: each.share, default=None)
    return [each for each in kept if each not in rebuilders] + (
        [] if best is None else [replace(best, attacker="rebuild, the best of eight")]
    )


def compared(log: QueryLog, people: list[Person], given: argparse.Namespace) -> Tables:
    """Return the cells of all tables; all figures go to the file for JSON."""
    released, public = split(log, share=HOLDOUT, seed=given.seed)
    tables = Tables()
    plain: list[object] = []
    checkouts = [*([given.other.resolve()] if given.other else []), HERE]
    for method in given.methods.split(","):
        for checkout in checkouts:
            print(f"{method} of {checkout.name}", file=sys.stderr, flush=True)
            with TemporaryDirectory() as folder:
                maker = Maker(checkout, method, folder=Path(folder), seed=given.seed)
                found, scores = judged(maker, released, public=public, people=people, seed=given.seed)
            state = "after" if checkout == HERE else "before"
            plain += [{"method": method, "state": state, "attack": each.to_dict()} for each in found]
            plain += [{"method": method, "state": state, "measure": each.to_dict()} for each in scores]
            tables.add(method, found, scores, is_first=checkout is checkouts[0])
            if given.json is not None:
                # After each release, so that a run that is ended early leaves what it has.
                given.json.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    return tables


def _put(figures: Figures, row: str, method: str, cell: str, *, is_first: bool) -> None:
    """Write a cell, behind an arrow if it is that of the second checkout."""
    cells = figures.setdefault(row, {})
    cells[method] = cell if is_first else f"{cells.get(method, '-')} → {cell}"


def _close(figures: Figures, method: str) -> None:
    """Mark what only the first checkout has."""
    for cells in figures.values():
        if method in cells and "→" not in cells[method]:
            cells[method] += " → -"


def markdown(figures: Figures, methods: list[str], *, title: str) -> str:
    """Return figures as a table; a method without any is left out."""
    there = [method for method in methods if any(method in cells for cells in figures.values())]
    lines = [f"| {title} | {' | '.join(there)} |", "|---" * (len(there) + 1) + "|"]
    for row, cells in figures.items():
        lines.append(f"| {row} | {' | '.join(cells.get(method, '') for method in there)} |")
    return "\n".join(lines)


def main() -> None:
    """Parse the options, attack and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--log", type=Path, help="a log in place of made-up users")
    parser.add_argument("--other", type=Path, help="another checkout of queryveil: before")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file for all figures")
    given = parser.parse_args()
    if given.log is None:
        made = synthesize(users=given.users, seed=given.seed)
        log, people = made.log, [Person(name=each.name, town=each.town, user=each.user) for each in made.secrets]
    else:
        log, people = read_log(given.log), []
    tables = compared(log, people, given)
    print(f"{log.n_users:,} users, {log.n_rows:,} rows, {HOLDOUT:.0%} of the users held out\n")
    print(tables.markdown(given.methods.split(",")))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), seed=int(sys.argv[5]))
    else:
        main()

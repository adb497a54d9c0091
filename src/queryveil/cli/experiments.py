"""`queryveil compare`, `demo` and `reproduce`: methods side by side, and the figures of the papers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import queryveil
from queryveil.cli import options
from queryveil.cli.output import echo, print_json, print_table, progress_bar
from queryveil.errors import BadInput, BadParameter
from queryveil.settings import setting

if TYPE_CHECKING:
    from queryveil.comparison import Comparison, Plan
    from queryveil.comparison.demo import Demo

_JUDGING = "What they are judged by"


def _read_known(given: Judging | Asked, reading: options.Reading) -> dict[str, Any]:
    """Return who reads a release, and what attackers are given, with the files read."""
    from queryveil.attacks import read_people

    return {
        "readers": None if given.reader is None else options.parse_list(given.reader),
        "public": None if given.public is None else reading.read(given.public),
        "later": None if given.later is None else reading.read(given.later),
        "people": () if given.people is None else read_people(given.people),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What runs are judged by; what is None is as the plan has it."""

    limit: str | None = setting(None, metavar="SHARE", help="Most that an attacker may find; 5%.", panel=_JUDGING)
    purpose: str | None = setting(None, option="for", metavar="PURPOSE", help="What it is for; trends.", panel=_JUDGING)
    utility: str | None = setting(None, metavar="NAME", help="A measure instead; log_size_kept.", panel=_JUDGING)
    reader: str | None = setting(None, metavar="NAME,..", help="Who may read it; all.", panel=_JUDGING)
    exposure: str | None = setting(None, metavar="NAME[:N]", help="Attacker in the picture; binding.", panel=_JUDGING)
    holdout: float | None = setting(None, help="Users left out as the public; 0.25.", panel=_JUDGING)
    public: str | None = setting(None, metavar="FILE", help="A public log in their place.", panel=_JUDGING)
    later: str | None = setting(None, metavar="FILE", help="A log of the same people, of another time.", panel=_JUDGING)
    people: Path | None = setting(None, metavar="FILE", help="Names and towns to look for.", panel=_JUDGING)
    values: Any = setting(None, metavar="FILE", help="Table of term values.", panel=_JUDGING)
    targets: int = setting(1000, help="People an attacker seeks.", panel=_JUDGING)

    def read(self, reading: options.Reading) -> dict[str, Any]:
        """Return the arguments of `compare`, with the files read."""
        return {
            **{name: getattr(self, name) for name in ("limit", "purpose", "utility", "exposure", "holdout", "values")},
            **_read_known(self, reading),
            "n_targets": self.targets,
        }


def compare(
    log: options.Log,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for figures; no release.")],
    *,
    methods: str | None = setting(None, metavar="NAME,..", help="km,clump or km:k=5:m=2; all if not given."),
    plan: Path | None = setting(None, metavar="FILE", help="Runs as TOML, in place of --methods."),
    judging: Judging,
    exceptions: options.Exceptions = None,
    jobs: int | None = setting(None, help="Runs at a time; one per core."),
    seed: int | None = setting(None, help="Repeat a comparison."),
    force: bool = setting(False, help="Do again what DIR has already."),
    reading: options.Reading,
    as_json: options.Json = False,
) -> None:
    """Put methods side by side on one log: what each keeps, what attackers find. Exit 1 if a promise is broken."""
    chosen = _plan(methods, plan)
    if jobs is not None and jobs < 1:
        raise BadParameter("jobs", jobs, allowed="1 or more")
    with progress_bar():
        arguments = judging.read(reading) | {"jobs": jobs or os.cpu_count() or 1, "seed": seed}
        arguments["exceptions"] = options.parse_exceptions(exceptions)
        found = queryveil.compare(reading.read(log), chosen, folder=output, again=force, **arguments)
    if as_json:
        print_json(found.to_dict())
    else:
        _print_comparison(found, output)
    for row in found.broken:
        echo(f"BROKEN: {row.name}: {row.judged.verdict}", err=True)
    if all(row.judged.failed for row in found.rows):
        raise BadInput("no run came to an end; the notes say why")
    raise typer.Exit(1 if found.broken else 0)


def _plan(methods: str | None, plan: Path | None) -> Plan | None:
    from queryveil.comparison import plan_of, read_plan

    if methods is not None and plan is not None:
        raise BadParameter("methods", methods, allowed="left out with --plan")
    if plan is not None:
        return read_plan(plan)
    return None if methods is None else plan_of(methods)


def _print_comparison(found: Comparison, folder: Path) -> None:
    print_table(*found.table())
    echo("", found.in_words(), *found.exceptions_in_words())
    if found.picked is not None:
        echo("", f"    {found.picked.command}", "")
    echo(*(f"note: {note}" for note in found.notes()), err=True)
    echo(f"written to {folder}: compare.html, table.csv, plan.toml, results", err=True)


_ASKED = "What is asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of a search; what is None is as in the plan file, or its default."""

    limit: str | None = setting(None, metavar="SHARE", help="Most that may be found; 5%.", panel=_ASKED)
    reader: str | None = setting(None, metavar="NAME,..", help="Who will read it; everybody.", panel=_ASKED)
    minutes: float | None = setting(None, help="Time for the search; 10.", panel=_ASKED)
    public: str | None = setting(None, metavar="FILE", help="A public log of the same kind.", panel=_ASKED)
    later: str | None = setting(None, metavar="FILE", help="A log of the same people, of another time.", panel=_ASKED)
    people: Path | None = setting(None, metavar="FILE", help="Names and towns to look for.", panel=_ASKED)
    values: Any = setting(None, metavar="FILE", help="Table of term values, for advertising.", panel=_ASKED)

    def read(self, reading: options.Reading) -> dict[str, Any]:
        """Return the arguments of `plan`, with the files read."""
        return {
            **{name: getattr(self, name) for name in ("limit", "minutes", "values")},
            **_read_known(self, reading),
        }


def plan(
    log: options.Log,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder of the release and figures.")],
    *,
    purpose: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="PURPOSE",
            help="ranking, suggestions, spelling, related, trends, advertising or personalisation.",
        ),
    ] = None,
    exceptions: options.Exceptions = None,
    asked: Asked,
    plan_file: Path | None = setting(None, option="plan", metavar="FILE", help="A search to do again."),
    jobs: int | None = setting(None, help="Runs at a time; one per core."),
    seed: int | None = setting(None, help="Repeat the release, too; not for releases."),
    force: bool = setting(False, help="Replace the release in DIR, and search anew."),
    reading: options.Reading,
    as_json: options.Json = False,
) -> None:
    """Find and write the most useful release for a purpose under a limit, and say why not more. Exit 1 if none is."""
    with progress_bar():
        found = queryveil.plan(
            reading.read(log),
            folder=output,
            purpose=purpose,
            exceptions=options.parse_exceptions(exceptions),
            plan=plan_file,
            jobs=(os.cpu_count() or 1) if jobs is None else jobs,
            seed=seed,
            force=force,
            **asked.read(reading),
        )
    if as_json:
        print_json(found.to_dict())
    else:
        echo(*found.lines())
    echo(f"written to {output}: {'release, ' if found.confirmed else ''}plan.toml, search.json, table.csv", err=True)
    raise typer.Exit(0 if found.confirmed else 1)


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where the files go.")] = Path(
        "queryveil-demo"
    ),
    force: bool = setting(False, help="Replace what an earlier demo left in DIR."),
    users: int = setting(4000, help="How many made-up users."),
    as_json: options.Json = False,
) -> None:
    """Anonymize, verify, attack and compare on a synthetic log; takes two minutes."""
    with progress_bar():
        output.mkdir(parents=True, exist_ok=True)
        done = queryveil.demo(output, users=users, jobs=os.cpu_count() or 1, force=force)
    if as_json:
        print_json(done.to_dict())
    else:
        _print_demo(done, output)
    is_well = done.verdict.holds and done.n_found_after == 0 and not done.comparison.broken
    raise typer.Exit(0 if is_well else 1)


def _print_demo(done: Demo, folder: Path) -> None:
    before, after, promise = done.before, done.after, done.manifest.promise
    size = max(before.alone)
    counts = done.manifest.counts
    echo(
        f"A made-up search log: {before.n_rows:,} queries of {before.n_users:,} people.",
        "",
        f"Before  {before.alone[size]:,} of {before.n_users:,} people stood alone: "
        f"{size} of their own search terms were enough to pick them out.",
        f"        {done.n_found_before} of {done.n_planted} people whose name and town we know were found.",
        f"After   {after.alone[size]:,} of {after.n_users:,} people stand alone.",
        f"        {done.n_found_after} of {done.n_planted} people whose name and town we know were found.",
        "",
        f"Promise {promise.in_words()}",
        f"Verdict {done.verdict.in_words()} (checked on the written files)",
        f"Cost    {counts.n_rows_after:,} of {counts.n_rows_before:,} queries and "
        f"{counts.n_users_after:,} of {counts.n_users_before:,} people are left.",
        "",
        "All methods side by side: what each keeps, and what a recipient or the owner of a clicked site may find",
        "",
    )
    print_table(*done.comparison.table())
    echo("", done.comparison.in_words(), *done.comparison.exceptions_in_words(), *done.comparison.left_out, "")
    echo(
        f"Look    {folder / 'release' / 'report.html'} (the report on the release)",
        f"        {folder / 'comparison' / 'compare.html'} (the frontier between the methods)",
        "Next    queryveil inspect YOUR_LOG, then queryveil compare YOUR_LOG -o DIR",
    )


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="km-table3, km-table5, km-table6, km-table7, km-fig1, km-fig2, clump-fig3 to clump-fig7, "
            "kdelta-fig1, kdelta-fig2, plink-fig2 to plink-fig6, swap-table2 to swap-table4, or swap-fig4 to "
            "swap-fig8.",
        ),
    ],
    log: Annotated[
        str | None, typer.Argument(metavar="[LOG]", help="Left out: a made-up log of the paper's shape.")
    ] = None,
    *,
    users: int | None = setting(None, help="Users of the made-up log; left out: as many as the paper."),
    values: Any = setting(None, metavar="FILE", help="Term values of LOG; left out: made up."),
    corpus: Path | None = setting(
        None,
        metavar="PATH",
        help="What the plink figures search: a folder of .txt files, or JSON lines with text; left out: WordNet's "
        "glosses.",
    ),
    seed: int = setting(0, help="The same seed gives the same figures."),
    reading: options.Reading,
    as_json: options.Json = False,
) -> None:
    """Print a paper's table or figure, theirs beside ours."""
    from queryveil.utility.search_index import read_corpus

    with progress_bar():
        table = queryveil.reproduce(
            name,
            reading.read(log) if log is not None else None,
            users=users,
            values=values,
            corpus=read_corpus(corpus) if corpus else None,
            seed=seed,
        )
    if as_json:
        print_json(table)
        return
    print_table(table.columns, table.rows, title=table.title)
    echo(*(f"- {note}" for note in table.notes))


def warm_up(as_json: options.Json = False) -> None:
    """Compile ahead what commands compile when they are first used on a machine."""
    from queryveil.comparison.warming import compile_all

    with progress_bar():
        n_compiled = compile_all()
    if as_json:
        print_json({"n_compiled": n_compiled})
    else:
        echo(f"compiled {n_compiled} kernels" if n_compiled else "everything was compiled before")

"""`queryveil report DIR`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli._commands import load_taxonomy, read_values
from queryveil.cli._keys import key_of
from queryveil.cli.attack import PeopleOption, PublicOption
from queryveil.cli.options import FolderArgument, JsonOption, Reading, ReleaseKeyOption, SwapTables, ValuesOption
from queryveil.errors import BadParameter
from queryveil.settings import setting

if TYPE_CHECKING:
    from queryveil.data import Profiles, QueryLog
    from queryveil.release import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReading(Reading):
    """How the original is read, where `--format` is that of the report."""

    file_format: str | None = setting(
        None, option="original_format", help="As --format of verify.", panel="How to read the log"
    )


def report(
    folder: FolderArgument,
    *,
    original: Annotated[
        str | None, typer.Option(metavar="LOG", help="What it was made from: to attack and measure it.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="If not DIR/report.html; - is stdout.")
    ] = None,
    report_format: Annotated[str, typer.Option("--format", help="html, md or json.")] = "html",
    key: ReleaseKeyOption = None,
    show: Annotated[bool, typer.Option("--show", help="Show the release's most frequent queries.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.")] = False,
    taxonomy: Annotated[
        str | None, typer.Option(metavar="FILE", help="The taxonomy it was made with, if your own.")
    ] = None,
    public: PublicOption = None,
    people: PeopleOption = None,
    values: ValuesOption = None,
    membership: Annotated[Path | None, typer.Option(metavar="FILE", help="Who is in which group of plink.")] = None,
    targets: Annotated[int, typer.Option(help="People that each attacker looks for, at most.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="Repeat what attackers draw.")] = None,
    tables: SwapTables,
    reading: ReportReading,
    as_json: JsonOption = False,
) -> None:
    """Write what is promised, if it holds, what attackers find and what it cost: exit 1 if the promise is broken."""
    from queryveil.attacks.attacker import read_people as read_directory
    from queryveil.cli.output import progress_bar
    from queryveil.comparison.methods import remake_of
    from queryveil.formats.aggregates import read_membership
    from queryveil.release import MANIFEST, read_release
    from queryveil.reports import State, check_report_target, in_short, render, write_whole
    from queryveil.reports import report as build
    from queryveil.reports import report_format as format_of

    kind = format_of("json" if as_json else report_format)
    goes_out = output == "-" or (as_json and output is None)
    with progress_bar():
        release = read_release(folder)
        path = Path(output) if output and not goes_out else _place(release, folder, kind=kind, exact=bool(original))
        if not goes_out:
            # A report in the folder is made from it, so that an older one may go.
            _check_is_outside(path, release, folder, exact=bool(original))
            check_report_target(path, force=force or output is None)
            _check_is_apart(path, [folder / MANIFEST, original, key, *_files(release, folder)])
        made = build(
            release,
            original=_original(original, release, reading),
            key=key_of(release, folder=folder, key=key),
            taxonomy=load_taxonomy(taxonomy),
            classifier=tables.own_classifier(),
            public=None if public is None else reading.read(public),
            people=() if people is None else read_directory(people),
            remake=remake_of(release.manifest),
            values=read_values(values) if values else None,
            membership=read_membership(membership) if membership else None,
            show=show,
            n_targets=targets,
            seed=seed,
        )
        text = render(made, format=kind)
    if goes_out:
        sys.stdout.write(text)
    else:
        write_whole(text, path)
        typer.echo(in_short(made))
        typer.echo(f"written to {path}", err=True)
    raise typer.Exit(1 if made.state is State.BROKEN else 0)


def _place(release: Release, folder: Path, *, kind: str, exact: bool) -> Path:
    """Return where the report goes: into the folder, unless it holds what the promise of the folder does not cover."""
    whole = folder.absolute()
    is_apart = exact and _is_noisy(release)
    return whole.with_name(f"{whole.name}-report.{kind}") if is_apart else folder / f"report.{kind}"


def _check_is_outside(path: Path, release: Release, folder: Path, *, exact: bool) -> None:
    # Privacy: figures beside the original are exact, and whatever is handed out with noisy counts must be covered too.
    if exact and _is_noisy(release) and path.resolve().is_relative_to(folder.resolve()):
        raise BadParameter("output", str(path), allowed="a file outside the release, which others will get")


def _is_noisy(release: Release) -> bool:

    return release.promise.is_noisy


def _check_is_apart(path: Path, others: Iterable[str | Path | None]) -> None:
    """Raise if the report would take the place of what it is about."""
    for other in others:
        if other is not None and Path(other).exists() and path.exists() and path.samefile(other):
            raise BadParameter("output", str(path), allowed="a file that is not a part of what is reported on")


def _files(release: Release, folder: Path) -> list[Path]:
    files = (release.manifest.data, release.manifest.clicks)
    return [folder / file.name for file in files if file is not None]


def _original(source: str | None, release: Release, reading: Reading) -> QueryLog | Profiles | None:
    from queryveil.data import Groups

    if source is None:
        return None
    return reading.read_people(source) if isinstance(release.data, Groups) else reading.read(source)

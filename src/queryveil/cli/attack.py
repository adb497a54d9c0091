"""`queryveil attack LOG DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli._commands import load_taxonomy
from queryveil.cli._keys import key_of
from queryveil.cli.options import (
    FolderArgument,
    JsonOption,
    OriginalArgument,
    OriginalReading,
    ReleaseKeyOption,
    parse_list,
)

if TYPE_CHECKING:
    from queryveil.attacks import Attacks, Exposure

PublicOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="A log of the same kind by other people, for attackers to learn from."),
]
PeopleOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="JSON lines with name and town: people to look for.")
]


def attack(
    log: OriginalArgument,
    folder: FolderArgument,
    *,
    key: ReleaseKeyOption = None,
    taxonomy: Annotated[
        str | None, typer.Option(metavar="FILE", help="The taxonomy it was made with, if your own.")
    ] = None,
    public: PublicOption = None,
    people: PeopleOption = None,
    only: Annotated[str | None, typer.Option(metavar="NAME,..", help="Run these attackers only.")] = None,
    targets: Annotated[int, typer.Option(help="People that each attacker looks for, at most.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="Repeat a run.")] = None,
    reading: OriginalReading,
    as_json: JsonOption = False,
) -> None:
    """Attack a release with everybody who fits it, and the log with nothing but its ids changed beside it."""
    from queryveil.attacks import attack as run
    from queryveil.attacks.attacker import read_people
    from queryveil.cli.output import print_json, progress_bar
    from queryveil.comparison.methods import remake_of
    from queryveil.release import read_release

    with progress_bar():
        release = read_release(folder)
        found = run(
            reading.read(log),
            release,
            key=key_of(release, folder=folder, key=key),
            taxonomy=load_taxonomy(taxonomy),
            public=None if public is None else reading.read(public),
            people=() if people is None else read_people(people),
            remake=remake_of(release.manifest),
            only=parse_list(only),
            n_targets=targets,
            seed=seed,
        )
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found, is_noisy=release.promise.is_noisy)


def _print(found: Attacks, *, is_noisy: bool) -> None:
    from queryveil.attacks.sybil import BY_CHANCE_UNDER_NOISE
    from queryveil.cli.output import print_table

    rows = [
        (
            _label(attempt.after),
            attempt.after.what,
            "-" if attempt.before is None else _percent(attempt.before.share),
            _percent(attempt.after.share),
            f"{_percent(attempt.after.interval[0])} to {_percent(attempt.after.interval[1])}",
            _percent(attempt.after.chance_share),
        )
        for attempt in found.attempts
    ]
    if rows:
        print_table(("attacker", "finds", "before", "after", "95 % interval", "by chance"), rows)
    if is_noisy and found.named("sybil") is not None:
        typer.echo(f"note: sybil, by chance: {BY_CHANCE_UNDER_NOISE}", err=True)
    if not found.exact:
        typer.echo(
            "note: ids do not tell who is who, so it was estimated; a right guess among n people counts 1/n", err=True
        )
    reasons: dict[str, list[str]] = {}
    for skipped in found.skipped:
        reasons.setdefault(skipped.reason, []).append(skipped.attacker)
    for reason, names in reasons.items():
        typer.echo(f"not run: {', '.join(names)}: {reason}", err=True)


def _label(found: Exposure) -> str:
    known = "" if found.n_known is None else f" {found.n_known}"
    return f"{found.attacker}{known}" + (f", {found.n_wrong} wrong" if found.n_wrong else "")


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"

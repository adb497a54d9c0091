"""Options that several methods share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli.options import parse_list
from queryveil.errors import BadFile, BadParameter

if TYPE_CHECKING:
    from queryveil.release import ColumnPolicy

OutputOption = Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="Release folder to make.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace DIR.")]
SeedOption = Annotated[int | None, typer.Option(help="Repeat a run; not for releases.")]
BotsOption = Annotated[int, typer.Option(help="A bot asks more in a session; 0: no bots.")]
TaxonomyOption = Annotated[str, typer.Option(metavar="wordnet|FILE", help="WordNet's nouns, or a CSV of child,parent.")]
UnitOption = Annotated[str, typer.Option(help="A transaction is a user, or a query.")]

_RELEASE = "What leaves beside the queries"
IdsOption = Annotated[str, typer.Option(help="fresh, keyed or keep.", rich_help_panel=_RELEASE)]
KeyOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Secret for keyed ids.", rich_help_panel=_RELEASE)]
TimeOption = Annotated[str, typer.Option(help="day, hour, keep or drop.", rich_help_panel=_RELEASE)]
KeepOption = Annotated[
    str | None, typer.Option(metavar="NAME,..", help="Other columns to keep.", rich_help_panel=_RELEASE)
]


def column_policy(*, ids: str, key: Path | None, time: str, keep: str | None) -> ColumnPolicy:
    """Return the policy that the options describe."""
    from queryveil.release import ColumnPolicy

    return ColumnPolicy(ids=ids, time=time, keep=parse_list(keep), key=read_key(key))  # type: ignore[arg-type]


def read_key(path: Path | None) -> bytes | None:
    """Read the secret for keyed ids."""
    from queryveil.release import MIN_KEY_BYTES

    if path is None:
        return None
    try:
        key = path.read_bytes()
    except OSError as error:
        raise BadFile(str(path), f"the key cannot be read: {error.strerror}") from None
    if len(key) < MIN_KEY_BYTES:
        raise BadParameter("key", f"{len(key)} bytes", allowed=f"at least {MIN_KEY_BYTES} secret bytes")
    return key

"""Options that `stream`, `serve` and `anonymize swap` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_LEAVES = "What leaves"
READING = "How lines are read"
RUNNING = "How it runs"

KOption = Annotated[int, typer.Option(help="Events a pool holds before one leaves.")]
LOption = Annotated[int | None, typer.Option(help="Users in it; k if not given.")]
GrowthOption = Annotated[float, typer.Option(help="Of k, where nothing can leave.")]
MaxPoolOption = Annotated[int, typer.Option(help="Events a pool holds at most.")]
RememberOption = Annotated[int, typer.Option(help="Events: who asked what.")]
UnclassifiedOption = Annotated[str, typer.Option(help="pool or drop.")]

ClassifierOption = Annotated[str, typer.Option(help="evidence or paper.")]
IdsOption = Annotated[str, typer.Option(help="keyed or keep.", rich_help_panel=_LEAVES)]
KeyOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Secret; if none, STORE.key.", rich_help_panel=_LEAVES)
]
TimeOption = Annotated[str, typer.Option(help="Of release: day, hour, keep, drop.", rich_help_panel=_LEAVES)]
KeepOption = Annotated[
    str | None, typer.Option(metavar="NAME,..", help="Other columns to keep.", rich_help_panel=_LEAVES)
]

StoreOption = Annotated[
    str | None, typer.Option(metavar="URL", help="sqlite:FILE, postgresql://, memory:.", rich_help_panel=RUNNING)
]
WorkersOption = Annotated[int, typer.Option(help="Processes that classify.", rich_help_panel=RUNNING)]
NamesOption = Annotated[
    str | None, typer.Option("--columns", metavar="ROLE=NAME,..", help="user=uid,query=q.", rich_help_panel=READING)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Say the counts as JSON.", rich_help_panel=RUNNING)]

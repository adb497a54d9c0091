"""The commands of `queryveil anonymize`."""

from __future__ import annotations

import typer

from queryveil.cli.anonymize.clump import clump
from queryveil.cli.anonymize.kdelta import kdelta
from queryveil.cli.anonymize.km import km
from queryveil.cli.anonymize.partition import partition
from queryveil.cli.anonymize.plink import plink
from queryveil.cli.anonymize.swap import swap

app = typer.Typer(no_args_is_help=True, help="Anonymize a log; each method has its own --help.")
app.command("km")(km)
app.command("kdelta")(kdelta)
app.command("plink")(plink)
app.command("clump")(clump)
app.command("partition")(partition)
app.command("swap")(swap)


@app.callback()
def _methods() -> None:
    pass

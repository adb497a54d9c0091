"""The commands of `queryveil anonymize`."""

from __future__ import annotations

import typer

from queryveil.cli.anonymize.clump import clump
from queryveil.cli.anonymize.dp import dp
from queryveil.cli.anonymize.kdelta import kdelta
from queryveil.cli.anonymize.km import km
from queryveil.cli.anonymize.partition import partition
from queryveil.cli.anonymize.plink import plink
from queryveil.cli.anonymize.pseudonymise import pseudonymise
from queryveil.cli.anonymize.query_threshold import query_threshold
from queryveil.cli.anonymize.swap import swap
from queryveil.cli.anonymize.token_hash import token_hash

_BASELINES = "Baselines that promise nothing"

app = typer.Typer(no_args_is_help=True, help="Anonymize a log; each method has its own --help.")
app.command("km")(km)
app.command("kdelta")(kdelta)
app.command("plink")(plink)
app.command("clump")(clump)
app.command("partition")(partition)
app.command("swap")(swap)
app.command("dp")(dp)
app.command("pseudonymise", rich_help_panel=_BASELINES)(pseudonymise)
app.command("token-hash", rich_help_panel=_BASELINES)(token_hash)
app.command("query-threshold", rich_help_panel=_BASELINES)(query_threshold)


@app.callback()
def _methods() -> None:
    pass

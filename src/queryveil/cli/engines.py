"""Where a command runs: on this machine, or on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.errors import BadParameter

if TYPE_CHECKING:
    from queryveil.engines.spark import Spark

_WHERE = "Where it runs"
EngineOption = Annotated[str, typer.Option("--engine", help="local, or spark.", rich_help_panel=_WHERE)]
MasterOption = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="Spark's master, if not local[*].", rich_help_panel=_WHERE)
]


def spark_of(engine: str, master: str | None) -> Spark | None:
    """Start Spark if it is asked for; None is this machine."""
    if engine == "local" and master is None:
        return None
    if engine == "local":
        raise BadParameter("master", master, allowed="left out without --engine spark")
    if engine != "spark":
        raise BadParameter("engine", engine, allowed="local or spark")
    from queryveil.engines import start_spark

    return start_spark(master)

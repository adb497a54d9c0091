"""Choose the engine of a command: this machine or a Spark cluster."""

from __future__ import annotations

import logging
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.errors import BadParameter, NotYet

if TYPE_CHECKING:
    from queryveil.spark import Spark

EngineOption = Annotated[str, typer.Option("--engine", show_default=False, help="local (default) or spark.")]
MasterOption = Annotated[str | None, typer.Option("--master", metavar="URL", help="Spark's master, if not local[*].")]


def check_engine(engine: str, master: str | None) -> None:
    """Raise if there is no such engine, or a master without one."""
    if engine not in ("local", "spark"):
        raise BadParameter("engine", engine, allowed="local or spark")
    if engine == "local" and master is not None:
        raise BadParameter("master", master, allowed="left out without --engine spark")


def refuse_on_spark(**options: object) -> None:
    """Raise if an option was given that no cluster reads."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        raise NotYet(f"{', '.join(given)} on Spark", "only counts are taken there", instead="leave out --engine")


def spark_of(engine: str, master: str | None, *, method: object = None) -> Spark | None:
    """Start Spark if it is asked for, unless the method cannot be made there; None is this machine."""
    check_engine(engine, master)
    if engine == "local":
        return None
    from queryveil.spark import check_on_spark, start_spark

    if method is not None:
        check_on_spark(method)
    # Py4J would log a traceback of its own when somebody stops the command.
    logging.getLogger().addHandler(logging.NullHandler())
    spark = start_spark(master)
    # Privacy: whoever ends the command, by a key or as schedulers do, it leaves no rows behind. PySpark's own handler
    # asks the cluster in the middle of another question.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    return spark

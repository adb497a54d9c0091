"""The program itself: its commands, and one line for whatever goes wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

from queryveil.cli import anonymize, demo, inspect, reproduce, synth, verify
from queryveil.errors import QueryveilError
from queryveil.version import __version__

app = typer.Typer(
    name="queryveil",
    help="Make search query logs shareable: anonymize them, prove the promise, say what it cost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("synth")(synth.synth)
app.command("inspect")(inspect.inspect)
app.add_typer(anonymize.app, name="anonymize")
app.command("verify")(verify.verify)
app.command("reproduce")(reproduce.reproduce)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"queryveil {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit: 0 done or holds, 1 a promise is broken, 2 wrong usage or input."""
    try:
        code = app(args=None if arguments is None else list(arguments), standalone_mode=False)
    except TyperException as error:
        _fail(error.format_message())
    except QueryveilError as error:
        _fail(str(error))
    except MemoryError:
        _fail("not enough memory for this log; cut it into parts by time, or use a larger machine")
    except BrokenPipeError:
        # Whoever read our output has stopped; what is left to say has no reader.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        _fail("stopped; nothing was released", code=130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, *, code: int = 2) -> None:
    typer.echo(f"queryveil: {message}", err=True)
    sys.exit(code)

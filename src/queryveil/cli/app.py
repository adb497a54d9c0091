"""The program itself: its commands, and one line for whatever goes wrong."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from traceback import extract_tb
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from queryveil.cli import (
    anonymize,
    attack,
    classify,
    compare,
    demo,
    inspect,
    measure,
    profiles,
    report,
    reproduce,
    stream,
    synth,
    verify,
)
from queryveil.cli._commands import with_options
from queryveil.errors import QueryveilError
from queryveil.version import __version__

# As a shell counts them: 128 and the number of the signal.
_STOPPED = 130
_READER_GONE = 141

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
app.command("inspect")(with_options(inspect.inspect))
app.command("classify")(with_options(classify.classify))
app.add_typer(anonymize.app, name="anonymize")
app.command("stream")(with_options(stream.stream))
app.command("serve")(with_options(stream.serve))
app.command("profiles")(with_options(profiles.profiles))
app.command("verify")(with_options(verify.verify))
app.command("attack")(with_options(attack.attack))
app.command("measure")(with_options(measure.measure))
app.command("report")(with_options(report.report))
app.command("compare")(with_options(compare.compare))
app.command("reproduce")(with_options(reproduce.reproduce))


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
        _write_whatever_comes()
        code = app(args=None if arguments is None else list(arguments), standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:
        _fail(error.format_message())
    except QueryveilError as error:
        _fail(str(error))
    except MemoryError:
        _fail("not enough memory for this log; cut it into parts by time, or use a larger machine")
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has stopped; Typer would exit with 1, which means a broken promise here.
        _forget_output()
        sys.exit(_READER_GONE)
    except OSError as error:
        if error.filename is None:
            _forget_output()
        _fail(": ".join(str(part) for part in (error.filename, error.strerror or type(error).__name__) if part))
    except (KeyboardInterrupt, typer.Abort):
        code = _STOPPED
    except BaseException as error:  # a panic of Polars is no Exception
        # Privacy: a message or traceback of a library may quote the log, so only the kind and the place are told.
        place = extract_tb(error.__traceback__)[-1]
        _fail(f"a fault of queryveil itself ({type(error).__name__} at {Path(place.filename).name}:{place.lineno})")
    if code == _STOPPED:
        _fail("stopped; nothing was released", code=_STOPPED)
    sys.exit(code if isinstance(code, int) else 0)


def _forget_output() -> None:
    """Let what is still to be printed go nowhere: Python would try again on its way out, and fail aloud."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError:
        # Under a test's capture there is no real file.
        return


def _write_whatever_comes() -> None:
    """Write what a terminal's encoding has no letters for as escapes."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _fail(message: str, *, code: int = 2) -> NoReturn:
    # Where no command is given, Typer has printed the help and has nothing more to say.
    if message:
        typer.echo(f"queryveil: {message}", err=True)
    sys.exit(code)

"""The program itself: its commands, and one line for whatever goes wrong."""

import os
import sys
from collections.abc import Sequence
from functools import cache
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from queryveil import progress
from queryveil.cli import anonymize, experiments, judging, logs, service
from queryveil.cli.options import with_options
from queryveil.cli.output import echo, tell
from queryveil.errors import QueryveilError, fault_in_words, printable
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
app.command("demo")(with_options(experiments.demo))
app.command("synth")(with_options(logs.synth))
app.command("inspect")(with_options(logs.inspect))
app.command("classify")(with_options(logs.classify))
app.add_typer(anonymize.app, name="anonymize")
app.command("stream")(with_options(service.stream))
app.command("serve")(with_options(service.serve))
app.command("profiles")(with_options(service.profiles))
app.command("verify")(with_options(judging.verify))
app.command("keygen")(judging.keygen)
app.command("sign")(judging.sign)
app.command("attack")(with_options(judging.attack))
app.command("measure")(with_options(judging.measure))
app.command("report")(with_options(judging.report))
app.command("compare")(with_options(experiments.compare))
app.command("reproduce")(with_options(experiments.reproduce))
app.command("warm-up")(experiments.warm_up)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"queryveil {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


@cache
def _program() -> TyperGroup:
    """Return the commands with their options, which Typer would make again for each call in a process."""
    program = typer.main.get_command(app)
    assert isinstance(program, TyperGroup)
    return program


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit: 0 done or holds, 1 a promise is broken, 2 wrong usage or input."""
    try:
        if isinstance(sys.stdout, TextIOWrapper):
            # What a terminal's encoding has no letters for is written as escapes.
            sys.stdout.reconfigure(errors="backslashreplace")
        with progress.telling(tell):
            code = _program()(args=None if arguments is None else list(arguments), standalone_mode=False)
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
        parts = (error.filename, error.strerror or type(error).__name__)
        _fail(": ".join(printable(str(part)) for part in parts if part))
    except (KeyboardInterrupt, typer.Abort):
        code = _STOPPED
    except BaseException as error:  # a panic of Polars is no Exception
        _fail(fault_in_words(error))
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


def _fail(message: str, *, code: int = 2) -> NoReturn:
    # Where no command is given, Typer has printed the help and has nothing more to say.
    if message:
        echo(*f"queryveil: {message}".split("\n"), err=True)
    sys.exit(code)

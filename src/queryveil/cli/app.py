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
from queryveil.cli.output import echo, show_notice
from queryveil.errors import QueryveilError, fault_in_words, printable
from queryveil.version import __version__

# As a shell counts them: 128 and the number of the signal.
_STOPPED = 130
_READER_GONE = 141

app = typer.Typer(
    name="queryveil",
    help="Anonymize search query logs, verify the privacy guarantee and measure the loss of utility.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_PREPARING = (experiments.demo, logs.synth, logs.inspect, logs.classify)
_LIVE = (service.stream, service.serve, service.profiles)
_JUDGING = (judging.verify, judging.keygen, judging.sign, judging.attack, judging.measure, judging.report)
_COMPARING = (experiments.compare, experiments.plan, experiments.reproduce, experiments.warm_up)
for _function in (*_PREPARING, *_LIVE, *_JUDGING, *_COMPARING):
    app.command(_function.__name__.replace("_", "-"))(with_options(_function))
app.add_typer(anonymize.app, name="anonymize")


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
        with progress.handle_notices(show_notice):
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

r"""What the commands print: data to stdout, the rest to stderr. Rich is loaded when something is printed.

Names of files and columns, terms and queries come from whoever wrote them: nothing of them steers a terminal, because
all that commands print goes through this module, which writes control characters as escapes (`\u001b`).
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from queryveil import progress
from queryveil.errors import printable
from queryveil.html_tables import percent


def echo(*lines: str, err: bool = False) -> None:
    """Print lines, to stderr with `err`; a line end inside of one is written as an escape."""
    for line in lines:
        typer.echo(printable(line), err=err)


def show_notice(text: str, is_routine: bool) -> None:
    """Print a notice to stderr; a routine one only on a terminal."""
    if not is_routine or sys.stderr.isatty():
        echo(f"queryveil: {text}", err=True)


def write_out(text: str) -> None:
    sys.stdout.write(printable(text, keep="\n\t"))


def print_json(value: Any, *, indent: int = 2) -> None:
    """Print a value as JSON, on one line if `indent` is 0; escapes mean the same there as what they stand for."""
    import msgspec

    text = msgspec.json.encode(value, enc_hook=str)
    write_out((msgspec.json.format(text, indent=indent) if indent else text).decode() + "\n")


def print_facts(facts: Mapping[str, object]) -> None:
    """Print names and what they are, a line each."""
    width = max((len(printable(name)) for name in facts), default=0)
    for name, fact in facts.items():
        sys.stdout.write(f"{printable(name):<{width}}  {_readable(fact)}\n")


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None, ends_in_words: bool = False
) -> None:
    """Print a table; where it `ends_in_words`, the last column is to the left, and wrapped where there is no room."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title and Text(printable(title)), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for i, column in enumerate(columns):
        is_words = ends_in_words and i == len(columns) - 1
        is_left = i == 0 or is_words
        table.add_column(Text(printable(column)), justify="left" if is_left else "right", no_wrap=not is_words)
    for row in rows:
        # Words in square brackets are no markup here.
        table.add_row(*(Text(_readable(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(table)


def _readable(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if value is None:
        return "-"
    return printable(str(value))


def share(part: int, whole: int) -> str:
    """Write a part of a whole as per cent."""
    return percent(part / whole) if whole else "-"


@contextmanager
def progress_bar() -> Iterator[None]:
    """Show how far the work is, on a terminal only and once it has taken a second."""
    # Rich would take FORCE_COLOR for a terminal.
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    bar = Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console, transient=True)
    task = bar.add_task("", total=1.0)
    started = time.monotonic()

    def tell(name: str, done: float) -> None:
        if time.monotonic() - started > 1 and not bar.live.is_started:
            bar.start()
        bar.update(task, description=printable(name), completed=done)

    try:
        with progress.watch(tell):
            yield
    finally:
        bar.stop()

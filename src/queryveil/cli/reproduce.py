"""`queryveil reproduce NAME [LOG]`."""

from pathlib import Path
from typing import Annotated

import typer

from queryveil.cli._commands import read_values
from queryveil.cli.options import JsonOption, Reading


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="km-table3, km-table5, km-table6, km-table7, km-fig1, km-fig2, clump-fig3 to clump-fig7, "
            "kdelta-fig1, kdelta-fig2, plink-fig2 to plink-fig6, swap-table2 to swap-table4, or swap-fig4 to "
            "swap-fig8.",
        ),
    ],
    log: Annotated[
        str | None, typer.Argument(metavar="[LOG]", help="Left out: a made-up log of the paper's shape.")
    ] = None,
    *,
    users: Annotated[int | None, typer.Option(help="Users of the made-up log; left out: as many as the paper.")] = None,
    values: Annotated[Path | None, typer.Option(metavar="FILE", help="Term values of LOG; left out: made up.")] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="What the plink figures search: a folder of .txt files, or JSON lines with text; left out: WordNet's "
            "glosses.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same figures.")] = 0,
    reading: Reading,
    as_json: JsonOption = False,
) -> None:
    """Print a paper's table or figure, theirs beside ours."""
    from queryveil.cli.output import print_json, print_table, progress_bar
    from queryveil.papers import reproduce as run
    from queryveil.utility.search_index import read_corpus

    with progress_bar():
        given = reading.read(log) if log is not None else None
        table = run(
            name,
            given,
            users=users,
            values=read_values(values) if values else None,
            corpus=read_corpus(corpus) if corpus else None,
            seed=seed,
        )
    if as_json:
        print_json(table)
        return
    print_table(table.columns, table.rows, title=table.title)
    for note in table.notes:
        typer.echo(f"- {note}")

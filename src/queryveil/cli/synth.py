"""`queryveil synth OUT`."""

from pathlib import Path
from typing import Annotated

import typer

from queryveil.cli.options import JsonOption


def synth(
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The file to make; its ending names the format.")],
    users: Annotated[int | None, typer.Option(help="How many users; left out: as many as the shape has.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same log.")] = 0,
    like: Annotated[str, typer.Option(help="web, altavista (2002) or aol (2006).")] = "web",
    values: Annotated[bool, typer.Option("--values", help="Also write made-up term values to OUT.values.csv.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make up a realistic log of any size, with planted secrets listed in OUT.secrets.jsonl."""
    from queryveil.cli.output import print_facts, print_json, progress_bar
    from queryveil.formats import layout_for
    from queryveil.synthesis import synthesize, write_synthetic

    layout = layout_for(output)
    with progress_bar():
        made = synthesize(users=users, seed=seed, like=like)
        files = write_synthetic(made, output, layout=layout, values_seed=seed if values else None, force=force)
    facts: dict[str, object] = {
        "rows": made.log.n_rows,
        "users": made.log.n_users,
        "secrets": len(made.secrets),
        "files": [str(file) for file in files],
    }
    if as_json:
        print_json(facts)
    else:
        print_facts(facts | {"files": ", ".join(str(file) for file in files)})

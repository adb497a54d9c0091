"""`queryveil inspect LOG`."""

from typing import Annotated

import typer

from queryveil.cli.options import Engine, JsonOption, LogArgument, Reading


def inspect(
    log: LogArgument,
    *,
    k: Annotated[int, typer.Option(help="A user stands alone with terms that fewer than k users share.")] = 2,
    m: Annotated[int, typer.Option(help="Look at up to m terms, 1 to 3.")] = 3,
    reading: Reading,
    engine: Engine,
    as_json: JsonOption = False,
) -> None:
    """Return what is in a log, and how many users stand alone."""
    from queryveil.cli.output import print_facts, print_json, progress_bar, share
    from queryveil.reports.inspection import inspect as look

    spark = engine.start()
    with progress_bar():
        if spark is None:
            found = look(reading.read(log), k=k, m=m)
        else:
            found = spark.inspect(reading.read_on(spark, log), k=k, m=m)
    if as_json:
        print_json(found.to_dict())
        return
    span = f"{found.first_time:%Y-%m-%d %H:%M} to {found.last_time:%Y-%m-%d %H:%M}" if found.first_time else "no times"
    alone = "nobody else has" if k == 2 else f"fewer than {k} users have"
    print_facts(
        {
            "rows": found.n_rows,
            "users": found.n_users,
            "distinct queries": found.n_distinct_queries,
            "empty queries": found.n_empty_queries,
            "terms": f"{found.n_terms:,} in {found.n_term_occurrences:,} occurrences",
            "longest history": f"{found.longest_history:,} terms",
            "time": span,
            "columns": ", ".join(found.columns),
        }
        | {
            f"users with {size} term{'s' if size > 1 else ''} {alone}": f"{n:,} ({share(n, found.n_users)})"
            for size, n in found.alone.items()
        }
    )

"""`queryveil classify LOG`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli.options import JsonOption, LogArgument, Reading, TableFiles

if TYPE_CHECKING:
    import polars as pl


def classify(
    log: LogArgument,
    *,
    classifier: Annotated[
        str, typer.Option(help="evidence: by all of a query; paper: by its rarest unit alone.")
    ] = "evidence",
    tables: TableFiles,
    reading: Reading,
    as_json: JsonOption = False,
) -> None:
    """Return what each query is about, without its identifiers. Shows words of the log."""
    from queryveil.text.identifiers import remove_identifiers

    chosen = tables.classifier(classifier)
    queries = reading.read(log).frame["query"]
    cleaned = remove_identifiers(queries)
    found = chosen.classify(cleaned.queries)
    rows = found.names.to_frame().with_columns(found.main_unit, cleaned.removed.alias("removed"))
    if as_json:
        _print_lines(rows)
    else:
        _print_tables(rows, is_empty=cleaned.queries == "", counts=cleaned.counts, n_emptied=cleaned.n_emptied)


def _print_lines(rows: pl.DataFrame) -> None:
    """Print a line of JSON for each row, and a last one with the share of each category."""
    import sys

    import msgspec

    encode = msgspec.json.Encoder().encode
    for i, (category, main_unit, removed) in enumerate(rows.iter_rows(), start=1):
        line = {"row": i, "category": category, "main_unit": main_unit, "removed": removed or []}
        sys.stdout.write(encode(line).decode() + "\n")
    sys.stdout.write(encode({"n_rows": len(rows), "shares": _shares(rows)}).decode() + "\n")


def _print_tables(rows: pl.DataFrame, *, is_empty: pl.Series, counts: dict[str, int], n_emptied: int) -> None:
    from queryveil.cli.output import print_facts, print_table, share

    lines = [
        (i, category, main_unit, ", ".join(removed or []) or None)
        for i, (category, main_unit, removed) in enumerate(rows.iter_rows(), start=1)
    ]
    print_table(["row", "category", "main unit", "removed"], lines)
    n_asked = int((~is_empty).sum())
    n_found = int((rows["category"].filter(~is_empty) != "Unclassified").sum())
    print_table(
        ["category", "rows", "share"],
        [(name, round(part * len(rows)), f"{100 * part:.1f} %") for name, part in _shares(rows).items()],
    )
    print_facts(
        {
            "rows": len(rows),
            "queries with text": n_asked,
            "with a category": f"{n_found:,} ({share(n_found, n_asked)})",
            "of nothing but identifiers": n_emptied,
            "identifiers removed": ", ".join(f"{kind} {n:,}" for kind, n in counts.items()) or "none",
        }
    )


def _shares(rows: pl.DataFrame) -> dict[str, float]:
    """Return the share of each category that occurs, in the order of their list."""
    from queryveil.text.classifier import CATEGORIES, UNCLASSIFIED

    counts = dict(rows["category"].value_counts().iter_rows())
    return {name: counts[name] / len(rows) for name in (*CATEGORIES, UNCLASSIFIED) if name in counts}

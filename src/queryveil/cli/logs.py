"""`queryveil synth`, `inspect` and `classify`: logs that are made up, and what is in a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import queryveil
from queryveil.cli import options
from queryveil.cli.output import print_facts, print_json, print_table, progress_bar, share
from queryveil.errors import BadParameter
from queryveil.html_tables import percent
from queryveil.settings import setting

if TYPE_CHECKING:
    import polars as pl


def synth(
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The file to make; its ending names the format.")],
    users: int | None = setting(None, help="How many users; left out: as many as the shape has."),
    seed: int = setting(0, help="The same seed gives the same log."),
    like: str = setting("web", help="web, altavista (2002) or aol (2006)."),
    file_format: str | None = setting(None, option="format", help="ubi: queries with impressions, clicks, purchases."),
    values: bool = setting(False, help="Also write made-up term values to OUT.values.csv."),
    force: bool = setting(False, help="Replace OUT."),
    as_json: options.Json = False,
) -> None:
    """Make up a realistic log of any size, with planted secrets listed in OUT.secrets.jsonl."""
    from queryveil.synthesis import layout_of, write_synthetic

    layout = layout_of(output, format=file_format)
    if file_format not in (None, layout.format):
        raise BadParameter("format", file_format, allowed="ubi; the ending of OUT names any other format")
    with progress_bar():
        made = queryveil.synth(users=users, seed=seed, like=like, format=layout.format)
        files = write_synthetic(made, output, layout=layout, values_seed=seed if values else None, force=force)
    names = [str(file) for file in files]
    facts: dict[str, object] = {"rows": made.log.n_rows, "users": made.log.n_users, "secrets": len(made.secrets)}
    if made.log.events is not None:
        facts |= {"events": made.log.events.height}
    if as_json:
        print_json(facts | {"files": names})
    else:
        print_facts(facts | {"files": ", ".join(names)})


def inspect(
    log: options.Log,
    *,
    k: int = setting(2, help="A user stands alone with terms that fewer than k users share."),
    m: int = setting(3, help="Look at up to m terms, 1 to 3."),
    reading: options.Reading,
    engine: options.Engine,
    as_json: options.Json = False,
) -> None:
    """Print the size of a log and how many users have unique terms."""
    spark = engine.start()
    with progress_bar():
        if spark is None:
            found = queryveil.inspect(reading.read(log), k=k, m=m)
        else:
            found = spark.inspect(reading.read_on(spark, log), k=k, m=m)
    if as_json:
        print_json(found.to_dict())
    else:
        print_facts(found.facts())


def classify(
    log: options.Log,
    *,
    classifier: str = setting("evidence", help="evidence: by all of a query; paper: by its rarest unit alone."),
    tables: options.TableFiles,
    reading: options.Reading,
    as_json: options.Json = False,
) -> None:
    """Print the category of each query, without its identifiers. Shows words of the log."""
    from queryveil.text.identifiers import remove_identifiers

    chosen = tables.classifier(classifier)
    cleaned = remove_identifiers(reading.read(log).frame["query"])
    found = chosen.classify(cleaned.queries)
    rows = found.names.to_frame().with_columns(found.main_unit, cleaned.removed.alias("removed"))
    if not as_json:
        _print_tables(rows, is_empty=cleaned.queries == "", counts=cleaned.counts, n_emptied=cleaned.n_emptied)
        return
    for i, (category, main_unit, removed) in enumerate(rows.iter_rows(), start=1):
        print_json({"row": i, "category": category, "main_unit": main_unit, "removed": removed or []}, indent=0)
    print_json({"n_rows": len(rows), "shares": _shares(rows)}, indent=0)


def _print_tables(rows: pl.DataFrame, *, is_empty: pl.Series, counts: dict[str, int], n_emptied: int) -> None:
    lines = [
        (i, category, main_unit, ", ".join(removed or []) or None)
        for i, (category, main_unit, removed) in enumerate(rows.iter_rows(), start=1)
    ]
    print_table(["row", "category", "main unit", "removed"], lines)
    n_asked = int((~is_empty).sum())
    n_found = int((rows["category"].filter(~is_empty) != "Unclassified").sum())
    shares = [(name, round(part * len(rows)), percent(part)) for name, part in _shares(rows).items()]
    print_table(["category", "rows", "share"], shares)
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
    from queryveil.text.classifier import CATEGORIES, UNCLASSIFIED

    counts = dict(rows["category"].value_counts().iter_rows())
    return {name: counts[name] / len(rows) for name in (*CATEGORIES, UNCLASSIFIED) if name in counts}

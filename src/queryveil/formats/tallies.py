"""Read and write noisy counts: one row per query, or per query and URL, with its count."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from queryveil.data import CLICKS_SCHEMA, TALLIES_SCHEMA, Format, Layout, Tallies
from queryveil.errors import BadFile, BadInput
from queryveil.formats.layouts import extension, tabular_format
from queryveil.formats.write import write_frame


def tallies_layout(layout: Layout) -> Layout:
    """Return the layout in which tallies of a log of this layout are released: Parquet, JSON lines, CSV or TSV.

    >>> tallies_layout(Layout(format=Format.AOL, compression="gz")).format
    <Format.TSV: 'tsv'>
    """
    return Layout(format=tabular_format(layout.format))


def write_tallies(tallies: Tallies, folder: Path) -> tuple[Path, Path | None]:
    """Write `queries` and, if there are any, `clicks` into a folder; return the paths of both files."""
    layout = tallies_layout(tallies.layout)
    queries = folder / f"queries.{extension(layout)}"
    write_frame(tallies.frame, queries, layout=layout)
    if tallies.clicks is None:
        return queries, None
    clicks = folder / f"clicks.{extension(layout)}"
    write_frame(tallies.clicks, clicks, layout=layout)
    return queries, clicks


def read_tallies(queries: Path, *, clicks: Path | None, format: Format) -> Tallies:  # noqa: A002
    """Read the files that `write_tallies` has written."""
    layout = Layout(format=format)
    frame = _read(queries, TALLIES_SCHEMA, format=format)
    pairs = None if clicks is None else _read(clicks, CLICKS_SCHEMA, format=format)
    try:
        return Tallies(frame=frame, clicks=pairs, layout=layout)
    except BadInput as error:
        raise BadFile(queries.name, str(error)) from None


def _read(path: Path, schema: Mapping[str, pl.DataType], *, format: Format) -> pl.DataFrame:  # noqa: A002
    wanted = dict(schema)
    try:
        match format:
            case Format.PARQUET:
                return pl.read_parquet(path).select(pl.col(name).cast(kind) for name, kind in wanted.items())
            case Format.JSONL:
                if not path.read_bytes().strip():
                    return pl.DataFrame(schema=wanted)
                return pl.read_ndjson(path, schema=wanted)
            case Format.CSV:
                return pl.read_csv(path, schema=wanted)
            case _:
                return pl.read_csv(path, schema=wanted, separator="\t", quote_char=None)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError):
        # Privacy: the cause would quote a row, so it is dropped.
        raise BadFile(path.name, f"it cannot be read as {format} with the columns {', '.join(wanted)}") from None

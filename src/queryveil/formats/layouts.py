"""Detect the format of a file from its name and first lines, and choose the layout of a new file."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from queryveil.data import Format, Layout
from queryveil.errors import BadFile, BadParameter
from queryveil.formats import delimited, jsonl, roles
from queryveil.formats.streams import CODECS, ByteStream

FORMAT_OF_ENDING = {"csv": Format.CSV, "parquet": Format.PARQUET, "pq": Format.PARQUET}
JSON_ENDINGS = {"jsonl", "ndjson", "json"}
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_COMPACT_TIME = re.compile(r"\d{10,14}")
_N_LINES = 50


def ending(path: Path | None) -> str:
    """Return the extension of a file in lower case, without that of its compression.

    >>> ending(Path("logs/May.TSV.gz"))
    'tsv'
    """
    if path is None:
        return ""
    suffixes = [suffix.lower().removeprefix(".") for suffix in path.suffixes]
    if suffixes and suffixes[-1] in CODECS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def sniff(stream: ByteStream, *, columns: Mapping[str, str]) -> Format:
    """Return the format of a stream; where `columns` are named, only a format whose columns have names."""
    suffix = ending(stream.path)
    if stream.head.startswith(b"PAR1"):
        return Format.PARQUET
    if suffix in FORMAT_OF_ENDING:
        return FORMAT_OF_ENDING[suffix]
    first = stream.head.decode("utf-8", errors="replace").split("\n")[:_N_LINES]
    lines = [line.removesuffix("\r") for line in first if line.strip()]
    if suffix in JSON_ENDINGS or (lines and lines[0].lstrip().startswith("{")):
        return Format.UBI if not columns and any(_is_ubi(line) for line in lines) else Format.JSONL
    found = _by_content(lines, has_columns=bool(columns)) or _by_header(lines, columns=columns)
    if found is not None:
        return found
    if suffix == "tsv" and lines and "\t" in lines[0]:
        return Format.TSV
    if suffix == "log" and not lines:
        return Format.EXCITE
    known = ", ".join(Format)
    raise BadFile(stream.name, f"its format is not clear from its name or its beginning; give --format: {known}")


def _by_content(lines: list[str], *, has_columns: bool) -> Format | None:
    rows = [line.split("\t") for line in lines]
    if has_columns or not rows:
        return None
    if delimited.is_aol_header(rows[0]):
        return Format.AOL
    if any(_is_aol(row) for row in rows):
        # A first line with names for user and query is a header: columns go by it, not by their places.
        is_named = not _is_aol(rows[0]) and {"user", "query"} <= roles.match_known(rows[0]).keys()
        return Format.TSV if is_named else Format.AOL
    if any(len(row) == 3 and _COMPACT_TIME.fullmatch(row[1]) for row in rows):
        return Format.EXCITE
    return None


def _is_aol(row: list[str]) -> bool:
    return len(row) == 5 and _TIME.fullmatch(row[2]) is not None


def _by_header(lines: list[str], *, columns: Mapping[str, str]) -> Format | None:
    for separator, found in (("\t", Format.TSV), (",", Format.CSV)):
        names = [name.strip('"') for name in lines[0].split(separator)] if lines else []
        matched = {*roles.match_known(names), *(role for role, name in columns.items() if name in names)}
        if {"user", "query"} <= matched:
            return found
    return None


def _is_ubi(line: str) -> bool:
    value = jsonl.json_value(line)
    if not isinstance(value, dict):
        return False
    targets = [value.get(action) for action in ("index", "create")]
    if any(isinstance(target, dict) and str(target.get("_index", "")).startswith("ubi_") for target in targets):
        return True
    return "query_id" in value and ("user_query" in value or "action_name" in value)


_ENDINGS = {
    Format.AOL: "tsv",
    Format.EXCITE: "log",
    Format.CSV: "csv",
    Format.TSV: "tsv",
    Format.JSONL: "jsonl",
    Format.PARQUET: "parquet",
    Format.UBI: "ndjson",
    Format.TRANSACTIONS: "txt",
}
_TABULAR = (Format.PARQUET, Format.JSONL, Format.CSV, Format.TSV)
_BY_ENDING = {
    "": delimited.AOL_LAYOUT,
    "tsv": delimited.AOL_LAYOUT,
    "csv": Layout(format=Format.CSV),
    "jsonl": Layout(format=Format.JSONL),
    "ndjson": Layout(format=Format.JSONL),
    "parquet": Layout(format=Format.PARQUET),
    "log": delimited.EXCITE_LAYOUT,
}


def tabular_format(format: Format) -> Format:  # noqa: A002
    """Return the format in which transactions and counts of such a log are released: one that can hold every text."""
    return {Format.UBI: Format.JSONL}.get(format, format if format in _TABULAR else Format.TSV)


def extension(layout: Layout) -> str:
    """Return the file extension of this layout.

    >>> extension(Layout(format=Format.TSV, compression="gz"))
    'tsv.gz'
    """
    compression = "" if layout.format is Format.PARQUET else layout.compression
    return _ENDINGS[layout.format] + (f".{compression}" if compression else "")


def layout_for(path: Path) -> Layout:
    """Return the layout for a new file by its extension; AOL with a header where it has none.

    >>> layout_for(Path("log.jsonl.gz")).format
    <Format.JSONL: 'jsonl'>
    """
    name, last = ending(path), path.suffix.lower().removeprefix(".")
    compression = last if last in CODECS else ""
    if name not in _BY_ENDING or (name == "parquet" and compression):
        known = ", ".join(f".{one}" for one in _BY_ENDING if one)
        compressions = ", ".join(f".{one}" for one in CODECS)
        allowed = f"one of {known} (all but .parquet also with {compressions})"
        raise BadParameter("the ending of the file", path.suffix or path.name, allowed=allowed)
    return replace(_BY_ENDING[name], compression=compression)

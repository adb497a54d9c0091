"""Names of files and the layouts they ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from queryveil.errors import BadParameter
from queryveil.formats import aol, excite
from queryveil.formats.sniff import ending
from queryveil.formats.streams import CODECS
from queryveil.log import Format, Layout

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
_BY_ENDING = {
    "": aol.LAYOUT,
    "tsv": aol.LAYOUT,
    "csv": Layout(format=Format.CSV),
    "jsonl": Layout(format=Format.JSONL),
    "ndjson": Layout(format=Format.JSONL),
    "parquet": Layout(format=Format.PARQUET),
    "log": excite.layout(),
}


def extension(layout: Layout) -> str:
    """Give the ending of the name of a file in this layout.

    >>> extension(Layout(format=Format.TSV, compression="gz"))
    'tsv.gz'
    """
    compression = "" if layout.format is Format.PARQUET else layout.compression
    return _ENDINGS[layout.format] + (f".{compression}" if compression else "")


def layout_for(path: Path) -> Layout:
    """Give the layout that the ending of a new file asks for; AOL's with a header where there is none.

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

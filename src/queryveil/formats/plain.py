"""Plain transaction files: one transaction a line, its items separated by blanks, nothing else.

A line without items is no transaction, as a blank line is no row in any format; so a plain file cannot hold a
transaction that has none. Blanks are the space, the tab and what ends a line; upper and lower case differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from queryveil.data import Format, Layout
from queryveil.formats.delimited import report, structural_faults
from queryveil.formats.records import LINES, Tally, split
from queryveil.formats.streams import ByteStream

BLANKS = r" \t\r\n"
"""What separates items, inside the brackets of a pattern."""


@dataclass(slots=True, kw_only=True)
class PlainReader:
    """Reads plain files one after the other; the user is the number of the line, counted on from file to file."""

    tally: Tally
    frames: list[pl.DataFrame] = field(default_factory=list)
    n_lines: int = 0
    compression: str = ""

    def add(self, stream: ByteStream) -> None:
        """Read one file."""
        self.compression = self.compression or stream.compression
        n_before = self.n_lines
        for records in split(stream.blocks(), dialect=LINES, n_columns=1):
            wrong = structural_faults(records, n_columns=1)
            good = records.only(np.flatnonzero(wrong == 0))
            self.tally.n_latin1 += int(good.is_latin1.sum())
            if wrong.any():
                report(self.tally, file=stream.name, records=records, wrong=wrong)
            self.n_lines = n_before + int(records.lines[-1])
            frame = pl.DataFrame({"user": n_before + good.lines, "query": good.column(0)})
            has_items = pl.col("query").str.contains(f"[^{BLANKS}]")
            self.frames.append(frame.filter(has_items).with_columns(pl.col("user").cast(pl.String)))

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        """Return the lines as a log, one row each."""
        empty = pl.DataFrame(schema={"user": pl.String, "query": pl.String})
        return pl.concat([empty, *self.frames], rechunk=False), layout(self.compression)


def layout(compression: str = "") -> Layout:
    """Return the layout that every plain file has."""
    return Layout(format=Format.TRANSACTIONS, has_header=False, compression=compression)


def split_items(lines: pl.Series) -> pl.Series:
    """Return the items of each line, in their order.

    >>> split_items(pl.Series([" 7 Milk  7", ""])).to_list()
    [['7', 'Milk', '7'], []]
    """
    return lines.str.extract_all(f"[^{BLANKS}]+")


def gather_users(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one line per user with the items of all the user's queries, in the order in which users first stand there.

    Users without any item have no line.
    """
    lines = frame.group_by("user", maintain_order=True).agg(pl.col("query").str.join(" "))
    # NUL would make the line one that cannot be read.
    items = split_items(lines["query"].str.replace_all("\0", " ", literal=True)).alias("items")
    return items.to_frame().filter(pl.col("items").list.len() > 0)


def encode(items: pl.Series) -> bytes:
    """Write lists of items as lines; the items must have no blanks in them."""
    return "".join(f"{line}\n" for line in items.list.join(" ")).encode()

"""Read and write plain transaction files: one transaction per line, its items separated by blanks.

A line without items is no transaction, as a blank line is no row in any format, so a plain file cannot hold a
transaction without items. Blanks are space, tab and line ends; upper and lower case differ.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import Format, Layout
from queryveil.errors import BadFile
from queryveil.formats.records import Reader, read_records
from queryveil.formats.streams import ByteStream

BLANKS = r" \t\r\n"
"""The separators of items, for use inside the brackets of a regular expression."""


@dataclass(slots=True, kw_only=True)
class PlainReader(Reader):
    """Reads plain files; the user is the line number, counted on from file to file."""

    n_lines: int = 0

    def add(self, stream: ByteStream) -> None:
        if b"\n" not in stream.head and b"\r" in stream.head.rstrip(b"\r"):
            # They would all be one transaction.
            raise BadFile(stream.name, "its lines end in CR alone; convert them to LF")
        n_before = self.n_lines
        for records, wrong in read_records(stream, tally=self.tally, reasons={}):
            good = records.only(np.flatnonzero(wrong == 0))
            self.n_lines = n_before + int(records.lines[-1])
            frame = pl.DataFrame({"user": n_before + good.lines, "query": good.column(0)})
            has_items = pl.col("query").str.contains(f"[^{BLANKS}]")
            self.frames.append(frame.filter(has_items).with_columns(pl.col("user").cast(pl.String)))

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        """Return the lines as a log, one row each."""
        empty = pl.DataFrame(schema={"user": pl.String, "query": pl.String})
        layout = Layout(format=Format.TRANSACTIONS, has_header=False, compression=self.compression)
        return pl.concat([empty, *self.frames], rechunk=False), layout


def split_items(lines: pl.Series) -> pl.Series:
    """Return the items of each line, in their order.

    >>> split_items(pl.Series([" 7 Milk  7", ""])).to_list()
    [['7', 'Milk', '7'], []]
    """
    return lines.str.extract_all(f"[^{BLANKS}]+")


def gather_users(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the items of all queries of each user who has any, users by first appearance."""
    lines = frame.group_by("user", maintain_order=True).agg(pl.col("query").str.join(" "))
    # NUL would make the line one that cannot be read.
    items = split_items(lines["query"].str.replace_all("\0", " ", literal=True)).alias("items")
    return items.to_frame().filter(pl.col("items").list.len() > 0)


def encode(items: pl.Series) -> bytes:
    """Encode lists of items as lines; the items must not contain blanks."""
    return "".join(f"{line}\n" for line in items.list.join(" ")).encode()

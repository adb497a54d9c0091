"""Taxonomies written as pairs of child and parent, one a line."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.data import Int32s
from queryveil.errors import BadFile, BadRow
from queryveil.text.taxonomy.tree import fold

_HEADER = ["child", "parent"]
_N_LINES_SHOWN = 5


class Pair(NamedTuple):
    """A child and its parent, and the line that says so."""

    line: int
    child: str
    parent: str


class Linked(NamedTuple):
    """The nodes that pairs name, in the order in which they first appear, and the parent of each (-1: the root)."""

    names: pl.Series
    parent: Int32s


def read_pairs(path: str | Path) -> Iterator[Pair]:
    """Read a CSV file with the header `child,parent`; empty lines are passed over."""
    name = Path(path).name
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            if [cell.strip().lower() for cell in header] != _HEADER:
                raise BadFile(name, "line 1 must be the header child,parent")
            for row in rows:
                if len(row) < 2 and not "".join(row).strip():
                    continue
                if len(row) != 2:
                    reason = f"expected two columns, child and parent, found {len(row)}; quote a name that has a comma"
                    raise BadRow(name, rows.line_num, reason=reason)
                yield Pair(rows.line_num, *row)
    except OSError as error:
        raise BadFile(name, f"cannot be opened ({error.strerror}); check the path") from None
    except UnicodeDecodeError:
        raise BadFile(name, "the text is not UTF-8; save it as UTF-8") from None
    except csv.Error:
        raise BadRow(name, rows.line_num, reason="not in CSV format; check its quotes") from None


def link(pairs: Iterable[Pair], *, file: str) -> Linked:
    """Join pairs to one tree; raises where they are none, with the line.

    Names are the same when they differ only in case and blanks; the first spelling is kept.
    """
    numbers: dict[str, int] = {}
    names: list[str] = []
    parents: list[int] = []
    first_lines: list[int] = []
    child_lines: list[int] = []

    def number(line: int, name: str) -> int:
        spelled = " ".join(name.split())
        known = numbers.setdefault(fold(spelled), len(names))
        if known == len(names):
            names.append(spelled)
            parents.append(-1)
            first_lines.append(line)
            child_lines.append(0)
        return known

    for line, child_name, parent_name in pairs:
        if not child_name.strip() or not parent_name.strip():
            which = "parent" if child_name.strip() else "child"
            raise BadRow(file, line, reason=f"the {which} has no name; the root is the one that is nobody's child")
        child, parent = number(line, child_name), number(line, parent_name)
        if child == parent:
            raise BadRow(file, line, reason="child and parent are the same; take this row out")
        if parents[child] >= 0:
            reason = f"the child already has a parent, in line {child_lines[child]}; keep one of the two rows"
            raise BadRow(file, line, reason=reason)
        parents[child], child_lines[child] = parent, line
    if not names:
        raise BadFile(file, "there are no rows under the header; give one child,parent pair a line")
    _refuse_cycles(parents, child_lines, file=file)
    roots = [node for node, parent in enumerate(parents) if parent < 0]
    if len(roots) > 1:
        first, second = (first_lines[node] for node in roots[:2])
        reason = f"the parent is a second root beside that of line {first}; give one of them a parent"
        raise BadRow(file, second, reason=reason)
    return Linked(pl.Series(names, dtype=pl.String), np.array(parents, np.int32))


def _refuse_cycles(parents: list[int], child_lines: list[int], *, file: str) -> None:
    walk_of = [-1] * len(parents)
    for start in range(len(parents)):
        node = start
        while node >= 0 and walk_of[node] < 0:
            walk_of[node] = start
            node = parents[node]
        if node < 0 or walk_of[node] != start:
            continue
        lines, at = [child_lines[node]], parents[node]
        while at != node:
            lines.append(child_lines[at])
            at = parents[at]
        *others, closing = sorted(lines)
        shown = ", ".join(str(line) for line in others[:_N_LINES_SHOWN])
        more = f" and {len(others) - _N_LINES_SHOWN} more" if len(others) > _N_LINES_SHOWN else ""
        with_lines = f"{'line' if len(others) == 1 else 'lines'} {shown}{more}"
        raise BadRow(file, closing, reason=f"this row closes a cycle with {with_lines}; take one of these rows out")

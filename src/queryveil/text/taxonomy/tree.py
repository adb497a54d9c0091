"""Trees as arrays of parents, numbered depth-first: each subtree is a run of numbers that begins with its top."""

import csv
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from queryveil.data import Int32s, Int64s
from queryveil.errors import BadFile, BadRow


def depth_first(parent: Int32s) -> Int32s:
    """Return the nodes of any tree in depth-first order, children in the order of their numbers.

    >>> depth_first(np.array([2, 2, -1, 0], np.int32)).tolist()
    [2, 0, 3, 1]
    """
    children: list[list[int]] = [[] for _ in parent]
    above = parent.tolist()
    # Last child first: a stack gives them back the other way round.
    for node in range(len(above) - 1, -1, -1):
        if above[node] >= 0:
            children[above[node]].append(node)
    order, stack = [], [int(np.argmin(parent))]
    while stack:
        node = stack.pop()
        order.append(node)
        stack += children[node]
    return np.array(order, np.int32)


def renumber(parent: Int32s | Int64s, *, order: Int32s | Int64s) -> Int32s:
    """Return the parents once the nodes are numbered in that order."""
    number = np.empty(len(parent) + 1, np.int32)
    number[order] = np.arange(len(order))
    number[-1] = -1
    return number[parent[order]]


def levels(parent: Int32s) -> Int32s:
    """Return each node's level; the root has 1, and the nodes are numbered depth-first.

    >>> levels(np.array([-1, 0, 1, 0], np.int32)).tolist()
    [1, 2, 3, 2]
    """
    level, above = [1] * len(parent), parent.tolist()
    for node in range(1, len(level)):
        level[node] = level[above[node]] + 1
    return np.array(level, np.int32)


def last_below(parent: Int32s) -> Int32s:
    """Return the last node of each subtree; the nodes are numbered depth-first.

    >>> last_below(np.array([-1, 0, 1, 0], np.int32)).tolist()
    [3, 2, 2, 3]
    """
    last, above = list(range(len(parent))), parent.tolist()
    for node in range(len(last) - 1, 0, -1):
        last[above[node]] = max(last[above[node]], last[node])
    return np.array(last, np.int32)


_BLANKS = " \t\r\n"


def fold(word: str) -> str:
    """Write a word as tables have it: lower case, composed letters, no blanks around it.

    >>> fold("  Ice Cream ")
    'ice cream'
    """
    return unicodedata.normalize("NFC", word.lower()).strip(_BLANKS)


def fold_all(words: pl.Series) -> pl.Series:
    """Fold every word of a column."""
    return words.cast(pl.String).str.to_lowercase().str.normalize("NFC").str.strip_chars(_BLANKS)


def places(words: pl.Series, *, table: pl.Series) -> Int32s:
    """Return the place of every word in a table, -1 where it has none."""
    known = pl.DataFrame({"word": table}).with_row_index("place")
    asked = pl.DataFrame({"word": words.cast(pl.String)})
    found = asked.join(known, on="word", how="left", maintain_order="left")["place"]
    return found.cast(pl.Int64).fill_null(-1).to_numpy().astype(np.int32)


def sort_items(items: pl.Series) -> pl.Series:
    """Return the distinct items as text: numbers first, in their order, then words in theirs.

    >>> sort_items(pl.Series(["10", "9", "pear", "Apple", "apple"])).to_list()
    ['9', '10', 'Apple', 'pear']
    """
    texts = items.drop_nulls().cast(pl.String)
    frame = pl.DataFrame({"text": texts.str.strip_chars(), "folded": fold_all(texts)}).filter(pl.col("text") != "")
    frame = frame.unique("folded", keep="first", maintain_order=True)
    number = pl.col("folded").cast(pl.Float64, strict=False)
    return frame.sort(number, "folded", nulls_last=True)["text"]


def split_ranges(n_items: int, *, fan_out: int) -> tuple[Int32s, Int64s, Int64s]:
    """Split the numbers below `n_items` into `fan_out` ranges as equal as can be, and those again, down to one each.

    Returns of each range its parent and its first and last number; the ranges are numbered depth-first.

    >>> [column.tolist() for column in split_ranges(3, fan_out=2)]
    [[-1, 0, 1, 1, 0], [0, 0, 0, 1, 2], [2, 1, 0, 1, 2]]
    """
    parts: list[tuple[int, int, int]] = []
    stack = [(-1, 0, n_items)]
    while stack:
        above, first, end = stack.pop()
        width = end - first
        n_parts = min(width, fan_out) if width > 1 else 0
        # The wider ranges come first: 5 into 2 is 3 and 2. A stack gives them back the other way round.
        bounds = [first - (-place * width // n_parts) for place in range(n_parts, -1, -1)] if n_parts else []
        stack += [(len(parts), begin, stop) for stop, begin in pairwise(bounds)]
        parts.append((above, first, end - 1))
    parent, firsts, lasts = np.array(parts).T
    return parent.astype(np.int32), firsts, lasts


_N_LINES_SHOWN = 5


def read_pairs(path: str | Path) -> Iterator[tuple[int, str, str]]:
    """Read lines, children and parents of a CSV file with the header `child,parent`; empty lines are passed over."""
    name = Path(path).name
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            if [cell.strip().lower() for cell in header] != ["child", "parent"]:
                raise BadFile(name, "line 1 must be the header child,parent")
            for row in rows:
                if len(row) < 2 and not "".join(row).strip():
                    continue
                if len(row) != 2:
                    reason = f"expected two columns, child and parent, found {len(row)}; quote a name that has a comma"
                    raise BadRow(name, rows.line_num, reason=reason)
                yield rows.line_num, row[0], row[1]
    except OSError as error:
        raise BadFile(name, f"cannot be opened ({error.strerror}); check the path") from None
    except UnicodeDecodeError:
        raise BadFile(name, "the text is not UTF-8; save it as UTF-8") from None
    except csv.Error:
        raise BadRow(name, rows.line_num, reason="not in CSV format; check its quotes") from None


def link(pairs: Iterable[tuple[int, str, str]], *, file: str) -> tuple[pl.Series, Int32s]:
    """Return the nodes that pairs name, as they first appear, and the parent of each (-1: the root).

    Raises, with the line, where they are no tree. Names that differ only in case and blanks are one, as first spelled.
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
    return pl.Series(names, dtype=pl.String), np.array(parents, np.int32)


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

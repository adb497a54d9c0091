from __future__ import annotations

from typing import Any

import numpy as np

from queryveil.data.rows import Rows
from queryveil.pairing.identity import most_alike


def alike(rows: list[list[int]], others: list[list[int]], *, most_looked_at: int) -> list[list[int]]:
    n_cells = 1 + max([cell for row in (*rows, *others) for cell in row], default=-1)
    holders = [[place for place, other in enumerate(others) if cell in other] for cell in range(n_cells)]
    ptr, found = most_alike(
        compressed(rows, np.int64),
        compressed(others, np.int64),
        compressed(holders, np.int32),
        1 / np.log2(1.0 + np.array([max(1, len(each)) for each in holders], np.float64)),
        most_looked_at,
    )
    return [sorted(found[ptr[i] : ptr[i + 1]].tolist()) for i in range(len(rows))]


def compressed(rows: list[list[int]], dtype: type) -> Rows[Any]:
    flat = [cell for row in rows for cell in row]
    return Rows(np.cumsum([0, *map(len, rows)]).astype(np.int64), np.array(flat, dtype))


def test_the_row_that_shares_most_is_found() -> None:
    assert alike([[0, 1, 2]], [[0], [0, 1, 2, 3], [1, 2]], most_looked_at=100) == [[1]]


def test_rows_that_share_as_much_are_all_given() -> None:
    assert alike([[0, 1]], [[0, 1, 2], [0, 1, 3], [0]], most_looked_at=100) == [[0, 1]]


def test_a_rare_cell_counts_more_than_a_common_one() -> None:
    # Cell 0 is held by one, cell 1 by six: 1 against 0.36.
    assert alike([[0, 1]], [[0], *[[1]] * 6], most_looked_at=100) == [[0]]


def test_a_row_that_shares_nothing_has_none() -> None:
    assert alike([[], [5], [0]], [[0], [1]], most_looked_at=100) == [[], [], [0]]
    assert alike([], [[0]], most_looked_at=100) == []


def test_all_who_share_the_rarest_cell_are_looked_at_however_many() -> None:
    assert alike([[0]], [[0]] * 50, most_looked_at=1) == [list(range(50))]


def test_who_shares_only_common_cells_is_looked_at_while_there_is_room() -> None:
    # The one who has the rare cell 0 has nothing else; the other shares four cells, each held by three.
    others = [[0], [1, 2, 3, 4], [1, 2], [3, 4], [1, 2], [3, 4]]
    assert alike([[0, 1, 2, 3, 4]], others, most_looked_at=100) == [[1]]
    assert alike([[0, 1, 2, 3, 4]], others, most_looked_at=3) == [[0]]


def test_more_ties_than_rows_are_all_kept() -> None:
    assert alike([[0], [1]], [[0]] * 40 + [[1]] * 40, most_looked_at=9) == [list(range(40)), list(range(40, 80))]

"""The pools of a live anonymizer, replayed: every row leaves as early as it can."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

SMALL_POOL, FEW_USERS, SURPLUS_ROW, SURPLUS_QUERY = 0, 1, 2, 3
_N_RULES = 4


@nb.njit(cache=True)
def replay(
    came: Codes,
    left: Codes,
    latest: Ints,
    n_pools: int,
    n_members: int,
    n_texts: int,
    k: int,
    l: int,  # noqa: E741 - as in the papers
) -> tuple[Ints, Ints]:
    """Let arrivals come one by one, and each row leave after the first arrival that allows it, up to its `latest`.

    `came` and `left` have three lines: pools, members and texts. A member is a user in one pool; a row of pool -1 has a
    text that never came. Gives for each row the arrival after which it leaves, and a line for each rule that a row
    breaks: row, rule, what there is, what there should be.
    """
    n_waiting, n_users = np.zeros(n_pools, np.int64), np.zeros(n_pools, np.int64)
    asked, given = np.zeros(n_members, np.int64), np.zeros(n_members, np.int64)
    issued, released = np.zeros(n_texts, np.int64), np.zeros(n_texts, np.int64)
    earliest = np.empty(latest.size, np.int64)
    broken, n_broken = np.empty((64, 4), np.int64), 0
    n_came = 0
    for row in range(latest.size):
        pool, member, text = left[0, row], left[1, row], left[2, row]
        while pool >= 0 and n_came <= latest[row]:
            can_leave = n_waiting[pool] >= k and n_users[pool] >= l
            if can_leave and asked[member] > given[member] and issued[text] > released[text]:
                break
            newcomer = came[1, n_came]
            asked[newcomer] += 1
            n_users[came[0, n_came]] += asked[newcomer] == given[newcomer] + 1
            n_waiting[came[0, n_came]] += 1
            issued[came[2, n_came]] += 1
            n_came += 1
        earliest[row] = n_came - 1
        if n_broken + _N_RULES > len(broken):
            broken = np.concatenate((broken, np.empty_like(broken)))
        released[text] += 1
        if released[text] > issued[text]:
            n_broken = _write(broken, n_broken, row, SURPLUS_QUERY, released[text], issued[text])
        if pool < 0:
            continue
        if n_waiting[pool] < k:
            n_broken = _write(broken, n_broken, row, SMALL_POOL, max(0, n_waiting[pool]), k)
        if n_users[pool] < l:
            n_broken = _write(broken, n_broken, row, FEW_USERS, n_users[pool], l)
        given[member] += 1
        if given[member] > asked[member]:
            n_broken = _write(broken, n_broken, row, SURPLUS_ROW, given[member], asked[member])
        # What was never there is owed: it does not wait when it comes.
        n_users[pool] -= asked[member] == given[member]
        n_waiting[pool] -= 1
    return earliest, broken[:n_broken]


@nb.njit(cache=True)
def _write(broken: Ints, place: int, row: int, rule: int, there: int, needed: int) -> int:
    """Write a line, and give the place of the next."""
    broken[place, 0], broken[place, 1], broken[place, 2], broken[place, 3] = row, rule, there, needed
    return place + 1

"""Move and swap transactions between near clusters, and dissolve clusters, while what the clusters keep grows.

Vectors are as in `neighbourhoods`. What clusters keep is the sum over them of their size times the weighted sum of
the least counts of their members; total distortion is the number of items minus that. For each cluster of a block we
hold its least counts without each of the `_N_LEAVERS` members that hold it down most, and with all its members, which
stands for the cluster without any of the others. A table says what would be kept with each transaction of the block
added to each of these.

Where many transactions are alike, clusters of k leave some of a kind over, and the clusters made of these are bad:
their members do better beside their own kind in clusters of more than k.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from queryveil.data import Bools, Floats, Int32s, Int64s

_N_LEAVERS = 8
_N_COLUMNS = _N_LEAVERS + 1
_ANY = _N_LEAVERS
"""The last column of a cluster: its least counts with all its members."""
_MARGIN = 1e-9
_MAX_STEPS = 200
"""Changes to one block in one call: a bound on the time for very large clusters, seldom met by small ones."""
WORK_ROWS = 5
_SEEN, _LOW, _WHO, _NEXT, _SUM = range(WORK_ROWS)


@njit(cache=True, nogil=True, parallel=True)
def exchange(
    clusters: Int64s,
    ends: Int64s,
    member_ptr: Int64s,
    members: Int64s,
    ptr: Int64s,
    nodes: Int32s,
    under: Int32s,
    weight: Floats,
    k: int,
    work: Int32s,
    cluster_of: Int32s,
) -> float:
    """Improve each block of clusters by itself, in place; give by how much the distortion fell.

    Blocks share no cluster, so the outcome does not depend on the threads. `work` has `WORK_ROWS` numbers per node
    for each thread, the first of them zero, as it is again after.
    """
    n_threads = len(work)
    gains = np.zeros(len(ends))
    for thread in prange(n_threads):
        for block in range(thread, len(ends) - 1, n_threads):
            mine = clusters[ends[block] : ends[block + 1]]
            gains[block] = _improve(mine, member_ptr, members, ptr, nodes, under, weight, k, work[thread], cluster_of)
    return float(gains.sum())


@njit(cache=True, nogil=True)
def _improve(
    clusters: Int64s,
    member_ptr: Int64s,
    members: Int64s,
    ptr: Int64s,
    nodes: Int32s,
    under: Int32s,
    weight: Floats,
    k: int,
    work: Int32s,
    cluster_of: Int32s,
) -> float:
    n_rows, largest = 0, 0
    for c in clusters:
        n_rows += member_ptr[c + 1] - member_ptr[c]
    rows, home = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    n = 0
    for c in range(len(clusters)):
        for row in members[member_ptr[clusters[c]] : member_ptr[clusters[c] + 1]]:
            rows[n], home[n] = row, c
            largest = max(largest, ptr[row + 1] - ptr[row])
            n += 1
    size = np.zeros(len(clusters), np.int64)
    keeps = np.zeros(len(clusters))
    without = np.zeros(n_rows)
    column = np.zeros(n_rows, np.int64)
    n_nodes = np.zeros(len(clusters) * _N_COLUMNS, np.int64)
    least = np.empty((len(clusters) * _N_COLUMNS, largest), np.int32)
    count = np.empty((len(clusters) * _N_COLUMNS, largest), np.int32)
    table = np.zeros((n_rows, len(clusters) * _N_COLUMNS))
    for c in range(len(clusters)):
        _leave_out(c, rows, home, ptr, nodes, under, weight, work, size, keeps, without, column, n_nodes, least, count)
        _fill_table(c, rows, ptr, nodes, under, weight, n_nodes, least, count, work[_SEEN], table)
    gain = 0.0
    tried = np.zeros(len(clusters), np.bool_)
    for _ in range(_MAX_STEPS):
        a, b, best = _best_exchange(home, size, keeps, without, column, table, k)
        if a >= 0:
            gain += best
            old, new = home[a], (home[b] if b >= 0 else -b - 1)
            home[a] = new
            if b >= 0:
                home[b] = old
            changed = np.array([old, new])
        else:
            c = _worst_cluster(home, size, keeps, table, tried, k)
            if c < 0:
                break
            tried[c] = True
            before = home.copy()
            best = _dissolve(
                c, rows, home, ptr, nodes, under, weight, work, size, keeps, without, column, n_nodes, least, count,
                table, k,
            )  # fmt: skip
            if best > _MARGIN:
                gain += best
                changed = np.array([c])
            else:
                changed = np.append(home[before == c], c)
                home[:] = before
        for c in changed:
            _leave_out(
                c, rows, home, ptr, nodes, under, weight, work, size, keeps, without, column, n_nodes, least, count
            )
            _fill_table(c, rows, ptr, nodes, under, weight, n_nodes, least, count, work[_SEEN], table)
    for i in range(n_rows):
        cluster_of[rows[i]] = clusters[home[i]]
    return gain


@njit(cache=True, nogil=True)
def _best_exchange(
    home: Int64s, size: Int64s, keeps: Floats, without: Floats, column: Int64s, table: Floats, k: int
) -> tuple[int, int, float]:
    """Return the row to move, the row to swap it with (or minus one less its new cluster), and the gain; -1 if none."""
    best_a, best_b, best = -1, -1, _MARGIN
    for a in range(len(home)):
        mine = home[a]
        for b in range(a + 1, len(home)):
            other = home[b]
            if other != mine:
                gain = size[mine] * (table[b, column[a]] - keeps[mine])
                gain += size[other] * (table[a, column[b]] - keeps[other])
                if gain > best:
                    best_a, best_b, best = a, b, gain
        if size[mine] > k:
            left = (size[mine] - 1) * without[a] - size[mine] * keeps[mine]
            for other in range(len(size)):
                if other != mine and size[other] > 0:
                    gain = left + (size[other] + 1) * table[a, other * _N_COLUMNS + _ANY] - size[other] * keeps[other]
                    if gain > best:
                        best_a, best_b, best = a, -other - 1, gain
    return best_a, best_b, best


@njit(cache=True, nogil=True)
def _best_home(a: int, home: Int64s, size: Int64s, keeps: Floats, table: Floats, k: int) -> tuple[int, float]:
    """Return the other cluster that gains most, or loses least, from taking row a, and how much; -1 if there is none.

    None grows to 2k, since two of k would keep more.
    """
    best_cluster, best = -1, -np.inf
    for c in range(len(size)):
        if c != home[a] and 0 < size[c] < 2 * k - 1:
            gain = (size[c] + 1) * table[a, c * _N_COLUMNS + _ANY] - size[c] * keeps[c]
            if gain > best:
                best_cluster, best = c, gain
    return best_cluster, best


@njit(cache=True, nogil=True)
def _worst_cluster(home: Int64s, size: Int64s, keeps: Floats, table: Floats, tried: Bools, k: int) -> int:
    """Return the cluster not tried yet whose members would gain most in others, each by itself; -1 if none would."""
    gain = -size * keeps
    for a in range(len(home)):
        gain[home[a]] += _best_home(a, home, size, keeps, table, k)[1]
    worst, most = -1, _MARGIN
    for c in range(len(size)):
        if size[c] > 0 and not tried[c] and gain[c] > most:
            worst, most = c, gain[c]
    return worst


@njit(cache=True, nogil=True)
def _dissolve(
    c: int,
    rows: Int64s,
    home: Int64s,
    ptr: Int64s,
    nodes: Int32s,
    under: Int32s,
    weight: Floats,
    work: Int32s,
    size: Int64s,
    keeps: Floats,
    without: Floats,
    column: Int64s,
    n_nodes: Int64s,
    least: Int32s,
    count: Int32s,
    table: Floats,
    k: int,
) -> float:
    """Return the members of cluster c to others one by one; give the gain, which may be negative."""
    gain = float(-size[c] * keeps[c])
    for a in range(len(home)):
        if home[a] != c:
            continue
        new, more = _best_home(a, home, size, keeps, table, k)
        if new < 0:
            return -np.inf
        home[a] = new
        gain += more
        _leave_out(
            new, rows, home, ptr, nodes, under, weight, work, size, keeps, without, column, n_nodes, least, count
        )
        _fill_table(new, rows, ptr, nodes, under, weight, n_nodes, least, count, work[_SEEN], table)
    return gain


@njit(cache=True, nogil=True)
def _leave_out(
    c: int,
    rows: Int64s,
    home: Int64s,
    ptr: Int64s,
    nodes: Int32s,
    under: Int32s,
    weight: Floats,
    work: Int32s,
    size: Int64s,
    keeps: Floats,
    without: Floats,
    column: Int64s,
    n_nodes: Int64s,
    least: Int32s,
    count: Int32s,
) -> None:
    """Find what cluster c keeps as it is and without each member, and the least counts behind that."""
    mine = np.flatnonzero(home == c)
    n = len(mine)
    met = _tally(mine, rows, ptr, nodes, under, work)
    kept = 0.0
    drop = np.zeros(n)
    for node in met:
        seen, low, who = work[_SEEN, node], work[_LOW, node], work[_WHO, node]
        if seen == n:
            kept += weight[node] * low
            drop[who] += weight[node] * (work[_NEXT, node] - low)
        elif seen == n - 1:
            drop[n * (n - 1) // 2 - work[_SUM, node]] += weight[node] * low
    size[c], keeps[c] = n, kept

    leavers = np.empty(min(n, _N_LEAVERS), np.int64)
    slot = np.full(n, -1, np.int64)
    for i in range(len(leavers)):
        most = -1
        for j in range(n):
            if slot[j] < 0 and (most < 0 or drop[j] > drop[most]):
                most = j
        leavers[i], slot[most] = most, c * _N_COLUMNS + i
    for i in range(n):
        without[mine[i]] = kept + drop[i]
        column[mine[i]] = slot[i] if slot[i] >= 0 else c * _N_COLUMNS + _ANY
    n_nodes[c * _N_COLUMNS : (c + 1) * _N_COLUMNS] = 0
    for node in met:
        seen, low, who = work[_SEEN, node], work[_LOW, node], work[_WHO, node]
        if seen == n:
            _append(c * _N_COLUMNS + _ANY, node, low, n_nodes, least, count)
            for leaver in leavers:
                _append(slot[leaver], node, work[_NEXT, node] if leaver == who else low, n_nodes, least, count)
        elif seen == n - 1:
            absent = n * (n - 1) // 2 - work[_SUM, node]
            if slot[absent] >= 0:
                _append(slot[absent], node, low, n_nodes, least, count)
        work[_SEEN, node] = 0


@njit(cache=True, nogil=True)
def _tally(mine: Int64s, rows: Int64s, ptr: Int64s, nodes: Int32s, under: Int32s, work: Int32s) -> Int32s:
    """Count per node the members that have it, the two least counts, whose the least is, and the sum of who has it."""
    n_met, n_most = 0, 0
    for i in mine:
        n_most += ptr[rows[i] + 1] - ptr[rows[i]]
    met = np.empty(n_most, np.int32)
    for i in range(len(mine)):
        row = rows[mine[i]]
        for j in range(ptr[row], ptr[row + 1]):
            node, value = nodes[j], under[j]
            if work[_SEEN, node] == 0:
                met[n_met] = node
                n_met += 1
                work[_LOW, node], work[_WHO, node] = value, i
                work[_NEXT, node], work[_SUM, node] = np.iinfo(np.int32).max, 0
            elif value < work[_LOW, node]:
                work[_NEXT, node] = work[_LOW, node]
                work[_LOW, node], work[_WHO, node] = value, i
            elif value < work[_NEXT, node]:
                work[_NEXT, node] = value
            work[_SEEN, node] += 1
            work[_SUM, node] += i
    return met[:n_met]


@njit(cache=True, nogil=True)
def _append(column: int, node: int, value: int, n_nodes: Int64s, least: Int32s, count: Int32s) -> None:
    least[column, n_nodes[column]], count[column, n_nodes[column]] = node, value
    n_nodes[column] += 1


@njit(cache=True, nogil=True)
def _fill_table(
    c: int,
    rows: Int64s,
    ptr: Int64s,
    nodes: Int32s,
    under: Int32s,
    weight: Floats,
    n_nodes: Int64s,
    least: Int32s,
    count: Int32s,
    dense: Int32s,
    table: Floats,
) -> None:
    """Say for every row what would be kept with it added to each of cluster c's columns."""
    for a in range(len(rows)):
        row = rows[a]
        for i in range(ptr[row], ptr[row + 1]):
            dense[nodes[i]] = under[i]
        for column in range(c * _N_COLUMNS, (c + 1) * _N_COLUMNS):
            total = 0.0
            for i in range(n_nodes[column]):
                node = least[column, i]
                total += weight[node] * min(count[column, i], dense[node])
            table[a, column] = total
        for i in range(ptr[row], ptr[row + 1]):
            dense[nodes[i]] = 0

"""Move and swap transactions between near clusters, and dissolve clusters, while what the clusters keep grows.

For each cluster of a block we hold its least counts without each of the `_N_LEAVERS` members that hold it down most,
and with all its members, which stands for the cluster without any of the others. A table says what would be kept with
each transaction of the block added to each of these.

Where many transactions are alike, clusters of k leave some of a kind over, and the clusters made of these are bad:
their members do better beside their own kind in clusters of more than k.
"""

from typing import NamedTuple

import numpy as np

from queryveil.data import Bools, Floats, Int32s, Int64s
from queryveil.data.rows import Rows
from queryveil.kernels import njit, prange
from queryveil.methods.clump._gather_kernels import Vectors

_N_LEAVERS = 8
_N_COLUMNS = _N_LEAVERS + 1
_ANY = _N_LEAVERS
"""The last column of a cluster: its least counts with all its members."""
_MARGIN = 1e-9
_MAX_STEPS = 200
"""Changes to one block in one call: a bound on the time for very large clusters, seldom met by small ones."""
WORK_ROWS = 5
_SEEN, _LOW, _WHO, _NEXT, _SUM = range(WORK_ROWS)


class _Block(NamedTuple):
    """A block of clusters and the transactions in them.

    Of each transaction: its row among the vectors, its cluster (`home`), what its cluster keeps `without` it, and the
    `column` of that. Of each cluster: its size and what it `keeps`. Of each column: the nodes of its least counts
    (`least`, `n_nodes` of them) and these (`counts`). `table` says what a column keeps with each transaction added.
    """

    rows: Int64s
    home: Int64s
    without: Floats
    column: Int64s
    size: Int64s
    keeps: Floats
    n_nodes: Int64s
    least: Int32s
    counts: Int32s
    table: Floats


@njit(cache=True, nogil=True, parallel=True)
def exchange(
    clusters: Int64s, ends: Int64s, members: Rows[np.int64], v: Vectors, k: int, work: Int32s, cluster_of: Int32s
) -> float:
    """Improve each block of clusters by itself, in place; return by how much the distortion fell.

    Blocks share no cluster, so the outcome does not depend on the threads. `work` has `WORK_ROWS` numbers per node
    for each thread, the first of them zero, as it is again after.
    """
    n_threads = len(work)
    gains = np.zeros(len(ends))
    for thread in prange(n_threads):
        for block in range(thread, len(ends) - 1, n_threads):
            mine = clusters[ends[block] : ends[block + 1]]
            gains[block] = _improve(mine, members, v, k, work[thread], cluster_of)
    return float(gains.sum())


@njit(cache=True, nogil=True)
def _improve(clusters: Int64s, members: Rows[np.int64], v: Vectors, k: int, work: Int32s, cluster_of: Int32s) -> float:
    b = _block(clusters, members, v)
    for c in range(len(clusters)):
        _leave_out(c, b, v, work)
        _fill_table(c, b, v, work[_SEEN])
    gain = 0.0
    tried = np.zeros(len(clusters), np.bool_)
    for _ in range(_MAX_STEPS):
        one, other, best = _best_exchange(b, k)
        if one >= 0:
            gain += best
            old, new = b.home[one], (b.home[other] if other >= 0 else -other - 1)
            b.home[one] = new
            if other >= 0:
                b.home[other] = old
            changed = np.array([old, new])
        else:
            c = _worst_cluster(b, tried, k)
            if c < 0:
                break
            tried[c] = True
            before = b.home.copy()
            best = _dissolve(c, b, v, work, k)
            if best > _MARGIN:
                gain += best
                changed = np.array([c])
            else:
                changed = np.append(b.home[before == c], c)
                b.home[:] = before
        for c in changed:
            _leave_out(c, b, v, work)
            _fill_table(c, b, v, work[_SEEN])
    for i in range(len(b.rows)):
        cluster_of[b.rows[i]] = clusters[b.home[i]]
    return gain


@njit(cache=True, nogil=True)
def _block(clusters: Int64s, members: Rows[np.int64], v: Vectors) -> _Block:
    n_rows, largest, n_columns = 0, 0, len(clusters) * _N_COLUMNS
    for c in clusters:
        n_rows += members.ptr[c + 1] - members.ptr[c]
    rows, home = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    n = 0
    for c in range(len(clusters)):
        for row in members.values[members.ptr[clusters[c]] : members.ptr[clusters[c] + 1]]:
            rows[n], home[n] = row, c
            largest = max(largest, v.ptr[row + 1] - v.ptr[row])
            n += 1
    return _Block(
        rows, home, np.zeros(n_rows), np.zeros(n_rows, np.int64),
        np.zeros(len(clusters), np.int64), np.zeros(len(clusters)), np.zeros(n_columns, np.int64),
        np.empty((n_columns, largest), np.int32), np.empty((n_columns, largest), np.int32),
        np.zeros((n_rows, n_columns)),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _best_exchange(b: _Block, k: int) -> tuple[int, int, float]:
    """Return the row to move, the row to swap it with (or minus one less its new cluster), and the gain; -1 if none."""
    home, size, keeps, column, table = b.home, b.size, b.keeps, b.column, b.table
    best_a, best_b, best = -1, -1, _MARGIN
    for a in range(len(home)):
        mine = home[a]
        for i in range(a + 1, len(home)):
            other = home[i]
            if other != mine:
                gain = size[mine] * (table[i, column[a]] - keeps[mine])
                gain += size[other] * (table[a, column[i]] - keeps[other])
                if gain > best:
                    best_a, best_b, best = a, i, gain
        if size[mine] > k:
            left = (size[mine] - 1) * b.without[a] - size[mine] * keeps[mine]
            for other in range(len(size)):
                if other != mine and size[other] > 0:
                    gain = left + (size[other] + 1) * table[a, other * _N_COLUMNS + _ANY] - size[other] * keeps[other]
                    if gain > best:
                        best_a, best_b, best = a, -other - 1, gain
    return best_a, best_b, best


@njit(cache=True, nogil=True)
def _best_home(a: int, b: _Block, k: int) -> tuple[int, float]:
    """Return the other cluster that gains most, or loses least, from taking row a, and how much; -1 if there is none.

    None grows to 2k, since two of k would keep more.
    """
    best_cluster, best = -1, -np.inf
    for c in range(len(b.size)):
        if c != b.home[a] and 0 < b.size[c] < 2 * k - 1:
            gain = (b.size[c] + 1) * b.table[a, c * _N_COLUMNS + _ANY] - b.size[c] * b.keeps[c]
            if gain > best:
                best_cluster, best = c, gain
    return best_cluster, best


@njit(cache=True, nogil=True)
def _worst_cluster(b: _Block, tried: Bools, k: int) -> int:
    """Return the cluster not tried yet whose members would gain most in others, each by itself; -1 if none would."""
    gain = -b.size * b.keeps
    for a in range(len(b.home)):
        gain[b.home[a]] += _best_home(a, b, k)[1]
    worst, most = -1, _MARGIN
    for c in range(len(b.size)):
        if b.size[c] > 0 and not tried[c] and gain[c] > most:
            worst, most = c, gain[c]
    return worst


@njit(cache=True, nogil=True)
def _dissolve(c: int, b: _Block, v: Vectors, work: Int32s, k: int) -> float:
    """Move the members of cluster c to others one by one; return the gain, which may be negative."""
    gain = float(-b.size[c] * b.keeps[c])
    for a in range(len(b.home)):
        if b.home[a] != c:
            continue
        new, more = _best_home(a, b, k)
        if new < 0:
            return -np.inf
        b.home[a] = new
        gain += more
        _leave_out(new, b, v, work)
        _fill_table(new, b, v, work[_SEEN])
    return gain


@njit(cache=True, nogil=True)
def _leave_out(c: int, b: _Block, v: Vectors, work: Int32s) -> None:
    """Find what cluster c keeps as it is and without each member, and the least counts behind that."""
    mine = np.flatnonzero(b.home == c)
    n = len(mine)
    met = _tally(b.rows[mine], v, work)
    kept = 0.0
    drop = np.zeros(n)
    for node in met:
        seen, low, who = work[_SEEN, node], work[_LOW, node], work[_WHO, node]
        if seen == n:
            kept += v.weight[node] * low
            drop[who] += v.weight[node] * (work[_NEXT, node] - low)
        elif seen == n - 1:
            drop[n * (n - 1) // 2 - work[_SUM, node]] += v.weight[node] * low
    b.size[c], b.keeps[c] = n, kept

    leavers = np.empty(min(n, _N_LEAVERS), np.int64)
    slot = np.full(n, -1, np.int64)
    for i in range(len(leavers)):
        most = -1
        for j in range(n):
            if slot[j] < 0 and (most < 0 or drop[j] > drop[most]):
                most = j
        leavers[i], slot[most] = most, c * _N_COLUMNS + i
    for i in range(n):
        b.without[mine[i]] = kept + drop[i]
        b.column[mine[i]] = slot[i] if slot[i] >= 0 else c * _N_COLUMNS + _ANY
    b.n_nodes[c * _N_COLUMNS : (c + 1) * _N_COLUMNS] = 0
    for node in met:
        seen, low, who = work[_SEEN, node], work[_LOW, node], work[_WHO, node]
        if seen == n:
            _append(c * _N_COLUMNS + _ANY, node, low, b)
            for leaver in leavers:
                _append(slot[leaver], node, work[_NEXT, node] if leaver == who else low, b)
        elif seen == n - 1:
            absent = n * (n - 1) // 2 - work[_SUM, node]
            if slot[absent] >= 0:
                _append(slot[absent], node, low, b)
        work[_SEEN, node] = 0


@njit(cache=True, nogil=True)
def _tally(rows: Int64s, v: Vectors, work: Int32s) -> Int32s:
    """Count per node the members that have it, the two least counts, whose the least is, and the sum of who has it."""
    n_met, n_most = 0, 0
    for row in rows:
        n_most += v.ptr[row + 1] - v.ptr[row]
    met = np.empty(n_most, np.int32)
    for i in range(len(rows)):
        for j in range(v.ptr[rows[i]], v.ptr[rows[i] + 1]):
            node, value = v.nodes[j], v.under[j]
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
def _append(column: int, node: int, value: int, b: _Block) -> None:
    n = b.n_nodes[column]
    b.least[column, n], b.counts[column, n] = node, value
    b.n_nodes[column] = n + 1


@njit(cache=True, nogil=True)
def _fill_table(c: int, b: _Block, v: Vectors, dense: Int32s) -> None:
    """Say for every row what would be kept with it added to each of cluster c's columns."""
    for a in range(len(b.rows)):
        row = b.rows[a]
        for i in range(v.ptr[row], v.ptr[row + 1]):
            dense[v.nodes[i]] = v.under[i]
        for column in range(c * _N_COLUMNS, (c + 1) * _N_COLUMNS):
            total = 0.0
            for i in range(b.n_nodes[column]):
                node = b.least[column, i]
                total += v.weight[node] * min(b.counts[column, i], dense[node])
            b.table[a, column] = total
        for i in range(v.ptr[row], v.ptr[row + 1]):
            dense[v.nodes[i]] = 0

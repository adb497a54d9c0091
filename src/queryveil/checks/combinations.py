"""Kernels that count every combination of a given size, depth first.

The histories are in one array, `line`, each ascending and ended by -1. A *tail* is a position in `line`: the items from
there to the next -1 are those that can extend a combination whose last item is just before. The tails of a combination
are thus its users, and counting the items in them yields the support of every combination that is one item longer.
Items are numbered by rising support, so that the first, longest tails are few.
"""

import numpy as np

from queryveil.checks.tokens import Codes, Ints
from queryveil.kernels import njit, prange

N_KEPT = 10
N_SHARES = 16
"""Shares of the work; fixed, because the witnesses must not depend on the number of cores."""

_FREE = np.iinfo(np.int64).max


@njit(cache=True, parallel=True)
def rare_combinations(
    line: Codes, tails: Ints, tail_starts: Ints, firsts: Ints, size: int, k: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Count the combinations of `size` (2 or more) items with fewer than `k` users, among those that start in `firsts`.

    `tails[tail_starts[t] : tail_starts[t + 1]]` are the tails of item t alone.

    Return, for each share of the work, their number and the rarest of them: support, items, and a tail of the first
    user. Unused entries have a support of 2**63 - 1.
    """
    n_rare = np.zeros(N_SHARES, np.int64)
    supports = np.full((N_SHARES, N_KEPT), _FREE, np.int64)
    items = np.zeros((N_SHARES, N_KEPT, size), np.int64)
    places = np.zeros((N_SHARES, N_KEPT), np.int64)
    for share in prange(N_SHARES):
        counts = np.zeros(tail_starts.size - 1, np.int64)
        prefix = np.zeros(size, np.int64)
        for i in range(share, firsts.size, N_SHARES):
            first = firsts[i : i + 1]
            bounds = tail_starts[first[0] : first[0] + 2]
            n_rare[share] += _search(
                line, first, bounds, tails, prefix, k, counts, supports[share], items[share], places[share]
            )
    return n_rare, supports, items, places


@njit(cache=True)
def _search(
    line: Codes,
    first: Ints,
    bounds: Ints,
    tails: Ints,
    prefix: Ints,
    k: int,
    counts: Ints,
    supports: Ints,
    items: Ints,
    places: Ints,
) -> int:
    """Count the rare combinations that start with `first`; `counts` is all zero before and after.

    Level d holds the items that may follow the current `prefix[:d]`, and the tails of each. The levels are a stack and
    not a recursion, because Numba crashes when it loads a recursive function from its cache.
    """
    last = prefix.size - 2
    nexts, starts, tails_of = [first] * (last + 1), [bounds] * (last + 1), [tails] * (last + 1)
    at = np.zeros(last + 1, np.int64)
    level, n = 0, 0
    while level >= 0:
        i = at[level]
        if i == nexts[level].size:
            level -= 1
            continue
        at[level] += 1
        prefix[level] = nexts[level][i]
        after = tails_of[level][starts[level][i] : starts[level][i + 1]]
        if level == last:
            n += _count_last(line, after, prefix, k, counts, supports, items, places)
        else:
            level += 1
            at[level] = 0
            nexts[level], starts[level], tails_of[level] = _split(line, after, prefix.size - level, k, counts)
    return n


@njit(cache=True)
def _split(line: Codes, tails: Ints, n_missing: int, k: int, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the items that can come next and the tails after each; none if no combination can be rare."""
    nexts = _count(line, tails, counts)
    if _all_common(counts, nexts, tails.size, n_missing, k):
        counts[nexts] = 0
        return nexts[:0], nexts[:0], nexts[:0]
    starts = np.zeros(nexts.size + 1, np.int64)
    for i in range(nexts.size):
        starts[i + 1] = starts[i] + counts[nexts[i]]
        counts[nexts[i]] = starts[i]
    deeper = np.empty(starts[-1], np.int64)
    for tail in tails:
        place = tail
        while line[place] >= 0:
            deeper[counts[line[place]]] = place + 1
            counts[line[place]] += 1
            place += 1
    counts[nexts] = 0
    return nexts, starts, deeper


@njit(cache=True)
def _count(line: Codes, tails: Ints, counts: Ints) -> Ints:
    """Count the items of the tails into `counts`, and return the items."""
    n_nexts = 0
    for tail in tails:
        place = tail
        while line[place] >= 0:
            counts[line[place]] += 1
            n_nexts += counts[line[place]] == 1
            place += 1
    nexts = np.empty(n_nexts, np.int64)
    n_nexts = 0
    for tail in tails:
        place = tail
        while line[place] >= 0 and n_nexts < nexts.size:
            item = line[place]
            if counts[item] > 0:
                counts[item] = -counts[item]
                nexts[n_nexts] = item
                n_nexts += 1
            place += 1
    for item in nexts:
        counts[item] = -counts[item]
    return nexts


@njit(cache=True)
def _all_common(counts: Ints, nexts: Ints, n_users: int, n_missing: int, k: int) -> bool:
    """Return whether every combination of `n_missing` of the next items has k users, by their counts alone.

    Of the users of the prefix, `n_users - counts[item]` lack an item, so a combination has at least all users but those
    who lack one of its items. If that is enough for the rarest items, it is for all.
    """
    lacking = np.zeros(n_missing, np.int64)  # of the items that are lacking most, ascending
    for item in nexts:
        n_lacking = n_users - counts[item]
        if n_lacking > lacking[0]:
            place = 0
            while place + 1 < n_missing and lacking[place + 1] < n_lacking:
                lacking[place] = lacking[place + 1]
                place += 1
            lacking[place] = n_lacking
    return bool(n_users - lacking.sum() >= k)


@njit(cache=True)
def _count_last(
    line: Codes, tails: Ints, prefix: Ints, k: int, counts: Ints, supports: Ints, items: Ints, places: Ints
) -> int:
    """Return the number of last items that make `prefix` rare, and keep the rarest combinations."""
    for tail in tails:
        place = tail
        while line[place] >= 0:
            counts[line[place]] += 1
            place += 1
    n = 0
    for tail in tails:
        place = tail
        while line[place] >= 0:
            support = counts[line[place]]
            if 0 < support < k:
                n += 1
                prefix[-1] = line[place]
                _keep_rarest(support, prefix, place, supports, items, places)
            counts[line[place]] = 0
            place += 1
    return n


@njit(cache=True)
def _keep_rarest(support: int, combination: Ints, place: int, supports: Ints, items: Ints, places: Ints) -> None:
    """Insert a combination into the kept ones, sorted by support and then by items, if it is rare enough."""
    slot = supports.size
    while slot > 0 and _comes_before(support, combination, supports[slot - 1], items[slot - 1]):
        slot -= 1
    if slot == supports.size:
        return
    for i in range(supports.size - 1, slot, -1):
        supports[i], places[i] = supports[i - 1], places[i - 1]
        items[i] = items[i - 1]
    supports[slot], places[slot] = support, place
    items[slot] = combination


@njit(cache=True)
def _comes_before(support: int, combination: Ints, other_support: int, other: Ints) -> bool:
    if support != other_support:
        return support < other_support
    for i in range(combination.size):
        if combination[i] != other[i]:
            return bool(combination[i] < other[i])
    return False

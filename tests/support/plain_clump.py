"""Clump and Partition in plain Python, as the definitions read: slow, to compare with.

A tree is a list of parents: node 0 is the root, its parent is -1, and parents have smaller numbers than children.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Bag: TypeAlias = tuple[int, ...]


def ancestors(node: int, parent: Sequence[int]) -> Iterator[int]:
    """Return a node and all above it.

    >>> list(ancestors(2, [-1, 0, 1]))
    [2, 1, 0]
    """
    while node >= 0:
        yield node
        node = parent[node]


def losses(parent: Sequence[int]) -> list[float]:
    """Return LM of every node: leaves under it minus one over all leaves minus one.

    >>> losses([-1, 0, 0, 1, 1])
    [1.0, 0.5, 0.0, 0.0, 0.0]
    """
    inner = set(parent)
    leaves = Counter(above for node in range(len(parent)) if node not in inner for above in ancestors(node, parent))
    return [(leaves[node] - 1) / max(1, leaves[0] - 1) for node in range(len(parent))]


def plain_lcg(bags: Sequence[Bag], parent: Sequence[int], *, carry: bool) -> Bag:
    """Return the LCG by algorithm 2, over the whole tree; with `carry` what a node has left over moves up.

    >>> plain_lcg([(3, 3), (3, 4)], [-1, 0, 0, 1, 1], carry=False)
    (3, 0)
    >>> plain_lcg([(3, 3), (3, 4)], [-1, 0, 0, 1, 1], carry=True)
    (3, 1)
    """
    found: list[int] = []
    counts = [[bag.count(node) for bag in bags] for node in range(len(parent))]
    for node in range(len(parent) - 1, 0, -1):
        shared = min(counts[node])
        found += [node] * shared
        if carry or shared == 0:
            above = counts[parent[node]]
            counts[parent[node]] = [a + b - shared for a, b in zip(above, counts[node], strict=True)]
    return tuple(found + [0] * (min(map(len, bags)) - len(found)))


def plain_ggd(bags: Sequence[Bag], released: Bag, loss: Sequence[float]) -> float:
    """Return the distortion of releasing `released` for each of the bags.

    >>> plain_ggd([(1,), (1, 2)], (0,), [1.0, 0.0, 0.0])
    3.0
    """
    n_suppressed = sum(map(len, bags)) - len(bags) * len(released)
    return len(bags) * sum(loss[node] for node in released) + n_suppressed


def plain_clump(
    bags: Sequence[Bag], parent: Sequence[int], *, k: int, r: int, carry: bool, by_rise: bool
) -> list[tuple[list[int], Bag]]:
    """Return the members and the release of each cluster by algorithm 1.

    >>> plain_clump([(3,), (4,)], [-1, 0, 0, 1, 1], k=2, r=10, carry=True, by_rise=False)
    [([0, 1], (1,))]
    """
    loss = losses(parent)
    order = sorted(range(len(bags)), key=lambda t: -len(bags[t]))
    seeds = [order[i * k] for i in range(len(bags) // k)]
    clusters = [([seed], tuple(sorted(bags[seed], reverse=True))) for seed in seeds]

    def value(cluster: int, t: int) -> float:
        members, lcg = clusters[cluster]
        joined = plain_lcg([lcg, bags[t]], parent, carry=carry)
        after = plain_ggd([bags[m] for m in members] + [bags[t]], joined, loss)
        before = plain_ggd([bags[m] for m in members], lcg, loss) if by_rise else 0.0
        return round(after - before, 9)

    for t in order:
        if t in seeds:
            continue
        open_ones = [c for c, (members, _) in enumerate(clusters) if len(members) < k][:r]
        best = min(open_ones or range(len(clusters)), key=lambda c: value(c, t))
        members, lcg = clusters[best]
        clusters[best] = ([*members, t], plain_lcg([lcg, bags[t]], parent, carry=carry))
    return clusters


def plain_partition(bags: Sequence[Bag], parent: Sequence[int], *, k: int) -> list[tuple[list[int], frozenset[int]]]:
    """Return the members and the release of each class, top-down; every bag holds something.

    >>> plain_partition([(3,), (3, 4), (3,), (4, 3)], [-1, 0, 0, 1, 1], k=2)
    [([0, 2], frozenset({3})), ([1, 3], frozenset({3, 4}))]
    """
    loss = losses(parent)

    def children(t: int, node: int) -> frozenset[int]:
        below = {child for item in bags[t] for child in ancestors(item, parent) if child and parent[child] == node}
        return frozenset(below | ({node} & set(bags[t])))

    def gain(node: int, large: list[list[int]]) -> float:
        return sum(
            loss[node] - (loss[node] if item == node else loss[child])
            for group in large
            for t in group
            for item in bags[t]
            for child in ancestors(item, parent)
            if (parent[child] == node and child) or (child == node and item == node)
        )

    classes, waiting = [], [(list(range(len(bags))), frozenset({0}), frozenset[int]())]
    while waiting:
        rows, still_open, done = waiting.pop()
        best, best_gain, best_split = -1, -1.0, ([[0]], [0])
        for node in sorted(still_open & set(parent)):
            groups = defaultdict(list)
            for t in rows:
                groups[children(t, node)].append(t)
            split = _balance(list(groups.values()), k=k)
            large = [group for group in groups.values() if len(group) >= k]
            if split[0] and gain(node, large) > best_gain + 1e-9:
                best, best_gain, best_split = node, gain(node, large), split
        if best < 0:
            classes.append((rows, still_open | done))
            continue
        parts = []
        for group in best_split[0]:
            below = children(group[0], best)
            parts.append((group, (still_open - {best}) | (below - {best}), done | (below & {best})))
        if best_split[1]:
            parts.append((best_split[1], still_open - {best}, done | {best}))
        waiting.extend(reversed(parts))
    return classes


def _balance(groups: list[list[int]], *, k: int) -> tuple[list[list[int]], list[int]]:
    """Merge the small groups; while these are fewer than k, take back from the largest, then whole groups."""
    large = [list(group) for group in groups if len(group) >= k]
    left = [t for group in groups if len(group) < k for t in group]
    while large and 0 < len(left) < k:
        largest = max(large, key=len)
        if len(largest) > k:
            left.append(largest.pop())
        else:
            left += large.pop()
    return large, sorted(left)

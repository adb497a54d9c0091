"""Who must see what to count the combinations that begin with a certain item: histories from there on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def suffixes(starts: Ints, items: NDArray[np.int32], *, n_shards: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Give the parts of histories that each shard must see; those that begin with item i are shard i % n_shards'.

    History h is `items[starts[h]:starts[h + 1]]`, ascending. A shard sees it from the first item of its own on. Gives
    for each such part its shard and its history, where its places begin, and the places.

    >>> parts = suffixes(np.array([0, 3]), np.array([2, 4, 5], np.int32), n_shards=2)
    >>> [part.tolist() for part in parts]
    [[0, 1], [0, 0], [0, 3, 4], [0, 1, 2, 2]]
    """
    history = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    # Entries stand in order, so the first place of a key is the first item of that shard in that history.
    keys, first = np.unique(history * n_shards + items % n_shards, return_index=True)
    owner = keys // n_shards
    lengths = starts[owner + 1] - first
    begins = np.append(0, np.cumsum(lengths))
    places = np.arange(begins[-1]) + np.repeat(first - begins[:-1], lengths)
    return keys % n_shards, owner, begins, places

"""What a word was meant to be, where it is in no table: the most frequent word one letter away.

The table of recommendations comes first; this is for the misspellings that nobody has listed.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Int32s
from queryveil.kernels.known_words import Nearby, Vocabulary
from queryveil.kernels.nearby_words import index_deletions
from queryveil.kernels.word_hash import n_slots
from queryveil.text.byte_words import byte_words

SHORTEST = 4
N_WORDS = 30_000
"""So many of the most frequent units are what a word can be corrected to: rare ones attract names."""


def nearby_words(entries: pl.Series, *, vocabulary: Vocabulary) -> Nearby:
    """Index the most frequent units of one word by all their forms with a letter left out."""
    is_plain = entries.str.contains(rf"^[a-z]{{{SHORTEST},}}$").to_numpy()
    fit = np.flatnonzero(is_plain & (vocabulary.unit >= 0) & (vocabulary.counts > 0))
    by_count = np.argsort(-vocabulary.counts[fit], kind="stable")[:N_WORDS]
    chosen: Int32s = fit[by_count].astype(np.int32)
    words = byte_words(entries.gather(chosen))
    n_forms = int((words.ends - words.starts + 1).sum())
    keys, values = index_deletions(words.data, words.starts, words.ends, n_slots(n_forms))
    return Nearby(keys, values, words.data, words.starts, words.ends, chosen)

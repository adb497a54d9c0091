"""Words and the nodes of a taxonomy that they stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.text.plurals import Plurals
from queryveil.text.word_table import fold, fold_all, place, places


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Lexicon:
    """Words, sorted and distinct, and the nodes of each: word w has `nodes[sense_ptr[w]:sense_ptr[w + 1]]`.

    The first of them is its first sense. A node that has been cut off its tree is -1. Words are matched in lower case.
    With `plurals`, a word that is not in the table is looked up again by its singular.
    """

    words: pl.Series
    sense_ptr: Int64s
    nodes: Int32s
    plurals: Plurals | None = None

    @classmethod
    def of_names(cls, names: pl.Series) -> Lexicon:
        """Give the lexicon in which each node goes by its own name, in lower case."""
        folded = fold_all(names)
        order = folded.arg_sort()
        return cls(
            words=folded.gather(order),
            sense_ptr=np.arange(len(names) + 1, dtype=np.int64),
            nodes=order.to_numpy().astype(np.int32),
        )

    def find(self, word: str) -> int:
        """Give the first sense of a word, -1 where it has none."""
        at = self._place(word)
        return int(self.nodes[self.sense_ptr[at]]) if at >= 0 else -1

    def senses(self, word: str) -> Int32s:
        """Give all senses of a word, the first first."""
        at = self._place(word)
        nodes = self.nodes[self.sense_ptr[at] : self.sense_ptr[at + 1]] if at >= 0 else self.nodes[:0]
        return nodes[nodes >= 0]

    def find_all(self, words: pl.Series) -> Int32s:
        """Give the first sense of every word of a column, -1 where it has none."""
        first = np.append(self.nodes[self.sense_ptr[:-1]], np.int32(-1))
        return first[self._places(words)]

    def all_senses(self, words: pl.Series) -> tuple[Int64s, Int32s]:
        """Give all senses of every word of a column as compressed rows, the first first; none for unknown words."""
        at = self._places(words)
        n_senses = np.append(np.diff(self.sense_ptr), 0)[at]
        word = np.repeat(np.arange(len(at)), n_senses)
        within = np.arange(len(word)) - np.repeat(np.cumsum(n_senses) - n_senses, n_senses)
        nodes = self.nodes[self.sense_ptr[at[word]] + within]
        counts = np.bincount(word[nodes >= 0], minlength=len(at))
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), nodes[nodes >= 0]

    def with_nodes(self, number: Int32s) -> Lexicon:
        """Give the same words for nodes that have been renumbered; `number` is -1 for those cut off."""
        return replace(self, nodes=np.append(number, np.int32(-1))[self.nodes])

    def __repr__(self) -> str:
        return f"Lexicon(n_words={len(self.words)})"

    def _places(self, words: pl.Series) -> Int32s:
        folded = fold_all(words)
        at = places(folded, table=self.words)
        if self.plurals is not None:
            unknown = np.flatnonzero(at < 0)
            at[unknown] = self.plurals.singulars(folded.gather(unknown), table=self.words)
        return at

    def _place(self, word: str) -> int:
        folded = fold(word)
        at = place(folded, table=self.words)
        return at if at >= 0 or self.plurals is None else self.plurals.singular(folded, table=self.words)

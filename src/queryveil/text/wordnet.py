"""WordNet's nouns, read from the table in the package (made by tools/build_wordnet.py)."""

from __future__ import annotations

from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.text.lexicon import Lexicon
from queryveil.text.plurals import Plurals

TABLE = "wordnet.npz"
"""The table's file, in queryveil/text/data.

words           all lemmas in lower case, sorted, as lines
n_senses        the number of senses of each word
senses          their nodes, word after word, most frequent sense first
parent          the first hypernym of each node; nodes are numbered depth-first
child, hypernym the further hypernyms, by child
first_word      the place in `words` of each synset's first word
sense_number    which sense of that word the synset is, from 1
irregular       irregular plurals, sorted, as lines
noun            the place in `words` of the noun of each
"""


class WordNet(NamedTuple):
    """The nouns as a tree of first hypernyms, all hypernyms as compressed rows, and the words."""

    parent: Int32s
    names: pl.Series
    lexicon: Lexicon
    hypernyms: tuple[Int64s, Int32s]


def read_wordnet() -> WordNet:
    """Read the table in the package."""
    with resources.files("queryveil.text").joinpath("data", TABLE).open("rb") as file, np.load(file) as table:
        columns: dict[str, Any] = dict(table)
    words = _lines(columns["words"])
    lexicon = Lexicon(
        words=words,
        sense_ptr=_pointers(columns["n_senses"]),
        nodes=columns["senses"],
        plurals=Plurals(irregular=_lines(columns["irregular"]), nouns=columns["noun"]),
    )
    return WordNet(columns["parent"], _names(columns, words=words), lexicon, _hypernyms(columns))


def _lines(letters: Any) -> pl.Series:
    return pl.Series(letters.tobytes().decode("ascii").split("\n"))


def _pointers(counts: Any) -> Int64s:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _names(columns: dict[str, Any], *, words: pl.Series) -> pl.Series:
    parent, first_word = columns["parent"], columns["first_word"]
    frame = pl.DataFrame(
        {
            "word": words.gather(first_word),
            "above": words.gather(first_word[np.maximum(parent, 0)]),
            "sense": columns["sense_number"],
        }
    )
    word, glossed = pl.col("word"), pl.format("{} ({})", "word", "above")
    numbered = pl.format("{} ({}, sense {})", "word", "above", "sense")
    by_sense = pl.when(pl.col("sense") == 1).then(word).when(glossed.is_unique()).then(glossed).otherwise(numbered)
    return frame.select(name=by_sense)["name"]


def _hypernyms(columns: dict[str, Any]) -> tuple[Int64s, Int32s]:
    parent, child, hypernym = columns["parent"], columns["child"], columns["hypernym"]
    children = np.concatenate([np.arange(1, len(parent)), child])
    order = np.argsort(children, kind="stable")
    nodes = np.concatenate([parent[1:], hypernym])[order]
    return _pointers(np.bincount(children, minlength=len(parent))), nodes

"""Words of WordNet looked up one by one, as its own programs do it."""

from __future__ import annotations

import re
from bisect import bisect_left

import polars as pl

from queryveil.data import Int32s
from queryveil.text.taxonomy.taxonomy import Plurals, Taxonomy
from queryveil.text.taxonomy.tree import fold

ENDINGS = (
    ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
)  # fmt: skip


def plain_find(taxonomy: Taxonomy, word: str) -> int:
    """Return the first sense of a word, by its singular if the word is in no table; -1 where it has none."""
    folded = fold(word)
    at = place(folded, taxonomy.words)
    if at < 0 and taxonomy.plurals is not None:
        at = singular(taxonomy.plurals, folded, taxonomy.words)
    return int(taxonomy.word_nodes.row(at)[0]) if at >= 0 else -1


def place(word: str, table: pl.Series) -> int:
    at = bisect_left(table, word)
    return at if at < len(table) and table[at] == word else -1


def singular(plurals: Plurals, word: str, table: pl.Series) -> int:
    at = base(plurals, word, table)
    parts = re.findall(r"[ -]|[^ -]+", word)
    if at >= 0 or len(parts) < 2:
        return at
    bases = [base(plurals, part, table) for part in parts]
    return place("".join(table[b] if b >= 0 else part for b, part in zip(bases, parts, strict=True)), table)


def base(plurals: Plurals, word: str, table: pl.Series) -> int:
    if (at := place(word, plurals.irregular)) >= 0:
        return int(plurals.nouns[at])
    stem = word.removesuffix("ful")
    ful = word[len(stem) :]
    if not ful and (word.endswith("ss") or len(word) <= 2):
        return -1
    for ending, single in ENDINGS:
        if stem.endswith(ending):
            at = place(stem.removesuffix(ending) + single + ful, table)
            if at >= 0:
                return at
    return -1


def senses_of(tree: Taxonomy, word: str) -> Int32s:
    """Return the nodes of all senses of one word."""
    return tree.all_senses(pl.Series([word])).values

"""WordNet's nouns, read from the table in the package (made by tools/build_wordnet.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from queryveil.data import Int32s
from queryveil.data.rows import Rows, pointers
from queryveil.text.taxonomy.tree import fold_all, places

# In this order: the first that leads to a known word counts.
_ENDINGS = (
    ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
)  # fmt: skip
_PARTS = r"[ -]|[^ -]+"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Plurals:
    """Irregular plurals, sorted, and the place of each one's noun in a table of words.

    A form is looked up among the irregular ones, then its ending is changed (`kittens`, `boxes`, `women`, `berries`,
    and before `-ful`: `spoonsful`), then each part of a compound is treated so (`attorneys general`).
    """

    irregular: pl.Series
    nouns: Int32s

    def singulars(self, words: pl.Series, *, table: pl.Series) -> Int32s:
        """Return the place in the table of every word's singular, -1 where there is none."""
        at = self._bases(words, table=table)
        is_compound = words.str.contains("[ -]").fill_null(value=False).to_numpy()
        compound = np.flatnonzero((at < 0) & is_compound)
        if len(compound):
            parts = words.gather(compound).str.extract_all(_PARTS).rename("part").to_frame()
            parts = parts.with_row_index("row").explode("part", empty_as_null=True)
            base = self._bases(parts["part"], table=table)
            is_changed = pl.Series(base >= 0)
            changed = pl.when(is_changed).then(table.gather(np.maximum(base, 0))).otherwise(pl.col("part"))
            whole = parts.with_columns(part=changed).group_by("row", maintain_order=True).agg(pl.col("part").str.join())
            at[compound] = places(whole["part"], table=table)
        return at

    def __repr__(self) -> str:
        return f"Plurals(n_irregular={len(self.irregular)})"

    def _bases(self, words: pl.Series, *, table: pl.Series) -> Int32s:
        at = places(words, table=self.irregular)
        at = np.append(self.nouns, np.int32(-1))[at]
        frame = pl.DataFrame({"word": words}).with_row_index("row")
        word, is_ful = pl.col("word"), pl.col("word").str.ends_with("ful")
        bare = ~word.str.ends_with("ss") & (word.str.len_chars() > 2)
        open_rows = frame.filter(pl.Series(at < 0)).filter(is_ful | bare)
        tries = [
            open_rows.filter(word.str.contains(f"{ending}(ful)?$")).with_columns(
                word.str.replace(f"{ending}(ful)?$", f"{singular}$1")
            )
            for ending, singular in _ENDINGS
        ]
        tried = pl.concat(tries)
        tried = tried.with_columns(at=pl.Series(places(tried["word"], table=table))).filter(pl.col("at") >= 0)
        first = tried.unique("row", keep="first", maintain_order=True)
        at[first["row"].to_numpy()] = first["at"].to_numpy()
        return at


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Lexicon:
    """Words and the nodes of each.

    - words: the words in lower case, sorted and distinct
    - word_nodes: the nodes of each word, its first sense first; a node that has been cut off its tree is -1
    - plurals: if given, a word that is not in the table is looked up again by its singular
    """

    words: pl.Series
    word_nodes: Rows[np.int32]
    plurals: Plurals | None = None

    @classmethod
    def of_names(cls, names: pl.Series) -> Lexicon:
        """Return the lexicon in which each node goes by its own name, in lower case."""
        folded = fold_all(names)
        order = folded.arg_sort()
        return cls(
            words=folded.gather(order),
            word_nodes=Rows(np.arange(len(names) + 1), order.to_numpy().astype(np.int32)),
        )

    def find_all(self, words: pl.Series) -> Int32s:
        """Return the first sense of every word of a column, -1 where it has none."""
        ptr, nodes = self.word_nodes
        first = np.append(nodes[ptr[:-1]], np.int32(-1))
        return first[self._places(words)]

    def all_senses(self, words: pl.Series) -> Rows[np.int32]:
        """Return all senses of every word of a column, the first first; none for unknown words."""
        ptr, nodes = self.word_nodes
        # An empty row behind the others is what place -1 means.
        found = Rows(np.append(ptr, ptr[-1]), nodes).take(self._places(words) % len(ptr))
        return found.keep(found.values >= 0)

    def with_nodes(self, number: Int32s) -> Lexicon:
        """Return the same words for nodes that have been renumbered; `number` is -1 for those cut off."""
        ptr, nodes = self.word_nodes
        return replace(self, word_nodes=Rows(ptr, np.append(number, np.int32(-1))[nodes]))

    def __repr__(self) -> str:
        return f"Lexicon(n_words={len(self.words)})"

    def _places(self, words: pl.Series) -> Int32s:
        folded = fold_all(words)
        at = places(folded, table=self.words)
        if self.plurals is not None:
            unknown = np.flatnonzero(at < 0)
            at[unknown] = self.plurals.singulars(folded.gather(unknown), table=self.words)
        return at


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
    """The nouns as a tree of first hypernyms, all hypernyms of each, and the words."""

    parent: Int32s
    names: pl.Series
    lexicon: Lexicon
    hypernyms: Rows[np.int32]


def read_wordnet() -> WordNet:
    """Read the table in the package."""
    with resources.files("queryveil.text").joinpath("data", TABLE).open("rb") as file, np.load(file) as table:
        columns: dict[str, Any] = dict(table)
    words = _lines(columns["words"])
    lexicon = Lexicon(
        words=words,
        word_nodes=Rows(pointers(columns["n_senses"]), columns["senses"]),
        plurals=Plurals(irregular=_lines(columns["irregular"]), nouns=columns["noun"]),
    )
    return WordNet(columns["parent"], _names(columns, words=words), lexicon, _hypernyms(columns))


def _lines(letters: Any) -> pl.Series:
    return pl.Series(letters.tobytes().decode("ascii").split("\n"))


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


def _hypernyms(columns: dict[str, Any]) -> Rows[np.int32]:
    parent, child, hypernym = columns["parent"], columns["child"], columns["hypernym"]
    children = np.concatenate([np.arange(1, len(parent)), child])
    order = np.argsort(children, kind="stable")
    nodes = np.concatenate([parent[1:], hypernym])[order]
    return Rows(pointers(np.bincount(children, minlength=len(parent))), nodes)

"""Taxonomies: trees of items, from WordNet (tools/build_wordnet.py), a file, or balanced over a sorted domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from queryveil.data import Floats, Int32s
from queryveil.data.rows import Rows, pointers
from queryveil.errors import BadParameter
from queryveil.text.taxonomy import tree
from queryveil.text.taxonomy.tree import fold_all, places

# In this order: the first that leads to a known word counts.
_ENDINGS = (
    ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
)  # fmt: skip


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
            parts = words.gather(compound).str.extract_all("[ -]|[^ -]+").rename("part").to_frame()
            parts = parts.with_row_index("row").explode("part", empty_as_null=True)
            base = self._bases(parts["part"], table=table)
            is_changed = pl.Series(base >= 0)
            changed = pl.when(is_changed).then(table.gather(np.maximum(base, 0))).otherwise(pl.col("part"))
            whole = parts.with_columns(part=changed).group_by("row", maintain_order=True).agg(pl.col("part").str.join())
            at[compound] = places(whole["part"], table=table)
        return at

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


TABLE = "wordnet.npz"
"""The table of WordNet's nouns in queryveil/text/data, made by tools/build_wordnet.py.

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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Taxonomy:
    """A tree of items, its nodes numbered depth-first from the root, which is 0.

    So a parent's number is smaller than those of its children, and the nodes from v to `last[v]` are v and all
    below it. The root's `parent` is -1 and its `level` 1. `n_leaves` counts the leaves under a node, a leaf has 1.
    `loss` is (n_leaves - 1) / (n_leaves of the root - 1), and 0 in a tree of one leaf (LM in the paper).
    `names` are distinct. The arrays are read-only. `words` are in lower case, sorted and distinct, and `word_nodes` has
    the nodes of each, its first sense first, -1 for one that was cut off; with `plurals` a word that is not there is
    looked up again by its singular.

    >>> food = Taxonomy.from_pairs([("fruit", "food"), ("apple", "fruit"), ("pear", "fruit"), ("milk", "food")])
    >>> food
    Taxonomy(n_nodes=5, n_leaves=3, depth=3)
    >>> path = food.ancestors(food.find("Pear"))
    >>> food.names.gather(path).to_list(), food.loss[path].tolist()
    (['pear', 'fruit', 'food'], [0.0, 0.5, 1.0])
    """

    parent: Int32s
    level: Int32s
    last: Int32s
    n_leaves: Int32s
    loss: Floats
    names: pl.Series
    words: pl.Series
    word_nodes: Rows[np.int32]
    plurals: Plurals | None
    node_hypernyms: Rows[np.int32]

    @property
    def item_names(self) -> pl.Series:
        """The names, each in one word."""
        return self.names.cast(pl.String).str.replace_all(r"\s+", "_")

    @classmethod
    def read_csv(cls, path: str | Path) -> Taxonomy:
        """Read a CSV file of pairs with the header `child,parent`; names are matched in lower case.

        Raises `BadFile` or `BadRow` with the line of a cycle, a second root, a second parent or a missing name.
        """
        return _of_pairs(tree.read_pairs(path), file=Path(path).name)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> Taxonomy:
        """Join pairs of child and parent; errors name the number of the pair, from 1, as its line."""
        return _of_pairs(((line, *pair) for line, pair in enumerate(pairs, 1)), file="the pairs")

    @classmethod
    def balanced(cls, items: pl.Series | Sequence[str | float], *, fan_out: int) -> Taxonomy:
        """Put a balanced tree over the distinct items, sorted, numbers as numbers.

        Inner nodes are named by their range; missing and blank items are left out.

        >>> Taxonomy.balanced([10, 9, 1, 2], fan_out=2).names.to_list()
        ['1..10', '1..2', '1', '2', '9..10', '9', '10']
        """
        if fan_out < 2:
            raise BadParameter("fan_out", fan_out, allowed="2 or more")
        texts = items if isinstance(items, pl.Series) else pl.Series([str(item) for item in items], dtype=pl.String)
        leaves = tree.sort_items(texts)
        if not len(leaves):
            raise BadParameter("items", "none", allowed="at least one item")
        parent, first, last = tree.split_ranges(len(leaves), fan_out=fan_out)
        spanned = leaves.gather(first) + ".." + leaves.gather(last)
        names = spanned.zip_with(pl.Series(first < last), leaves.gather(first))
        if fold_all(names).n_unique() < len(names):
            raise BadParameter("items", "an item named like a range of others", allowed="names without two dots")
        return _grow(parent, names=names)

    @staticmethod
    @cache
    def wordnet() -> Taxonomy:
        """Return the nouns of WordNet 3.0: 82,115 synsets by hypernym, root `entity`; loaded once.

        The tree goes by the first hypernym (`@` or instance `@i`) in the order of WordNet's file. A node's name is the
        first word of its synset in lower case; where the node is not that word's first sense, with the word above:
        `mouse (electronic device)`, and with the sense's number where that tells too little: `bank (slope, sense 7)`.
        Words are found in lower case, by their first sense, in the order of senses in WordNet's index; plurals by
        their noun (`kittens`, `mice`), unless they are words of their own (`glasses`, the spectacles).

        >>> nouns = Taxonomy.wordnet()
        >>> nouns.names.gather(nouns.ancestors(nouns.find("kittens"))[:4]).to_list()
        ['kitten', 'young mammal', 'young', 'animal']
        """
        with resources.files("queryveil.text").joinpath("data", TABLE).open("rb") as file, np.load(file) as table:
            columns: dict[str, Any] = dict(table)
        words, parent = _lines(columns["words"]), columns["parent"]
        children = np.concatenate([np.arange(1, len(parent)), columns["child"]])
        order = np.argsort(children, kind="stable")
        above = np.concatenate([parent[1:], columns["hypernym"]])[order]
        hypernyms = Rows.from_entries(children[order], above, n_rows=len(parent))
        return _grow(
            parent,
            names=_names(columns, words=words),
            words=words,
            word_nodes=Rows(pointers(columns["n_senses"]), columns["senses"]),
            plurals=Plurals(irregular=_lines(columns["irregular"]), nouns=columns["noun"]),
            hypernyms=hypernyms,
        )

    @property
    def source(self) -> str:
        """Where it comes from, as manifests say it: `wordnet`, or `own` for any other."""
        return "wordnet" if self is Taxonomy.wordnet() else "own"

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return len(self.parent)

    def find(self, word: str) -> int:
        """Return the node of a word (of its first sense), -1 where there is none."""
        return int(self.find_all(pl.Series([word]))[0])

    def find_all(self, words: pl.Series) -> Int32s:
        """Return the node of every word of a column (of its first sense), -1 where there is none."""
        ptr, nodes = self.word_nodes
        first = np.append(nodes[ptr[:-1]], np.int32(-1))
        return first[self._places(words)]

    def all_senses(self, words: pl.Series) -> Rows[np.int32]:
        """Return the nodes of all senses of every word of a column, the first first; none for unknown words."""
        ptr, nodes = self.word_nodes
        # An empty row behind the others is what place -1 means.
        found = Rows(np.append(ptr, ptr[-1]), nodes).take(self._places(words) % len(ptr))
        return found.keep(found.values >= 0)

    def find_names(self, names: pl.Series) -> Int32s:
        """Return the node with each name, -1 for unknown names."""
        return tree.places(names, table=self.names)

    def ancestors(self, node: int) -> list[int]:
        """Return the nodes from a node, itself included, up to the root."""
        path = []
        while node >= 0:
            path.append(int(node))
            node = int(self.parent[node])
        return path

    def restricted_to(self, nodes: Int32s | Sequence[int]) -> tuple[Taxonomy, Int32s]:
        """Keep the given nodes and those above them, leaves counted anew; also gives the new number of each old node.

        What is left out has the number -1, and `find` gives -1 for a word whose first sense is left out, even if
        another is not. A -1 among the nodes says nothing. The paper's tree is of this kind: only what its log has.
        """
        is_given = np.zeros(self.n_nodes + 1, np.int64)
        is_given[np.asarray(nodes, np.int64) + 1] = 1
        n_given_before = np.cumsum(is_given)
        is_kept = n_given_before[self.last + 1] > n_given_before[:-1]
        is_kept[0] = True
        number = np.where(is_kept, np.cumsum(is_kept) - 1, -1).astype(np.int32)
        kept = np.flatnonzero(is_kept)
        ptr, nodes = self.word_nodes
        hypernyms = self.node_hypernyms.take(kept)
        hypernyms = hypernyms.keep(is_kept[hypernyms.values])
        renumbered = np.append(number, np.int32(-1))
        restricted = _grow(
            renumbered[self.parent[kept]],
            names=self.names.gather(kept),
            words=self.words,
            word_nodes=Rows(ptr, renumbered[nodes]),
            plurals=self.plurals,
            hypernyms=Rows(hypernyms.ptr, number[hypernyms.values]),
        )
        return restricted, number

    def _places(self, words: pl.Series) -> Int32s:
        folded = fold_all(words)
        at = places(folded, table=self.words)
        if self.plurals is not None:
            unknown = np.flatnonzero(at < 0)
            at[unknown] = self.plurals.singulars(folded.gather(unknown), table=self.words)
        return at

    def __repr__(self) -> str:
        return f"Taxonomy(n_nodes={self.n_nodes}, n_leaves={self.n_leaves[0]}, depth={self.level.max()})"


def _grow(
    parent: Int32s,
    *,
    names: pl.Series,
    words: pl.Series | None = None,
    word_nodes: Rows[np.int32] | None = None,
    plurals: Plurals | None = None,
    hypernyms: Rows[np.int32] | None = None,
) -> Taxonomy:
    """Return the tree of these parents; without words each node goes by its own name."""
    if words is None or word_nodes is None:
        folded = fold_all(names)
        order = folded.arg_sort()
        words = folded.gather(order)
        word_nodes = Rows(np.arange(len(names) + 1), order.to_numpy().astype(np.int32))
    last = tree.last_below(parent)
    # A leaf is the last node of its own subtree.
    n_leaves_before = pointers(last == np.arange(len(parent)))
    n_leaves = (n_leaves_before[last + 1] - n_leaves_before[:-1]).astype(np.int32)
    hypernyms = hypernyms or Rows(np.maximum(np.arange(-1, len(parent)), 0), parent[1:])
    arrays: dict[str, Any] = {
        "parent": parent,
        "level": tree.levels(parent),
        "last": last,
        "n_leaves": n_leaves,
        "loss": (n_leaves - 1) / max(1, n_leaves[0] - 1),
    }
    for array in (*arrays.values(), *hypernyms):
        array.flags.writeable = False
    return Taxonomy(
        names=names, words=words, word_nodes=word_nodes, plurals=plurals, node_hypernyms=hypernyms, **arrays
    )


def _of_pairs(pairs: Iterable[tuple[int, str, str]], *, file: str) -> Taxonomy:
    names, parent = tree.link(pairs, file=file)
    order = tree.depth_first(parent)
    return _grow(tree.renumber(parent, order=order), names=names.gather(order))

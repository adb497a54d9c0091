"""From plurals to their nouns, by the rules that WordNet's own morphy has for nouns."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Int32s
from queryveil.text.word_table import place, places

# In this order: the first that leads to a known word counts.
_ENDINGS = (
    ("s", ""),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
)
_PARTS = r"[ -]|[^ -]+"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Plurals:
    """Irregular plurals, sorted, and the place of each one's noun in a table of words.

    A form is looked up among the irregular ones, then its ending is changed (`kittens`, `boxes`, `women`, `berries`,
    and before `-ful`: `spoonsful`), then each part of a compound is treated so (`attorneys general`).
    """

    irregular: pl.Series
    nouns: Int32s

    def singular(self, word: str, *, table: pl.Series) -> int:
        """Give the place in the table of a word's singular, -1 where there is none."""
        at = self._base(word, table=table)
        parts = re.findall(_PARTS, word)
        if at >= 0 or len(parts) < 2:
            return at
        bases = [self._base(part, table=table) for part in parts]
        return place("".join(table[b] if b >= 0 else part for b, part in zip(bases, parts, strict=True)), table=table)

    def singulars(self, words: pl.Series, *, table: pl.Series) -> Int32s:
        """Give the place in the table of every word's singular, -1 where there is none."""
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

    def _base(self, word: str, *, table: pl.Series) -> int:
        if (at := place(word, table=self.irregular)) >= 0:
            return int(self.nouns[at])
        stem = word.removesuffix("ful")
        ful = word[len(stem) :]
        if not ful and (word.endswith("ss") or len(word) <= 2):
            return -1
        for ending, singular in _ENDINGS:
            if stem.endswith(ending):
                at = place(stem.removesuffix(ending) + singular + ful, table=table)
                if at >= 0:
                    return at
        return -1

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

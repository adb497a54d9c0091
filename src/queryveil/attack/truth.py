"""What a guess is judged by: who really asked what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attack.seen import N_POOLS, Guess, Seen
from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.kernels.rebuilding import expected_matches
from queryveil.log import QueryLog
from queryveil.text.codes import encode
from queryveil.text.identifiers import remove_identifiers
from queryveil.text.normal_form import normalise


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Truth:
    """The rows of the original, in the numbers of what the attacker sees.

    `n_targets` counts all rows with a query once identifiers are gone; `pairs` numbers those whose user and text the
    release has at all, each once, and `counts` says how often it is there.
    """

    seen: Seen
    n_targets: int
    n_by_chance: float
    """What blind guessing hits on average: users and queries of each category dealt out at random.

    It is computed, not drawn: the mean over all ways to deal.
    """
    pairs: Int64s
    counts: Int64s

    @classmethod
    def of(cls, original: QueryLog, *, seen: Seen, cleaned: bool = False) -> Truth:
        """Take the original, whose users go by the same ids as in the release.

        Its queries lose their identifiers, as those of a release have; `cleaned` says that they have already.
        """
        queries = original.frame["query"]
        texts = normalise(queries if cleaned else remove_identifiers(queries).queries)
        rows = pl.DataFrame({"user": original.frame["user"], "text": texts}).filter(pl.col("text") != "")
        user, text = _numbers(rows["user"], known=seen.users), _numbers(rows["text"], known=seen.texts)
        there = (user < len(seen.users)) & (text < len(seen.texts))
        pairs, counts = np.unique(_pair(user[there], text[there], seen=seen), return_counts=True)
        by_chance = _by_chance(pairs, counts, seen=seen)
        return cls(seen=seen, n_targets=rows.height, n_by_chance=by_chance, pairs=pairs, counts=counts)

    def n_hit(self, guess: Guess) -> int:
        """Count the rows of a guess on the release that are true; the same as the matcher counts."""
        return self._hit(self.seen.user[guess.user_row], self.seen.text[guess.query_row])

    def n_hit_as_released(self) -> int:
        """Count the rows of the release that are true as they stand."""
        return self._hit(self.seen.user, self.seen.text)

    def _hit(self, user: Int32s, text: Int32s) -> int:
        pairs, counts = np.unique(_pair(user, text, seen=self.seen), return_counts=True)
        _, ours, theirs = np.intersect1d(self.pairs, pairs, assume_unique=True, return_indices=True)
        return int(np.minimum(self.counts[ours], counts[theirs]).sum())

    def __repr__(self) -> str:
        # Privacy: numbers only.
        return f"Truth(n_targets={self.n_targets})"


def _numbers(texts: pl.Series, *, known: pl.Series) -> Int32s:
    """Give each text its place among the known ones; others get numbers from there on."""
    codes, _ = encode(pl.concat([known.rename(""), texts.rename("")]))
    return codes[len(known) :]


def _pair(user: Int32s, text: Int32s, *, seen: Seen) -> Int64s:
    pairs: Int64s = user.astype(np.int64) * len(seen.texts) + text
    return pairs


def _by_chance(pairs: Int64s, counts: Int64s, *, seen: Seen) -> float:
    n_texts = len(seen.texts)
    of_text = np.zeros(n_texts, np.int64)
    of_text[seen.text] = seen.category
    user, text = np.divmod(pairs, max(1, n_texts))
    category = of_text[text]
    in_pool = np.bincount(seen.pair, minlength=len(seen.users) * N_POOLS)[user * N_POOLS + category]
    of_this_text = np.bincount(seen.text, minlength=n_texts)[text]
    rows_of_pool = np.bincount(seen.category, minlength=N_POOLS)[category]
    return float(expected_matches(counts, in_pool, of_this_text, rows_of_pool))

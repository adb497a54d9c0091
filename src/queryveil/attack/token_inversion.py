"""Somebody with a log of the same kind in clear: Kumar et al. 2007, why hashing terms hides little."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attack.exposure import Exposure
from queryveil.attack.ports import Given
from queryveil.attack.seeking import Seeker
from queryveil.attack.token_counts import TokenCounts
from queryveil.attack.token_matching import by_company, by_rank
from queryveil.log import Format, QueryLog
from queryveil.paired import Paired
from queryveil.rng import generator
from queryveil.text.token_hashes import hash_tokens
from queryveil.text.tokens import tokenize

_MORE_PUBLIC = 1.2
"""A term of the hashed top may be a bit below the public one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInversion(Seeker):
    """Have a public log by other people, and find out which hash is which term.

    Targets are the `n_targets` hashes that most people use; found are those that are given their true term. With
    `only_rank` a hash is taken for the term of the same rank, and no more is looked at. A blind guesser deals the as
    many most used public terms out at random.

    >>> TokenInversion().name, TokenInversion(only_rank=True).name
    ('token_inversion', 'token_rank')
    """

    n_targets: int = 500
    only_rank: bool = False

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "token_rank" if self.only_rank else "token_inversion"

    def misses(self, paired: Paired, *, given: Given) -> str | None:
        """Say why it cannot attack this release."""
        if paired.release.manifest.method != "token_hash":
            return "the terms of the release are not hashed"
        if given.public is None or not given.public.n_rows:
            return "needs a public log of the same kind: --public FILE"
        if given.key is None:
            return "needs the key of the hashes to judge it: --key FILE"
        return None

    def attack(self, paired: Paired, *, given: Given) -> Exposure:
        """Match hashes with public terms, and count the targets that are matched rightly."""
        public_log, key = given.public or paired.original, given.key or b""
        rng = generator(self.seed)
        hashed = TokenCounts.of(paired.release.log, n_terms=self.n_targets, rng=rng)
        public = TokenCounts.of(public_log, n_terms=round(_MORE_PUBLIC * self.n_targets), rng=rng)
        guess = (by_rank if self.only_rank else by_company)(hashed, public=public)
        true = _true_terms(paired.original, hashes=hashed.terms, key=key)
        guessed = public.terms.gather(pl.Series(np.where(guess < 0, 0, guess))) if len(public.terms) else true.clear()
        right = (guessed == true).fill_null(False).to_numpy() & (guess >= 0) if len(guessed) else guess >= 0
        top = public.terms.head(len(hashed.terms))
        # Each of the dealt terms lands on its own hash once in as many deals as there are hashes.
        n_by_chance = top.is_in(true.drop_nulls().implode()).sum() / max(1, len(hashed.terms))
        return Exposure.counted(
            attacker=self.name,
            knows="a log of the same kind by other people",
            what="hashed terms",
            n_targets=len(hashed.terms),
            n_found=int(right.sum()),
            n_by_chance=float(n_by_chance),
        )


def _true_terms(original: QueryLog, *, hashes: pl.Series, key: bytes) -> pl.Series:
    """Look up the term behind each hash."""
    by_blanks = original.layout.format is Format.TRANSACTIONS
    vocabulary = tokenize(original.frame["query"], by_blanks=by_blanks).vocabulary
    table = pl.DataFrame({"hash": hash_tokens(vocabulary, key=key), "term": vocabulary})
    return hashes.alias("hash").to_frame().join(table, on="hash", how="left", maintain_order="left")["term"]

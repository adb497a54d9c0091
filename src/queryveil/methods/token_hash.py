"""Every term replaced by a keyed hash: what Kumar, Novak, Pang and Tomkins undid in 2007."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import numpy as np

from queryveil import progress
from queryveil.columns import MIN_KEY_BYTES, ColumnPolicy
from queryveil.errors import BadParameter
from queryveil.guarantees import NoPromise
from queryveil.log import Format, QueryLog
from queryveil.methods.baselines import baseline_manifest
from queryveil.release import Release
from queryveil.rng import check_seed, generator
from queryveil.text import tokenize
from queryveil.text.codes import encode
from queryveil.text.token_hashes import hash_queries

_KEY_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenHash:
    """Replace every term by its hash under a secret key, in the order of the terms.

    Promise: none. It is a baseline, to compare with.
    Not promised: anything. Equal terms have equal hashes, so a log of the same kind tells which hash is which common
    term, and that tells more.

    Without a `key` of 16 bytes or more a new one is drawn and thrown away. The same key gives the same hashes in every
    release.

    Examples
    --------
    >>> from queryveil.testing import log_of
    >>> release = TokenHash(key=b"sixteen bytes or more").anonymize(log_of({"u1": ["Jaguar price"]}))
    >>> release.log.frame["query"].item()
    '9851f04ec9f27739 6d1af0c0e008124d'
    """

    key: bytes | None = field(default=None, repr=False)
    columns: ColumnPolicy = field(default_factory=ColumnPolicy)
    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.key is not None and not isinstance(self.key, bytes):
            # Privacy: a secret is never shown, whatever it is.
            raise BadParameter("key", f"a {type(self.key).__name__}", allowed="bytes, or none for a new one")
        if self.key is not None and len(self.key) < MIN_KEY_BYTES:
            raise BadParameter("key", f"{len(self.key)} bytes", allowed=f"at least {MIN_KEY_BYTES} secret bytes")
        check_seed(self.seed)

    @property
    def promise(self) -> NoPromise:
        """What a release will promise."""
        return NoPromise(reason="equal terms have equal hashes, and how often they are used tells which they are")

    def anonymize(self, log: QueryLog) -> Release:
        """Give the log with hashes in place of terms; rows without any term are left out."""
        self.columns.check(log.columns)
        rng = generator(self.seed)
        progress.step("hashing terms")
        tokens = tokenize(log.frame["query"], by_blanks=log.layout.format is Format.TRANSACTIONS)
        texts = hash_queries(tokens, key=self._secret(rng))
        n_terms = np.diff(tokens.query_ptr)[tokens.row_query]
        owners, _ = encode(log.frame["user"])
        stays = n_terms > 0
        out = self.columns.apply(log.frame.with_columns(texts).filter(stays), owners[stays], rng=rng)
        manifest = baseline_manifest(
            log,
            out,
            method="token_hash",
            promise=self.promise,
            columns=self.columns,
            seeded=self.seed is not None,
            removed={"rows_without_terms_before": log.n_rows - out.height},
            changed={"term_occurrences_hashed": int(n_terms.sum())},
            warnings=tuple(self._warnings(log)),
        )
        return Release(data=log.with_frame(out), manifest=manifest)

    def _secret(self, rng: np.random.Generator) -> bytes:
        if self.key is not None:
            return self.key
        # A run that is to repeat needs its hashes again.
        return secrets.token_bytes(_KEY_BYTES) if self.seed is None else rng.bytes(_KEY_BYTES)

    def _warnings(self, log: QueryLog) -> list[str]:
        found = []
        if self.columns.report(log.columns).kept:
            found.append("columns that were kept are not hashed: a clicked URL tells what the query was")
        if self.key is not None:
            found.append("whoever gets the key can look up the hash of any word")
        elif self.seed is not None:
            found.append("the key was drawn with the seed: whoever knows the seed can look up the hash of any word")
        return found

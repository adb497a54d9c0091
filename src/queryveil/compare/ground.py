"""What all runs of a comparison share: the log, the people left out of it, and who is sought."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
import polars as pl

from queryveil.attack.people import Person
from queryveil.compare.plan import Run
from queryveil.log import QueryLog
from queryveil.version import __version__

_SPLIT_SEED = 2006


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Ground:
    """The `log` that is released, and what attackers and measures are given beside it."""

    log: QueryLog
    public: QueryLog | None = None
    people: Sequence[Person] = ()
    values: pl.DataFrame | None = None
    n_targets: int = 1000
    seed: int | None = None

    @cached_property
    def fingerprint(self) -> str:
        """A number for all of it: results of another log, or of other people to look for, are not taken for these."""
        digest = hashlib.sha256()
        for frame in (self.log.frame, None if self.public is None else self.public.frame, self.values):
            digest.update(b"none" if frame is None else _of_frame(frame))
        digest.update(msgspec.json.encode([self.log.layout.format, list(self.people), self.n_targets, self.seed]))
        return digest.hexdigest()

    def fingerprint_of(self, run: Run | None) -> str:
        """A number for one run on this ground; of None for the attacks on the log itself."""
        what = None if run is None else (run.method, sorted(run.settings.items()))
        text = msgspec.json.encode([self.fingerprint, what, __version__])
        return hashlib.sha256(text).hexdigest()[:32]

    def __repr__(self) -> str:
        # Privacy: numbers only.
        return f"Ground(log={self.log!r}, public={self.public!r}, n_people={len(self.people)})"


def lay(
    log: QueryLog,
    *,
    holdout: float,
    public: QueryLog | None = None,
    people: Sequence[Person] = (),
    values: pl.DataFrame | None = None,
    n_targets: int = 1000,
    seed: int | None = None,
) -> Ground:
    """Leave the share `holdout` of the users out to stand for the public, unless a `public` log is given."""
    if public is None and holdout > 0:
        log, left_out = split(log, share=holdout, seed=_SPLIT_SEED if seed is None else seed)
        public = left_out if left_out.n_rows else None
    there = set(log.frame["user"].unique())
    sought = tuple(person for person in people if person.user is None or person.user in there)
    return Ground(log=log, public=public, people=sought, values=values, n_targets=n_targets, seed=seed)


def split(log: QueryLog, *, share: float, seed: int) -> tuple[QueryLog, QueryLog]:
    """Part the users by chance; the same log and seed give the same two parts, so that a comparison can be resumed."""
    users = log.frame["user"].unique().sort()
    n_out = round(share * len(users))
    order = np.random.Generator(np.random.Philox(seed)).permutation(len(users))
    out = users.gather(order[:n_out])
    is_out = log.frame["user"].is_in(out.implode())
    return log.with_frame(log.frame.filter(~is_out)), log.with_frame(log.frame.filter(is_out))


def _of_frame(frame: pl.DataFrame) -> bytes:
    names = msgspec.json.encode([(name, str(kind)) for name, kind in frame.schema.items()])
    # Another Polars may count differently; then the runs are done again.
    rows = frame.hash_rows(seed=1).to_numpy().tobytes()
    return hashlib.sha256(names + pl.__version__.encode() + rows).digest()

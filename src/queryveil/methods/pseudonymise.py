"""New user ids and nothing else: what AOL did in 2006."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from queryveil.columns import ColumnPolicy, TimeDetail
from queryveil.guarantees import NoPromise
from queryveil.log import QueryLog
from queryveil.methods.baselines import baseline_manifest, check_queries
from queryveil.release import Release
from queryveil.rng import check_seed, generator
from queryveil.text.codes import encode

AS_AOL_DID = ColumnPolicy(time=TimeDetail.KEEP, keep=("rank", "url"))
"""Exact times, ranks and clicked URLs leave with the queries."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pseudonymise:
    """Change the user ids and leave everything else as it is.

    Promise: none. It is a baseline, to compare with.
    Not promised: anything. All queries of a person stay together, as they were typed; a name and a town among them are
    enough to find the person.

    What else leaves is up to `columns`; by default exact times, and ranks and clicked URLs where the log has them.

    Examples
    --------
    >>> from queryveil.testing import tiny_log
    >>> release = Pseudonymise().anonymize(tiny_log())
    >>> print(release.promise.in_words())
    This release promises nothing: all queries of a person stay together, as they were typed.
    """

    columns: ColumnPolicy = AS_AOL_DID
    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_seed(self.seed)

    @property
    def promise(self) -> NoPromise:
        """What a release will promise."""
        return NoPromise(reason="all queries of a person stay together, as they were typed")

    def anonymize(self, log: QueryLog) -> Release:
        """Give the log with other user ids."""
        columns = self._columns(log)
        columns.check(log.columns)
        check_queries(log, method="pseudonymise")
        owners, _ = encode(log.frame["user"])
        out = columns.apply(log.frame, owners, rng=generator(self.seed))
        manifest = baseline_manifest(
            log, out, method="pseudonymise", promise=self.promise, columns=columns, seeded=self.seed is not None
        )
        return Release(data=log.with_frame(out), manifest=manifest)

    def _columns(self, log: QueryLog) -> ColumnPolicy:
        """Give the policy; by default what there is of ranks and URLs leaves, and a log need not have them."""
        if self.columns.keep != AS_AOL_DID.keep:
            return self.columns
        return replace(self.columns, keep=tuple(name for name in self.columns.keep if name in log.columns))

"""Attack by known times of a person's searches: why releases truncate times."""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Seeker, check_least
from queryveil.data import Int32s, Int64s
from queryveil.data.rows import Rows, group
from queryveil.pairing import Pair
from queryveil.rng import generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock(Seeker):
    """Know exact times at which a person searched, and seek who has most of them.

    The times are truncated as those of the release are. The likeliest candidate is named: with many rows at these
    moments and few at others, since somebody who searches every day has every known day. Moments that few have tell
    more. Ties are drawn. Targets are people of the original with a time.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    - `n_known`: how many times are known, or all if a person has fewer.
    """

    name = "clock"

    n_known: int = 5

    def __post_init__(self) -> None:
        Seeker.__post_init__(self)
        check_least("n_known", self.n_known, least=1)

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:  # noqa: ARG002 - as every attacker
        if reason := _scoring.no_people(pair):
            return reason
        if pair.release.manifest.columns.time.unit is None or "time" not in pair.release.data.columns:
            return "the release has no times"
        if "time" not in pair.log.columns or pair.log.frame["time"].is_null().all():
            return "the log has no times"
        return None

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        """Name a candidate for each target, and count those who are right."""
        rng, n_candidates = generator(self.seed), pair.n_candidates
        unit = pair.release.manifest.columns.time.unit or timedelta(microseconds=1)
        moment, user = _moments(pair.log.frame["time"], owner=pair.user, unit=unit)
        released, candidate = _moments(pair.release.data.frame["time"], owner=pair.candidate, unit=unit)
        user_rows = group(user, pair.n_users)
        eligible = np.flatnonzero(user_rows.lengths)
        targets = _scoring.draw_targets(eligible, n_targets=self.n_targets, rng=rng)
        drawn = _scoring.draw_each(user_rows, of=targets, n=self.n_known, rng=rng)
        distinct, code = np.unique(released, return_inverse=True)
        cells, counts = np.unique(code * max(1, n_candidates) + candidate, return_counts=True)
        place, holder = np.divmod(cells, max(1, n_candidates))
        named = _scoring.name_likeliest_candidates(
            _places(Rows(drawn.ptr, moment[drawn.values]), distinct),
            holders=Rows.from_entries(place, holder.astype(np.int32), n_rows=len(distinct)),
            n_candidates=n_candidates,
            counts=counts,
            rng=rng,
        )
        return _scoring.people_found(
            pair,
            named,
            attacker=self.name,
            knows=f"the times of {self.n_known} of a person's queries",
            targets=targets,
            among=eligible,
            n_known=self.n_known,
        )


def _moments(times: pl.Series, *, owner: Int32s, unit: timedelta) -> tuple[Int64s, Int32s]:
    """Return the truncated times of the rows that have one, as numbers, and the owners of these rows."""
    there = times.is_not_null().to_numpy()
    exact = times.drop_nulls().to_physical().to_numpy()
    return exact // (unit // timedelta(microseconds=1)), owner[there]


def _places(moments: Rows[np.int64], distinct: Int64s) -> Rows[np.int64]:
    """Return the places among `distinct` of the known moments that the release has."""
    place = np.searchsorted(distinct, moments.values)
    there = place < len(distinct)
    there[there] = distinct[place[there]] == moments.values[there]
    return Rows(moments.ptr, place).keep(there)

"""Attack by known times of a person's searches: why releases truncate times."""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import polars as pl

from queryveil.attacks.attacker import AuxiliaryData, Seeker, check_least
from queryveil.attacks.exposure import Exposure
from queryveil.attacks.scoring import (
    Postings,
    draw_each,
    draw_targets,
    found_by_chance,
    name_likeliest_candidates,
    no_people,
)
from queryveil.data import Int32s, Int64s
from queryveil.data.rows import Rows, group
from queryveil.pairing import Pair
from queryveil.rng import generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock(Seeker):
    """Know `n_known` exact times at which a person searched, or all if they are fewer, and seek who has most of them.

    The times are rounded as those of the release are. The likeliest is named: who has many rows at these moments, and
    few at others, since somebody who searches every day has every known day. Moments that few have tell more. Of
    equals one is drawn. Targets are people of the original with a time.

    >>> Clock().name
    'clock'
    """

    n_known: int = 5

    def __post_init__(self) -> None:
        Seeker.__post_init__(self)
        check_least("n_known", self.n_known, least=1)

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "clock"

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:  # noqa: ARG002 - as every attacker
        """Return why it cannot attack this release."""
        if reason := no_people(pair):
            return reason
        if pair.release.manifest.columns.time.unit is None or "time" not in pair.release.data.columns:
            return "the release has no times"
        if "time" not in pair.log.columns or pair.log.frame["time"].is_null().all():
            return "the log has no times"
        return None

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        """Name a candidate for each target, and count those who are right."""
        rng = generator(self.seed)
        unit = pair.release.manifest.columns.time.unit or timedelta(microseconds=1)
        moment, user = _moments(pair.log.frame["time"], owner=pair.user, unit=unit)
        released, candidate = _moments(pair.release.data.frame["time"], owner=pair.candidate, unit=unit)
        user_rows = group(user, pair.n_users)
        targets = draw_targets(np.flatnonzero(user_rows.lengths), n_targets=self.n_targets, rng=rng)
        drawn = draw_each(user_rows, of=targets, n=self.n_known, rng=rng)
        distinct, code = np.unique(released, return_inverse=True)
        postings = Postings.of_pairs(code, holders=candidate, n_things=len(distinct), n_holders=pair.n_candidates)
        # In the order of the postings: by moment, then by candidate.
        _, counts = np.unique(code * max(1, pair.n_candidates) + candidate, return_counts=True)
        known = _places(Rows(drawn.ptr, moment[drawn.values]), distinct)
        named = name_likeliest_candidates(known, postings=postings, counts=counts, rng=rng)
        return Exposure.counted(
            attacker=self.name,
            knows=f"the times of {self.n_known} of a person's queries",
            what="people",
            n_targets=len(targets),
            n_found=round(float(pair.identity.chance(named, user=targets).sum())),
            n_by_chance=found_by_chance(pair, users=targets),
            n_known=self.n_known,
        )


def _moments(times: pl.Series, *, owner: Int32s, unit: timedelta) -> tuple[Int64s, Int32s]:
    """Number the moments of the rows that have a time, and give their owners."""
    there = times.is_not_null().to_numpy()
    exact = times.drop_nulls().to_physical().to_numpy()
    return exact // (unit // timedelta(microseconds=1)), owner[there]


def _places(moments: Rows[np.int64], distinct: Int64s) -> Rows[np.int64]:
    """Return the places among `distinct` of the known moments that the release has."""
    place = np.searchsorted(distinct, moments.values)
    there = place < len(distinct)
    there[there] = distinct[place[there]] == moments.values[there]
    return Rows(moments.ptr, place).keep(there)

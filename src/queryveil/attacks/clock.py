"""Attacks by known times of a person's searches: why releases drop times."""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import polars as pl

from queryveil.attacks import _likelihood, _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.data import Int32s, Int64s
from queryveil.data.rows import Rows, group
from queryveil.pairing import Pair
from queryveil.rng import generator
from queryveil.settings import setting

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock(Seeker):
    """Know exact times at which a person searched, and seek who has most of them.

    The times are truncated as those of the release are. Named is the likeliest candidate: with many rows at these
    moments, rare ones telling more, and few at others. Ties are drawn. Targets are people of the original with a time.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    - `n_known`: how many times are known, or all if a person has fewer.
    """

    name = "clock"

    n_known: int = setting(5, at_least=1, help="How many times are known.")

    @property
    def knows(self) -> str:
        return f"the times of {self.n_known} of a person's queries"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        return _no_times(pair)

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        rng, n_candidates = generator(self.seed), pair.n_candidates
        unit = pair.release.time_step or timedelta(microseconds=1)
        asked, user = _moments(pair.log.frame["time"], owner=pair.user, unit=unit)
        released, candidate = _moments(pair.release.data.frame["time"], owner=pair.candidate, unit=unit)
        # Moments of the original that the release lacks are moments that nobody has.
        distinct, moment = np.unique(np.concatenate([released, asked]), return_inverse=True)
        user_rows = group(user, pair.n_users)
        eligible = np.flatnonzero(user_rows.lengths)
        targets = _scoring.draw_targets(eligible, n_targets=self.n_targets, rng=rng)
        drawn = _scoring.draw_each(user_rows, of=targets, n=self.n_known, rng=rng)
        cells, counts = np.unique(moment[: len(released)] * max(1, n_candidates) + candidate, return_counts=True)
        place, holder = np.divmod(cells, max(1, n_candidates))
        known = Rows(drawn.ptr, moment[len(released) :][drawn.values])
        holders = Rows.from_entries(place, holder.astype(np.int32), n_rows=len(distinct))
        guesses = _likelihood.guess_likeliest_candidates(
            known, holders=holders, n_candidates=n_candidates, counts=counts, rng=rng
        )
        right = pair.identity.chance(guesses.candidate, user=targets)
        n_by_chance = _scoring.found_by_chance(pair, users=targets, among=eligible)
        return self.people_found(right, confidence=guesses.confidence, n_by_chance=n_by_chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockEquals(Seeker):
    """Know a day of a person's searches and which users have exactly the same set of queries, and name one of these.

    Of the users who share the queries under which the person was released, named is the one with the largest share of
    rows on the known day; ties are drawn. By chance is the best guess without the day: any of the equals. Targets are
    users of the release who are known to be one person and have equals.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    """

    name = "clock_equals"
    knows = "a day on which a person searched, and who has the same queries"
    what = "people among their equals"
    n_known = 1

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        yield from _no_times(pair)
        if not len(_with_equals(pair, *equals_in(pair))):
            yield "no two users of the release have the same queries"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        rng, (number, equals) = generator(self.seed), equals_in(pair)
        targets = _scoring.draw_targets(_with_equals(pair, number, equals), n_targets=self.n_targets, rng=rng)
        people = pair.identity.sole_user()[targets]
        unit = max(_DAY, pair.release.time_step or _DAY)
        day, user = _moments(pair.log.frame["time"], owner=pair.user, unit=unit)
        known = day[_scoring.draw_each(group(user, pair.n_users), of=people, n=1, rng=rng).values]
        released, candidate = _moments(pair.release.data.frame["time"], owner=pair.candidate, unit=unit)
        n_rows = np.maximum(1, np.bincount(candidate, minlength=pair.n_candidates))
        found = by_chance = 0.0
        for target, person, on in zip(targets, people, known, strict=True):
            equal_users = equals.values[slice(*equals.ptr[number[target] :][:2])]
            n_on = np.bincount(candidate[released == on], minlength=pair.n_candidates)
            shares = n_on[equal_users] / n_rows[equal_users]
            is_person = pair.identity.chance(equal_users, user=np.full(len(equal_users), person))
            found += float(is_person[rng.choice(np.flatnonzero(shares == shares.max()))])
            by_chance += float(is_person.mean())
        return self.exposure(n_targets=len(targets), n_found=round(found), n_by_chance=by_chance)


def equals_in(pair: Pair) -> tuple[Int64s, Rows[np.int64]]:
    """Return a number for each set of queries that a candidate has, and the candidates with each set."""
    asked = pl.DataFrame({"candidate": pair.candidate, "query": pair.release_tokens.row_query})
    sets = asked.group_by("candidate").agg(pl.col("query").unique().sort())
    numbered = sets.group_by("query").agg("candidate").with_row_index("number").explode("candidate")
    number = np.empty(pair.n_candidates, np.int64)
    number[numbered["candidate"].to_numpy()] = numbered["number"].to_numpy()
    return number, group(number, int(number.max(initial=-1)) + 1)


def _with_equals(pair: Pair, number: Int64s, equals: Rows[np.int64]) -> Int64s:
    """Return the candidates who are one person with a time, and have equals."""
    _, user = _moments(pair.log.frame["time"], owner=pair.user, unit=_DAY)
    return np.flatnonzero((equals.lengths[number] > 1) & np.isin(pair.identity.sole_user(), user))


def _no_times(pair: Pair) -> Reasons:
    """Yield why nobody can be sought by times."""
    yield from _scoring.no_people(pair)
    if pair.release.manifest.columns.time.unit is None or "time" not in pair.release.data.columns:
        yield "the release has no times"
    if "time" not in pair.log.columns or pair.log.frame["time"].is_null().all():
        yield "the log has no times"


def _moments(times: pl.Series, *, owner: Int32s, unit: timedelta) -> tuple[Int64s, Int32s]:
    """Return the truncated times of the rows that have one, as numbers, and the owners of these rows."""
    has_time = times.is_not_null().to_numpy()
    exact = times.drop_nulls().to_physical().to_numpy()
    return exact // (unit // timedelta(microseconds=1)), owner[has_time]

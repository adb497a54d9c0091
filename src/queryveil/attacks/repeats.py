"""Attack on swap by queries that one person repeats: whose rows are near each of them?"""

from dataclasses import dataclass
from math import exp, log, log1p
from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.attacks import _likelihood, _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.attacks.swapped import Truth, most_active_rows, truth_of
from queryveil.data import Floats, Int32s, Int64s
from queryveil.data.rows import Rows, group
from queryveil.kernels import njit
from queryveil.pairing import Pair
from queryveil.rng import generator

LEAST_REPEATS = 5
"""Texts that one person alone asked at least so often are sought."""
_FARTHEST = 8
"""Rows farther away than so many times k are not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats(Seeker):
    """See the rows of a swapped log in the order of their release, and seek who asks a text that comes again and again.

    When somebody asks a query, user and query enter a pool together and leave it soon, apart, so the asker's id is near
    every release of the text. The ids of nearby rows of the category get votes, the more the nearer, and the more the
    fewer rows they have elsewhere; the likeliest is named. Ids that were assigned the text are excluded: nobody is
    assigned a query of their own. A stream shows the order, in a release folder times do, as exact as they are. Targets
    are people who alone asked some text five times or more, each by the text asked most often, released or not. A blind
    guesser names the most active id of the category.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    - `k`: that of the release.
    """

    name = "repeats"
    knows = f"the swapped rows in order, and a query that one person alone asked {LEAST_REPEATS} times or more"

    k: int = 10

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        yield from _scoring.no_swap(pair)
        if not is_in_order(pair) and "time" not in pair.release.log.columns:
            yield "the release tells no order of its rows"
        if not len(targets_of(truth_of(pair))[0]):
            yield f"nobody asked a query {LEAST_REPEATS} times that is this person's alone"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        truth = truth_of(pair)
        released, (user, text) = truth.released, targets_of(truth)
        drawn = _scoring.draw_targets(np.arange(len(user)), n_targets=self.n_targets, rng=generator(self.seed))
        user, text = user[drawn], text[drawn]
        rows = ordered(pair, released.category)
        # Texts that were not released have further numbers, and no place.
        places = group(released.text[rows.row], max(len(released.texts), int(text.max(initial=-1)) + 1))
        releases = places.take(text)
        guesses = guess_nearest(releases, rows, pair.n_candidates, float(self.k), farthest=_FARTHEST * self.k)
        owner = np.full(pair.n_candidates + 1, -1, np.int64)
        owner[pair.candidate] = released.user
        right = (owner[guesses.candidate] == user).astype(np.float64)
        # By chance is who the most active id of the category is; any one id finds one.
        has_text = text < len(released.texts)
        most_active = most_active_rows(pair)[truth.category_of_text[text[has_text]]]
        n_by_chance = max(int(has_text.any()), int((released.user[most_active] == user[has_text]).sum()))
        return self.people_found(right, confidence=guesses.confidence, n_by_chance=n_by_chance)


def is_in_order(pair: Pair) -> bool:
    """Return whether the rows of a swapped release stand in the order in which they left the pools: on a stream."""
    return getattr(pair.release.promise, "remembered", None) is not None


def targets_of(truth: Truth) -> tuple[Int64s, Int64s]:
    """Return people who alone asked some text often enough, and the text of each that was asked most often."""
    texts = pl.DataFrame({"user": truth.user, "text": truth.text}).group_by("text")
    asked = texts.agg(pl.col("user").first(), n=pl.len(), n_users=pl.col("user").n_unique())
    own = asked.filter((pl.col("n_users") == 1) & (pl.col("n") >= LEAST_REPEATS))
    by_count = own.sort("n", "text", descending=[True, False])
    best = by_count.unique("user", keep="first", maintain_order=True).sort("user")
    return best["user"].to_numpy().astype(np.int64), best["text"].to_numpy().astype(np.int64)


class OrderedRows(NamedTuple):
    """The rows of a release by category and order. Rows of one released time are in no order: a block.

    - `row`, `candidate`: the rows, and the candidate of each.
    - `first`, `last`, `end`: the first and last place of each one's block, and that behind its category.
    - `share`: the share of each one's candidate in the rows of the category.
    """

    row: Int64s
    candidate: Int32s
    first: Int64s
    last: Int64s
    end: Int64s
    share: Floats


def ordered(pair: Pair, category: Int32s) -> OrderedRows:
    """Return the released rows in the order that the release tells."""
    row, place = np.arange(len(category)), pl.col("place")
    moment = pl.Series(row) if is_in_order(pair) else pair.release.log.frame["time"]
    rows = pl.DataFrame({"category": category, "candidate": pair.candidate, "row": row, "moment": moment})
    by_order = rows.sort("category", "moment", "row")
    found = by_order.with_columns(place=pl.int_range(pl.len())).with_columns(
        first=place.min().over("category", "moment"),
        last=place.max().over("category", "moment"),
        end=place.max().over("category") + 1,
        share=pl.len().over("category", "candidate") / pl.len().over("category"),
    )
    return OrderedRows(*(found[name].to_numpy() for name in OrderedRows._fields))


@njit(cache=True, nogil=True)
def guess_nearest(
    releases: Rows[np.int64], rows: OrderedRows, n_candidates: int, scale: float, farthest: int
) -> _likelihood.Guesses:
    """Return the candidate who is likeliest to have asked the text of each target, -1 for none, and how likely it is.

    Of the rows around a release of the text each is the asker's with a chance that falls by e with every `scale` rows
    between; one release in ten is by accident. Chances from several releases are multiplied, in proportion to the
    candidate's share of the category.
    """
    (_, candidate, first, last, end, share), n_targets = rows, len(releases.ptr) - 1
    near, score, weight = np.zeros(n_candidates), np.zeros(n_candidates), np.zeros(n_candidates)
    nearby, touched = np.empty(n_candidates, np.int32), np.empty(n_candidates, np.int32)
    is_out = np.zeros(n_candidates, np.bool_)
    guessed, confidence = np.full(n_targets, -1, np.int64), np.zeros(n_targets)
    by_accident = _likelihood.BY_ACCIDENT
    for target in range(n_targets):
        places, n_touched = releases.values[releases.ptr[target] : releases.ptr[target + 1]], 0
        is_out[candidate[places]] = True
        for place in places:
            n_nearby, total = 0, 0.0
            for direction in (-1, 1):
                other = place if direction == 1 else place - 1
                while 0 <= other < end[place] and end[other] == end[place]:
                    distance = max(0, first[other] - last[place], first[place] - last[other])
                    if distance > farthest:
                        break
                    who, mine = candidate[other], exp(-distance / scale)
                    total += mine
                    if not is_out[who]:
                        if near[who] == 0.0:
                            nearby[n_nearby] = who
                            n_nearby += 1
                            weight[who] = share[other]
                        near[who] += mine
                    other += direction
            for who in nearby[:n_nearby]:
                if score[who] == 0.0:
                    touched[n_touched] = who
                    n_touched += 1
                score[who] += log1p((1 - by_accident) / by_accident * near[who] / total / weight[who])
                near[who] = 0.0
        best, all_of_them = -np.inf, 0.0
        for who in touched[:n_touched]:
            score[who] += log(weight[who])
            if score[who] > best:
                best, guessed[target] = score[who], who
        for who in touched[:n_touched]:
            all_of_them += exp(score[who] - best)
            score[who] = 0.0
        confidence[target] = 1 / all_of_them if n_touched else 0.0
        is_out[candidate[places]] = False
    return _likelihood.Guesses(guessed, confidence)

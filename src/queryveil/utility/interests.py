"""Utility for personalisation: whether what is released of a person says what the person asks next.

The last query of each person that has one of the sixteen categories is put aside. How well it is predicted is the
logarithm of the chance of its category, given how often the person asked for each category otherwise, mixed with five
queries of everybody. What a history adds to knowing everybody alone is its gain, in bits; the measure is the share of
the gain of the original's histories that released ones give.

Each released id is a history of its own, and nothing is joined: with ids per window, a history is that of one window.
Who is who is needed only to choose the query that a history is judged on. Nobody can tell which released query it
became, if any: of the released queries of its category each is as likely to be it as another, so that where a person
asked n times for the category, a released history counts for (n - 1) / n of what it has of it.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from queryveil.data import Floats, Groups, Int8s, Int64s
from queryveil.pairing import ESTIMATED, Pair
from queryveil.rng import generator
from queryveil.text.classifier import CATEGORIES, Classifier
from queryveil.utility.score import Measures, kept, note, part_of_gain

_N = len(CATEGORIES)
_EVERYBODY = 5.0  # queries of everybody that each history is mixed with
_LEAST_GAIN = 0.01
MOST_USERS = 2000  # people who are judged, drawn at random if there are more


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Interests:
    """The queries that histories are judged on, and how much the original's histories say of them.

    - `users`: the number of each user who is judged.
    - `category`: that of the query put aside.
    - `others`: the share of the user's queries of this category that are not the one put aside.
    - `shares`: the share of each category among the queries of everybody.
    - `with_log`: the mean gain of the original's histories, in bits.
    """

    users: Int64s
    category: Int64s
    others: Floats
    shares: Floats
    with_log: float

    @classmethod
    def of(cls, pair: Pair, *, seed: int) -> Self | None:
        """Put a query of each user aside; None if nobody has two with a category, or histories say nothing."""
        rows = _categorised(pair.original_rows, category_of(pair.tokens[0].queries))
        if not rows.height:
            return None
        counts = _counts(rows, n_owners=pair.n_users)
        last = _last(rows.filter(pl.col("query").len().over("user") > 1), seed=seed)
        last = last[np.sort(generator(seed).permutation(last.height)[:MOST_USERS])]
        users, category = (last[name].cast(pl.Int64).to_numpy() for name in ("user", "category"))
        shares = counts.sum(axis=0) / counts.sum()
        others = 1 - 1 / np.maximum(1, counts[users, category])
        found = cls(users=users, category=category, others=others, shares=shares, with_log=0.0)
        gain = found.gains(counts, history=users, judged=np.arange(len(users)))
        return replace(found, with_log=float(gain.mean())) if len(gain) and gain.mean() >= _LEAST_GAIN else None

    def gains(self, counts: Int64s | Floats, *, history: Int64s, judged: Int64s) -> Floats:
        """Return how many bits each history adds to the prediction of the query put aside of the judged user beside."""
        category = self.category[judged]
        alone, own = self.shares[category], counts[history, category]
        left = own * self.others[judged]
        n = counts.sum(axis=1)[history] - own + left
        return np.asarray(np.log2((left + _EVERYBODY * alone) / (n + _EVERYBODY) / alone), np.float64)

    def measure(self, pair: Pair, *, category: Int8s) -> Measures:
        """Return the share of the gain that a released log gives; `category` is that of each query of the pair."""
        rows = _categorised(pair.released_rows, category)
        counts = _counts(rows, n_owners=pair.n_candidates)
        place = np.full(pair.n_users, -1, np.int64)
        place[self.users] = np.arange(len(self.users))
        people = pair.identity.users
        # There may be hundreds of people to a candidate, and few of them are judged.
        entry = np.flatnonzero((place >= 0)[people.values])
        candidate = np.searchsorted(people.ptr, entry, side="right") - 1
        judged = place[people.values[entry]]
        gain = self.gains(counts, history=candidate, judged=judged)
        gain = self._by_user(gain, judged, 1.0 / people.lengths[candidate])
        notes = () if pair.identity.exact else (f"{ESTIMATED}: interests kept come out lower than they are",)
        return self._score(gain, notes=notes)

    def measure_groups(self, pair: Pair, *, membership: pl.DataFrame) -> Measures:
        """Return the share of the gain that the profiles of groups give to their members."""
        groups: Groups = pair.release.groups
        terms = groups.frame.with_row_index("user").explode("terms", "weights", empty_as_null=False)
        category = category_of(terms["terms"])
        counts = np.zeros((groups.n_groups, _N))
        known = category >= 0
        np.add.at(counts, (terms["user"].to_numpy()[known], category[known]), terms["weights"].to_numpy()[known])
        rows = groups.frame.select("group").with_row_index("row")
        users = pair.users.gather(self.users).to_frame("user")
        members = membership.select("user", "group").unique("user").join(rows, on="group")
        row = users.join(members, on="user", how="left", maintain_order="left")["row"]
        has_group = row.is_not_null().to_numpy()
        history = row.drop_nulls().cast(pl.Int64).to_numpy()
        gain = np.zeros(len(self.users))
        gain[has_group] = self.gains(counts, history=history, judged=np.flatnonzero(has_group))
        return self._score(gain)

    def _by_user(self, gain: Floats, judged: Int64s, weight: Floats) -> Floats:
        """Return the mean gain over the histories that may be each user's; whoever has none gains nothing."""
        n = len(self.users)
        total, n_histories = (np.bincount(judged, weights=w, minlength=n) for w in (weight * gain, weight))
        return np.asarray(total / np.maximum(1.0, n_histories), np.float64)

    def _score(self, gain: Floats, *, notes: tuple[str, ...] = ()) -> Measures:
        found = float(gain.mean())
        value = part_of_gain(found, whole=self.with_log, none=0.0)
        about = (
            f"of what a person's history says of the person's next query is there ({found:.3f} bits, "
            f"{self.with_log:.3f} with the log)"
        )
        return Measures(scores=(kept("interests_kept", value, about=about, group="profiles"),), notes=notes)


def category_of(queries: pl.Series) -> Int8s:
    """Return the number of the category of each query, -1 without one."""
    return Classifier().classify(queries).category


def _categorised(rows: pl.DataFrame, category: Int8s) -> pl.DataFrame:
    known = rows.filter(pl.col("query") >= 0)
    found = known.with_columns(category=pl.Series(category[known["query"].to_numpy()]))
    return found.filter(pl.col("category") >= 0)


def _counts(rows: pl.DataFrame, *, n_owners: int) -> Int64s:
    cells = rows["user"].to_numpy().astype(np.int64) * _N + rows["category"].to_numpy()
    return np.bincount(cells, minlength=n_owners * _N).reshape(n_owners, _N).astype(np.int64)


def _last(rows: pl.DataFrame, *, seed: int) -> pl.DataFrame:
    """Return the last row of each user, a random one where there are no times."""
    if "time" in rows.columns:
        return rows.sort("user", "time", "query").unique("user", keep="last", maintain_order=True)
    ordered = rows.sort("user", "query")
    drawn = ordered.with_columns(drawn=generator(seed).random(rows.height))
    return drawn.sort("user", "drawn").unique("user", keep="last", maintain_order=True)


def no_interests() -> Measures:
    """Return the note on logs whose histories do not predict anything."""
    return note("interests are left out: what people of this log asked before does not tell what they ask next")

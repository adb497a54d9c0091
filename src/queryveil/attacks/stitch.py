"""Attack on rows without ids: which two of them are one person's?"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks._learning import learned_scores
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.data import ROLES, Bools, Float32s, Floats, Int64s, QueryLog
from queryveil.guarantees import SwapAnonymity
from queryveil.pairing import Pair
from queryveil.release.texts import sole_askers
from queryveil.rng import generator
from queryveil.text.identifiers import remove_identifiers
from queryveil.text.tokens import normal_form, tokenize

RECALL = 0.01
"""Recall at which the attacker stops naming pairs."""
_MOST_UNITS = 1500
"""Rows of each half; all pairs of them are looked at."""
_WHERE = ("device", "country", "language")
_MAY_LACK = {name: ROLES[name] for name in ("url", "time")}
_N_OTHERS = 20
"""Pairs of two people that the attacker learns from, for each pair of one person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stitch(Seeker):
    """See the rows of a release without ids, and name pairs of rows that are one person's.

    From pairs of rows of the half of the people that is known, a logistic regression learns how alike two rows of one
    person are: their days and hours, the words they share, rare ones counting more, the pages and sites that were
    clicked, their shape (length, words, digits, capitals), and device, country and language, where these were released.
    In the other half it names the pairs with the highest scores until recall is 1 %; reported is the precision. By
    chance is the base rate. Where queries change hands, only rows are looked at whose text one person alone asked.
    Where people have several ids each, one for every window or mini-session, pairs of ids are named, each by its rows.

    - `n_targets`: the most people of each half who are looked at, with 1,500 rows or ids at most.
    - `seed`: repeats who is known, and how ties are drawn.
    """

    name = "stitch"
    knows = "which rows are whose for half of the people"
    what = "pairs of rows or ids that it is surest of"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        yield from _scoring.no_terms(pair)
        if not isinstance(pair.release.data, QueryLog):
            yield "the release has no rows that are one query"
        _, owner = _units(pair)
        if not all(_true_pairs(owner[some]).any() for some in self._halves(owner)):
            yield "too few people have two rows or more"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        rng, (unit, owner) = generator(self.seed), _units(pair)
        known, others = self._halves(owner)
        looks = _Looks(pair.release.log, unit=unit)
        truth = _true_pairs(owner[known])
        of_two = np.flatnonzero(~truth)
        some = rng.choice(of_two, min(len(of_two), _N_OTHERS * int(truth.sum())), replace=False)
        taught = np.concatenate([np.flatnonzero(truth), some])
        is_one = _true_pairs(owner[others])
        features, unknown = looks.pairs(known, taught), looks.pairs(others, np.arange(len(is_one)))
        score = learned_scores(features, truth[taught].astype(np.float64), of=unknown, rng=rng)
        n_named, n_right = surest(score, is_one=is_one, rng=rng)
        return self.exposure(n_targets=n_named, n_found=n_right, n_by_chance=n_named * float(is_one.mean()))

    def _halves(self, owner: Int64s) -> tuple[Int64s, Int64s]:
        """Draw the units that are known and those that are attacked, of different people."""
        rng = generator(self.seed)
        people = rng.permutation(np.unique(owner[owner >= 0]))[: 2 * self.n_targets]
        halves = np.split(people, [len(people) // 2])
        known, others = (rng.permutation(np.flatnonzero(np.isin(owner, half)))[:_MOST_UNITS] for half in halves)
        return known, others


def surest(score: Floats, *, is_one: Bools, rng: np.random.Generator) -> tuple[int, int]:
    """Return how many pairs are named until 1 in 100 of the true ones is, the surest first, and how many are true.

    >>> surest(np.array([3.0, 2.0, 1.0]), is_one=np.array([False, True, True]), rng=np.random.default_rng(1))
    (2, 1)
    """
    right = np.cumsum(is_one[np.lexsort((rng.random(len(score)), -score))])
    n_wanted = max(1, int(np.ceil(RECALL * right[-1])))
    n_named = int(np.searchsorted(right, n_wanted)) + 1
    return n_named, int(right[n_named - 1])


def _units(pair: Pair) -> tuple[Int64s, Int64s]:
    """Return the unit of each released row, and the person of each unit, -1 where it may be one of several.

    A unit is a row, or an id where people have several.
    """
    if isinstance(pair.release.promise, SwapAnonymity):
        # The id is another person's, so the asker is known where one person alone asked the text.
        asked = remove_identifiers(pair.log.frame["query"]).queries
        owner = sole_askers(normal_form(pair.release.log.frame["query"]), asked=asked, users=pair.user)
        return np.arange(len(owner)), owner
    if _scoring.has_several_ids(pair):
        return pair.candidate.astype(np.int64), pair.identity.sole_user()
    return np.arange(len(pair.candidate)), pair.identity.sole_user()[pair.candidate]


def _true_pairs(owner: Int64s) -> Bools:
    """Return of each pair of rows, the first before the second, whether both are one person's."""
    first, second = np.triu_indices(len(owner), 1)
    return np.asarray(owner[first] == owner[second], np.bool_)


class _Looks:
    """What is seen of each unit of a log."""

    def __init__(self, log: QueryLog, *, unit: Int64s) -> None:
        absent = [pl.lit(None, kind).alias(name) for name, kind in _MAY_LACK.items() if name not in log.columns]
        frame, text = log.frame.with_columns(absent, unit=pl.Series(unit)), pl.col("query")
        self._words = _words(frame)
        clicked = log.with_frame(frame).with_clicks_as_rows().frame
        site = pl.col("url").str.extract(r"^(?:[a-z]+://)?([^/]+)")
        told = [pl.col(name) for name in _WHERE if name in log.columns]
        values = clicked.select("unit", query=text, url="url", site=site).with_columns(clicked.select(told))
        # Texts, pages, sites and the like as numbers.
        self._values = [
            values.select("unit", value=pl.col(name).rank("dense").cast(pl.Int64)).drop_nulls().unique()
            for name in values.columns[1:]
        ]
        time = pl.col("time")
        shape = frame.select(
            "unit",
            length=text.str.len_chars(),
            words=text.str.count_matches(" "),
            digits=text.str.count_matches(r"\d"),
            capitals=text.str.count_matches(r"\p{Lu}"),
            day=time.dt.epoch("d"),
            hour=time.dt.hour(),
        )
        means = shape.cast(pl.Float64).fill_null(0).group_by("unit").mean().sort("unit")
        self._shape = means.drop("unit").to_numpy()

    def pairs(self, units: Int64s, some: Int64s) -> Floats:
        """Return how alike the two units are, of some of the pairs of units, the first before the second."""
        first, second = (side[some] for side in np.triu_indices(len(units), 1))
        shape = self._shape[units]
        apart = np.abs(shape[first] - shape[second])
        place = pl.DataFrame({"unit": units, "place": np.arange(len(units))})
        words = _table(self._words, place)
        same = [_share_any(values.join(place, on="unit"), n=len(units))[first, second] for values in self._values]
        return np.column_stack([(words @ words.T)[first, second], *same, apart])


def _words(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct terms of each unit, weighing by how rare they are, the squares of a unit adding up to 1."""
    rows = tokenize(frame["query"]).row_terms()
    unit = frame["unit"].to_numpy()[rows.row_of_entry]
    entries = pl.DataFrame({"unit": unit, "term": rows.values}).unique()
    rare = (pl.lit(frame["unit"].n_unique()) / pl.len().over("term")).log() + 0.1
    weight = pl.col("weight") / (pl.col("weight") ** 2).sum().over("unit").sqrt()
    return entries.with_columns(weight=rare).with_columns(weight)


def _table(words: pl.DataFrame, place: pl.DataFrame) -> Float32s:
    """Return the weights of words, a row for each unit by its place."""
    found = words.join(place, on="unit")
    term = np.unique(found["term"].to_numpy(), return_inverse=True)[1]
    table = np.zeros((place.height, int(term.max(initial=-1)) + 1), np.float32)
    table[found["place"].to_numpy(), term] = found["weight"].to_numpy()
    return table


def _share_any(values: pl.DataFrame, *, n: int) -> Bools:
    """Return of each two of n places whether they have a value in common.

    >>> _share_any(pl.DataFrame({"place": [0, 1, 1], "value": [5, 5, 6]}), n=3)[0].tolist()
    [True, True, False]
    """
    both = values.join(values, on="value")
    found = np.zeros((n, n), np.bool_)
    found[both["place"].to_numpy(), both["place_right"].to_numpy()] = True
    return found

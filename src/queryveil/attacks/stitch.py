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
_N_ROWS = 1500
"""Rows of each half; all pairs of them are looked at."""
_MAY_LACK = {name: ROLES[name] for name in ("url", "time")}
_N_OTHERS = 20
"""Pairs of two people that the attacker learns from, for each pair of one person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stitch(Seeker):
    """See the rows of a release without ids, and name pairs of rows that are one person's.

    From pairs of rows of the half of the people that is known, a logistic regression learns how alike two rows of one
    person are: their days and hours, the words they share, rare ones counting more, the pages and sites that were
    clicked, and their shape (length, words, digits, capitals). In the other half it names the pairs with the highest
    scores until recall is 1 %; reported is the precision. By chance is the base rate. Where queries change hands, only
    rows are looked at whose text one person alone asked.

    - `n_targets`: the most people of each half whose rows are looked at, 1,500 rows at most.
    - `seed`: repeats who is known, and how ties are drawn.
    """

    name = "stitch"
    knows = "which rows are whose for half of the people"
    what = "pairs of rows that it is surest of"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        yield from _scoring.no_terms(pair)
        if not isinstance(pair.release.data, QueryLog):
            yield "the release has no rows that are one query"
        owner = _owners(pair)
        if not all(_true_pairs(owner[rows]).any() for rows in self._halves(owner)):
            yield "too few people have two rows or more"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        rng, owner = generator(self.seed), _owners(pair)
        known, others = self._halves(owner)
        looks = _Looks(pair.release.log)
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
        """Draw the rows that are known and those that are attacked, of different people."""
        rng = generator(self.seed)
        people = rng.permutation(np.unique(owner[owner >= 0]))[: 2 * self.n_targets]
        halves = np.split(people, [len(people) // 2])
        known, others = (rng.permutation(np.flatnonzero(np.isin(owner, half)))[:_N_ROWS] for half in halves)
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


def _owners(pair: Pair) -> Int64s:
    """Return the person of each released row, -1 where it may be one of several."""
    if not isinstance(pair.release.promise, SwapAnonymity):
        return pair.identity.sole_user()[pair.candidate]
    # The id is another person's, so the asker is known where one person alone asked the text.
    asked = remove_identifiers(pair.log.frame["query"]).queries
    return sole_askers(normal_form(pair.release.log.frame["query"]), asked=asked, users=pair.user)


def _true_pairs(owner: Int64s) -> Bools:
    """Return of each pair of rows, the first before the second, whether both are one person's."""
    first, second = np.triu_indices(len(owner), 1)
    return np.asarray(owner[first] == owner[second], np.bool_)


class _Looks:
    """What is seen of each row of a log."""

    def __init__(self, log: QueryLog) -> None:
        absent = [pl.lit(None, kind).alias(name) for name, kind in _MAY_LACK.items() if name not in log.columns]
        frame, text = log.frame.with_columns(absent), pl.col("query")
        tokens = tokenize(frame["query"])
        rows = tokens.row_terms()
        entries = pl.DataFrame({"row": rows.row_of_entry, "term": rows.values}).unique()
        rare = (pl.lit(frame.height) / pl.len().over("term")).log() + 0.1
        # Words weigh by how rare they are, the squares of a row adding up to 1.
        weight = pl.col("weight") / (pl.col("weight") ** 2).sum().over("row").sqrt()
        self._words = entries.with_columns(weight=rare).with_columns(weight)
        url, time = pl.col("url"), pl.col("time")
        site = url.str.extract(r"^(?:[a-z]+://)?([^/]+)")
        # Texts, pages and sites as numbers, -1 where there is none.
        codes = frame.select(query=text, url=url, site=site).select(pl.all().rank("dense").cast(pl.Int64))
        self._codes = codes.fill_null(-1).to_numpy()
        shape = frame.select(
            length=text.str.len_chars(),
            words=text.str.count_matches(" "),
            digits=text.str.count_matches(r"\d"),
            capitals=text.str.count_matches(r"\p{Lu}"),
            day=time.dt.epoch("d"),
            hour=time.dt.hour(),
        )
        self._shape = shape.cast(pl.Float64).fill_null(0).to_numpy()

    def pairs(self, rows: Int64s, some: Int64s) -> Floats:
        """Return how alike the two rows are, of some of the pairs of rows, the first before the second."""
        first, second = (side[some] for side in np.triu_indices(len(rows), 1))
        codes, shape = self._codes[rows], self._shape[rows]
        apart = np.abs(shape[first] - shape[second])
        same = (codes[first] == codes[second]) & (codes[first] >= 0)
        return np.column_stack([self._shared_words(rows)[first, second], same, apart])

    def _shared_words(self, rows: Int64s) -> Float32s:
        """Return the cosine of each two rows."""
        place = pl.DataFrame({"row": rows, "place": np.arange(len(rows))})
        found = self._words.join(place, on="row")
        term = np.unique(found["term"].to_numpy(), return_inverse=True)[1]
        table = np.zeros((len(rows), int(term.max(initial=-1)) + 1), np.float32)
        table[found["place"].to_numpy(), term] = found["weight"].to_numpy()
        return np.asarray(table @ table.T, np.float32)

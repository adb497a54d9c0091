"""Attack by running the method with and without people: is a person among those whom a release was made from?"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.data import Bools, Floats, Int64s, QueryLog, Tallies
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.settings import setting
from queryveil.text.tokens import normal_form

N_TARGETS = 400
"""People for +-5 points at 95 % confidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour(Seeker):
    """Know the whole log except whether one person is in it, and decide this from a release (membership inference).

    The attacker sees the release with all of some people drawn, and makes one without any of them. A third is made
    without half of them, drawn at random; for each person the attacker says whether the person is in it, by how often
    it has the person's terms and whole queries: as in the first or as in the second, rare ones counting more. Three
    runs serve all people (as in audits with one run, Steinke et al. 2023), who are few beside the log. Counts in the
    manifest are not looked at: exact ones tell at once. By chance is the larger half. Under (epsilon,
    delta)-differential privacy at most exp(epsilon) / (1 + exp(epsilon)) are told rightly, but for sampling error and
    delta.

    - `n_targets`: the number of people.
    - `seed`: repeats who is drawn.
    """

    name = "neighbour"
    knows = "the log but for one person, and the method"

    n_targets: int = setting(N_TARGETS, at_least=1, help="The number of people.")

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        if auxiliary.remake is None:
            yield "needs the method and its settings, to run it without some people"
        yield from _scoring.unreadable(pair)
        if pair.n_users < 10:
            yield "too few people to leave some out"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        assert auxiliary.remake is not None  # skip_reason() says so
        rng = generator(self.seed)
        # Left-out people must be few beside those who stay.
        n_people = min(self.n_targets, pair.n_users // 5)
        targets = rng.permutation(pair.n_users)[:n_people]
        n_out = n_people // 2
        # The distinct terms and whole queries of the people, and the place of each among them.
        place = np.full(pair.n_users, -1, np.int64)
        place[targets] = np.arange(n_people)
        rows = (
            pair.log.frame.select("query").with_columns(place=pl.Series(place[pair.user])).filter(pl.col("place") >= 0)
        )
        things = _as_things(rows, "place").unique(maintain_order=True)
        logs = (pair.log.frame.filter(~np.isin(pair.user, people)) for people in (targets, targets[:n_out]))
        remade = (auxiliary.remake(pair.log.with_frame(frame)) for frame in logs)
        seen = [_seen(release, things) for release in (pair.release, *remade)]
        says_in = is_in(things["place"].to_numpy(), *seen, n_people=n_people, rng=rng)
        right = says_in == (np.arange(n_people) >= n_out)
        return self.exposure(n_targets=n_people, n_found=int(right.sum()), n_by_chance=max(n_out, n_people - n_out))


def is_in(
    place: Int64s, with_all: Floats, with_none: Floats, now: Floats, *, n_people: int, rng: np.random.Generator
) -> Bools:
    """Return who is taken to be in a release, by how often it has what each person asked.

    A thing counts by how far `now` lies between the two other releases, in units of what counts vary by; `place` is its
    person.

    >>> place, all_in, none_in = np.array([0, 0, 1]), np.array([1.0, 5.0, 2.0]), np.array([0.0, 4.0, 1.0])
    >>> is_in(place, all_in, none_in, np.array([1.0, 5.0, 1.0]), n_people=2, rng=np.random.default_rng(1)).tolist()
    [True, False]
    """
    middle, apart = (with_all + with_none) / 2, with_all - with_none
    score = np.bincount(place, weights=(now - middle) * apart / (1 + middle), minlength=n_people)
    # Whoever leaves no trace in either is guessed at.
    return np.where(np.abs(score) < 1e-12, rng.random(n_people) < 0.5, score > 0)


def _as_things(rows: pl.DataFrame, *others: str) -> pl.DataFrame:
    """Return each row's terms and whole query; a query is told from a term by a mark that no text has."""
    text = normal_form(rows["query"])
    terms = rows.select(others).with_columns(thing=text.str.split(" ")).explode("thing", empty_as_null=False)
    return pl.concat([terms, rows.select(others).with_columns(thing="\0" + text)])


def _seen(release: Release, things: pl.DataFrame) -> Floats:
    """Return how often a release has each thing: in rows, bags or groups, or as counted."""
    data = release.data
    if isinstance(data, QueryLog):
        rows = data.frame.select("query", n=pl.lit(1.0))
    elif isinstance(data, Tallies):
        rows = data.frame.select("query", n=pl.col("count").cast(pl.Float64))
    else:
        lists = pl.col("items") if "items" in data.frame.columns else pl.col("terms")
        rows = data.frame.select(query=lists.list.join(" "), n=pl.lit(1.0))
    counted = _as_things(rows, "n").group_by("thing").agg(pl.col("n").sum())
    found = things.join(counted, on="thing", how="left", maintain_order="left")["n"].fill_null(0.0)
    return np.asarray(found.to_numpy(), np.float64)

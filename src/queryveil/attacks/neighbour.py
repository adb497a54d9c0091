"""Attack by running the method with and without people: is a person among those whom a release was made from?"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

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

_CELL = ("query", "url", "device", "country")
"""What counted clicks are counted by."""
N_TARGETS = 400
"""People for +-5 points at 95 % confidence."""
LEAST_OTHERS = 30
"""People of the log for each that one run leaves out: where more are missing, thresholds hide what one of them adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour(Seeker):
    """Know the whole log except whether one person is in it, and decide this from a release (membership inference).

    The attacker sees the release with all of some people drawn, and makes one without any of them. A third is made
    without half of them, drawn at random; for each person the attacker says whether the person is in it, by how often
    it has the person's terms, whole queries and counted clicks, rare ones counting more. Of all others it is known
    whether they are in it, and by the first two releases about what each of them adds. Two more runs serve many people
    (as in audits with one run, Steinke et al. 2023), as long as they are at most one in 30 of the log. Counts in the
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
        rng = generator(self.seed)
        n_people = min(self.n_targets, pair.n_users // 5)
        targets, is_there = rng.permutation(pair.n_users)[:n_people], np.arange(n_people) >= n_people // 2
        n_groups = ceil(n_people / max(2, pair.n_users // LEAST_OTHERS))
        n_found = 0
        for group in (slice(first, None, n_groups) for first in range(n_groups)):
            says_in = _says_in(pair, auxiliary, people=targets[group], is_there=is_there[group], rng=rng)
            n_found += int((says_in == is_there[group]).sum())
        n_in = int(is_there.sum())
        return self.exposure(n_targets=n_people, n_found=n_found, n_by_chance=max(n_in, n_people - n_in))


def _says_in(
    pair: Pair, auxiliary: AuxiliaryData, *, people: Int64s, is_there: Bools, rng: np.random.Generator
) -> Bools:
    """Return who of some people is taken to be in a release that is made without those who are not."""
    assert auxiliary.remake is not None  # skip_reason() says so
    place = np.full(pair.n_users, -1, np.int64)
    place[people] = np.arange(len(people))
    things = _things_of(pair, place)
    logs = (pair.log.frame.filter(~np.isin(pair.user, some)) for some in (people, people[~is_there]))
    remade = (auxiliary.remake(pair.log.with_frame(frame)) for frame in logs)
    seen = Seen(*(_seen(release, things["thing"]) for release in (pair.release, *remade)))
    return is_in(things, seen, is_there=is_there, rng=rng)


class Seen(NamedTuple):
    """How often releases have each thing: the one with all of the people, with none of them, and with some of them."""

    with_all: Floats
    with_none: Floats
    now: Floats


def is_in(things: pl.DataFrame, seen: Seen, *, is_there: Bools, rng: np.random.Generator) -> Bools:
    """Return who is taken to be in a release, by how often it has what each person asked.

    `things` has the `place` of a person, the `thing` that this one asked, and how often, `n`; `seen` is beside it. What
    the people add to a thing together is divided by how often each asked it. Of all but the one who is judged it is
    known whether they are in, `is_there`. A thing counts by how far `now` lies between what it were without the person
    and with the person, in units of what counts vary by.

    >>> asked = {"place": [0, 0, 1], "thing": ["a", "b", "b"], "n": [1, 2, 2]}
    >>> seen = Seen(np.array([1.0, 5, 5]), np.array([0.0, 1, 1]), np.array([1.0, 3, 3]))
    >>> is_in(pl.DataFrame(asked), seen, is_there=np.array([True, False]), rng=np.random.default_rng(1)).tolist()
    [True, False]
    """
    frame = things.with_columns(
        is_in=pl.Series(is_there)[things["place"]], apart=pl.Series(seen.with_all - seen.with_none)
    )
    own = pl.col("apart") * pl.col("n") / pl.col("n").sum().over("thing")
    of_all_in = (pl.col("own") * pl.col("is_in")).sum().over("thing")
    told = frame.with_columns(own=own).select("own", others=of_all_in - pl.col("own") * pl.col("is_in"))
    part, others = told["own"].to_numpy(), told["others"].to_numpy()
    middle = seen.with_none + others + part / 2
    weights = (seen.now - middle) * part / (1 + np.maximum(0.0, middle))
    score = np.bincount(things["place"].to_numpy(), weights=weights, minlength=len(is_there))
    # Whoever leaves no trace in either is guessed at.
    return np.where(np.abs(score) < 1e-12, rng.random(len(score)) < 0.5, score > 0)


def _things_of(pair: Pair, place: Int64s) -> pl.DataFrame:
    """Return the terms, whole queries and counted clicks of people: the `place` of the person, the thing, how often."""
    log = pair.log.with_frame(pair.log.frame.with_columns(place=pl.Series(place[pair.user])))
    rows = log.frame.select("query", "place").filter(pl.col("place") >= 0)
    things = [_as_things(rows, "place")]
    cells = pair.release.data.clicks if isinstance(pair.release.data, Tallies) else None
    clicks = log.with_clicks_as_rows().frame
    if cells is not None and "url" in clicks.columns:
        # What is not told of a click has a name of its own where it is counted, and is not looked up.
        made = clicks.filter((pl.col("place") >= 0) & pl.col("url").is_not_null())
        made = made.with_columns(query=normal_form(made["query"]))
        things.append(made.select("place", thing=_click([name for name in _CELL if name in cells.columns], made)))
    return pl.concat(things).drop_nulls().group_by("place", "thing", maintain_order=True).agg(n=pl.len())


def _click(told: Sequence[str], frame: pl.DataFrame) -> pl.Expr:
    """Return a click as a thing, by the columns that a release tells of it; null where the log lacks one of them."""
    parts = [pl.col(name) if name in frame.columns else pl.lit(None, pl.String) for name in told]
    return pl.concat_str([pl.lit("\0\0"), *parts], separator="\0").alias("thing")


def _as_things(rows: pl.DataFrame, *others: str) -> pl.DataFrame:
    """Return each row's terms and whole query; a query is told from a term by a mark that no text has."""
    text = normal_form(rows["query"])
    terms = rows.select(others).with_columns(thing=text.str.split(" ")).explode("thing", empty_as_null=False)
    return pl.concat([terms, rows.select(others).with_columns(thing="\0" + text)])


def _seen(release: Release, things: pl.Series) -> Floats:
    """Return how often a release has each thing: in rows, bags or groups, or as counted."""
    data = release.data
    if isinstance(data, QueryLog):
        rows = data.frame.select("query", n=pl.lit(1.0))
    elif isinstance(data, Tallies):
        rows = data.frame.select("query", n=pl.col("count").cast(pl.Float64))
    else:
        lists = pl.col("items") if "items" in data.frame.columns else pl.col("terms")
        rows = data.frame.select(query=lists.list.join(" "), n=pl.lit(1.0))
    seen = [_as_things(rows, "n")]
    if isinstance(data, Tallies) and data.clicks is not None:
        told = [name for name in _CELL if name in data.clicks.columns]
        seen.append(data.clicks.select(n=pl.col("count").cast(pl.Float64), thing=_click(told, data.clicks)))
    counted = pl.concat(seen).group_by("thing").agg(pl.col("n").sum())
    found = things.to_frame().join(counted, on="thing", how="left", maintain_order="left")["n"].fill_null(0.0)
    return np.asarray(found.to_numpy(), np.float64)

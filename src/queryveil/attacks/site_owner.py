"""Attack by the owners of clicked pages, who know who came when."""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.data import QueryLog, Tallies
from queryveil.guarantees import REGIONS, DifferentialPrivacy
from queryveil.pairing import Pair
from queryveil.rng import generator
from queryveil.text.tokens import normal_form

_WHERE = ("device", "country", "language")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteOwner(Seeker):
    """Own a clicked page with its access log, and attribute released rows with this page to one visitor.

    An access log has a line for each click in the original: the page, the visitor, the time, and whatever else the
    release kept (a device, a country, a language). A row is attributed if exactly one visitor came to the page at its
    time, truncated as in the release, with the same other columns. What is missing there, or is no value that any visit
    has, was made coarser and fits every visit; a part before a hyphen fits the whole (`en` and `en-GB`), and a region
    of the world its countries. Of counted clicks a row is a query, a page and what else is told; it is attributed
    likewise. Found are rows that are attributed to the person whose row it is, or who alone clicked the page for the
    query; a made-up row is nobody's click. By chance is what somebody finds who names for every row the visitor with
    most clicks of all, the best guess without looking at the release.

    - `n_targets`: the most rows with a page that are looked at.
    - `seed`: repeats which rows are drawn.
    """

    name = "site_owner"
    what = "rows with a page"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        data = pair.release.data
        if not isinstance(data, Tallies):
            yield from _scoring.no_people(pair)
        if isinstance(pair.release.promise, DifferentialPrivacy):
            yield "the counts of clicks are noisy"
        if not (_has_pages(data) if isinstance(data, QueryLog) else isinstance(data, Tallies) and data.n_clicks):
            yield "the release has no clicked pages"
        if not _has_pages(pair.log):
            yield "the log has no clicked pages"
        yield from _scoring.swapped(pair)

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        # The lines of all access logs, and the released rows with a page whose person is known.
        visits = _visits(pair)
        rows = _counted(pair, visits) if isinstance(pair.release.data, Tallies) else _released(pair)
        visits = visits.select("visitor", *(name for name in rows.columns if name != "owner"))
        drawn = _scoring.draw_targets(np.arange(rows.height), n_targets=self.n_targets, rng=generator(self.seed))
        targets = rows[pl.Series(drawn)]
        found = targets.with_columns(visitor=sole_visitors(targets.drop("owner"), visits=visits))
        most = visits["visitor"].mode().sort().first() if visits.height else None
        n_found, n_by_chance = int((found["visitor"] == found["owner"]).sum()), float((targets["owner"] == most).sum())
        knows = _knows([name for name in visits.columns if name != "visitor"])
        return self.exposure(n_targets=targets.height, n_found=n_found, n_by_chance=n_by_chance, knows=knows)


def sole_visitors(rows: pl.DataFrame, *, visits: pl.DataFrame) -> pl.Series:
    """Return the one visitor whose visits each row fits, -1 where there is none or more than one.

    >>> visits = pl.DataFrame({"url": ["a", "a"], "language": ["en-GB", "de"], "visitor": [1, 2]})
    >>> rows = pl.DataFrame({"url": ["a", "a", "a"], "language": ["de", "en", "all"]})
    >>> sole_visitors(rows, visits=visits).to_list()
    [2, 1, -1]
    """
    exact = [name for name in rows.columns if name not in _WHERE]
    numbered = rows.with_row_index("row")
    for name in (name for name in rows.columns if name in _WHERE):
        values = visits.select(name, coarser=_coarser(name, pl.col(name)))
        known = pl.concat([values[name], values["coarser"].rename(name)]).drop_nulls().unique()
        numbered = numbered.with_columns(pl.when(pl.col(name).is_in(known.implode())).then(name).alias(name))
    both = numbered.join(visits.unique(), on=exact, how="inner", nulls_equal=True)
    for name in (name for name in rows.columns if name in _WHERE):
        told, had = pl.col(name), pl.col(f"{name}_right")
        both = both.filter(told.is_null() | (told == had) | (told == _coarser(name, had)))
    who = both.group_by("row").agg(n=pl.col("visitor").n_unique(), visitor=pl.col("visitor").first())
    alone = numbered.join(who.filter(pl.col("n") == 1), on="row", how="left", maintain_order="left")
    return alone["visitor"].fill_null(-1)


def _coarser(name: str, value: pl.Expr) -> pl.Expr:
    """Return what a value may have become: a country its region of the world, anything else what is before a hyphen."""
    if name == "country":
        return value.str.to_uppercase().replace_strict(REGIONS, default=None, return_dtype=pl.String)
    return value.str.extract(r"^([^-_]+)[-_]")


def _knows(seen: list[str]) -> str:
    others = [name for name in seen if name not in ("url", "time")]
    said = ["the page", *(["the time"] if "time" in seen else []), *others]
    return f"{' and '.join([', '.join(said[:-1]), said[-1]] if len(said) > 1 else said)} of every visit to its site"


def _page() -> pl.Expr:
    return pl.when(pl.col("url").str.strip_chars() != "").then("url").alias("url")


def _has_pages(log: QueryLog) -> bool:
    clicks = log.with_clicks_as_rows().frame
    return "url" in clicks.columns and clicks.select(_page()).to_series().null_count() < clicks.height


def _visits(pair: Pair) -> pl.DataFrame:
    """Return the lines of all access logs: the `visitor`, the page, the time as exact as released, and what else is."""
    rows = pair.log.with_frame(pair.log.frame.with_columns(visitor=pl.Series(pair.user.astype(np.int64))))
    return _timed(rows.with_clicks_as_rows().frame.with_columns(_page()).drop_nulls("url"), pair)


def _timed(clicks: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    if "time" not in clicks.columns:
        return clicks
    step = (pair.release.time_step or timedelta(microseconds=1)) // timedelta(microseconds=1)
    return clicks.with_columns(time=clicks["time"].to_physical() // step)


def _released(pair: Pair) -> pl.DataFrame:
    """Return the released clicks of people who can be told, the `owner`, with what an access log has, too."""
    owner = pl.Series(pair.identity.sole_user()[pair.candidate])
    log = pair.release.log
    clicks = log.with_frame(log.frame.with_columns(owner=owner)).with_clicks_as_rows().frame.with_columns(_page())
    times = ["time"] * ("time" in pair.released_rows.columns and "time" in pair.log.columns)
    kept = [name for name in pair.release.manifest.columns.kept if name not in ("url", "rank", "search", *times)]
    there = [name for name in kept if name in pair.log.columns and name in clicks.columns]
    seen = clicks.filter(pl.col("owner") >= 0).drop_nulls("url").select("owner", "url", *there, *times)
    return _timed(seen, pair)


def _counted(pair: Pair, visits: pl.DataFrame) -> pl.DataFrame:
    """Return the counted clicks with the `owner` of each: who alone of the log made them, -2 if nobody or several."""
    cells = pair.release.tallies.clicks
    assert cells is not None  # skip_reason() says so
    told = ["url", *(name for name in _WHERE if name in cells.columns and name in visits.columns)]
    made = visits.select("visitor", "query", *told).with_columns(query=normal_form(visits["query"]))
    owner = sole_visitors(cells.select("query", *told), visits=made)
    return cells.select(told).with_columns(owner=owner.replace(-1, -2))

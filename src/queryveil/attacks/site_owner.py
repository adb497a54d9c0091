"""Attack by the owners of clicked pages, who know who came when."""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.data import QueryLog
from queryveil.pairing import Pair
from queryveil.rng import generator


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteOwner(Seeker):
    """Own a clicked page with its access log, and attribute released rows with this page to one visitor.

    An access log has a line for each click in the original: the page, the visitor, the time, and whatever else the
    release kept (a device, a country, a language). A row is attributed if exactly one visitor came to the page at its
    time, truncated as in the release, and with the same other columns. Found are rows that are attributed to the person
    whose row it is; a made-up row is nobody's click. By chance is what somebody finds who names for every row the
    visitor with most clicks of all, the best guess without looking at the release.

    - `n_targets`: the most rows with a page that are looked at.
    - `seed`: repeats which rows are drawn.
    """

    name = "site_owner"
    what = "rows with a page"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        yield from _scoring.no_people(pair)
        if not isinstance(pair.release.data, QueryLog) or "url" not in pair.released_rows.columns:
            yield "the release has no clicked pages"
        if "url" not in pair.log.columns:
            yield "the log has no clicked pages"
        yield from _scoring.swapped(pair)

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        # The lines of all access logs, and the released rows with a page whose person is known.
        visitor, owner = pl.Series(pair.user.astype(np.int64)), pl.Series(pair.identity.sole_user()[pair.candidate])
        visits = _clicks(pair.log.frame, pair).with_columns(visitor=visitor).drop_nulls("url")
        rows = _clicks(pair.release.log.frame, pair).with_columns(owner=owner).filter(owner >= 0).drop_nulls("url")
        seen = [name for name in visits.columns if name != "visitor"]
        drawn = _scoring.draw_targets(np.arange(rows.height), n_targets=self.n_targets, rng=generator(self.seed))
        targets = rows[pl.Series(drawn)]
        # A place of the release without a time, or another column, is one that nothing is known of.
        who = visits.group_by(seen).agg(n=pl.col("visitor").n_unique(), visitor=pl.col("visitor").first())
        found = targets.join(who.filter(pl.col("n") == 1), on=seen, how="left", nulls_equal=True)
        most = visits["visitor"].mode().sort().first() if visits.height else None
        n_found, n_by_chance = int((found["visitor"] == found["owner"]).sum()), float((targets["owner"] == most).sum())
        return self.exposure(n_targets=targets.height, n_found=n_found, n_by_chance=n_by_chance, knows=_knows(seen))


def _knows(seen: list[str]) -> str:
    others = [name for name in seen if name not in ("url", "time")]
    said = ["the page", *(["the time"] if "time" in seen else []), *others]
    return f"{' and '.join([', '.join(said[:-1]), said[-1]] if len(said) > 1 else said)} of every visit to its site"


def _clicks(frame: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    """Return what the release tells of rows beside the query; the page is null where there is none."""
    kept = pair.release.manifest.columns.kept
    there = [name for name in kept if name in pair.log.columns and name in pair.release.log.columns and name != "rank"]
    url = pl.when(pl.col("url").str.strip_chars() != "").then("url").alias("url")
    clicks = frame.select(url, *(name for name in there if name != "url"))
    if "time" not in pair.released_rows.columns or "time" not in pair.log.columns:
        return clicks
    step = (pair.release.time_step or timedelta(microseconds=1)) // timedelta(microseconds=1)
    return clicks.with_columns(time=frame["time"].to_physical() // step)

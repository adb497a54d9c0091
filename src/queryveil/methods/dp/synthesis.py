"""Synthesize sessions from noisy counts; post-processing keeps the privacy of the counts.

Differs: nobody's session is kept or imitated. Queries are dealt to made-up users one independently of another, so what
people ask together or after one another is not in it; only how often queries are asked, and what is clicked for them.
"""

import msgspec
import numpy as np
import polars as pl

from queryveil.data import ROLES, Int64s, QueryLog, Tallies
from queryveil.errors import BadInput, BadParameter
from queryveil.formats import tallies_layout
from queryveil.guarantees import DifferentialPrivacy
from queryveil.release import Ids, Release, TimeDetail
from queryveil.rng import generator

MEAN_QUERIES = 3
"""Queries of a made-up user on average; it is ours, since that of the log is not released."""
MOST_USERS = 100_000_000
_NOTE = "all rows are made up from noisy counts: users are nobody, and what stands together says nothing"


def synthesize(tallies: Tallies, *, n_users: int, rng: np.random.Generator) -> QueryLog:
    """Make up users who ask the tallied queries, each row a query drawn by its count; the counts are all it looks at.

    A user asks 1 query or more, 3 on average. With tallied clicks a row has a URL as often as its query was clicked.
    Where no query was released, there are no rows.

    >>> tallies = Tallies(frame=pl.DataFrame({"query": ["jaguar", "red wine"], "count": [40, 10]}))
    >>> log = synthesize(tallies, n_users=1000, rng=generator(1))
    >>> log.n_users, round(float((log.frame["query"] == "jaguar").mean()), 1)
    (1000, 0.8)
    """
    if not 1 <= n_users <= MOST_USERS:
        raise BadParameter("synthesize", n_users, allowed=f"between 1 and {MOST_USERS:,} users")
    queries = tallies.frame.filter(pl.col("count") > 0)
    n_each = rng.geometric(1 / MEAN_QUERIES, n_users) if queries.height else np.zeros(n_users, np.int64)
    # Whole numbers, so that no rounding shifts the chances.
    ends, n = np.cumsum(queries["count"].to_numpy()), int(n_each.sum())
    drawn: Int64s = np.searchsorted(ends, rng.integers(0, ends[-1], n), side="right") if n else np.empty(0, np.int64)
    user = np.repeat(np.arange(1, n_users + 1), n_each)
    columns = {"user": pl.Series(user).cast(pl.String), "query": queries["query"].gather(drawn)}
    if tallies.clicks is not None:
        columns["url"] = _clicked(queries, tallies.clicks, drawn=drawn, rng=rng)
    frame = pl.DataFrame(columns, schema={name: ROLES[name] for name in columns})
    return QueryLog(frame=frame, layout=tallies_layout(tallies.layout))


def synthesized(release: Release, *, n_users: int, seed: int | None = None) -> Release:
    """Return a release of tallies as one of made-up sessions, marked as such; it keeps the same promise."""
    if not isinstance(release.promise, DifferentialPrivacy):
        raise BadInput("sessions are made up from noisy counts alone, and this release is not of such")
    log = synthesize(release.tallies, n_users=n_users, rng=generator(seed))
    manifest = release.manifest
    return Release(
        data=log,
        manifest=msgspec.structs.replace(
            manifest,
            parameters=manifest.parameters | {"synthesized": True},
            counts=msgspec.structs.replace(manifest.counts, n_rows_after=log.n_rows, n_users_after=log.n_users),
            changed=manifest.changed | {"rows_added": log.n_rows},
            columns=msgspec.structs.replace(manifest.columns, ids=Ids.FRESH, time=TimeDetail.DROP),
            warnings=(*manifest.warnings, _NOTE),
        ),
    )


def _clicked(queries: pl.DataFrame, clicks: pl.DataFrame, *, drawn: Int64s, rng: np.random.Generator) -> pl.Series:
    """Draw a URL for each row: by the counts of its query's clicks, none for what the query's own count has more."""
    place = queries.select("query").with_row_index("place")
    by_query = clicks.filter(pl.col("count") > 0).join(place, on="query").sort("place", "url")
    n_clicks = np.bincount(by_query["place"].to_numpy(), by_query["count"].to_numpy(), minlength=queries.height)
    before = np.concatenate([[0], np.cumsum(n_clicks)]).astype(np.int64)
    whole = np.maximum(queries["count"].to_numpy(), n_clicks).astype(np.int64)
    mark = rng.integers(0, whole[drawn])
    url = np.searchsorted(np.cumsum(by_query["count"].to_numpy()), before[drawn] + mark, side="right")
    is_click = mark < n_clicks[drawn]
    return by_query["url"].gather(pl.Series(np.where(is_click, url, 0)).set(pl.Series(~is_click), None))

"""What advertisers would bid for the terms of a log: a made-up table."""

import numpy as np
import polars as pl

from queryveil.data import Bools, Floats, QueryLog
from queryveil.errors import BadParameter
from queryveil.rng import generator

LISTED = 0.47  # share of the terms that are in the table (117,916 of 251,115 in the paper), frequent ones first
WITH_CLICKS = 0.55  # share of the listed terms that have an estimate of the clicks; the others have null
TERMS_PER_GIANT = 3000


def term_values(log: QueryLog, *, seed: int) -> pl.DataFrame:
    """Make up bid, clicks and impressions for about half of a log's terms.

    The Pearson correlations resemble those of Burghardt et al., table 3: clicks and impressions 0.40, revenue (bid
    times clicks) and bid 0.58, impressions and users 0.15, all others near zero. They settle at about 20,000 terms. As
    there, a few giant bids make up most of the revenue.

    >>> log = QueryLog.from_frame({"user": ["1", "2"], "query": ["jaguar price", "jaguar"]})
    >>> term_values(log, seed=7).columns
    ['term', 'bid', 'clicks', 'impressions']
    """
    if seed < 0:
        raise BadParameter("seed", seed, allowed="0 or more")
    rng = generator(seed)
    terms = _listed(rng, log)
    n, users = terms.height, terms["users"].to_numpy().astype(np.float64)
    shown = rng.lognormal(np.log(300), 2.2, n).clip(max=5e6)
    has_clicks = rng.random(n) < WITH_CLICKS
    # Clicks share the part of the impressions that has nothing to do with the log.
    clicks = 0.40 * _scaled(shown, has_clicks) + 0.03 * _scaled(users, has_clicks)
    clicks = 800 * (clicks + 0.91 * _scaled(rng.lognormal(0, 2.0, n), has_clicks))
    impressions = shown + 0.145 * _spread(shown) * _scaled(users, users > 0)
    bid = rng.lognormal(np.log(0.4), 0.8, n).clip(0.05, 30.0)
    # What is clicked most is cheap: else revenue would follow the clicks.
    bid = np.where(clicks > 2000, 0.05 + bid / 8, bid)
    giants = rng.permutation(np.flatnonzero(has_clicks))[: max(6, n // TERMS_PER_GIANT)]
    bid[giants] = 919.0 * np.arange(1, len(giants) + 1) ** -0.35
    hot = np.arange(len(giants)) % 3 == 1
    clicks[giants] = np.where(hot, 2000 * rng.uniform(0.9, 1.1, len(giants)), rng.integers(1, 20, len(giants)))
    return pl.DataFrame(
        {
            "term": terms["term"],
            "bid": bid.round(2),
            "clicks": pl.Series(clicks.round().astype(np.int64)).set(pl.Series(~has_clicks), None),
            "impressions": np.maximum(impressions.round(), 1).astype(np.int64),
        }
    ).sort("term")


def _listed(rng: np.random.Generator, log: QueryLog) -> pl.DataFrame:
    """Return about half of a log's terms with the number of their users, frequent ones more often than rare ones."""
    words = pl.col("query").str.to_lowercase().str.extract_all(r"[\p{L}\p{N}]+")
    asked = log.frame.lazy().select("user", term=words).explode("term").drop_nulls().unique()
    counts = asked.group_by("term").agg(users=pl.len()).sort("term").collect()
    order = np.argsort(-(np.log(counts["users"].to_numpy()) + rng.random(counts.height)), kind="stable")
    return counts[np.sort(order[: max(1, round(LISTED * len(order)))])] if len(order) else counts


def _scaled(values: Floats, among: Bools) -> Floats:
    spread = _spread(values[among])
    return values / spread if spread > 0 else np.zeros_like(values)


def _spread(values: Floats) -> float:
    return float(np.std(values)) if len(values) else 0.0

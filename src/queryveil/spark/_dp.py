"""dp on a cluster: contributions are bounded on executors, counted by shuffles, and noise is drawn on the driver."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil import progress
from queryveil.data import CLICKS_SCHEMA, TALLIES_SCHEMA, Tallies
from queryveil.formats import tallies_layout
from queryveil.methods.dp import Choice, Dp
from queryveil.methods.dp._noise import draw
from queryveil.methods.dp.dp import by_count, is_url, may_leave
from queryveil.release import Noise, Release
from queryveil.rng import generator
from queryveil.spark import _histories, _writing
from queryveil.spark._executors import SparkLog, map_frames, stored
from queryveil.text.tokens import encode_normal_form, split_items

_ITEMS_AT_ONCE = 5_000_000


def anonymize_dp(method: Dp, log: SparkLog, *, scratch: str) -> Release:
    """Return the release, which has come to the driver: noisy counts of common queries."""
    method.check(log.empty)
    rows = _histories.exclude_bots(log, threshold=method.bot_threshold).frame
    by_blanks = log.layout.terms_are_items
    tallied = _Tallying(method=method, scratch=scratch, rng=generator(method.seed), by_blanks=by_blanks)
    queries = tallied.rounds(rows, "queries", out=None)
    clicks = tallied.rounds(rows, "clicks", out=queries) if method.clicks else None
    data = Tallies(
        frame=by_count(queries.cast(pl.Schema(TALLIES_SCHEMA))),
        clicks=None if clicks is None else by_count(clicks.cast(pl.Schema(CLICKS_SCHEMA))),
        layout=tallies_layout(log.layout),
    )
    return Release(data=data, manifest=method.manifest(data))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Tallying:
    method: Dp
    scratch: str
    rng: np.random.Generator
    by_blanks: bool

    def rounds(self, rows: DataFrame, what: str, *, out: pl.DataFrame | None) -> pl.DataFrame:
        """Return the released items with their noisy counts; clicks are counted for the queries that are `out`."""
        names = ["query"] if what == "queries" else ["query", "url"]
        found = pl.DataFrame(schema=dict.fromkeys(names, pl.String) | {"count": pl.Int64})
        own, share = rows.select("user", *names).repartition("user"), rows.sparkSession.sparkContext.broadcast
        for number, plan in enumerate(self.method.noise):
            if plan.what != what:
                continue
            progress.step(f"counting {what}")
            # Privacy: a later round knows of an earlier one only what was published; picks are made anew.
            picks = map_frames(
                own,
                _picked,
                ", ".join(f"{name} string" for name in names),
                by_partition=True,
                names=names,
                most=plan.max_items,
                choose=self.method.choose,
                secret=_writing.derive_secret(self.method.seed, f"picks {number}"),
                by_blanks=self.by_blanks,
                gone=share(found.select(names)),
                out=share(None if out is None else out.select("query")),
            )
            counts = stored(picks.groupBy(*names).count(), f"{self.scratch}/counts-{number}")
            found = pl.concat([found, self._noisy(counts, plan, names=names)])
        return found

    def _noisy(self, counts: DataFrame, plan: Noise, *, names: list[str]) -> pl.DataFrame:
        """Draw noise for every count, as many at once as fit into the driver, and keep what is released."""
        there = counts.where(F.col("count") >= plan.least)
        n_turns = max(1, -(-there.count() // _ITEMS_AT_ONCE))
        kept = []
        for turn in range(n_turns):
            some = there.where(F.pmod(F.xxhash64(*names), F.lit(n_turns)) == turn).toArrow()
            frame = pl.DataFrame(some)
            # With a seed the same noise must meet the same item.
            frame = frame if self.method.seed is None else frame.sort(names)
            noise = draw(plan, frame.height, rng=None if self.method.seed is None else self.rng)
            frame = frame.with_columns(count=pl.col("count") + pl.Series(noise))
            kept.append(frame.filter(pl.col("count") >= plan.threshold))
        return pl.concat(kept).select(*names, pl.col("count").cast(pl.Int64))


def _picked(
    rows: pl.DataFrame,
    *,
    names: list[str],
    most: int,
    choose: Choice,
    secret: bytes,
    by_blanks: bool,
    gone: Broadcast[pl.DataFrame],
    out: Broadcast[pl.DataFrame | None],
) -> pl.DataFrame:
    """Return the items that each user of this partition contributes, at most `most` of them and each once."""
    # Privacy: a task that Spark runs again must pick the same, or one person would count for more than the noise hides;
    # so picks go by digests, which look random to whoever does not know the secret.
    if by_blanks:
        rows = split_items(rows)
    codes, distinct = encode_normal_form(rows["query"].fill_null(""))
    texts = distinct.gather(codes)
    items = rows.with_columns(query=texts).filter(may_leave(texts))
    if "url" in names and out.value is not None:
        items = items.filter(is_url(items["url"])).join(out.value, on="query", how="semi")
    items = items.group_by("user", *names).agg(times=pl.len()).join(gone.value, on=names, how="anti")
    picks = items.select(pick=pl.concat_str("user", *names, separator="\0"))["pick"]
    items = items.with_columns(chance=pl.Series(_writing.keyed_digests(picks, secret=secret), dtype=pl.Binary))
    first = ["times", "chance"] if choose is Choice.FREQUENT else ["chance"]
    return items.sort("user", *first, descending=[False, *(True for _ in first)]).group_by("user").head(most)

"""Is the noise on released counts enough for what is promised? Worked out again, from what the manifest says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import polars as pl

from queryveil.guarantees import DifferentialPrivacy
from queryveil.log import Format, QueryLog
from queryveil.release import Manifest, Noise
from queryveil.tallies import Tallies
from queryveil.verify.dp_noise import delta_of, is_known
from queryveil.verify.dp_words import UNIT
from queryveil.verify.pairs import folded_all
from queryveil.verify.tokens import number
from queryveil.verify.verdict import Kind, Verdict, Witness

_ROUNDING = 1e-9
"""Epsilons and deltas are floats: so much more, as a share, is the same."""
_UNSEEN = (
    "files cannot show that the noise was drawn as the manifest says, nor that nobody had a part in more counts than "
    "it says"
)
_MADE_UP = "rows are made up from noisy counts that are not in the release, so that the counts were not judged"


@dataclass(slots=True)
class _Findings:
    n: int = 0
    witnesses: list[Witness] = field(default_factory=list)

    def whole(self, kind: Kind, *, found: int, allowed: int, part: int | None = None) -> None:
        """Add what is wrong with the release as a whole, or with a part of its noise."""
        self.n += 1
        rows = () if part is None else (part,)
        self.witnesses.append(Witness(kind=kind, size=0, support=found, needed=allowed, rows=rows, positions=()))

    def rows(self, kind: Kind, frame: pl.DataFrame) -> None:
        """Add rows, with what they have (`found`) and should have (`needed`)."""
        self.n += frame.height
        first = frame.sort("found", "row").head(Verdict.N_KEPT)
        self.witnesses += [
            Witness(kind=kind, size=1, support=found, needed=needed, rows=(row,), positions=())
            for row, found, needed in first.select("row", "found", "needed").iter_rows()
        ]


def verify_dp(
    data: Tallies | QueryLog,
    promise: DifferentialPrivacy,
    *,
    noise: Sequence[Noise],
    original: QueryLog | None = None,
) -> Verdict:
    """Judge the promise by how noise was added, part by part, and by the counts that were released.

    The epsilons and deltas of the parts add up. With the `original` also look for queries and clicks that nobody has,
    or fewer than get noise at all.

    >>> counts = Tallies(frame=pl.DataFrame({"query": ["red kettle"], "count": [40]}))
    >>> weak = Noise(what="queries", mechanism="laplace", max_items=1, scale=1.0, threshold=12, epsilon=1, delta=1e-5)
    >>> print(verify_dp(counts, DifferentialPrivacy(epsilon=1, delta=1e-5), noise=[weak]).in_words())
    The promise is broken: 1 violation, for example part 1 of the noise has a delta of 1.221e-05 at its epsilon, and
    1e-05 is stated.
    """
    found = _Findings()
    _judge_noise(noise, promise, found)
    if isinstance(data, Tallies):
        _judge_counts(data, noise, found)
    if original is not None:
        _judge_origin(data, noise, original, found)
    n = data.n_queries + data.n_clicks if isinstance(data, Tallies) else data.n_rows
    return Verdict(
        promise=promise,
        holds=found.n == 0,
        witnesses=tuple(sorted(found.witnesses)[: Verdict.N_KEPT]),
        n_violations=found.n,
        n_users=n,
        n_checked_users=n if isinstance(data, Tallies) else 0,
        notes=(_UNSEEN,) if isinstance(data, Tallies) else (_UNSEEN, _MADE_UP),
    )


def exact_counts(manifest: Manifest) -> list[Witness]:
    """Find what a manifest tells of the log without noise: its size, what was removed or measured, its columns."""
    counts = manifest.counts
    n_told = sum(map(bool, (counts.n_rows_before, counts.n_users_before, *manifest.removed.values())))
    n_told += len(manifest.measures) + len(manifest.columns.dropped) + len(manifest.columns.kept)
    n_told += bool(manifest.query_clusters) + bool(manifest.columns.n_others_dropped)
    if not n_told:
        return []
    return [Witness(kind="exact_count", size=0, support=n_told, needed=0, rows=(), positions=())]


def _judge_noise(noise: Sequence[Noise], promise: DifferentialPrivacy, found: _Findings) -> None:
    if not noise:
        found.whole("no_noise", found=0, allowed=1)
        return
    for part, each in enumerate(noise, start=1):
        if not is_known(each):
            found.whole("odd_noise", found=0, allowed=0, part=part)
            continue
        delta = delta_of(each, epsilon=each.epsilon * (1 + _ROUNDING))
        if delta > each.delta * (1 + _ROUNDING):
            found.whole("weak_noise", found=_in_units(delta), allowed=_in_units(each.delta), part=part)
    sums = (
        ("parts_epsilon", sum(each.epsilon for each in noise), promise.epsilon),
        ("parts_delta", sum(each.delta for each in noise), promise.delta),
    )
    for kind, spent, promised in sums:
        # What is not a number is not within the promise, either.
        if not spent <= promised * (1 + _ROUNDING):
            found.whole(kind, found=_in_units(spent), allowed=_in_units(promised))  # type: ignore[arg-type]


def _in_units(value: float) -> int:
    return ceil(value / UNIT) if 0 <= value < 1e6 else ceil(1e6 / UNIT)


def _judge_counts(tallies: Tallies, noise: Sequence[Noise], found: _Findings) -> None:
    queries = tallies.frame.with_row_index("row", offset=1)
    found.rows("small_count", _below(queries, noise, what="queries"))
    untidy = queries.filter(folded_all(queries["query"]) != queries["query"])
    found.rows("untidy_query", untidy.select("row", found=pl.lit(1), needed=pl.lit(0)))
    if tallies.clicks is None:
        return
    clicks = tallies.clicks.with_row_index("row", offset=1)
    if clicks.height and not any(each.what == "clicks" for each in noise):
        found.whole("no_noise", found=clicks.height, allowed=0)
    found.rows("small_click", _below(clicks, noise, what="clicks"))
    stray = clicks.join(queries, on="query", how="anti")
    found.rows("stray_click", stray.select("row", found=pl.lit(0), needed=pl.lit(1)))


def _below(counts: pl.DataFrame, noise: Sequence[Noise], *, what: str) -> pl.DataFrame:
    """Give the rows whose count is below every threshold."""
    lowest = min((each.threshold for each in noise if each.what == what), default=0)
    return counts.filter(pl.col("count") < lowest).select("row", found="count", needed=pl.lit(lowest))


def _judge_origin(data: Tallies | QueryLog, noise: Sequence[Noise], original: QueryLog, found: _Findings) -> None:
    asked, released = _asked(original), data.frame.with_row_index("row", offset=1)
    clicks = released if isinstance(data, QueryLog) else data.clicks
    if isinstance(data, QueryLog):
        released = released.group_by("query").agg(pl.col("row").min())
    found.rows("unasked_query", _too_few(released, asked, noise, keys=["query"], what="queries"))
    if clicks is None or "url" not in clicks.columns:
        return
    if isinstance(data, QueryLog):
        clicks = clicks.drop_nulls("url").group_by("query", "url").agg(pl.col("row").min())
    else:
        clicks = clicks.with_row_index("row", offset=1)
    found.rows("unmade_click", _too_few(clicks, asked, noise, keys=["query", "url"], what="clicks"))


def _asked(original: QueryLog) -> pl.DataFrame:
    """Give who asked and clicked what, a query as it is compared."""
    rows = original.frame.select("user", "query", url=pl.col("url") if "url" in original.columns else pl.lit(""))
    if original.layout.format is Format.TRANSACTIONS:
        # An item is what a query is elsewhere.
        rows = rows.with_columns(pl.col("query").str.split(" ")).explode("query", empty_as_null=False)
    texts = number(rows["query"])
    return rows.with_columns(folded_all(texts.distinct).gather(texts.codes).alias("query"))


def _too_few(
    released: pl.DataFrame, asked: pl.DataFrame, noise: Sequence[Noise], *, keys: list[str], what: str
) -> pl.DataFrame:
    """Give the rows that fewer users stand behind than there must be for a count to get noise."""
    least = min((each.least for each in noise if each.what == what), default=1)
    there = asked.join(released, on=keys, how="semi").group_by(keys).agg(pl.col("user").n_unique().alias("found"))
    joined = released.join(there, on=keys, how="left").with_columns(pl.col("found").fill_null(0))
    return joined.filter(pl.col("found") < least).select("row", "found", needed=pl.lit(least))

"""kdelta on a cluster: groups of users with the same texts, clicks and shares, made in shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import polars as pl
import pyarrow as pa

from queryveil.columns import Ids, TimeDetail
from queryveil.engines.spark.kdelta_tallies import TALLIES, is_tally, losses, tallies_of
from queryveil.engines.spark.leaving import leave, secret_of
from queryveil.engines.spark.logs import SparkLog
from queryveil.engines.spark.made import Made, MadeHere, as_log
from queryveil.engines.spark.shard_manifests import before_caveats, merged, summed, total
from queryveil.engines.spark.shards import SHARD, Outcome, Shards, check_shards, run_in_shards
from queryveil.log import QueryLog
from queryveil.methods import Kdelta
from queryveil.release import Counts, Manifest, Release


def anonymize_kdelta(method: Kdelta, log: SparkLog, *, scratch: str, shards: int | None = None) -> Made | MadeHere:
    """Give the rows of a release that keeps the promise: where texts are the same, no cluster spans two shards."""
    check_shards(shards)
    base = method.anonymize(log.empty)
    if not log.n_rows:
        return MadeHere(release=base)
    # Users keep their names in the shards; those that they leave with are given out over all of them.
    inner = replace(method, columns=replace(method.columns, ids=Ids.KEEP, key=None))
    rows = inner.anonymize(log.empty).log.frame.to_arrow().schema
    n_users = log.n_users
    found = run_in_shards(
        partial(_equal, secret=secret_of(method.seed, "tallies")),
        inner,
        log,
        columns=("user", "query", "time", "url", *method.columns.keep),
        schema=pa.schema([*rows, *TALLIES]),
        n_users=n_users,
        shards=shards,
        scratch=scratch,
    )
    released = found.frame.where(~is_tally()).drop(SHARD, *TALLIES.names)
    leaving = leave(released, method.columns, seed=method.seed, protected=method.protected)
    counts = Counts(
        n_rows_before=log.n_rows, n_rows_after=leaving.n_rows, n_users_before=n_users, n_users_after=leaving.n_users
    )
    measures = _sizes(found) | losses(found.frame.where(is_tally()))
    warnings = _warnings(method, log.columns, base.manifest, found, measures)
    manifest = merged(base.manifest, found.manifests, counts=counts, measures=measures, warnings=warnings)
    if not leaving.n_rows:
        return MadeHere(release=Release(data=base.data, manifest=manifest))
    return Made(frame=leaving.frame, written=as_log(log.layout, leaving.frame.columns), manifest=manifest)


def _equal(method: Kdelta, log: QueryLog, *, secret: bytes) -> Outcome:
    release = method.anonymize(log)
    tallies = tallies_of(log, release.log, bot_threshold=method.bot_threshold, secret=secret)
    frame = pl.concat([release.log.frame, tallies], how="diagonal")
    return Outcome(frame=frame, manifest=release.manifest, sums={"grouped": _n_grouped(release.manifest)})


def _n_grouped(manifest: Manifest) -> float:
    """Give how many users were put into groups, which a manifest tells by what was done for each of them."""
    done = [
        (manifest.measures.get("additions_per_user", 0.0), manifest.changed["rows_added"]),
        (manifest.measures.get("suppressions_per_user", 0.0), manifest.removed["rows_suppressed"]),
    ]
    per_user, n_rows = max(done)
    return n_rows / per_user if per_user else manifest.counts.n_users_after


def _sizes(found: Shards) -> dict[str, float]:
    """Give how large the groups are and what was done for each user, over all shards."""
    whole = summed(manifest.removed | manifest.changed for manifest in found.manifests)
    n_grouped = max(1.0, total(found.told, "grouped"))
    out: dict[str, float] = {
        "groups": _sum(found, "groups"),
        "largest_group": int(max(manifest.measures.get("largest_group", 0) for manifest in found.manifests)),
        "additions_per_user": round(whole["rows_added"] / n_grouped, 4),
        "suppressions_per_user": round(whole["rows_suppressed"] / n_grouped, 4),
    }
    papers = ("additions_paper_centroids", "suppressions_paper_centroids")
    return out | {name: _sum(found, name) for name in papers if name in found.manifests[0].measures}


def _sum(found: Shards, measure: str) -> int:
    return int(sum(manifest.measures.get(measure, 0) for manifest in found.manifests))


def _warnings(
    method: Kdelta, columns: list[str], base: Manifest, found: Shards, measures: Mapping[str, float]
) -> list[str]:
    """Say of all shards what the local method would; where they are one, the words are the same."""
    own = method.columns.warnings(columns, protected=method.protected)
    n_added = sum(manifest.changed["rows_added"] for manifest in found.manifests)
    n_of_one_user = int(measures["queries_of_one_user"])
    said = []
    if n_added:
        said.append(f"rows that were made up, copies of other users' rows: {n_added:,}")
    if n_added and "time" in columns and method.columns.time is TimeDetail.KEEP:
        said.append("made-up rows can be recognised: their exact times are those of other rows of the same user")
    if n_added and any(name != "rank" for name in base.columns.kept):
        said.append("copied rows may be recognised by the columns that were kept")
    if "share_of_distinct_urls_lost" not in measures:
        said.append("no clicks: queries are alike only if their texts are the same")
    if n_of_one_user:
        said.append(
            f"released queries that only one user asked: {n_of_one_user:,}; the promise lets them through, "
            "--min-query-users 2 drops them"
        )
    return before_caveats(base.warnings, said, first=len(own))

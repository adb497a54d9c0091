"""kdelta on a cluster: groups of users with the same texts, clicks and shares, made in shards."""

from dataclasses import replace
from functools import partial

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil.data import QueryLog
from queryveil.methods import Kdelta
from queryveil.methods.bots import bots_of
from queryveil.methods.kdelta._objects import read_objects
from queryveil.release import Ids, Manifest, TextCounts
from queryveil.spark import _writing
from queryveil.spark._executors import spark_types
from queryveil.spark._shards import SHARD, Outcome, Sharding, Shards, sum_tables, total
from queryveil.text.identifiers import remove_identifiers

_OF, _KEY = "tally_of_this_shard", "tally_key_of_this_shard"
_BEFORE, _AFTER, _PEOPLE = "tally_before_in_this_shard", "tally_after_in_this_shard", "tally_people_of_this_shard"
_NAMED = "tally_with_identifier_in_this_shard"
_NUMBERS = (_BEFORE, _AFTER, _PEOPLE, _NAMED)
TALLIES = ", ".join([f"{_OF} string", f"{_KEY} binary", *(f"{name} bigint" for name in _NUMBERS)])
"""Of queries or URLs, for each a digest, its rows in the shard and in the release, the people who asked it, and 1 if a
released text of it holds an identifier."""

_N_TOP = 50


def tallies_of(log: QueryLog, released: QueryLog, *, bot_threshold: int | None, secret: bytes) -> pl.DataFrame:
    """Count the distinct queries and URLs of a shard, those of programs too; people are counted without them."""
    objects = read_objects(log.frame)
    users = log.frame["user"].gather(objects.place)
    is_person = ~users.is_in(bots_of(log, threshold=bot_threshold).implode())
    rows = pl.DataFrame({"user": users, "text": objects.texts.gather(objects.query), "is_person": is_person})
    people = pl.col("user").filter(pl.col("is_person")).n_unique()
    queries = rows.group_by("text").agg(pl.len().alias(_BEFORE), people.alias(_PEOPLE))
    found = [_tallied("queries", queries, released.frame["query"], secret=secret)]
    if len(objects.urls):
        urls = objects.urls.gather(objects.url[objects.url >= 0]).to_frame("text")
        counted = urls.group_by("text").agg(pl.len().alias(_BEFORE)).with_columns(pl.lit(0).alias(_PEOPLE))
        found.append(_tallied("urls", counted, released.frame["url"], secret=secret))
    return pl.concat(found)


def _tallied(of: str, before: pl.DataFrame, after: pl.Series, *, secret: bytes) -> pl.DataFrame:
    counted = after.to_frame("text").group_by("text").agg(pl.len().alias(_AFTER))
    if of == "queries":
        counted = counted.with_columns(remove_identifiers(counted["text"]).removed.is_not_null().alias(_NAMED))
    both = before.join(counted, on="text", how="left").with_columns(pl.lit(0).alias(_NAMED) if of == "urls" else [])
    # Privacy: a digest will do to tell them apart, and the driver need not see texts.
    key = pl.Series(_writing.keyed_digests(both["text"], secret=secret), dtype=pl.Binary)
    numbers = [pl.col(name).cast(pl.Int64).fill_null(0) for name in _NUMBERS]
    return both.select(pl.lit(of).alias(_OF), key.alias(_KEY), *numbers)


def text_counts(tallies: DataFrame) -> TextCounts:
    """Count the released queries, those that one person of all shards asked and those with an identifier."""
    each = (
        tallies.where(F.col(_OF) == "queries")
        .groupBy(_KEY)
        .agg(
            F.sum(_AFTER).alias("n_rows"),
            (F.sum(_PEOPLE) == 1).alias("is_of_one"),
            (F.sum(_NAMED) > 0).alias("has_identifier"),
        )
    )
    return _writing.sum_texts(each.where("n_rows > 0"))


def losses(tallies: DataFrame) -> dict[str, float]:
    """Compare the distinct queries and URLs of the log with those of the release, as a local manifest does."""
    sums = [F.sum(name).alias(name) for name in (_BEFORE, _AFTER)]
    each = tallies.groupBy(_OF, _KEY).agg(*sums)
    is_left = F.col(_AFTER) > 0
    counts = each.groupBy(_OF).agg(F.count("*").alias("n"), F.count_if(is_left).alias("n_left"))
    found = {row[_OF]: row for row in counts.collect()}
    measures: dict[str, float] = {}
    for name in (name for name in ("queries", "urls") if name in found):
        own = each.where(F.col(_OF) == name)
        measures[f"share_of_distinct_{name}_lost"] = round(1 - found[name]["n_left"] / found[name]["n"], 6)
        measures[f"top_{_N_TOP}_{name}_kept"] = len(_top(own, _BEFORE) & _top(own, _AFTER))
    return measures


def _top(tallies: DataFrame, by: str) -> set[bytes]:
    """Return the keys of the most frequent; ties are broken by key."""
    top = tallies.where(F.col(by) > 0).orderBy(F.desc(by), _KEY).limit(_N_TOP).select(_KEY)
    return {bytes(row[_KEY]) for row in top.collect()}


def anonymize_kdelta(method: Kdelta, sharding: Sharding) -> _writing.ClusterRelease:
    """Return the rows of a release that keeps the promise: where texts are the same, no cluster spans two shards."""
    log = sharding.log
    # Users keep their names in the shards; those that they leave with are given out over all of them.
    inner = replace(method, columns=replace(method.columns, ids=Ids.KEEP, key=None))
    rows = inner.anonymize(log.empty).log.frame.to_arrow().schema
    found = sharding.run(
        partial(_equal, secret=_writing.derive_secret(method.seed, "tallies")),
        inner,
        columns=("user", "query", "time", "url", *method.columns.keep),
        schema=pa.schema([*rows, *spark_types(TALLIES)]),
    )
    released = _writing.release_rows(
        found.frame.where(F.col(_OF).isNull()).drop(SHARD, _OF, _KEY, *_NUMBERS),
        method.columns,
        seed=method.seed,
        protected=method.protected,
    )
    tallies = found.frame.where(F.col(_OF).isNotNull())
    measures, texts = _sizes(found) | losses(tallies), text_counts(tallies)
    warnings = method.warnings(
        log.columns,
        reading=log.reading,
        n_alone=_writing.n_alone(released, method.columns),
        n_added=sum(manifest.changed["rows_added"] for manifest in found.manifests),
        has_clicks="share_of_distinct_urls_lost" in measures,
        n_of_one_user=texts.n_of_one_person or 0,
    )
    return _writing.ClusterRelease(
        frame=released.frame,
        written=_writing.log_output(log.layout, released.frame.columns),
        manifest=sharding.manifest(
            found, n_rows=released.n_rows, n_users=released.n_users, texts=texts, measures=measures, warnings=warnings
        ),
    )


def _equal(method: Kdelta, log: QueryLog, *, secret: bytes) -> Outcome:
    release = method.anonymize(log)
    tallies = tallies_of(log, release.log, bot_threshold=method.bot_threshold, secret=secret)
    frame = pl.concat([release.log.frame, tallies], how="diagonal")
    return Outcome(frame=frame, manifest=release.manifest, sums={"grouped": _n_grouped(release.manifest)})


def _n_grouped(manifest: Manifest) -> float:
    """Return how many users were put into groups, which a manifest tells by what was done for each of them."""
    done = [
        (manifest.measures.get("additions_per_user", 0.0), manifest.changed["rows_added"]),
        (manifest.measures.get("suppressions_per_user", 0.0), manifest.removed["rows_suppressed"]),
    ]
    per_user, n_rows = max(done)
    return n_rows / per_user if per_user else manifest.counts.n_users_after


def _sizes(found: Shards) -> dict[str, float]:
    """Return how large the groups are and what was done for each user, over all shards."""
    whole = sum_tables(manifest.removed | manifest.changed for manifest in found.manifests)
    n_grouped = max(1.0, total(found.reports, "grouped"))
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

"""clump, partition, plink and kdelta on a cluster: groups are made in shards, and numbered over all of them.

An average profile of plink is one of all users, not of a shard: groups that are too small beside it are joined.
"""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import ceil

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil.data import Format, Layout, QueryLog
from queryveil.errors import BadInput, BadRow
from queryveil.formats import aggregates, transactions
from queryveil.methods import Clump, Kdelta, Partition, Plink
from queryveil.methods.bots import rows_of_people
from queryveil.methods.kdelta._objects import read_objects
from queryveil.methods.kdelta.kdelta import losses_of
from queryveil.methods.plink._groups import as_written, may_share
from queryveil.methods.plink.plink import rounded
from queryveil.methods.settings import Representative
from queryveil.release import ColumnPolicy, Ids, Manifest, TextCounts
from queryveil.spark import _executors, _writing
from queryveil.spark._executors import spark_types
from queryveil.spark._shards import SHARD, Outcome, Sharding, ShardReport, Shards, mean, sum_tables, total
from queryveil.spark._writing import ClusterRelease, OutputFormat, release_rows
from queryveil.text.identifiers import remove_identifiers
from queryveil.text.taxonomy import Taxonomy

COUNTED = (
    "group bigint, members bigint, size bigint, whole bigint, "
    "terms array<string>, weights array<double>, holders array<bigint>"
)
"""Groups with the holders of each released term, and their size before terms were dropped (`whole`)."""

_RELEASED = ("members", "size", "terms", "weights", "holders")


def _shippable(taxonomy: Taxonomy | None) -> Taxonomy | None:
    """Return the taxonomy that must go to the executors: WordNet need not, they have it."""
    return None if taxonomy is Taxonomy.wordnet() else taxonomy


def _renumbered(frame: DataFrame, number: str, names: tuple[str, ...], *, seed: int | None) -> DataFrame:
    """Return transactions or groups with new numbers over all shards, in an order that does not tell their shard."""
    # To `release_rows`, each is a user with one row.
    rows = frame.select(F.concat_ws(" ", SHARD, number).alias("user"), *names)
    return release_rows(rows, ColumnPolicy(), seed=seed, protected=names).frame


def anonymize_transactions(method: Clump | Partition, sharding: Sharding) -> ClusterRelease:
    """Return transactions of which each is one of k alike."""
    shipped = replace(method, taxonomy=_shippable(method.taxonomy))
    found = sharding.run(_alike, shipped, columns=("user", "query"), schema="number bigint, items array<string>")
    reports, manifests = found.reports, found.manifests
    n_after = int(total(reports, "transactions"))
    n_items, n_released = ([each.sums[name] for each in reports] for name in ("items", "released"))
    measures = {
        "ggd": round(sum(manifest.measures["ggd"] for manifest in manifests), 2),
        "ncp": round(mean(manifests, "ncp", weights=n_items), 6),
        "average_length": round(sum(n_released) / max(1, n_after), 3),
        "average_level": round(mean(manifests, "average_level", weights=n_released), 3),
    }
    layout = transactions.transactions_layout(sharding.log.layout)
    arrange = partial(transactions.arrange_transactions, layout=layout)
    return ClusterRelease(
        frame=_renumbered(found.frame, "number", ("items",), seed=method.seed).withColumnRenamed("user", "id"),
        written=OutputFormat(kind="transactions", layout=layout, arrange=arrange),
        manifest=sharding.manifest(
            found,
            n_rows=n_after,
            n_users=int(total(reports, "people")),
            measures=measures,
            warnings=sharding.base.warnings,
        ),
    )


def _alike(method: Clump | Partition, log: QueryLog) -> Outcome:
    try:
        release = method.anonymize(log)
    except BadRow:
        # The row is one of the shard, which nobody has seen.
        raise BadInput("items are outside the taxonomy; add them to it, or leave them out") from None
    frame = release.transactions.frame
    n_released = release.transactions.n_items
    return Outcome(
        frame=frame.select("items").with_row_index("number").with_columns(pl.col("number").cast(pl.Int64)),
        manifest=release.manifest,
        sums={
            "items": n_released + release.manifest.removed["items_suppressed"],
            "released": n_released,
            "transactions": frame.height,
            "people": release.manifest.counts.n_users_after,
        },
    )


def join_small(groups: DataFrame, *, needed: int, union: bool, scratch: str) -> DataFrame:
    """Join groups of fewer than the needed terms, all of the log counted, with others of their shard."""
    joined = _executors.map_groups(groups, SHARD, _joined, f"{COUNTED}, {SHARD} int", needed=needed, union=union)
    return _executors.stored(joined, f"{scratch}/joined")


def _joined(groups: pl.DataFrame, *, needed: int, union: bool) -> pl.DataFrame:
    frame = groups.sort("group")
    into = pl.DataFrame({"group": frame["group"], "into": places(frame["whole"].to_list(), needed=needed)})
    frame = frame.join(into, on="group")
    sums = frame.group_by("into").agg(pl.col("members", "size", "whole").sum(), pl.col(SHARD).first())
    entries = frame.filter(pl.col("terms").list.len() > 0).explode("terms", "weights", "holders")
    weight = pl.col("weights").max() if union else (pl.col("weights") * pl.col("members")).sum()
    each = entries.group_by("into", "terms").agg(weight.alias("weights"), pl.col("holders").sum())
    each = each.join(sums.select("into", "members"), on="into")
    if not union:
        # The centroid of both is that of all their members.
        each = each.with_columns(weights=rounded((each["weights"] / each["members"]).to_numpy()))
    lists = each.sort("into", "terms").group_by("into", maintain_order=True).agg("terms", "weights", "holders")
    out = sums.join(lists, on="into", how="left").with_columns(pl.col("terms", "weights", "holders").fill_null([]))
    return out.rename({"into": "group"})


def places(sizes: list[int], *, needed: int) -> list[int]:
    """Return the group that each group is merged into: small ones are joined, smallest first, until each has enough.

    >>> places([9, 2, 5, 3], needed=6), places([9, 2], needed=6), places([5, 5, 5], needed=10)
    ([0, 1, 1, 1], [1, 1], [0, 0, 0])
    """
    into = list(range(len(sizes)))
    first, size = -1, needed
    for group in sorted(into, key=sizes.__getitem__):
        if size >= needed and sizes[group] >= needed:
            return into
        if size >= needed:
            last, first, size = first, group, 0
        into[group] = first
        size += sizes[group]
    # What is left over is not enough by itself.
    return [last if size < needed and last >= 0 and place == first else place for place in into]


def anonymize_plink(method: Plink, sharding: Sharding) -> ClusterRelease:
    """Return groups that keep the promise beside all others."""
    found = sharding.run(
        _grouped,
        replace(method, taxonomy=_shippable(method.taxonomy)),
        columns=("user", "query", "time"),
        schema=COUNTED,
        is_enough=lambda reports: method.strict or _can_be_joined(reports, p=method.p),
    )
    needed = size_needed(found.reports, p=method.p)
    groups = found.frame
    if not method.strict and any(each.sums["smallest"] < needed for each in found.reports if each.sums["members"]):
        union = method.representative is Representative.UNION
        groups = join_small(groups, needed=needed, union=union, scratch=sharding.scratch)
    manifest = _manifest(method, sharding, found, groups)
    written = OutputFormat(
        kind="groups",
        layout=Layout(format=Format.JSONL, has_header=False),
        arrange=_numbered,
        encode=aggregates.encode_groups,
    )
    if not method.strict:
        groups = groups.withColumn("holders", F.lit(None).cast("array<bigint>"))
    return ClusterRelease(
        frame=_renumbered(groups, "group", _RELEASED, seed=method.seed), written=written, manifest=manifest
    )


def _grouped(method: Plink, log: QueryLog) -> Outcome:
    """Return the groups of a shard with holders, also where these are not released, and their whole size."""
    grouping = method.group(log)
    groups = grouping.release.groups.frame
    of_user = grouping.profiles.frame.select("user", "terms").join(grouping.membership, on="user")
    whole = of_user.group_by("group").agg(whole=pl.col("terms").list.len().cast(pl.Int64).sum())
    held = of_user.explode("terms").group_by("group", "terms").agg(holders=pl.len().cast(pl.Int64))
    entries = groups.select("group", "terms", "weights").filter(pl.col("terms").list.len() > 0)
    entries = entries.explode("terms", "weights").join(held, on=["group", "terms"], maintain_order="left")
    lists = entries.group_by("group", maintain_order=True).agg("terms", "weights", "holders")
    frame = groups.select("group", "members", "size").join(whole, on="group", maintain_order="left")
    frame = frame.join(lists, on="group", how="left", maintain_order="left")
    # A group may have no terms left.
    frame = frame.with_columns(pl.col("terms", "weights", "holders").fill_null([]))
    weights = grouping.profiles.frame["weights"].explode(empty_as_null=False)
    sums = {
        "members": int(frame["members"].sum()),
        "whole": int(frame["whole"].sum()),
        "smallest": min(frame["whole"].to_list(), default=0),
        "not_binary": int((weights != 1).sum()),
    }
    return Outcome(frame=frame, manifest=grouping.release.manifest, sums=sums)


def size_needed(reports: list[ShardReport], *, p: float) -> int:
    """Return the least number of terms that a group must bring together, by the average profile of all users."""
    members = int(total(reports, "members"))
    return ceil(Fraction(int(total(reports, "whole")), members) / as_written(p)) if members else 0


def _can_be_joined(reports: list[ShardReport], *, p: float) -> bool:
    """Return whether all groups of each shard together are enough for one."""
    needed = size_needed(reports, p=p)
    return all(each.sums["whole"] >= needed for each in reports if each.sums["members"])


def _manifest(method: Plink, sharding: Sharding, found: Shards, groups: DataFrame) -> Manifest:
    reports, manifests = found.reports, found.manifests
    largest = F.coalesce(F.array_max("holders"), F.lit(0)).alias("largest")
    shared = groups.groupBy("members", largest).count().collect()
    sizes = groups.agg(F.sum(1 / F.col("whole")).alias("inverse"), F.min("whole").alias("least")).collect()[0]
    n_groups, n_members = sum(row["count"] for row in shared), int(total(reports, "members"))
    average = total(reports, "whole") / max(1, n_members)
    measures = {
        "groups": float(n_groups),
        "average_group_size": n_members / max(1, n_groups),
        "largest_share": max((row["largest"] / row["members"] for row in shared), default=0.0),
        "average_linkability": average * sizes["inverse"] / n_groups if n_groups else 0.0,
        "largest_linkability": average / sizes["least"] if n_groups else 0.0,
    }
    if method.strict:
        before = "largest_share_before_dropping"
        measures[before] = max(manifest.measures[before] for manifest in manifests)
    # Where small groups were joined, as it was before.
    measures["mean_similarity_to_group"] = mean(
        manifests, "mean_similarity_to_group", weights=[each.sums["members"] for each in reports]
    )
    n_open = sum(row["count"] for row in shared if row["largest"] > may_share(row["members"], p=method.p))
    notes = method.notes(n_open=n_open, is_binary=n_members > 0 and not total(reports, "not_binary"))
    warnings = list(dict.fromkeys([*notes, *sharding.base.warnings]))
    in_short = {name: round(value, 6) for name, value in measures.items()}
    return sharding.manifest(found, n_rows=n_groups, n_users=n_members, measures=in_short, warnings=warnings)


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.rename({"user": "group"}).with_columns(pl.col("group").cast(pl.Int64))


_OF, _KEY = "tally_of_this_shard", "tally_key_of_this_shard"
_BEFORE, _AFTER, _PEOPLE = "tally_before_in_this_shard", "tally_after_in_this_shard", "tally_people_of_this_shard"
_NAMED = "tally_with_identifier_in_this_shard"
_NUMBERS = (_BEFORE, _AFTER, _PEOPLE, _NAMED)
TALLIES = ", ".join([f"{_OF} string", f"{_KEY} binary", *(f"{name} bigint" for name in _NUMBERS)])
"""Of queries or URLs, for each a digest, its rows in the shard and in the release, the people who asked it, and 1 if a
released text of it holds an identifier."""


def tallies_of(log: QueryLog, released: QueryLog, *, bot_threshold: int | None, secret: bytes) -> pl.DataFrame:
    """Count the distinct queries and URLs of a shard, those of programs too; people are counted without them."""
    objects = read_objects(log.frame)
    users = log.frame["user"].gather(objects.place)
    is_person = rows_of_people(log, threshold=bot_threshold, removed={}).gather(objects.place)
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
    counted = pl.DataFrame(each.groupBy(_OF, _BEFORE, _AFTER).count().toArrow())
    measures: dict[str, float] = {}
    for name in ("queries", "urls"):
        own = counted.filter(pl.col(_OF) == name).select(_BEFORE, _AFTER, "count")
        before, after, n_each = (column.to_numpy() for column in own)
        measures |= losses_of(name, before, after, n_each=n_each) if own.height else {}
    return measures


def anonymize_kdelta(method: Kdelta, sharding: Sharding) -> ClusterRelease:
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
    return ClusterRelease(
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

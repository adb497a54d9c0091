"""clump, partition and plink on a cluster: groups are made in shards, and numbered over all of them.

An average profile of plink is one of all users, not of a shard: groups that are too small beside it are joined.
"""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import ceil

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil.data import Format, Layout, QueryLog
from queryveil.errors import BadInput, BadRow
from queryveil.formats import aggregates, transactions
from queryveil.methods import Clump, Partition, Plink
from queryveil.methods.plink._groups import as_written, may_share
from queryveil.methods.plink.plink import rounded
from queryveil.methods.settings import Representative
from queryveil.release import ColumnPolicy, Manifest
from queryveil.spark import _executors
from queryveil.spark._shards import SHARD, Outcome, Sharding, ShardReport, Shards, mean, total
from queryveil.spark._writing import ClusterRelease, OutputFormat, release_rows
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
    warnings = [*notes, *sharding.base.warnings]
    in_short = {name: round(value, 6) for name, value in measures.items()}
    return sharding.manifest(found, n_rows=n_groups, n_users=n_members, measures=in_short, warnings=warnings)


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.rename({"user": "group"}).with_columns(pl.col("group").cast(pl.Int64))

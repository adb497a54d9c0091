"""clump and partition on a cluster: transactions are made alike in shards and numbered over all of them."""

from dataclasses import replace
from functools import partial

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil.data import QueryLog
from queryveil.errors import BadInput, BadRow
from queryveil.formats.transactions import arrange_transactions, transactions_layout
from queryveil.methods import Clump, Partition
from queryveil.release import ColumnPolicy, Counts, Manifest, Release
from queryveil.spark._column_release import release_rows
from queryveil.spark._shards import SHARD, Outcome, Shards, check_shards, mean, merge_manifests, run_in_shards, total
from queryveil.spark._writing import ClusterRelease, DriverRelease, OutputFormat
from queryveil.spark.logs import SparkLog
from queryveil.text.taxonomy import Taxonomy

_ROWS = pa.schema([("number", pa.int64()), ("items", pa.list_(pa.string()))])


def anonymize_transactions(
    method: Clump | Partition, log: SparkLog, *, scratch: str, shards: int | None = None
) -> ClusterRelease | DriverRelease:
    """Return transactions of which each is one of k alike: k alike in a shard are k alike in the union."""
    check_shards(shards)
    base = method.anonymize(log.empty)
    if not log.n_rows:
        return DriverRelease(release=base)
    n_users = log.n_users
    found = run_in_shards(
        _alike,
        replace(method, taxonomy=shippable(method.taxonomy)),
        log,
        columns=("user", "query"),
        schema=_ROWS,
        n_users=n_users,
        shards=shards,
        scratch=scratch,
    )
    manifest = _manifest(base.manifest, found, n_rows=log.n_rows, n_users=n_users)
    if not manifest.counts.n_rows_after:
        return DriverRelease(release=Release(data=base.data, manifest=manifest))
    layout = transactions_layout(log.layout)
    written = OutputFormat(
        kind="transactions", layout=layout, arrange=partial(arrange_transactions, layout=layout), names={}
    )
    return ClusterRelease(frame=_renumber(found.frame, seed=method.seed), written=written, manifest=manifest)


def shippable(taxonomy: Taxonomy | None) -> Taxonomy | None:
    """Return the taxonomy that must go to the executors: WordNet need not, they have it."""
    return None if taxonomy is Taxonomy.wordnet() else taxonomy


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
        },
    )


def _manifest(base: Manifest, found: Shards, *, n_rows: int, n_users: int) -> Manifest:
    reports, manifests = found.reports, found.manifests
    n_after = int(total(reports, "transactions"))
    measures = {
        "ggd": round(sum(manifest.measures["ggd"] for manifest in manifests), 2),
        "ncp": round(mean(manifests, "ncp", weights=[each.sums["items"] for each in reports]), 6),
        "average_length": round(total(reports, "released") / max(1, n_after), 3),
        "average_level": round(
            mean(manifests, "average_level", weights=[each.sums["released"] for each in reports]), 3
        ),
    }
    counts = Counts(n_rows_before=n_rows, n_rows_after=n_after, n_users_before=n_users, n_users_after=n_after)
    return merge_manifests(base, manifests, counts=counts, measures=measures, warnings=base.warnings)


def _renumber(frame: DataFrame, *, seed: int | None) -> DataFrame:
    """Return transactions with new numbers over all shards, in an order that does not tell their shard."""
    # To `release_rows`, a transaction is a user with one row.
    rows = frame.select(F.concat_ws(" ", SHARD, "number").alias("user"), "items")
    released = release_rows(rows, ColumnPolicy(), seed=seed, protected=("items",))
    return released.frame.withColumnRenamed("user", "id")

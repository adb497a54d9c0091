"""clump and partition on a cluster: transactions are made alike in shards, and leave with numbers of the whole."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from queryveil.data import QueryLog
from queryveil.errors import BadInput, BadRow
from queryveil.formats.transactions import arrange_transactions, transactions_layout
from queryveil.methods import Clump, Partition
from queryveil.release import ColumnPolicy, Counts, Manifest, Release
from queryveil.spark.column_release import release_rows
from queryveil.spark.logs import SparkLog
from queryveil.spark.shards import SHARD, Outcome, Shards, check_shards, mean, merged, run_in_shards, total
from queryveil.spark.writing import Made, MadeHere, Written
from queryveil.text.taxonomy import Taxonomy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = pa.schema([("number", pa.int64()), ("items", pa.list_(pa.string()))])


def anonymize_transactions(
    method: Clump | Partition, log: SparkLog, *, scratch: str, shards: int | None = None
) -> Made | MadeHere:
    """Return transactions of which each is one of k alike: k alike in a shard are k alike in the union."""
    check_shards(shards)
    base = method.anonymize(log.empty)
    if not log.n_rows:
        return MadeHere(release=base)
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
        return MadeHere(release=Release(data=base.data, manifest=manifest))
    layout = transactions_layout(log.layout)
    written = Written(
        kind="transactions", layout=layout, arrange=partial(arrange_transactions, layout=layout), names={}
    )
    return Made(frame=_leaving(found.frame, seed=method.seed), written=written, manifest=manifest)


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
    told, manifests = found.told, found.manifests
    n_after = int(total(told, "transactions"))
    measures = {
        "ggd": round(sum(manifest.measures["ggd"] for manifest in manifests), 2),
        "ncp": round(mean(manifests, "ncp", weights=[each.sums["items"] for each in told]), 6),
        "average_length": round(total(told, "released") / max(1, n_after), 3),
        "average_level": round(mean(manifests, "average_level", weights=[each.sums["released"] for each in told]), 3),
    }
    counts = Counts(n_rows_before=n_rows, n_rows_after=n_after, n_users_before=n_users, n_users_after=n_after)
    return merged(base, manifests, counts=counts, measures=measures, warnings=base.warnings)


def _leaving(frame: DataFrame, *, seed: int | None) -> DataFrame:
    """Number the transactions anew over all shards, in an order that does not tell which shard one is from."""
    # To `leave`, a transaction is a user with one row.
    rows = frame.select(F.concat_ws(" ", SHARD, "number").alias("user"), "items")
    leaving = release_rows(rows, ColumnPolicy(), seed=seed, protected=("items",))
    return leaving.frame.withColumnRenamed("user", "id")

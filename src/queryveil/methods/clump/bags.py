"""Bags of nodes of a taxonomy, from a log or from transactions, and the release made of them."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import ROLES, Int32s, QueryLog, Transactions, with_own_texts
from queryveil.data.rows import Rows, group
from queryveil.errors import BadRow
from queryveil.formats import transactions_layout
from queryveil.guarantees import TransactionAnonymity
from queryveil.methods.clump._greedy import Clustering, cost
from queryveil.methods.settings import Unit
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail
from queryveil.text import tokenize
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import encode


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Bags:
    """The nodes of each transaction that has one, and what was left out."""

    nodes: Rows[np.int32]
    removed: dict[str, int]


def bags_of(data: QueryLog | Transactions, taxonomy: Taxonomy, *, unit: Unit, distinct: bool) -> Bags:
    """Find the nodes of every transaction; words of a log that the taxonomy does not know are dropped and counted."""
    progress.step("finding items in the taxonomy")
    removed = {"bad_rows_skipped": data.reading.n_bad_rows_skipped}
    if isinstance(data, Transactions):
        owner, items = _exploded(data)
        n_rows = data.n_transactions
    else:
        owner, items = _words(data, unit=unit)
        n_rows = data.n_rows if unit is Unit.QUERY else data.n_users
    codes, words = encode(items)
    nodes = taxonomy.find_all(words)[codes] if len(words) else codes
    if isinstance(data, Transactions) or data.terms_are_items:
        _check_known(nodes, owner)
    known = nodes >= 0
    removed["words_outside_the_taxonomy"] = int((~known).sum())
    owner, nodes = owner[known], nodes[known]
    if distinct:
        pairs = np.unique(owner.astype(np.int64) * taxonomy.n_nodes + nodes)
        removed["duplicate_items"] = len(nodes) - len(pairs)
        owner, nodes = (pairs // taxonomy.n_nodes).astype(np.int32), (pairs % taxonomy.n_nodes).astype(np.int32)
    ptr, places = group(owner, n_rows)
    bags = Rows(ptr, nodes[places].astype(np.int32))
    there = np.flatnonzero(bags.lengths)
    removed["transactions_without_items"] = n_rows - len(there)
    return Bags(nodes=bags.take(there), removed=removed)


def _exploded(data: Transactions) -> tuple[Int32s, pl.Series]:
    lists = data.frame["items"]
    owner = np.repeat(np.arange(len(lists), dtype=np.int32), lists.list.len().to_numpy())
    return owner, lists.explode(empty_as_null=False)


def _words(log: QueryLog, *, unit: Unit) -> tuple[Int32s, pl.Series]:
    tokens = tokenize(log.frame["query"], by_blanks=log.terms_are_items)
    terms = tokens.row_terms()
    row = terms.row_of_entry.astype(np.int32)
    owner = row if unit is Unit.QUERY else encode(log.frame["user"])[0][row]
    return owner, tokens.vocabulary.gather(terms.values)


def _check_known(nodes: Int32s, owner: Int32s) -> None:
    unknown = np.flatnonzero(nodes < 0)
    if len(unknown):
        raise BadRow(
            "the transactions",
            int(owner[unknown[0]]) + 1,
            reason=f"an item is outside the taxonomy ({len(unknown)} such in all); add them to it, or leave them out",
        )


def no_clusters() -> Clustering:
    """Return the clustering of no transactions at all: an empty log is no failure."""
    return Clustering(cluster_of=np.zeros(0, np.int32), released=Rows.from_lists([]), distortion=0.0)


def release_of(
    data: QueryLog | Transactions,
    bags: Bags,
    clustering: Clustering,
    taxonomy: Taxonomy,
    *,
    promise: TransactionAnonymity,
    method: str,
    parameters: dict[str, str | int | float | bool | None],
    seeded: bool,
    rng: np.random.Generator,
) -> Release:
    """Write the clusters as transactions in a new order, with what they cost."""
    spent = cost(clustering, bags.nodes, parent=taxonomy.parent, loss=taxonomy.loss, level=taxonomy.level)
    frame = _rows(clustering, taxonomy, rng)
    n_released = int(frame["items"].list.len().sum())
    columns = data.columns if isinstance(data, QueryLog) else []
    n_users = data.n_users if isinstance(data, QueryLog) else data.n_transactions
    manifest = Manifest(
        method=method,
        promise=promise,
        parameters=parameters,
        counts=Counts(
            n_rows_before=data.n_rows, n_rows_after=frame.height, n_users_before=n_users, n_users_after=frame.height
        ),
        removed=bags.removed | {"items_suppressed": len(bags.nodes.values) - n_released},
        measures={
            "ggd": round(spent.distortion, 2),
            "ncp": round(spent.ncp, 6),
            "average_length": round(spent.average_length, 3),
            "average_level": round(spent.average_level, 3),
        },
        columns=ColumnReport(
            ids=Ids.FRESH,
            time=TimeDetail.DROP,
            dropped=tuple(name for name in columns if name in ROLES and name not in ("user", "query")),
            n_others_dropped=sum(name not in ROLES for name in columns),
        ),
        warnings=("made with a seed: whoever knows it can undo the shuffling of rows",) if seeded else (),
    )
    return Release(
        data=Transactions(frame=frame, layout=transactions_layout(data.layout), reading=data.reading), manifest=manifest
    )


def _rows(clustering: Clustering, taxonomy: Taxonomy, rng: np.random.Generator) -> pl.DataFrame:
    released = clustering.released
    lists = released.to_series(taxonomy.names.cast(pl.String).gather(released.values))
    items = lists.gather(rng.permutation(clustering.cluster_of))
    ids = pl.int_range(1, len(items) + 1, eager=True).cast(pl.String)
    frame = pl.DataFrame({"id": ids, "items": items.cast(pl.List(pl.String))})
    return with_own_texts(frame, but="id")

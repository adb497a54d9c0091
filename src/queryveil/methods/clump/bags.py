"""Bags of nodes of a taxonomy, from a log or from transactions, and the release made of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import ROLES, Int32s, Int64s, QueryLog, Transactions, with_own_texts
from queryveil.data.rows import group
from queryveil.errors import BadParameter, BadRow
from queryveil.formats import transactions_layout
from queryveil.guarantees import TransactionAnonymity
from queryveil.methods.clump._greedy import Clustering, cost
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail
from queryveil.text import tokenize
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import encode


class Unit(StrEnum):
    """What a transaction is made of."""

    USER = "user"
    QUERY = "query"


def parse_unit(unit: Unit | str) -> Unit:
    """Read `user` or `query`.

    >>> parse_unit("query")
    <Unit.QUERY: 'query'>
    """
    try:
        return Unit(unit)
    except ValueError:
        raise BadParameter("unit", unit, allowed="user or query") from None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Bags:
    """Transactions as compressed rows of nodes, those without a node left out; and what was left out."""

    row_ptr: Int64s
    nodes: Int32s
    removed: dict[str, int]

    @property
    def n_rows(self) -> int:
        """The number of transactions that have a node."""
        return len(self.row_ptr) - 1


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
    lengths = np.diff(ptr)
    removed["transactions_without_items"] = int((lengths == 0).sum())
    return Bags(
        row_ptr=np.concatenate([[0], np.cumsum(lengths[lengths > 0])]).astype(np.int64),
        nodes=nodes[places].astype(np.int32),
        removed=removed,
    )


def _exploded(data: Transactions) -> tuple[Int32s, pl.Series]:
    lists = data.frame["items"]
    owner = np.repeat(np.arange(len(lists), dtype=np.int32), lists.list.len().to_numpy())
    return owner, lists.explode(empty_as_null=False)


def _words(log: QueryLog, *, unit: Unit) -> tuple[Int32s, pl.Series]:
    tokens = tokenize(log.frame["query"], by_blanks=log.terms_are_items)
    length = np.diff(tokens.query_ptr)[tokens.row_query]
    row = np.repeat(np.arange(log.n_rows, dtype=np.int32), length)
    first = np.cumsum(length) - length
    place = tokens.query_ptr[tokens.row_query][row] + np.arange(len(row)) - first[row]
    owner = row if unit is Unit.QUERY else encode(log.frame["user"])[0][row]
    return owner, tokens.vocabulary.gather(tokens.terms[place])


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
    nothing = np.zeros(0, np.int32)
    return Clustering(cluster_of=nothing, released_ptr=np.zeros(1, np.int64), released=nothing, distortion=0.0)


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
    spent = cost(
        clustering.cluster_of,
        clustering.released_ptr,
        clustering.released,
        row_ptr=bags.row_ptr,
        items=bags.nodes,
        parent=taxonomy.parent,
        loss=taxonomy.loss,
        level=taxonomy.level,
    )
    frame = _rows(clustering, taxonomy, rng)
    n_released = int(frame["items"].list.len().sum())
    columns = data.columns if isinstance(data, QueryLog) else []
    n_users = data.n_users if isinstance(data, QueryLog) else data.n_transactions
    manifest = Manifest(
        method=method,
        promise=promise,
        parameters=parameters | {"taxonomy": taxonomy.source},
        counts=Counts(
            n_rows_before=data.n_rows, n_rows_after=frame.height, n_users_before=n_users, n_users_after=frame.height
        ),
        removed=bags.removed | {"items_suppressed": len(bags.nodes) - n_released},
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
    names = taxonomy.names.gather(clustering.released)
    lengths = np.diff(clustering.released_ptr)
    cluster = np.repeat(np.arange(clustering.n_clusters), lengths)
    lists = pl.DataFrame({"cluster": cluster, "items": names}).group_by("cluster", maintain_order=True).agg("items")
    of_row = pl.DataFrame({"cluster": rng.permutation(clustering.cluster_of).astype(np.int64)})
    items = of_row.join(lists, on="cluster", how="left", maintain_order="left")["items"]
    frame = pl.DataFrame(
        {
            "id": pl.int_range(1, of_row.height + 1, eager=True).cast(pl.String),
            "items": items.fill_null([]).cast(pl.List(pl.String)),
        }
    )
    return with_own_texts(frame, but="id")

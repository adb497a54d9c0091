"""Released rows that give a user a query of their own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.verify.arrivals import Ints
from queryveil.verify.pairs import folded_all
from queryveil.verify.swap_findings import swap_witness
from queryveil.verify.tokens import Numbered, number
from queryveil.verify.verdict import Verdict, Witness


class OwnQueries(NamedTuple):
    """How many rows pair a user with a query of their own, and some of them."""

    n: int
    witnesses: list[Witness]


def own_queries(
    users: Numbered, texts: Numbered, *, earliest: Ints, latest: Ints, remembered: int | None
) -> OwnQueries:
    """Find rows whose user issued the query: ever, or for certain among the last `remembered` events when it left.

    `users` and `texts` number those of the arrivals, and then those of the rows.
    """
    n_came = users.codes.size - earliest.size
    queries = number(folded_all(texts.distinct)).codes[texts.codes]
    pairs = pl.Series(users.codes * (int(queries.max(initial=0)) + 1) + queries)
    issued = pl.DataFrame({"pair": pairs[:n_came], "arrival": np.arange(n_came)})
    rows = pl.DataFrame({"pair": pairs[n_came:], "earliest": earliest, "latest": latest}).with_row_index(
        "row", offset=1
    )
    own = rows.join(issued, on="pair", how="semi", maintain_order="left")
    issued = issued.join(own, on="pair", how="semi", maintain_order="left")
    if remembered is not None:
        own = _certain(own, issued=issued, remembered=remembered)
    counted = own.join(issued.group_by("pair").agg(pl.len().alias("n")), on="pair")
    kept = counted.sort("n", "row").head(Verdict.N_KEPT)
    return OwnQueries(
        counted.height,
        [swap_witness("own_query", row=row, there=n, needed=0) for row, n in kept.select("row", "n").iter_rows()],
    )


def _certain(own: pl.DataFrame, *, issued: pl.DataFrame, remembered: int) -> pl.DataFrame:
    """Leave the rows whose pair is remembered at every arrival from the earliest to the latest.

    A pair that is issued again before it is forgotten stays remembered: such issues are one chain, up to its `end`.
    """
    starts_anew = (pl.col("arrival") - pl.col("arrival").shift(1).over("pair") > remembered).fill_null(True)
    chains = (
        issued.sort("pair", "arrival")
        .with_columns(chain=starts_anew.cum_sum())
        .with_columns(end=pl.col("arrival").max().over("chain") + remembered - 1)
        .sort("arrival")
    )
    found = own.sort("earliest", maintain_order=True).join_asof(
        chains.select("pair", "end", "arrival"),
        left_on="earliest",
        right_on="arrival",
        by="pair",
        check_sortedness=False,
    )
    return found.filter(pl.col("end") >= pl.col("latest")).select(own.columns)

"""What terms are worth: a table with a row for each term and columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from queryveil.data import Floats
from queryveil.errors import BadInput
from queryveil.text.tokens import normalize


def worth_of_terms(vocabulary: pl.Series, *, values: pl.DataFrame, columns: Sequence[str]) -> tuple[Floats, int]:
    """Multiply the columns for each term: gives the products, 0 without a value, and how many terms have none.

    >>> table = pl.DataFrame({"term": ["Wine", "jaguar"], "bid": [0.5, 2.0], "clicks": [10, None]})
    >>> worth, n_without = worth_of_terms(pl.Series(["jaguar", "wine", "red"]), values=table, columns=["bid", "clicks"])
    >>> worth.tolist(), n_without
    ([0.0, 5.0, 0.0], 2)
    """
    try:
        numbers = values.select(pl.col(name).cast(pl.Float64) for name in columns)
    except pl.exceptions.PolarsError:
        raise BadInput("the table of term values has values that are negative or not numbers") from None
    table = numbers.with_columns(normalize(values["term"].cast(pl.String)).alias("term"))
    n_twice = table.height - table["term"].n_unique()
    if n_twice:
        raise BadInput(f"the table of term values has {n_twice} terms more than once (case does not count)")
    worth = pl.lit(1.0)
    for name in columns:
        worth = worth * pl.col(name)
    table = table.select("term", worth=worth)
    if table.filter((pl.col("worth") < 0) | ~pl.col("worth").is_finite()).height:
        raise BadInput("the table of term values has values that are negative or not numbers")
    found = vocabulary.to_frame("term").join(table, on="term", how="left", maintain_order="left")["worth"]
    return found.fill_null(0.0).to_numpy(), found.null_count()

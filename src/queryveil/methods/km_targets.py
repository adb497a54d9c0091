"""What km tries to keep: the eight target functions, and the table of term values that four of them read."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import polars as pl

from queryveil.errors import BadInput, BadParameter
from queryveil.kernels.arrays import Floats
from queryveil.text.term_values import worth_of_terms


class Target(StrEnum):
    """What the terms that stay should be worth."""

    LOG_SIZE = "log_size"
    USERS = "users"
    BID = "bid"
    CLICKS = "clicks"
    IMPRESSIONS = "impressions"
    REVENUE = "revenue"
    RANDOM = "random"
    FIS = "fis"


VALUE_COLUMNS = {
    Target.BID: ("bid",),
    Target.CLICKS: ("clicks",),
    Target.IMPRESSIONS: ("impressions",),
    Target.REVENUE: ("bid", "clicks"),
}
"""The columns of the table of term values that a money target multiplies."""


def parse_target(target: Target | str) -> Target:
    """Read a target function's name.

    >>> parse_target("bid")
    <Target.BID: 'bid'>
    """
    try:
        return Target(target)
    except ValueError:
        raise BadParameter("target", target, allowed="one of " + ", ".join(Target)) from None


def check_values(target: Target, values: pl.DataFrame | None) -> None:
    """Raise if the target needs a table of term values, or columns of it, that are not there."""
    needed = VALUE_COLUMNS.get(target)
    if needed is None:
        return
    if values is None:
        raise BadParameter("values", "none", allowed=f"a table with the columns term, {', '.join(needed)} for {target}")
    missing = [name for name in ("term", *needed) if name not in values.columns]
    if missing:
        # Privacy: the table may be a log without a header, so its own names are not quoted.
        raise BadInput(
            f"the table of term values has no column {', '.join(missing)}, which the target {target} needs; "
            f"its first line must name its columns"
        )


def term_values(vocabulary: pl.Series, *, target: Target, values: pl.DataFrame | None) -> tuple[Floats, int]:
    """Give what one occurrence of each term is worth, and how many terms the table has no value for."""
    check_values(target, values)
    needed = VALUE_COLUMNS.get(target)
    if needed is None or values is None:
        return np.ones(len(vocabulary)), 0
    return worth_of_terms(vocabulary, values=values, columns=needed)

"""Find a table or figure by its name and fill it in."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from queryveil.errors import BadParameter
from queryveil.log import QueryLog
from queryveil.reproduce import km_fig1, km_fig2, km_table3, km_table5, km_table6, km_table7
from queryveil.reproduce.km_material import gather
from queryveil.reproduce.km_outcomes import Outcomes
from queryveil.reproduce.table import Table

_BUILDERS: dict[str, Callable[[Outcomes], Table]] = {
    "km-table3": km_table3.build,
    "km-table5": km_table5.build,
    "km-table6": km_table6.build,
    "km-table7": km_table7.build,
    "km-fig1": km_fig1.build,
    "km-fig2": km_fig2.build,
}

NAMES = tuple(_BUILDERS)
"""The tables and figures that can be reproduced."""


def reproduce(
    name: str,
    log: QueryLog | None = None,
    *,
    users: int | None = None,
    values: pl.DataFrame | None = None,
    seed: int = 0,
) -> Table:
    """Measure what a paper's table or figure shows, and put theirs beside ours.

    Without a log, one of the paper's shape is made up, with `users` users (left out: as many as the paper's).
    `values` is the table of term values (term, bid, clicks, impressions); without it, values are made up.
    The same arguments give the same figures.

    Examples
    --------
    >>> reproduce("km-table3", users=200).rows[4][:5]
    ('term frq.', 'user frq.', 0.761, 0.0, 117916)
    """
    if name not in _BUILDERS:
        raise BadParameter("name", name, allowed="one of " + ", ".join(NAMES))
    if log is not None and users is not None:
        raise BadParameter("users", users, allowed="left out when a log is given")
    material = gather(log, users=users, values=values, seed=seed)
    return _BUILDERS[name](Outcomes(material, seed=seed))

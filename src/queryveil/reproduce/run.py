"""Find a table or figure by its name and fill it in."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from queryveil.errors import BadParameter
from queryveil.log import QueryLog
from queryveil.reproduce import (
    clump_fig3,
    clump_fig4,
    clump_fig5,
    clump_fig6,
    clump_fig7,
    clump_material,
    kdelta_fig1,
    kdelta_fig2,
    kdelta_material,
    kdelta_runs,
    km_fig1,
    km_fig2,
    km_material,
    km_table3,
    km_table5,
    km_table6,
    km_table7,
    plink_fig2,
    plink_fig3,
    plink_fig4,
    plink_fig5,
    plink_fig6,
    plink_material,
    plink_runs,
    swap_fig4,
    swap_fig5,
    swap_fig6,
    swap_fig7,
    swap_fig8,
    swap_material,
    swap_runs,
    swap_table2,
    swap_table3,
    swap_table4,
)
from queryveil.reproduce.clump_runs import Runs
from queryveil.reproduce.km_outcomes import Outcomes
from queryveil.reproduce.table import Table
from queryveil.utility.corpus import Corpus

_KM: dict[str, Callable[[Outcomes], Table]] = {
    "km-table3": km_table3.build,
    "km-table5": km_table5.build,
    "km-table6": km_table6.build,
    "km-table7": km_table7.build,
    "km-fig1": km_fig1.build,
    "km-fig2": km_fig2.build,
}
_CLUMP: dict[str, Callable[[Runs], Table]] = {
    "clump-fig3": clump_fig3.build,
    "clump-fig4": clump_fig4.build,
    "clump-fig5": clump_fig5.build,
    "clump-fig6": clump_fig6.build,
    "clump-fig7": clump_fig7.build,
}
_KDELTA: dict[str, Callable[[kdelta_runs.Runs], Table]] = {
    "kdelta-fig1": kdelta_fig1.build,
    "kdelta-fig2": kdelta_fig2.build,
}
_PLINK: dict[str, Callable[[plink_runs.Runs], Table]] = {
    "plink-fig2": plink_fig2.build,
    "plink-fig3": plink_fig3.build,
    "plink-fig4": plink_fig4.build,
    "plink-fig5": plink_fig5.build,
    "plink-fig6": plink_fig6.build,
}
_SWAP: dict[str, Callable[[swap_runs.Runs], Table]] = {
    "swap-table2": swap_table2.build,
    "swap-table3": swap_table3.build,
    "swap-fig4": swap_fig4.build,
    "swap-fig5": swap_fig5.build,
    "swap-fig6": swap_fig6.build,
    "swap-fig7": swap_fig7.build,
    "swap-fig8": swap_fig8.build,
}
_SWAP_LABELS = "swap-table4"

NAMES = (*_KM, *_CLUMP, *_KDELTA, *_PLINK, *_SWAP, _SWAP_LABELS)
"""The tables and figures that can be reproduced."""


def reproduce(
    name: str,
    log: QueryLog | None = None,
    *,
    users: int | None = None,
    values: pl.DataFrame | None = None,
    corpus: Corpus | None = None,
    seed: int = 0,
) -> Table:
    """Measure what a paper's table or figure shows, and put theirs beside ours.

    Without a log, one of the paper's shape is made up, with `users` users (left out: as many as the paper's).
    `values` is the table of term values (term, bid, clicks, impressions) for the km tables; without it, values are
    made up. `corpus` is what the plink figures search; without it, WordNet's glosses. The same arguments give the same
    figures, but for the seconds of clump-fig7, swap-fig4, swap-fig8 and swap-table2 and the memory of swap-table3.

    Examples
    --------
    >>> reproduce("km-table3", users=200).rows[4][:5]
    ('term frq.', 'user frq.', 0.761, 0.0, 117916)
    """
    if name not in NAMES:
        raise BadParameter("name", name, allowed="one of " + ", ".join(NAMES))
    if log is not None and users is not None:
        raise BadParameter("users", users, allowed="left out when a log is given")
    if corpus is not None and name not in _PLINK:
        raise BadParameter("corpus", "one", allowed=f"left out for {name}, which searches nothing")
    if name == _SWAP_LABELS:
        if log is not None or users is not None or values is not None:
            raise BadParameter("name", name, allowed="given alone: the table is about labelled queries of the package")
        return swap_table4.build()
    if name in _KM:
        return _KM[name](Outcomes(km_material.gather(log, users=users, values=values, seed=seed), seed=seed))
    if values is not None:
        raise BadParameter("values", "a table", allowed=f"left out for {name}, which has no use for term values")
    if name in _PLINK:
        material = plink_material.gather(log, users=users, corpus=corpus, seed=seed)
        return _PLINK[name](plink_runs.Runs(material, seed=seed))
    if name in _SWAP:
        return _SWAP[name](swap_runs.Runs(swap_material.gather(log, users=users, seed=seed), seed=seed))
    if name in _KDELTA:
        return _KDELTA[name](kdelta_runs.Runs(kdelta_material.gather(log, users=users, seed=seed), seed=seed))
    return _CLUMP[name](Runs(clump_material.gather(log, users=users, seed=seed), seed=seed))

"""Find a table or figure by its name and fill it in."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.papers import (
    clump,
    clump_runs,
    kdelta,
    kdelta_runs,
    km_figures,
    km_runs,
    km_tables,
    plink,
    plink_runs,
    swap_figures,
    swap_runs,
    swap_tables,
)
from queryveil.papers.clump_runs import Runs
from queryveil.papers.km_runs import Outcomes
from queryveil.papers.table import Table
from queryveil.utility.search_index import Corpus

_KM: dict[str, Callable[[Outcomes], Table]] = {
    "km-table3": km_tables.build,
    "km-table5": km_tables.build_km_table5,
    "km-table6": km_tables.build_km_table6,
    "km-table7": km_tables.build_km_table7,
    "km-fig1": km_figures.build,
    "km-fig2": km_figures.build_km_fig2,
}
_CLUMP: dict[str, Callable[[Runs], Table]] = {
    "clump-fig3": clump.build,
    "clump-fig4": clump.build_clump_fig4,
    "clump-fig5": clump.build_clump_fig5,
    "clump-fig6": clump.build_clump_fig6,
    "clump-fig7": clump.build_clump_fig7,
}
_KDELTA: dict[str, Callable[[kdelta_runs.Runs], Table]] = {
    "kdelta-fig1": kdelta.build,
    "kdelta-fig2": kdelta.build_kdelta_fig2,
}
_PLINK: dict[str, Callable[[plink_runs.Runs], Table]] = {
    "plink-fig2": plink.build,
    "plink-fig3": plink.build_plink_fig3,
    "plink-fig4": plink.build_plink_fig4,
    "plink-fig5": plink.build_plink_fig5,
    "plink-fig6": plink.build_plink_fig6,
}
_SWAP: dict[str, Callable[[swap_runs.Runs], Table]] = {
    "swap-table2": swap_tables.build,
    "swap-table3": swap_tables.build_swap_table3,
    "swap-fig4": swap_figures.build,
    "swap-fig5": swap_figures.build_swap_fig5,
    "swap-fig6": swap_figures.build_swap_fig6,
    "swap-fig7": swap_figures.build_swap_fig7,
    "swap-fig8": swap_figures.build_swap_fig8,
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
        return swap_tables.build_swap_table4()
    if name in _KM:
        return _KM[name](Outcomes(km_runs.gather(log, users=users, values=values, seed=seed), seed=seed))
    if values is not None:
        raise BadParameter("values", "a table", allowed=f"left out for {name}, which has no use for term values")
    if name in _PLINK:
        material = plink_runs.gather(log, users=users, corpus=corpus, seed=seed)
        return _PLINK[name](plink_runs.Runs(material, seed=seed))
    if name in _SWAP:
        return _SWAP[name](swap_runs.Runs(swap_runs.gather(log, users=users, seed=seed), seed=seed))
    if name in _KDELTA:
        return _KDELTA[name](kdelta_runs.Runs(kdelta_runs.gather(log, users=users, seed=seed), seed=seed))
    return _CLUMP[name](Runs(clump_runs.gather(log, users=users, seed=seed), seed=seed))

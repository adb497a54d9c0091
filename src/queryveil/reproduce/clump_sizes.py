"""The sizes at which Fard and Wang measure: the first 1,000 and 10,000 transactions, and all."""

from __future__ import annotations

from queryveil.reproduce.clump_runs import Method, Run, Runs

SIZES = (1_000, 10_000)


def sizes(runs: Runs) -> tuple[int, ...]:
    """Give those of the sizes that the log has, and its own."""
    n_rows = runs.material.n_rows
    return (*(size for size in SIZES if size < n_rows), n_rows)


def sized(runs: Runs, method: Method, *, k: int, size: int) -> Run:
    """Give the run of a size; that of the whole log is the one that the other figures use."""
    return Run(method=method, k=k, size=size if size < runs.material.n_rows else None)

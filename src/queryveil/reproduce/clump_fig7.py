"""Fard and Wang, figure 7: running time."""

from __future__ import annotations

from queryveil.methods.clump_core import COMPARE_UP_TO
from queryveil.reproduce.clump_runs import METHODS_NOTE, Method, Runs
from queryveil.reproduce.clump_sizes import sized, sizes
from queryveil.reproduce.table import OURS, THEIRS, Cell, Table, claim

K = 5
METHODS = (Method.CLUMP1, Method.PARTITION, Method.REFINED)
LINEAR = 2


def build(runs: Runs) -> Table:
    """Give the seconds of each method for growing sizes, and how the time per transaction changes."""
    found = sizes(runs)
    runs.warm_up(METHODS, k=K)
    wanted = {method: [sized(runs, method, k=K, size=size) for size in found] for method in METHODS}
    runs.make(run for group in wanted.values() for run in group)
    seconds = {method: [runs.seconds(run) for run in group] for method, group in wanted.items()}
    growth = {
        method: [took / size / (times[0] / found[0]) for took, size in zip(times, found, strict=True)]
        for method, times in seconds.items()
    }
    return Table(
        name="clump-fig7",
        title="Fard and Wang, figure 7: running time, k=5, r=10",
        columns=(
            "method",
            "whose",
            *(f"s, |D|={size:,}" for size in found),
            *(f"per transaction, |D|={size:,}" for size in found),
        ),
        rows=tuple(_rows(seconds, growth, n_sizes=len(found))),
        notes=(
            *runs.material.notes,
            METHODS_NOTE,
            "seconds are this machine's, of the clustering alone, one run each; they differ from run to run",
            "per transaction: the time for one transaction, that at the smallest size being 1",
            "theirs: the figure is only drawn in the paper (Visual C++, 2.99 GHz), so the cells are empty",
            f"Clump refined runs algorithm 1 too, twice, up to {COMPARE_UP_TO:,} transactions, and not above",
            *_claims(seconds, growth),
        ),
    )


def _rows(
    seconds: dict[Method, list[float]], growth: dict[Method, list[float]], *, n_sizes: int
) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for method in METHODS:
        if method is not Method.REFINED:
            rows.append((str(method), THEIRS, *(None,) * (2 * n_sizes)))
        took = (round(second, 3) for second in seconds[method])
        rows.append((str(method), OURS, *took, *(round(ratio, 2) for ratio in growth[method])))
    return rows


def _claims(seconds: dict[Method, list[float]], growth: dict[Method, list[float]]) -> list[str]:
    clump1, partition = seconds[Method.CLUMP1][-1], seconds[Method.PARTITION][-1]
    claims = [
        claim(
            "Clump takes longer than Partition",
            holds=clump1 > partition,
            figures=f"{clump1 / partition:.1f} times as long for all transactions",
        )
    ]
    most = max(growth[Method.CLUMP1])
    if len(growth[Method.CLUMP1]) > 1:
        claims.append(
            claim(
                "the time of Clump grows linearly",
                holds=most < LINEAR,
                figures=f"at most {most:.1f} times as long per transaction as at the smallest size; "
                f"{LINEAR} is our limit",
            )
        )
    return claims

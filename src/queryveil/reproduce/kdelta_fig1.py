"""Hong et al., figure 1: queries added and suppressed, against the users, k and delta."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from queryveil.reproduce.kdelta_runs import (
    DELTA,
    DELTAS,
    KS,
    TREND_NOTE,
    VARIANTS_NOTE,
    Figures,
    K,
    Measure,
    Run,
    Runs,
    Variant,
    trend,
)
from queryveil.reproduce.table import DRAWN_NOTE, OURS, THEIRS, Cell, Table, at_each, claim

TOTAL, PER_USER, PER_ROW = "total", "per user", "per row"
COUNTS: dict[str, tuple[Measure, Measure]] = {
    TOTAL: (lambda found: found.added, lambda found: found.suppressed),
    PER_USER: (lambda found: found.added / found.n_users, lambda found: found.suppressed / found.n_users),
    PER_ROW: (lambda found: found.added / found.n_rows, lambda found: found.suppressed / found.n_rows),
}
DIGITS = {TOTAL: 0, PER_USER: 1, PER_ROW: 3}


def edits_per_user(found: Figures) -> float:
    """Rows added and suppressed, per user."""
    return found.edits / found.n_users


def edits_per_row(found: Figures) -> float:
    """Rows added and suppressed, per row there was."""
    return found.edits / found.n_rows


def build(runs: Runs) -> Table:
    """Give rows added and suppressed for the paper's centroids and for ours."""
    users = {variant: runs.by_size(variant) for variant in Variant}
    ks = {variant: runs.possible(Run(variant=variant, k=k) for k in KS) for variant in Variant}
    deltas = {variant: runs.possible(Run(variant=variant, delta=delta) for delta in DELTAS) for variant in Variant}
    return Table(
        name="kdelta-fig1",
        title=f"Hong et al., figure 1: queries added (+), suppressed (-); k={K} but in (b), delta={DELTA} but in (c)",
        columns=("panel", "count", "whose", "at", *(f"{variant} {sign}" for variant in Variant for sign in "+-")),
        rows=(
            _theirs("(a)", TOTAL, "rises"),
            _theirs("(a)", PER_USER, "falls"),
            *(row for count in COUNTS for row in _ours(runs, "(a)", count, users)),
            _theirs("(b)", PER_USER, None),
            *(row for count in (PER_USER, PER_ROW) for row in _ours(runs, "(b)", count, ks)),
            _theirs("(c)", PER_USER, "falls"),
            *(row for count in (PER_USER, PER_ROW) for row in _ours(runs, "(c)", count, deltas)),
        ),
        notes=(
            *runs.material.notes,
            VARIANTS_NOTE,
            TREND_NOTE,
            DRAWN_NOTE + f"; nor does it say which k and delta the other panels have, {K} and {DELTA} are ours",
            *runs.left_out(len(runs.material.sizes), users[Variant.ROUNDED], what="samples"),
            *runs.left_out(len(KS), ks[Variant.ROUNDED], what="values of k"),
            *runs.left_out(len(DELTAS), deltas[Variant.ROUNDED], what="values of delta"),
            *_by_users(runs, users),
            *_by_k(runs, ks),
            *_by_delta(runs, deltas),
            _savings(runs),
        ),
    )


def _theirs(panel: str, count: str, way: str | None) -> tuple[Cell, ...]:
    return (panel, count, THEIRS, None, way, way, *(None,) * (2 * len(Variant) - 2))


def _ours(runs: Runs, panel: str, count: str, by_variant: dict[Variant, list[Run]]) -> Iterator[tuple[Cell, ...]]:
    digits = DIGITS[count] or None
    for same in zip(*by_variant.values(), strict=True):
        cells = (round(runs.mean(run, measure), digits) for run in same for measure in COUNTS[count])
        at = {"(a)": f"{runs.n_users(same[0]):,} users", "(b)": f"k={same[0].k}", "(c)": f"delta={same[0].delta}"}
        yield (panel, count, OURS, at[panel], *cells)


def _says(runs: Runs, settings: Iterable[Run], names: Iterable[object], measure: Measure, *, digits: int) -> str:
    return at_each(names, runs.curve(settings, measure), digits=digits)


def _by_users(runs: Runs, users: dict[Variant, list[Run]]) -> Iterator[str]:
    paper = users[Variant.ROUNDED]
    sizes = [f"{runs.n_users(run):,}" for run in paper]
    yield claim(
        "the total grows with the users",
        holds=trend(runs.curve(paper, lambda found: found.edits)) == "rises",
        figures=_says(runs, paper, sizes, lambda found: found.edits, digits=0),
    )
    for variant, settings in users.items():
        yield claim(
            f"the number per user falls as there are more ({variant})",
            holds=trend(runs.curve(settings, edits_per_user)) == "falls",
            figures=f"{_says(runs, settings, sizes, edits_per_user, digits=1)}, {runs.change(settings, edits_per_user)}"
            f"; per row, which long histories tilt less, {_says(runs, settings, sizes, edits_per_row, digits=3)}, "
            + runs.change(settings, edits_per_row),
        )
    widest = max(runs.spread(run, edits_per_user) for run in paper)
    yield (
        f"logs of the same size lie up to {widest:.1f} apart per user and "
        f"{max(runs.spread(run, edits_per_row) for run in paper):.3f} per row (paper, rounded)"
    )
    kept = runs.by_size(Variant.ROUNDED, min_cluster_users=1)
    yield (
        "clusters of one user are left out before, which the paper leaves open: per user "
        + _says(runs, paper, sizes, lambda found: found.n_rare_rows / found.n_users, digits=1)
        + " rows; if they stay, per user "
        + _says(runs, kept, [f"{runs.n_users(run):,}" for run in kept], edits_per_user, digits=1)
        + " are added or suppressed (paper, rounded)"
    )


def _by_k(runs: Runs, ks: dict[Variant, list[Run]]) -> Iterator[str]:
    names = [f"k={run.k}" for run in ks[Variant.ROUNDED]]
    for variant, settings in ks.items():
        figures = _says(runs, settings, names, edits_per_user, digits=1)
        way = trend(runs.curve(settings, edits_per_user))
        yield f"the number per user as k grows, of which the text says nothing ({variant}): {way}, {figures}"


def _by_delta(runs: Runs, deltas: dict[Variant, list[Run]]) -> Iterator[str]:
    names = [f"delta={run.delta}" for run in deltas[Variant.ROUNDED]]
    for variant, settings in deltas.items():
        yield claim(
            f"the number falls as delta grows ({variant})",
            holds=trend(runs.curve(settings, edits_per_user)) == "falls",
            figures=f"{_says(runs, settings, names, edits_per_user, digits=1)}, {runs.change(settings, edits_per_user)}"
            f"; per row {_says(runs, settings, names, edits_per_row, digits=3)}",
        )
    yield "rows of rare clusters per user, fewer as clusters grow: " + _says(
        runs, deltas[Variant.ROUNDED], names, lambda found: found.n_rare_rows / found.n_users, digits=1
    )


def _savings(runs: Runs) -> str:
    rounded, exact, best = (runs.by_size(variant)[-1] for variant in Variant)
    ours, theirs = (runs.mean(run, edits_per_user) for run in (best, exact))
    return (
        f"the promise is kept with {ours:.1f} edits per user by ours and {theirs:.1f} with the paper's centroids; "
        f"the paper's rounding leaves users {runs.mean(rounded, lambda found: found.distance_left):.3f} from their "
        "centroid on average (D, 0 is what it promises)"
    )

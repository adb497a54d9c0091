"""Hong et al., figure 2: groups, lost queries and URLs, and the most frequent ones, against the number of users."""

from __future__ import annotations

from collections.abc import Iterator

from queryveil.reproduce.kdelta_nearness import mean_nearness
from queryveil.reproduce.kdelta_runs import DELTA, TREND_NOTE, VARIANTS_NOTE, K, Measure, Run, Runs, Variant, trend
from queryveil.reproduce.table import DRAWN_NOTE, OURS, THEIRS, Cell, Table, at_each, claim

THEIR_USERS = 1_000
THEIR_TOP_QUERIES, THEIR_TOP_URLS = 24, 28
GROUPS, SMALL, JOINED = "groups of k or more", "groups of fewer", "users who had to join"
AWAY = "mean D to the centroid before"
URLS_LOST, TOP_URLS = "URLs lost, %", "top 50 URLs kept"
LOST: dict[str, Measure] = {
    "queries lost, %": lambda found: found.queries_lost,
    URLS_LOST: lambda found: found.urls_lost,
}
TOP: dict[str, Measure] = {
    "top 50 queries kept": lambda found: found.top_queries,
    TOP_URLS: lambda found: found.top_urls,
}
THEIR_TOP = dict(zip(TOP, (THEIR_TOP_QUERIES, THEIR_TOP_URLS), strict=True))
ANY, RARE_KEPT = "any", "paper, rounded, rare kept"


def build(runs: Runs) -> Table:
    """Give groups, losses and what stays among the 50 most frequent, for growing numbers of users."""
    users = {str(variant): runs.by_size(variant) for variant in Variant}
    sizes = [runs.n_users(run) for run in users[Variant.ROUNDED]]
    away = {variant: _away(runs, variant) for variant in (Variant.EXACT, Variant.BEST)}
    kept = runs.by_size(Variant.ROUNDED, min_cluster_users=1)
    # With rare clusters more users are left, so smaller samples may be possible.
    users[RARE_KEPT] = [run for run in kept if runs.n_users(run) in sizes]
    return Table(
        name="kdelta-fig2",
        title=f"Hong et al., figure 2: groups and what is lost against the number of users, k={K}, delta={DELTA}",
        columns=("panel", "count", "centroids", "whose", *(f"{size:,} users" for size in sizes), "as users grow"),
        rows=(
            *_groups(runs, users[Variant.EXACT], sizes),
            *(_row("(a)", AWAY, _whose_groups(variant), figures, digits=3) for variant, figures in away.items()),
            *_panel(runs, "(b)", LOST, users, sizes),
            *_panel(runs, "(c)", TOP, users, sizes),
        ),
        notes=(
            *runs.material.notes,
            VARIANTS_NOTE,
            TREND_NOTE,
            DRAWN_NOTE + f"; {THEIR_TOP_QUERIES} and {THEIR_TOP_URLS} of 50 at {THEIR_USERS:,} users are the only "
            f"figures there; nor does it say at which k and delta, {K} and {DELTA} are ours",
            *runs.left_out(len(runs.material.sizes), users[Variant.ROUNDED], what="samples"),
            *_claims(runs, users, sizes, away[Variant.EXACT]),
            _spread(runs, users[Variant.ROUNDED]),
        ),
    )


def _away(runs: Runs, variant: Variant) -> list[float]:
    return [
        mean_nearness([log.sample(runs.n_users(run)) for log in runs.material.logs], run=run, seed=runs.seed)
        for run in runs.by_size(variant)
    ]


def _whose_groups(variant: Variant) -> str:
    return "best" if variant is Variant.BEST else "paper"


def _row(panel: str, count: str, centroids: str, figures: list[float], *, digits: int) -> tuple[Cell, ...]:
    return (panel, count, centroids, OURS, *(round(figure, digits) for figure in figures), trend(figures))


def _groups(runs: Runs, settings: list[Run], sizes: list[int]) -> Iterator[tuple[Cell, ...]]:
    unknown: tuple[Cell, ...] = (None,) * len(sizes)
    yield ("(a)", GROUPS, "paper", THEIRS, *unknown, "rises")
    yield _row("(a)", GROUPS, ANY, runs.curve(settings, lambda found: found.groups), digits=1)
    yield ("(a)", SMALL, "paper", THEIRS, *unknown, "rises, much less")
    yield ("(a)", SMALL, ANY, OURS, *(0,) * len(sizes), "stays")
    yield _row("(a)", JOINED, ANY, runs.curve(settings, lambda found: found.joined), digits=1)


def _there(runs: Runs, measures: dict[str, Measure]) -> list[tuple[str, Measure]]:
    """Give the measures that the log has something for."""
    without = () if runs.material.has_urls else (URLS_LOST, TOP_URLS)
    return [(count, measure) for count, measure in measures.items() if count not in without]


def _panel(
    runs: Runs, panel: str, measures: dict[str, Measure], users: dict[str, list[Run]], sizes: list[int]
) -> Iterator[tuple[Cell, ...]]:
    for count, measure in _there(runs, measures):
        known = [THEIR_TOP.get(count) if size == THEIR_USERS else None for size in sizes]
        yield (panel, count, str(Variant.ROUNDED), THEIRS, *known, "falls" if measures is LOST else "rises")
        for name, settings in users.items():
            yield _row(panel, count, name, runs.curve(settings, measure), digits=1)


def _claims(runs: Runs, users: dict[str, list[Run]], sizes: list[int], away: list[float]) -> Iterator[str]:
    names = [f"{size:,}" for size in sizes]
    paper = users[Variant.ROUNDED]
    yield claim(
        "more users make it easier to find similar ones",
        holds=trend(away) == "falls",
        figures="mean D between users and their centroid before anything is changed, " + at_each(names, away, digits=3),
    )
    yield (
        "groups have k users, and the last ones, fewer than k, join the nearest group: so there are as many groups as "
        "users over k, and the paper's groups of fewer, which would break its promise, have nothing beside them here"
    )
    ways = {**dict.fromkeys(LOST, "falls"), **dict.fromkeys(TOP, "rises")}
    if not runs.material.has_urls:
        yield "the log has no clicked URLs, so there is nothing to say of them"
    for count, measure in _there(runs, LOST | TOP):
        figures = runs.curve(paper, measure)
        yield claim(
            f"{count}: {ways[count]} as users grow",
            holds=trend(figures) == ways[count],
            figures=f"{at_each(names, figures, digits=1)}, {runs.change(paper, measure)} ({Variant.ROUNDED}; the last "
            "column has the others)",
        )


def _spread(runs: Runs, paper: list[Run]) -> str:
    widest = ", ".join(
        f"{max(runs.spread(run, measure) for run in paper):.1f} ({count})"
        for count, measure in _there(runs, LOST | TOP)
    )
    return f"logs of the same size lie up to so far apart (paper, rounded): {widest}"

"""Hong et al.: queries added and suppressed, groups, and what is lost (figures 1 and 2)."""

from collections.abc import Iterable, Iterator
from statistics import fmean

from queryveil.data import QueryLog
from queryveil.methods.kdelta._equal import Table
from queryveil.methods.kdelta._groups import distances_left, form, improve
from queryveil.methods.kdelta._objects import Holdings, read_objects
from queryveil.papers._kdelta_runs import DELTA, PER_ROW, PER_USER, TOTAL, K, Run, Runs, Variant, gather
from queryveil.papers.driver import DRAWN_NOTE, OURS, THEIRS, Cells, Content, at_each, claim, table, trend
from queryveil.rng import generator

__all__ = ["fig1", "fig2", "gather"]

KS = (2, 5, 10, 15, 20)
DELTAS = (0.1, 0.3, 0.5, 0.7, 0.9)

VARIANTS_NOTE = (
    "paper, rounded is what the paper does; its shares are not equal, so it promises nothing. paper, exact has the "
    "same groups and keeps the promise; best, exact is ours and keeps it with the centroids that need fewest edits"
)
TREND_NOTE = (
    "rises and falls are said of means: no step goes the other way by more than a tenth of the way from the first "
    "to the last, which is our limit; where one does, it is up and down. The change from the first to the last has its "
    "standard error: a change of less than two of them may be chance"
)

EDITS_PER_USER, EDITS_PER_ROW, RARE_PER_USER = f"edits {PER_USER}", f"edits {PER_ROW}", f"rare rows {PER_USER}"
DIGITS = {TOTAL: None, PER_USER: 1, PER_ROW: 3}

THEIR_USERS, THEIR_TOP = 1_000, {"top 50 queries kept": 24, "top 50 URLs kept": 28}
LOST = ("queries lost, %", "URLs lost, %")
Settings = dict[Variant, list[Run]]


@table
def fig1(runs: Runs) -> Content:
    """Hong et al., figure 1: queries added (+), suppressed (-); k=5 but in (b), delta=0.5 but in (c)."""
    users = {variant: runs.by_size(variant) for variant in Variant}
    ks = {variant: runs.possible(Run(variant=variant, k=k) for k in KS) for variant in Variant}
    deltas = {variant: runs.possible(Run(variant=variant, delta=delta) for delta in DELTAS) for variant in Variant}
    return Content(
        columns=("panel", "count", "whose", "at", *(f"{variant} {sign}" for variant in Variant for sign in "+-")),
        rows=(
            _their_edits("(a)", TOTAL, "rises"),
            _their_edits("(a)", PER_USER, "falls"),
            *(row for count in DIGITS for row in _our_edits(runs, "(a)", count, users)),
            _their_edits("(b)", PER_USER, None),
            *(row for count in (PER_USER, PER_ROW) for row in _our_edits(runs, "(b)", count, ks)),
            _their_edits("(c)", PER_USER, "falls"),
            *(row for count in (PER_USER, PER_ROW) for row in _our_edits(runs, "(c)", count, deltas)),
        ),
        notes=(
            VARIANTS_NOTE,
            TREND_NOTE,
            DRAWN_NOTE + f"; nor does it say which k and delta the other panels have, {K} and {DELTA} are ours",
            *_left_out(len(runs.sizes), users[Variant.ROUNDED], what="samples"),
            *_left_out(len(KS), ks[Variant.ROUNDED], what="values of k"),
            *_left_out(len(DELTAS), deltas[Variant.ROUNDED], what="values of delta"),
            *_notes_by_users(runs, users),
            *_notes_by_k(runs, ks),
            *_notes_by_delta(runs, deltas),
            _savings(runs),
        ),
    )


def _their_edits(panel: str, count: str, way: str | None) -> Cells:
    return (panel, count, THEIRS, None, way, way, *(None,) * (2 * len(Variant) - 2))


def _our_edits(runs: Runs, panel: str, count: str, by_variant: Settings) -> Iterator[Cells]:
    for same in zip(*by_variant.values(), strict=True):
        means = (runs.mean(run, f"{what} {count}") for run in same for what in ("added", "suppressed"))
        cells = (round(mean, DIGITS[count]) for mean in means)
        at = {"(a)": f"{runs.n_users(same[0]):,} users", "(b)": f"k={same[0].k}", "(c)": f"delta={same[0].delta}"}
        yield (panel, count, OURS, at[panel], *cells)


def _left_out(n_wanted: int, possible: list[Run], *, what: str) -> tuple[str, ...]:
    n_out = n_wanted - len(possible)
    return (f"{n_out} of {n_wanted} {what} are left out: too few users share a query there",) if n_out else ()


def _notes_by_users(runs: Runs, users: Settings) -> Iterator[str]:
    paper = users[Variant.ROUNDED]
    sizes = [f"{runs.n_users(run):,}" for run in paper]
    totals = runs.curve(paper, f"edits {TOTAL}")
    yield claim("the total grows with the users", holds=trend(totals) == "rises") + at_each(sizes, totals, digits=0)
    for variant, settings in users.items():
        falls = trend(runs.curve(settings, EDITS_PER_USER)) == "falls"
        yield (
            claim(f"the number per user falls as there are more ({variant})", holds=falls)
            + f"{runs.says(settings, sizes, EDITS_PER_USER, digits=1)}, {runs.change(settings, EDITS_PER_USER)}"
            f"; per row, which long histories tilt less, {runs.says(settings, sizes, EDITS_PER_ROW, digits=3)}, "
            + runs.change(settings, EDITS_PER_ROW)
        )
    yield (
        f"logs of the same size lie up to {runs.spread(paper, EDITS_PER_USER):.1f} apart per user and "
        f"{runs.spread(paper, EDITS_PER_ROW):.3f} per row (paper, rounded)"
    )
    kept = runs.by_size(Variant.ROUNDED, min_cluster_users=1)
    yield (
        "clusters of one user are left out before, which the paper leaves open: per user "
        + runs.says(paper, sizes, RARE_PER_USER, digits=1)
        + " rows; if they stay, per user "
        + runs.says(kept, [f"{runs.n_users(run):,}" for run in kept], EDITS_PER_USER, digits=1)
        + " are added or suppressed (paper, rounded)"
    )


def _notes_by_k(runs: Runs, ks: Settings) -> Iterator[str]:
    names = [f"k={run.k}" for run in ks[Variant.ROUNDED]]
    for variant, settings in ks.items():
        figures = runs.curve(settings, EDITS_PER_USER)
        said = f"{trend(figures)}, {at_each(names, figures, digits=1)}"
        yield f"the number per user as k grows, of which the text says nothing ({variant}): {said}"


def _notes_by_delta(runs: Runs, deltas: Settings) -> Iterator[str]:
    names = [f"delta={run.delta}" for run in deltas[Variant.ROUNDED]]
    for variant, settings in deltas.items():
        per_user = runs.curve(settings, EDITS_PER_USER)
        yield (
            claim(f"the number falls as delta grows ({variant})", holds=trend(per_user) == "falls")
            + f"{at_each(names, per_user, digits=1)}, {runs.change(settings, EDITS_PER_USER)}"
            f"; per row {runs.says(settings, names, EDITS_PER_ROW, digits=3)}"
        )
    rare = runs.says(deltas[Variant.ROUNDED], names, RARE_PER_USER, digits=1)
    yield f"rows of rare clusters per user, fewer as clusters grow: {rare}"


def _savings(runs: Runs) -> str:
    rounded, exact, best = (runs.by_size(variant)[-1] for variant in Variant)
    ours, theirs = (runs.mean(run, EDITS_PER_USER) for run in (best, exact))
    return (
        f"the promise is kept with {ours:.1f} edits per user by ours and {theirs:.1f} with the paper's centroids; "
        f"the paper's rounding leaves users {runs.mean(rounded, 'distance left'):.3f} from their "
        "centroid on average (D, 0 is what it promises)"
    )


def mean_nearness(logs: Iterable[QueryLog], *, run: Run, seed: int) -> float:
    """Return the mean of D between users and the centroids of the groups that a run makes, over several logs."""
    means = []
    for i, log in enumerate(logs):
        have = without_rare(log, run=run)
        grouping = form(have, k=run.k)
        if run.variant is Variant.BEST:
            grouping = improve(have, grouping, rng=generator(seed + i))
        means.append(float(distances_left(have, grouping).mean()))
    return fmean(means)


def without_rare(log: QueryLog, *, run: Run) -> Holdings:
    """Count each user's rows in each pair of a cluster and a URL, rare clusters left out as the method does."""
    objects, cluster = run.method(seed=0).without_rare(read_objects(log.frame), {})
    return Table(objects, cluster).hold()


@table
def fig2(runs: Runs) -> Content:
    """Hong et al., figure 2: groups and what is lost against the number of users, k=5, delta=0.5."""
    users = {str(variant): runs.by_size(variant) for variant in Variant}
    paper = users[Variant.ROUNDED]
    sizes = [runs.n_users(run) for run in paper]
    logs = {size: [log.sample(size) for log in runs.logs] for size in sizes}
    away, best_away = (
        [mean_nearness(logs[runs.n_users(run)], run=run, seed=runs.seed) for run in users[variant]]
        for variant in (Variant.EXACT, Variant.BEST)
    )
    kept = runs.by_size(Variant.ROUNDED, min_cluster_users=1)
    # With rare clusters more users are left, so smaller samples may be possible.
    users["paper, rounded, rare kept"] = [run for run in kept if runs.n_users(run) in sizes]
    queries, urls = THEIR_TOP.values()
    return Content(
        columns=("panel", "count", "centroids", "whose", *(f"{size:,} users" for size in sizes), "as users grow"),
        rows=(
            *_group_rows(runs, users[Variant.EXACT], sizes),
            _row("(a)", "mean D to the centroid before", "paper", away, digits=3),
            _row("(a)", "mean D to the centroid before", "best", best_away, digits=3),
            *(row for figure in _measurable(runs) for row in _panel(runs, figure, users, sizes)),
        ),
        notes=(
            VARIANTS_NOTE,
            TREND_NOTE,
            DRAWN_NOTE + f"; {queries} and {urls} of 50 at {THEIR_USERS:,} users are the only "
            f"figures there; nor does it say at which k and delta, {K} and {DELTA} are ours",
            *_left_out(len(runs.sizes), paper, what="samples"),
            *_claims_by_users(runs, paper, sizes, away),
        ),
    )


def _row(panel: str, count: str, centroids: str, figures: list[float], *, digits: int) -> Cells:
    return (panel, count, centroids, OURS, *(round(figure, digits) for figure in figures), trend(figures))


def _group_rows(runs: Runs, settings: list[Run], sizes: list[int]) -> Iterator[Cells]:
    groups, small, joined = "groups of k or more", "groups of fewer", "users who had to join"
    unknown = (None,) * len(sizes)
    yield ("(a)", groups, "paper", THEIRS, *unknown, "rises")
    yield _row("(a)", groups, "any", runs.curve(settings, groups), digits=1)
    yield ("(a)", small, "paper", THEIRS, *unknown, "rises, much less")
    yield ("(a)", small, "any", OURS, *(0,) * len(sizes), "stays")
    yield _row("(a)", joined, "any", runs.curve(settings, joined), digits=1)


def _measurable(runs: Runs) -> dict[str, str]:
    """Return the figures of panels (b) and (c) that the log has something for, and which way the paper's go."""
    ways = dict.fromkeys(LOST, "falls") | dict.fromkeys(THEIR_TOP, "rises")
    return {figure: way for figure, way in ways.items() if runs.has_urls or "URLs" not in figure}


def _panel(runs: Runs, figure: str, users: dict[str, list[Run]], sizes: list[int]) -> Iterator[Cells]:
    panel, way = ("(b)", "falls") if figure in LOST else ("(c)", "rises")
    known = [THEIR_TOP.get(figure) if size == THEIR_USERS else None for size in sizes]
    yield (panel, figure, str(Variant.ROUNDED), THEIRS, *known, way)
    for name, settings in users.items():
        yield _row(panel, figure, name, runs.curve(settings, figure), digits=1)


def _claims_by_users(runs: Runs, paper: list[Run], sizes: list[int], away: list[float]) -> Iterator[str]:
    names = [f"{size:,}" for size in sizes]
    yield (
        claim("more users make it easier to find similar ones", holds=trend(away) == "falls")
        + "mean D between users and their centroid before anything is changed, "
        + at_each(names, away, digits=3)
    )
    yield (
        "groups have k users, and the last ones, fewer than k, join the nearest group: so there are as many groups as "
        "users over k, and the paper's groups of fewer, which would break its promise, have nothing beside them here"
    )
    if not runs.has_urls:
        yield "the log has no clicked URLs, so there is nothing to say of them"
    ways = _measurable(runs)
    for figure, way in ways.items():
        means = runs.curve(paper, figure)
        others = f"{runs.change(paper, figure)} ({Variant.ROUNDED}; the last column has the others)"
        yield (
            claim(f"{figure}: {way} as users grow", holds=trend(means) == way)
            + f"{at_each(names, means, digits=1)}, {others}"
        )
    widest = at_each(ways, (runs.spread(paper, figure) for figure in ways), digits=1)
    yield f"logs of the same size lie up to so far apart (paper, rounded): {widest}"

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np
import polars as pl
import pytest

from queryveil.data import QueryLog
from queryveil.errors import BadInput, BadParameter
from queryveil.formats.read import read_log
from queryveil.methods.kdelta import Kdelta
from queryveil.methods.kdelta._groups import distances_left, exact_counts, form
from queryveil.papers import kdelta, reproduce
from queryveil.papers._kdelta_runs import N_LOGS, N_ORDERS, Run, Runs, Variant, gather
from queryveil.papers.driver import OURS, THEIRS, Cell, Table, trend
from queryveil.papers.kdelta import DELTAS, KS, mean_nearness, without_rare
from queryveil.progress import watch
from queryveil.synthesis import synthesize, term_values
from queryveil.testing import log_of

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
BUILDERS = (kdelta.fig1, kdelta.fig2)


@pytest.fixture(scope="module")
def log() -> QueryLog:
    return synthesize(like="aol", users=150, seed=3).log


@pytest.fixture(scope="module")
def runs(log: QueryLog) -> Runs:
    return gather(log, users=None, seed=3)


def numbers(cells: tuple[Cell, ...]) -> list[float]:
    return [float(cell) for cell in cells if isinstance(cell, int | float)]


def row(table: Table, *names: str) -> list[float]:
    (found,) = (cells for cells in table.rows if cells[3] == OURS and cells[1 : 1 + len(names)] == names)
    return numbers(found)


def edits(table: Table, panel: str, count: str) -> dict[str, list[float]]:
    found = (cells for cells in table.rows if cells[:3] == (panel, count, OURS))
    return {str(cells[3]): numbers(cells[4:]) for cells in found}


def note(table: Table, beginning: str) -> str:
    (found,) = (text for text in table.notes if text.startswith(beginning))
    return found


@pytest.mark.parametrize("build", BUILDERS)
def test_every_row_fills_the_columns_and_ours_has_all_figures(build: object, runs: Runs) -> None:
    table = build(runs)  # type: ignore[operator]
    assert all(len(cells) == len(table.columns) for cells in table.rows)
    assert {cell for cells in table.rows for cell in cells if cell in (OURS, THEIRS)} == {OURS, THEIRS}
    assert all(THEIRS in cells or None not in cells for cells in table.rows)


def test_theirs_holds_only_what_the_text_says(runs: Runs) -> None:
    theirs = [cell for build in BUILDERS for cells in build(runs).rows if THEIRS in cells for cell in cells[4:]]
    # 24 and 28 are said of 1,000 users, which this log has not.
    assert {cell for cell in theirs if cell is not None} == {"rises", "falls", "rises, much less"}


def test_their_two_figures_stand_at_a_thousand_users() -> None:
    rows = [(f"u{i}", f"query {i % 40}", f"{i % 9}.example") for i in range(1000)]
    log = QueryLog.from_frame(pl.DataFrame(rows, schema=["user", "query", "url"], orient="row"))
    table = kdelta.fig2(gather(log, users=None, seed=0))
    assert table.columns[-2] == "1,000 users"
    theirs = {cells[1]: cells[-2] for cells in table.rows if THEIRS in cells}
    assert theirs["top 50 queries kept"] == 24
    assert theirs["top 50 URLs kept"] == 28
    assert theirs["queries lost, %"] is None


def test_a_log_without_clicks_has_no_figures_of_urls() -> None:
    log = log_of({f"u{i}": [f"query {i % 4}", "weather"] for i in range(100)})
    table = kdelta.fig2(gather(log, users=None, seed=0))
    assert not [cells for cells in table.rows if "URL" in str(cells[1])]
    assert not [text for text in table.notes if text.startswith("the paper: ") and "URL" in text]
    assert "the log has no clicked URLs, so there is nothing to say of them" in table.notes


def test_figures_are_those_of_the_method_itself(log: QueryLog, runs: Runs) -> None:
    table = kdelta.fig1(runs)
    manifests = [
        Kdelta(k=10, mode="exact", centroids="best", bot_threshold=None, seed=3 + i).anonymize(log).manifest
        for i in range(N_ORDERS)
    ]
    added, suppressed = edits(table, "(b)", "per user")["k=10"][4:]
    assert added == pytest.approx(fmean(each.measures["additions_per_user"] for each in manifests), abs=0.06)
    assert suppressed == pytest.approx(fmean(each.measures["suppressions_per_user"] for each in manifests), abs=0.06)


def test_samples_grow_by_users_and_hold_the_smaller_ones(log: QueryLog) -> None:
    runs = gather(log, users=None, seed=3)
    assert runs.sizes == (15, 30, 60, 90, 120, 150)
    for ordered in runs.logs:
        samples = [set(ordered.sample(size).frame["user"]) for size in runs.sizes]
        assert [len(users) for users in samples] == list(runs.sizes)
        assert all(small < large for small, large in pairwise(samples))
    first, second = (set(ordered.sample(15).frame["user"]) for ordered in runs.logs[:2])
    assert first != second
    one = runs.logs[0].sample(15).frame
    assert one.equals(log.frame.filter(pl.col("user").is_in(one["user"].unique().implode())))


def test_totals_are_the_figures_per_user_times_the_users(runs: Runs) -> None:
    table = kdelta.fig1(runs)
    total, each = edits(table, "(a)", "total")["150 users"], edits(table, "(a)", "per user")["150 users"]
    n_users = runs.mean(Run(), "users")
    assert n_users < 150
    assert total == pytest.approx([figure * n_users for figure in each], abs=0.06 * n_users)
    assert edits(table, "(b)", "per user")["k=5"] == each == edits(table, "(c)", "per user")["delta=0.5"]


def test_best_centroids_need_fewer_edits_than_the_papers_and_more_k_needs_more(runs: Runs) -> None:
    by_k = edits(kdelta.fig1(runs), "(b)", "per user")
    assert list(by_k) == [f"k={k}" for k in KS]
    for *_, exact_added, exact_gone, best_added, best_gone in by_k.values():
        assert best_added + best_gone < exact_added + exact_gone
    in_all = [sum(figures[4:]) for figures in by_k.values()]
    assert in_all == sorted(in_all)
    assert len(set(in_all)) == len(KS)


def test_groups_are_the_users_over_k_and_the_rest_joins(runs: Runs) -> None:
    table = kdelta.fig2(runs)
    groups, joined = row(table, "groups of k or more", "any"), row(table, "users who had to join", "any")
    left = runs.curve(runs.by_size(Variant.EXACT), "users")
    assert [5 * n_groups + n_joined for n_groups, n_joined in zip(groups, joined, strict=True)] == pytest.approx(
        left, abs=0.4
    )
    assert all(n_joined < 5 for n_joined in joined)
    assert set(row(table, "groups of fewer", "any")) == {0}


def test_rare_clusters_that_stay_lose_fewer_queries(runs: Runs) -> None:
    table = kdelta.fig2(runs)
    dropped = row(table, "queries lost, %", "paper, rounded")
    kept = row(table, "queries lost, %", "paper, rounded, rare kept")
    assert all(few < many for few, many in zip(kept, dropped, strict=True))


@pytest.mark.parametrize("variant", list(Variant))
def test_notes_say_what_holds_by_the_figures(variant: Variant, runs: Runs) -> None:
    table = kdelta.fig1(runs)
    by_delta = [Run(variant=variant, delta=delta) for delta in DELTAS]
    for text, settings in (
        ("per user falls as there are more", runs.by_size(variant)),
        ("falls as delta grows", by_delta),
    ):
        (said,) = (line for line in table.notes if line.startswith("the paper: ") and f"{text} ({variant})" in line)
        figures = runs.curve(settings, "edits per user")
        fall = figures[0] - figures[-1]
        falls = fall > 0 and all(later - earlier <= fall / 10 for earlier, later in pairwise(figures))
        assert f"{figures[-1]:.1f} (" in said
        assert ("; holds here" in said) == falls
        assert ("; does not hold here" in said) != falls


def test_the_last_column_says_which_way_the_row_goes(runs: Runs) -> None:
    for cells in kdelta.fig2(runs).rows:
        if cells[3] == OURS and cells[-1] in ("rises", "falls"):
            first, *_, last = numbers(cells)
            assert (last > first) == (cells[-1] == "rises")


def test_a_trend_forgives_a_tenth_and_no_more() -> None:
    assert trend([0, 6, 5.1, 10]) == "rises"
    assert trend([0, 6, 4.9, 10]) == "up and down"
    assert trend([10, 4, 4.9, 0]) == "falls"
    assert trend([10, 4, 5.1, 0]) == "up and down"
    assert trend([1, 5, 1]) == "up and down"
    assert trend([7]) == "stays"


def test_the_change_is_taken_log_by_log(runs: Runs) -> None:
    settings = runs.by_size(Variant.ROUNDED)
    first, last = (runs.mean(run, "edits total") for run in (settings[0], settings[-1]))
    assert runs.change(settings, "edits total").startswith(f"from first to last {last - first:+.3g} (")
    assert "(standard error 0)" in runs.change(settings[-1:], "edits total")


def test_distances_are_those_of_the_definition(log: QueryLog) -> None:
    have = without_rare(log, run=Run())
    grouping = form(have, k=5)
    shares = np.zeros((have.n_owners, have.n_cells))
    shares[have.entry_owner, have.cells] = have.counts / have.n_rows[have.entry_owner]
    aims = np.zeros((int(grouping.group_of.max()) + 1, have.n_cells))
    centroids = grouping.centroids
    owner = centroids.entry_owner
    aims[owner, centroids.cells] = centroids.counts / centroids.n_rows[owner]
    expected = np.abs(shares - aims[grouping.group_of]).sum(axis=1) / 2
    np.testing.assert_allclose(distances_left(have, grouping), expected, atol=1e-12)
    assert 0 < expected.mean() < 1


def test_after_the_edits_of_exact_counts_no_distance_is_left(log: QueryLog) -> None:
    have = without_rare(log, run=Run())
    grouping = form(have, k=5)
    np.testing.assert_allclose(distances_left(exact_counts(have, grouping), grouping), 0, atol=1e-12)


def test_the_users_measured_for_nearness_are_those_the_method_keeps(log: QueryLog, runs: Runs) -> None:
    assert without_rare(log, run=Run()).n_owners == runs.mean(Run(), "users")
    paper, best = (mean_nearness([log], run=Run(variant=variant), seed=3) for variant in (Variant.EXACT, Variant.BEST))
    assert 0 < best < 1
    assert paper != best


def test_samples_in_which_too_few_share_a_query_are_left_out_and_counted() -> None:
    # One user in ten asks what others ask, so only samples of 60 and more have five users left, at the least.
    users = {f"u{i:03d}": ["weather"] if i % 10 == 0 else [f"own query {i}"] for i in range(200)}
    runs = gather(log_of(users), users=None, seed=0)
    table = kdelta.fig2(runs)
    n_left = len(runs.by_size(Variant.EXACT))
    assert 1 <= n_left < len(runs.sizes)
    assert sum(column.endswith(" users") for column in table.columns) == n_left
    assert note(table, f"{6 - n_left} of 6 samples are left out")
    # 20 users are left of all, so every k is possible.
    assert not [text for text in kdelta.fig1(runs).notes if "values of k are left out" in text]


def test_a_log_in_which_nobody_shares_a_query_is_a_clear_error() -> None:
    log = log_of({f"u{i}": [f"own query {i}"] for i in range(60)})
    with pytest.raises(BadInput, match=r"^too few users share a query for groups of 5; give a larger log$"):
        reproduce("kdelta-fig1", log)


def test_a_log_with_too_few_users_is_a_clear_error() -> None:
    with pytest.raises(BadInput, match=r"^the log has 2 users, too few for samples of 10%; give a larger log$"):
        reproduce("kdelta-fig2", log_of({"u1": ["dog"], "u2": ["cat"]}))


def test_bots_are_left_out_of_a_given_log() -> None:
    rows = [("robot", f"page {i}") for i in range(150)] + [(f"u{i}", "red wine") for i in range(60)]
    frame = pl.DataFrame(rows, schema=["user", "query"], orient="row").with_columns(
        time=pl.datetime(2024, 3, 1) + pl.duration(seconds=pl.int_range(pl.len()))
    )
    runs = gather(QueryLog.from_frame(frame), users=None, seed=0)
    assert runs.sizes[-1] == 60
    assert "the log was given (1 bots left out)" in runs.notes[0]


def test_made_up_logs_differ_and_urls_that_are_empty_do_not_count() -> None:
    runs = gather(None, users=60, seed=1)
    assert len({ordered.log.n_rows for ordered in runs.logs}) > 1
    assert len(runs.logs) == N_LOGS
    assert runs.notes[0].startswith(f"{N_LOGS} logs are made up")
    rows = {"user": [f"u{i}" for i in range(60)], "query": ["wine"] * 60, "url": ["w.example", "", None] * 20}
    assert "1 distinct URLs" in gather(QueryLog.from_frame(rows), users=None, seed=0).notes[0]


def test_the_same_arguments_give_the_same_figures_and_another_seed_others() -> None:
    log = synthesize(like="aol", users=50, seed=3).log
    first, again, other = (reproduce("kdelta-fig2", log, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.rows != other.rows


def test_term_values_are_refused(log: QueryLog) -> None:
    with pytest.raises(BadParameter, match="values must be left out for kdelta-fig1"):
        reproduce("kdelta-fig1", log, values=term_values(log, seed=1))


def test_every_run_is_told_once() -> None:
    runs = gather(synthesize(like="aol", users=80, seed=3).log, users=None, seed=3)
    seen: list[str] = []
    with watch(lambda name, _share: seen.append(name)):
        kdelta.fig1(runs)
        kdelta.fig1(runs)
    assert len(seen) == len(set(seen)) == len(Variant) * (6 + len(KS) - 1 + len(DELTAS) - 1) + 6
    assert "best, exact, k=5, delta=0.5, 48 users" in seen
    assert "paper, rounded, k=20, delta=0.5" in seen


def test_no_note_or_cell_holds_a_text_and_reprs_hide_them() -> None:
    users = {f"persona{i:02d}": ["kestrel lantern", f"mulberry {i % 7}"] for i in range(60)}
    runs = gather(log_of(users), users=None, seed=0)
    shown = repr(runs) + "".join(str(build(runs)) for build in BUILDERS)
    assert not any(text in shown for text in ("kestrel", "lantern", "mulberry", "persona"))


@pytest.mark.real_data
def test_a_real_log_can_be_measured() -> None:
    path = DATA / "excite-small.log"
    if not path.exists():
        pytest.skip("there is no shared/data beside the checkout")
    table = reproduce("kdelta-fig2", read_log(path))
    assert "the log was given" in table.notes[0]
    assert row(table, "queries lost, %", "best, exact")[-1] > 0

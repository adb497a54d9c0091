from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from queryveil.data import QueryLog
from queryveil.methods import Km, Target
from queryveil.methods.km._deletion import Objective, choose
from queryveil.papers._km_runs import FOCUS, KS, MS, Measure, Run, Runs, dominated, gather
from queryveil.progress import watch
from queryveil.rng import generator
from queryveil.testing import log_of

VALUES = pl.DataFrame(
    {"term": ["A", "b", "c"], "bid": [1.0, 2.0, 4.0], "clicks": [3, None, 5], "impressions": [10, 20, 30]}
)


def small() -> Runs:
    """Two users share a and b; c and d stand with one user each, c three times."""
    log = log_of({"u1": ["a b", "c c c"], "u2": ["a", "b"], "u3": ["d"]})
    return gather(log, users=None, values=VALUES, seed=0)


def test_each_measure_is_the_share_that_is_kept() -> None:
    km_runs = small()
    kept = {measure: km_runs.kept(measure, target=Target.LOG_SIZE, m=2, k=2) for measure in Measure}
    # a and b stay with both users: 4 of 8 occurrences, and nothing of c and d
    assert kept == pytest.approx(
        {
            Measure.TERMS: 50,
            Measure.LOG_SIZE: 50,
            Measure.USERS: 100 * 2 / 3,
            Measure.BID: 100 * 6 / 18,
            Measure.CLICKS: 100 * 6 / 21,
            Measure.IMPRESSIONS: 100 * 60 / 150,
            Measure.REVENUE: 100 * 6 / 66,
        }
    )


def test_one_term_that_is_worth_most_is_named_by_its_users_alone() -> None:
    (note,) = dominated(small())
    assert "91 % of revenue (users: 1)" in note
    assert "67 % of bid" in note


def test_ours_is_what_km_releases_without_restore() -> None:
    log = log_of({f"u{i}": [f"t{i % 3} t{i % 4}", f"t{i % 5} t{i % 7} x{i}"] for i in range(60)})
    names = [f"t{i}" for i in range(7)]
    values = pl.DataFrame({"term": names, "bid": range(1, 8), "clicks": range(7, 0, -1), "impressions": [9] * 7})
    km_runs = gather(log, users=None, values=values, seed=4)
    release = Km(k=10, m=2, target=Target.BID, values=values, restore=False, seed=4).anonymize(log)
    n_kept, n_before = (
        sum(len(query.split()) for query in frame["query"]) for frame in (release.data.frame, log.frame)
    )
    assert 0 < n_kept < n_before
    assert km_runs.kept(Measure.LOG_SIZE, target=Target.BID, m=2, k=10) == pytest.approx(100 * n_kept / n_before)


def test_shares_lie_between_0_and_100(km_runs: Runs) -> None:
    for target in Target:
        for m in MS:
            for k in KS:
                assert all(0 <= km_runs.kept(measure, target=target, m=m, k=k) <= 100 for measure in Measure)


def test_a_larger_k_keeps_less_of_the_log(km_runs: Runs) -> None:
    # Not so for random: at a larger k the rare terms go first, and fewer draws hit the frequent ones.
    for target in FOCUS.values():
        kept = [km_runs.kept(Measure.LOG_SIZE, target=target, m=3, k=k) for k in KS]
        assert kept == sorted(kept, reverse=True)
        assert kept[0] > kept[-1]


def test_m_3_keeps_no_more_than_m_2_by_much(km_runs: Runs) -> None:
    for measure, target in FOCUS.items():
        for k in KS:
            two, three = (km_runs.kept(measure, target=target, m=m, k=k) for m in MS)
            assert three <= two + 2


def test_log_size_is_near_the_best_for_log_size(km_runs: Runs) -> None:
    for m in MS:
        for k in KS:
            leader = km_runs.leader(Measure.LOG_SIZE, m=m, k=k)
            most = km_runs.kept(Measure.LOG_SIZE, target=leader, m=m, k=k)
            assert km_runs.best(Measure.LOG_SIZE, m=m, k=k) >= most - 3


def test_a_target_beats_the_worst_for_its_focus_at_small_k(km_runs: Runs) -> None:
    for measure in (Measure.BID, Measure.CLICKS, Measure.IMPRESSIONS, Measure.REVENUE):
        worst = km_runs.worst(measure, m=2, k=2)
        assert km_runs.best(measure, m=2, k=2) > km_runs.kept(measure, target=worst, m=2, k=2)


def test_restore_never_keeps_less_of_the_focus(km_runs: Runs) -> None:
    for measure, target in FOCUS.items():
        plain, restored = (km_runs.kept(measure, target=target, m=2, k=10, restore=r) for r in (False, True))
        assert restored >= plain


def test_other_logs_give_other_figures(km_runs: Runs) -> None:
    other = replace(gather(None, users=1500, values=None, seed=4), seed=3)
    run = {"target": Target.CLICKS, "m": 2, "k": 10}
    assert km_runs.kept(Measure.CLICKS, **run) != other.kept(Measure.CLICKS, **run)  # type: ignore[arg-type]


def test_random_is_the_average_of_two_runs(km_runs: Runs) -> None:
    histories = km_runs.histories
    objective = Objective(target=Target.RANDOM, worth=km_runs.worth[Target.RANDOM], restore=False)
    kept = [histories.counts[choose(histories, objective, k=2, m=2, rng=generator(seed))].sum() for seed in (7, 8)]
    assert kept[0] != kept[1]
    average = 100 * (kept[0] + kept[1]) / 2 / histories.counts.sum()
    seven = replace(km_runs, seed=7)
    assert seven.kept(Measure.LOG_SIZE, target=Target.RANDOM, m=2, k=2) == pytest.approx(average)


def test_a_run_is_made_once(km_runs: Runs) -> None:
    run = Run(target=Target.LOG_SIZE, m=2, k=2)
    km_runs.make([run])
    seen: list[str] = []
    with watch(lambda name, _share: seen.append(name)):
        km_runs.make([run, run])
    assert seen == []


def test_a_log_without_times_has_no_bots() -> None:
    log = QueryLog.from_frame({"user": ["u1"] * 150, "query": ["a b c"] * 150})
    assert "1 users (0 bots left out)" in gather(log, users=None, values=VALUES, seed=0).notes[0]


def test_reprs_hide_the_terms() -> None:
    assert repr(small()).startswith("<queryveil.papers._km_runs.Runs object")

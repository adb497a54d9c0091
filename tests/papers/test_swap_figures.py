from __future__ import annotations

import polars as pl
import pytest
from tests.support.plain_rebuilding import plain_match_of_logs

from queryveil.attacks.rebuild import as_released
from queryveil.attacks.swapped import EncodedLog, Truth
from queryveil.data import Format, Layout, QueryLog
from queryveil.errors import BadInput, BadParameter
from queryveil.methods import Swap
from queryveil.papers import reproduce, swap
from queryveil.papers._swap_runs import GROWTH, GROWTHS, KS, Order, Run, Runs, gather
from queryveil.papers.driver import OURS, THEIRS, Table
from queryveil.release import ColumnPolicy, Ids, TimeDetail
from queryveil.synthesis import synthesize

N_KS = len(KS)


@pytest.fixture(scope="module")
def runs() -> Runs:
    return gather(None, users=300, seed=3)


def ours(table: Table, name: object, *, distinct: str | None = None, order: str | None = None) -> list[float]:
    """Return the figures of ours in one row, which stand behind the word."""
    asked = [name, *(each for each in (distinct, order) if each is not None)]
    (found,) = (row for row in table.rows if OURS in row and list(row[: row.index(OURS)]) == asked)
    return [cell for cell in found[found.index(OURS) + 1 :] if isinstance(cell, int | float)]


def note(table: Table, start: str) -> str:
    (found,) = (each for each in table.notes if each.startswith(start))
    return found


@pytest.mark.parametrize("order", list(Order))
def test_releases_are_those_of_the_method_itself(runs: Runs, order: Order) -> None:
    policy = ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.DAY)
    method = Swap(repeats="all", shrink=False, k=10, l=2, order=str(order), columns=policy, seed=3)
    columns = ["user", "query", "time"]
    released = method.anonymize(runs.log).log.frame.select(columns)
    # A release does not tell the order in which its rows left.
    assert released.sort(columns).equals(runs.pooled(Run(k=10, l=2, order=order)).released.frame.sort(columns))


def test_attacks_are_those_of_the_attackers_themselves(runs: Runs) -> None:
    found = runs.found(Run(k=10, l=10))
    swapped = (
        Swap(repeats="all", shrink=False, k=10, columns=ColumnPolicy(ids=Ids.KEEP), seed=3).anonymize(runs.log).log
    )
    encoded = EncodedLog.of(swapped)
    truth = Truth.of(runs.log, released=encoded)
    by_hand = as_released(truth)
    assert found.as_released.n_found == by_hand.n_found
    assert found.as_released.n_by_chance == pytest.approx(by_hand.n_by_chance)
    assert found.as_released.n_targets == runs.events[Order.FILE].height


def test_no_row_of_a_swapped_log_is_true_as_it_stands(runs: Runs) -> None:
    original = QueryLog(frame=runs.events[Order.FILE].select("user", "query"))
    for k in (5, 50):
        assert plain_match_of_logs(runs.pooled(Run(k=k, l=2)).released, original) == 0
    table = swap.fig6(runs)
    for order in Order:
        for distinct in ("2", "k"):
            assert ours(table, "A, ours", distinct=distinct, order=order) == [0.0] * N_KS


def test_the_printed_algorithm_gives_people_their_own_queries_back(runs: Runs) -> None:
    table = swap.fig6(runs)
    rows = {(row[0], row[2]): row[4:] for row in table.rows if row[3] == OURS and row[1] is None}
    for order in Order:
        no_rule, printed = rows["A(NR), as printed", order], rows["A, as printed", order]
        assert all(float(a or 0) >= float(b or 0) > 0 for a, b in zip(no_rule, printed, strict=True))
    assert float(rows["A(NR), as printed", Order.FILE][0] or 0) > 50
    assert "; does not hold here" in note(table, "the paper: with the rule, no row matches")
    assert "0 rows match" in note(table, "the paper: with the rule, no row matches")


def test_attackers_stand_beside_blind_chance_for_every_k_and_l(runs: Runs) -> None:
    table = swap.fig7(runs)
    assert table.columns == ("attacker", "l", "order", "whose", "k=5", "k=10", "k=20", "k=50")
    for order in Order:
        for distinct in ("2", "k"):
            chance = ours(table, "blind chance", distinct=distinct, order=order)
            assert len(chance) == N_KS
            assert min(chance) > 0
            for number in range(1, 5):
                plain = ours(table, f"rebuild_{number}", distinct=distinct, order=order)
                assert min(plain) > 0
    assert len([each for each in table.notes if each.startswith("the best against blind chance")]) == 4


def test_sorting_by_time_changes_nothing_where_rows_came_in_that_order(runs: Runs) -> None:
    table = swap.fig7(runs)
    for number in range(1, 5):
        plain, sorted_rows = (
            ours(table, f"rebuild_{number}{name}", distinct="2", order=Order.TIME) for name in ("", "+T")
        )
        assert plain == sorted_rows
    by_file, sorted_rows = (ours(table, f"rebuild_1{name}", distinct="2", order=Order.FILE) for name in ("", "+T"))
    assert by_file != sorted_rows


def test_the_best_attacker_is_the_one_with_most_rows(runs: Runs) -> None:
    found = runs.found(Run(k=5, l=2))
    assert found.best.n_found == max(each.n_found for each in found.by_name.values())
    assert set(found.by_name) == {f"rebuild_{i}{t}" for i in range(1, 5) for t in ("", "+T")}


def test_theirs_is_what_the_paper_says_and_no_more(runs: Runs) -> None:
    for build, numbers in (
        (swap.fig6, {0, 1.89}),
        (swap.fig7, {1.89}),
        (swap.fig5, set(KS)),
    ):
        cells = {cell for row in build(runs).rows if THEIRS in row for cell in row if isinstance(cell, int | float)}
        assert cells == numbers


def test_k_grows_where_files_have_one_user_after_the_other(runs: Runs) -> None:
    table = swap.fig5(runs)
    means = {(row[0], row[1]): row[3:] for row in table.rows if row[2] == OURS}
    assert len(means) == 4 * N_KS
    for k in KS:
        for variant in ("as printed", "ours"):
            mean, largest = means[k, f"mean, {variant}"], means[k, f"largest, {variant}"]
            assert all(k <= float(a or 0) <= float(b or 0) for a, b in zip(mean, largest, strict=True))
    assert float(means[5, "largest, as printed"][0] or 0) > 5
    assert runs.pooled(Run(k=5, l=2, order=Order.TIME)).k_now.max() < float(means[5, "largest, ours"][1] or 0)


def test_times_are_given_for_each_growth_with_that_of_the_paper_as_one() -> None:
    table = swap.fig4(gather(None, users=80, seed=3))
    found = [row for row in table.rows if row[2] == OURS]
    assert [row[:2] for row in found] == [(k, order) for order in Order for k in KS]
    for row in found:
        assert row[3 + GROWTHS.index(GROWTH)] == 1
        assert all(isinstance(cell, float) and cell > 0 for cell in row[3:])
    assert "differ from run to run" in " ".join(table.notes)


def test_speeds_of_the_attackers_are_given_for_each_k(runs: Runs) -> None:
    table = swap.fig8(runs)
    for number in range(1, 5):
        assert len(ours(table, f"rebuild_{number}")) == N_KS
    assert "differ from run to run" in " ".join(table.notes)


def test_the_cost_of_a_query_stands_beside_the_papers(runs: Runs) -> None:
    table = swap.table2(runs)
    theirs = {row[0]: row[2:] for row in table.rows if row[1] == THEIRS}
    assert theirs["classifier"] == (1503, 24.0, 665, 60)
    assert theirs["anonymizer"] == (22, 0.35, 45_454, 1)
    assert theirs["profiler"] == (267, 4.73, 3745, 11)
    assert theirs["all three"][2] == 558
    parts = {row[0]: float(row[2] or 0) for row in table.rows if row[1] == OURS}
    assert parts["all three"] == pytest.approx(sum(parts[name] for name in theirs if name != "all three"), abs=0.01)


def test_a_log_without_times_is_only_taken_in_its_own_order() -> None:
    log = synthesize(users=120, seed=2).log
    log = log.with_frame(log.frame.drop("time"))
    table = reproduce("swap-fig7", log)
    assert {row[2] for row in table.rows if row[3] == OURS} == {Order.FILE}
    assert not [row for row in table.rows if row[3] == OURS and "+T" in str(row[0])]
    assert table.notes[0].startswith("the log was given: 120 users")


def test_a_log_of_few_users_or_of_transactions_is_refused() -> None:
    with pytest.raises(BadInput, match="30 users of the log have a query, too few"):
        reproduce("swap-fig6", synthesize(users=30, seed=1).log)
    items = QueryLog(frame=pl.DataFrame({"user": ["1"], "query": ["7 9"]}), layout=Layout(format=Format.TRANSACTIONS))
    with pytest.raises(BadInput, match="the swap figures are for logs of queries"):
        reproduce("swap-fig6", items)


def test_figures_repeat_and_hold_no_text(runs: Runs) -> None:
    log = runs.log.with_frame(runs.log.frame.head(4000))
    first, again = (reproduce("swap-fig7", log, seed=5) for _ in range(2))
    assert first == again
    shown = str(first) + repr(runs)
    for user in log.frame["user"].unique().to_list():
        assert f"'{user}'" not in shown


def test_values_and_corpus_are_refused() -> None:
    with pytest.raises(BadParameter, match="values must be left out for swap-fig6"):
        reproduce("swap-fig6", values=pl.DataFrame({"term": ["red"]}))

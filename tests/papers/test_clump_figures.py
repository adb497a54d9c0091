from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from queryveil.errors import BadInput, BadParameter
from queryveil.methods import Clump, Partition
from queryveil.papers import clump, reproduce
from queryveil.papers.clump import KS, Method, Run, Runs, gather
from queryveil.papers.driver import OURS, THEIRS, Cell, Table
from queryveil.progress import watch
from queryveil.synthesis import synthesize, term_values
from queryveil.testing import log_of

BUILDERS = (clump.fig3, clump.fig4, clump.fig5, clump.fig6, clump.fig7)
PAPERS = [method for method in Method if method is not Method.REFINED]


@pytest.fixture(scope="module")
def runs() -> Runs:
    return gather(None, users=300, seed=3)


def row(table: Table, method: Method, whose: str = OURS) -> tuple[Cell, ...]:
    (found,) = (cells[2:] for cells in table.rows if cells[:2] == (str(method), whose))
    return found


def numbers(cells: tuple[Cell, ...]) -> list[float]:
    return [float(cell) for cell in cells if cell is not None]


@pytest.mark.parametrize("build", BUILDERS)
def test_every_row_fills_the_columns_and_ours_has_all_figures(build: object, runs: Runs) -> None:
    table = build(runs)  # type: ignore[operator]
    assert all(len(cells) == len(table.columns) for cells in table.rows)
    for cells in table.rows:
        figures = [cell for cell, name in zip(cells, table.columns, strict=True) if "=" in name]
        assert figures
        assert all((cell is None) == (cells[1] == THEIRS) for cell in figures)


@pytest.mark.parametrize("build", BUILDERS[:3])
def test_the_first_figures_have_four_methods_and_theirs_for_three(build: object, runs: Runs) -> None:
    table = build(runs)  # type: ignore[operator]
    assert table.columns[2:6] == ("k=5", "k=7", "k=10", "k=15")
    assert [cells[0] for cells in table.rows if cells[1] == OURS] == [str(method) for method in Method]
    assert [cells[0] for cells in table.rows if cells[1] == THEIRS] == [str(method) for method in PAPERS]


def test_refined_loses_less_than_the_papers_at_every_k(runs: Runs) -> None:
    table = clump.fig3(runs)
    refined = numbers(row(table, Method.REFINED)[:4])
    for method in PAPERS:
        assert all(ours < papers for ours, papers in zip(refined, numbers(row(table, method)[:4]), strict=True))


def test_figures_are_those_of_the_methods_themselves() -> None:
    log = synthesize(like="aol", users=120, seed=5).log
    runs = gather(log, users=None, seed=5)
    settings = {"k": 5, "taxonomy": runs.taxonomy, "seed": 5}
    releases: dict[Method, Clump | Partition] = {
        Method.CLUMP1: Clump(paper=True, distinct=True, **settings),  # type: ignore[arg-type]
        Method.CLUMP2: Clump(paper=True, dedupe=True, distinct=True, **settings),  # type: ignore[arg-type]
        Method.PARTITION: Partition(**settings),  # type: ignore[arg-type]
        Method.REFINED: Clump(distinct=True, **settings),  # type: ignore[arg-type]
    }
    for method, anonymizer in releases.items():
        measures = anonymizer.anonymize(log).manifest.measures
        cost, _ = runs.found(Run(method=method, k=5))
        assert round(cost.distortion, 2) == measures["ggd"]
        assert round(cost.average_length, 3) == measures["average_length"]
        assert round(cost.average_level, 3) == measures["average_level"]


def test_without_duplicates_less_is_released_and_more_is_lost(runs: Runs) -> None:
    for k in KS:
        one, two = (runs.found(Run(method=method, k=k))[0] for method in (Method.CLUMP1, Method.CLUMP2))
        assert two.average_length < one.average_length
        assert two.distortion >= one.distortion


def test_the_largest_gain_over_partition_is_in_the_last_column(runs: Runs) -> None:
    table = clump.fig3(runs)
    partition = numbers(row(table, Method.PARTITION)[:4])
    refined = row(table, Method.REFINED)
    gains = [100 * (1 - ours / theirs) for ours, theirs in zip(numbers(refined[:4]), partition, strict=True)]
    assert refined[4] == pytest.approx(max(gains), abs=0.1)
    assert row(table, Method.CLUMP1, THEIRS)[4] == 30
    assert row(table, Method.PARTITION)[4] is None


def test_notes_say_what_holds_by_the_figures(runs: Runs) -> None:
    table = clump.fig3(runs)
    clump1, clump2, partition = (numbers(row(table, method)[:4]) for method in PAPERS)
    below = all(max(pair) < other for *pair, other in zip(clump1, clump2, partition, strict=True))
    (note,) = (note for note in table.notes if note.startswith("the paper: Clump loses less than Partition"))
    assert ("; holds here" in note) == below
    assert ("; does not hold here" in note) != below


def test_the_lcg_of_the_definition_is_measured_beside_that_of_the_algorithm(runs: Runs) -> None:
    partition = runs.found(Run(method=Method.PARTITION, k=5))[0].distortion
    costs = (runs.found(Run(method=Method.CLUMP1, k=5, carry=carry))[0] for carry in (False, True))
    clump1, carried = (cost.distortion for cost in costs)
    assert carried < clump1
    (note,) = (note for note in clump.fig3(runs).notes if "definition 2" in note)
    assert f"below Partition by {100 * (1 - carried / partition):.1f} % (k=5)" in note


def test_the_order_of_levels_is_told_by_k(runs: Runs) -> None:
    table = clump.fig5(runs)
    levels = {method: numbers(row(table, method)[:4]) for method in PAPERS}
    lowest_first = [sorted(PAPERS, key=lambda method, at=at: -levels[method][at]) for at in range(4)]  # type: ignore[misc]
    (note,) = (note for note in table.notes if note.startswith("the paper: from the lowest"))
    assert all(f"{', '.join(order)} (k={k})" in note for order, k in zip(lowest_first, KS, strict=True))


def test_r_changes_clump1(runs: Runs) -> None:
    table = clump.fig6(runs)
    assert table.columns[2:] == ("r=5", "r=10", "r=30", "r=50", "r=100")
    clump1, refined = (numbers(row(table, method)) for method in (Method.CLUMP1, Method.REFINED))
    assert len(set(clump1)) > 1
    assert all(ours < papers for ours, papers in zip(refined, clump1, strict=True))


def test_times_are_of_the_sizes_the_log_has() -> None:
    runs = gather(None, users=1200, seed=3)
    n_rows = runs.nodes.n_rows
    assert runs.sizes() == (1000, n_rows)
    assert [run.size for run in runs.by_size([Method.CLUMP1])[Method.CLUMP1]] == [1000, None]
    table = clump.fig7(runs)
    assert table.columns[2:4] == ("s, |D|=1,000", f"s, |D|={n_rows:,}")
    for method in clump.METHODS:
        cells = numbers(row(table, method))
        assert cells[2] == 1
        assert cells[3] > 0
    assert any("this machine's" in note for note in table.notes)


def test_the_first_transactions_are_measured_alone(runs: Runs) -> None:
    part = replace(runs, nodes=runs.nodes.take(np.arange(100)))
    cost, _ = runs.found(Run(method=Method.CLUMP1, k=5, size=100))
    assert cost == part.found(Run(method=Method.CLUMP1, k=5))[0]


def test_the_tree_has_only_what_occurs_and_what_is_above() -> None:
    log = log_of({f"u{i}": ["dog cat", "dog zzzunknown"] for i in range(20)})
    runs = gather(log, users=None, seed=0)
    names = runs.taxonomy.names
    assert set(names.gather(np.unique(runs.nodes.values)).to_list()) == {"dog", "cat"}
    assert runs.taxonomy.n_leaves[0] == 2
    assert runs.nodes.lengths.tolist() == [2] * 20
    assert "the log was given: 20 transactions, one per user with a noun, 2.00 nouns long" in runs.notes[0]
    assert "53,058 and 20.93" in runs.notes[0]
    assert "the 2 nouns that occur" in runs.notes[1]
    assert "density: 100.00 %" in runs.notes[2]


def test_a_log_with_too_few_nouns_is_a_clear_error() -> None:
    with pytest.raises(BadInput, match=r"^3 users of the log have a noun of WordNet, too few for k=15; give a larger"):
        reproduce("clump-fig3", log_of({"u1": ["dog"], "u2": ["cat"], "u3": ["pear"], "u4": ["zzzunknown"]}))


def test_term_values_are_refused() -> None:
    log = synthesize(users=50, seed=1).log
    with pytest.raises(BadParameter, match="values must be left out for clump-fig3"):
        reproduce("clump-fig3", log, values=term_values(log, seed=1))


def test_the_same_arguments_give_the_same_figures_and_another_seed_others() -> None:
    first, again, other = (reproduce("clump-fig3", users=300, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.rows != other.rows
    assert first.notes[0].startswith("the log is made up")


def test_every_run_is_told_once() -> None:
    runs = gather(None, users=100, seed=3)
    seen: list[str] = []
    with watch(lambda name, _share: seen.append(name)):
        clump.fig4(runs)
        clump.fig5(runs)
    assert seen == [f"{method}, k={k}, r=10" for method in Method for k in KS]


def test_reprs_hide_the_items(runs: Runs) -> None:
    assert repr(runs).startswith("<queryveil.papers.clump.Runs object")

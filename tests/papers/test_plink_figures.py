from __future__ import annotations

from statistics import fmean

import numpy as np
import polars as pl
import pytest

from queryveil.data import Profiles
from queryveil.errors import BadInput, BadParameter
from queryveil.methods import Plink
from queryveil.papers import plink, reproduce
from queryveil.papers.driver import OURS, THEIRS, Cell, Table
from queryveil.papers.plink import N_GROUPINGS, PS, THEIR_PRECISION, Run, Runs, by_chance, gather
from queryveil.progress import watch
from queryveil.synthesis import synthesize, term_values
from queryveil.testing import log_of
from queryveil.utility.personalised import PersonalisedSearch
from queryveil.utility.search_index import Corpus, SearchIndex

BUILDERS = (plink.fig2, plink.fig3, plink.fig4, plink.fig5, plink.fig6)


@pytest.fixture(scope="module")
def runs() -> Runs:
    return gather(None, users=400, corpus=None, seed=3)


def row(table: Table, name: str, whose: str = OURS) -> list[float]:
    (found,) = (cells[2:] for cells in table.rows if cells[:2] == (name, whose))
    return [float(cell) for cell in found if cell is not None]


def note(table: Table, beginning: str) -> str:
    (found,) = (text for text in table.notes if text.startswith(beginning))
    return found


@pytest.mark.parametrize("build", BUILDERS)
def test_every_row_fills_the_columns_and_ours_has_all_figures(build: object, runs: Runs) -> None:
    table = build(runs)  # type: ignore[operator]
    assert all(len(cells) == len(table.columns) for cells in table.rows)
    assert {cells[1] for cells in table.rows} == {OURS, THEIRS}
    for cells in table.rows:
        assert cells[1] == THEIRS or None not in cells


def test_theirs_holds_only_the_one_figure_of_the_text(runs: Runs) -> None:
    theirs: list[Cell] = []
    for build in BUILDERS:
        theirs += [cell for cells in build(runs).rows if cells[1] == THEIRS for cell in cells[2:]]
    # 1 is the user's own profile, by definition.
    assert {cell for cell in theirs if cell is not None} == {THEIR_PRECISION, 1.0}


def test_figures_are_those_of_the_method_itself(runs: Runs) -> None:
    search = PersonalisedSearch(runs.profiles, index=SearchIndex.of(None), seed=3)
    groupings = [Plink(p=0.2, a=2, seed=3 + i).group(runs.profiles) for i in range(N_GROUPINGS)]
    found = [search.measure(each.release.groups, membership=each.membership) for each in groupings]
    outcome = runs.found(Run(p=0.2, a=2))
    assert outcome["precision"] == pytest.approx(fmean(each.group_profile for each in found))
    assert outcome["without_profile"] == pytest.approx(found[0].without_profile)
    assert outcome["average_group_size"] == pytest.approx(
        fmean(runs.profiles.n_users / each.release.groups.n_groups for each in groupings), abs=1e-5
    )


def test_groups_by_similarity_search_better_than_random_ones(runs: Runs) -> None:
    table = plink.fig2(runs)
    (ours,), (chance,) = row(table, "the group's profile"), row(table, "a random group's profile")
    assert chance < ours < 1
    assert row(table, "the user's own profile") == [1]


def test_precision_falls_and_groups_grow_as_p_falls(runs: Runs) -> None:
    precision = row(plink.fig4(runs), "as in the paper")
    sizes = row(plink.fig5(runs), "as in the paper")
    assert precision == sorted(precision)
    assert sizes == sorted(sizes, reverse=True)
    # The terms of a group are at least 1/p average profiles, so no average group is smaller than that by much.
    assert all(size >= 0.9 / p for p, size in zip(PS, sizes, strict=True))


def test_no_linkability_is_above_p_and_only_strict_bounds_the_share_of_a_term(runs: Runs) -> None:
    table = plink.fig6(runs)
    average, largest = row(table, "average |U|avg / |G|"), row(table, "largest |U|avg / |G|")
    shares, strict = row(table, "largest share of a term"), row(table, "largest share of a term, strict")
    for p, mean, most, share, bounded in zip(PS, average, largest, shares, strict, strict=True):
        assert mean <= most <= p + 1e-4
        assert bounded <= p + 1e-4
        assert share > p


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (plink.fig3, "the paper: the higher a, the better"),
        (plink.fig4, "the paper: the lower p, the lower the precision"),
        (plink.fig5, "the paper: groups get smaller as p grows"),
    ],
)
def test_notes_say_what_holds_by_the_figures(build: object, text: str, runs: Runs) -> None:
    table = build(runs)  # type: ignore[operator]
    figures = row(table, "as in the paper")
    rising = figures == sorted(figures) and len(set(figures)) > 1
    holds = figures == sorted(figures, reverse=True) if "smaller" in text else rising
    assert ("; holds here" in note(table, text)) == holds
    assert ("; does not hold here" in note(table, text)) != holds


def test_what_strict_costs_is_told_with_its_figures(runs: Runs) -> None:
    paper, strict = (runs.found(Run(strict=strict)) for strict in (False, True))
    assert strict["dropped"] > 0
    assert paper["dropped"] == 0
    told = note(plink.fig2(runs), "at p=0.4 a term")
    assert f"drops {100 * strict['dropped']:.1f} %" in told
    assert f"{strict['precision'] - paper['precision']:+.4f}" in told


def test_the_longest_profiles_are_taken_and_cut() -> None:
    words = synthesize(like="aol", users=3000, seed=1).log
    runs = gather(words, users=None, corpus=None, seed=1)
    sizes = runs.profiles.frame["terms"].list.len().to_list()
    assert runs.profiles.n_users == 720
    assert max(sizes) == 150
    assert min(sizes) > 1
    assert "of its 3,000 users the 720 with the most terms" in runs.notes[0]
    assert "the log was given" in runs.notes[0]
    assert "2,943 documents" in runs.notes[2]


def test_how_many_terms_two_users_share_is_counted() -> None:
    users = {f"u{i:02d}": ["dog"] if i % 2 else ["dog cat"] for i in range(20)}
    notes = gather(log_of(users), users=None, corpus=None, seed=0).notes
    # Every pair shares the dog, and the 45 pairs of the ten who have it the cat.
    assert f"2 distinct terms, and two users share {1 + 45 / 190:.1f} on average" in notes[1]


def test_random_groups_keep_their_sizes_and_hold_what_their_members_have() -> None:
    profiles = Profiles.from_dicts({f"u{i}": {f"term{i}": 1.0, "pear": 1.0} for i in range(9)})
    membership = pl.DataFrame({"user": [f"u{i}" for i in range(9)], "group": [5, 5, 5, 5, 5, 2, 2, 2, 2]})
    groups, dealt = by_chance(profiles, membership=membership, rng=np.random.default_rng(1))
    assert sorted(dealt["user"]) == sorted(membership["user"])
    assert dealt.sort("user").rows() != membership.sort("user").rows()
    assert groups.frame["members"].to_list() == [4, 5]
    assert groups.frame["size"].to_list() == [8, 10]
    for number, terms, weights in groups.frame.select("group", "terms", "weights").iter_rows():
        users = dealt.filter(pl.col("group") == number)["user"].to_list()
        expected = {f"term{user[1:]}": 1 / len(users) for user in users} | {"pear": 1.0}
        assert dict(zip(terms, weights, strict=True)) == pytest.approx(expected)


def test_a_given_corpus_is_searched_and_said_to_be_given() -> None:
    log = synthesize(like="aol", users=200, seed=2).log
    texts = tuple(f"music recipe {('garden', 'doctor', 'game', 'lamp')[i % 4]} {i}" for i in range(150))
    corpus = Corpus(ids=texts, titles=("",) * 150, texts=texts)
    table = reproduce("plink-fig5", log, corpus=corpus)
    assert "the corpus: a corpus that was given, 150 documents" in table.notes


def test_a_corpus_is_refused_where_nothing_is_searched_and_values_where_nothing_is_sold() -> None:
    corpus = Corpus(ids=("1",), titles=("",), texts=("a lamp",))
    with pytest.raises(BadParameter, match="corpus must be left out for clump-fig3, which searches nothing"):
        reproduce("clump-fig3", users=100, corpus=corpus)
    log = synthesize(users=50, seed=1).log
    with pytest.raises(BadParameter, match="values must be left out for plink-fig2"):
        reproduce("plink-fig2", log, values=term_values(log, seed=1))


def test_a_log_with_too_few_users_is_a_clear_error() -> None:
    with pytest.raises(BadInput, match=r"^2 users of the log have a term of WordNet, too few for these figures"):
        reproduce("plink-fig2", log_of({"u1": ["dog"], "u2": ["cat"], "u3": ["zzzunknown"]}))


def test_the_same_arguments_give_the_same_figures_and_another_seed_others() -> None:
    first, again, other = (reproduce("plink-fig2", users=60, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.rows != other.rows
    assert first.notes[0].startswith("the log is made up")


def test_every_run_is_told_once() -> None:
    runs = gather(None, users=60, corpus=None, seed=4)
    seen: list[str] = []
    with watch(lambda name, _share: seen.append(name)):
        plink.fig4(runs)
        plink.fig6(runs)
    assert seen == [f"p={p}, a=1, {promise}" for promise in ("as in the paper", "strict") for p in PS]


def test_no_note_or_cell_holds_a_term_and_reprs_hide_them() -> None:
    users = {f"persona{i:02d}": ["kestrel lantern mulberry", "bird tree animal person"] for i in range(25)}
    runs = gather(log_of(users), users=None, corpus=None, seed=0)
    shown = repr(runs) + str(plink.fig2(runs))
    assert not any(text in shown for text in ("kestrel", "lantern", "mulberry", "persona"))

"""p-linkability judged by hand-made near misses, by force, and against the original."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plink_by_force import verify_linkability_by_force

from queryveil.checks import Verdict, judge, verify, verify_linkability
from queryveil.data import GROUPS_SCHEMA, Groups, Profiles, QueryLog, Transactions
from queryveil.errors import BadInput, BadParameter
from queryveil.formats import read_log
from queryveil.guarantees import Linkability
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail, read_release
from queryveil.testing import log_of

Group = tuple[int, int, str, Sequence[int | None] | None]
"""Members, size, terms with blanks between them, and the holders of each."""


def shares_of(members: int, terms: str, holders: Sequence[int | None] | None) -> list[float]:
    """Return what a strict release has as weights: holders over members."""
    counts = [1] * len(terms.split()) if holders is None else holders
    return [max(round((n or 0) / members, 6), 1e-6) for n in counts]


def groups_of(rows: list[Group], weights: Sequence[Sequence[float]] | None = None) -> Groups:
    columns = [
        (i, members, size, terms.split(), shares_of(members, terms, holders), holders)
        for i, (members, size, terms, holders) in enumerate(rows, start=1)
    ]
    if weights is not None:
        columns = [(*row[:4], list(each), row[5]) for row, each in zip(columns, weights, strict=True)]
    return Groups(frame=pl.DataFrame(columns, schema=GROUPS_SCHEMA, orient="row"))


def judged(
    rows: list[Group],
    p: float,
    *,
    strict: bool = False,
    original: QueryLog | Profiles | None = None,
    weights: Sequence[Sequence[float]] | None = None,
) -> Verdict:
    promise = Linkability(p=p, strict=strict)
    fast, slow = (
        check(groups_of(rows, weights), promise, original=original)
        for check in (verify_linkability, verify_linkability_by_force)
    )
    assert fast == slow
    return fast


def found(verdict: Verdict) -> list[tuple[str, int, int, int, tuple[int, ...]]]:
    return [(w.kind, w.size, w.support, w.needed, w.rows) for w in verdict.witnesses]


def test_a_group_at_exactly_p_keeps_the_promise_of_the_paper_and_one_term_less_breaks_it() -> None:
    # 10 terms of 5 members are 2 on average; 2 of 5 terms are 0.4.
    assert judged([(3, 5, "a b c", None), (2, 5, "a b c", None)], 0.4).holds
    # 11 terms of 5 members are 2.2 on average; 2.2 of 5 terms are 0.44, and 6 terms are needed.
    broken = judged([(3, 6, "a b c", None), (2, 5, "a b c", None)], 0.4)
    assert found(broken) == [("linked_group", 2, 5, 6, (2,))]
    assert judged([(3, 6, "a b c", None), (2, 5, "a b c", None)], 0.44).holds


@pytest.mark.parametrize(("members", "p"), [(10, 0.1), (5, 0.2), (100, 0.07), (10, 0.3), (1000, 0.001)])
def test_p_is_the_decimal_that_it_is_written_as(members: int, p: float) -> None:
    # The float 0.1 is a little more than a tenth, 0.3 a little less; neither may decide.
    terms = " ".join(f"t{i}" for i in range(10))
    n = round(members * p)
    groups: list[Group] = [(members, 10 * n, terms, [n] * 10)]
    assert judged(groups, p, strict=True).holds
    more: list[Group] = [(members, 10 * n + 1, terms, [n] * 9 + [n + 1])]
    assert judged(more, p, strict=True).n_violations == 1


def test_the_average_is_over_the_members_of_all_groups() -> None:
    # Alone each group is at 1/2; together the average is 6 of 4 members, and the small group is at 3/4.
    small, large = (2, 2, "a b", None), (2, 4, "a b c", None)
    assert judged([small], 0.5).holds
    assert judged([large], 0.5).holds
    assert found(judged([small, large], 0.5)) == [("linked_group", 2, 2, 3, (1,))]


def test_a_group_without_terms_breaks_the_promise_of_the_paper() -> None:
    assert found(judged([(3, 0, "", None)], 1)) == [("linked_group", 3, 0, 1, (1,))]
    assert judged([(3, 0, "", [])], 0.4, strict=True).holds


def test_no_groups_keep_any_promise() -> None:
    for strict in (False, True):
        verdict = judged([], 0.4, strict=strict, original=log_of({"u": ["kitten"]}))
        assert verdict.in_words().endswith("linkability holds for 0 users.")


def test_a_size_that_the_terms_and_members_cannot_make_is_a_contradiction() -> None:
    assert judged([(2, 2, "a b", None)], 1).holds
    assert judged([(2, 4, "a b", None)], 1).holds
    assert found(judged([(2, 1, "a b", None)], 1)) == [("contradiction", 2, 1, 2, (1,))]
    assert found(judged([(2, 5, "a b", None)], 1)) == [("contradiction", 2, 5, 2, (1,))]
    assert found(judged([(2, 1, "", None)], 1)) == [("contradiction", 2, 1, 0, (1,))]


def test_counts_near_the_largest_number_are_no_way_around() -> None:
    most = 2**63 - 1
    assert judged([(2**62, most, "a b c d", None), (2**62, most, "a b c d", None)], 0.5).holds
    wrong = judged([(most, 4, "a b c d", [most, most, 3, 3])], 1, strict=True)
    assert found(wrong) == [("contradiction", most, 4, 4, (1,))]


def test_a_term_held_by_exactly_p_passes_strictly_and_one_more_holder_does_not() -> None:
    assert judged([(5, 4, "a b", [2, 2])], 0.4, strict=True).holds
    verdict = judged([(5, 5, "a b", [2, 3])], 0.4, strict=True)
    assert found(verdict) == [("linked_term", 1, 3, 2, (1,))]
    assert verdict.witnesses[0].positions == (2,)


def test_strict_asks_nothing_of_the_average_and_the_paper_nothing_of_the_holders() -> None:
    groups: list[Group] = [(5, 1, "a", [1]), (5, 10, "a b c d e", [2, 2, 2, 2, 2])]
    assert judged(groups, 0.4, strict=True).holds
    assert found(judged(groups, 0.4)) == [("linked_group", 5, 1, 3, (1,))]
    assert judged([(2, 4, "a b", [2, 2])], 0.5).holds
    assert judged([(2, 4, "a b", [2, 2])], 0.5, strict=True).n_violations == 2


def test_holders_that_do_not_add_up_to_the_size_are_a_contradiction() -> None:
    for holders in ([2, 1], [2, 3], [0, 4], [-1, 5], [6, -2]):
        kinds = [w.kind for w in judged([(5, 4, "a b", holders)], 1, strict=True).witnesses]
        assert kinds.count("contradiction") == 1


def test_more_holders_than_members_are_a_contradiction_even_where_everything_is_allowed() -> None:
    assert judged([(3, 4, "a b", [3, 1])], 1, strict=True).holds
    kinds = {w.kind for w in judged([(2, 4, "a b", [3, 1])], 1, strict=True).witnesses}
    assert kinds == {"contradiction", "linked_term"}


def test_without_holders_strict_cannot_be_proven() -> None:
    groups: list[Group] = [(5, 4, "a b", [2, 2]), (5, 4, "a b", None)]
    assert found(judged(groups, 0.4, strict=True)) == [("missing_holders", 5, 0, 2, (2,))]
    assert judged(groups, 0.5).holds


def test_violations_are_counted_and_the_first_ten_kept() -> None:
    terms = " ".join(f"t{i}" for i in range(30))
    verdict = judged([(5, 90, terms, [3] * 30)], 0.4, strict=True)
    assert (verdict.n_violations, len(verdict.witnesses)) == (30, 10)
    assert [w.positions for w in verdict.witnesses] == [(i,) for i in range(1, 11)]
    assert (verdict.n_users, verdict.n_checked_users) == (5, 5)


PETS = Profiles.from_dicts({"u1": {"kitten": 1.0, "Riding": 0.8}, "u2": {"kitten": 0.6}, "u3": {"pup": 1.0}, "u4": {}})


def test_terms_of_the_profiles_may_be_released_as_they_stand_and_no_others() -> None:
    assert judged([(4, 4, "kitten Riding pup", [2, 1, 1])], 0.5, strict=True, original=PETS).holds
    assert judged([(4, 4, "kitten riding pup", [2, 1, 1])], 0.5, strict=True, original=PETS).holds
    verdict = judged([(4, 4, "kitten ride pup", [2, 1, 1])], 0.5, strict=True, original=PETS)
    assert found(verdict) == [("invented_term", 1, 1, 0, (1,))]
    assert verdict.witnesses[0].positions == (2,)
    assert found(judged([(4, 4, "kitten ride pup", None)], 0.5, original=PETS)) == found(verdict)


def test_one_holder_more_than_in_the_original_is_found_even_over_several_groups() -> None:
    two: list[Group] = [(2, 1, "kitten", [1]), (2, 1, "kitten", [1])]
    assert judged(two, 0.5, strict=True, original=PETS).holds
    off: list[Group] = [(2, 1, "kitten", [1]), (2, 2, "kitten pup", [1, 1]), (2, 1, "kitten", [1])]
    assert found(judged([*off[:2], (1, 1, "kitten", [1])], 1, strict=True, original=PETS)) == [
        ("invented_members", 0, 5, 4, ()),
        ("invented_term", 1, 3, 2, (1,)),
    ]
    # Each group that has a term has somebody who holds it, whether it says so or not.
    assert ("invented_term", 1, 3, 2, (1,)) in found(judged(off, 1, original=PETS))


def test_more_members_than_users_are_invented() -> None:
    assert judged([(4, 2, "kitten", [2])], 0.5, strict=True, original=PETS).holds
    verdict = judged([(5, 2, "kitten", [2])], 0.5, strict=True, original=PETS)
    assert found(verdict) == [("invented_members", 0, 5, 4, ())]


def test_of_a_log_the_terms_are_its_words_in_lower_case_once_for_each_user() -> None:
    log = log_of({"u1": ["Kitten FOOD", "kitten"], "u2": ["food: kitten?"], "u3": [""]})
    assert judged([(3, 4, "kitten food", [2, 2])], 0.7, strict=True, original=log).holds
    assert not judged([(3, 5, "kitten food", [3, 2])], 1, strict=True, original=log).holds
    assert not judged([(3, 4, "Kitten food", [2, 2])], 0.7, strict=True, original=log).holds
    assert not judged([(3, 4, "kittens food", [2, 2])], 0.7, strict=True, original=log).holds


def test_a_sign_that_python_does_not_know_may_have_been_read_as_a_separator() -> None:
    log = log_of({"u1": ["kitten\U000e0fff"], "u2": ["kitten"]})
    released = groups_of([(2, 2, "kitten", [2])])
    assert verify_linkability(released, Linkability(p=1, strict=True), original=log).holds


def test_a_strict_weight_is_the_share_of_the_holders_and_nothing_else() -> None:
    rows: list[Group] = [(7, 4, "a b c", [1, 1, 2])]
    assert judged(rows, 0.4, strict=True, weights=[[0.142857, 0.142857, 0.285714]]).holds
    # What profiles of two and of four terms bring in that were scaled to the length 1.
    scaled = judged(rows, 0.4, strict=True, weights=[[0.101015, 0.071429, 0.142857]])
    assert [(w.kind, w.positions) for w in scaled.witnesses] == [("other_weight", (i,)) for i in (1, 2, 3)]
    assert scaled.witnesses[0].in_words() == (
        "the weight of a term is not the share of its holders, 1 of 7 members (row 1)"
    )
    for marked in (0.142858, 0.1428571, 0.14, 1 / 7, 1.142857, 1e308):
        assert judged(rows, 0.4, strict=True, weights=[[0.142857, marked, 0.285714]]).n_violations == 1
    assert judged(rows, 0.8, weights=[[0.101015, 0.071429, 0.142857]]).holds, "the paper says nothing of weights"


def test_a_share_that_would_be_rounded_away_has_the_least_weight() -> None:
    rows: list[Group] = [(10**7, 1, "a", [1])]
    assert judged(rows, 0.4, strict=True, weights=[[1e-6]]).holds
    assert not judged(rows, 0.4, strict=True, weights=[[2e-6]]).holds
    assert not judged([(10**7, 16, "a", [16])], 0.4, strict=True, weights=[[1e-6]]).holds
    # Halves of the last digit may be rounded either way.
    for weight in (0.007812, 0.007813):
        assert judged([(128, 1, "a", [1])], 0.4, strict=True, weights=[[weight]]).holds
    assert not judged([(128, 1, "a", [1])], 0.4, strict=True, weights=[[0.007811]]).holds


@examples(40)
@given(st.integers(1, 3_000_000), st.data())
def test_only_the_share_in_six_digits_is_a_weight(members: int, data: st.DataObject) -> None:
    holders = data.draw(st.integers(1, members))
    near = data.draw(st.integers(-2, 2))
    weight = max(round(holders / members, 6) + near / 1e6 + data.draw(st.sampled_from([0.0, 1e-7, -3e-7])), 1e-7)
    verdict = judged([(members, holders, "a", [holders])], 1, strict=True, weights=[[weight]])
    event(f"holds: {verdict.holds}")


counts = st.integers(1, 5)
random_groups = st.lists(
    st.tuples(counts, st.integers(0, 8), st.lists(st.sampled_from("abcde"), max_size=4, unique=True).map(" ".join)),
    max_size=6,
)
shares = st.sampled_from([0.1, 0.2, 0.25, 0.4, 0.5, 0.6, 2 / 3, 1.0])


@examples(40)
@given(random_groups, shares, st.booleans(), st.data())
def test_the_fast_checker_agrees_with_the_definition(
    drawn: list[tuple[int, int, str]], p: float, strict: bool, data: st.DataObject
) -> None:
    rows: list[Group] = []
    for members, size, terms in drawn:
        n = len(terms.split())
        holders = data.draw(st.none() | st.lists(st.integers(0, 4), min_size=n, max_size=n))
        fits = data.draw(st.booleans())
        rows.append((members, sum(holders) if fits and holders is not None else size, terms, holders))
    people = data.draw(st.none() | st.lists(st.lists(st.sampled_from("abcde"), unique=True), max_size=15))
    original = (
        None if people is None else Profiles.from_dicts({str(i): dict.fromkeys(t, 1.0) for i, t in enumerate(people)})
    )
    event(f"holds: {judged(rows, p, strict=strict, original=original).holds}")
    if people is not None:
        as_log = log_of({str(i): terms or [""] for i, terms in enumerate(people)})
        assert judged(rows, p, strict=strict, original=as_log) == judged(rows, p, strict=strict, original=original)


@examples(40)
@given(st.lists(st.lists(st.sets(st.sampled_from("abcdef"), min_size=1), min_size=1, max_size=4), max_size=3), shares)
def test_groups_that_were_counted_rightly_contradict_nothing(people: list[list[set[str]]], p: float) -> None:
    rows: list[Group] = []
    for members in people:
        terms = sorted(set().union(*members))
        holders = [sum(term in one for one in members) for term in terms]
        rows.append((len(members), sum(map(len, members)), " ".join(terms), holders))
    original = Profiles.from_dicts(
        {f"{i} {j}": dict.fromkeys(one, 1.0) for i, members in enumerate(people) for j, one in enumerate(members)}
    )
    for strict in (False, True):
        kinds = {w.kind for w in judged(rows, p, strict=strict, original=original).witnesses}
        assert kinds <= {"linked_term" if strict else "linked_group"}


def test_a_verdict_holds_no_term_unless_it_is_asked_to_show_it() -> None:
    rows: list[Group] = [(2, 3, "quartz amber", [2, 1]), (1, 1, "opal", [1]), (4, 1, "jade", None), (3, 9, "onyx", [1])]
    verdict = judged(rows, 0.5, strict=True, original=Profiles.from_dicts({"persona1": {"quartz": 1.0, "jade": 1.0}}))
    said = [repr(verdict), str(verdict.to_dict()), verdict.in_words(), *(w.in_words() for w in verdict.witnesses)]
    assert not any(word in text for text in said for word in ("quartz", "amber", "opal", "jade", "onyx", "persona"))
    assert set(verdict.show(groups_of(rows))) == {
        "the release as a whole has 10 members, the original 1 user",
        "quartz: a term of a group is held by 2 of its members, 1 is allowed (row 1)",
        "opal: a term of a group is held by 1 of its members, 0 are allowed (row 2)",
        "a group of 4 members does not say how many hold each term (row 3)",
        "the counts of a group of 3 members cannot all be true (row 4)",
        "quartz: a term has at least 2 holders in the release, 1 in the original (row 1)",
        "amber: a term has at least 1 holder in the release, 0 in the original (row 1)",
        "opal: a term has at least 1 holder in the release, 0 in the original (row 2)",
        "onyx: a term has at least 1 holder in the release, 0 in the original (row 4)",
    }
    with pytest.raises(BadInput, match="not the log that was judged"):
        verdict.show(groups_of([]))
    words = judged([(3, 4, "a b", None)], 0.3).witnesses[0].in_words()
    assert words == "the members of a group (3) bring in 4 terms, 5 are needed (row 1)"


def release_of(rows: list[Group], *, p: float, strict: bool = False) -> Release:
    n_members = sum(row[0] for row in rows)
    counts = Counts(n_rows_before=n_members, n_rows_after=len(rows), n_users_before=n_members, n_users_after=n_members)
    manifest = Manifest(
        method="by hand",
        promise=Linkability(p=p, strict=strict),
        parameters={"weights": "given"},
        counts=counts,
        removed={},
        columns=ColumnReport(ids=Ids.FRESH, time=TimeDetail.DROP),
    )
    return Release(data=groups_of(rows), manifest=manifest)


def test_a_release_of_groups_is_written_read_and_judged(tmp_path: Path) -> None:
    good: list[Group] = [(4, 4, "kitten Riding pup", [2, 1, 1])]
    folder = release_of(good, p=0.5, strict=True).save(tmp_path / "out")
    assert read_release(folder).groups.frame.equals(groups_of(good).frame)
    assert verify(folder).in_words() == "Strict 0.5-linkability holds for 4 users."
    assert verify(folder, original=PETS).holds
    assert not verify(folder, original=log_of({"u1": ["kitten"]})).holds
    assert verify(release_of(good, p=0.4, strict=True).save(tmp_path / "broken")).n_violations == 1
    assert verify(release_of(good, p=0.25).save(tmp_path / "paper")).holds
    assert not verify(release_of(good, p=0.24).save(tmp_path / "linked")).holds


def test_the_original_may_be_a_log_in_a_file(tmp_path: Path) -> None:
    log = log_of({"u1": ["kitten"], "u2": ["kitten pup"]})
    log.frame.write_parquet(tmp_path / "log.parquet")
    release = release_of([(2, 3, "kitten pup", None)], p=0.5)
    assert verify(release, original=tmp_path / "log.parquet").holds
    assert verify(release_of([(2, 3, "kitten cub", None)], p=0.5), original=tmp_path / "log.parquet").n_violations == 1


def test_the_original_may_be_profiles_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "pets.jsonl").write_text(
        '{"user": "u1", "terms": {"kitten": 1, "Riding": 0.8}}\n{"user": "u2", "terms": ["kitten"]}\n'
    )
    release = release_of([(2, 3, "kitten Riding", None)], p=0.5)
    assert verify(release, original=tmp_path / "pets.jsonl").holds
    assert verify(release_of([(2, 3, "kitten ride", None)], p=0.5), original=tmp_path / "pets.jsonl").n_violations == 1


def test_the_promise_is_about_groups() -> None:
    promise, baskets = Linkability(p=0.5), Transactions.from_frame({"items": [["x"]]})
    with pytest.raises(BadInput, match="this promise is about groups of profiles, and the data is a log"):
        judge(log_of({}), promise)
    with pytest.raises(BadParameter, match="original must be a log or profiles"):
        verify(release_of([], p=0.5), original=baskets)
    assert judge(groups_of([(2, 3, "a b", None)]), promise).holds


def test_items_of_an_original_keep_their_signs(tmp_path: Path) -> None:
    (tmp_path / "baskets.dat").write_text("Wi-Fi tea\n" * 2)
    original = read_log(tmp_path / "baskets.dat", format="transactions")
    assert verify(release_of([(2, 4, "Wi-Fi tea", None)], p=0.5), original=original).holds
    assert verify(release_of([(2, 4, "Wi tea", None)], p=0.5), original=original).n_violations == 1

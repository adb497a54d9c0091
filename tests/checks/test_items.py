"""(k, m)-anonymity of items and of nodes in angle brackets: cut at blanks, and compared with the original."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.km_by_force import verify_km_by_force

from queryveil.checks import verify_km
from queryveil.checks.invented import invented
from queryveil.checks.tokens import terms_of, tokenise
from queryveil.data import Format, Layout, QueryLog
from queryveil.guarantees import KmAnonymity
from queryveil.text.taxonomy import Taxonomy

TREE = Taxonomy.from_pairs(
    [("hot drink", "drink"), ("tea", "hot drink"), ("cocoa", "hot drink"), ("juice", "drink"), ("drink", "thing")]
)
ITEMS = KmAnonymity(k=2, m=2, items=True)


def log_of(queries: list[str], *, file_format: Format = Format.PARQUET) -> QueryLog:
    frame = {"user": [str(i) for i in range(len(queries))], "query": queries}
    return QueryLog.from_frame(frame, layout=Layout(format=file_format))


def test_the_promise_says_that_it_is_about_items_only_where_it_is() -> None:
    assert repr(KmAnonymity(k=2, m=1)) == "KmAnonymity(k=2, m=1)"
    assert repr(ITEMS) == "KmAnonymity(k=2, m=2, items=True)"


@given(st.text("aB <>-_\t\n\r\u00a0é\u0301.", max_size=20))
def test_items_are_what_stands_between_blanks_just_as_it_is_written(query: str) -> None:
    terms = terms_of(query, items=True)
    for blank in "\t\n\r":
        query = query.replace(blank, " ")
    assert terms == [part for part in query.split(" ") if part]
    numbered = tokenise(log_of([query]).frame["query"], items=True)
    assert [numbered.words[int(i)] for i in numbered.terms] == terms


def test_case_and_punctuation_tell_items_apart_but_not_terms() -> None:
    log = log_of(["a-b C", "A-B c"])
    for judge in (verify_km, verify_km_by_force):
        assert judge(log, KmAnonymity(k=2, m=2)).holds
        verdict = judge(log, ITEMS)
        assert verdict.n_violations == 4
        assert {line.partition(":")[0] for line in verdict.show(log)} == {"a-b", "C", "A-B", "c"}


def test_a_node_of_several_words_is_one_item() -> None:
    log = log_of(["<hot_drink> x", "<hot_drink> x", "hot x", "drink x"])
    assert verify_km(log, ITEMS).n_violations == 2


def found(before: list[str], after: list[str], *, tree: Taxonomy | None = TREE) -> list[tuple[int, int, int]]:
    n, witnesses = invented(log_of(after), original=log_of(before), promise=ITEMS, taxonomy=tree)
    assert n == len(witnesses)
    return [(w.size, w.support, w.needed) for w in witnesses]


def test_a_node_may_stand_for_what_is_below_it() -> None:
    assert found(["Tea!", "cocoa", "x"], ["<hot_drink>", "<hot_drink>", "x"]) == []
    assert found(["tea cocoa", "juice"], ["<hot_drink> <hot_drink>", "<drink>"]) == []
    assert found(["drink"], ["<drink>"]) == []


def test_a_node_with_more_users_than_all_below_it_is_invented() -> None:
    assert found(["tea", "juice"], ["<hot_drink>", "<hot_drink>"]) == [(1, 2, 0)]
    assert found(["tea cocoa", "x"], ["<hot_drink>", "<hot_drink>"]) == [(1, 2, 0)]


def test_a_node_with_more_occurrences_than_all_below_it_is_invented() -> None:
    assert found(["tea"], ["<hot_drink> <hot_drink>"]) == [(1, 1, 0)]


def test_an_inner_node_without_brackets_is_a_term_that_must_have_been_there() -> None:
    assert found(["tea"], ["drink"]) == [(1, 1, 0)]
    assert found(["Drink"], ["drink"]) == []


def test_what_only_looks_like_a_node_is_invented_if_the_taxonomy_lacks_it() -> None:
    assert found(["tea"], ["<nosuch>"]) == [(1, 1, 0)]
    assert found(["tea"], ["<tea"]) == [(1, 1, 0)]


def test_without_a_taxonomy_nodes_are_not_judged_but_all_else_is() -> None:
    assert found(["tea"], ["<nosuch>"], tree=None) == []
    assert found(["tea"], ["other"], tree=None) == [(1, 1, 0)]


def test_a_transaction_file_is_cut_at_blanks_and_any_other_original_into_terms() -> None:
    after = log_of(["a-b", "x"])
    for file_format, n in ((Format.TRANSACTIONS, 0), (Format.CSV, 1)):
        original = log_of(["a-b", "X x"], file_format=file_format)
        assert invented(after, original=original, promise=ITEMS)[0] == n


@pytest.mark.parametrize("m", [1, 2, None])
@examples(40)
@given(queries=st.lists(st.lists(st.sampled_from(["a", "A", "<a>", "a.", "b"]), max_size=3).map(" ".join), max_size=9))
def test_fast_and_by_force_agree_on_items(m: int | None, queries: list[str]) -> None:
    promise = KmAnonymity(k=2, m=m, items=True)
    fast, slow = (judge(log_of(queries), promise) for judge in (verify_km, verify_km_by_force))
    assert (fast.holds, fast.n_violations, fast.n_checked_users) == (
        slow.holds,
        slow.n_violations,
        slow.n_checked_users,
    )


@examples(40)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(["tea", "cocoa", "juice", "x"]), st.integers(0, 3)), max_size=4), max_size=6
    )
)
def test_moving_terms_up_or_leaving_them_out_invents_nothing(rows: list[list[tuple[str, int]]]) -> None:
    def stands(word: str, steps: int) -> list[str]:
        if word == "x" or steps == 0:
            return [word] if steps == 0 else []
        path = TREE.ancestors(TREE.find(word))
        return ["<" + str(TREE.names[path[steps]]).replace(" ", "_") + ">"] if steps < len(path) else []

    before = [" ".join(word for word, _ in row) for row in rows]
    after = [" ".join(part for word, steps in row for part in stands(word, steps)) for row in rows]
    assert found(before, after) == []

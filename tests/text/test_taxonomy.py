"""Trees of items: from pairs, from files, balanced, and cut down to what occurs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_wordnet import senses_of

from queryveil.data import Int32s
from queryveil.errors import BadFile, BadParameter, BadRow
from queryveil.text.taxonomy import Taxonomy

FOOD = [
    ("fruit", "food"),
    ("apple", "fruit"),
    ("orange", "fruit"),
    ("banana", "fruit"),
    ("meat", "food"),
    ("chicken", "meat"),
    ("beef", "meat"),
    ("dairy", "food"),
    ("milk", "dairy"),
    ("butter", "dairy"),
    ("cheese", "dairy"),
]


def names(tree: Taxonomy, nodes: Int32s | list[int]) -> list[str]:
    return [str(tree.names[int(node)]) for node in nodes]


def write(folder: Path, *lines: str) -> Path:
    path = folder / "items.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@st.composite
def any_tree(draw: st.DrawFn) -> tuple[Taxonomy, dict[str, str]]:
    """Draw a tree whose pairs come in any order, and the parent of each name."""
    n = draw(st.integers(2, 40))
    above = {f"n{child}": f"n{draw(st.integers(0, child - 1))}" for child in range(1, n)}
    return Taxonomy.from_pairs(draw(st.permutations(list(above.items())))), above


def test_the_loss_of_the_papers_food_is_the_papers() -> None:
    food = Taxonomy.from_pairs(FOOD)
    loss = {name: food.loss[food.find(name)] for name in ("fruit", "meat", "dairy", "food", "apple")}
    assert loss == pytest.approx({"fruit": 2 / 7, "meat": 1 / 7, "dairy": 2 / 7, "food": 1, "apple": 0})


def test_the_root_is_node_0_on_level_1_and_children_follow_in_their_order() -> None:
    food = Taxonomy.from_pairs(FOOD)
    order = ["food", "fruit", "apple", "orange", "banana", "meat", "chicken", "beef", "dairy", "milk", "butter"]
    assert food.names.to_list() == [*order, "cheese"]
    assert food.parent.tolist() == [-1, 0, 1, 1, 1, 0, 5, 5, 0, 8, 8, 8]
    assert food.level.tolist() == [1, 2, 3, 3, 3, 2, 3, 3, 2, 3, 3, 3]
    assert food.n_leaves.tolist() == [8, 3, 1, 1, 1, 2, 1, 1, 3, 1, 1, 1]


def test_the_smallest_tree_has_one_leaf_and_no_loss() -> None:
    tree = Taxonomy.from_pairs([("only", "root")])
    assert tree.n_leaves.tolist() == [1, 1]
    assert tree.loss.tolist() == [0, 0]
    assert Taxonomy.balanced(["alone"], fan_out=2).loss.tolist() == [0]


def test_words_are_found_in_lower_case_and_with_letters_composed() -> None:
    tree = Taxonomy.from_pairs([("Ice  Cream", "Food"), ("CAFE\u0301", "food")])
    assert names(tree, [0, 1, 2]) == ["Food", "Ice Cream", "CAFE\u0301"]
    words = ["ice cream", " ICE CREAM\n", "FOOD", "café", "Cafe\u0301", "icecream", "foods", "", None]
    assert tree.find_all(pl.Series(words)).tolist() == [1, 1, 0, 2, 2, -1, -1, -1, -1]
    assert [tree.find(word or "") for word in words] == [1, 1, 0, 2, 2, -1, -1, -1, -1]


def test_a_word_of_a_plain_tree_has_one_sense_and_one_hypernym() -> None:
    food = Taxonomy.from_pairs(FOOD)
    assert names(food, senses_of(food, "Beef")) == ["beef"]
    assert names(food, food.node_hypernyms.row(food.find("beef"))) == ["meat"]
    assert food.node_hypernyms.row(0).tolist() == senses_of(food, "tofu").tolist() == []


def test_nobody_can_change_a_tree_that_others_use() -> None:
    food = Taxonomy.from_pairs(FOOD)
    for array in (food.parent, food.level, food.last, food.n_leaves, food.loss, *food.node_hypernyms):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_a_repr_is_short_and_names_no_item() -> None:
    assert repr(Taxonomy.from_pairs(FOOD)) == "Taxonomy(n_nodes=12, n_leaves=8, depth=3)"


@given(any_tree())
def test_any_tree_is_numbered_so_that_its_arrays_agree_with_its_pairs(drawn: tuple[Taxonomy, dict[str, str]]) -> None:
    tree, above = drawn
    assert {tree.names[v]: tree.names[int(tree.parent[v])] for v in range(1, tree.n_nodes)} == above
    assert tree.parent[0] == -1
    assert (tree.parent[1:] < np.arange(1, tree.n_nodes)).all()
    paths = [tree.ancestors(node) for node in range(tree.n_nodes)]
    assert tree.level.tolist() == [len(path) for path in paths]
    assert all(path[-1] == 0 for path in paths)
    leaves = set(range(tree.n_nodes)) - set(tree.parent.tolist())
    below = [{node for node in range(tree.n_nodes) if top in paths[node]} for top in range(tree.n_nodes)]
    assert tree.n_leaves.tolist() == [len(nodes & leaves) for nodes in below]
    assert [set(range(a, b + 1)) for a, b in enumerate(tree.last)] == below


def test_a_long_chain_and_a_wide_tree_are_quick_enough_to_finish() -> None:
    chain = Taxonomy.from_pairs((str(i + 1), str(i)) for i in range(50_000))
    assert chain.level.max() == 50_001
    assert chain.n_leaves.max() == 1
    wide = Taxonomy.from_pairs((str(i), "top") for i in range(50_000))
    assert wide.n_leaves[0] == 50_000
    assert wide.last[0] == 50_000


@examples(40)
@given(any_tree(), st.data())
def test_a_restricted_tree_has_the_given_nodes_and_what_is_above_them(
    drawn: tuple[Taxonomy, dict[str, str]], data: st.DataObject
) -> None:
    tree, above = drawn
    given_nodes = data.draw(st.lists(st.integers(-1, tree.n_nodes - 1), max_size=6))
    small, number = tree.restricted_to(given_nodes)
    kept = sorted({0}.union(*(tree.ancestors(node) for node in given_nodes)))
    assert np.flatnonzero(number >= 0).tolist() == kept
    assert small.names.to_list() == names(tree, kept)
    pairs = [(name, above[name]) for name in names(tree, kept[1:])]
    if pairs:
        again = Taxonomy.from_pairs(pairs)
        assert sorted(zip(again.names, again.n_leaves, again.level, strict=True)) == sorted(
            zip(small.names, small.n_leaves, small.level, strict=True)
        )
    assert small.find_all(tree.names).tolist() == number.tolist()
    for node in kept[1:]:
        assert small.node_hypernyms.row(int(number[node])).tolist() == [number[tree.parent[node]]]


def test_restricting_to_all_leaves_changes_nothing() -> None:
    food = Taxonomy.from_pairs(FOOD)
    same, number = food.restricted_to(np.flatnonzero(food.n_leaves == 1).astype(np.int32))
    assert number.tolist() == list(range(12))
    assert same.parent.tolist() == food.parent.tolist()
    assert same.loss.tolist() == food.loss.tolist()


def test_the_way_back_from_names_is_exact() -> None:
    tree = Taxonomy.from_pairs([("Ice cream", "food"), ("milk", "food")])
    assert tree.find_names(pl.Series(["food", "milk", "Ice cream", "ice cream", None])).tolist() == [0, 2, 1, -1, -1]


def test_a_name_is_one_word_however_many_blanks_it_has() -> None:
    assert Taxonomy.from_pairs([("Ice \u00a0 cream", "food")]).item_names.to_list() == ["food", "Ice_cream"]


def test_a_file_with_a_mark_blanks_quotes_and_empty_lines_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "\ufeffChild , PARENT", ' apple ,"fruit, ripe"', "", "  ", '"fruit, ripe", food', "")
    tree = Taxonomy.read_csv(path)
    assert tree.names.to_list() == ["food", "fruit, ripe", "apple"]
    assert tree.find("Fruit, Ripe") == 1


@pytest.mark.parametrize(
    ("rows", "line", "reason"),
    [
        (["a,r", "b,c", "c,d", "d,b"], 5, "this row closes a cycle with lines 3, 4; take one"),
        (["b,c", "d,b", "c,d"], 4, "this row closes a cycle with lines 2, 3; take one"),
        (["d,b", "a,r", "b,d"], 4, "this row closes a cycle with line 2; take one"),
        (["b,c", "c,b"], 3, "this row closes a cycle with line 2; take one"),
        (["a,r", "A, a"], 3, "child and parent are the same"),
        (["a,r", "b,r", "c,s", "d,t"], 4, "the parent is a second root beside that of line 2; give one"),
        (["a,r", "b,r", "b,a"], 4, "the child already has a parent, in line 3; keep one"),
        (["a,r", "a,r"], 3, "the child already has a parent, in line 2; keep one"),
        (["a,r", ",r"], 3, "the child has no name"),
        (["a,r", "r, "], 3, "the parent has no name"),
        (["a,r", "b"], 3, "expected two columns, child and parent, found 1"),
        (["a,r", "", "b,c,d"], 4, "expected two columns, child and parent, found 3"),
        (["a,r", '"b"c,r'], 3, "not in CSV format"),
    ],
)
def test_a_row_that_fits_no_tree_is_named_by_its_line(tmp_path: Path, rows: list[str], line: int, reason: str) -> None:
    with pytest.raises(BadRow) as raised:
        Taxonomy.read_csv(write(tmp_path, "child,parent", *rows))
    assert raised.value.line == line
    assert str(raised.value).startswith(f"items.csv, line {line}: {reason}")
    assert "\n" not in str(raised.value)


def test_a_long_cycle_is_told_in_one_short_line() -> None:
    with pytest.raises(BadRow, match=r"^the pairs, line 200: .* with lines 1, 2, 3, 4, 5 and 194 more; take one"):
        Taxonomy.from_pairs((str(i), str((i + 1) % 200)) for i in range(200))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "line 1 must be the header child,parent"),
        (b"apple,fruit\n", "line 1 must be the header child,parent"),
        (b"child,parent\n\n", "there are no rows under the header"),
        (b"child,parent\ncaf\xe9,food\n", "the text is not UTF-8"),
    ],
)
def test_a_file_that_holds_no_pairs_is_a_clear_error(tmp_path: Path, text: bytes, reason: str) -> None:
    path = tmp_path / "items.csv"
    path.write_bytes(text)
    with pytest.raises(BadFile, match=f"^items.csv: {reason}"):
        Taxonomy.read_csv(path)


def test_a_missing_file_and_a_folder_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"^none.csv: cannot be opened \(No such file"):
        Taxonomy.read_csv(tmp_path / "none.csv")
    with pytest.raises(BadFile, match="cannot be opened"):
        Taxonomy.read_csv(tmp_path)


@given(st.integers(1, 300), st.integers(2, 9))
def test_a_balanced_tree_is_as_flat_as_its_fan_out_allows(n: int, fan_out: int) -> None:
    tree = Taxonomy.balanced(range(n), fan_out=fan_out)
    is_leaf = tree.n_leaves == 1
    assert tree.names.filter(pl.Series(is_leaf)).to_list() == [str(item) for item in range(n)]
    n_children = np.bincount(tree.parent[1:], minlength=tree.n_nodes)
    assert n_children.max() <= fan_out
    assert (n_children[~is_leaf] >= 2).all()
    depth = next(d for d in range(20) if fan_out**d >= n) + 1
    assert tree.level.max() == depth
    assert tree.level[is_leaf].min() >= depth - 1


def test_numbers_sort_as_numbers_before_words_and_repeats_are_one() -> None:
    tree = Taxonomy.balanced(pl.Series(["pear", "10", "9", "1.5", "Apple", "apple", None, " ", "9"]), fan_out=9)
    assert tree.names.to_list() == ["1.5..pear", "1.5", "9", "10", "Apple", "pear"]
    assert Taxonomy.balanced([3, 20, 100], fan_out=2).names.to_list() == ["3..100", "3..20", "3", "20", "100"]


def test_what_cannot_be_balanced_is_refused() -> None:
    with pytest.raises(BadParameter, match="fan_out must be 2 or more, got 1"):
        Taxonomy.balanced(["a"], fan_out=1)
    with pytest.raises(BadParameter, match="items must be at least one item"):
        Taxonomy.balanced([], fan_out=2)
    with pytest.raises(BadParameter, match="names without two dots"):
        Taxonomy.balanced(["a", "a..b", "b", "A..B..b"], fan_out=2)

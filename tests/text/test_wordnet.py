"""The nouns of WordNet, as the package ships them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_wordnet import plain_find, senses_of

from queryveil.text.taxonomy import Taxonomy

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "src" / "queryveil" / "text" / "data"
DEBIAN = Path("/usr/share/wordnet")

PLURAL_ENDINGS = ["", "s", "es", "ses", "men", "ies", "sful", "ss", "'s", "xes", " zs"]


@pytest.fixture(scope="module")
def nouns() -> Taxonomy:
    return Taxonomy.wordnet()


def path_of(nouns: Taxonomy, word: str) -> list[str]:
    return [str(nouns.names[node]) for node in nouns.ancestors(nouns.find(word))]


def the_builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_wordnet", ROOT / "tools" / "build_wordnet.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_noun_synsets_are_there_once_and_every_path_ends_at_entity(nouns: Taxonomy) -> None:
    assert repr(nouns) == "Taxonomy(n_nodes=82115, n_leaves=65218, depth=20)"
    assert nouns.names[0] == "entity"
    assert nouns.find("entity") == 0
    assert nouns.level[0] == 1
    assert nouns.parent[0] == -1
    assert (nouns.parent[1:] >= 0).all()
    assert (nouns.parent[1:] < np.arange(1, nouns.n_nodes)).all()
    assert nouns.loss[0] == 1
    assert nouns.loss.min() == 0


def test_subtrees_are_runs_of_numbers(nouns: Taxonomy) -> None:
    assert (np.arange(1, nouns.n_nodes) <= nouns.last[nouns.parent[1:]]).all()
    # Sizes add up: a node and the subtrees of its children.
    size = nouns.last - np.arange(nouns.n_nodes) + 1
    below = np.bincount(nouns.parent[1:], weights=size[1:], minlength=nouns.n_nodes)
    assert (size == 1 + below).all()
    leaves = np.bincount(nouns.parent[1:], weights=nouns.n_leaves[1:], minlength=nouns.n_nodes)
    assert (nouns.n_leaves == np.where(size == 1, 1, leaves)).all()
    assert (nouns.level[1:] == nouns.level[nouns.parent[1:]] + 1).all()


def test_kitten_and_pup_are_young_mammals(nouns: Taxonomy) -> None:
    young = nouns.find("young mammal")
    assert path_of(nouns, "kitten")[:4] == ["kitten", "young mammal", "young", "animal"]
    assert nouns.parent[nouns.find("kitten")] == nouns.parent[nouns.find("pup")] == young
    assert nouns.find("kitty") != nouns.find("kitten")
    assert nouns.find("kitten") in senses_of(nouns, "kitty")


def test_riding_equitation_and_horseback_riding_are_one_sport(nouns: Taxonomy) -> None:
    riding = {nouns.find(word) for word in ("riding", "equitation", "Horseback Riding")}
    assert len(riding) == 1
    sport = nouns.find("sport")
    assert sport == nouns.find("athletics")
    assert nouns.parent[riding.pop()] == sport


def test_java_is_an_island_a_coffee_and_a_programming_language(nouns: Taxonomy) -> None:
    island, coffee, language = senses_of(nouns, "java").tolist()
    assert nouns.find("java") == island
    assert nouns.find("island") in nouns.ancestors(island)
    assert coffee == nouns.find("coffee")
    assert nouns.find("programming language") in nouns.ancestors(language)


@pytest.mark.parametrize(
    ("form", "noun"),
    [
        ("kittens", "kitten"),
        ("mice", "mouse"),
        ("women", "woman"),
        ("firemen", "fireman"),
        ("berries", "berry"),
        ("buses", "bus"),
        ("boxes", "box"),
        ("churches", "church"),
        ("dishes", "dish"),
        ("waltzes", "waltz"),
        ("axes", "ax"),
        ("programming languages", "programming language"),
        ("attorneys general", "attorney general"),
        ("mothers-in-law", "mother-in-law"),
        ("spoonsful", "spoonful"),
    ],
)
def test_a_plural_reaches_its_noun(nouns: Taxonomy, form: str, noun: str) -> None:
    assert nouns.find(noun) >= 0
    assert nouns.find(form) == nouns.find(noun)
    assert nouns.find_all(pl.Series([form.upper()])).tolist() == [nouns.find(noun)]
    assert senses_of(nouns, form).tolist() == senses_of(nouns, noun).tolist()


def test_a_plural_that_is_a_word_of_its_own_stays_one(nouns: Taxonomy) -> None:
    assert nouns.find("glasses") == nouns.find("spectacles")
    assert nouns.find("glasses") not in senses_of(nouns, "glass")
    assert nouns.find("men") not in senses_of(nouns, "man")


@pytest.mark.parametrize("word", ["glassess", "qs", "xs", "c++", "qwrtz", "kitten s", "", " ", "-", "the", "kitténs"])
def test_what_is_no_noun_is_not_found(nouns: Taxonomy, word: str) -> None:
    assert nouns.find(word) == -1
    assert nouns.find_all(pl.Series([word])).tolist() == [-1]
    assert senses_of(nouns, word).tolist() == []


def test_a_missing_word_and_an_empty_column_are_not_found(nouns: Taxonomy) -> None:
    assert nouns.find_all(pl.Series(["mice", None], dtype=pl.String)).tolist() == [nouns.find("mouse"), -1]
    assert nouns.find_all(pl.Series([], dtype=pl.String)).tolist() == []


@st.composite
def near_nouns(draw: st.DrawFn) -> str:
    """Draw a lemma or two with an ending that may make a plural of them."""
    words = Taxonomy.wordnet().words
    irregular = pl.Series(Taxonomy.wordnet().plurals.irregular)  # type: ignore[union-attr]
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        table = draw(st.sampled_from([words, irregular]))
        word = table[draw(st.integers(0, len(table) - 1))]
        parts.append(word[: len(word) - draw(st.integers(0, 2))] + draw(st.sampled_from(PLURAL_ENDINGS)))
    joined = draw(st.sampled_from([" ", "-", ""])).join(parts)
    return draw(st.sampled_from([joined, joined.upper(), f" {joined}\t"]))


@pytest.mark.slow
@examples(25)
@given(st.lists(near_nouns() | st.text(alphabet="aesxmniéÉz -\n'_ful", max_size=8), max_size=30))
@example(["-", " - ", "s-s", "men men", "mice-mice mice", "s\ns", "ful", "sful", "bases on balls"])
def test_a_column_finds_what_single_words_find(words: list[str]) -> None:
    nouns = Taxonomy.wordnet()
    assert nouns.find_all(pl.Series(words, dtype=pl.String)).tolist() == [plain_find(nouns, w) for w in words]


def test_the_first_hypernym_is_the_trees_and_the_others_are_kept(nouns: Taxonomy) -> None:
    counts = nouns.node_hypernyms.lengths
    assert counts[0] == 0
    assert (counts[1:] >= 1).all()
    assert counts.sum() == 82_114 + 2_313
    assert (nouns.node_hypernyms.values[nouns.node_hypernyms.ptr[1:-1]] == nouns.parent[1:]).all()
    # A dog is a canine first, and a domestic animal too.
    dog = [str(nouns.names[int(node)]) for node in nouns.node_hypernyms.row(nouns.find("dog"))]
    assert dog == ["canine (carnivore)", "domestic animal"]


def test_names_are_distinct_and_a_plain_one_is_found_where_it_stands(nouns: Taxonomy) -> None:
    assert nouns.names.n_unique() == nouns.n_nodes
    assert nouns.find_names(nouns.names).tolist() == list(range(nouns.n_nodes))
    plain = ~nouns.names.str.contains(r"\)$").to_numpy()
    assert plain.sum() > 60_000
    assert nouns.find_all(nouns.names.filter(pl.Series(plain))).tolist() == np.flatnonzero(plain).tolist()


def test_a_name_that_would_mislead_says_what_is_above_it(nouns: Taxonomy) -> None:
    shown = [str(nouns.names[int(node)]) for node in senses_of(nouns, "bank")]
    assert shown[:4] == ["bank", "depository financial institution", "bank (ridge)", "bank (array)"]
    assert "bank (slope, sense 7)" in shown


def test_a_tree_restricted_to_some_nouns_forgets_the_others(nouns: Taxonomy) -> None:
    small, number = nouns.restricted_to(nouns.find_all(pl.Series(["kitten", "pups", "coffee", "unheardof"])))
    assert small.n_leaves[0] == 3
    assert small.n_leaves[small.find("young mammal")] == 2
    assert number[nouns.find("kitten")] == small.find("kittens")
    assert small.loss[small.find("young mammal")] == 0.5
    # Its first sense, the island, is cut off; that the coffee is there does not make it the first.
    assert small.find("java") == -1
    assert small.find_all(pl.Series(["java", "coffees"])).tolist() == [-1, small.find("coffee")]
    assert senses_of(small, "java").tolist() == [small.find("coffee")]
    paths = [small.ancestors(node)[-1] for node in range(small.n_nodes)]
    assert set(paths) == {0}


def test_a_hypernym_that_is_cut_off_is_no_hypernym_any_more(nouns: Taxonomy) -> None:
    small, _ = nouns.restricted_to([nouns.find("dog")])
    assert small.find("domestic animal") == -1
    assert small.node_hypernyms.row(small.find("dog")).tolist() == [small.parent[small.find("dog")]]
    both, _ = nouns.restricted_to([nouns.find("dog"), nouns.find("domestic animal")])
    dog = both.find("dog")
    assert both.node_hypernyms.row(dog).tolist() == [both.parent[dog], both.find("domestic animal")]


@pytest.mark.slow
def test_wordnet_is_read_once_and_only_when_it_is_asked_for() -> None:
    assert Taxonomy.wordnet() is Taxonomy.wordnet()
    code = (
        "import numpy as np; load = np.load; loads = []\n"
        "np.load = lambda *a, **k: loads.append(1) or load(*a, **k)\n"
        "from queryveil.text.taxonomy import Taxonomy\n"
        "print(len(loads)); Taxonomy.wordnet(); Taxonomy.wordnet(); print(len(loads))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]


def test_the_licence_stands_beside_the_table() -> None:
    licence = (SHIPPED / "WORDNET-LICENSE.txt").read_text(encoding="ascii")
    assert "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved." in licence
    assert licence.startswith("This software and database is being provided to you")
    assert licence.endswith("LICENSEE agrees to preserve same.\n")


@pytest.mark.slow
@pytest.mark.skipif(not (DEBIAN / "data.noun").is_file(), reason="Debian's wordnet-base is not installed")
def test_the_shipped_table_is_what_the_tool_builds_bit_for_bit(tmp_path: Path) -> None:
    the_builder().write(DEBIAN, to=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"wordnet.npz", "WORDNET-LICENSE.txt"}
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (SHIPPED / path.name).read_bytes(), path.name


def test_the_tool_reads_a_small_wordnet_as_its_format_says(tmp_path: Path) -> None:
    licence = "  1 Keep this text.  \n  2   \n  3 And this.  \n"
    data = [
        "00000300 03 n 01 thing 0 001 ~ 00000100 n 0000 | all there is  ",
        "00000100 03 n 02 Big_Lamp 0 lantern 1 002 @ 00000300 n 0000 @i 00000200 n 0000 | it shines; @ 00000100 n  ",
        "00000200 03 n 01 lamp 0 002 + 00000900 v 0101 @i 00000300 n 0000 | it may shine  ",
    ]
    index = [
        "big_lamp n 1 2 @ ~ 1 0 00000100  ",
        "lamp n 2 1 @ 2 1 00000100 00000200  ",
        "lantern n 1 1 @ 1 0 00000100  ",
        "thing n 1 1 ~ 1 0 00000300  ",
    ]
    for name, lines in (("data.noun", data), ("index.noun", index)):
        (tmp_path / name).write_text(licence + "\n".join(lines) + "\n", encoding="ascii")
    (tmp_path / "noun.exc").write_text("thingen nothing thing\nlampae lampa\n", encoding="ascii")
    columns = the_builder().write(tmp_path, to=tmp_path / "out")
    texts = {name: columns.pop(name).tobytes().decode().split("\n") for name in ("words", "irregular")}
    assert texts == {"words": ["big lamp", "lamp", "lantern", "thing"], "irregular": ["thingen"]}
    assert {name: column.tolist() for name, column in columns.items()} == {
        "n_senses": [1, 2, 1, 1],
        "senses": [1, 1, 2, 1, 0],
        "parent": [-1, 0, 0],
        "child": [1],
        "hypernym": [2],
        "first_word": [3, 0, 1],
        "sense_number": [1, 1, 2],
        "noun": [3],
    }
    assert (tmp_path / "out" / "WORDNET-LICENSE.txt").read_text(encoding="ascii") == "Keep this text.\n\nAnd this.\n"

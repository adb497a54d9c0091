"""What queries are about: the paper's examples, the tables that may be plugged in, and agreement with plain Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_classifier import PlainClassifier

from queryveil.errors import BadFile, BadParameter
from queryveil.text.classifier import CATEGORIES, Classifier, Kind
from queryveil.text.classifier.classifier import read_categories, read_frequencies, read_recommendations

FREQUENCIES = (
    "unit,count\njaguar,500\nmotor,900\nsoup,700\nonion,300\nsoup bowl,20\nwalk,2000\nberry,400\nonionsoup,1\n"
    "red,9000000\nwater,8000000\n"
)
RECOMMENDATIONS = "misspelt,correct\njagwar,jaguar\nsoop,soup\nsoupe boll,soup bowl\n"
CATEGORIES_FILE = (
    "unit,category,weight\njaguar,Science,2\njaguar,recreation,1\nmotor,Recreation,1.5\nsoup,Home,2\nonion,Home,1\n"
    "soup bowl,Shopping,3\nberry,Home,1\nkids_word,Kids_and_Teens,1\nred,Arts,0.1\nwater,Science,0.3\nthe,Arts,5\n"
)
WORDS = (
    *("jaguar", "jaguars", "jagwar", "jagura", "motor", "motors", "soup", "soups", "soop", "onion", "onions", "onoin"),
    *("bowl", "bowls", "boll", "soupe", "walk", "walks", "berry", "berries", "redwater", "redwaters", "the", "of"),
    *("onionsoup", "xyzzy", "été", "naïve", "1999", "7up", "ss", "s", "kids", "word", "Soup", "ONION", "jag-uar"),
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tables")
    texts = {"frequencies": FREQUENCIES, "recommendations": RECOMMENDATIONS, "categories": CATEGORIES_FILE}
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.csv" for name in texts}


@pytest.fixture(scope="module")
def plain(tables: dict[str, Path]) -> PlainClassifier:
    return PlainClassifier.of(
        read_frequencies(tables["frequencies"]),
        read_recommendations(tables["recommendations"]),
        read_categories(tables["categories"]),
    )


@pytest.fixture(scope="module")
def by_paper(tables: dict[str, Path]) -> Classifier:
    return Classifier.from_tables(**tables, kind=Kind.PAPER)


def named(classifier: Classifier, *queries: str) -> list[str]:
    return classifier.classify(pl.Series(queries, dtype=pl.String)).names.to_list()


def test_the_paper_s_example_is_about_sports_by_its_rarest_unit() -> None:
    for kind in Kind:
        found = Classifier(kind=kind).classify(pl.Series(["european soccer barcelona players"]))
        assert found.names.to_list() == ["Sports"]
        assert found.main_unit.to_list() == ["european soccer"]


def test_a_misspelt_band_is_about_music_and_in_the_paper_about_a_region() -> None:
    assert named(Classifier(), "artic monkeys", "Arctic Monkeys") == ["Arts", "Arts"]
    found = Classifier(kind=Kind.PAPER).classify(pl.Series(["artic monkeys"]))
    assert (found.names.to_list(), found.main_unit.to_list()) == (["Regional"], ["arctic"])


@pytest.mark.parametrize(
    ("query", "category"),
    [
        ("chicken casserole recipe", "Home"),
        ("symptoms of diabetes", "Health"),
        ("cheap flights and hotels", "Recreation"),
        ("ebay.com", "Shopping"),
        ("www.myspace.com", "Computers"),
        ("letras de canciones", "World"),
        ("homework help fractions worksheet", "Kids and Teens"),
        ("freescreensavers", "Computers"),
        ("nfl scores", "Sports"),
        ("church of christ sermons", "Society"),
        ("DICTIONARY", "Reference"),
        ("weather forecast", "News"),
    ],
)
def test_plain_queries_are_about_what_they_say(query: str, category: str) -> None:
    assert named(Classifier(), query) == [category]


def test_numbers_stop_words_and_nothing_have_no_category() -> None:
    queries = ["", "   ", "1999", "12 34 56", "?!", "of the", "x"]
    for kind in Kind:
        found = Classifier(kind=kind).classify(pl.Series(queries))
        assert found.category.tolist() == [-1] * len(queries)
        assert found.main_unit.to_list() == [None] * len(queries)


def test_no_queries_at_all_and_missing_ones_are_no_trouble() -> None:
    assert len(Classifier().classify(pl.Series([], dtype=pl.String)).category) == 0
    assert named(Classifier(), "soup") == Classifier().classify(pl.Series([None, "soup"])).names.to_list()[1:]


@pytest.mark.slow
def test_a_query_of_a_million_words_or_letters_is_answered() -> None:
    assert named(Classifier(), "guitar " * 1_000_000, "x" * 1_000_000) == ["Arts", named(Classifier(), "x" * 200)[0]]


def test_an_answer_does_not_depend_on_the_queries_around_it() -> None:
    queries = ["garden roses", "été", "", "Zürich hotel — billig", "jazz", "www.example.com", "日本 音楽"]
    together = Classifier().classify(pl.Series(queries))
    for i, query in enumerate(queries):
        alone = Classifier().classify(pl.Series([query]))
        assert (alone.category[0], alone.main_unit[0]) == (together.category[i], together.main_unit[i])


def test_a_slice_of_a_column_is_classified_like_the_column() -> None:
    queries = pl.Series(["garden roses", "jazz", "nfl scores", "été à la plage"])
    assert Classifier().classify(queries.slice(2)).names.to_list() == Classifier().classify(queries).names.to_list()[2:]


@examples(100)
@given(queries=st.lists(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), min_size=1, max_size=8))
def test_the_kernels_agree_with_algorithm_1_in_plain_python(
    by_paper: Classifier, plain: PlainClassifier, queries: list[str]
) -> None:
    found = by_paper.classify(pl.Series(queries))
    expected = [plain.classify(query) for query in queries]
    assert found.category.tolist() == [answer.category for answer in expected]
    assert found.main_unit.to_list() == [answer.main_unit for answer in expected]


@examples(100)
@given(queries=st.lists(st.text(max_size=40), min_size=1, max_size=8))
def test_any_text_gets_an_answer_and_a_category_needs_a_unit(queries: list[str]) -> None:
    found = Classifier().classify(pl.Series(queries))
    assert len(found.category) == len(found.main_unit) == len(queries)
    assert ((found.category >= 0) == found.main_unit.is_not_null().to_numpy()).all()


def test_own_tables_replace_those_of_the_package(tables: dict[str, Path]) -> None:
    own = Classifier.from_tables(categories=tables["categories"])
    assert named(own, "jaguar", "kids word") == ["Science", "Kids and Teens"]
    assert named(Classifier.from_tables(categories=tables["categories"], kind="paper"), "chess") == ["Unclassified"]
    assert named(Classifier.from_tables(), "jaguar chess") == named(Classifier(), "jaguar chess")


def test_all_units_count_and_the_heaviest_evidence_wins(tables: dict[str, Path]) -> None:
    both = {kind: Classifier.from_tables(**tables, kind=kind) for kind in Kind}
    # onion is the rarest unit; jaguar and motor together speak for Recreation.
    assert named(both[Kind.PAPER], "jaguar motor onion") == ["Home"]
    assert named(both[Kind.EVIDENCE], "jaguar motor onion") == ["Recreation"]


def test_a_table_may_be_parquet(tables: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "own.parquet"
    pl.read_csv(tables["categories"]).write_parquet(path)
    assert named(Classifier.from_tables(categories=path), "soup bowls") == ["Shopping"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("categories", "unit,category\nkestrel,Nosuch\n", "a category is none of the 16"),
        ("categories", "unit,weight\nkestrel,1\n", "there is no column category"),
        ("categories", "unit,category,weight\nkestrel,Arts,heavy\n", "1 rows have no readable weight"),
        ("categories", "unit,category,weight\nkestrel,Arts,-1\n", "a weight is not above 0"),
        ("frequencies", "unit,count\nkestrel,many\n", "1 rows have no readable count"),
        ("frequencies", "unit,count\nkestrel,-5\n", "a count is below 0"),
        ("recommendations", "wrong,right\nkestrel,lantern\n", "there is no column misspelt"),
        ("recommendations", "", "cannot be read"),
    ],
)
def test_a_bad_table_is_one_clear_line_without_its_rows(tmp_path: Path, name: str, text: str, reason: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadFile, match=reason) as raised:
        Classifier.from_tables(**{name: path})  # type: ignore[arg-type]
    message = str(raised.value)
    assert message.startswith("table.csv: ")
    assert "\n" not in message
    assert not any(word in message for word in ("kestrel", "lantern", "Nosuch", "heavy"))


def test_a_table_that_is_not_there_or_not_parquet_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="cannot be opened"):
        Classifier.from_tables(categories=tmp_path / "nosuch.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing of the kind")
    with pytest.raises(BadFile, match="cannot be read"):
        Classifier.from_tables(categories=tmp_path / "broken.parquet")


def test_a_table_without_rows_knows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("unit,category\n", encoding="utf-8")
    found = Classifier.from_tables(categories=path, kind=Kind.PAPER).classify(pl.Series(["soup", ""]))
    assert (found.category.tolist(), found.main_unit.to_list()) == ([-1, -1], [None, None])


def test_a_kind_that_is_none_is_a_clear_error() -> None:
    with pytest.raises(BadParameter, match="classifier must be evidence or paper, got best"):
        Classifier(kind="best")


def test_no_repr_shows_a_word_of_a_query() -> None:
    classifier = Classifier()
    found = classifier.classify(pl.Series(["kestrel lantern"]))
    assert repr(found) == "Classification(n_queries=1, n_unclassified=0)"
    assert "kestrel" not in repr(classifier)


def test_categories_are_the_sixteen_and_numbers_stand_for_them() -> None:
    assert len(CATEGORIES) == len(set(CATEGORIES)) == 16
    found = Classifier().classify(pl.Series(["jazz"]))
    assert found.category.dtype == np.int8
    assert CATEGORIES[found.category[0]] == "Arts"

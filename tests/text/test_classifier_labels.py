"""How often the classifier is right, against labels that were not made by it.

The labels name every category that a person would accept; `?` stands where nobody can tell, as for the invented words
of made-up logs. The answers to `tuned` lines were looked at while the classifier was made. `held out` lines were only
read, to be labelled, before its units were written; `fresh` ones were drawn and labelled after the last was.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from queryveil.text.classifier import Classifier, Kind

CASES = Path(__file__).resolve().parent / "cases"
EXCITE = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "excite-small.log"
real_data = pytest.mark.real_data
needs_excite = pytest.mark.skipif(not EXCITE.is_file(), reason="the Excite log is not beside the checkout")


def read_cases(name: str) -> pl.DataFrame:
    return pl.read_csv(CASES / name, separator="\t", quote_char=None)


def with_queries(cases: pl.DataFrame) -> pl.DataFrame:
    """Add the queries to labels that name lines of the Excite log."""
    with EXCITE.open(encoding="utf-8", errors="replace", newline="\n") as file:
        queries = [line.rstrip("\n").split("\t")[2] for line in file]
    return cases.with_columns(query=pl.Series([queries[line - 1] for line in cases["line"]]))


def judged(cases: pl.DataFrame, kind: Kind = Kind.EVIDENCE) -> tuple[float, float]:
    """Return the share of queries that get a category, and the share of those with a label that get a right one."""
    found = Classifier(kind=kind).classify(cases["query"])
    table = cases.with_columns(found=found.names, has=pl.Series(found.category >= 0))
    known = table.filter(pl.col("categories") != "?")
    right = [name in wanted.split("|") for name, wanted in known.select("found", "categories").iter_rows()]
    covered = table["has"].mean()
    assert isinstance(covered, float)
    return covered, sum(right) / len(right)


@pytest.mark.parametrize("half", ["tuned", "held out"])
def test_made_up_queries_are_nearly_all_classified_and_mostly_right(half: str) -> None:
    covered, right = judged(read_cases("categories_made_up.tsv").filter(pl.col("half") == half))
    assert covered >= 0.95
    assert right >= 0.8


@pytest.mark.slow
@real_data
@needs_excite
@pytest.mark.parametrize("half", ["tuned", "held out", "fresh"])
def test_real_queries_are_nearly_all_classified_and_mostly_right(half: str) -> None:
    covered, right = judged(with_queries(read_cases("categories_excite.tsv")).filter(pl.col("half") == half))
    assert covered >= 0.95
    assert right >= 0.75


@pytest.mark.slow
@real_data
@needs_excite
def test_weighing_all_units_beats_the_rarest_one_alone() -> None:
    cases = with_queries(read_cases("categories_excite.tsv")).filter(pl.col("half") != "tuned")
    assert judged(cases)[1] > judged(cases, Kind.PAPER)[1]


def test_labels_of_real_queries_hold_no_text() -> None:
    assert read_cases("categories_excite.tsv").columns == ["half", "categories", "line"]

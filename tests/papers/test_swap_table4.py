from __future__ import annotations

import polars as pl
import pytest

from queryveil.errors import BadParameter
from queryveil.papers import reproduce
from queryveil.papers.swap import COVERED, RIGHT, judged, read_labelled
from queryveil.testing import tiny_log
from queryveil.text.classifier import CATEGORIES, Classifier, Kind


def test_the_labelled_queries_are_as_many_for_every_category() -> None:
    labelled = read_labelled()
    assert labelled.height == 320
    assert labelled["query"].n_unique() == 320
    assert labelled["category"].unique().sort().to_list() == sorted(CATEGORIES)
    assert set(labelled.group_by("category").len()["len"]) == {20}
    assert labelled["query"].str.split(" ").list.len().max() == 5


def test_shares_are_those_of_the_classifier() -> None:
    labelled = read_labelled()
    found = Classifier().classify(labelled["query"]).names.to_list()
    right = [name == wanted for name, wanted in zip(found, labelled["category"], strict=True)]
    shares = judged(labelled, kind=Kind.EVIDENCE)
    assert shares[RIGHT] == pytest.approx(100 * sum(right) / 320)
    assert shares["Arts"] == pytest.approx(100 * sum(right[:20]) / 20)


def test_a_query_without_a_category_counts_as_wrong() -> None:
    few = pl.DataFrame({"query": ["1999", "soccer"], "category": ["News", "Sports"]})
    shares = judged(few, kind=Kind.EVIDENCE)
    assert (shares["News"], shares["Sports"], shares[COVERED], shares[RIGHT]) == (0, 100, 50, 50)


def test_theirs_are_the_papers() -> None:
    table = reproduce("swap-table4")
    theirs = {row[0]: row[1] for row in table.rows}
    assert (theirs["Health"], theirs["News"], theirs["World"]) == (88.10, 16.67, 30.77)
    assert (theirs[RIGHT], theirs[COVERED]) == (58.99, 85)


def test_it_takes_no_log() -> None:
    with pytest.raises(BadParameter, match="name must be given alone"):
        reproduce("swap-table4", tiny_log())
    with pytest.raises(BadParameter, match="name must be given alone"):
        reproduce("swap-table4", users=10)

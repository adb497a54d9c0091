"""Preparing events: what goes on, what does not, and that both are counted."""

from __future__ import annotations

import polars as pl
import pytest

from queryveil.errors import BadParameter
from queryveil.methods.swap.preparing import CATEGORY_NAMES, prepare
from queryveil.text.classifier import Classifier

CLASSIFIER = Classifier()
FRAME = pl.DataFrame(
    {
        "user": ["a", "b", "c", "d", "e", "f"],
        "query": ["soccer scores", "", "219-09-9999", "1999", "call 212-555-0143 tennis titles", "   "],
        "rank": [1, 2, 3, 4, 5, 6],
    }
)


def test_empty_queries_and_such_of_identifiers_only_are_dropped_and_counted() -> None:
    prepared = prepare(FRAME, classifier=CLASSIFIER)
    assert prepared.rows.tolist() == [0, 3, 4]
    assert prepared.frame["query"].to_list() == ["soccer scores", "1999", "call tennis titles"]
    assert prepared.frame["rank"].to_list() == [1, 4, 5]
    assert (prepared.n_empty, prepared.n_emptied, prepared.n_unclassified_dropped) == (2, 1, 0)
    assert prepared.identifiers == {"phone": 1, "ssn": 1}
    assert sum(prepared.by_rule.values()) == 2


def test_categories_are_numbers_and_the_last_one_is_for_none() -> None:
    prepared = prepare(FRAME, classifier=CLASSIFIER)
    assert prepared.frame.schema["category"] == pl.Int8
    assert [CATEGORY_NAMES[number] for number in prepared.frame["category"]] == ["Sports", "Unclassified", "Sports"]
    assert prepared.category_counts == {"Sports": 2, "Unclassified": 1}


def test_queries_without_a_category_can_be_dropped() -> None:
    prepared = prepare(FRAME, classifier=CLASSIFIER, unclassified="drop")
    assert prepared.rows.tolist() == [0, 4]
    assert prepared.n_unclassified_dropped == 1
    assert prepared.category_counts == {"Sports": 2}


@pytest.mark.parametrize("rows", [0, 1])
def test_a_frame_of_which_nothing_goes_on_keeps_its_columns(rows: int) -> None:
    prepared = prepare(FRAME[1 : 1 + rows], classifier=CLASSIFIER)
    assert prepared.frame.columns == ["user", "query", "rank", "category"]
    assert prepared.frame.is_empty()
    assert prepared.rows.tolist() == []
    assert prepared.n_empty == rows


def test_a_missing_query_is_an_empty_one() -> None:
    frame = pl.DataFrame({"user": ["a", "b"], "query": [None, "tennis titles"]})
    prepared = prepare(frame, classifier=CLASSIFIER)
    assert (prepared.n_empty, prepared.rows.tolist()) == (1, [1])


def test_the_input_is_untouched() -> None:
    before = FRAME.clone()
    prepare(FRAME, classifier=CLASSIFIER)
    assert FRAME.equals(before)


def test_a_wrong_choice_is_a_clear_error() -> None:
    with pytest.raises(BadParameter, match="unclassified must be pool or drop, got both"):
        prepare(FRAME, classifier=CLASSIFIER, unclassified="both")


def test_its_repr_shows_no_text() -> None:
    assert repr(prepare(FRAME, classifier=CLASSIFIER)) == "Prepared(n_rows=3, n_empty=2, n_emptied=1)"

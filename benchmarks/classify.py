"""Queries a second of the classifier on one core, whole and step by step, in batches as a live stream has them."""

from __future__ import annotations

import numpy as np
import polars as pl
from tests.support.plain_classifier import PlainClassifier

from benchmarks.timing import take_turns
from queryveil.cli.output import print_table
from queryveil.synthesis import synthesize
from queryveil.text.classifier import Classifier
from queryveil.text.classifier._unit_kernels import match_units, weigh_all
from queryveil.text.classifier._word_kernels import resolve
from queryveil.text.classifier.classifier import MIN_SPLIT_COUNT, byte_words, shapes

SEED = 0
USERS = 3_000
N_PLAIN = 2_000


def queries() -> pl.Series:
    """Make up queries of AOL's shape: with repetitions, misspellings and words that are in no table."""
    made = synthesize(like="aol", users=USERS, seed=SEED).log.frame["query"]
    return made.filter(made != "")


def in_batches(texts: pl.Series, size: int) -> list[pl.Series]:
    """Cut a column into batches."""
    return [texts.slice(start, size) for start in range(0, len(texts), size)]


def whole(texts: pl.Series) -> None:
    """Show the whole of `classify` by size of batch and by kind."""
    rows = []
    for kind in ("evidence", "paper"):
        classifier = Classifier(kind=kind)
        classifier.classify(texts.head(100))
        for size in (1_000, 10_000, len(texts)):
            batches = in_batches(texts, size)
            took = take_turns({"": lambda c=classifier, b=batches: [c.classify(each) for each in b]})[""]  # type: ignore[misc]
            rows.append((kind, size, f"{len(texts) / took:,.0f}", f"{1e6 * took / len(texts):.2f}"))
    print_table(["classifier", "batch", "queries a second", "microseconds a query"], rows, title="the whole")


def steps(texts: pl.Series, *, size: int = 10_000) -> None:
    """Show what each step takes."""
    classifier = Classifier()
    table = classifier.table
    batch = texts.head(size)
    words = byte_words(batch)
    read = resolve(words, table.vocabulary, table.nearby, MIN_SPLIT_COUNT)
    units = table.find(batch)
    _, main = weigh_all(units, table.weights, shapes())
    took = take_turns(
        {
            "words": lambda: byte_words(batch),
            "what they stand for": lambda: resolve(words, table.vocabulary, table.nearby, MIN_SPLIT_COUNT),
            "units": lambda: match_units(words, read, table.vocabulary, True),
            "evidence": lambda: weigh_all(units, table.weights, shapes()),
            "main units as text": lambda: table.texts(units, main),
        },
        rounds=7,
    )
    rows = [(name, f"{1e6 * seconds / len(batch):.3f}") for name, seconds in took.items()]
    print_table(["step", "microseconds a query"], rows, title=f"the steps, in a batch of {len(batch):,}")
    unknown = np.mean(units.unit < 0)
    print(f"{len(words.starts) / len(batch):.2f} words a query, {unknown:.0%} of what may be a unit is in no table\n")


def against_plain_python(texts: pl.Series) -> None:
    """Compare with the plain version that reads like the paper's algorithm."""
    some = texts.head(N_PLAIN)
    plain = PlainClassifier.of_package()
    classifier = Classifier(kind="paper")
    took = take_turns(
        {
            "plain Python": lambda: [plain.classify(query) for query in some.to_list()],
            "ours": lambda: classifier.classify(some),
        }
    )
    rows = [(name, f"{len(some) / seconds:,.0f}") for name, seconds in took.items()]
    print_table(["", "queries a second"], rows, title="the paper's algorithm; the paper reports 665 a second")


if __name__ == "__main__":
    made_up = queries()
    print(f"{len(made_up):,} queries\n")
    whole(made_up)
    steps(made_up)
    against_plain_python(made_up)

"""What a release on a cluster is still good for, as far as grouped counts can tell."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from queryveil import progress
from queryveil.data import Int64s
from queryveil.errors import NotYet
from queryveil.release import Manifest
from queryveil.spark.executors import Batches, guarded, speaking
from queryveil.spark.logs import SparkLog, as_frame, schema_of
from queryveil.text.tokens import normalize
from queryveil.utility.frequencies import frequencies_of_counts
from queryveil.utility.kept import kept_score
from queryveil.utility.score import Measures, note, share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LEFT_OUT = "suggestions, profiles and advertising are left out: they are measured on one machine"
_TEXTS = pa.schema([("query", pa.string())])


def measure(original: SparkLog, released: SparkLog, *, manifest: Manifest) -> Measures:
    """Measure a released log beside the one it was made from."""
    has_items = manifest.promise.items
    by_blanks = original.layout.terms_are_items
    if has_items and not by_blanks:
        raise NotYet(
            "terms that moved up on Spark", "what they lost is told by a taxonomy", instead="leave out --engine"
        )
    progress.step("measuring what is kept")
    before, after = (_texts(log.frame, by_blanks=by_blanks) for log in (original, released))
    queries = _side_by_side(before.where("query != ''"), after.where("query != ''"))
    terms = _side_by_side(_terms(before), _terms(after))
    n_real = max(0, released.n_rows - manifest.changed.get("rows_added", 0))
    kept = np.minimum(terms.before, terms.after * (n_real / max(1, released.n_rows)))
    asked = queries.before > 0
    scores = [
        kept_score("rows_kept", share(min(n_real, original.n_rows), original.n_rows)),
        kept_score("terms_kept", share(int((kept > 0).sum()), int((terms.before > 0).sum()))),
        kept_score("queries_kept", share(int((asked & (queries.after > 0)).sum()), int(asked.sum()))),
        kept_score("log_size_kept", share(float(kept.sum()), float(terms.before.sum()))),
    ]
    notes = [_LEFT_OUT]
    if manifest.parameters.get("window") is None:
        n_users = original.n_users
        scores.insert(1, kept_score("users_kept", share(min(released.n_users, n_users), n_users)))
    else:
        notes.append("users kept is left out: users have a new id in each window, and nobody can tell who is who")
    found = Measures(scores=tuple(scores), notes=tuple(notes))
    if original.n_rows != manifest.counts.n_rows_before:
        found = note("the release says that it was made from another number of rows: give that log") + found
    return found + frequencies_of_counts(queries.before, queries.after)


class _Pairs:
    """How often each thing is in one log and in the other; which things these are has stayed on the cluster."""

    def __init__(self, counts: pa.Table) -> None:
        n = counts["n"].to_numpy()
        self.before: Int64s = np.repeat(counts["before"].to_numpy(), n)
        self.after: Int64s = np.repeat(counts["after"].to_numpy(), n)


def _side_by_side(before: DataFrame, after: DataFrame) -> _Pairs:
    (name,) = before.columns
    mine = before.groupBy(name).agg(F.count("*").alias("before"))
    theirs = after.groupBy(name).agg(F.count("*").alias("after"))
    both = mine.join(theirs, name, "full").na.fill(0, ["before", "after"])
    with speaking():
        return _Pairs(both.groupBy("before", "after").agg(F.count("*").alias("n")).toArrow())


def _texts(frame: DataFrame, *, by_blanks: bool) -> DataFrame:
    """Return queries as their terms with one blank between them."""
    return frame.select("query").mapInArrow(guarded(partial(_normal, by_blanks=by_blanks)), schema_of(_TEXTS))


def _normal(batches: Batches, *, by_blanks: bool) -> Batches:
    for batch in batches:
        queries = as_frame(batch)["query"]
        texts = queries.str.replace_all(r"\s+", " ").str.strip_chars(" ") if by_blanks else normalize(queries)
        yield from pl.DataFrame({"query": texts}).to_arrow().cast(_TEXTS).to_batches()


def _terms(texts: DataFrame) -> DataFrame:
    return texts.select(F.explode(F.split("query", " ")).alias("term")).where("term != ''")

"""Texts that need several people on Spark: counted in the window of the batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.streams import KEY, write_lines

from queryveil.spark.streaming import SwapStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_text_that_enough_people_asked_in_a_window_leaves(spark: SparkSession, tmp_path: Path) -> None:
    swap = SwapStream(k=2, key=KEY, window="28d", min_query_users=3)
    (tmp_path / "in").mkdir()
    for number in range(2):
        asked = [{"user": f"u{number} {i}", "query": f"tennis racket {i % 2}"} for i in range(12)]
        write_lines(tmp_path / "in" / f"{number}.jsonl", map(json.dumps, asked))
    source, sink, checkpoint = (str(tmp_path / name) for name in ("in", "out", "state"))
    counts = swap.run(spark, source=source, sink=sink, checkpoint=checkpoint, files_per_batch=1)
    assert counts.adds_up
    assert counts.n_released > 4
    # Two texts, of which each loses the askers before its threshold of 2 to 4; a window may end between two batches.
    assert 2 <= counts.n_rare <= 12

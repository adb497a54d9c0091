from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from queryveil.errors import BadInput
from queryveil.papers._swap_costs import PARTS, THEIR_PEAKS, measure_memory, peak

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="how memory is counted differs elsewhere")


def events(n_rows: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "user": [f"u{i % 97}" for i in range(n_rows)],
            "query": [f"soccer cup {i % 1009}" for i in range(n_rows)],
            "category": pl.Series([14] * n_rows, dtype=pl.Int8),
        }
    )


def test_every_part_of_the_papers_table_is_measured() -> None:
    assert list(PARTS) == list(THEIR_PEAKS)


@pytest.mark.parametrize("part", list(PARTS))
def test_every_part_runs(part: str) -> None:
    PARTS[part](events(500))


@needs_linux
def test_a_process_of_its_own_says_how_much_it_took() -> None:
    found = measure_memory("de-anonymizer 3", events(2000))
    assert found.process > found.part >= 0
    assert found.process > 20_000


@needs_linux
def test_the_peak_rises_with_what_is_held() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not say")
    before = peak()
    held = np.ones(80_000_000, np.uint8)
    after = peak()
    # The peak before may have been higher than what was held when this began.
    assert after >= before
    assert after > held.nbytes // 1024


def test_a_process_that_fails_is_one_line_without_text() -> None:
    with pytest.raises(
        BadInput, match=r"^the process that measures the memory of the anonymizer ended with 1"
    ) as caught:
        measure_memory("anonymizer", pl.DataFrame({"user": ["persona"], "query": ["kestrel"]}))
    assert "kestrel" not in str(caught.value)

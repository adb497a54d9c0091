"""Each reader on a few changed inputs; `make soak` tries many more (`python -m tests.fuzzing`)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from tests.fuzzing import all_targets
from tests.fuzzing.engine import Run

N_INPUTS = 8
FOLDER = tempfile.TemporaryDirectory(prefix="fuzzing-")
TARGETS = all_targets(Path(FOLDER.name))


SLOW = ("manifest.swap", "store.row")
"""The classifier's tables are read, or each input is written to the disk for good."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in TARGETS])
def test_whatever_a_reader_is_given_it_returns_a_value_or_a_clear_error(name: str) -> None:
    run = Run(target=TARGETS[name], seed="make test")
    assert run.go(executions=N_INPUTS) == []
    assert run.n_seeds_read

"""A report reads the release once, and takes the terms of each side once."""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from queryveil.methods import Km
from queryveil.release import read_release
from queryveil.reports import report
from queryveil.synthesis import synthesize
from queryveil.text import tokens
from queryveil.text.tokens import Tokens


@pytest.fixture
def tokenized(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of rows of every column that is tokenised, as it happens."""
    n_rows: list[int] = []
    tokenize = tokens.tokenize

    def counting(queries: pl.Series, *, by_blanks: bool = False) -> Tokens:
        n_rows.append(len(queries))
        return tokenize(queries, by_blanks=by_blanks)

    for module in [each for name, each in sys.modules.items() if name.startswith("queryveil.")]:
        if getattr(module, "tokenize", None) is tokenize:
            monkeypatch.setattr(module, "tokenize", counting)
    return n_rows


def test_each_side_is_tokenised_once(tokenized: list[int]) -> None:
    log = synthesize(users=150, seed=3).log
    release = Km(k=3, m=2, seed=1).anonymize(log)
    tokenized.clear()
    made = report(release, original=log, seed=1, n_targets=20)
    assert made.attacks is not None
    assert made.measures is not None
    assert tokenized[:2] == [log.n_rows, release.log.n_rows]
    # Whoever seeks terms of other people or in other releases takes those, and no side again.
    assert log.n_rows not in tokenized[2:]
    assert release.log.n_rows not in tokenized[2:]


def test_the_data_of_a_release_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = synthesize(users=150, seed=3).log
    folder = Km(k=3, m=2, seed=1).anonymize(log).save(tmp_path / "out")
    opened: Counter[str] = Counter()
    plain, by_number = builtins.open, os.open

    def counting(file: Any, *args: Any, **settings: Any) -> Any:
        opened[Path(file).name if isinstance(file, str | Path) else ""] += 1
        return plain(file, *args, **settings)

    def counting_too(file: Any, *args: Any, **settings: Any) -> int:
        opened[Path(file).name] += 1
        return by_number(file, *args, **settings)

    monkeypatch.setattr(os, "open", counting_too)
    monkeypatch.setattr(builtins, "open", counting)
    monkeypatch.setattr(io, "open", counting)
    release = read_release(folder)
    assert release.manifest.data is not None
    name = release.manifest.data.name
    assert opened[name] == 1
    opened.clear()
    made = report(folder, original=log, seed=1, n_targets=20)
    assert made.folder == "out"
    assert opened[name] == 1
    opened.clear()
    report(release, original=log, seed=1, n_targets=20)
    assert opened[name] == 0

"""The house rules of every method, on Spark."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest

from queryveil import ColumnPolicy, Dp, Kdelta, Km, QueryLog, Release, read_release
from queryveil.spark import Spark
from queryveil.testing import Check, OnEngine, checks_for

METHODS = (
    Km(k=2, m=2),
    Km(k=2, m=1, window="1d", columns=ColumnPolicy(time="day")),  # type: ignore[arg-type]
    Dp(epsilon=5.0, delta=0.05, max_queries=2, clicks=0.4),
    Kdelta(k=2, same_texts=True),
)
"""Those that release transactions or groups have tests of their own: the rules are about logs and counts."""
OF_WINDOWS = ("the_promise_is_kept", "the_written_files_keep_the_promise", "the_edits_add_up")
"""What windows could change."""


MADE: dict[str, Release] = {}


def rules_for(method: Any) -> list[str]:
    names = [check.name for check in checks_for(method)]
    return [name for name in names if getattr(method, "window", None) is None or name in OF_WINDOWS]


def made_up_log() -> QueryLog:
    """People with things in common, an empty query, a missing time, and somebody who is alone."""
    asked = ["red wine", "wine shop", "dog food", "red dog", "cat food shop", "", "tennis titles"]
    rows: list[tuple[str, str, str | None, int]] = [
        (f"persona-{user}", asked[(user * step) % 7], f"http://shop-{(user + step) % 3}.example/", user + 9 * step)
        for user in range(8)
        for step in range(1, 5)
    ]
    rows.append(("persona-alone", "lanternford kestrel clinic", None, 5))
    start = datetime(2024, 3, 1, 8)
    times = [start + timedelta(hours=hours) if hours % 11 else None for *_, hours in rows]
    frame = pl.DataFrame([row[:3] for row in rows], schema=["user", "query", "url"], orient="row")
    return QueryLog.from_frame(frame.with_columns(time=pl.Series(times, dtype=pl.Datetime("us"))))


@pytest.mark.parametrize(
    ("method", "name"),
    [(method, name) for method in METHODS for name in rules_for(method)],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__.lower(),
)
def test_methods_keep_the_house_rules_on_spark(engine: Spark, method: Any, name: str) -> None:
    def on_spark(method: Any, log: QueryLog) -> Release:
        known = f"{method!r} {int(log.frame.hash_rows().sum() or 0)} {log.n_rows}"
        # Most rules look at the same release; what must repeat is made again.
        if method.seed is None and known in MADE:
            return MADE[known]
        with TemporaryDirectory() as folder:
            engine.anonymize(method, engine.put(log), str(Path(folder) / "release"))
            release = read_release(Path(folder) / "release")
        return MADE.setdefault(known, release) if method.seed is None else release

    checks: dict[str, Check] = {check.name: check for check in checks_for(OnEngine(method=method, engine=on_spark))}
    checks[name].run(made_up_log())

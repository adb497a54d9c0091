"""Texts that need several people on a stream: counted anew in each window of its clock, also across restarts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.support.streams import ListSink, ListSource, adds_up, keyed_settings

from queryveil.service.pipeline.service import Service
from queryveil.service.ports import Stats
from queryveil.service.stores.sqlite import SqliteStore


def asking(users: range) -> bytes:
    return "".join(f"u{n}\tred wine\n" for n in users).encode()


@pytest.mark.parametrize("window", ["1d", None])
def test_askers_are_counted_anew_in_the_next_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: str | None
) -> None:
    """Eleven users ask on the first day, in two runs, and one on the next: too few where that day counts for itself."""
    now, first = 20_000 * 86_400.0, b"user\tquery\n"
    settings = keyed_settings(k=2, l=2, min_query_users=5, window=window, is_finite=False, max_wait=None)
    batches = [first + asking(range(5)), asking(range(5, 10))]

    def run(at: float) -> Stats:
        monkeypatch.setattr(time, "time", lambda: at)
        service = Service(
            settings, source=ListSource(batches), sink=ListSink(), store=SqliteStore(tmp_path / "live.db")
        )
        return service.run()

    before = run(now + 10)
    batches.append(asking(range(10, 11)))
    after = run(now + 86_399)
    # The threshold of the first day is between 2 and 8, so by then the text may leave, and does.
    assert after.n_rare == before.n_rare < 8
    batches.append(asking(range(11, 12)))
    late = run(now + 86_400)
    assert late.n_rare - after.n_rare == (0 if window is None else 1)
    assert adds_up(late)

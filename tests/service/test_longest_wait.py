"""Events that wait longer than they may."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from tests.support.streams import ListSink, ListSource, adds_up, keyed_settings
from tests.support.waiting import until

from queryveil.errors import BadParameter
from queryveil.service.pipeline.service import Service
from queryveil.service.ports import Stats
from queryveil.service.stores.sqlite import SqliteStore


def test_what_waits_longer_than_it_may_is_suppressed_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run leaves two events in a pool; eight days later nothing arrives, and they go all the same."""
    path, settings = tmp_path / "live.db", keyed_settings(k=5, l=5, is_finite=False)

    def run(source: ListSource, *, is_done: str) -> Stats:
        service = Service(settings, source=source, sink=ListSink(), store=SqliteStore(path))
        thread = threading.Thread(target=service.run)
        thread.start()
        until(lambda: getattr(service.stats(), is_done) == 2)
        stats = service.stats()
        service.stop()
        thread.join()
        return stats

    batches = [b"u1\tred wine\nu2\tgreen tea\n"]
    waiting = run(ListSource([b"user\tquery\n", *batches], is_endless=True), is_done="n_waiting")
    assert waiting.waiting_since is not None
    assert 0 <= waiting.oldest_wait_seconds < 3600
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 8 * 86_400)
    expired = run(ListSource([b"user\tquery\n", *batches], is_endless=True), is_done="n_suppressed")
    assert (expired.n_waiting, expired.n_suppressed, expired.waiting_since) == (0, 2, None)
    assert adds_up(expired)
    with pytest.raises(BadParameter, match="max_wait must be a number and a unit: 12h, 1d, 7d, 2w, got soon"):
        keyed_settings(max_wait="soon")

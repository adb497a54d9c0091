"""A disk that is full: the service waits, says so, and goes on when there is room, with nothing lost."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.support.streams import adds_up, event_lines, keyed_settings, small_tables, write_lines
from tests.support.waiting import patience, until

from queryveil.service.connectors.file_sinks import FileSink
from queryveil.service.connectors.file_sources import FilesSource
from queryveil.service.pipeline.service import Service
from queryveil.service.stores import MemoryStore
from queryveil.service.stores.sqlite import SqliteStore

pytestmark = pytest.mark.slow

_DISK_BYTES = 4 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes, all taken by a file `filler`."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "none", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can only be mounted by root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
    return filler


@pytest.mark.parametrize("full", ["store", "sink"])
def test_a_full_disk_is_waited_for_and_nothing_is_lost(tmp_path: Path, disk: Path, full: str) -> None:
    log = write_lines(tmp_path / "log.tsv", event_lines(800, seed=5))
    store = SqliteStore(disk / "state.db") if full == "store" else MemoryStore()
    sink = FileSink((disk if full == "sink" else tmp_path) / "out.tsv")
    told: list[str] = []
    opened = threading.Event()
    settings = keyed_settings(patience=patience(), tables=small_tables(tmp_path))
    filler: list[Path] = []

    class FillingSource(FilesSource):
        def open(self, *, position: str | None, keys: Sequence[str]) -> None:
            super().open(position=position, keys=keys)
            filler.append(fill(disk))
            opened.set()

    service = Service(settings, source=FillingSource(log, batch_bytes=4000), sink=sink, store=store, tell=told.append)
    thread = threading.Thread(target=service.run)
    thread.start()
    assert opened.wait(patience())
    until(lambda: bool(told))
    assert "full" in told[0] or "no space left on device" in told[0]
    assert not service.stats().is_ready
    filler[0].unlink()
    thread.join()
    stats = service.stats()
    assert adds_up(stats)
    assert stats.n_read == 800
    lines = sink.path.read_text(encoding="utf-8").splitlines()
    queries = [line.split("\t")[1] for line in lines]
    assert len(queries) == len(set(queries)) == stats.n_released == stats.n_delivered

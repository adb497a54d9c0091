"""Made-up events, and a source and a sink in memory, for tests of whatever goes between them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Event

from tests.support.waiting import patience

from queryveil.release import ColumnPolicy, Ids
from queryveil.service.ports import Batch, Outgoing, Sink, Source, Stats
from queryveil.service.settings import StreamSettings, Tables

_ABOUT = ("tennis racket", "guitar chords", "garden hose", "laptop battery", "pizza dough")
_LETTERS = "bcdfghjklmnprstvz"
KEY = b"a made-up secret of 32 bytes, 32"


def event_lines(n: int, *, seed: int, n_users: int = 40) -> list[str]:
    """Make lines in AOL's format; no two have the same query, and their times are in no order."""
    rng = random.Random(seed)
    lines = []
    for i in range(n):
        word = "".join(_LETTERS[(i // len(_LETTERS) ** place) % len(_LETTERS)] + "oe"[place % 2] for place in range(4))
        asked = f"2006-03-{rng.randrange(1, 29):02} {rng.randrange(24):02}:00:00"
        lines.append(f"member{rng.randrange(n_users)}\t{rng.choice(_ABOUT)} {word}\t{asked}\t\t")
    return lines


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """Write lines to a file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def small_tables(folder: Path) -> Tables:
    """Write tables that know what the made-up events are about and nothing else, so that a start takes no time."""
    units = [word for words in _ABOUT for word in words.split()]
    categories = ["Sports", "Arts", "Home", "Computers", "Home"]
    write_lines(folder / "frequencies.csv", ["unit,count", *(f"{word},100" for word in units)])
    write_lines(folder / "recommendations.csv", ["misspelt,correct", "raket,racket"])
    rows = [f"{word},{categories[i // 2]},1.0" for i, word in enumerate(units)]
    write_lines(folder / "categories.csv", ["unit,category,weight", *rows])
    return Tables(
        frequencies=folder / "frequencies.csv",
        recommendations=folder / "recommendations.csv",
        categories=folder / "categories.csv",
    )


def keyed_settings(**changed: object) -> StreamSettings:
    """Return settings with small pools and ids that can be checked."""
    chosen: dict[str, object] = {
        "k": 3,
        "l": 2,
        "remembered": 10_000,
        "window": None,
        "columns": ColumnPolicy(ids=Ids.KEYED, key=KEY),
        "is_finite": True,
        "patience": patience(20),
    }
    return StreamSettings(**(chosen | changed))  # type: ignore[arg-type]


def adds_up(stats: Stats) -> bool:
    """Return whether what was read is all accounted for."""
    dropped = stats.n_bad + stats.n_empty + stats.n_emptied + stats.n_unclassified_dropped
    dropped += stats.n_repeated + stats.n_rare + stats.n_suppressed
    return stats.n_read == dropped + stats.n_released + stats.n_waiting


class ListSource(Source):
    """A source that has its batches from the start; its position is how many were taken."""

    def __init__(self, batches: Sequence[bytes], *, is_endless: bool = False) -> None:
        self.batches, self.n_taken, self._is_endless = list(batches), 0, is_endless
        self.acknowledged: list[tuple[str, list[int]]] = []
        self._closed = Event()

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:
        """Go on behind the batches that were committed."""
        self.n_taken = int(position or 0)

    def take(self, *, timeout: float) -> Batch | None:
        """Return the next batch."""
        if self.n_taken == len(self.batches):
            if self._is_endless:
                self._closed.wait(timeout)
            return None
        self.n_taken += 1
        return Batch(data=self.batches[self.n_taken - 1], position=str(self.n_taken))

    @property
    def is_finished(self) -> bool:
        """Whether all batches were taken."""
        return not self._is_endless and self.n_taken == len(self.batches)

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:
        """Note which lines were bad."""
        self.acknowledged.append((batch.position, list(bad_lines)))

    def close(self) -> None:
        """Stop waiting."""
        self._closed.set()


class ListSink(Sink):
    """A sink that keeps what it gets, by number; it takes nothing until `allowed`, and first fails as told."""

    def __init__(self, *, fails: Sequence[Exception] = ()) -> None:
        self.received: dict[int, bytes] = {}
        self.allowed, self._fails, self._closed = Event(), list(fails), False
        self.allowed.set()

    def open(self, *, delivered: int, n_bytes: int) -> None:
        """Begin."""

    def deliver(self, outgoing: Outgoing) -> None:
        """Keep lines."""
        self.allowed.wait()
        if self._closed:
            raise OSError(32, "closed")
        if self._fails:
            raise self._fails.pop(0)
        assert self.received.get(outgoing.number, outgoing.data) == outgoing.data
        self.received[outgoing.number] = outgoing.data

    def close(self) -> None:
        """End a `deliver` that waits."""
        self._closed = True
        self.allowed.set()

    @property
    def lines(self) -> list[str]:
        """All lines received, in order."""
        return b"".join(self.received[number] for number in sorted(self.received)).decode().splitlines()

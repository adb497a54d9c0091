"""The steps of the live anonymizer, each over what the step before it made of a whole file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import polars as pl

from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap.pools import Pools
from queryveil.methods.swap.preparing import increments, prepare
from queryveil.release import ColumnPolicy, Ids
from queryveil.service.connectors.file_sources import FilesSource
from queryveil.service.lines import find_layout, parse, write_lines
from queryveil.service.ports import Commit, Outgoing
from queryveil.service.settings import StreamSettings
from queryveil.service.stores.sqlite import SqliteStore
from queryveil.text.classifier import Classifier
from queryveil.text.identifiers import remove_identifiers

WHOLE = "the whole service"
IN_PAPER = {"classify": "1503", "swap": "22", "count and commit": "267", WHOLE: "1792"}
"""Microseconds an event in table 2, on another machine: classifier, anonymizer, profiler, and their sum."""
_NOW = datetime(2026, 1, 1)


def settings_for(source: Path, *, workers: int = 1) -> StreamSettings:
    columns = ColumnPolicy(ids=Ids.KEYED, key=b"k" * 32)
    form = {".jsonl": "jsonl", ".tsv": "aol"}.get(source.suffix)
    return StreamSettings(columns=columns, format=form, is_finite=True, workers=workers)


class Steps:
    """What each step is given; made once, so that a step can be run by itself again and again."""

    def __init__(self, source: Path, folder: Path) -> None:
        settings = settings_for(source)
        self._state = folder / "steps.db"
        self._columns, self._classifier = settings.columns, Classifier()
        self._data = self._read(source)
        layout = find_layout(self._data[0], format=settings.format, names={}, source=source.name)
        assert layout is not None
        self._layout = layout
        self._parsed = [parse(data, layout=layout).frame for data in self._data]
        self._cleaned = [remove_identifiers(frame["query"].fill_null("")).queries for frame in self._parsed]
        self._events = [prepare(frame, classifier=self._classifier).frame for frame in self._parsed]
        self.n_events = sum(frame.height for frame in self._parsed)
        pools = Pools(PoolSettings())
        self._swapped = [(pools.add(events), pools.to_bytes()) for events in self._events]
        self._written: list[tuple[pl.DataFrame, bytes]] = []
        self.name_and_write()

    @staticmethod
    def _read(source: Path) -> list[bytes]:
        file, found = FilesSource(source), []
        file.open(position=None, keys=())
        while (batch := file.take(timeout=1)) is not None:
            found.append(batch.data)
        return found

    def in_order(self) -> dict[str, Callable[[], None]]:
        """Return the steps by name."""
        return {
            "parse": self.parse,
            "remove identifiers": self.remove_identifiers,
            "classify": self.classify,
            "swap": self.swap,
            "name and write": self.name_and_write,
            "count and commit": self.count_and_commit,
        }

    def parse(self) -> None:
        for data in self._data:
            parse(data, layout=self._layout)

    def remove_identifiers(self) -> None:
        for frame in self._parsed:
            remove_identifiers(frame["query"].fill_null(""))

    def classify(self) -> None:
        for texts in self._cleaned:
            self._classifier.classify(texts)

    def swap(self) -> None:
        """Let events change hands, and give the state for the store after each batch."""
        pools = Pools(PoolSettings())
        for events in self._events:
            pools.add(events)
            pools.to_bytes()

    def name_and_write(self) -> None:
        self._written = []
        for swapped, _ in self._swapped:
            released = swapped.released.with_columns(self._columns.released_ids(swapped.released["user"]))
            lines = write_lines(released, layout=self._layout, columns=self._columns, now=_NOW, has_header=False)
            self._written.append((released, lines))

    def count_and_commit(self) -> None:
        """Add to the profiles, and write everything to disk in a transaction a batch."""
        for path in self._state.parent.glob(f"{self._state.name}*"):
            path.unlink(missing_ok=True)
        store, offset = SqliteStore(self._state), 0
        store.open(settings="")
        both = zip(self._swapped, self._written, strict=True)
        for number, ((swapped, pools), (released, data)) in enumerate(both, start=1):
            outgoing = Outgoing(number=number, offset=offset, data=data, n_rows=released.height)
            offset += len(data)
            commit = Commit(
                number=number,
                position=str(number),
                pools=pools,
                issued=swapped.issued,
                profiles=increments(released),
                outgoing=outgoing,
                delivered=number - 2,
            )
            store.commit(commit)
        store.close()

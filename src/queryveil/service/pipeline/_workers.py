"""Parse lines and prepare their events, in this process or in several."""

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import dataclass
from threading import Thread

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Int64s, Layout
from queryveil.methods.swap.preparing import prepare
from queryveil.service.lines import KEPT, MAX_EVENT_BYTES, parse
from queryveil.service.settings import StreamSettings

IDENTIFIERS = "identifiers."
"""Begins the names of the counts of identifiers, by kind."""
_N_TRIES = 3
_SMALLEST_SLICE = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PreparedBatch:
    """Events of some lines, prepared, and what became of the other lines."""

    events: pl.DataFrame
    bad_lines: Int64s
    counts: Counter[str]
    time_format: str | None = None


class InProcess:
    """Parses lines and prepares their events for the pools, here."""

    def __init__(self, settings: StreamSettings) -> None:
        self._keep, self._unclassified = settings.columns.keep, settings.unclassified
        self._classifier = settings.make_classifier()

    def run(self, data: bytes, *, layout: Layout | None) -> PreparedBatch:
        parsed = parse(data, layout=layout, keep=self._keep)
        frame = parsed.frame.rename({name: KEPT + name for name in self._keep})
        prepared = prepare(frame, classifier=self._classifier, unclassified=self._unclassified)
        events = prepared.frame
        if len(data) > MAX_EVENT_BYTES:
            events = events.filter(pl.col("user").str.len_bytes() + pl.col("query").str.len_bytes() <= MAX_EVENT_BYTES)
        counts = Counter(
            n_read=parsed.n_read,
            n_bad=len(parsed.bad_lines),
            n_empty=prepared.n_empty,
            n_emptied=prepared.n_emptied,
            n_unclassified_dropped=prepared.n_unclassified_dropped,
            n_suppressed=prepared.frame.height - events.height,
            **{IDENTIFIERS + kind: n for kind, n in prepared.identifiers.items()},
        )
        return PreparedBatch(events=events, bad_lines=parsed.bad_lines, counts=counts, time_format=parsed.time_format)


class Workers:
    """Parses and prepares in processes of their own; one that dies is replaced and its lines are done again."""

    def __init__(self, settings: StreamSettings) -> None:
        self._settings = settings
        self._executor = self._start()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._settings.workers,
            # A fork of a process that has threads may hang.
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(self._settings,),
        )

    def run(self, data: bytes, *, layout: Layout | None) -> PreparedBatch:
        """Parse and prepare whole lines, a slice in each process."""
        slices = slice_lines(data, n=self._settings.workers)
        for _ in range(_N_TRIES):
            try:
                waiting = [self._executor.submit(_run, each, layout) for each in slices]
                return join([each.result() for each in waiting], slices)
            except BrokenExecutor:
                self._executor.shutdown(wait=False, cancel_futures=True)
                self._executor = self._start()
        # What kills every worker is tried where its failure can be seen.
        return InProcess(self._settings).run(data, layout=layout)

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)


def slice_lines(data: bytes, *, n: int) -> list[bytes]:
    """Cut whole lines into at most n slices of whole lines."""
    size = max(len(data) // n + 1, _SMALLEST_SLICE)
    slices, begin = [], 0
    while begin < len(data):
        end = data.find(b"\n", min(begin + size, len(data)) - 1) + 1 or len(data)
        slices.append(data[begin:end])
        begin = end
    return slices or [b""]


def join(parts: Sequence[PreparedBatch], slices: Sequence[bytes]) -> PreparedBatch:
    """Put slices together again, lines numbered through."""
    before = np.cumsum([0, *(each.count(b"\n") for each in slices[:-1])])
    return PreparedBatch(
        events=pl.concat([part.events for part in parts], rechunk=False),
        bad_lines=np.concatenate([part.bad_lines + n for part, n in zip(parts, before, strict=True)]),
        counts=sum((part.counts for part in parts), Counter()),
        time_format=next((part.time_format for part in parts if part.time_format), None),
    )


_worker: InProcess | None = None


def _begin(settings: StreamSettings) -> None:
    global _worker  # noqa: PLW0603 - the one place where a process keeps what it was started with
    # Ctrl-C goes to the whole group, and is for the parent, which ends its workers when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    progress.ignore_notices()
    Thread(target=_end_with_parent, daemon=True).start()
    _worker = InProcess(settings)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(data: bytes, layout: Layout | None) -> PreparedBatch:
    assert _worker is not None
    return _worker.run(data, layout=layout)

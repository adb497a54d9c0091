"""Runs one reader on changed inputs: keeps those that reach new lines of the package, and notes what goes wrong."""

from __future__ import annotations

import random
import re
import resource
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from types import CodeType, FrameType
from typing import Any

from tests.fuzzing.mutation import SECRET, Mutator

import queryveil
from queryveil.errors import BadParameter, MissingColumn, QueryveilError

SOURCE = str(Path(queryveil.__file__).parent)
MOST_GROWTH = 1 << 30
"""The most bytes of memory that an input may take."""
_LARGEST_KEPT = 1 << 16
_SHRINKING = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One reader.

    - `name`: the name on the command line.
    - `read`: gives the reader some bytes; a value or an error of queryveil is right, all else is a fault.
    - `seeds`: makes well-formed inputs, with `SECRET` where a text of a log would be.
    - `words`: what such inputs are made of.
    - `quotes`: whether messages may quote the input: it names files and settings, and holds no text of a log.
    """

    name: str
    read: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    words: Sequence[bytes] = ()
    quotes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong with what a reader did, where, and with which input."""

    what: str
    data: bytes = field(repr=False)


class Coverage:
    """The steps from line to line of the package that were ever seen, and the messages."""

    def __init__(self) -> None:
        self._seen: set[object] = set()
        self._found: set[object] = set()
        self._is_ours: dict[CodeType, bool] = {}
        self.n_read = 0

    def _trace(self, frame: FrameType, _event: str, _value: object) -> Callable[..., Any] | None:
        code = frame.f_code
        is_ours = self._is_ours.get(code)
        if is_ours is None:
            is_ours = self._is_ours[code] = code.co_filename.startswith(SOURCE)
        if not is_ours:
            return None
        found, before = self._found, 0

        def follow(frame: FrameType, event: str, _value: object) -> Callable[..., Any]:
            nonlocal before
            if event == "line":
                found.add((code, before, frame.f_lineno))
                before = frame.f_lineno
            return follow

        return follow

    def run(self, target: Target, data: bytes) -> tuple[str | None, bool]:
        """Return what is wrong with the outcome, None if nothing is, and whether something new was seen."""
        earlier = sys.gettrace()
        sys.settrace(self._trace)
        try:
            wrong, told = outcome(target, data)
        finally:
            sys.settrace(earlier)
        self.n_read += not wrong and not told
        # Kernels are not followed, but what they find is told.
        self._found.add(re.sub(r"\d+", "0", told)[:200])
        is_new = not self._found <= self._seen
        self._seen |= self._found
        self._found.clear()
        return wrong, is_new


_QUOTING = (BadParameter, MissingColumn)
"""Errors that quote a setting or the names of columns, which may be anything after a change."""


def outcome(target: Target, data: bytes) -> tuple[str | None, str]:
    """Return what is wrong with what a reader does with some bytes, None if nothing is, and the message of an error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            shown = repr(target.read(data))
    except QueryveilError as error:
        told = _told(error)
        leaks = SECRET in told.lower() and not target.quotes and not isinstance(error, _QUOTING)
        return (f"{type(error).__name__} quotes the input" if leaks else None), f"{type(error).__name__} {error}"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        return _place_of(error), ""
    # The names of columns are in a header and may be told; so may the settings and names of a file that may be quoted.
    shown = re.sub(r"columns=\[[^]]*\]", "", shown)
    leaks = SECRET in shown.lower() and not target.quotes
    return ("the repr of what was read holds its text" if leaks else None), ""


def _told(error: BaseException | None) -> str:
    told = ""
    while error is not None:
        told += f"{error!s} {error!r} "
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return told


def _place_of(error: BaseException) -> str:
    frames = extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(SOURCE)] or list(frames)
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "nowhere"
    return f"{type(error).__name__} at {place}"


@dataclass(slots=True, kw_only=True)
class Run:
    """One target under way.

    - `target`: the reader.
    - `seed`: repeats the run.
    - `note`: is called with each input before the reader gets it.
    - `tell`: is called with each fault that is not known yet.
    """

    target: Target
    seed: str
    note: Callable[[bytes], object] = lambda _: None
    tell: Callable[[Fault], object] = lambda _: None
    n_executions: int = 0
    n_seeds_read: int = 0
    """How many seeds were read without an error; there should be some, or all the rest is refused at the door."""
    faults: dict[str, Fault] = field(default_factory=dict)
    _coverage: Coverage = field(default_factory=Coverage)

    def go(self, *, executions: int | None = None, seconds: float = float("inf")) -> list[Fault]:
        """Try inputs for so many executions or seconds, the seeds first; return the faults."""
        corpus = list(self.target.seeds())
        mutator = Mutator(random.Random(self.seed), words=self.target.words)
        for data in corpus:
            if executions is None:
                # Once without being followed, so that compiling kernels takes no longer than it must.
                self.note(data)
                outcome(self.target, data)
            self._try(data)
        self.n_seeds_read = self._coverage.n_read
        chance, most_memory, until = mutator.chance, _peak_bytes() + MOST_GROWTH, time.monotonic() + seconds
        most = float("inf") if executions is None else self.n_executions + executions
        while self.n_executions < most and time.monotonic() < until:
            # Later inputs have come further.
            place = max(chance.randrange(len(corpus)), chance.randrange(len(corpus)))
            data = mutator.mutate(corpus[place], others=corpus)
            if self._try(data) and len(data) <= max(_LARGEST_KEPT, len(corpus[0])):
                corpus.append(data)
            if _peak_bytes() > most_memory:
                self._add(f"memory grows by more than {MOST_GROWTH >> 20} MiB", data)
                # The peak stays, so nothing more can be told in this process.
                break
        return list(self.faults.values())

    def _try(self, data: bytes) -> bool:
        self.note(data)
        self.n_executions += 1
        wrong, is_new = self._coverage.run(self.target, data)
        if wrong is not None and wrong not in self.faults:
            self._add(wrong, self._shrunk(data, wrong))
        return is_new

    def _add(self, what: str, data: bytes) -> None:
        self.faults[what] = Fault(what=what, data=data)
        self.tell(self.faults[what])

    def _shrunk(self, data: bytes, wrong: str) -> bytes:
        """Leave out what the fault does not need."""
        size, n_left = max(1, len(data) // 2), _SHRINKING
        while size and n_left:
            begin = 0
            while begin < len(data) and n_left:
                shorter = data[:begin] + data[begin + size :]
                self.note(shorter)
                n_left -= 1
                if outcome(self.target, shorter)[0] == wrong:
                    data = shorter
                else:
                    begin += size
            size //= 2
        return data


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes.
    return peak if sys.platform == "darwin" else peak * 1024

"""A ledger of what the releases of one log have spent of its privacy budget.

A file of JSON lines: the first says how much there is, each further one what a release has spent. It holds epsilons,
deltas, dates and names of release folders, and nothing of the log.
"""

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from queryveil.errors import BadFile, BadParameter, NotWritten, OverBudget
from queryveil.formats.atomic_folders import sync_to_disk
from queryveil.guarantees import DifferentialPrivacy
from queryveil.settings import is_number, is_utf8

_OWNER_ONLY = 0o600
_MOST_BYTES = 64 * 2**20
_DIGITS = 400
"""Enough for sums of any floats; nothing is rounded."""

_Amount = Annotated[float, msgspec.Meta(gt=0)]


class Total(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much may be spent in all."""

    total_epsilon: _Amount
    total_delta: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    format_version: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1

    def __post_init__(self) -> None:
        if not is_number(self.total_epsilon) or not 0 < self.total_epsilon < float("inf"):
            raise BadParameter("total_epsilon", self.total_epsilon, allowed="above 0 and finite")
        if not is_number(self.total_delta) or not 0 < self.total_delta < 1:
            raise BadParameter("total_delta", self.total_delta, allowed="above 0 and below 1")


class Spending(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one release has spent."""

    epsilon: _Amount
    delta: _Amount
    date: date
    release: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What there is to spend, and what was spent.

    >>> spent = Spending(epsilon=0.1, delta=1e-6, date=date(2024, 3, 4), release="spring")
    >>> ledger = Ledger(total=Total(total_epsilon=0.3, total_delta=1e-5), spent=(spent, spent))
    >>> ledger.remaining_epsilon, ledger.remaining_delta
    (Decimal('0.1'), Decimal('0.000008'))
    """

    total: Total
    spent: tuple[Spending, ...] = ()

    @property
    def remaining_epsilon(self) -> Decimal:
        """What is left of epsilon, never below 0."""
        return _left(self.total.total_epsilon, [each.epsilon for each in self.spent])

    @property
    def remaining_delta(self) -> Decimal:
        """What is left of delta, never below 0."""
        return _left(self.total.total_delta, [each.delta for each in self.spent])


def read_ledger(path: str | Path) -> Ledger:
    """Read a ledger."""
    with _opened(Path(path), writable=False) as handle:
        ledger = _read(handle, name=str(path))
    if ledger is None:
        raise BadFile(str(path), "the ledger is empty; begin one with --total-epsilon and --total-delta")
    return ledger


def spend(path: str | Path, promise: DifferentialPrivacy, *, release: str, total: Total | None = None) -> Ledger:
    """Write down what a release is about to spend, and give the ledger with it; raise if not so much is left.

    With a `total` a ledger that is not there is begun. When this returns, the spending is on the disk: what is spent
    stays spent, whatever becomes of the release.
    """
    name = str(path)
    folder = Path(release).name
    if not is_utf8(folder):
        raise BadParameter("release", ascii(folder), allowed="a folder whose name is UTF-8")
    # What is refused begins no ledger.
    check_budget(path, promise, total=total)
    with _opened(Path(path), writable=True) as handle:
        found = _read(handle, name=name)
        ledger = _able_to_pay(found, total, promise, name=name)
        spending = Spending(epsilon=promise.epsilon, delta=promise.delta, date=datetime.now(UTC).date(), release=folder)
        lines = [spending] if found else [ledger.total, spending]
        _append(handle, b"".join(msgspec.json.encode(line) + b"\n" for line in lines), name=name)
    if found is None:
        sync_to_disk(Path(path).absolute().parent)
    return Ledger(total=ledger.total, spent=(*ledger.spent, spending))


def check_budget(path: str | Path, promise: DifferentialPrivacy, *, total: Total | None = None) -> None:
    """Raise if `spend` would; better before the work than after it. Nothing is written."""
    ledger = None
    if os.path.lexists(path):
        with _opened(Path(path), writable=False) as handle:
            ledger = _read(handle, name=str(path))
    elif not Path(path).absolute().parent.is_dir():
        raise BadFile(str(path), "there is no such folder to begin a ledger in")
    _able_to_pay(ledger, total, promise, name=str(path))


def _able_to_pay(ledger: Ledger | None, total: Total | None, promise: DifferentialPrivacy, *, name: str) -> Ledger:
    """Return the ledger that is there, or a new one; raise if it cannot pay for the promise."""
    if ledger is None:
        if total is None:
            raise BadFile(name, "there is no such ledger; begin one with --total-epsilon and --total-delta")
        ledger = Ledger(total=total)
    if total is not None and total != ledger.total:
        others = f"{ledger.total.total_epsilon:g} and {ledger.total.total_delta:g}"
        raise BadFile(name, f"the ledger was begun with other totals, {others}; leave them out, or name another file")
    wanted = (
        ("epsilon", _exact(promise.epsilon), ledger.remaining_epsilon),
        ("delta", _exact(promise.delta), ledger.remaining_delta),
    )
    lacking = [
        f"{what} {_plain(amount)} was requested and {_plain(left)} is left, {_plain(amount - left)} too little"
        for what, amount, left in wanted
        if amount > left
    ]
    if lacking:
        raise OverBudget(name, ", and ".join(lacking))
    return ledger


def _exact(value: float) -> Decimal:
    """Return a number as it is written: a tenth is 0.1, so that ten of them make 1."""
    return Decimal(repr(float(value)))


def _left(total: float, spent: list[float]) -> Decimal:
    with localcontext(prec=_DIGITS):
        return max(_exact(total) - sum(map(_exact, spent), start=Decimal(0)), Decimal(0)).normalize()


def _plain(value: Decimal) -> str:
    return f"{float(value):.10g}"


@contextmanager
def _opened(path: Path, *, writable: bool) -> Iterator[int]:
    """Open a ledger for one process at a time; a new one that nothing was written to is removed again."""
    handle, is_new = _handle(path, writable=writable)
    try:
        _lock(handle, path, writable=writable)
        while writable and not _is_at(path, handle):
            # Whoever had the lock before has removed the file, and what is written to it would be lost.
            os.close(handle)
            handle, is_new = _handle(path, writable=writable)
            _lock(handle, path, writable=writable)
        yield handle
    except BaseException:
        if is_new and not os.fstat(handle).st_size:
            with suppress(OSError):
                path.unlink()
        raise
    finally:
        os.close(handle)


def _handle(path: Path, *, writable: bool) -> tuple[int, bool]:
    """Open a file, and say whether it is new; a new one is for its owner's eyes only."""
    flags = (os.O_RDWR | os.O_APPEND if writable else os.O_RDONLY) | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        if writable:
            with suppress(FileExistsError):
                return os.open(path, flags | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), True
        return os.open(path, flags), False
    except OSError as error:
        raise BadFile(str(path), f"the ledger cannot be opened: {error.strerror}") from None


def _lock(handle: int, path: Path, *, writable: bool) -> None:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise BadFile(str(path), "is no file that could be a ledger")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if writable else fcntl.LOCK_SH)
    except OSError as error:
        raise BadFile(str(path), f"the ledger cannot be locked: {error.strerror}; keep it on another disk") from None


def _is_at(path: Path, handle: int) -> bool:
    with suppress(OSError):
        return os.path.samestat(path.stat(), os.fstat(handle))
    return False


def _read(handle: int, *, name: str) -> Ledger | None:
    """Read a ledger, none if nothing stands there yet."""
    if os.fstat(handle).st_size > _MOST_BYTES:
        raise BadFile(name, "is too large for a ledger")
    text = os.pread(handle, _MOST_BYTES, 0)
    if not text:
        return None
    if not text.endswith(b"\n"):
        cut_off = "the last line of the ledger is cut off; fix it by hand, and count it as spent if in doubt"
        raise BadFile(name, cut_off)
    first, *others = text.splitlines()
    return Ledger(
        total=_line(first, Total, number=1, name=name),
        spent=tuple(_line(each, Spending, number=i, name=name) for i, each in enumerate(others, start=2)),
    )


_Line = TypeVar("_Line", Total, Spending)


def _line(text: bytes, kind: type[_Line], *, number: int, name: str) -> _Line:
    try:
        line = msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, BadParameter):
        raise BadFile(name, f"line {number} is not one of a ledger; fix it by hand, or name another file") from None
    # Of a key that stands twice the last value would count here, and perhaps the first for somebody who looks at it.
    keys = [key for key, _ in json.loads(text, object_pairs_hook=list)]
    if len(set(keys)) < len(keys):
        raise BadFile(name, f"line {number} of the ledger has a key twice; fix it by hand, or name another file")
    return line


def _append(handle: int, text: bytes, *, name: str) -> None:
    """Add lines, and wait until they are on the disk; a part of them is none."""
    size = os.fstat(handle).st_size
    try:
        written = 0
        while written < len(text):
            # The rest of what fits in part is refused with the reason.
            written += os.write(handle, text[written:])
        os.fsync(handle)
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(handle, size)
        raise NotWritten(name, error.strerror, so="nothing was released") from None

"""The settings of a stream, and the key of its user ids."""

import hashlib
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path

from msgspec import structs

from queryveil.data import Format
from queryveil.errors import BadFile, BadParameter, NotWritten
from queryveil.formats import atomic_folders, read, roles
from queryveil.guarantees import SwapAnonymity, parse_window
from queryveil.methods.settings import LineSettings
from queryveil.release import ColumnPolicy, Ids, new_key
from queryveil.text.classifier import Classifier

LINE_FORMATS = (Format.AOL, Format.EXCITE, Format.CSV, Format.TSV, Format.JSONL)
"""The formats in which one line is one event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """A search engine's own tables for the classifier, in place of those in the package."""

    frequencies: str | Path | None = None
    recommendations: str | Path | None = None
    categories: str | Path | None = None

    def __bool__(self) -> bool:
        return any(table is not None for table in asdict(self).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings(LineSettings):
    """How a service anonymizes.

    - `window`: how long an id that is keyed holds before it changes; None keeps ids
    - `k`, `l`, `growth`, `max_pool`, `shrink`, `repeats`, `min_query_users`, `remembered`: when a pool takes and lets
      go of an event, as for `PoolSettings`
    - `max_wait`: how long an event waits at most, 7d for example, before it is suppressed; None lets it wait for ever
    - `drain`: what waits at the end of a source that has one: `suppress` it, or `release` what the promise allows
    - `unclassified`: queries without a category go to a `pool` of their own, or `drop` them
    - `classifier`: `evidence` or `paper`
    - `tables`: a search engine's own tables for the classifier
    - `columns`: which other columns leave, and how ids and times change
    - `format`: None is told from the first lines
    - `names`: which column is which, by role
    - `max_outbox_bytes`: while more than this wait for the sink, nothing is read
    - `workers`: processes that classify
    - `patience`: seconds that a store or sink may fail before the service gives up; None waits for ever
    - `is_finite`: the source has an end, and its first lines may not be garbage
    """

    tables: Tables = field(default_factory=Tables)
    columns: ColumnPolicy
    format: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    max_outbox_bytes: int = 64 << 20
    is_finite: bool = False

    def __post_init__(self) -> None:
        LineSettings.__post_init__(self)
        self.columns.check_not_shared()
        _ = self.max_wait_seconds
        if self.columns.ids is Ids.FRESH:
            raise BadParameter("ids", "fresh", allowed="keyed or keep: a stream needs names that stay the same")
        if self.format is not None and read.parse_choice(Format, self.format, name="format") not in LINE_FORMATS:
            raise BadParameter("format", self.format, allowed=f"one of {', '.join(LINE_FORMATS)} on a stream")
        if roles.check_roles(self.names) and self.format in (Format.AOL, Format.EXCITE):
            raise BadParameter("columns", ", ".join(self.names), allowed=f"left out for {self.format}")
        _ = self.promise

    @property
    def promise(self) -> SwapAnonymity:
        """What holds for everything that leaves."""
        promise = self.pool_settings(remembered=self.remembered).promise
        return structs.replace(promise, window=None) if self.columns.ids is Ids.KEEP else promise

    @property
    def max_wait_seconds(self) -> int | None:
        if self.max_wait is None:
            return None
        return parse_window(self.max_wait, name="max_wait") // timedelta(seconds=1)

    def make_classifier(self) -> Classifier:
        return Classifier.from_tables(**asdict(self.tables), kind=self.classifier)

    def fingerprint(self, *, source: str, sink: str) -> str:
        """Return the settings that a restart may not change, one per line."""
        key = self.columns.key
        made_with = {
            "source": source,
            "sink": sink,
            "k": self.k,
            "l": self.promise.l,
            "growth": self.growth,
            "remember": self.remembered,
            "repeats": self.repeats,
            "window": self.promise.window or "none",
            "min_query_users": self.min_query_users,
            "unclassified": self.unclassified,
            "classifier": self.classifier + (" with own tables" if self.tables else ""),
            "ids": self.columns.ids,
            "key": "none" if key is None else hashlib.sha256(b"queryveil key\0" + key).hexdigest()[:16],
            "time": self.columns.time,
            "keep": ",".join(self.columns.keep),
            "format": self.format or "as found",
            "columns": ",".join(f"{role}={name}" for role, name in self.names.items()),
        }
        return "\n".join(f"{name}={' '.join(str(value).split())}" for name, value in made_with.items())


_AS_BEFORE = {"repeats": "all", "window": "none", "min_query_users": "1", "shrink": "False", "state": "1"}
"""What streams of earlier releases do not name, as it was there; `state` is the version of what Spark keeps."""


def check_settings(now: str, *, before: str) -> None:
    r"""Raise if a setting is another one than when the stream began.

    >>> check_settings("k=10\nl=2", before="k=10\nl=10")
    Traceback (most recent call last):
    queryveil.errors.BadParameter: l must be 10 as when this stream began (or name another --store), got 2
    >>> check_settings("k=10\nrepeats=all", before="k=10")
    >>> check_settings("k=10\nrepeats=once", before="k=10")
    Traceback (most recent call last):
    queryveil.errors.BadParameter: repeats must be all as when this stream began (or name another --store), got once
    """
    there, asked = _AS_BEFORE | _lines(before), _lines(now)
    for name in [*there, *(name for name in asked if name not in there)]:
        if there.get(name) == asked.get(name) or (name in _AS_BEFORE and name not in asked):
            continue
        if "key" in name:
            # Privacy: not even a part of a key is shown.
            raise BadParameter(name, "another", allowed="the one this stream began with (or name another --store)")
        was = there.get(name, "left out")
        allowed = f"{was} as when this stream began (or name another --store)"
        raise BadParameter(name, asked.get(name, "nothing"), allowed=allowed)


def _lines(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if line.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def read_or_make_key(path: Path, *, is_lost: Callable[[], bool] = lambda: False) -> bytes:
    """Return the secret in a file; if there is none, make one for its owner alone.

    `is_lost` says whether there must have been one: a new one would give people other names, so it is not made.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        if is_lost():
            reason = "there is no key, and this stream has begun; put it back, name it with --key, or another --store"
            raise BadFile(str(path), reason) from None
    except OSError as error:
        raise BadFile(str(path), f"the key cannot be read: {error.strerror}") from None
    key = new_key()
    # A crash in between must not leave a file with half a key: under its name there is a whole one or none.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    try:
        with atomic_folders.new_file(partial) as file:
            file.write(key)
        os.link(partial, path)
        atomic_folders.sync_to_disk(path.absolute().parent)
    except FileExistsError:
        return path.read_bytes()
    except (OSError, NotWritten) as error:
        why = error.why if isinstance(error, NotWritten) else error.strerror
        raise BadFile(str(path), f"the key cannot be written: {why}") from None
    finally:
        partial.unlink(missing_ok=True)
    return key

"""Files, pipes and release folders as sinks."""

import os
import sys
from pathlib import Path
from threading import Lock

import msgspec
from msgspec import structs

from queryveil.data import ROLES, Format, Layout
from queryveil.errors import BadFile
from queryveil.formats import atomic_folders, extension, read_log
from queryveil.release import MANIFEST, Counts, Manifest
from queryveil.release.release import described
from queryveil.release.texts import count_texts
from queryveil.service.lines import inside_names
from queryveil.service.ports import Outgoing, Sink, Stats
from queryveil.service.settings import StreamSettings

_CLOSE_SECONDS = 1.0


class FileSink(Sink):
    """Append lines to a file that only its owner can read.

    Lines go where they belong by the number of bytes before them, so that what is handed over again after a crash
    stands there once. The file must stay in place while the stream goes on.

    - `path`: the file; it is created if it is not there.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None
        self._lock = Lock()

    def check_new(self) -> None:
        if self.path.is_dir():
            raise BadFile(str(self.path), "this is a folder; for a release folder say release:FOLDER")
        if not self.path.absolute().parent.is_dir():
            raise BadFile(str(self.path), "its folder is not there; make it first")
        if self.path.is_file() and self.path.stat().st_size:
            reason = "is already there and not empty, and no state of this stream is; name a new file"
            raise BadFile(str(self.path), reason)

    def open(self, *, delivered: int, n_bytes: int) -> None:  # noqa: ARG002 - part of the port
        """Open or make the file; what was handed over earlier must still be there."""
        self._check_length(n_bytes)

    def _open(self) -> int:
        if self._descriptor is None:
            try:
                # Privacy: the mode holds from the start.
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                atomic_folders.sync_to_disk(self.path.absolute().parent)
            except (PermissionError, IsADirectoryError, NotADirectoryError, FileNotFoundError) as error:
                raise BadFile(str(self.path), f"cannot be written: {error.strerror}") from None
        return self._descriptor

    def _check_length(self, n_bytes: int) -> None:
        n_there = os.fstat(self._open()).st_size
        if n_there < n_bytes:
            reason = f"{n_bytes - n_there} bytes that were written are gone; put them back, or name another --store"
            raise BadFile(str(self.path), reason)

    def deliver(self, outgoing: Outgoing) -> None:
        """Write lines to disk at their place; lines that stand there already stay as they are."""
        data, offset = outgoing.data, outgoing.offset
        with self._lock:
            descriptor = self._open()
            self._check_length(offset)
            # Whoever follows the file must not see lines go and come again.
            if os.pread(descriptor, len(data), offset) != data:
                os.ftruncate(descriptor, offset)
                n_written = 0
                while n_written < len(data):
                    n_written += os.pwrite(descriptor, data[n_written:], offset + n_written)
            os.fsync(descriptor)
            # A file that was deleted takes lines too.
            if not self.path.exists() or not os.path.samestat(self.path.stat(), os.fstat(descriptor)):
                reason = "was moved, deleted or replaced while it was written to; put it back and run the command again"
                raise BadFile(str(self.path), reason)

    def close(self) -> None:
        """Close the file, unless it is still being written to: its number might be another file's by then."""
        if self._lock.acquire(timeout=_CLOSE_SECONDS):
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                os.close(descriptor)
            self._lock.release()


class StdoutSink(Sink):
    """Write lines to a pipe.

    A pipe cannot say what arrived: after a crash the last lines may come a second time (at least once). Where every
    line must arrive exactly once, write a file, Redis, Kafka or HTTP.

    - `descriptor`: an open pipe; None is stdout.
    """

    def __init__(self, *, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdout.fileno() if descriptor is None else descriptor
        self._number, self._n_written = 0, 0

    def open(self, *, delivered: int, n_bytes: int) -> None:  # noqa: ARG002 - part of the port
        self._number = delivered

    def deliver(self, outgoing: Outgoing) -> None:
        """Write lines; after a failure go on where it stopped."""
        if outgoing.number <= self._number:
            return
        while self._n_written < len(outgoing.data):
            self._n_written += os.write(self._descriptor, outgoing.data[self._n_written : self._n_written + (1 << 16)])
        self._number, self._n_written = outgoing.number, 0


_RULES = ("k", "l", "growth", "max_pool", "shrink", "max_wait", "repeats", "window", "min_query_users")
_ABOUT = "the number of users before is an estimate: a stream does not remember who was there"


class ReleaseSink(FileSink):
    """Append lines to the log of a folder, and write its manifest at each end that is not a crash.

    While the stream runs there is no manifest: what it would say changes with every line.

    - `folder`: the release folder; it is created if it is not there.
    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self.folder = Path(folder)
        self._n_bytes = 0

    def check_new(self) -> None:
        if not self.folder.absolute().parent.is_dir():
            raise BadFile(str(self.folder), "the folder to make it in is not there; make that one first")
        # A first start that was killed may have left an empty log behind.
        if os.path.lexists(self.folder) and (
            not self.folder.is_dir() or any(file.is_dir() or file.stat().st_size for file in self.folder.iterdir())
        ):
            reason = "is already there and not empty, and no state of this stream is; name a new folder"
            raise BadFile(str(self.folder), reason)

    def open(self, *, delivered: int, n_bytes: int) -> None:  # noqa: ARG002 - part of the port
        """Make the folder, for its owner alone."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        atomic_folders.sync_to_disk(self.folder.absolute().parent)
        self._n_bytes = n_bytes

    def begin(self, layout: Layout) -> None:
        """Set the format of the lines, which the name of the file shows."""
        self.path = self.folder / f"log.{extension(layout)}"
        self._check_length(self._n_bytes)

    def deliver(self, outgoing: Outgoing) -> None:
        (self.folder / MANIFEST).unlink(missing_ok=True)
        super().deliver(outgoing)

    def finish(self, *, settings: StreamSettings, layout: Layout | None, stats: Stats, n_users: int) -> None:
        """Write the manifest, if all that was released has arrived and there is something."""
        if layout is None or stats.n_outbox_rows or not stats.n_released:
            return
        manifest = _manifest(self.path, settings=settings, layout=layout, stats=stats, n_users=n_users)
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        partial = self.folder / f".{MANIFEST}.partial"
        partial.touch(mode=0o600)
        partial.write_bytes(text + b"\n")
        atomic_folders.sync_to_disk(partial)
        partial.replace(self.folder / MANIFEST)
        atomic_folders.sync_to_disk(self.folder)


def _manifest(path: Path, *, settings: StreamSettings, layout: Layout, stats: Stats, n_users: int) -> Manifest:
    columns, promise, inside = settings.columns, settings.promise, list(inside_names(layout))
    names = {role: layout.names.get(role, role) for role in ROLES if role in inside}
    left = columns.released_names(names)
    is_named = layout.format not in (Format.AOL, Format.EXCITE)
    names = {role: name for role, name in names.items() if not is_named or role in left}
    released = read_log(path, format=layout.format, columns=names if is_named else None)
    warnings = [*columns.warnings(inside, n_alone=columns.n_alone(released.frame)), _ABOUT]
    if columns.keep:
        warnings.append("columns that were kept go with the query to its new user")
    if stats.n_waiting:
        warnings.append("events were still waiting when this was written; a later run releases them")
    return Manifest(
        method="swap",
        promise=promise,
        parameters={name: getattr(settings, name) for name in _RULES}
        | {
            "l": promise.l,
            "window": promise.window,
            "first_window": stats.first_window,
            "last_window": stats.last_window,
            "drain": settings.drain,
            "unclassified": settings.unclassified,
            "order": "file",
            "times": "of release",
            "classifier": "own tables" if settings.tables else settings.classifier,
        },
        counts=Counts(
            n_rows_before=stats.n_read - stats.n_bad,
            n_rows_after=stats.n_released,
            n_users_before=max(n_users, released.n_users),
            n_users_after=released.n_users,
        ),
        texts=count_texts(released.frame["query"], asked=None, users=None),
        removed={
            "bad_rows_skipped": stats.n_bad,
            "rows_without_query": stats.n_empty,
            "rows_of_identifiers": stats.n_emptied,
            "rows_unclassified": stats.n_unclassified_dropped,
            "rows_repeated": stats.n_repeated,
            "rows_of_rare_queries": stats.n_rare,
            "rows_suppressed": stats.n_suppressed,
            "rows_still_waiting": stats.n_waiting,
            "identifiers": sum(stats.identifiers.values()),
        }
        | {f"identifiers_of_{kind.replace(' ', '_')}": n for kind, n in stats.identifiers.items()},
        changed={"queries_exchanged": stats.n_released},
        columns=columns.report(inside),
        warnings=tuple(warnings),
        data=structs.replace(described(path, layout, kind="log"), names=names),
    )

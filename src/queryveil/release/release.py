"""A release: the anonymized data, what it promises, and the manifest that goes with it, as a folder."""

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Self, TypeVar

import msgspec
import numpy as np

from queryveil import formats
from queryveil.data import ROLES, Format, Groups, Layout, QueryLog, Tallies, Transactions
from queryveil.errors import BadInput, BadParameter, BadRelease, QueryveilError, ReleaseExists
from queryveil.formats.atomic_folders import check_writable, claimed, tidy, whole
from queryveil.guarantees import Guarantee, parse_window
from queryveil.html_tables import Cell, facts
from queryveil.release.columns import EVENTS, IDS_KEPT, Ids, TimeDetail, fresh_ids
from queryveil.release.contents import SIGNATURE, Contents, OpenFolder, read_files
from queryveil.release.manifest import (
    FORMAT_VERSION,
    MANIFEST,
    DataFile,
    DataKind,
    Manifest,
    event_facts,
    sizes,
    text_facts,
)
from queryveil.settings import is_utf8

NOTHING_COUNTED = "nothing was released: no noisy count reached its threshold"
_Data = TypeVar("_Data", QueryLog, Transactions, Groups, Tallies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """An anonymized log with its promise. `save` writes the folder, `read_release` reads it back.

    - `data`: the released data.
    - `manifest`: the description of the release: its promise, how it was made, and what was lost.
    - `folder`, `contents`: where it was read from, and what else is there; None for a release that was made here.
    """

    data: QueryLog | Transactions | Groups | Tallies
    manifest: Manifest
    folder: Path | None = field(default=None, repr=False, compare=False)
    contents: Contents | None = field(default=None, repr=False, compare=False)

    @property
    def promise(self) -> Guarantee:
        """The guarantee of the release."""
        return self.manifest.promise

    @property
    def time_step(self) -> timedelta | None:
        """The step between two different released times; None if there are no times."""
        time, length = self.manifest.columns.time, self.promise.window or self.promise.time_unit
        return parse_window(length) if time is TimeDetail.SHARED and length else time.unit

    @property
    def log(self) -> QueryLog:
        """The data, for a method that releases a log."""
        return self._data_as(QueryLog)

    @property
    def transactions(self) -> Transactions:
        """The data, for a method that releases transactions."""
        return self._data_as(Transactions)

    @property
    def groups(self) -> Groups:
        """The data, for a method that releases groups of profiles."""
        return self._data_as(Groups)

    @property
    def tallies(self) -> Tallies:
        """The data, for a method that releases queries with counts."""
        return self._data_as(Tallies)

    def _data_as(self, kind: type[_Data]) -> _Data:
        if not isinstance(self.data, kind):
            raise BadInput(f"this release holds {self.data.noun}, not {kind.noun}")
        return self.data

    def _repr_html_(self) -> str:
        # Privacy: what the manifest says, which holds no text and no ids.
        manifest = self.manifest
        n_clicks = self.data.n_clicks if isinstance(self.data, Tallies) and self.data.clicks is not None else None
        rows: list[tuple[str, Cell]] = [
            ("method", manifest.method),
            ("promise", self.promise.in_words()),
            *((size.label, size.text) for size in sizes(manifest, kind=self.data.kind, n_clicks=n_clicks)),
            *text_facts(manifest).items(),
            *event_facts(manifest).items(),
            *((f"removed: {name.replace('_', ' ')}", n) for name, n in manifest.removed.items() if n),
            *((f"changed: {name.replace('_', ' ')}", n) for name, n in manifest.changed.items() if n),
            *(("warning", warning) for warning in manifest.warnings),
        ]
        return facts(rows, caption="Release")

    def with_fresh_ids(self, rng: np.random.Generator) -> Self:
        """Return the release under user ids that mean nothing outside of it; nothing else changes.

        A release whose ids were kept can be attacked by somebody who is told who is who, and leave without.
        """
        manifest = self.manifest
        if manifest.columns.ids is not Ids.KEEP or not isinstance(self.data, QueryLog):
            return self
        frame = self.data.frame
        owners = frame["user"].rank("dense").to_numpy().astype(np.int32)
        columns = msgspec.structs.replace(manifest.columns, ids=Ids.FRESH)
        warnings = tuple(warning for warning in manifest.warnings if warning != IDS_KEPT)
        return replace(
            self,
            data=self.data.with_frame(frame.with_columns(fresh_ids(owners, rng=rng))),
            manifest=msgspec.structs.replace(manifest, columns=columns, warnings=warnings),
        )

    @property
    def as_written(self) -> Manifest:
        """The manifest with a warning of what the data shows: no count at all, or cells that look like formulas."""
        data, warnings = self.data, self.manifest.warnings
        if not isinstance(data, QueryLog | Tallies):
            return self.manifest
        layout = formats.tallies_layout(data.layout) if isinstance(data, Tallies) else data.layout
        frames = [data.frame, *([data.clicks] if isinstance(data, Tallies) and data.clicks is not None else [])]
        n_formulas = sum(formats.count_formulas(frame, layout=layout) for frame in frames)
        shown = {
            # Privacy: read off what is released, so that it tells no more of the log.
            NOTHING_COUNTED: self.promise.is_noisy and not data.n_rows,
            f"cells that a spreadsheet would take for formulas: {n_formulas}; import the file as text": n_formulas > 0,
        }
        new = [warning for warning, is_so in shown.items() if is_so and warning not in warnings]
        return msgspec.structs.replace(self.manifest, warnings=(*warnings, *new)) if new else self.manifest

    def save(self, folder: str | Path, *, force: bool = False, beside: Mapping[Path, Path] | None = None) -> Path:
        """Write the folder whole or not at all.

        - `force`: replace an existing release.
        - `beside`: files to be renamed with the folder, each with its name then, such as the key of the ids.
        """
        path = Path(folder)
        with reserved(path, force=force), whole(path, force=force, beside=beside) as partial:
            data, clicks = _write_data(self.data, partial)
            manifest = msgspec.structs.replace(self.as_written, data=data, clicks=clicks)
            text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
            (partial / MANIFEST).write_bytes(text + b"\n")
        return path


def check_target(folder: str | Path, *, force: bool = False) -> None:
    """Raise if a release may not be written there; better before the work than after it."""
    path = Path(folder)
    if not is_utf8(path.name):
        raise BadParameter("output", ascii(path.name), allowed="a folder whose name is UTF-8")
    if not path.absolute().parent.is_dir():
        raise BadParameter("output", str(folder), allowed="a folder to be made in one that is there")
    if os.path.lexists(path):
        if not force:
            raise ReleaseExists(str(folder))
        if not path.is_dir() or path.is_symlink() or (any(path.iterdir()) and not (path / MANIFEST).is_file()):
            allowed = "a release folder or an empty one to be replaced with --force"
            raise BadParameter("output", str(folder), allowed=allowed)
    check_writable(path)


@contextmanager
def reserved(folder: str | Path, *, force: bool = False) -> Iterator[None]:
    """Raise if a release may not be written there, and keep other runs from it until the block ends."""
    check_target(folder, force=force)
    with claimed(Path(folder)):
        # What a killed run left may be the release that is to be kept.
        tidy(Path(folder))
        if not force and os.path.lexists(folder):
            raise ReleaseExists(str(folder))
        yield


def read_release(folder: str | Path) -> Release:
    """Read a release folder; raise if the bytes that are read are not those that the manifest was written for."""
    path = Path(folder)
    if path.is_file():
        raise BadRelease(str(folder), "this is a file, and a release is a folder")
    if not path.is_dir():
        raise BadRelease(str(folder), "there is no such folder")
    with OpenFolder(path) as opened:
        text = opened.read(MANIFEST)
        manifest = decode_manifest(text, folder=str(path))
        if manifest.data is None:
            raise BadRelease(str(folder), f"{MANIFEST} names no data file")
        files, others = read_files(opened, manifest.data)
        clicks = None if manifest.clicks is None else read_files(opened, manifest.clicks)[0][0]
        listed = {MANIFEST, manifest.data.name, *([] if manifest.clicks is None else [manifest.clicks.name])}
        others |= {name: kind for name, kind in opened.kinds().items() if name not in listed}
        signature = opened.read(SIGNATURE) if others.get(SIGNATURE) == "file" else None
    of_data = files if clicks is None else [*files, clicks]
    has_events = EVENTS in manifest.columns.kept and manifest.data.format is Format.UBI
    shapes = {file.name: formats.shape_of(file, format=manifest.data.format, has_events=has_events) for file in of_data}
    # A log without rows may lack columns.
    columns = [shapes[file.name].columns for file in files if manifest.data.kind == "log" and shapes[file.name].columns]
    absent = tuple(role for role, name in manifest.data.names.items() if any(name not in each for each in columns))
    data = _read_data(files, manifest.data, clicks=clicks, absent=absent)
    if isinstance(data, QueryLog) and not has_events and data.events is not None:
        # What was released are rows; a query and its click are only how UBI writes them.
        rows = data.with_clicks_as_rows()
        data = rows.with_frame(rows.frame.drop("search"))
    contents = Contents(others=others, shapes=shapes, absent=absent, manifest=text, signature=signature)
    return Release(data=data, manifest=manifest, folder=path, contents=contents)


def _write_data(data: QueryLog | Transactions | Groups | Tallies, folder: Path) -> tuple[DataFile, DataFile | None]:
    if isinstance(data, Tallies):
        queries, clicks = formats.write_tallies(data, folder)
        layout = formats.tallies_layout(data.layout)
        of_clicks = None if clicks is None else described(clicks, layout, kind="clicks")
        return described(queries, layout, kind="queries"), of_clicks
    if isinstance(data, Groups):
        path = folder / "groups.jsonl"
        formats.write_groups(data, path)
        return described(path, Layout(format=Format.JSONL, has_header=False), kind="groups"), None
    if isinstance(data, Transactions):
        layout = formats.transactions_layout(data.layout)
        path = folder / f"transactions.{formats.extension(layout)}"
        formats.write_transactions(data, path, layout=layout)
        return described(path, layout, kind="transactions"), None
    path = folder / f"log.{formats.extension(data.layout)}"
    formats.write_log(data, path)
    names = {role: data.layout.names.get(role, role) for role in ROLES if role in data.columns}
    return msgspec.structs.replace(described(path, data.layout, kind="log"), names=names), None


def described(path: Path, layout: Layout, *, kind: DataKind) -> DataFile:
    """Return what a manifest says of a file, but for the names of its columns."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    has_header = layout.has_header
    return DataFile(name=path.name, sha256=sha256, format=layout.format, names={}, has_header=has_header, kind=kind)


def _read_data(
    files: list[formats.Content], data: DataFile, *, clicks: formats.Content | None, absent: Collection[str]
) -> QueryLog | Transactions | Groups | Tallies:
    if data.kind == "queries":
        return formats.read_tallies(files[0], clicks=clicks, format=data.format)
    if data.kind == "groups":
        return formats.read_groups(*files)
    if data.kind == "transactions":
        return formats.read_transactions(files, format=data.format)
    named = data.format not in (Format.AOL, Format.EXCITE, Format.UBI, Format.TRANSACTIONS)
    # A role that the release lacks must not be found in a column that was kept under a well-known name.
    there = {role: name for role, name in data.names.items() if role not in absent or role in ("user", "query")}
    return formats.read_log(files, format=data.format, columns={**dict.fromkeys(ROLES, ""), **there} if named else None)


def decode_manifest(text: bytes, *, folder: str) -> Manifest:
    """Return the manifest of a release in its text."""
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, QueryveilError):
        raise BadRelease(folder, f"{MANIFEST} is damaged, or from a newer queryveil") from None
    if manifest.format_version != FORMAT_VERSION:
        raise BadRelease(folder, f"{MANIFEST} is from a newer queryveil; install that one")
    return manifest

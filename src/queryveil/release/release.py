"""A release: the anonymized data, what it promises, and the manifest that goes with it, as a folder."""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from queryveil import formats
from queryveil.data import ROLES, Format, Groups, Layout, QueryLog, Tallies, Transactions
from queryveil.errors import BadInput, BadParameter, BadRelease, QueryveilError, ReleaseExists
from queryveil.formats.atomic_folders import check_writable, whole
from queryveil.guarantees import Guarantee
from queryveil.html_tables import Cell, facts
from queryveil.release.manifest import FORMAT_VERSION, MANIFEST, DataFile, Manifest, sizes, sum_of_parts
from queryveil.settings import is_utf8


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """An anonymized log with its promise. `save` writes the folder, `read_release` reads it back.

    - `data`: what is handed out.
    - `manifest`: what is said of it: the promise, how it was made, and what was lost.
    - `folder`: where it was read from; None for a release that was made here.
    """

    data: QueryLog | Transactions | Groups | Tallies
    manifest: Manifest
    folder: Path | None = field(default=None, repr=False, compare=False)

    @property
    def promise(self) -> Guarantee:
        """What holds for everybody in the data."""
        return self.manifest.promise

    @property
    def log(self) -> QueryLog:
        """The data, for a method that releases a log."""
        if not isinstance(self.data, QueryLog):
            raise BadInput(f"this release holds {self.data.noun}, not a log")
        return self.data

    @property
    def transactions(self) -> Transactions:
        """The data, for a method that releases transactions."""
        if not isinstance(self.data, Transactions):
            raise BadInput(f"this release holds {self.data.noun}, not transactions")
        return self.data

    @property
    def groups(self) -> Groups:
        """The data, for a method that releases groups of profiles."""
        if not isinstance(self.data, Groups):
            raise BadInput(f"this release holds {self.data.noun}, not groups")
        return self.data

    def _repr_html_(self) -> str:
        # Privacy: what the manifest says, which holds no text and no ids.
        manifest = self.manifest
        n_clicks = self.data.n_clicks if isinstance(self.data, Tallies) and self.data.clicks is not None else None
        rows: list[tuple[str, Cell]] = [
            ("method", manifest.method),
            ("promise", self.promise.in_words()),
            *((size.label, size.text) for size in sizes(manifest, kind=self.data.kind, n_clicks=n_clicks)),
            *((f"removed: {name.replace('_', ' ')}", n) for name, n in manifest.removed.items() if n),
            *((f"changed: {name.replace('_', ' ')}", n) for name, n in manifest.changed.items() if n),
            *(("warning", warning) for warning in manifest.warnings),
        ]
        return facts(rows, caption="Release")

    @property
    def tallies(self) -> Tallies:
        """The data, for a method that releases queries with counts."""
        if not isinstance(self.data, Tallies):
            raise BadInput(f"this release holds {self.data.noun}, not queries with counts")
        return self.data

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the folder whole or not at all; an existing release is replaced only with `force`."""
        path = Path(folder)
        check_target(path, force=force)
        with whole(path, force=force) as partial:
            data, clicks = _write_data(self.data, partial)
            manifest = msgspec.structs.replace(self.manifest, data=data, clicks=clicks)
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


def read_release(folder: str | Path) -> Release:
    """Read a release folder, and check that the data is what the manifest was written for."""
    path = Path(folder)
    if path.is_file():
        raise BadRelease(str(folder), "this is a file, and a release is a folder")
    if not path.is_dir():
        raise BadRelease(str(folder), "there is no such folder")
    manifest = _read_manifest(path)
    if manifest.data is None:
        raise BadRelease(str(folder), f"{MANIFEST} names no data file")
    data = _whole_files(path, manifest.data)
    clicks = None if manifest.clicks is None else _whole_files(path, manifest.clicks)[0]
    return Release(data=_read_data(data, manifest.data, clicks=clicks), manifest=manifest, folder=path)


def _whole_files(folder: Path, data: DataFile) -> list[Path]:
    """Return the files of a release, if they are there and those that the manifest was written for."""
    if Path(data.name).name != data.name or any(Path(part.name).name != part.name for part in data.parts):
        raise BadRelease(str(folder), f"{MANIFEST} names no data file")
    if not data.parts:
        return [_whole_file(folder / data.name, data.sha256, release=folder)]
    # Listed twice, a part would count twice.
    is_doubled = len({part.name for part in data.parts}) < len(data.parts)
    if is_doubled or data.kind in ("queries", "clicks") or data.sha256 != sum_of_parts(data.parts):
        raise BadRelease(str(folder), f"the parts that {MANIFEST} lists are not those it was written for")
    there = {file.name for file in (folder / data.name).iterdir()} if (folder / data.name).is_dir() else set()
    strangers = there - {part.name for part in data.parts}
    if strangers:
        raise BadRelease(str(folder), f"{data.name} holds {len(strangers)} files that {MANIFEST} does not list")
    return [_whole_file(folder / data.name / part.name, part.sha256, release=folder) for part in data.parts]


def _whole_file(path: Path, sha256: str, *, release: Path) -> Path:
    if not path.is_file():
        raise BadRelease(str(release), f"{path.name} is missing")
    if _sha256(path) != sha256:
        raise BadRelease(str(release), f"{path.name} is not the file that {MANIFEST} was written for (sha256 differs)")
    return path


def _write_data(data: QueryLog | Transactions | Groups | Tallies, folder: Path) -> tuple[DataFile, DataFile | None]:
    if isinstance(data, Tallies):
        queries, clicks = formats.write_tallies(data, folder)
        layout = formats.tallies_layout(data.layout)
        of_clicks = None if clicks is None else _described(clicks, layout, kind="clicks")
        return _described(queries, layout, kind="queries"), of_clicks
    if isinstance(data, Groups):
        path = folder / "groups.jsonl"
        formats.write_groups(data, path)
        return _described(path, Layout(format=Format.JSONL, has_header=False), kind="groups"), None
    if isinstance(data, Transactions):
        layout = formats.transactions_layout(data.layout)
        path = folder / f"transactions.{formats.extension(layout)}"
        formats.write_transactions(data, path, layout=layout)
        return _described(path, layout, kind="transactions"), None
    path = folder / f"log.{formats.extension(data.layout)}"
    formats.write_log(data, path)
    names = {role: data.layout.names.get(role, role) for role in ROLES if role in data.columns}
    return msgspec.structs.replace(_described(path, data.layout, kind="log"), names=names), None


def _described(
    path: Path, layout: Layout, *, kind: Literal["log", "transactions", "groups", "queries", "clicks"]
) -> DataFile:
    has_header, sha256 = layout.has_header, _sha256(path)
    return DataFile(name=path.name, sha256=sha256, format=layout.format, names={}, has_header=has_header, kind=kind)


def _read_data(
    paths: list[Path], data: DataFile, *, clicks: Path | None = None
) -> QueryLog | Transactions | Groups | Tallies:
    if data.kind == "queries":
        return formats.read_tallies(paths[0], clicks=clicks, format=data.format)
    if data.kind == "groups":
        return formats.read_groups(*paths)
    if data.kind == "transactions":
        return formats.read_transactions(paths, format=data.format)
    named = data.format not in (Format.AOL, Format.EXCITE, Format.UBI, Format.TRANSACTIONS)
    # A role that the release lacks must not be found in a column that was kept under a well-known name.
    columns = {**dict.fromkeys(ROLES, ""), **data.names} if named else None
    return formats.read_log(paths, format=data.format, columns=columns)


def _read_manifest(path: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode((path / MANIFEST).read_bytes(), type=Manifest)
    except OSError:
        raise BadRelease(str(path), f"{MANIFEST} is missing") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, QueryveilError):
        raise BadRelease(str(path), f"{MANIFEST} is damaged, or from a newer queryveil") from None
    if manifest.format_version != FORMAT_VERSION:
        raise BadRelease(str(path), f"{MANIFEST} is from a newer queryveil; install that one")
    return manifest


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Releases with a key that are written to a failing disk; run as a script where `disk_faults.so` is loaded.

faulty_saves.py HOME force|new [no-exchange]: prints a line for each fault after which something is wrong.
"""

from __future__ import annotations

import hashlib
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
from numba.core.registry import cpu_target
from tests.support.disk_faults import NO_MEMORY, Ended, Trial

from queryveil.cli._releases import fresh_key, make_release
from queryveil.cli.options import key_of, read_key
from queryveil.data import Format, Layout, QueryLog
from queryveil.errors import BadFile, QueryveilError
from queryveil.formats import atomic_folders
from queryveil.guarantees import NoPromise
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail, read_release

_MODES = {"kill": 32, "fail once": 16, "fail from then on": 8, "write half": 2, NO_MEMORY: 4}


class Made:
    """A method, and the log it reads: its release has a checksum of the key in every row."""

    def __init__(self, key: Path | None) -> None:
        self.users = [hashlib.sha256(read_key(key) or b"").hexdigest()] * 40

    def read(self, _: object) -> None:
        """Read nothing."""

    def anonymize(self, _: object) -> Release:
        """Return the release."""
        frame = pl.DataFrame({"user": self.users, "query": ["brass kettle"] * len(self.users)})
        manifest = Manifest(
            method="token_hash",
            promise=NoPromise(reason="made up"),
            parameters={},
            counts=Counts(n_rows_before=40, n_rows_after=40, n_users_before=1, n_users_after=1),
            removed={},
            columns=ColumnReport(ids=Ids.KEYED, time=TimeDetail.DROP, kept=(), dropped=(), n_others_dropped=0),
        )
        return Release(data=QueryLog(frame=frame, layout=Layout(format=Format.JSONL)), manifest=manifest)


def write(folder: Path, *, force: bool) -> None:
    """Write a release with a new key, as the command does."""
    quiet = redirect_stdout(StringIO()), redirect_stderr(StringIO())
    with quiet[0], quiet[1], fresh_key(folder, wanted=True, force=force) as key:
        made: Any = Made(key)
        make_release(made, [], str(folder), reading=made, key=key, force=force, as_json=False)


def shown(folder: Path) -> str | None:
    """Return whose key a release was made with, if that key is the one a reader finds; None without a release."""
    if not folder.exists():
        assert not folder.with_name("out.key").exists(), "there is a key without its release"
        return None
    release = read_release(folder)
    key = key_of(release, None)
    assert key is not None, "the release has no key"
    (user,) = set(release.log.frame["user"].to_list())
    assert user == hashlib.sha256(key).hexdigest(), "the key is that of another release"
    assert folder.with_name("out.key").read_bytes() == key, "the key was not put in its place"
    assert folder.with_name("out.key").stat().st_mode & 0o077 == 0
    return str(user)


def trial(home: Path, *, force: bool, exchanges: bool) -> Trial:
    """Return the trial of one release, with `force` over an older one; `exchanges` if two names can be exchanged."""
    folder = home / "out"
    before: list[str | None] = []

    def prepare() -> None:
        if force:
            write(folder, force=True)

    def check(ended: Ended) -> None:
        if not before and force:
            before.append(shown(home.with_name(f"{home.name}-before") / "out"))
        if not folder.exists() and force and not exchanges:
            # Two renames, and the system was stopped in between: the next run takes the old one back.
            with suppress(BadFile):
                write(folder, force=False)
                raise AssertionError("the old release was written over without --force")
        user = shown(folder)
        is_old = user == (before[0] if before else None)
        if ended.code == 0:
            assert not is_old, "it was said to be written, and is not"
        elif ended.code == 1:
            assert "nothing was released" not in ended.told or is_old, "it was said not to be written, and is"
            kind, _, told = ended.told.partition("\n")[0].partition(": ")
            assert "kettle" not in told
            # A disk that fails is told of in one line; without memory anything may be told.
            assert ended.lacked_memory or kind in names_of_errors(), "the error is none of ours"
        write(folder, force=True)
        assert shown(folder) not in (None, user), "the next run did not write"
        left = {path.name for path in home.iterdir()} - {"out", "out.key"}
        assert not left, f"the next run left {left}"

    # The others differ from the first in when names change, so that being killed tells most of them.
    modes = _MODES if force and exchanges else {"kill": 16}
    return Trial(home=home, prepare=prepare, work=lambda: write(folder, force=force), check=check, modes=modes)


def names_of_errors(root: type[BaseException] = QueryveilError) -> set[str]:
    """Return the names of all our errors."""
    return {root.__name__}.union(*(names_of_errors(each) for each in root.__subclasses__()))


if __name__ == "__main__":
    place, how, *other = sys.argv[1:]
    if other:
        atomic_folders._rename = lambda *_: False
    # What Numba loads before its first kernel; it starts no threads, which a fork would lose.
    cpu_target.target_context.refresh()
    for line in trial(Path(place), force=how == "force", exchanges=not other).run():
        print(line.replace("\n", " | "), flush=True)

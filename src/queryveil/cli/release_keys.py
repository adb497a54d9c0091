"""Find the key of a release that is verified, and the original it is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli.anonymize.fresh_keys import key_beside
from queryveil.cli.anonymize.options import read_key

if TYPE_CHECKING:
    from queryveil.release import Release

OriginalArgument = Annotated[str, typer.Argument(metavar="LOG", help="The log it was made from: a file or a glob.")]
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A release folder.")]
PlaceArgument = Annotated[str, typer.Argument(metavar="DIR", help="A release folder.")]
"""As `FolderArgument`, where it may lie on a cluster."""
ReleaseKeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Secret of the release; if none is named, DIR.key.")
]


def key_of(release: Release, *, folder: Path, key: Path | None) -> bytes | None:
    """Read the key of a release whose ids are keyed or whose terms are hashed: the one named, or that beside it."""
    from queryveil.release import Ids

    beside = key_beside(folder)
    is_keyed = release.manifest.columns.ids is Ids.KEYED or release.manifest.method == "token_hash"
    if key is None and is_keyed and beside.is_file():
        key = beside
    return read_key(key)

"""Who is in which group, as a private file: whoever has it can undo a release of groups."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from queryveil.errors import BadFile, BadParameter

_OWNER_ONLY = 0o600
_ENDINGS = (".csv", ".jsonl", ".parquet")


def check_membership(path: Path, *, release: Path, inputs: Sequence[str] = (), force: bool) -> None:
    """Raise if the membership may not be written there; better before the work than after it."""
    if path.suffix not in _ENDINGS:
        raise BadParameter("membership", path.name, allowed="a file that ends in " + ", ".join(_ENDINGS))
    # Privacy: a folder that is given away must not hold it.
    if release.resolve() in (path.resolve(), *path.resolve().parents):
        raise BadParameter("membership", path.name, allowed="a file outside the release folder, which others will get")
    if not path.resolve().parent.is_dir():
        raise BadParameter("membership", path.name, allowed="a file in a folder that is there")
    if any(Path(name).exists() and path.exists() and path.samefile(name) for name in inputs):
        raise BadParameter("membership", path.name, allowed="another file than the one that is read")
    if os.path.lexists(path) and not (force and path.is_file()):
        raise BadFile(str(path), "is already there; choose another name for the membership, or replace it with --force")


@contextmanager
def written_membership(membership: pl.DataFrame, path: Path) -> Iterator[None]:
    """Write who is in which group, for the owner's eyes only; take it back if the block fails.

    What stood there before is replaced when the block has ended well.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with os.fdopen(handle, "wb") as file:
            if path.suffix == ".parquet":
                membership.write_parquet(file)
            elif path.suffix == ".jsonl":
                membership.write_ndjson(file)
            else:
                membership.write_csv(file)
            file.flush()
            os.fsync(file.fileno())
        yield
        partial.rename(path)
    except OSError as error:
        raise BadFile(str(path), f"the membership could not be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def read_membership(path: Path) -> pl.DataFrame:
    """Read who is in which group: the columns user (text) and group (number)."""
    try:
        if path.suffix == ".parquet":
            frame = pl.read_parquet(path)
        elif path.suffix == ".jsonl":
            frame = pl.read_ndjson(path, schema={"user": pl.String, "group": pl.Int64})
        else:
            frame = pl.read_csv(path, schema={"user": pl.String, "group": pl.Int64})
        return frame.select(pl.col("user").cast(pl.String), pl.col("group").cast(pl.Int64))
    except FileNotFoundError:
        raise BadFile(str(path), "there is no such file") from None
    except (OSError, pl.exceptions.PolarsError):
        # Privacy: the cause may quote ids, so it is dropped.
        raise BadFile(str(path), "is not a membership file with the columns user and group") from None

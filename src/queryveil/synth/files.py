"""A made-up log as files: the log, its secrets beside it, and term values if asked for."""

from __future__ import annotations

from pathlib import Path

import msgspec

from queryveil.errors import BadFile
from queryveil.formats import layout_for, write_log
from queryveil.log import Layout
from queryveil.synth.build import Synthetic
from queryveil.synth.values import term_values


def write_synthetic(
    made: Synthetic,
    path: str | Path,
    *,
    layout: Layout | None = None,
    values_seed: int | None = None,
    force: bool = False,
) -> list[Path]:
    """Write OUT, OUT.secrets.jsonl and, with a `values_seed`, OUT.values.csv; give what was written."""
    log, secrets, values = Path(path), Path(f"{path}.secrets.jsonl"), Path(f"{path}.values.csv")
    files = [log, secrets] if values_seed is None else [log, secrets, values]
    for file in files:
        if file.exists() and not force:
            raise BadFile(str(file), "is already there; choose another name, or replace it with --force")
    try:
        write_log(made.log, log, layout=layout or layout_for(log))
        encoder = msgspec.json.Encoder()
        secrets.write_bytes(b"".join(encoder.encode(secret) + b"\n" for secret in made.secrets))
        if values_seed is not None:
            term_values(made.log, seed=values_seed).write_csv(values)
    except OSError as error:
        raise BadFile(str(path), f"could not be written: {error.strerror}") from None
    return files

"""The folder of a comparison: figures of each run, the plan, the table and the page."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl

from queryveil.compare.comparison import Comparison
from queryveil.compare.figures import label
from queryveil.compare.judged import Judged
from queryveil.compare.page import render_html
from queryveil.compare.plan import ORIGINAL, Plan, Run
from queryveil.errors import BadFile, BadParameter, QueryveilError

PAGE, TABLE, PLAN = "compare.html", "table.csv", "plan.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that holds a comparison, or will."""

    path: Path

    @classmethod
    def at(cls, folder: str | Path) -> Folder:
        """Make the folder, or take that of an earlier comparison; any other is refused."""
        path = Path(folder)
        if os.path.lexists(path) and not path.is_dir():
            raise BadParameter("output", str(folder), allowed="a folder, and this is a file")
        if path.is_dir() and any(path.iterdir()) and not (path / "results").is_dir():
            raise BadParameter("output", str(folder), allowed="a new folder, an empty one, or that of a comparison")
        try:
            (path / "results").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadFile(str(folder), f"the folder cannot be made: {error.strerror}") from None
        return cls(path=path)

    def result_of(self, run: Run | None, *, fingerprint: str) -> Judged | None:
        """Read a result, if it is there, whole, of the same log and settings, and no failure."""
        try:
            judged = msgspec.json.decode(self._file(run).read_bytes(), type=Judged)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, QueryveilError):
            return None
        is_same = judged.fingerprint == fingerprint and not judged.failed
        # The name may have changed; what was done is the same.
        return msgspec.structs.replace(judged, run=run) if is_same else None

    def keep(self, judged: Judged) -> None:
        """Write a result."""
        self._write(self._file(judged.run), msgspec.json.format(msgspec.json.encode(judged), indent=1) + b"\n")

    def write(self, comparison: Comparison, *, plan: Plan) -> None:
        """Write the plan, the table and the page."""
        self._write(self.path / PLAN, plan.to_toml().encode())
        self._write(self.path / TABLE, table_of(comparison).write_csv().encode())
        self._write(self.path / PAGE, render_html(comparison).encode())

    def _file(self, run: Run | None) -> Path:
        return self.path / "results" / f"{ORIGINAL if run is None else run.slug}.json"

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file whole or not at all."""
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            partial.write_bytes(data)
            partial.replace(path)
        except OSError as error:
            raise BadFile(str(path), f"could not be written: {error.strerror}") from None
        finally:
            partial.unlink(missing_ok=True)


def table_of(comparison: Comparison) -> pl.DataFrame:
    """Give all figures of all runs, one row each; what a run lacks is empty."""
    rows = []
    for row in comparison.rows:
        judged, found = row.judged, row.exposure
        low, high = (None, None) if found is None else found.interval
        plain: dict[str, str | float | bool | None] = {
            "run": row.name,
            "method": None if judged.run is None else judged.run.method,
            "standing": judged.standing,
            "exposure": None if found is None else found.share,
            "exposure_low": low,
            "exposure_high": high,
            "exposure_by_chance": None if found is None else found.chance_share,
            "utility": None if row.utility is None else row.utility.value,
            "on_frontier": row.is_on_frontier,
            "picked": row.is_picked,
            "seconds": round(row.seconds, 3),
        }
        attempts = () if judged.attacks is None else judged.attacks.attempts
        plain |= {f"attack {label(attempt.after)}": attempt.after.share for attempt in attempts}
        rows.append(plain | {f"score {score.name}": score.value for score in judged.scores})
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pl.DataFrame([{name: row.get(name) for name in names} for row in rows], infer_schema_length=None)

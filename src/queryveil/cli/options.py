"""Options that several commands share, as groups of settings and one by one."""

from __future__ import annotations

import logging
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.cli._keys import read_key
from queryveil.errors import BadInput, BadParameter, NotYet
from queryveil.settings import setting

if TYPE_CHECKING:
    from queryveil.data import Profiles, QueryLog
    from queryveil.release import ColumnPolicy
    from queryveil.spark import Spark, SparkLog
    from queryveil.text.classifier import Classifier

LogArgument = Annotated[list[str], typer.Argument(metavar="LOG...", help="Files, globs, or - for stdin.")]
OriginalArgument = Annotated[str, typer.Argument(metavar="LOG", help="The log it was made from: a file or a glob.")]
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A release folder.")]
PlaceArgument = Annotated[str, typer.Argument(metavar="DIR", help="A release folder.")]
"""As `FolderArgument`, where it may lie on a cluster."""
OutputOption = Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="Release folder to make.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace DIR.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
ReleaseKeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Secret of the release; if none is named, DIR.key.")
]
ValuesOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Table of term,bid,clicks,impressions.")]

_READING = "How to read the log"
_LOGS = "aol, excite, csv, tsv, jsonl, parquet, ubi"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a log is read."""

    file_format: str | None = setting(None, option="format", help=f"{_LOGS} or transactions.", panel=_READING)
    columns: str | None = setting(
        None, metavar="ROLE=NAME,..", help="Which column is which: user=uid,query=q.", panel=_READING
    )
    bad_rows: str = setting("fail", help="fail, or skip and count them.", panel=_READING)

    def read(self, source: str | list[str]) -> QueryLog:
        """Read a log."""
        from queryveil.formats import are_profiles, read_log

        if self._is_open and are_profiles(source):
            raise BadInput("these are profiles, not a log; anonymize plink is for them")
        return read_log(source, format=self.file_format, columns=parse_columns(self.columns), bad_rows=self.bad_rows)

    def read_people(self, source: str | list[str]) -> QueryLog | Profiles:
        """Read profiles, if asked for or if it looks like them, else a log."""
        from queryveil.formats import are_profiles, read_profiles

        if self.file_format == "profiles" or (self._is_open and are_profiles(source)):
            return read_profiles(source, bad_rows=self.bad_rows)
        return self.read(source)

    def read_on(self, spark: Spark, source: str | list[str]) -> SparkLog:
        """Read a log on a cluster."""
        return spark.read_log(
            source, format=self.file_format, columns=parse_columns(self.columns), bad_rows=self.bad_rows
        )

    @property
    def _is_open(self) -> bool:
        return self.file_format is None and self.columns is None


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalReading(Reading):
    """How the log or the profiles are read that a release was made from."""

    file_format: str | None = setting(None, option="format", help=f"{_LOGS}, transactions or profiles.", panel=_READING)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleReading(Reading):
    """How profiles or a log are read."""

    file_format: str | None = setting(
        None, option="format", help="profiles, aol, excite, csv, tsv, jsonl, parquet or ubi.", panel=_READING
    )


def parse_columns(text: str | None) -> dict[str, str] | None:
    """Read `user=uid,query=q`; `time=` says that no column is the time.

    >>> parse_columns("user=uid,query=q")
    {'user': 'uid', 'query': 'q'}
    """
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(role.strip() and equals for role, equals, _ in pairs):
        raise BadParameter("columns", text, allowed="pairs such as user=uid,query=q")
    return {role.strip(): name.strip() for role, _, name in pairs}


def parse_list(text: str | None) -> tuple[str, ...]:
    """Read `url,rank`.

    >>> parse_list("url, rank")
    ('url', 'rank')
    """
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


_TABLES = "Tables of the classifier (Parquet or CSV) in place of those in the package"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """A search engine's own tables for the classifier."""

    frequencies: str | None = setting(None, metavar="FILE", help="Columns unit, count.", panel=_TABLES)
    recommendations: str | None = setting(None, metavar="FILE", help="Columns misspelt, correct.", panel=_TABLES)
    categories: str | None = setting(None, metavar="FILE", help="Columns unit, category, weight.", panel=_TABLES)

    def classifier(self, kind: str) -> Classifier:
        """Return the classifier with these tables."""
        from queryveil.text.classifier import Classifier

        tables = (self.frequencies, self.recommendations, self.categories)
        return Classifier.from_tables(
            **dict(zip(("frequencies", "recommendations", "categories"), tables, strict=True)), kind=kind
        )


_OWN: dict[str, Any] = {
    "metavar": "FILE",
    "help": "As in classify.",
    "panel": "The tables that swap was made with, if not those in the package",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapTables(TableFiles):
    """The tables that a release of swap was made with."""

    classifier_kind: str = setting("evidence", option="classifier", help="evidence or paper.", panel=_OWN["panel"])
    frequencies: str | None = setting(None, **_OWN)
    recommendations: str | None = setting(None, **_OWN)
    categories: str | None = setting(None, **_OWN)

    def own_classifier(self) -> Classifier | None:
        """Return the classifier with a search engine's own tables; None if it has none."""
        has_own = any((self.frequencies, self.recommendations, self.categories))
        return self.classifier(self.classifier_kind) if has_own else None


_RELEASE = "What leaves beside the queries"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns leave, and how."""

    ids: str = setting("fresh", help="fresh, keyed or keep.", panel=_RELEASE)
    key: Path | None = setting(None, metavar="FILE", help="Secret for keyed ids.", panel=_RELEASE)
    time: str = setting("day", help="day, hour, keep or drop.", panel=_RELEASE)
    keep: str | None = setting(None, metavar="NAME,..", help="Other columns to keep.", panel=_RELEASE)

    def policy(self) -> ColumnPolicy:
        """Return the policy that the options describe, with the key read from its file."""
        from queryveil.release import ColumnPolicy

        keep, key = parse_list(self.keep), read_key(self.key)
        return ColumnPolicy(ids=self.ids, time=self.time, keep=keep, key=key)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where a command runs: on this machine, or on a cluster."""

    engine: str = setting("local", help="local or spark.")
    master: str | None = setting(None, metavar="URL", help="Spark's master, if not local[*].")

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine; raise if there is no such engine, or a master without one."""
        if self.engine not in ("local", "spark"):
            raise BadParameter("engine", self.engine, allowed="local or spark")
        if self.engine == "local" and self.master is not None:
            raise BadParameter("master", self.master, allowed="left out without --engine spark")
        return self.engine == "local"

    def refuse(self, **options: object) -> None:
        """Raise if an option was given that no cluster reads."""
        given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
        if given and self.engine != "local":
            raise NotYet(f"{', '.join(given)} on Spark", "only counts are taken there", instead="leave out --engine")

    def start(self, *, method: object = None) -> Spark | None:
        """Start Spark if it is asked for, unless the method cannot be made there; None is this machine."""
        if self.is_local:
            return None
        from queryveil.spark import check_on_spark, start_spark

        if method is not None:
            check_on_spark(method)
        # Py4J would log a traceback of its own when somebody stops the command.
        logging.getLogger().addHandler(logging.NullHandler())
        spark = start_spark(self.master)
        # Privacy: whoever ends the command, by a key or as schedulers do, it leaves no rows behind. PySpark's own
        # handler asks the cluster in the middle of another question.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        return spark

"""Options that several commands share, commands made from settings, and the files and keys that options name.

A parameter of a command whose default is a setting becomes an option; one whose type is a dataclass of settings becomes
the options of its fields.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, is_dataclass
from enum import StrEnum
from functools import partial
from inspect import Parameter, Signature, signature
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

import queryveil
from queryveil.errors import BadFile, BadInput, BadParameter, NotYet
from queryveil.settings import Setting, setting, setting_of, settings_of

if TYPE_CHECKING:
    import polars as pl

    from queryveil import pairing
    from queryveil.spark import Spark, SparkLog
    from queryveil.text.classifier import Classifier

Log = Annotated[list[str], typer.Argument(metavar="LOG...", help="Files, globs, or - for stdin.")]
Original = Annotated[str, typer.Argument(metavar="LOG", help="The log it was made from: a file or a glob.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A release folder.")]
Place = Annotated[str, typer.Argument(metavar="DIR", help="A release folder.")]
"""As `Folder`, where it may lie on a cluster."""
Output = Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="Release folder to make.")]
Force = Annotated[bool, typer.Option("--force", help="Replace DIR.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Key = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Secret of the release; if none is named, DIR.key.")
]
OwnTaxonomy = Annotated[str | None, typer.Option(metavar="FILE", help="The taxonomy it was made with, if your own.")]
Values = Annotated[Path | None, typer.Option(metavar="FILE", help="Table of term,bid,clicks,impressions.")]
Membership = Annotated[Path | None, typer.Option(metavar="FILE", help="Who is in which group, as plink wrote it.")]


def read_key(path: Path | None) -> bytes | None:
    """Read the secret for keyed ids."""
    from queryveil.release import check_key

    if path is None:
        return None
    try:
        key = path.read_bytes()
    except OSError as error:
        raise BadFile(str(path), f"the key cannot be read: {error.strerror}") from None
    check_key(key)
    return key


def key_beside(folder: Path) -> Path:
    """Return where the key of a release folder DIR is kept: in DIR.key, never inside, since others will get that."""
    whole = folder.absolute()
    return whole.with_name(f"{whole.name}.key")


def key_of(release: queryveil.Release, key: Path | None) -> bytes | None:
    """Read the key of a release whose ids are keyed or whose terms are hashed: the one named, or that beside it."""
    is_keyed = release.manifest.columns.ids == "keyed" or release.manifest.method == "token_hash"
    if release.folder is not None and (key is None or key.absolute() == key_beside(release.folder)):
        from queryveil.formats.atomic_folders import belonging

        # A run that was killed may have left the key of a new release beside that of the old one.
        beside = belonging(key_beside(release.folder), release.folder)
        key = beside if key is not None or (is_keyed and beside.is_file()) else None
    return read_key(key)


file_option = partial(setting, None, metavar="FILE")
_READING = "How to read the log"
_LOGS = "aol, excite, csv, tsv, jsonl, parquet, ubi"
reading_option = partial(setting, None, panel=_READING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a log is read."""

    file_format: str | None = reading_option(option="format", help=f"{_LOGS} or transactions.")
    columns: str | None = reading_option(metavar="ROLE=NAME,..", help="Which column is which: user=uid,query=q.")
    bad_rows: str = setting("fail", help="fail, or skip and count them.", panel=_READING)

    def read(self, source: str | list[str]) -> queryveil.QueryLog:
        if self._are_profiles(source):
            raise BadInput("these are profiles, not a log; anonymize plink is for them")
        return queryveil.read_log(source, **self._how)

    def read_people(self, source: str | list[str]) -> queryveil.QueryLog | queryveil.Profiles:
        """Read profiles, if asked for or if it looks like them, else a log."""
        if self.file_format == "profiles" or self._are_profiles(source):
            return queryveil.read_profiles(source, bad_rows=self.bad_rows)
        return self.read(source)

    def read_original(self, source: str, release: queryveil.Release) -> pairing.Original:
        from queryveil.formats import read_original

        if self.file_format is None and self.columns is None:
            return read_original(source, release.promise, bad_rows=self.bad_rows)
        return self.read_people(source) if release.promise.is_of_profiles else self.read(source)

    def read_on(self, spark: Spark, source: str | list[str]) -> SparkLog:
        return spark.read_log(source, **self._how)

    @property
    def _how(self) -> dict[str, Any]:
        return {"format": self.file_format, "columns": parse_columns(self.columns), "bad_rows": self.bad_rows}

    def _are_profiles(self, source: str | list[str]) -> bool:
        from queryveil.formats import are_profiles

        return self.file_format is None and self.columns is None and are_profiles(source)


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalReading(Reading):
    """How the log or the profiles are read that a release was made from."""

    file_format: str | None = reading_option(option="format", help=f"{_LOGS}, transactions or profiles.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleReading(Reading):
    """How profiles or a log are read."""

    file_format: str | None = reading_option(
        option="format", help="profiles, aol, excite, csv, tsv, jsonl, parquet or ubi."
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
    """Read `url, rank`, with or without blanks."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


Exceptions = Annotated[
    list[str] | None, typer.Option("--except", metavar="NAME=REASON", help="Rule an attacker out; repeat for more.")
]


def parse_exceptions(typed: list[str] | None) -> dict[str, str] | None:
    """Read attackers that are ruled out, each with the reason; None if there are none.

    >>> parse_exceptions(["neighbour=who has the log has the log"])
    {'neighbour': 'who has the log has the log'}
    """
    pairs = [text.partition("=") for text in typed or ()]
    for name, _, reason in pairs:
        if not reason.strip():
            raise BadParameter("except", name, allowed=f"an attacker with the reason why: {name}=REASON")
    return {name.strip(): reason.strip() for name, _, reason in pairs} or None


_TABLES = "Tables of the classifier (Parquet or CSV) in place of those in the package"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """A search engine's own tables for the classifier."""

    frequencies: str | None = file_option(help="Columns unit, count.", panel=_TABLES)
    recommendations: str | None = file_option(help="Columns misspelt, correct.", panel=_TABLES)
    categories: str | None = file_option(help="Columns unit, category, weight.", panel=_TABLES)

    @property
    def files(self) -> dict[str, str | None]:
        return {name: getattr(self, name) for name in ("frequencies", "recommendations", "categories")}

    def classifier(self, kind: str) -> Classifier:
        from queryveil.text.classifier import Classifier

        return Classifier.from_tables(**self.files, kind=kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapTables(TableFiles):
    """The tables that a release of swap was made with, if not those in the package."""

    classifier_kind: str = setting("evidence", option="classifier", help="Of swap: evidence or paper.", panel=_TABLES)

    def own_classifier(self) -> Classifier | None:
        """Return the classifier with a search engine's own tables; None if it has none."""
        return self.classifier(self.classifier_kind) if any(self.files.values()) else None


_RELEASE = "What leaves beside the queries"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns leave, and how."""

    ids: str = setting("fresh", help="fresh, keyed or keep.", panel=_RELEASE)
    key: Path | None = setting(None, metavar="FILE", help="Secret for keyed ids.", panel=_RELEASE)
    time: str = setting("drop", help="drop, day, hour, keep or shared.", panel=_RELEASE)
    keep: str | None = setting(None, metavar="NAME,..", help="Other columns to keep.", panel=_RELEASE)

    def policy(self, secret: bytes | None = None) -> queryveil.ColumnPolicy:
        """Return the policy that the options describe, with a new secret or the one in the file of the key."""
        keep, key = parse_list(self.keep), secret or read_key(self.key)
        return queryveil.ColumnPolicy(ids=self.ids, time=self.time, keep=keep, key=key)  # type: ignore[arg-type]


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
        given = [f"--{name}" for name, value in options.items() if value]
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


def with_options(function: Callable[..., None], **groups: Any) -> Callable[..., None]:
    """Return the command with an option for each parameter that is a setting, and for each setting of a dataclass.

    `groups` names the dataclass where the function does not: a class, an instance of it for other defaults, or None if
    the command has no such options. The settings stay with the command, by option, as its attribute `settings`.
    """
    hints = get_type_hints(function, include_extras=True)
    made: dict[str, tuple[type[Any], dict[str, Setting]]] = {}
    taken: list[Parameter] = []
    absent = {name: None for name, group in groups.items() if group is None}
    for name, parameter in signature(function).parameters.items():
        if name in absent:
            continue
        group = groups.get(name, hints[name] if parameter.default is Parameter.empty else parameter.default)
        kind = group if isinstance(group, type) else type(group)
        if isinstance(group, Field):
            settings = [setting_of(group, name=name, annotation=parameter.annotation)]
        elif is_dataclass(kind):
            settings = list(settings_of(kind).values())
        else:
            taken.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))
            continue
        words = {_word(about.flag): about for about in settings}
        made[name] = kind, words
        for word, about in words.items():
            chosen = about.default if isinstance(group, type | Field) else getattr(group, about.name)
            hint, shown = _typed(about, chosen)
            taken.append(Parameter(word, Parameter.KEYWORD_ONLY, default=shown, annotation=hint))

    def command(**typed: Any) -> None:
        # Options first: one may be called as a group is, --columns and the columns that leave.
        given = {}
        for name, (kind, words) in made.items():
            values = {about.name: meant(about, typed.pop(word)) for word, about in words.items()}
            given[name] = values[name] if kind is Field else kind(**values)
        function(**typed, **given, **absent)

    command.__doc__ = function.__doc__
    command.__signature__ = Signature(taken)  # type: ignore[attr-defined]
    command.settings = {about.flag: about for _, own in made.values() for about in own.values()}  # type: ignore[attr-defined]
    return command


def _word(flag: str) -> str:
    """Return an option as the name of a parameter.

    >>> _word("--bad-rows"), _word("--for")
    ('bad_rows', 'for_')
    """
    word = flag.removeprefix("--").replace("-", "_")
    return f"{word}_" if iskeyword(word) else word


def _typed(about: Setting, default: Any) -> tuple[Any, Any]:
    """Return the annotation and the default of the option for a setting."""
    kind: Any = about.kind
    if kind is bool:
        default = False
    elif about.typed_none is not None:
        kind = type(about.typed_none)
        default = kind(default)
    else:
        default = about.typed_default if default is None else default
        if issubclass(kind, StrEnum):
            kind, default = str, str(default)
        elif kind is object:
            kind = Path if about.metavar in ("FILE", "PATH") else str
        kind = kind | None if default is None else kind
    option = typer.Option(
        about.flag, help=about.help, metavar=about.metavar, rich_help_panel=about.panel, hidden=about.hidden
    )
    return Annotated[kind, option], default


def meant(about: Setting, typed: Any) -> Any:
    """Return the value of a setting from what was typed for it."""
    if about.kind is bool:
        return typed is not about.default
    if about.typed_none is not None:
        if str(typed).lower() == str(about.typed_none):
            return None
        try:
            return about.kind(typed)
        except ValueError:
            raise BadParameter(about.name, typed, allowed=about.range) from None
    reader = _READERS.get(about.name)
    return reader(typed) if reader is not None and about.kind is object and typed is not None else typed


def release_files(
    release: queryveil.Release, *, key: Path | None, taxonomy: str | None, membership: Path | None
) -> dict[str, Any]:
    """Read the files that a release is judged with: its key, its taxonomy, and who is in which group."""
    from queryveil.formats.aggregates import read_membership

    return {
        "key": key_of(release, key),
        "taxonomy": load_taxonomy(taxonomy),
        "membership": read_membership(membership, release=release.folder) if membership else None,
    }


def load_taxonomy(name: str | None) -> queryveil.Taxonomy | None:
    """Return WordNet's nouns, or the taxonomy in a file of pairs."""
    if name is None:
        return None
    return queryveil.Taxonomy.wordnet() if name == "wordnet" else queryveil.Taxonomy.read_csv(name)


def read_values(path: Path) -> pl.DataFrame:
    """Read a table of term values."""
    import polars as pl

    from queryveil.data.frames import read_parquet

    try:
        return read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    except OSError as error:
        why = error.strerror or "no such file"
        raise BadFile(str(path), f"the table of term values cannot be read: {why}") from None
    except pl.exceptions.PolarsError:
        # Privacy: the cause would quote the rows, so it is dropped.
        raise BadFile(str(path), "not a CSV or Parquet table with the columns term,bid,clicks,impressions") from None


_READERS: Mapping[str, Callable[[Any], Any]] = {"taxonomy": load_taxonomy, "values": read_values}
"""What reads a setting that is not typed as it is, but named."""

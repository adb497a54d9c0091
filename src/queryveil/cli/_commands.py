"""Commands made from settings: a parameter whose type is a dataclass of settings becomes the options of its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import StrEnum
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from queryveil.errors import BadFile, BadParameter
from queryveil.settings import Setting, settings_of

if TYPE_CHECKING:
    import polars as pl

    from queryveil.text.taxonomy import Taxonomy


def with_options(function: Callable[..., None], **groups: Any) -> Callable[..., None]:
    """Return the command with an option for each setting of the parameters that are dataclasses.

    `groups` says so where the function does not: a dataclass, an instance of it for other defaults, or None if the
    command has no such options. The settings stay with the command, by option, as its attribute `settings`.
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
        if not is_dataclass(kind):
            taken.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))
            continue
        words = {about.flag.removeprefix("--").replace("-", "_"): about for about in settings_of(kind).values()}
        made[name] = kind, words
        for word, about in words.items():
            chosen = about.default if isinstance(group, type) else getattr(group, about.name)
            hint, shown = _typed(about, chosen)
            taken.append(Parameter(word, Parameter.KEYWORD_ONLY, default=shown, annotation=hint))

    def command(**typed: Any) -> None:
        # An option may be called as a group is: --columns, and the columns that leave.
        groups = {
            name: kind(**{about.name: meant(about, typed.pop(word)) for word, about in settings.items()})
            for name, (kind, settings) in made.items()
        }
        function(**typed, **groups, **absent)

    command.__doc__ = function.__doc__
    command.__signature__ = Signature(taken)  # type: ignore[attr-defined]
    command.settings = {about.flag: about for _, own in made.values() for about in own.values()}  # type: ignore[attr-defined]
    return command


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


def load_taxonomy(name: str | None) -> Taxonomy | None:
    """Return WordNet's nouns, or the taxonomy in a file of pairs."""
    from queryveil.text.taxonomy import Taxonomy

    if name is None:
        return None
    return Taxonomy.wordnet() if name == "wordnet" else Taxonomy.read_csv(name)


def read_values(path: Path) -> pl.DataFrame:
    """Read a table of term values."""
    import polars as pl

    from queryveil.data.frames import read_parquet

    try:
        return read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    except OSError as error:
        raise BadFile(
            str(path), f"the table of term values cannot be read: {error.strerror or 'no such file'}"
        ) from None
    except pl.exceptions.PolarsError:
        # Privacy: the cause would quote the rows, so it is dropped.
        raise BadFile(str(path), "not a CSV or Parquet table with the columns term,bid,clicks,impressions") from None


_READERS: Mapping[str, Callable[[Any], Any]] = {"taxonomy": load_taxonomy, "values": read_values}
"""What reads a setting that is not typed as it is, but named."""

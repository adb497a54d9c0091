"""Methods by name and settings: built for a comparison, rebuilt from a manifest, and as a command to type."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from hashlib import sha256
from typing import Any, Protocol, TypeAlias

import msgspec
import polars as pl

from queryveil import methods
from queryveil.data import QueryLog
from queryveil.errors import BadParameter, QueryveilError
from queryveil.guarantees import Guarantee
from queryveil.release import Ids, Manifest, Release, new_key
from queryveil.rng import generator
from queryveil.settings import Setting
from queryveil.settings import settings_of as declared_settings
from queryveil.text.taxonomy import Taxonomy

PlanValue: TypeAlias = str | int | float | bool | list[str] | None
"""What a plan may say of a setting."""

METHODS: Mapping[str, type[Any]] = {
    "km": methods.Km,
    "kdelta": methods.Kdelta,
    "plink": methods.Plink,
    "clump": methods.Clump,
    "partition": methods.Partition,
    "swap": methods.Swap,
    "dp": methods.Dp,
    "google_2024": methods.Google2024,
    "ec_2026": methods.Ec2026,
    "ddg_2026": methods.Ddg2026,
    "brave_wdp": methods.BraveWdp,
    "mozilla": methods.Mozilla,
    "pseudonymise": methods.Pseudonymise,
    "token_hash": methods.TokenHash,
    "query_threshold": methods.QueryThreshold,
}
_PRICED = ("bid", "clicks", "impressions", "revenue")
"""Targets of km that need a table of term values."""


class Method(Protocol):
    """Whatever makes a release of a log."""

    @property
    def promise(self) -> Guarantee:
        """What a release will promise."""

    def anonymize(self, log: QueryLog, /) -> Release:
        """Return a release of the log that keeps the promise."""


def build_method(
    name: str, settings: Mapping[str, PlanValue], *, values: pl.DataFrame | None = None, seed: int | None = None
) -> Method:
    """Build a method whose releases can be judged: user ids are kept or keyed, so that who is who is known.

    Settings are called as in Python; `time` and `keep` are those of the column policy. `values` are the term values for
    km's targets bid, clicks, impressions and revenue.

    >>> build_method("km", {"k": 5, "m": 2}).promise
    KmAnonymity(k=5, m=2)
    >>> build_method("km", {"q": 5})
    Traceback (most recent call last):
    queryveil.errors.BadParameter: a setting of km must be one of k, m, target, restore, taxonomy, window,
    repeats, bot_threshold, time, keep, got q
    """
    check_name(name)
    kind, known = METHODS[name], settings_of(name)
    for each in settings:
        if each not in known:
            raise BadParameter(f"a setting of {name}", each, allowed=f"one of {', '.join(known)}")
    taken = {each: _value(known[each], value) for each, value in settings.items()}
    policy = {each: taken.pop(each) for each in _COLUMNS if each in taken}
    names = {field.name for field in fields(kind)}
    if "seed" in names:
        taken["seed"] = seed
    if "values" in names and taken.get("target") in _PRICED:
        taken["values"] = values
    key = new_key(None if seed is None else generator(seed))
    if "key" in names:
        taken["key"] = key
    if name == "swap" or kind(**taken).promise.changes_ids:
        # Its ids change with time or from row to row, and attackers should meet them so.
        policy |= {"ids": Ids.KEYED, "key": key}
    if "columns" in names:
        # A window of km gives people a new id in each: there, who is who is estimated.
        ids = Ids.FRESH if taken.get("window") else Ids.KEEP
        taken["columns"] = replace(kind().columns, **{"ids": ids} | policy)
    method: Method = kind(**taken)
    return method


def key_of(method: Method) -> bytes | None:
    """Return the key of hashed terms or keyed ids, if there is one."""
    key: bytes | None = getattr(method, "key", None)
    return key or getattr(getattr(method, "columns", None), "key", None)


def check_name(name: str) -> None:
    """Raise if there is no such method."""
    if name not in METHODS:
        raise BadParameter("method", name, allowed=f"one of {', '.join(METHODS)}")


_COLUMNS = {
    "time": Setting(name="time", kind=str, help="How exact released times are."),
    "keep": Setting(name="keep", kind=tuple, help="Other columns to keep."),
}
"""What a plan may say of the column policy."""


def settings_of(name: str) -> dict[str, Setting]:
    """Return the settings of a method that a plan may name."""
    kind = METHODS[name]
    own = {each: about for each, about in declared_settings(kind).items() if about.recorded}
    return own | (_COLUMNS if any(field.name == "columns" for field in fields(kind)) else {})


def method_of(manifest: Manifest) -> Method | None:
    """Rebuild the method that made a release; None if that cannot be done.

    Its user ids are kept, since whoever runs a method again wants to know who is who.
    """
    name, parameters = manifest.method, dict(manifest.parameters)
    # What a manifest only names nobody else has: tables, a taxonomy, profiles.
    own = (("taxonomy", "own"), ("classifier", "own tables"), ("weights", "given"))
    is_own = parameters.get("target") in _PRICED or any(parameters.get(each) == value for each, value in own)
    is_of_stream = getattr(manifest.promise, "remembered", None) is not None
    if name not in METHODS or is_own or is_of_stream:
        return None
    known = settings_of(name)
    # Counts tell all that sessions made up from them do; that terms are items is a matter of the log.
    left_out = ("synthesized", "items", *(["taxonomy"] if parameters.get("taxonomy") is None else []))
    parameters = {each: value for each, value in parameters.items() if each not in left_out}
    if "time" in known:
        parameters |= {"time": str(manifest.columns.time), "keep": list(manifest.columns.kept)}  # type: ignore[dict-item]
    try:
        return build_method(name, parameters)
    except QueryveilError:
        # Another version may name other settings.
        return None


def remaker(method: Method, *, seed: int | None) -> Callable[[QueryLog], Release]:
    """Return what runs a method again on other logs, each with a seed that follows from the log: it repeats itself."""

    def remake(log: QueryLog) -> Release:
        rows = log.frame.hash_rows(seed=1).to_numpy().tobytes()
        own = int.from_bytes(sha256(f"{seed}".encode() + rows).digest()[:7], "big")
        can_repeat = any(field.name == "seed" for field in fields(method))  # type: ignore[arg-type]
        again: Method = replace(method, seed=own) if can_repeat else method  # type: ignore[type-var]
        return again.anonymize(log)

    return remake


def command(name: str, settings: Mapping[str, PlanValue]) -> str:
    """Return what to type for a release made in this way."""
    words = [f"queryveil anonymize {name.replace('_', '-')} LOG -o DIR"]
    known = settings_of(name)
    for each, value in settings.items():
        about = known[each]
        if isinstance(value, bool):
            words += [about.flag] if value is not about.default else []
        else:
            text = ",".join(value) if isinstance(value, list) else str(about.typed_none if value is None else value)
            words.append(f"{about.flag} {text}")
    if settings.get("target") in _PRICED:
        words.append("--values FILE")
    return " ".join(words)


def _value(about: Setting, value: PlanValue) -> Any:
    if about.name == "taxonomy":
        if value != "wordnet":
            raise BadParameter("taxonomy", value, allowed="wordnet in a comparison")
        return Taxonomy.wordnet()
    if about.name == "keep" and isinstance(value, str):
        value = value.split("+")
    # TOML has no word for nothing.
    if about.optional and value in (None, "none", "None"):
        return None
    kind: Any = tuple[str, ...] if about.kind is tuple else str if about.kind is object else about.kind
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise BadParameter(about.name, value, allowed=_in_words(about)) from None


def _in_words(about: Setting) -> str:
    """Return what kind of value a setting takes.

    >>> _in_words(Setting(help="Terms.", kind=int, optional=True)), _in_words(Setting(help="Share.", kind=float))
    ('a whole number or none', 'a number')
    """
    if about.choices:
        return f"one of {', '.join(map(str, about.choices))}"
    kinds = {int: "a whole number", float: "a number", bool: "true or false", tuple: "a list of texts"}
    return kinds.get(about.kind, "a text") + (" or none" if about.optional else "")

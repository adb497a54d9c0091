"""What to compare: which methods with which settings, and by which figures."""

import tomllib
from collections.abc import Iterable, Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from queryveil.attacks.limits import Limit
from queryveil.attacks.readers import READERS
from queryveil.comparison.methods import PlanValue, build_method, check_name
from queryveil.errors import BadFile, BadParameter
from queryveil.methods.dp._noise import has_extra
from queryveil.utility.purposes import PURPOSES

ORIGINAL = "original"
"""The log itself with nothing but its ids changed; it is attacked beside all runs."""
BINDING = "binding"
"""In place of an attacker's name: the one with the highest risk of those considered."""
DEFAULT_UTILITY = "log_size_kept"
_MOST_RUNS = 1000
_LONGEST_LINE = 8192


def check_purpose(name: str, *, utility: str | None = None) -> None:
    """Raise if there is no such purpose, or if a measure is named as well."""
    if name not in PURPOSES:
        raise BadParameter("for", name, allowed=f"one of {', '.join(PURPOSES)}")
    if utility is not None:
        raise BadParameter("utility", utility, allowed="left out where a purpose is named, which has its own measure")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One method with its settings, under a unique name."""

    name: str
    method: str
    settings: dict[str, PlanValue] = {}

    @property
    def slug(self) -> str:
        """The name as it stands in a file's.

        >>> Run(name="km k=10", method="km").slug
        'km-k-10'
        """
        kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in self.name.lower())
        return "-".join(part for part in kept.split("-") if part) or "run"

    def to_toml(self) -> list[str]:
        """Return the lines of a plan that say it."""
        settings = [f"{_toml_key(name)} = {toml(value)}" for name, value in self.settings.items()]
        return ["", "[[run]]", f"name = {toml(self.name)}", f"method = {toml(self.method)}", *settings]


class _Judging(msgspec.Struct, frozen=True, kw_only=True):
    """What runs are judged by, as `Plan` lists it."""

    holdout: float = 0.25
    limit: float = 0.05
    purpose: str | None = None
    utility: str | None = None
    readers: tuple[str, ...] = tuple(READERS)
    exceptions: dict[str, str] = {}
    exposure: str = BINDING


class Plan(_Judging, frozen=True, kw_only=True):
    """Runs side by side; best is the one that keeps most of those in which no attacker is above the limit.

    Parameters
    ----------
    runs: methods with their settings
    holdout: the share of users who are left out of all releases and stand for the public, a log of the same kind
    limit: the most of its targets that any attacker may find, at the upper end of the 95 % interval
    purpose: what the release is for; its measure is what runs are compared by
    utility: a measure in place of a purpose; with neither, `log_size_kept`
    readers: who may look at the release; only attackers that stand for them are considered
    exceptions: attackers that are not considered although they apply, each with the reason
    exposure: the attacker that the picture shows, with the number of facts it knows after a colon where that varies;
        or `binding`, the one with the highest risk
    """

    runs: tuple[Run, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.holdout < 1:
            raise BadParameter("holdout", self.holdout, allowed="0 or more and below 1")
        if self.purpose is not None:
            check_purpose(self.purpose, utility=self.utility)
        # Raises if there is no such limit, reader or attacker.
        _ = self.rule
        if not self.runs:
            raise BadParameter("a plan", "no run", allowed="a list of runs, one at least")
        slugs = {ORIGINAL}
        for run in self.runs:
            # Two names that differ in signs alone would share a file.
            if run.slug in slugs:
                raise BadParameter("the name of a run", run.name, allowed="unlike that of any other run")
            slugs.add(run.slug)

    @property
    def rule(self) -> Limit:
        """What a run must keep to."""
        return Limit(share=self.limit, readers=self.readers, exceptions=self.exceptions)

    @property
    def measure(self) -> str:
        """The measure that runs are compared by."""
        return self.utility or (PURPOSES[self.purpose].measure if self.purpose else DEFAULT_UTILITY)

    def check(self, *, values: pl.DataFrame | None = None) -> None:
        """Raise if a run names a method or a setting that there is not; better before the work than in its middle."""
        for run in self.runs:
            try:
                build_method(run.method, run.settings, values=values)
            except BadParameter as error:
                raise BadParameter(f"{run.name}: {error.name}", error.value, allowed=error.allowed) from None

    def to_toml(self) -> str:
        judging = {name: getattr(self, name) for name in _Judging.__struct_fields__}
        lines = [f"{name} = {toml(value)}" for name, value in judging.items() if value is not None]
        return "\n".join([*lines, *(line for run in self.runs for line in run.to_toml())]) + "\n"


_DEFAULT: Mapping[str, tuple[dict[str, PlanValue], ...]] = {
    "km": ({"k": 5, "m": 2}, {"k": 10, "m": 3}, {"k": 10, "m": 3, "taxonomy": "wordnet"}),
    "kdelta": ({"k": 5}, {"k": 5, "same_texts": True}),
    "plink": ({"p": 0.4}, {"p": 0.2, "strict": True}),
    "clump": ({"k": 5}, {"k": 20}),
    "partition": ({"k": 5},),
    "swap": ({"k": 10}, {"k": 50}),
    "dp": ({"epsilon": 1.0}, {"epsilon": 4.0, "max_queries": 1}),
    "google_2024": ({}, {"n_users": 5}),
    "ec_2026": ({}, {"n_users": 10, "cell_users": 100}),
    "ddg_2026": ({},),
    "brave_wdp": ({},),
    "mozilla": ({},),
    "pseudonymise": ({},),
    "token_hash": ({},),
    "query_threshold": ({"k": 5},),
}


def default_plan() -> Plan:
    """Return every method that can be run here with a few settings, and the baselines that promise nothing.

    >>> len(default_plan().runs)
    24
    """
    available = [name for name in _DEFAULT if name != "dp" or has_extra()]
    return Plan(runs=tuple(run for name in available for run in _default_runs(name)))


def left_out() -> tuple[str, ...]:
    """Return which methods the default plan lacks, and how to get them."""
    return () if has_extra() else ("dp is left out: pip install 'queryveil[dp]'",)


def plan_of(methods: str | Iterable[str]) -> Plan:
    """Read `km,clump` or `km:k=5:m=2,swap:k=20`; a method without settings is run with those of the default plan.

    >>> [run.name for run in plan_of("clump,km:k=5:m=2").runs]
    ['clump k=5', 'clump k=20', 'km k=5 m=2']
    """
    words = methods.split(",") if isinstance(methods, str) else list(methods)
    runs: list[Run] = []
    for word in (each.strip() for each in words):
        name, *pairs = word.split(":")
        # As the command is called, too.
        name = name.replace("-", "_")
        check_name(name)
        if not pairs:
            runs += _default_runs(name)
            continue
        parts = [pair.partition("=") for pair in pairs]
        if not all(setting and equals for setting, equals, _ in parts):
            raise BadParameter("methods", word, allowed="names with settings, such as km:k=5:m=2,clump")
        runs.append(run_of(name, {setting.replace("-", "_"): _setting(text) for setting, _, text in parts}))
    return Plan(runs=tuple(runs))


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return what a plan's file says, one line being the error if it is no TOML."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        if any(len(line) > _LONGEST_LINE for line in text.splitlines()):
            # The parser needs memory by the square of the parts of a dotted key.
            raise BadFile(str(path), f"a line of the plan has more than {_LONGEST_LINE:,} characters; shorten it")
        return tomllib.loads(text)
    except OSError as error:
        raise BadFile(str(path), f"the plan cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadFile(str(path), "the plan is not written in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise BadFile(str(path), f"the plan is not TOML: {str(error).lower()}") from None
    except (ValueError, RecursionError):
        raise BadFile(str(path), "the plan has a number too long or lists too deep to be read; shorten them") from None


def read_plan(path: str | Path) -> Plan:
    """Read a plan from a TOML file; a list of values of a setting means one run for each."""
    content = read_toml(path)
    names = _Judging.__struct_fields__
    try:
        file = msgspec.convert(content, _File)
        runs = [run for table in file.run for run in runs_of(table)]
        return Plan(runs=tuple(runs), **{name: getattr(file, name) for name in names})
    except msgspec.ValidationError as error:
        wrong = BadParameter("a plan", str(error), allowed=f"made of run, {', '.join(names)}")
        raise BadFile(str(path), str(wrong)) from None
    except BadParameter as error:
        raise BadFile(str(path), str(error)) from None


class _File(_Judging, frozen=True, kw_only=True, forbid_unknown_fields=True):
    run: list[dict[str, Any]]


def runs_of(table: dict[str, Any]) -> list[Run]:
    """Return one run, or one for each value where a setting has a list of them."""
    method, name = table.get("method"), table.get("name")
    if not isinstance(method, str):
        raise BadParameter("a run", "one without a method", allowed='a table with method = "km" and its settings')
    if not isinstance(name, str | None):
        raise BadParameter("the name of a run", type(name).__name__, allowed="a text")
    check_name(method)
    settings = {each: value for each, value in table.items() if each not in ("method", "name")}
    # What to keep is a list by nature.
    many = [each for each, value in settings.items() if isinstance(value, list) and each != "keep"]
    for each in many:
        if any(isinstance(value, list | dict) for value in settings[each]):
            raise BadParameter(f"{method}: {each}", "a list of lists", allowed="one value, or a list of values")
    n_runs = prod(len(settings[each]) for each in many)
    if n_runs > _MOST_RUNS:
        raise BadParameter(f"{method}: lists of values", f"{n_runs:,} runs", allowed=f"{_MOST_RUNS:,} runs or fewer")
    runs = []
    for values in product(*(settings[each] for each in many)):
        own = dict(zip(many, values, strict=True))
        whole = " ".join([name, *(f"{each}={value}" for each, value in own.items())]) if name else None
        runs.append(run_of(method, settings | own, name=whole))
    return runs


def _default_runs(method: str) -> list[Run]:
    return [run_of(method, settings) for settings in _DEFAULT[method]]


def run_of(method: str, settings: Mapping[str, PlanValue], *, name: str | None = None) -> Run:
    """Return a run, named after its settings if no name is given."""
    words = [method]
    for each, value in settings.items():
        text = "+".join(value) if isinstance(value, list) else "none" if value is None else str(value)
        words.append(each if value is True else f"{each}={text}")
    return Run(name=name or " ".join(words), method=method, settings=dict(settings))


def _setting(text: str) -> PlanValue:
    """Read a setting as it is typed.

    >>> [_setting(text) for text in ("5", "0.4", "true", "none", "users")]
    [5, 0.4, True, None, 'users']
    """
    words: dict[str, PlanValue] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def toml(value: PlanValue | dict[str, str]) -> str:
    """Return a value as a plan has it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml_key(name)} = {toml(each)}" for name, each in value.items()) + "}"
    # TOML has no word for nothing; its texts are written as JSON's are.
    return msgspec.json.encode("none" if value is None else value).decode()


def _toml_key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else toml(name)

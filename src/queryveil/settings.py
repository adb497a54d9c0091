"""Settings declared once: a dataclass field with its default, its range and a line of help.

The constructor's check, the option of a command, what a plan of `compare` may say, the parameters in a manifest and the
page of options are all made from the field, so that none of them can differ.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from numbers import Integral, Real
from sys import float_info
from types import MappingProxyType
from typing import Any, TypeVar

from queryveil.errors import BadParameter

T = TypeVar("T")
_KEY = "setting"
_PLAIN: Mapping[str, type] = {"int": int, "float": float, "str": str, "bool": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is known of one setting; `name`, `kind`, `default` and `optional` are those of its field.

    - help: one line for people, as the command's help has it
    - at_least, above, at_most, below: the range of a number
    - one_of: the values it may have, if they are few; those of an enumeration need not be listed
    - allowed: the range in words, where what follows from the above does not say it well
    - none: what None stands for, said after the range: "to keep every user"
    - option: the name of the command's option, if it is not that of the field
    - typed_none: what is typed for None where None is not the default: "none" or 0
    - typed_default: what the option has as its default, if it is not the field's: a word for what None stands for
    - metavar, panel: what the help shows for the value, and the box it stands in
    - hidden: whether it is left out of the command's help; the page of options has it
    - recorded: whether manifests name it and plans may; a seed or a table is neither
    """

    help: str
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    one_of: tuple[str | int, ...] = ()
    allowed: str = ""
    none: str = ""
    option: str = ""
    typed_none: str | int | None = None
    typed_default: str | None = None
    metavar: str | None = None
    panel: str | None = None
    hidden: bool = False
    recorded: bool = True
    name: str = ""
    kind: type = object
    default: Any = None
    optional: bool = False

    @property
    def choices(self) -> tuple[str | int, ...]:
        """The values it may have, if they are few."""
        return tuple(self.kind) if issubclass(self.kind, StrEnum) else self.one_of

    @property
    def range(self) -> str:
        """The values it may have, in words; empty if every value of its kind will do.

        >>> Setting(help="Users.", kind=int, at_least=2).range
        '2 or more'
        >>> Setting(help="Steps.", kind=int, at_least=0, at_most=3).range
        'a whole number from 0 to 3'
        >>> Setting(help="Share.", kind=float, above=0, at_most=1).range
        'above 0 and at most 1'
        """
        if self.allowed:
            return self.allowed
        if self.choices:
            *most, last = map(str, self.choices)
            return f"one of {', '.join(most)}, {last}" if len(most) > 2 else f"{', '.join(most)} or {last}"
        if self.at_least is not None and self.at_most is not None:
            words = "a whole number from {} to {}" if self.kind is int else "between {} and {}"
            return words.format(self.at_least, self.at_most)
        bounds = {"{} or more": self.at_least, "above {}": self.above, "at most {}": self.at_most}
        bounds["below {}"] = self.below
        said = " and ".join(words.format(bound) for words, bound in bounds.items() if bound is not None)
        return f"{said}, or none {self.none}" if said and self.none else said

    @property
    def flag(self) -> str:
        """The command's option: a setting that is on by default is turned off by `--no-`."""
        name = (self.option or self.name).replace("_", "-")
        return f"--no-{name}" if self.default is True else f"--{name}"

    def check(self, value: Any) -> Any:
        """Return the value, as a member where it is one of an enumeration; raise if it is outside the range."""
        if not self.range or (value is None and self.optional):
            return value
        if issubclass(self.kind, StrEnum) and value in tuple(self.kind):
            return self.kind(value)
        if self.kind is float and not is_number(value):
            shown = value if self.allowed else repr(value)
            raise BadParameter(self.name, shown, allowed=self.allowed or "a number")
        is_kind = is_whole(value) if self.kind is int else True
        if not is_kind or (self.choices and value not in self.choices) or not self._holds(value):
            raise BadParameter(self.name, value, allowed=self.range)
        return value

    def _holds(self, value: Any) -> bool:
        if self.kind not in (int, float):
            return True
        return (
            abs(value) <= float_info.max
            and (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )


def setting(default: T, *, repr: bool = True, **facts: Any) -> T:  # noqa: A002 - as dataclasses.field has it
    """Declare a field of a dataclass, or an option of a command, with all that `Setting` knows of it.

    >>> @dataclass(frozen=True, slots=True, kw_only=True)
    ... class Method:
    ...     k: "int" = setting(10, at_least=2, help="Users who share terms.")
    ...     def __post_init__(self) -> None:
    ...         check_settings(self)
    >>> Method(k=1)
    Traceback (most recent call last):
    queryveil.errors.BadParameter: k must be 2 or more, got 1
    >>> settings_of(Method)["k"].help
    'Users who share terms.'
    """
    made: T = field(default=default, repr=repr, metadata={_KEY: Setting(**facts)})
    return made


_DECLARED: dict[Any, Mapping[str, Setting]] = {}


def settings_of(kind: type[Any]) -> Mapping[str, Setting]:
    """Return the settings of a dataclass by name, in the order of its fields."""
    if kind not in _DECLARED:
        declared = {each.name: each for each in fields(kind) if _KEY in each.metadata}
        found = {name: setting_of(each, name=name, annotation=str(each.type)) for name, each in declared.items()}
        _DECLARED[kind] = MappingProxyType(found)
    return _DECLARED[kind]


def setting_of(made: Field[Any], *, name: str, annotation: str) -> Setting:
    """Return what `setting` declared, with the name, the type and the default of the field or parameter."""
    # Annotations are texts; to evaluate them would import what a method works with.
    words = annotation.split(" | ")
    kind = _PLAIN.get(words[0]) or (object if made.default is None else type(made.default))
    declared: Setting = made.metadata[_KEY]
    return replace(declared, name=name, kind=kind, default=made.default, optional="None" in words)


def check_settings(settings: object) -> None:
    """Raise if a setting is outside its range; texts that name members of an enumeration become these."""
    for name, each in settings_of(type(settings)).items():
        value = getattr(settings, name)
        checked = each.check(value)
        if checked is not value:
            object.__setattr__(settings, name, checked)


def parameters_of(settings: object, **written: str | float | None) -> dict[str, str | int | float | bool | None]:
    """Return the settings that a manifest records; `written` are those that it words in another way."""
    return {
        name: written[name] if name in written else str(value) if isinstance(value, StrEnum) else value
        for name, value in values_of(settings).items()
        if settings_of(type(settings))[name].recorded
    }


def values_of(settings: object) -> dict[str, Any]:
    """Return all settings by name: what another dataclass with the same settings can be made from."""
    return {name: getattr(settings, name) for name in settings_of(type(settings))}


def is_number(value: object) -> bool:
    """Return whether a setting is a number; a truth value is none, however Python would count with it.

    >>> [is_number(value) for value in (1, 0.5, True, "1", None)]
    [True, True, False, False, False]
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Return whether a setting is a whole number.

    >>> [is_whole(value) for value in (1, 1.0, True, "1", None)]
    [True, False, False, False, False]
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def parse_share(text: str | float, *, name: str = "limit") -> float:
    """Return a share between 0 and 1, typed as per cent or as a number.

    >>> [parse_share(text, name="limit") for text in ("5%", "5 %", "0.5%", "0.05", "1", 0.05)]
    [0.05, 0.05, 0.005, 0.05, 1.0, 0.05]
    >>> parse_share("5", name="limit")
    Traceback (most recent call last):
    queryveil.errors.BadParameter: limit must be a share such as 5% or 0.05, at most 100%, got 5
    """
    wrong = BadParameter(name, text, allowed="a share such as 5% or 0.05, at most 100%")
    digits = str(text).strip()
    is_percent = digits.endswith("%")
    try:
        # In decimals 0.7 % is 0.007, not 0.006999999999999999.
        share = Decimal(digits.removesuffix("%").strip()) / (100 if is_percent else 1)
    except InvalidOperation:
        raise wrong from None
    if isinstance(text, bool) or not share.is_finite() or not 0 <= share <= 1:
        raise wrong
    return float(share)


def is_utf8(name: str) -> bool:
    r"""Return whether the name of a file can be written down; Python also has names that are any bytes.

    >>> is_utf8("spring"), is_utf8(b"\xff".decode(errors="surrogateescape"))
    (True, False)
    """
    return not any("\ud800" <= letter <= "\udfff" for letter in name)

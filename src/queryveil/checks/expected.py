"""Compare a promise with the one that somebody expects: it must be of the same kind and at least as strong.

Stronger are a larger k and l, and a smaller p, epsilon and delta. Of km whole histories (`m=none`) are stronger than
any m, and windows than none, since users who share terms in a window share them in the log; and as strong as longer
ones that are a multiple of them. Of kdelta equal shares are expected, unless `max_distance` is named. That no user is
given an own query is stronger the more events are remembered, and strongest if all are (`remembered=none`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from queryveil.errors import BadParameter
from queryveil.guarantees import parse_window
from queryveil.release import Manifest

_MODELS = {
    "km": "km",
    "clump": "transactions",
    "partition": "transactions",
    "transactions": "transactions",
    "kdelta": "kdelta",
    "plink": "plink",
    "swap": "swap",
    "dp": "dp",
    "google_2024": "asked_texts",
    "ec_2026": "asked_entities",
    "brave_wdp": "text_rule",
    "mozilla": "text_rule",
}
"""The kind of promise that each method makes; transactions are those of either method."""
_WORDS = {"yes": True, "true": True, "no": False, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    """How a setting is read, when a promised value is enough for an expected one, and what an enough is called."""

    read: Callable[[str], Any]
    is_enough: Callable[[Any, Any], bool]
    allowed: str
    enough: str = ""


def _window(text: str) -> str | None:
    if text == "none":
        return None
    parse_window(text)
    return text


def _covers(promised: str | None, wanted: str | None) -> bool:
    return wanted is None or (promised is not None and not parse_window(wanted) % parse_window(promised))


_AT_LEAST = _Key(read=int, is_enough=lambda now, wanted: now >= wanted, allowed="a whole number", enough=" or more")
_AT_MOST = _Key(read=float, is_enough=lambda now, wanted: now <= wanted, allowed="a number", enough=" or less")
_COUNT = _Key(
    read=lambda text: None if text == "none" else int(text),
    is_enough=lambda now, wanted: now is None or (wanted is not None and now >= wanted),
    allowed="a whole number or none",
    enough=" or more",
)
_AT_MOST_COUNT = _Key(
    read=int,
    is_enough=lambda now, wanted: now is not None and now <= wanted,
    allowed="a whole number",
    enough=" or less",
)
_FLAG = _Key(read=_WORDS.__getitem__, is_enough=lambda now, wanted: now or not wanted, allowed="yes or no")
_SAME = _Key(read=_WORDS.__getitem__, is_enough=lambda now, wanted: now is wanted, allowed="yes or no")
_WINDOW = _Key(read=_window, is_enough=_covers, allowed="12h, 1d, 7d, 2w or none", enough=" or a part of it")
_KEYS: Mapping[str, Mapping[str, _Key]] = {
    "km": {"k": _AT_LEAST, "m": _COUNT, "window": _WINDOW, "time_unit": _WINDOW, "items": _SAME},
    "transactions": {"k": _AT_LEAST},
    "kdelta": {"k": _AT_LEAST, "delta": _AT_MOST, "same_texts": _FLAG, "same_days": _FLAG, "max_distance": _AT_MOST},
    "plink": {"p": _AT_MOST, "strict": _FLAG},
    "swap": {
        "k": _AT_LEAST,
        "l": _AT_LEAST,
        "remembered": _COUNT,
        "once": _FLAG,
        "window": _WINDOW,
        "fewest": _AT_LEAST,
    },
    "dp": {"epsilon": _AT_MOST, "delta": _AT_MOST},
    "asked_texts": {"n_users": _AT_LEAST, "n_row_users": _AT_LEAST},
    "asked_entities": {"n_users": _AT_LEAST, "cell_users": _AT_LEAST},
    "text_rule": {"least_characters": _AT_LEAST, "most_characters": _AT_MOST_COUNT, "alone": _FLAG},
}
_UNLESS_NAMED: Mapping[str, Mapping[str, Any]] = {"kdelta": {"max_distance": 0.0}}
"""What is expected of a setting that is not named: a promise of nearly equal shares is another one than of equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The promise that a release is expected to make, or a stronger one.

    - `method`: the method, or `transactions` for either of clump and partition.
    - `settings`: the least that each setting of the promise must be, if it is named.

    >>> Expectation.from_text("km k=5 m=2")
    Expectation(method='km', settings={'k': 5, 'm': 2})
    """

    method: str
    settings: Mapping[str, Any]

    @classmethod
    def from_text(cls, text: str) -> "Expectation":
        """Read `km k=5 m=2`; raise if it is no method or no setting of its promise."""
        method, *pairs = text.replace(",", " ").split() or [""]
        if method not in _MODELS:
            allowed = f"a method ({', '.join(_MODELS)}), then its settings"
            raise BadParameter("expect", text or "nothing", allowed=allowed)
        keys = _KEYS[_MODELS[method]]
        settings = dict(_UNLESS_NAMED.get(method, {}))
        for pair in pairs:
            name, _, value = pair.partition("=")
            if name not in keys:
                raise BadParameter("expect", pair, allowed=f"of {method} one of {', '.join(f'{key}=' for key in keys)}")
            try:
                settings[name] = keys[name].read(value.lower())
            except (ValueError, KeyError, BadParameter):
                raise BadParameter(f"{name} of expect", value or "nothing", allowed=keys[name].allowed) from None
        return cls(method=method, settings=settings)

    def faults(self, manifest: Manifest) -> list[str]:
        """Return in what the promise of a release is another one, or weaker than expected.

        The promise counts, and not what the manifest says of settings; that both agree is checked elsewhere.
        """
        model = str(type(manifest.promise).__struct_config__.tag)
        if model != _MODELS[self.method] or self.method not in (model, manifest.method):
            made = f"a release of {manifest.method}" if manifest.method in _MODELS else "another release"
            nothing = ", which promises nothing" if manifest.promise.promises_nothing else ""
            return [f"{self.method} is expected, and this is {made}{nothing}"]
        found = []
        for name, wanted in self.settings.items():
            promised, key = getattr(manifest.promise, name), _KEYS[model][name]
            if not key.is_enough(promised, wanted):
                least = _plain(wanted) + ("" if wanted is None else key.enough)
                found.append(f"{name}={_plain(promised)} is promised, and {name}={least} is expected")
        return found


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)

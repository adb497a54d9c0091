"""What is true of a release folder when its manifest says something else in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from tests.hostile.releases import Base, holds_kdelta, read_rows
from tests.support.dp_by_force import delta_by_force

from queryveil.release import Noise

Truth = Literal["false", "original", "signature", "true"]
"""Whether what the folder says is `true` after the change, as far as the promise and its own files go.

What is `false` can be seen in the folder, so that it must be refused. What was said of the log that the release was
made from (`original`) must be refused beside that log. What nobody can see afterwards, as a setting that was used
(`signature`), must be refused where the maker's signature is asked for.
"""
Place = tuple[str | int, ...]


def set_value(said: Any, at: Place, new: Any) -> None:
    for key in at[:-1]:
        said = said[key]
    said[at[-1]] = new


def path_of(at: Place) -> str:
    return "/".join(map(str, at))


_LESS = "less is said, and what is said is true"
_DEFAULTS = ("changed", "measures", "warnings", "versions", "query_clusters", "noise", "clicks", "format_version")


def truth_of_dropping(base: Base, at: Place, old: Any) -> tuple[Truth, str]:
    path, said, top = path_of(at), base.manifest, str(at[0])
    is_dp, is_log = said["promise"]["model"] == "dp", said["data"]["kind"] == "log"
    if path in ("parameters", "counts", "removed", "columns", "promise", "method", "data"):
        return "false", ""
    if path == "noise" and is_dp:
        return "false", ""
    if top == "events":
        return _of_dropped_events(base, path, old)
    if path == "texts" and old is None:
        return "true", "this is what is meant where nothing is said"
    if path in ("query_clusters", "clicks") and old:
        return "false", ""
    if top in ("removed", "changed"):
        # The rows must still add up.
        counted = (path == "changed" and old.get("rows_added")) or ("rows" in path and old)
        return ("false", "") if is_log and counted and "bad_rows" not in path else ("true", _LESS)
    if path == "changed/rows_added":
        return ("false", "") if old else ("true", _LESS)
    if (path in ("columns/kept", "data/kind", "data/parts") and not old) or (path == "data/kind" and old == "log"):
        return "true", "this is what is meant where nothing is said"
    if path in ("columns/dropped", "columns/n_others_dropped") or path in _DEFAULTS or top in ("versions", "measures"):
        return "true", _LESS
    if path == "promise/items":
        return "true", "items that are words keep the promise as words"
    if path.endswith("/names") or ("data/names/" in path and said["data"]["format"] in (*_FIXED, "transactions")):
        return (
            ("true", "columns of such a file have always the same names")
            if at[1:2] == ("names",) and len(at) == 3
            else ("false", "")
        )
    if path.endswith("/parts") and not old:
        return "true", "this is what is meant where nothing is said"
    if path == "parameters/delta" and said["promise"].get("same_texts"):
        return "true", _LESS
    if top == "noise" and at[-1] == "shift":
        other = base.manifest
        set_value(other, at, 0)
        return _of_noise(base, path, old, 0, other)
    if path in (
        "promise/window",
        "promise/strict",
        "promise/same_texts",
        "promise/max_distance",
        "promise/remembered",
        "promise/time_unit",
    ):
        return ("true", "this is what is meant where nothing is said") if not old else ("false", "")
    if top == "parameters" and at[1] not in _promised(said) and not is_dp:
        return "true", _LESS
    if is_dp and path in (
        "parameters/mechanism",
        "parameters/choose",
        "parameters/bot_threshold",
        "parameters/synthesized",
    ):
        return ("false", "") if at[1] == "synthesized" else ("true", _LESS)
    if is_dp and path in ("parameters/clicks", "parameters/max_clicks"):
        return ("false", "") if said["parameters"]["clicks"] else ("true", _LESS)
    if top == "noise" and at[-1] in ("top", "shift", "least"):
        return (
            ("true", "this is what is meant where nothing is said")
            if (old in (None, 0, 1) and at[-1] != "top") or old is None
            else ("false", "")
        )
    return "false", ""


def _of_dropped_events(base: Base, path: str, old: Any) -> tuple[Truth, str]:
    """What is counted as dropped only the original tells, unless all of it goes, with what was kept."""
    if not old:
        return "true", "this is what is meant where nothing is said"
    return ("original", "") if path.startswith("events/dropped") else ("false", "")


def _of_events(_: Base, path: str, old: Any, new: Any, said: dict[str, Any]) -> tuple[Truth, str]:
    if type(new) is not int or not path.startswith("events/dropped/") or not 0 <= new <= 2**53:
        return "false", ""
    return ("true", "it says the same") if new == old else ("original", "")


def _promised(said: dict[str, Any]) -> set[str]:
    """Return the settings that the promise repeats."""
    return {name for name in said["promise"] if name != "model"} & {
        *said["parameters"],
        "k",
        "m",
        "p",
        "l",
        "delta",
        "epsilon",
    }


_FREE_SETTINGS: dict[str, Callable[[Any], bool]] = {
    "bot_threshold": lambda value: value is None or (type(value) is int and value >= 1),
    "restore": lambda value: type(value) is bool,
    "shrink": lambda value: type(value) is bool,
    "additions": lambda value: type(value) is bool,
    "distinct": lambda value: type(value) is bool,
    "dedupe": lambda value: type(value) is bool,
    "paper": lambda value: type(value) is bool,
    "r": lambda value: type(value) is int and value >= 1,
    "a": lambda value: type(value) is int and 0 <= value <= 3,
    "growth": lambda value: type(value) in (int, float) and value > 1,
    "max_pool": lambda value: type(value) is int and value >= 1,
    "min_cluster_users": lambda value: type(value) is int and value >= 1,
    "min_query_users": lambda value: type(value) is int and value >= 1,
    "max_clicks": lambda value: type(value) is int and value >= 1,
    "target": lambda value: value in ("users", "random"),
    **dict.fromkeys(
        ("most_words", "session_rows", "session_minutes"), lambda value: type(value) is int and 1 <= value <= 2**53
    ),
}
_KNOWN = ("km", "clump", "partition", "kdelta", "plink", "swap", "dp", "pseudonymise", "query_threshold", "token_hash")
_FIXED = ("aol", "excite", "ubi")


def truth_of(base: Base, at: Place, old: Any, new: Any, said: dict[str, Any]) -> tuple[Truth, str]:
    """Return what is true of the folder when the manifest has this other value in this place."""
    top, path = str(at[0]), path_of(at)
    if said["promise"] is None or base.manifest["promise"]["model"] == "none":
        return "false", ""
    return {
        "promise": _of_promise,
        "parameters": _of_parameters,
        "counts": _of_counts,
        "texts": _of_texts,
        "removed": _of_amounts,
        "changed": _of_amounts,
        "measures": _of_amounts,
        "columns": _of_columns,
        "events": _of_events,
        "noise": _of_noise,
    }.get(top, _of_rest)(base, path, old, new, said)


def _of_rest(base: Base, path: str, old: Any, new: Any, said: dict[str, Any]) -> tuple[Truth, str]:
    if path == "method" and isinstance(new, str) and new and new not in _KNOWN:
        return "signature", ""
    if path == "method" and {old, new} == {"clump", "partition"}:
        # Two ways to the same promise: files do not tell which it was.
        return "signature", ""
    if path == "warnings" and isinstance(new, list) and len(new) < len(old):
        return "true", _LESS
    if path.startswith("versions") and isinstance(new, str) and new[:1].isdigit() and " " not in new:
        return "signature", ""
    if path == "query_clusters" and base.manifest["promise"]["model"] == "kdelta" and isinstance(new, str):
        names, promise = said["data"]["names"], said["promise"]
        kept = holds_kdelta(read_rows(base.data.read_bytes(), said["data"]["format"]), names, promise, new)
        return ("true", "clusters of one's own choice that keep the promise") if kept else ("false", "")
    if path == "data/format" and (old, new) == ("aol", "tsv"):
        return "true", "a file of AOL's columns is one with tabs"
    return "false", ""


def _of_promise(base: Base, path: str, old: Any, new: Any, said: dict[str, Any]) -> tuple[Truth, str]:
    # The settings say something else, or the promise has no such value.
    if path == "promise/items" and type(new) is bool:
        return "true", "all texts here are words in lower case, so that words and items are the same"
    return "false", ""


def _of_parameters(base: Base, path: str, old: Any, new: Any, said: dict[str, Any]) -> tuple[Truth, str]:
    name = path.partition("/")[2]
    if name == "delta" and base.manifest["promise"].get("same_texts"):
        # Each text is a cluster of its own then, whatever was asked for.
        return ("signature" if type(new) in (int, float) and 0 <= new <= 1 else "false"), ""
    if name in _promised(base.manifest) or not name:
        return "false", ""
    fits = _FREE_SETTINGS.get(name, lambda _: False)(new)
    return ("signature" if fits else "false"), ""


def _of_counts(base: Base, path: str, old: Any, new: Any, said: dict[str, Any]) -> tuple[Truth, str]:
    before = base.manifest
    is_row, is_log = "rows" in path, before["data"]["kind"] == "log"
    if not path.endswith("_before") or type(new) is not int or before["promise"]["model"] == "dp":
        return "false", ""
    if (is_row and is_log) or new < 0 or new > 2**62:
        return "false", ""
    if not is_row and new < before["counts"]["n_users_after"] and not before["promise"].get("window"):
        return "false", ""
    return ("original" if base.original else "signature"), ""


def _of_texts(base: Base, path: str, old: Any, new: Any, said: dict[str, Any]) -> tuple[Truth, str]:
    """Fewer texts of one person than there are can be seen, of km in the folder; more of them nobody can disprove."""
    name, texts = path.rpartition("/")[2], said["texts"]
    if type(new) is not int or not isinstance(texts, dict) or name == "n_texts":
        return "false", ""
    for kind in ("of_one_person", "with_identifier"):
        n, n_rows = texts[f"n_{kind}"], texts[f"n_rows_{kind}"]
        if (
            not 0 <= n <= texts["n_texts"]
            or not n <= n_rows <= said["counts"]["n_rows_after"]
            or (n > 0) != (n_rows > 0)
        ):
            return "false", ""
    if "identifier" in name or new > old:
        return "signature", ""
    return ("false" if base.manifest["method"] in ("km", "swap") else "original"), ""


def _of_amounts(base: Base, path: str, old: Any, new: Any, said: dict[str, Any]) -> tuple[Truth, str]:
    top, _, name = path.partition("/")
    before = base.manifest
    if not name or before["promise"]["model"] == "dp" or type(new) not in (int, float):
        return "false", ""
    if new < 0 or new > 1e300 or (top != "measures" and (type(new) is not int or new > 2**62)):
        return "false", ""
    if top == "removed" and "rows" in name and name != "bad_rows_skipped" and before["data"]["kind"] == "log":
        return "false", ""
    if name in ("rows_added", "average_length", "average_group_size") or (
        name == "groups" and before["method"] == "plink"
    ):
        return "false", ""
    return "signature", ""


def _of_columns(base: Base, path: str, old: Any, new: Any, said: dict[str, Any]) -> tuple[Truth, str]:
    before, form = base.manifest, base.manifest["data"]["format"]
    is_log = before["data"]["kind"] == "log" and form != "transactions"
    if before["promise"]["model"] == "dp":
        return "false", ""
    if path == "columns/ids" and form == "transactions" and new in ("keyed", "keep"):
        return "true", "a plain file has no ids, and of none it is true"
    if path == "columns/ids" and new == "keep":
        # They are not, and to whom they belong nobody can see.
        return ("signature" if is_log else "false"), ""
    if path == "columns/time" and is_log:
        order = ("day", "hour", "keep")
        if old in order and new in order and order.index(new) > order.index(old):
            return "true", "times that are cut to the day are cut to the hour, too"
        if old == "drop" and new in order and form in _FIXED:
            return "true", "no row has a time, and of none it is true"
    if path == "columns/dropped" and isinstance(new, list) and len(new) < len(old):
        return "true", _LESS
    if path == "columns/n_others_dropped" and type(new) is int and 0 <= new < 2**62:
        return ("original" if base.original else "signature"), ""
    if path.startswith("columns/dropped/") or path == "columns":
        return "false", ""
    return "false", ""


def _of_noise(base: Base, path: str, old: Any, new: Any, said: dict[str, Any]) -> tuple[Truth, str]:
    field = path.rpartition("/")[2]
    if field not in ("scale", "threshold", "epsilon", "delta", "mechanism", "top", "shift") or isinstance(new, bool):
        return "false", ""
    try:
        part = msgspec.convert(said["noise"][int(path.split("/")[1])], Noise)
    except msgspec.ValidationError:
        return "false", ""
    if not (0 < part.scale < 1e3 and 0 < part.threshold < 10**4 and part.epsilon > 0 and 0 < part.delta < 1):
        return "false", ""
    sums = {name: sum(each[name] for each in said["noise"]) for name in ("epsilon", "delta")}
    if any(sums[name] > said["promise"][name] * (1 + 1e-6) for name in sums):
        return "false", ""
    truncated = part.mechanism == "truncated-geometric"
    if truncated != (part.top is not None) or (part.shift and not truncated) or not 0 <= part.shift < 2**32:
        return "false", ""
    if delta_by_force(part, epsilon=part.epsilon * (1 + 1e-9)) > part.delta * (1 + 1e-6):
        return "false", ""
    counts = [int(row["count"]) for row in read_rows(base.data.read_bytes(), said["data"]["format"]) if "count" in row]
    if field == "threshold" and any(n < part.threshold for n in counts):
        return "false", ""
    return "signature", ""

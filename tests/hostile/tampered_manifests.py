"""Manifests that were tampered with: every key changed, dropped or added to, and what is true then."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.hostile.manifest_truths import Place, Truth, path_of, set_value, truth_of, truth_of_dropping
from tests.hostile.releases import MANIFEST, Base, holds_kdelta, holds_km, holds_transactions, read_rows

PLANTED = "quince"


@dataclass(frozen=True, kw_only=True)
class Tampering:
    """One change of a copy of a release, and what is true then; `why` is said where the change is harmless."""

    kind: str
    base: Base
    name: str
    apply: Callable[[Path], None]
    truth: Truth
    why: str = ""


_CHANGES: dict[type, list[Any]] = {
    bool: [lambda old: not old, lambda _: PLANTED, lambda _: 7],
    int: [
        lambda old: old + 1,
        lambda old: max(0, old - 1),
        lambda _: -7,
        lambda _: 2**70,
        lambda old: old + 0.5,
        lambda _: PLANTED,
    ],
    float: [lambda old: old / 2, lambda old: old * 2 + 1, lambda _: -0.5, lambda _: PLANTED, lambda _: 1e308],
    str: [lambda _: PLANTED, lambda _: "", lambda _: 7, lambda _: None, lambda old: old + " " + PLANTED],
    type(None): [lambda _: 7, lambda _: PLANTED, lambda _: []],
    list: [lambda old: [*old, PLANTED], lambda old: old[:-1], lambda _: {}, lambda _: PLANTED],
    dict: [lambda old: old | {PLANTED: 7}, lambda old: old | {PLANTED: PLANTED}, lambda _: [], lambda _: None],
}
_CHOICES: dict[str, tuple[str, ...]] = {
    "method": ("km", "clump", "partition", "kdelta", "plink", "swap", "dp", "pseudonymise", "token_hash"),
    "columns/ids": ("fresh", "keyed", "keep"),
    "columns/time": ("day", "hour", "keep", "drop"),
    "promise/model": ("km", "transactions", "kdelta", "plink", "swap", "dp", "none"),
    "promise/window": ("1d", "7d", "14d", "365000d", "-1d", "1"),
    "data/format": ("aol", "excite", "csv", "tsv", "jsonl", "parquet", "ubi", "transactions"),
    "data/kind": ("log", "transactions", "groups", "queries", "clicks"),
    "data/name": ("../original.csv", "/etc/hostname", ".", "", "manifest.json", "a\0b", "x" * 300),
    "parameters/target": ("users", "random"),
}


def places(value: Any, at: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield every place of a manifest with what stands there."""
    if at:
        yield at, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from places(each, (*at, key))


def _drop(said: Any, at: Place) -> None:
    for key in at[:-1]:
        said = said[key]
    del said[at[-1]]


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and type(one) is type(other)


def changed_values(base: Base) -> Iterator[Tampering]:
    """Yield a tampering for each change of each value, and for each key that is dropped."""
    for at, old in places(base.manifest):
        options = [change(old) for change in _CHANGES[type(old)]]
        options += [each for each in _CHOICES.get(path_of(at), ()) if each != old]
        for new in options:
            if _same(old, new):
                continue
            said = base.manifest
            set_value(said, at, new)
            truth, why = truth_of(base, at, old, new, said)
            name = f"{path_of(at)} = {json.dumps(new)[:30]}"
            yield _told(base, "manifest: value changed", name, said, truth, why)
        if isinstance(at[-1], str):
            said = base.manifest
            _drop(said, at)
            truth, why = truth_of_dropping(base, at, old)
            yield _told(base, "manifest: key dropped", path_of(at), said, truth, why)


def _told(base: Base, kind: str, name: str, said: dict[str, Any], truth: Truth, why: str) -> Tampering:
    text = json.dumps(said).encode()
    return Tampering(kind=kind, base=base, name=name, truth=truth, why=why, apply=partial(_write, text=text))


def _write(folder: Path, text: bytes) -> None:
    (folder / MANIFEST).write_bytes(text)


def changed_promises(base: Base) -> Iterator[Tampering]:
    """Yield promises that are stronger or weaker, with the settings made to fit."""
    model = base.manifest["promise"]["model"]
    form = base.manifest["data"]["format"]
    for name in ("k", "m", "p", "l", "epsilon", "delta"):
        old = base.manifest["promise"].get(name)
        if old is None or (name == "delta" and base.manifest["promise"].get("same_texts")):
            continue
        for new in (
            (old * 2, old / 2, old + 1, old - 1, old * 10, 0, 10**9, 1e-12)
            if name in "pepsilondelta"
            else (2, 3, 4, 5, 9, 100, 1, 0)
        ):
            if new == old:
                continue
            said = base.manifest
            said["promise"][name] = said["parameters"][name] = new
            truth: Truth = "false"
            if model in ("km", "transactions", "kdelta") and isinstance(new, int) and new >= (1 if name == "m" else 2):
                text = base.data.read_bytes()
                if form in ("excite", "ubi", "transactions"):
                    continue
                rows, names = read_rows(text, form), said["data"]["names"]
                kept = {
                    "km": lambda: holds_km(rows, names, said["promise"]),  # noqa: B023
                    "transactions": lambda: holds_transactions(rows, said["promise"]["k"]),  # noqa: B023
                    "kdelta": lambda: holds_kdelta(rows, names, said["promise"], said["query_clusters"]),  # noqa: B023
                }[model]()
                truth = "true" if kept else "false"
            elif model == "kdelta" and name == "delta" and 0 <= new <= 1:
                rows = read_rows(base.data.read_bytes(), form)
                kept = holds_kdelta(rows, said["data"]["names"], said["promise"], said["query_clusters"])
                truth = "true" if kept else "false"
            elif model in ("plink", "dp", "swap") and not _is_stronger(name, old, new):
                if new <= 0 or (name == "p" and new > 1) or model == "swap" or (name == "delta" and new >= 1):
                    continue
                truth = "true"
            yield _told(
                base,
                "promise changed, settings fit",
                f"{name} = {new}",
                said,
                truth,
                "a claim that the files keep" if truth == "true" else "",
            )


def _is_stronger(name: str, old: float, new: float) -> bool:
    return new > old if name in ("k", "l", "m") else new < old


def changed_texts(base: Base) -> Iterator[Tampering]:
    """Yield manifests whose text is written in another way, or broken."""
    said, text = base.manifest, json.dumps(base.manifest).encode()
    ordered = json.dumps(dict(reversed(said.items()))).encode()
    same = {
        "keys in another order": ordered,
        "no blanks": json.dumps(said, separators=(",", ":")).encode(),
        "many blanks": json.dumps(said, indent=40).encode(),
        "letters as escapes": text.replace(b'"method"', b'"\\u006dethod"'),
        "blanks around": b"\n\n  " + text + b"  \n",
    }
    for name, data in same.items():
        yield Tampering(
            kind="manifest: same, other text",
            base=base,
            name=name,
            truth="true",
            why="every value is the same",
            apply=partial(_write, text=data),
        )
    nested = b"[" * 200_000 + b"]" * 200_000
    broken = {
        "empty": b"",
        "cut": text[: len(text) // 2],
        "mark of byte order": b"\xef\xbb\xbf" + text,
        "UTF-16": text.decode().encode("utf-16"),
        "more behind it": text + text,
        "a list": b"[" + text + b"]",
        "null": b"null",
        "NaN": text.replace(b'"n_rows_after": ', b'"n_rows_after": NaN, "x": '),
        "a key twice": text.replace(b'"method":', b'"method": "quince", "method":', 1),
        "a promise twice": text.replace(b'"promise":', b'"promise": {"model": "km", "k": 99, "m": 9}, "promise":', 1),
        "nested deep": text[:-1] + b', "x": ' + nested + b"}",
        "nested deep in a setting": text.replace(b'"parameters": {', b'"parameters": {"x": ' + nested + b", ", 1),
        "a number of 5,000 digits": text.replace(b'"n_rows_after": ', b'"n_rows_after": ' + b"9" * 5000, 1),
        "a number of 5,000 digits, unread": text[:-1] + b', "x": ' + b"9" * 5000 + b"}",
        "1e999": text.replace(b'"n_rows_after": ', b'"n_rows_after": 1e999, "y": ', 1),
        "a lone surrogate": text.replace(b'"method": "', b'"method": "\\ud800', 1),
        "not UTF-8": text.replace(b'"method": "', b'"method": "\xff', 1),
        "NUL": text + b"\0",
        "a comment": text + b"// quince",
        "a key that nobody reads": text[:-1] + b', "note": "quince"}',
        "50,000 keys more": text[:-1] + b"".join(b', "x%d": 1' % i for i in range(50_000)) + b"}",
    }
    for name, data in broken.items():
        yield Tampering(
            kind="manifest: text broken",
            base=base,
            name=name,
            truth="false",
            apply=partial(_write, text=data),
        )

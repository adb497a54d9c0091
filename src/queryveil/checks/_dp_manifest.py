"""Check that the manifest of a dp release is consistent, matches the release, and reveals nothing else."""

import json
import re
from collections.abc import Iterator
from math import isclose
from typing import Any, Literal

import msgspec

from queryveil.checks.verdict import Witness, in_units
from queryveil.data import Layout, QueryLog, Tallies
from queryveil.formats import extension
from queryveil.guarantees import DifferentialPrivacy
from queryveil.release import DataFile, Ids, Manifest, TimeDetail


class _Keyed(list[tuple[str, Any]]):
    """The keys and values of an object, each as often as it stands there."""


def n_overlooked(text: bytes, manifest: Manifest) -> int:
    """Count the keys in the text of a manifest that were not read, and those that stand there twice."""
    try:
        said = json.loads(text, object_pairs_hook=_Keyed)
    except (ValueError, RecursionError):
        # The manifest itself was read, so it is in something else that Python finds no sense.
        return 1
    return _n_more(said, msgspec.to_builtins(manifest))


def _n_more(said: Any, read: Any) -> int:
    """Count what stands in JSON beyond what was read of it.

    >>> _n_more(_Keyed([("k", 2), ("who", "me"), ("k", 3)]), {"k": 3})
    2
    """
    if isinstance(said, _Keyed) and isinstance(read, dict):
        known = [(key, value) for key, value in said if key in read]
        twice = len(known) - len(dict(known))
        return len(said) - len(known) + twice + sum(_n_more(value, read[key]) for key, value in known)
    if isinstance(said, list) and isinstance(read, list | tuple):
        # Of a list that stands there twice only the last was read.
        return sum(_n_more(one, other) for one, other in zip(said, read, strict=False))
    return 0


_SETTINGS = frozenset(
    ("epsilon", "delta", "max_queries", "mechanism", "rounds", "choose", "clicks", "max_clicks", "bot_threshold")
)
_MECHANISMS = ("auto", "truncated-geometric", "gaussian", "laplace", "zealous")
_CHOICES = ("random", "frequent")
_MOST_ITEMS, _ROUNDING = 1000, 1e-9
_MADE_UP = "synthesized"
_VERSIONED = frozenset(("queryveil", "python", "numba", "numpy", "polars", "pyarrow", "opendp", "pyspark"))
_VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}((a|b|rc)\d{1,3})?(\.post\d{1,3})?(\.dev\d{1,4})?(\+[a-z0-9.]{0,20})?")
_WARNINGS = frozenset(
    (
        "made with a seed: whoever knows it can take the noise away",
        "epsilon above 10 promises next to nothing: chances may differ by a factor of more than 22,026",
        "delta above 0.001 promises next to nothing: of 1,000 people one or more may see a query leave that is theirs "
        "alone",
        "all rows are made up from noisy counts: users are nobody, and what stands together says nothing",
    )
)
"""What may be warned of. Any other text could tell something of the log."""


def claims_broken(manifest: Manifest, data: Tallies | QueryLog, *, text: bytes | None = None) -> list[Witness]:
    """Find what a manifest says that is not so, and what it tells of the log without noise.

    With its `text`, also look for what stands there and was not read.
    """
    found = [*_settings_broken(manifest), *_sizes_broken(manifest, data)]
    found += _counts_broken(manifest, data) if isinstance(data, Tallies) else []
    n_told = _n_told(manifest, data) + (0 if text is None else n_overlooked(text, manifest))
    return [Witness(kind="exact_count", support=n_told, needed=0), *found] if n_told else found


def _n_told(manifest: Manifest, data: Tallies | QueryLog) -> int:
    """Count what tells of the log: its size, what was removed or measured, its columns, and anything unheard of."""
    counts, columns = manifest.counts, manifest.columns
    numbers = [counts.n_rows_before, counts.n_users_before, columns.n_others_dropped, len(manifest.query_clusters)]
    changed = set(manifest.changed)
    if isinstance(data, Tallies):
        numbers.append(counts.n_users_after)
    else:
        changed -= {"rows_added"}
    named = (changed, manifest.removed, manifest.measures, columns.dropped, columns.kept)
    # What is warned of twice could stand for a number.
    n_odd_warnings = len(manifest.warnings) - len(_WARNINGS.intersection(manifest.warnings))
    odd = [
        manifest.method != "dp",
        manifest.texts is not None,
        columns.ids is not Ids.FRESH,
        columns.time is not TimeDetail.DROP,
    ]
    odd += [name not in _VERSIONED or not _VERSION.fullmatch(text) for name, text in manifest.versions.items()]
    n_unheard_of = len([*_odd_settings(manifest, data), *_odd_files(manifest, data)])
    return sum(map(bool, numbers)) + sum(map(len, named)) + n_odd_warnings + sum(odd) + n_unheard_of


def _odd_settings(manifest: Manifest, data: Tallies | QueryLog) -> Iterator[str]:
    known = _SETTINGS if isinstance(data, Tallies) else _SETTINGS | {_MADE_UP}
    for name, value in manifest.parameters.items():
        is_number = value is None or isinstance(value, int | float)
        is_usual = {
            "mechanism": value in _MECHANISMS,
            "choose": value in _CHOICES,
            _MADE_UP: value is True,
            "clicks": type(value) in (int, float) and 0 <= value < 1,  # type: ignore[operator]
            "max_clicks": type(value) is int and 1 <= value <= _MOST_ITEMS,
            "bot_threshold": value is None or (type(value) is int and value >= 1),
        }
        if name not in known or not is_usual.get(name, is_number):
            yield name


def _odd_files(manifest: Manifest, data: Tallies | QueryLog) -> Iterator[str]:
    """Files are named and described as all of their kind are; made-up rows have none for clicks."""
    made_up = isinstance(data, QueryLog)
    names = {role: role for role in data.columns} if made_up else {}
    if manifest.data is not None and manifest.data != _usual(manifest.data, "log" if made_up else "queries", names):
        yield "data"
    if manifest.clicks is not None and (made_up or manifest.clicks != _usual(manifest.clicks, "clicks", {})):
        yield "clicks"


def _usual(file: DataFile, kind: Literal["log", "queries", "clicks"], names: dict[str, str]) -> DataFile:
    name = f"{kind}.{extension(Layout(format=file.format))}"
    return DataFile(name=name, sha256=file.sha256, format=file.format, names=names, has_header=True, kind=kind)


def _settings_broken(manifest: Manifest) -> Iterator[Witness]:
    """Yield where the settings, the promise and the noise do not agree."""
    parameters, promise = manifest.parameters, manifest.promise
    share, has_clicks = parameters.get("clicks"), in_units(parameters.get("clicks")) > 0
    if isinstance(promise, DifferentialPrivacy):
        for name, promised in (("epsilon", promise.epsilon), ("delta", promise.delta)):
            said = parameters.get(name)
            if isinstance(said, bool) or said != promised:
                yield Witness(kind="other_promise", support=in_units(said), needed=in_units(promised))
        if has_clicks and isinstance(share, int | float):
            spent = sum(part.epsilon for part in manifest.noise if part.what == "clicks")
            if not isclose(spent, share * promise.epsilon, rel_tol=_ROUNDING):
                said, needed = in_units(share * promise.epsilon), in_units(spent)
                yield Witness(kind="other_promise", support=said, needed=needed)
    # There is a part of the noise for each round, and one for clicks if a part of the budget is for them.
    whats, rounds = [part.what for part in manifest.noise], parameters.get("rounds")
    if whats.count("queries") != rounds or whats.count("clicks") != has_clicks:
        expected = rounds + has_clicks if type(rounds) is int else 0
        yield Witness(kind="other_parts", support=len(whats), needed=expected)
    # Nobody has a part in more counts than the settings say.
    for part, noise in enumerate(manifest.noise, start=1):
        most = parameters.get(f"max_{noise.what}")
        if noise.max_items != most:
            needed = most if type(most) is int else 0
            yield Witness(kind="other_items", support=noise.max_items, needed=needed, rows=(part,))


def _sizes_broken(manifest: Manifest, data: Tallies | QueryLog) -> Iterator[Witness]:
    """Yield where the release is not as large as the manifest says, or not all of its rows are made up."""
    sizes = [(manifest.counts.n_rows_after, data.n_rows)]
    if isinstance(data, QueryLog):
        sizes.append((manifest.counts.n_users_after, data.n_users))
        if manifest.parameters.get(_MADE_UP) is not True or manifest.changed.get("rows_added") != data.n_rows:
            yield Witness(kind="not_made_up", support=data.n_rows, needed=0)
    for said, there in sizes:
        if said != there:
            yield Witness(kind="other_size", support=said, needed=there)


def _counts_broken(manifest: Manifest, tallies: Tallies) -> Iterator[Witness]:
    """Yield counts of clicks that no part of the budget is for, or that are missing, and rows in another order."""
    has_clicks = in_units(manifest.parameters.get("clicks")) > 0
    if (tallies.clicks is not None) != has_clicks:
        yield Witness(kind="other_clicks", support=tallies.n_clicks, needed=int(has_clicks))
    # Rows come by count and text: in any other order they could tell how they stood in the log.
    for frame in (tallies.frame, tallies.clicks):
        if frame is not None:
            texts = frame.columns[:-1]
            by_count = frame.sort("count", *texts, descending=[True, *(False for _ in texts)])
            n_moved = int((frame.hash_rows() != by_count.hash_rows()).sum())
            if n_moved:
                yield Witness(kind="other_order", support=n_moved, needed=0)

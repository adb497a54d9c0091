"""Check that the manifest of a dp release is consistent, matches the release, and reveals nothing else."""

import json
import re
from collections.abc import Callable, Iterator
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

_Claim = Callable[[Manifest, Tallies | QueryLog], Iterator[Witness]]


def claims_broken(manifest: Manifest, data: Tallies | QueryLog, *, text: bytes | None = None) -> list[Witness]:
    """Find what a manifest says that is not so, and what it tells of the log without noise.

    With its `text`, also look for what stands there and was not read.
    """
    claims: tuple[_Claim, ...] = (_made_up, _promised, _rounds, _bounds, _sizes, _clicks, _order)
    found = [witness for claim in claims for witness in claim(manifest, data)]
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
    odd = [manifest.method != "dp", columns.ids is not Ids.FRESH, columns.time is not TimeDetail.DROP]
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


def _made_up(manifest: Manifest, data: Tallies | QueryLog) -> Iterator[Witness]:
    """Rows are made up, and all of them."""
    if isinstance(data, QueryLog):
        added = manifest.changed.get("rows_added")
        if manifest.parameters.get(_MADE_UP) is not True or added != data.n_rows:
            yield Witness(kind="not_made_up", support=data.n_rows, needed=0)


def _promised(manifest: Manifest, _: Tallies | QueryLog) -> Iterator[Witness]:
    """The settings have the epsilon and the delta of the promise."""
    promise = manifest.promise
    if isinstance(promise, DifferentialPrivacy):
        for name, promised in (("epsilon", promise.epsilon), ("delta", promise.delta)):
            said = manifest.parameters.get(name)
            if isinstance(said, bool) or said != promised:
                yield Witness(kind="other_promise", support=in_units(said), needed=in_units(promised))


def _rounds(manifest: Manifest, _: Tallies | QueryLog) -> Iterator[Witness]:
    """There is a part of the noise for each round, and one for clicks if a part of the budget is for them."""
    whats = [part.what for part in manifest.noise]
    rounds, clicks = manifest.parameters.get("rounds"), manifest.parameters.get("clicks")
    has_clicks = in_units(clicks) > 0
    expected = rounds + has_clicks if type(rounds) is int else 0
    if whats.count("queries") != rounds or whats.count("clicks") != has_clicks:
        yield Witness(kind="other_parts", support=len(whats), needed=expected)


def _bounds(manifest: Manifest, _: Tallies | QueryLog) -> Iterator[Witness]:
    """Nobody has a part in more counts than the settings say."""
    for part, noise in enumerate(manifest.noise, start=1):
        most = manifest.parameters.get(f"max_{noise.what}")
        if noise.max_items != most:
            yield Witness(
                kind="other_items", support=noise.max_items, needed=most if type(most) is int else 0, rows=(part,)
            )


def _sizes(manifest: Manifest, data: Tallies | QueryLog) -> Iterator[Witness]:
    """The release is as large as it says."""
    n_rows, n_users = manifest.counts.n_rows_after, manifest.counts.n_users_after
    if isinstance(data, QueryLog):
        sizes = [(n_rows, data.n_rows), (n_users, data.n_users)]
    else:
        sizes = [(n_rows, data.n_queries)]
    for said, there in sizes:
        if said != there:
            yield Witness(kind="other_size", support=said, needed=there)


def _clicks(manifest: Manifest, data: Tallies | QueryLog) -> Iterator[Witness]:
    """There are counts of clicks if, and only if, a part of the budget is for them."""
    asked = in_units(manifest.parameters.get("clicks")) > 0
    if isinstance(data, Tallies) and (data.clicks is not None) != asked:
        yield Witness(kind="other_clicks", support=data.n_clicks, needed=int(asked))
    share, promise = manifest.parameters.get("clicks"), manifest.promise
    if asked and isinstance(share, int | float) and isinstance(promise, DifferentialPrivacy):
        spent = sum(part.epsilon for part in manifest.noise if part.what == "clicks")
        if not isclose(spent, share * promise.epsilon, rel_tol=_ROUNDING):
            yield Witness(kind="other_promise", support=in_units(share * promise.epsilon), needed=in_units(spent))


def _order(_: Manifest, data: Tallies | QueryLog) -> Iterator[Witness]:
    """Rows come by count and text: in any other order they could tell how they stood in the log."""
    if isinstance(data, QueryLog):
        return
    for frame in (data.frame, data.clicks):
        if frame is None:
            continue
        texts = frame.columns[:-1]
        by_count = frame.sort("count", *texts, descending=[True, *(False for _ in texts)])
        n_moved = int((frame.hash_rows() != by_count.hash_rows()).sum())
        if n_moved:
            yield Witness(kind="other_order", support=n_moved, needed=0)

"""Check that the manifest of a dp release is consistent, matches the release, and reveals nothing else."""

import re
from collections.abc import Iterator
from math import isclose
from typing import Literal

from queryveil.checks._statements import n_odd_settings, n_overlooked
from queryveil.checks.verdict import Witness, in_units
from queryveil.data import Layout, QueryLog, Tallies
from queryveil.formats import extension
from queryveil.guarantees import DifferentialPrivacy
from queryveil.release import DataFile, Ids, Manifest, TimeDetail

_ROUNDING = 1e-9
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
    odd = [manifest.method != "dp", manifest.texts is not None]
    odd += [columns.ids is not Ids.FRESH, columns.time is not TimeDetail.DROP]
    odd += [name not in _VERSIONED or not _VERSION.fullmatch(text) for name, text in manifest.versions.items()]
    odd += [isinstance(data, Tallies) and _MADE_UP in manifest.parameters, *_odd_files(manifest, data)]
    n_odd = n_odd_warnings + n_odd_settings(manifest) + sum(odd)
    return sum(map(bool, numbers)) + sum(map(len, named)) + n_odd


def _odd_files(manifest: Manifest, data: Tallies | QueryLog) -> tuple[bool, bool]:
    """Return whether the files are not named and described as all of their kind are; made-up rows have no clicks."""
    file, clicks, is_made_up = manifest.data, manifest.clicks, isinstance(data, QueryLog)
    names = {role: role for role in data.columns} if is_made_up else {}
    is_odd = file is not None and file != _usual(file, "log" if is_made_up else "queries", names)
    return is_odd, clicks is not None and (is_made_up or clicks != _usual(clicks, "clicks", {}))


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
                said = in_units(share * promise.epsilon)
                yield Witness(kind="other_promise", support=said, needed=in_units(spent))
    # There is a part of the noise for each round, and one for clicks if a part of the budget is for them.
    whats, rounds = [part.what for part in manifest.noise], parameters.get("rounds")
    if whats.count("queries") != rounds or whats.count("clicks") != has_clicks:
        needed = rounds + has_clicks if type(rounds) is int else 0
        yield Witness(kind="other_parts", support=len(whats), needed=needed)
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
            if n_moved := int((frame.hash_rows() != by_count.hash_rows()).sum()):
                yield Witness(kind="other_order", support=n_moved, needed=0)

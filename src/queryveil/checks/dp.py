"""Verify differential privacy: recompute delta from the noise that the manifest states, and check the counts.

The manifest is judged too: consistent, fitting the release, and revealing nothing else.

Python and Polars each have Unicode tables of their own, and older ones lack the lower case of some letters (Garay,
Beria Erfe, a few of Latin). A query counts as asked, and as in normal form, if it is so by either of them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from typing import Literal

import polars as pl

from queryveil.checks._dp_noise import delta_of, is_known, most_of
from queryveil.checks._statements import n_odd_settings, n_overlooked
from queryveil.checks.tokens import folded_all, lowered_all, number
from queryveil.checks.verdict import Found, Kind, Verdict, Witness, found_in, in_units
from queryveil.data import Layout, QueryLog, Tallies
from queryveil.formats import extension
from queryveil.guarantees import DifferentialPrivacy
from queryveil.release import DataFile, Ids, Manifest, Noise, TimeDetail

_ROUNDING = 1e-9
"""Epsilons and deltas are floats: so much more, as a share, is the same."""
_MOST_PARTS = 100
"""Each part takes its time, and no release has nearly as many."""
_UNSEEN = (
    "files cannot show that the noise was drawn as the manifest says, nor that nobody had a part in more counts than "
    "it says"
)
_MADE_UP = "rows are made up from noisy counts that are not in the release, so that the counts were not judged"


_KEYS = {"queries": ["query"], "clicks": ["query", "url"]}
"""The columns that say what is counted."""
_KINDS: Mapping[str, tuple[Kind, Kind, Kind]] = {
    "queries": ("small_count", "unasked_query", "large_count"),
    "clicks": ("small_click", "unmade_click", "large_click"),
}
"""What a count is called that is below the threshold, that has too few users behind it, and that is too large."""


def verify_dp(
    data: Tallies | QueryLog, promise: DifferentialPrivacy, *, noise: Sequence[Noise], original: QueryLog | None = None
) -> Verdict:
    """Judge the promise by how noise was added, part by part, and by the counts that were released.

    The epsilons and deltas of the parts add up. With the `original` also look for queries and clicks that nobody has,
    or fewer than get noise at all.

    >>> counts = Tallies(frame=pl.DataFrame({"query": ["red kettle"], "count": [40]}))
    >>> weak = Noise(what="queries", mechanism="laplace", max_items=1, scale=1.0, threshold=12, epsilon=1, delta=1e-5)
    >>> print(verify_dp(counts, DifferentialPrivacy(epsilon=1, delta=1e-5), noise=[weak]).in_words())
    The promise is broken: 1 violation, for example part 1 of the noise has a delta of 1.221e-05 at its epsilon, and
    1e-05 is stated.
    """
    released, is_made_up = _released(data), isinstance(data, QueryLog)
    found = [*_judge_noise(noise, promise), _untidy(released["queries"])]
    found += _judge_users(data, noise) if isinstance(data, QueryLog) else _judge_counts(released, noise)
    if original is not None:
        asked = _asked(original)
        found += [each for what, rows in released.items() for each in _judge_origin(rows, asked, noise, what=what)]
    n = data.n_rows if isinstance(data, QueryLog) else data.n_queries + data.n_clicks
    verdict = Verdict(promise=promise, n_users=n, n_checked_users=0 if is_made_up else n, is_made_up=is_made_up)
    return verdict.joined(*found, notes=(_UNSEEN, _MADE_UP) if is_made_up else (_UNSEEN,))


def _released(data: Tallies | QueryLog) -> dict[str, pl.DataFrame]:
    """Return the queries, and the clicks if there are any, each with its `row`; of made-up rows the first."""
    if isinstance(data, Tallies):
        counted = {"queries": data.frame, "clicks": data.clicks}
        return {what: frame.with_row_index("row", offset=1) for what, frame in counted.items() if frame is not None}
    rows = data.frame.with_row_index("row", offset=1)
    return {
        what: rows.drop_nulls(keys).group_by(keys).agg(pl.col("row").min())
        for what, keys in _KEYS.items()
        if set(keys) <= set(data.columns)
    }


def _judge_noise(noise: Sequence[Noise], promise: DifferentialPrivacy) -> Iterator[Found]:
    if not any(each.what == "queries" for each in noise):
        yield _one("no_noise", found=0, allowed=1)
    for part, each in enumerate(noise, start=1):
        if not is_known(each) or part > _MOST_PARTS:
            yield _one("odd_noise", found=0, allowed=0, rows=(part,))
            continue
        stated = each.delta * (1 + _ROUNDING)
        delta = delta_of(each, epsilon=each.epsilon * (1 + _ROUNDING), stated=stated)
        if delta > stated:
            yield _one("weak_noise", found=in_units(delta), allowed=in_units(each.delta), rows=(part,))
    sums: tuple[tuple[Kind, float, float], ...] = (
        ("parts_epsilon", sum(each.epsilon for each in noise), promise.epsilon),
        ("parts_delta", sum(each.delta for each in noise), promise.delta),
    )
    for kind, spent, promised in sums:
        # What is not a number is not within the promise, either.
        if not spent <= promised * (1 + _ROUNDING):
            yield _one(kind, found=in_units(spent), allowed=in_units(promised))


def _one(kind: Kind, *, found: int, allowed: int, rows: tuple[int, ...] = ()) -> Found:
    """Return what is wrong with the release as a whole, or with a part of its noise."""
    return 1, [Witness(kind=kind, support=found, needed=allowed, rows=rows)]


def _rows(frame: pl.DataFrame, *, kind: Kind, support: pl.Expr, needed: pl.Expr) -> Found:
    return found_in(frame.select("row", support=support, needed=needed), kind=kind)


def _untidy(queries: pl.DataFrame) -> Found:
    """Return the queries that are not as they are compared, and those that are none: empty, or with a NUL."""
    texts = queries["query"]
    is_odd = (texts != folded_all(texts)) & (texts != lowered_all(texts))
    untidy = queries.filter(is_odd | (texts == "") | texts.str.contains("\0", literal=True))
    return _rows(untidy, kind="untidy_query", support=pl.lit(1), needed=pl.lit(0))


def _judge_counts(released: Mapping[str, pl.DataFrame], noise: Sequence[Noise]) -> Iterator[Found]:
    """Yield the counts that are below every threshold, and clicks without noise or without their query."""
    for what, counts in released.items():
        lowest = min((each.threshold for each in _known(noise, what=what)), default=0)
        few = counts.filter(pl.col("count") < lowest)
        yield _rows(few, kind=_KINDS[what][0], support=pl.col("count"), needed=pl.lit(lowest))
    if "clicks" in released:
        clicks = released["clicks"]
        if clicks.height and not any(each.what == "clicks" for each in noise):
            yield _one("no_noise", found=clicks.height, allowed=0)
        stray = clicks.join(released["queries"], on="query", how="anti")
        yield _rows(stray, kind="stray_click", support=pl.lit(0), needed=pl.lit(1))


def _known(noise: Sequence[Noise], *, what: str) -> list[Noise]:
    return [each for each in noise if each.what == what and is_known(each)]


def _judge_users(log: QueryLog, noise: Sequence[Noise]) -> Iterator[Found]:
    """Yield columns of made-up rows that no count is about, and users who are not numbers."""
    known = {"user", "query", *(["url"] if any(each.what == "clicks" for each in noise) else [])}
    if more := set(log.columns) - known:
        yield _one("more_columns", found=len(more), allowed=0)
    users = log.frame["user"].unique()
    odd = users.filter(~users.is_in(pl.int_range(1, len(users) + 1, eager=True).cast(pl.String).implode()))
    if len(odd):
        yield _one("odd_id", found=len(odd), allowed=0)


def _judge_origin(released: pl.DataFrame, asked: pl.DataFrame, noise: Sequence[Noise], *, what: str) -> Iterator[Found]:
    """Yield the rows with fewer users behind them than get noise at all, and counts too large for any noise."""
    keys, parts, (_, few, large) = _KEYS[what], _known(noise, what=what), _KINDS[what]
    there = asked.join(released, on=keys, how="semi").group_by(keys).agg(found=pl.col("user").n_unique())
    behind = released.join(there, on=keys, how="left").with_columns(pl.col("found").fill_null(0).cast(pl.Int64))
    least = min((each.least for each in parts), default=1)
    too_few = behind.filter(pl.col("found") < least)
    yield _rows(too_few, kind=few, support=pl.col("found"), needed=pl.lit(least))
    if parts and "count" in behind.columns:
        # Some of the users may not have counted, so there may be fewer, never more.
        largest = max(map(most_of, parts))
        too_large = behind.filter(pl.col("found") >= least, pl.col("count") - pl.col("found") > largest)
        yield _rows(too_large, kind=large, support=pl.col("count"), needed=pl.col("found") + largest)


def _asked(original: QueryLog) -> pl.DataFrame:
    """Return who asked and clicked what, a query as it is compared, in either form if these differ."""
    rows = original.frame.select("user", "query", url=pl.col("url") if "url" in original.columns else pl.lit(""))
    if original.terms_are_items:
        # An item is what a query is elsewhere.
        rows = rows.with_columns(pl.col("query").str.split(" ")).explode("query", empty_as_null=False)
    texts = number(rows["query"])
    one, other = folded_all(texts.distinct), lowered_all(texts.distinct)
    asked = rows.with_columns(one.gather(texts.codes).alias("query"))
    differs = (one != other).gather(texts.codes)
    again = rows.with_columns(other.gather(texts.codes).alias("query")).filter(differs)
    return pl.concat([asked, again]) if again.height else asked


_SYNTHESIZED = "synthesized"
_VERSIONED = frozenset(("queryveil", "python", "numba", "numpy", "polars", "pyarrow", "opendp", "pyspark"))
_VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}((a|b|rc)\d{1,3})?(\.post\d{1,3})?(\.dev\d{1,4})?(\+[a-z0-9.]{0,20})?")
_NOTHING = "nothing was released: no noisy count reached its threshold"
_WARNINGS = frozenset(
    (
        _NOTHING,
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
    odd += [_NOTHING in manifest.warnings and data.n_rows > 0]
    odd += [isinstance(data, Tallies) and _SYNTHESIZED in manifest.parameters, *_odd_files(manifest, data)]
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
        if manifest.parameters.get(_SYNTHESIZED) is not True or manifest.changed.get("rows_added") != data.n_rows:
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

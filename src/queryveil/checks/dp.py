"""Verify differential privacy: recompute delta from the noise that the manifest states, and check the counts.

Python and Polars each have Unicode tables of their own, and older ones lack the lower case of some letters (Garay,
Beria Erfe, a few of Latin). A query counts as asked, and as in normal form, if it is so by either of them.
"""

from collections.abc import Iterator, Sequence

import polars as pl

from queryveil.checks._dp_noise import delta_of, is_known, most_of
from queryveil.checks.tokens import folded_all, number
from queryveil.checks.verdict import Found, Kind, Verdict, Witness, found_in, in_units
from queryveil.data import QueryLog, Tallies
from queryveil.guarantees import DifferentialPrivacy
from queryveil.release import Noise


def either_form(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return texts composed, in lower case and with single blanks, by Python's tables and by those of Polars.

    >>> [form.to_list() for form in either_form(pl.Series([" Red  KETTLE"]))]
    [['red kettle'], ['red kettle']]
    """
    lowered = texts.str.normalize("NFC").str.to_lowercase().str.normalize("NFC")
    return folded_all(texts), lowered.str.replace_all(r"[\s\x1c-\x1f]+", " ").str.strip_chars(" ")


def is_untidy(texts: pl.Series) -> pl.Series:
    """Return which texts are not as they are compared, and which are none: empty, or with a NUL.

    >>> is_untidy(pl.Series(["red kettle", "Red kettle", ""])).to_list()
    [False, True, True]
    """
    python, polars = either_form(texts)
    return ((texts != python) & (texts != polars)) | (texts == "") | texts.str.contains("\0", literal=True)


_ROUNDING = 1e-9
"""Epsilons and deltas are floats: so much more, as a share, is the same."""
_MOST_PARTS = 100
"""Each part takes its time, and no release has nearly as many."""
_UNSEEN = (
    "files cannot show that the noise was drawn as the manifest says, nor that nobody had a part in more counts than "
    "it says"
)
_MADE_UP = "rows are made up from noisy counts that are not in the release, so that the counts were not judged"


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
    found = list(_judge_noise(noise, promise))
    found += _judge_rows(data, noise) if isinstance(data, QueryLog) else _judge_counts(data, noise)
    if original is not None:
        found += _judge_origin(data, noise, original)
    is_made_up = isinstance(data, QueryLog)
    n = data.n_rows if isinstance(data, QueryLog) else data.n_queries + data.n_clicks
    verdict = Verdict(promise=promise, n_users=n, n_checked_users=0 if is_made_up else n, is_made_up=is_made_up)
    notes = (_UNSEEN, _MADE_UP) if is_made_up else (_UNSEEN,)
    witnesses = [witness for _, some in found for witness in some]
    return verdict.joined(witnesses=witnesses, n_violations=sum(n for n, _ in found), notes=notes)


def _judge_noise(noise: Sequence[Noise], promise: DifferentialPrivacy) -> Iterator[Found]:
    if not any(each.what == "queries" for each in noise):
        yield _whole("no_noise", found=0, allowed=1)
    for part, each in enumerate(noise, start=1):
        if not is_known(each) or part > _MOST_PARTS:
            yield _whole("odd_noise", found=0, allowed=0, rows=(part,))
            continue
        stated = each.delta * (1 + _ROUNDING)
        delta = delta_of(each, epsilon=each.epsilon * (1 + _ROUNDING), stated=stated)
        if delta > stated:
            yield _whole("weak_noise", found=in_units(delta), allowed=in_units(each.delta), rows=(part,))
    sums: tuple[tuple[Kind, float, float], ...] = (
        ("parts_epsilon", sum(each.epsilon for each in noise), promise.epsilon),
        ("parts_delta", sum(each.delta for each in noise), promise.delta),
    )
    for kind, spent, promised in sums:
        # What is not a number is not within the promise, either.
        if not spent <= promised * (1 + _ROUNDING):
            yield _whole(kind, found=in_units(spent), allowed=in_units(promised))


def _whole(kind: Kind, *, found: int, allowed: int, rows: tuple[int, ...] = ()) -> Found:
    """Return what is wrong with the release as a whole, or with a part of its noise."""
    return 1, [Witness(kind=kind, support=found, needed=allowed, rows=rows)]


def _judge_counts(tallies: Tallies, noise: Sequence[Noise]) -> Iterator[Found]:
    queries = tallies.frame.with_row_index("row", offset=1)
    yield _below(queries, noise, what="queries", kind="small_count")
    yield _untidy(queries)
    if tallies.clicks is None:
        return
    clicks = tallies.clicks.with_row_index("row", offset=1)
    if clicks.height and not any(each.what == "clicks" for each in noise):
        yield _whole("no_noise", found=clicks.height, allowed=0)
    yield _below(clicks, noise, what="clicks", kind="small_click")
    stray = clicks.join(queries, on="query", how="anti")
    yield _rows(stray, kind="stray_click", support=pl.lit(0), needed=pl.lit(1))


def _rows(frame: pl.DataFrame, *, kind: Kind, support: pl.Expr, needed: pl.Expr) -> Found:
    return found_in(frame.select("row", support=support, needed=needed), kind=kind, by=["support", "row"])


def _below(counts: pl.DataFrame, noise: Sequence[Noise], *, what: str, kind: Kind) -> Found:
    """Return the rows whose count is below every threshold."""
    lowest = min((each.threshold for each in noise if each.what == what and is_known(each)), default=0)
    few = counts.filter(pl.col("count") < lowest)
    return _rows(few, kind=kind, support=pl.col("count"), needed=pl.lit(lowest))


def _untidy(queries: pl.DataFrame) -> Found:
    untidy = queries.filter(is_untidy(queries["query"]))
    return _rows(untidy, kind="untidy_query", support=pl.lit(1), needed=pl.lit(0))


def _judge_rows(log: QueryLog, noise: Sequence[Noise]) -> Iterator[Found]:
    """Rows made up from counts have what the counts have, and users who are numbers."""
    known = {"user", "query", *(["url"] if any(each.what == "clicks" for each in noise) else [])}
    if more := set(log.columns) - known:
        yield _whole("more_columns", found=len(more), allowed=0)
    users = log.frame["user"].unique()
    odd = users.filter(~users.is_in(pl.int_range(1, len(users) + 1, eager=True).cast(pl.String).implode()))
    if len(odd):
        yield _whole("odd_id", found=len(odd), allowed=0)
    yield _untidy(_first_rows(log, keys=["query"]))


def _first_rows(log: QueryLog, *, keys: list[str]) -> pl.DataFrame:
    """Return the distinct values of a log with the first row of each."""
    return log.frame.with_row_index("row", offset=1).drop_nulls(keys).group_by(keys).agg(pl.col("row").min())


def _judge_origin(data: Tallies | QueryLog, noise: Sequence[Noise], original: QueryLog) -> Iterator[Found]:
    asked = _asked(original)
    if isinstance(data, QueryLog):
        queries = _first_rows(data, keys=["query"])
        clicks = _first_rows(data, keys=["query", "url"]) if "url" in data.columns else None
    else:
        queries = data.frame.with_row_index("row", offset=1)
        clicks = None if data.clicks is None else data.clicks.with_row_index("row", offset=1)
    behind = _behind(queries, asked, keys=["query"])
    yield _too_few(behind, noise, what="queries", kind="unasked_query")
    yield _too_large(behind, noise, what="queries", kind="large_count")
    if clicks is not None:
        behind = _behind(clicks, asked, keys=["query", "url"])
        yield _too_few(behind, noise, what="clicks", kind="unmade_click")
        yield _too_large(behind, noise, what="clicks", kind="large_click")


def _asked(original: QueryLog) -> pl.DataFrame:
    """Return who asked and clicked what, a query as it is compared, in either form if these differ."""
    rows = original.frame.select("user", "query", url=pl.col("url") if "url" in original.columns else pl.lit(""))
    if original.terms_are_items:
        # An item is what a query is elsewhere.
        rows = rows.with_columns(pl.col("query").str.split(" ")).explode("query", empty_as_null=False)
    texts = number(rows["query"])
    one, other = either_form(texts.distinct)
    asked = rows.with_columns(one.gather(texts.codes).alias("query"))
    differs = (one != other).gather(texts.codes)
    again = rows.with_columns(other.gather(texts.codes).alias("query")).filter(differs)
    return pl.concat([asked, again]) if again.height else asked


def _behind(released: pl.DataFrame, asked: pl.DataFrame, *, keys: list[str]) -> pl.DataFrame:
    """Add how many users of the original are behind each row (`found`)."""
    there = asked.join(released, on=keys, how="semi").group_by(keys).agg(pl.col("user").n_unique().alias("found"))
    joined = released.join(there, on=keys, how="left")
    return joined.with_columns(pl.col("found").fill_null(0).cast(pl.Int64))


def _too_few(behind: pl.DataFrame, noise: Sequence[Noise], *, what: str, kind: Kind) -> Found:
    """Return the rows that fewer users stand behind than there must be for a count to get noise."""
    least = _least(noise, what=what)
    few = behind.filter(pl.col("found") < least)
    return _rows(few, kind=kind, support=pl.col("found"), needed=pl.lit(least))


def _least(noise: Sequence[Noise], *, what: str) -> int:
    return min((each.least for each in noise if each.what == what and is_known(each)), default=1)


def _too_large(behind: pl.DataFrame, noise: Sequence[Noise], *, what: str, kind: Kind) -> Found:
    """Return the rows whose count no noise on the users behind them can give; some of these may not have counted."""
    largest = max((most_of(each) for each in noise if each.what == what and is_known(each)), default=None)
    if largest is None or "count" not in behind.columns:
        return 0, []
    enough = pl.col("found") >= _least(noise, what=what)
    too_large = behind.filter(enough & (pl.col("count") - pl.col("found") > largest))
    return _rows(too_large, kind=kind, support=pl.col("count"), needed=pl.col("found") + largest)

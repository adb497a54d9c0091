"""Differentially private queries with counts, and clicks: each person counts for a limited number, once each.

Sessions can be synthesized from such counts; post-processing keeps the privacy of the counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import CLICKS_SCHEMA, ROLES, TALLIES_SCHEMA, Bools, Int32s, Int64s, QueryLog, Tallies, UInt64s
from queryveil.data.frames import with_own_texts
from queryveil.data.rows import Rows
from queryveil.errors import BadInput, BadParameter, MissingColumn
from queryveil.formats import tallies_layout
from queryveil.guarantees import DifferentialPrivacy
from queryveil.kernels import njit
from queryveil.methods.bots import without_bots
from queryveil.methods.dp._mechanisms import plans_for
from queryveil.methods.dp._noise import check_extra, draw
from queryveil.methods.settings import Choice, DpSettings
from queryveil.release import SEEDED_NOISE, ColumnReport, Counts, Ids, Manifest, Noise, Release, TimeDetail, versions
from queryveil.rng import check_seed, generator
from queryveil.settings import check_settings, parameters_of
from queryveil.text.tokens import encode, encode_normal_form, split_items

_MUCH_EPSILON = "epsilon above 10 promises next to nothing: chances may differ by a factor of more than 22,026"
_MUCH_DELTA = (
    "delta above 0.001 promises next to nothing: of 1,000 people one or more may see a query leave that is theirs alone"
)
MEAN_QUERIES = 3
"""Queries of a made-up user on average; it is ours, since that of the log is not released."""
MOST_USERS = 100_000_000
_MADE_UP = "all rows are made up from noisy counts: users are nobody, and what stands together says nothing"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dp(DpSettings):
    """Release queries with noisy counts of the people who asked them, if enough people did.

    Promise: (epsilon, delta)-differential privacy of a person, with all of the person's rows.
    Not promised: anything about people who act together, or about one person with several user ids.

    Without a seed noise is OpenDP's, which needs the extra `dp`.

    - epsilon: the factor of the promise is exp(epsilon); above 0 and at most 100, less is safer
    - delta: additive slack of the guarantee; above 0, well below 1 in the number of users
    - max_queries: queries that each person counts for, 1 to 1000
    - mechanism: the noise: auto, truncated-geometric, gaussian, laplace or zealous
    - rounds: 1, or 2: people pick again, among what the first round has not released
    - choose: what a person counts for: random queries, or those that the person asked most often (frequent)
    - clicks: the part of epsilon and delta that is spent on the URLs clicked for released queries, below 1
    - max_clicks: pairs of a query and a URL that each person counts for, 1 to 1000
    - bot_threshold: users with more queries in a session are left out; None keeps every user
    - seed: repeat a run; never for releases, since whoever knows it takes the noise away

    >>> from queryveil.testing import log_of
    >>> log = log_of({f"persona{i}": ["red wine", f"wine {i}"] for i in range(400)})
    >>> release = Dp(epsilon=1.0, delta=1e-5, max_queries=2, seed=7).anonymize(log)
    >>> release.tallies.frame["query"].to_list()
    ['red wine']
    """

    def __post_init__(self) -> None:
        check_settings(self)
        check_seed(self.seed)
        # A part of the budget may be too small for any noise; better said now than after reading a log.
        _ = self.promise, self.noise

    @property
    def promise(self) -> DifferentialPrivacy:
        """What a release will promise."""
        return DifferentialPrivacy(epsilon=self.epsilon, delta=self.delta)

    @property
    def noise(self) -> tuple[Noise, ...]:
        """How noise will be added: one entry for each round, and one for clicks. No data is needed to say this."""
        return plans_for(self)

    def check(self, log: QueryLog) -> None:
        """Raise if no release can be made of such a log here, before anything of a budget is spent."""
        if self.clicks and log.terms_are_items:
            raise BadParameter("clicks", self.clicks, allowed="0 for transactions, whose items have no clicked URLs")
        if self.clicks and log.events is None and "url" not in log.columns:
            raise MissingColumn("the log", "url", found=log.columns)
        if self.seed is None:
            check_extra()

    def anonymize(self, log: QueryLog) -> Release:
        """Return a release of queries with counts that keeps the promise."""
        self.check(log)
        log = log.with_clicks_as_rows() if self.clicks else log
        rng = generator(self.seed)
        people = _people(log, bot_threshold=self.bot_threshold)
        progress.step("reading queries")
        owners, _ = encode(people["user"])
        queries, texts = _queries(people["query"])
        counts, is_out = self._rounds("queries", contributions_of(owners, queries), n_items=len(texts), rng=rng)
        frame = by_count(pl.DataFrame({"query": texts.filter(is_out), "count": counts[is_out]}, schema=TALLIES_SCHEMA))
        clicks = None
        if self.clicks:
            progress.step("reading clicks")
            items, pairs = _clicked(people["url"], queries, texts, is_out)
            clicked = contributions_of(owners, items)
            n_clicks, is_clicked = self._rounds("clicks", clicked, n_items=pairs.height, rng=rng)
            pairs = pairs.filter(is_clicked).with_columns(count=n_clicks[is_clicked])
            clicks = by_count(pairs.cast(pl.Schema(CLICKS_SCHEMA)))
        # Privacy: the layout of the log names its columns.
        data = Tallies(frame=frame, clicks=clicks, layout=tallies_layout(log.layout))
        return Release(data=data, manifest=self.manifest(data))

    def _rounds(
        self, what: str, contributions: Contributions, *, n_items: int, rng: np.random.Generator
    ) -> tuple[Int64s, Bools]:
        """Return the noisy counts of the items, and which of them leave."""
        noisy, is_out = np.zeros(n_items, np.int64), np.zeros(n_items, np.bool_)
        for plan in self.noise:
            if plan.what != what:
                continue
            # Privacy: a later round knows of an earlier one only what was published; picks are made anew.
            left = contributions.without(is_out)
            counts = left.counts(n_items=n_items, most=plan.max_items, choose=self.choose, rng=rng)
            counted = np.flatnonzero(counts >= plan.least)
            with_noise = counts[counted] + draw(plan, len(counted), rng=None if self.seed is None else rng)
            leaves = with_noise >= plan.threshold
            noisy[counted[leaves]] = with_noise[leaves]
            is_out[counted[leaves]] = True
        return noisy, is_out

    def manifest(self, data: Tallies) -> Manifest:
        """Return how the counts were made, on any engine."""
        plans = self.noise
        # Privacy: nothing here may depend on the log but through what is released, not even its size or the columns
        # it has: one person can be the reason for a column. Warnings are of the settings alone.
        warned = {SEEDED_NOISE: self.seed is not None, _MUCH_EPSILON: self.epsilon > 10, _MUCH_DELTA: self.delta > 1e-3}
        return Manifest(
            method="dp",
            promise=self.promise,
            parameters=parameters_of(self, rounds=sum(plan.what == "queries" for plan in plans)),
            counts=Counts(n_rows_before=0, n_rows_after=data.n_queries, n_users_before=0, n_users_after=0),
            removed={},
            columns=ColumnReport(ids=Ids.FRESH, time=TimeDetail.DROP),
            noise=plans,
            warnings=tuple(warning for warning, applies in warned.items() if applies),
            versions=versions() if self.seed is not None else versions("opendp"),
        )


def _people(log: QueryLog, *, bot_threshold: int | None) -> pl.DataFrame:
    """Return the rows of people; whether somebody is a program is told from that user's own rows."""
    people = without_bots(log, threshold=bot_threshold, removed={})
    return split_items(people.select("user", "query")) if log.terms_are_items else people


def _queries(asked: pl.Series) -> tuple[Int32s, pl.Series]:
    """Number the queries of the rows by their normal form, each distinct one looked at once; an empty one is -1."""
    codes, texts = encode_normal_form(asked)
    numbers = np.where(may_leave(texts).to_numpy(), np.arange(len(texts)), -1).astype(np.int32)
    return (numbers[codes] if len(texts) else codes), texts


def _clicked(urls: pl.Series, queries: Int32s, texts: pl.Series, is_out: Bools) -> tuple[Int32s, pl.DataFrame]:
    """Number the pairs of a released query and a URL of the rows, and give those pairs; other rows are -1."""
    is_released_click = is_url(urls).to_numpy() & (queries >= 0)
    is_released_click[is_released_click] = is_out[queries[is_released_click]]
    url_codes, distinct = encode(urls.filter(is_released_click))
    packed = pl.Series(queries[is_released_click].astype(np.int64) << 32 | url_codes)
    items = np.full(len(queries), -1, np.int32)
    items[is_released_click] = packed.rank("dense").to_numpy() - 1
    pairs = packed.unique().sort()
    frame = pl.DataFrame({"query": texts.gather(pairs // 2**32), "url": distinct.gather(pairs % 2**32)})
    return items, frame


def may_leave(texts: pl.Series) -> pl.Series:
    """Return which queries, in their normal form, can be released at all."""
    # NUL is a blank in some of the formats that a release is written in, and two queries would become one.
    return (texts != "") & ~texts.str.contains("\0", literal=True)


def is_url(urls: pl.Series) -> pl.Series:
    """Return which URLs can be released at all."""
    # What holds a blank is no URL, and some of the formats that a release is written in could not hold it.
    return urls.str.contains(r"^[^\s\x00]+$").fill_null(value=False)


def by_count(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows in an order that tells nothing but what stands in them, with no text of others."""
    texts = frame.columns[:-1]
    return with_own_texts(frame.sort(["count", *texts], descending=[True, *(False for _ in texts)]))


@njit(cache=True, nogil=True)
def take_largest(row_ptr: Int64s, keys: UInt64s, most: int) -> Bools:
    """Mark the `most` largest keys of each row; of equal ones the first."""
    taken = np.zeros(len(keys), np.bool_)
    best = np.empty(most, np.int64)
    for row in range(len(row_ptr) - 1):
        begin, end = row_ptr[row], row_ptr[row + 1]
        if end - begin <= most:
            taken[begin:end] = True
            continue
        n_best = 0
        for place in range(begin, end):
            slot = n_best
            while slot > 0 and keys[best[slot - 1]] < keys[place]:
                slot -= 1
            if slot < most:
                n_best = min(n_best + 1, most)
                for i in range(n_best - 1, slot, -1):
                    best[i] = best[i - 1]
                best[slot] = place
        taken[best] = True
    return taken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributions:
    """The distinct items of each person, and beside them how often each is there."""

    items: Rows[np.int32]
    times: Int32s

    def without(self, is_out: Bools) -> Contributions:
        """Return what is left of everybody's without some items."""
        stays = ~is_out[self.items.values]
        return Contributions(items=self.items.keep(stays), times=self.times[stays])

    def counts(self, *, n_items: int, most: int, choose: Choice, rng: np.random.Generator) -> Int64s:
        """Count for each item the people who picked it among their `most`.

        Privacy: what a person picks depends on the person's own rows and on chance alone, never on what others ask.
        """
        ptr, items = self.items
        keys = rng.integers(0, 2**64, len(items), dtype=np.uint64)
        if choose is Choice.FREQUENT:
            keys >>= np.uint64(32)
            keys |= self.times.astype(np.uint64) << np.uint64(32)
        return np.bincount(items[take_largest(ptr, keys, most)], minlength=n_items)


def contributions_of(owners: Int32s, items: Int32s) -> Contributions:
    """Gather the rows of each person; a negative item is none.

    >>> gathered = contributions_of(np.array([1, 0, 1, 1], np.int32), np.array([2, 2, 0, 2], np.int32))
    >>> gathered.items.to_lists(), gathered.times.tolist()
    ([[2], [0, 2]], [1, 1, 2])
    """
    has_item = items >= 0
    pairs, times = np.unique(owners[has_item].astype(np.int64) << 32 | items[has_item], return_counts=True)
    n_owners = int(owners.max(initial=-1)) + 1
    own = Rows.from_entries(pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.int32), n_rows=n_owners)
    return Contributions(items=own, times=times.astype(np.int32))


def synthesize(tallies: Tallies, *, n_users: int, rng: np.random.Generator) -> QueryLog:
    """Make up users who ask the tallied queries, each row a query drawn by its count; the counts are all it looks at.

    A user asks 1 query or more, 3 on average. With tallied clicks a row has a URL as often as its query was clicked.
    Where no query was released, there are no rows.

    Differs: nobody's session is kept or imitated. Queries are dealt to users one independently of another, so what
    people ask together or after one another is not in it; only how often queries are asked, and what is clicked.

    >>> tallies = Tallies(frame=pl.DataFrame({"query": ["jaguar", "red wine"], "count": [40, 10]}))
    >>> log = synthesize(tallies, n_users=1000, rng=generator(1))
    >>> log.n_users, round(float((log.frame["query"] == "jaguar").mean()), 1)
    (1000, 0.8)
    """
    if not 1 <= n_users <= MOST_USERS:
        raise BadParameter("synthesize", n_users, allowed=f"between 1 and {MOST_USERS:,} users")
    queries = tallies.frame.filter(pl.col("count") > 0)
    n_each = rng.geometric(1 / MEAN_QUERIES, n_users) if queries.height else np.zeros(n_users, np.int64)
    # Whole numbers, so that no rounding shifts the chances.
    ends, n = np.cumsum(queries["count"].to_numpy()), int(n_each.sum())
    drawn: Int64s = np.searchsorted(ends, rng.integers(0, ends[-1], n), side="right") if n else np.empty(0, np.int64)
    user = np.repeat(np.arange(1, n_users + 1), n_each)
    columns = {"user": pl.Series(user).cast(pl.String), "query": queries["query"].gather(drawn)}
    if tallies.clicks is not None:
        columns["url"] = _clicked_urls(queries, tallies.clicks, drawn=drawn, rng=rng)
    frame = pl.DataFrame(columns, schema={name: ROLES[name] for name in columns})
    return QueryLog(frame=frame, layout=tallies_layout(tallies.layout))


def synthesized(release: Release, *, n_users: int, seed: int | None = None) -> Release:
    """Return a release of tallies as one of made-up sessions, marked as such; it keeps the same promise."""
    if not isinstance(release.promise, DifferentialPrivacy):
        raise BadInput("sessions are made up from noisy counts alone, and this release is not of such")
    log = synthesize(release.tallies, n_users=n_users, rng=generator(seed))
    manifest = release.manifest
    return Release(
        data=log,
        manifest=msgspec.structs.replace(
            manifest,
            parameters=manifest.parameters | {"synthesized": True},
            counts=msgspec.structs.replace(manifest.counts, n_rows_after=log.n_rows, n_users_after=log.n_users),
            changed=manifest.changed | {"rows_added": log.n_rows},
            columns=msgspec.structs.replace(manifest.columns, ids=Ids.FRESH, time=TimeDetail.DROP),
            warnings=(*manifest.warnings, _MADE_UP),
        ),
    )


def _clicked_urls(queries: pl.DataFrame, clicks: pl.DataFrame, *, drawn: Int64s, rng: np.random.Generator) -> pl.Series:
    """Draw a URL for each row: by the counts of its query's clicks, none for what the query's own count has more."""
    place = queries.select("query").with_row_index("place")
    by_query = clicks.filter(pl.col("count") > 0).join(place, on="query").sort("place", "url")
    n_clicks = np.bincount(by_query["place"].to_numpy(), by_query["count"].to_numpy(), minlength=queries.height)
    before = np.concatenate([[0], np.cumsum(n_clicks)]).astype(np.int64)
    whole = np.maximum(queries["count"].to_numpy(), n_clicks).astype(np.int64)
    mark = rng.integers(0, whole[drawn])
    url = np.searchsorted(np.cumsum(by_query["count"].to_numpy()), before[drawn] + mark, side="right")
    is_click = mark < n_clicks[drawn]
    return by_query["url"].gather(pl.Series(np.where(is_click, url, 0)).set(pl.Series(~is_click), None))

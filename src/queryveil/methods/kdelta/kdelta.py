"""k-delta-anonymity by adding and suppressing queries: Hong, He, Vaidya, Adam and Atluri."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Int32s, Int64s, QueryLog, Reading
from queryveil.errors import BadParameter
from queryveil.guarantees import KdeltaAnonymity, NoPromise
from queryveil.methods.bots import caveats, check_queries, counts_of, rows_of_people
from queryveil.methods.kdelta._clusters import cluster_queries
from queryveil.methods.kdelta._equal import Outcome, Table, equal_by_edits, equal_by_suppression, nothing
from queryveil.methods.kdelta._objects import Objects, read_objects
from queryveil.methods.settings import KdeltaSettings
from queryveil.release import ColumnPolicy, Manifest, Release, TimeDetail, release_of, rows_for
from queryveil.release.texts import N_TOP, count_numbered, n_top_kept
from queryveil.rng import check_seed, generator
from queryveil.settings import check_settings, parameters_of
from queryveil.text.tokens import encode

_NO_EVENTS = "rows of kdelta are clicks, some of them made up, so events of a query would not be those of its row"


def losses(original: Objects, query: Int32s, url: Int32s) -> dict[str, float]:
    """Compare the distinct queries and URLs of the original log with those of released rows."""
    measures: dict[str, float] = {}
    for name, before, after in (("queries", original.query, query), ("urls", original.url, url)):
        n_rows = np.bincount(before[before >= 0])
        n_left = np.bincount(after[after >= 0], minlength=len(n_rows))
        if name == "queries" or n_rows.any():
            measures |= losses_of(name, n_rows, n_left)
    return measures


def losses_of(name: str, before: Int64s, after: Int64s, *, n_each: Int64s | int = 1) -> dict[str, float]:
    """Compare how often queries or URLs are in the original log and in a release; `n_each` have each pair of counts."""
    n_distinct, n_left = (int((n_each * (counts > 0)).sum()) for counts in (before, after))
    return {
        f"share_of_distinct_{name}_lost": round(1 - n_left / n_distinct, 6) if n_distinct else 0.0,
        f"top_{N_TOP}_{name}_kept": round(n_top_kept(before, after, n_each=n_each)),
    }


def name_clusters(query: Int32s, part: Int64s, texts: pl.Series) -> str:
    """Number the clusters of the released queries, in the order of their texts, as one text.

    Privacy: the numbers follow from the order of the texts, so they say which queries are alike and nothing else.

    >>> name_clusters(np.array([0, 1, 2]), np.array([9, 5, 9]), pl.Series(["c", "a", "b"]))
    '1 2 2'
    """
    present = np.unique(query)
    order = texts.gather(present).arg_sort().to_numpy()
    numbers, _ = encode(pl.Series(part[present[order]]))
    return " ".join(map(str, (numbers + 1).tolist()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kdelta(KdeltaSettings):
    """Add and suppress queries until k users have the same shares of queries and clicked URLs.

    Promise: every user has the same shares of rows in each pair of a query cluster and a URL as at least k-1 others,
    and in the released log any two queries of a cluster differ in at most `delta` of their clicked URLs.
    Not promised: anything about the number of a user's rows; nor about times, unless `columns` asks for `shared` ones:
    then the shares are those on each day, and a group's days are drawn from its users' own. Nor that a query was asked
    by more than one person, unless `min_query_users` asks for it. Queries leave in lower case with single blanks.

    - k: users who must have the same shares, 2 or more
    - delta: how far the clicked URLs of two queries of a cluster may differ, 0 (the same URLs) to 1
    - mode: `exact` gives equal shares; `paper` rounds as the paper does, and without `max_distance` promises nothing
    - max_distance: how far the shares of a group may differ (D in the paper), so that more rows stay; 0 is equal
    - additions: rows may be made up; without them users keep what their group shares
    - same_texts: a group shares the texts of its queries too, and that is promised
    - centroids: the shares that need fewest edits (`best`), or those of the users with most rows (`paper`)
    - min_cluster_users: clusters of queries that fewer users asked are left out first
    - min_query_users: queries that fewer users asked are left out first
    - bot_threshold: users with more queries in a session are left out; None keeps every user
    - columns: which other columns leave, and how ids and times change
    - seed: repeat a run; not for releases

    >>> rows = {"user": ["u1", "u2", "u3"], "query": ["red wine", "wine", "wine"], "url": ["w.example"] * 3}
    >>> release = Kdelta(k=3).anonymize(QueryLog.from_frame(rows))
    >>> release.promise
    KdeltaAnonymity(k=3, delta=0.5)
    >>> release.manifest.query_clusters
    '1 1'
    """

    columns: ColumnPolicy = field(default_factory=ColumnPolicy)

    def __post_init__(self) -> None:
        check_settings(self)
        KdeltaAnonymity(k=self.k, delta=self.delta)
        if self.mode == "paper" or self.max_distance:
            self.columns.check_not_shared()
        if not self.additions or self.same_texts:
            if self.mode == "paper":
                raise BadParameter("mode", self.mode, allowed="exact with --no-additions and with --same-texts")
            if self.max_distance:
                allowed = "0 with --no-additions and with --same-texts"
                raise BadParameter("max_distance", self.max_distance, allowed=allowed)
        check_seed(self.seed)

    @property
    def promise(self) -> KdeltaAnonymity | NoPromise:
        """What a release will promise."""
        if self.mode == "paper" and not self.max_distance:
            return NoPromise(reason="counts were rounded as in the paper, so shares within a group may differ")
        delta = 0.0 if self.same_texts else self.delta
        near = {"max_distance": self.max_distance} if self.max_distance else {}
        return KdeltaAnonymity(k=self.k, delta=delta, same_texts=self.same_texts, same_days=self._shares_days, **near)

    @property
    def _shares_days(self) -> bool:
        return self.columns.time is TimeDetail.SHARED

    @property
    def protected(self) -> tuple[str, ...]:
        """The columns, besides the query, that the promise covers: they leave without being asked for."""
        return ("url",)

    def anonymize(self, log: QueryLog) -> Release:
        """Return a release of the log that keeps the promise."""
        whole, log = log, rows_for(log, self.columns, needs_clicks=True, refusal=_NO_EVENTS)
        self.columns.check(log.columns, shares_days=self.mode == "exact")
        check_queries(log, method="kdelta")
        rng = generator(self.seed)
        progress.step("reading queries")
        original = read_objects(log.frame)
        removed: dict[str, int] = {"bad_rows_skipped": log.reading.n_bad_rows_skipped}
        people = self._people(log, original, removed)
        objects, cluster = self.without_rare(people, removed)
        make_equal = equal_by_edits if self.additions else equal_by_suppression
        table = Table(objects, cluster)
        outcome = make_equal(table, self, same_days=self._shares_days, rng=rng) if log.n_rows else nothing(cluster)
        progress.step("writing rows")
        url = objects.url[outcome.rows.source]
        frame = _frame(log.frame, objects, outcome, url)
        out = self.columns.apply(frame, outcome.rows.user, rng=rng, protected=self.protected)
        counts = counts_of(log, out)
        removed["rows_suppressed"] = outcome.edits.n_suppressed
        removed["users_left_empty"] = log.n_users - removed["bot_users"] - counts.n_users_after
        measures = outcome.measures | losses(original, outcome.query, url)
        # A query that only programs and one person asked is that person's.
        texts = count_numbered(people.texts, released=outcome.query, asked=people.query, users=people.user)
        manifest = Manifest(
            method="kdelta",
            promise=self.promise,
            parameters=parameters_of(self),
            counts=counts,
            texts=texts,
            removed=removed,
            changed={"rows_added": outcome.edits.n_added, "queries_exchanged": outcome.n_exchanged},
            measures=measures,
            query_clusters="" if self.same_texts else name_clusters(outcome.query, outcome.part, objects.texts),
            columns=self.columns.report(log.columns, protected=self.protected),
            warnings=self.warnings(
                log.columns,
                reading=log.reading,
                n_alone=self.columns.n_alone(out),
                n_added=outcome.edits.n_added,
                has_clicks=not log.n_rows or bool((original.url >= 0).any()),
                n_of_one_user=texts.n_of_one_person or 0,
            ),
        )
        return release_of(out, manifest, rows=log, log=whole, columns=self.columns, rng=rng)

    def _people(self, log: QueryLog, objects: Objects, removed: dict[str, int]) -> Objects:
        """Leave programs out, and count the rows that have no query."""
        stays = rows_of_people(log, threshold=self.bot_threshold, removed=removed).to_numpy()
        people = objects.keep(stays[objects.place])
        removed["rows_without_query"] = int(stays.sum()) - people.n_rows
        return people

    def without_rare(self, objects: Objects, removed: dict[str, int]) -> tuple[Objects, Int32s]:
        """Leave rare queries and rare clusters out; give each query's cluster too."""
        n_queries = len(objects.texts)
        asked_by = objects.n_users_by(objects.query, n_numbers=n_queries)
        common = objects.keep(asked_by[objects.query] >= self.min_query_users)
        progress.step("clustering queries")
        if self.same_texts and not self.additions:
            # Nothing may be exchanged, so users must share the texts themselves.
            cluster = np.arange(n_queries, dtype=np.int32)
        else:
            cluster = cluster_queries(common.query, common.url, n_queries=n_queries, delta=self.delta)
        of_row = cluster[common.query]
        asked_by = common.n_users_by(of_row, n_numbers=n_queries)
        kept = common.keep(asked_by[of_row] >= self.min_cluster_users)
        removed["rows_of_rare_queries"] = objects.n_rows - common.n_rows
        removed["rows_of_rare_clusters"] = common.n_rows - kept.n_rows
        return kept, cluster

    def warnings(
        self,
        columns: list[str],
        *,
        reading: Reading,
        n_alone: int | None,
        n_added: int,
        has_clicks: bool,
        n_of_one_user: int,
    ) -> tuple[str, ...]:
        """Return the warnings of a release of a log with these columns, on whatever engine it was made."""
        found = self.columns.warnings(columns, protected=self.protected, n_alone=n_alone)
        if n_added:
            found.append(f"rows that were made up, copies of other users' rows: {n_added:,}")
        if n_added and "time" in columns and self.columns.time is TimeDetail.KEEP:
            found.append("made-up rows can be recognised: their exact times are those of other rows of the same user")
        kept = self.columns.report(columns, protected=self.protected).kept
        if n_added and any(name != "rank" for name in kept):
            found.append("copied rows may be recognised by the columns that were kept")
        if not has_clicks:
            found.append("no clicks: queries are alike only if their texts are the same")
        if n_of_one_user:
            found.append(
                f"released queries that only one user asked: {n_of_one_user:,}; the promise lets them through, "
                "--min-query-users 2 drops them" + ("" if self.same_texts else ", --same-texts shares them")
            )
        found += caveats(reading, seed=self.seed, columns=columns, bot_threshold=self.bot_threshold)
        return tuple(found)


def _frame(frame: pl.DataFrame, objects: Objects, outcome: Outcome, url: Int32s) -> pl.DataFrame:
    """Return the released rows with all columns of the log."""
    rows = outcome.rows
    place, time_place = objects.place[rows.source], objects.place[rows.time_source]
    # Privacy: a time or a user's name is never copied along; both are those of the row's new owner.
    out = frame[pl.Series(place)].with_columns(
        user=frame["user"].gather(time_place), query=objects.texts.gather(outcome.query)
    )
    if "time" in frame.columns:
        out = out.with_columns(time=frame["time"].gather(objects.place[outcome.day_source]))
    if "url" in frame.columns:
        number = pl.Series(url).to_frame("number").select(pl.when(pl.col("number") >= 0).then("number")).to_series()
        out = out.with_columns(url=objects.urls.gather(number).cast(pl.String))
    return out

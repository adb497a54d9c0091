"""Exchange queries between users within their category: Pàmies-Estrems, Castellà-Roca and Viejo."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np
import polars as pl
from msgspec import structs

from queryveil import progress
from queryveil.data import Int64s, QueryLog
from queryveil.errors import BadParameter
from queryveil.guarantees import SwapAnonymity, parse_window
from queryveil.methods.bots import caveats, check_queries, counts_of
from queryveil.methods.settings import SwapSettings
from queryveil.methods.swap.pools import Pools, Swapped
from queryveil.methods.swap.preparing import Prepared, check_classifier, classifier_of, prepare
from queryveil.release import ColumnPolicy, Ids, Manifest, Release, TimeDetail, ids_per_window, release_of, rows_for
from queryveil.release.columns import window_numbers, window_starts
from queryveil.release.texts import count_texts
from queryveil.rng import check_seed, generator
from queryveil.settings import parameters_of
from queryveil.text.classifier import Classifier
from queryveil.text.tokens import encode

# Privacy: what somebody did would stand beside somebody else's id, and tell whose the query was.
_NO_EVENTS = "swap gives a query to somebody else, and its events would go with it"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Swap(SwapSettings):
    """Return each query to another user who asked for the same kind of thing, so that profiles keep their shape.

    Promise: every row left a pool of its category that held at least k events of at least l distinct users, no row
    pairs a user with a query that this user issued anywhere in the log, nobody has more rows in a category than before,
    and what a user issued several times is released once.
    Not promised: that a query's text does not tell who asked it: texts leave as they are, without identifiers that were
    recognised. Who asks for what kind of thing is what a release is meant to show.

    Times are dropped. Those that are `shared` are the start of the window in which a row left: the same for all ids of
    that window. Where others are asked for, rows have the time of the arrival that triggered their release, which is
    near the times of the user's own queries and tells which id is whose. The order of release is not published.

    - k: events that a pool holds before one leaves, 2 or more
    - l: distinct users among them, 2 to k; None is k, and the paper asks for 2
    - growth: what a pool's k is multiplied by where no waiting event can be released (δ in the paper), above 1
    - max_pool: events that a pool holds at most; over it the oldest is suppressed
    - shrink: a pool that has grown shrinks again while rows leave it, by two at an arrival; the paper's stay as large
    - repeats: what a user issues again, however it is typed, leaves `once`, or `all` of it as in the paper
    - window: people get another id in each stretch of time ("1d") that rows are released in, None keeps ids; those of a
      log without times, or that are kept, do not change
    - min_query_users: a text leaves once about so many people have asked it, with noise of its own that keeps at least
      two; the askings before that are left out. Where ids change, both are anew in each window. 1 lets all leave
    - drain: what waits at the end: `suppress` it, or `release` it as far as the promise allows
    - unclassified: queries without a category go to a `pool` of their own, or `drop` them
    - order: rows arrive by `time` (shuffled without times; within windows if askers are counted), or as in the `file`
    - classifier: `evidence` (also if None), `paper`, or one with tables of your own
    - columns: which other columns leave, and how ids and times change
    - seed: repeat a run; not for releases

    >>> rows = {"user": ["u1", "u2", "u3"], "query": ["tennis titles", "soccer scores", "champions league final"]}
    >>> release = Swap(k=2, seed=1).anonymize(QueryLog.from_frame(rows))
    >>> release.promise
    SwapAnonymity(k=2, l=2, once=True)
    >>> release.manifest.removed["rows_suppressed"]
    1
    """

    columns: ColumnPolicy = field(default_factory=ColumnPolicy)

    def __post_init__(self) -> None:
        SwapSettings.__post_init__(self)
        self.promise  # noqa: B018 - it checks l
        if self.min_query_users > 1 and not self.columns.time.is_covered:
            raise BadParameter("time", str(self.columns.time), allowed="drop or shared where texts need several people")
        if self.columns.time is TimeDetail.SHARED and self.window and parse_window(self.window) % timedelta(days=1):
            raise BadParameter("window", self.window, allowed="whole days where times are shared, such as 1d or 7d")
        if self.min_query_users > 1 and self.order == "file":
            raise BadParameter("order", "file", allowed="time where texts need several people")
        check_classifier(self.classifier)
        check_seed(self.seed)

    @property
    def promise(self) -> SwapAnonymity:
        """What a release will promise; without times ids do not change."""
        promise = self.pool_settings(remembered=None).promise
        return structs.replace(promise, window=None) if self.columns.ids is Ids.KEEP else promise

    def anonymize(self, log: QueryLog) -> Release:
        """Return a release of the log that keeps the promise."""
        whole, log = log, rows_for(log, self.columns, refusal=_NO_EVENTS)
        self.columns.check(log.columns, shares_days=self._changes_ids(log.frame))
        check_queries(log, method="swap")
        rng = generator(self.seed)
        progress.step("classifying")
        classifier, asked = classifier_of(self.classifier), log.frame.select("user", "query")
        prepared = prepare(asked, classifier=classifier, unclassified=self.unclassified)
        arrivals = self._order(log.frame, prepared.rows, rng)
        events = prepared.frame[pl.Series(arrivals)].with_columns(row=pl.Series(prepared.rows[arrivals]))
        progress.step("swapping")
        pools = Pools(self.pool_settings(remembered=None), seed=self.seed)
        swapped = self._release(pools, events, windows=self._windows(log.frame))
        released = swapped.released
        rows = self._in_windows(_rows(log.frame, released, events["row"]))
        owners, _ = encode(rows["user"])
        out = self.columns.apply(rows, owners, rng=rng)
        manifest = self._manifest(log, prepared, out, swapped=swapped, largest_k=pools.largest_k)
        return release_of(out, manifest, rows=log, log=whole, columns=self.columns, rng=rng)

    def _in_windows(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows whose users are another one in each window, if ids change."""
        if not self._changes_ids(rows):
            return rows
        windows = window_numbers(rows["time"], window=str(self.window))
        rows = rows.with_columns(ids_per_window(self.columns.released_ids(rows["user"]), windows))
        if self.columns.time is not TimeDetail.SHARED:
            return rows
        # Ids are of one window, so its start is the time of everybody who has a row in it.
        return rows.with_columns(window_starts(rows["time"], window=str(self.window)))

    def _changes_ids(self, frame: pl.DataFrame) -> bool:
        return self.promise.window is not None and "time" in frame.columns

    def _windows(self, frame: pl.DataFrame) -> pl.Series | None:
        """Return the window of each row in which the askers of its text are counted, if they are, anew in each."""
        is_counted = self.min_query_users > 1 and self._changes_ids(frame)
        return window_numbers(frame["time"], window=str(self.window)) if is_counted else None

    def _order(self, frame: pl.DataFrame, rows: Int64s, rng: np.random.Generator) -> Int64s:
        """Return the order in which the prepared rows arrive."""
        if self.order == "file":
            return np.arange(len(rows))
        # Privacy: askers arrive in no order, or ids would tell which rows left later than those of planted users.
        if (windows := self._windows(frame)) is not None:
            keys = (rng.random(len(rows)), windows.gather(rows), frame["time"].is_null().gather(rows))
            return np.lexsort(keys)
        if self.min_query_users > 1 or "time" not in frame.columns or frame["time"].null_count() == frame.height:
            return rng.permutation(len(rows))
        times = pl.DataFrame({"time": frame["time"].gather(rows)}).with_row_index("place")
        in_order = times.sort("time", nulls_last=True, maintain_order=True)["place"]
        return in_order.cast(pl.Int64).to_numpy()

    def _release(self, pools: Pools, events: pl.DataFrame, *, windows: pl.Series | None) -> Swapped:
        """Let all events arrive at once: what a user issues later counts as issued too. What waits is suppressed."""
        own = None if windows is None else windows.gather(events["row"])
        swapped = pools.add(events, window=None if own is None else own.to_numpy())
        released = swapped.released
        if self.drain == "release":
            # What leaves at the end was set free by the last arrival.
            last = pl.lit(max(0, events.height - 1), dtype=pl.Int64)
            drained = pools.drain().released.with_columns(arrival=last)
            released = pl.concat([released, drained], how="diagonal_relaxed") if drained.height else released
        n_suppressed = swapped.n_suppressed + pools.clear() + released.height
        if windows is not None and own is not None:
            # Privacy: in a later window than its own a row is not among the askers it was counted with.
            released = released.filter(windows.gather(released["row"]) == own.gather(released["arrival"]))
        return replace(swapped, released=released, n_suppressed=n_suppressed - released.height)

    def _manifest(
        self, log: QueryLog, prepared: Prepared, out: pl.DataFrame, *, swapped: Swapped, largest_k: int
    ) -> Manifest:
        counts = counts_of(log, out)
        n_found = sum(prepared.identifiers.values())
        n_ready = prepared.frame.height + prepared.n_unclassified_dropped
        n_categorised = prepared.frame.height - prepared.category_counts.get("Unclassified", 0)
        promise = self.promise if self._changes_ids(log.frame) else structs.replace(self.promise, window=None)
        return Manifest(
            method="swap",
            promise=promise,
            parameters=parameters_of(
                self, l=self.n_distinct, window=promise.window, classifier=_name_of(classifier_of(self.classifier))
            ),
            counts=counts,
            texts=count_texts(out["query"], asked=prepared.frame["query"], users=prepared.frame["user"]),
            removed={
                "bad_rows_skipped": log.reading.n_bad_rows_skipped,
                "rows_without_query": prepared.n_empty,
                "rows_of_identifiers": prepared.n_emptied,
                "rows_unclassified": prepared.n_unclassified_dropped,
                "rows_repeated": swapped.n_repeated,
                "rows_of_rare_queries": swapped.n_rare,
                "rows_suppressed": swapped.n_suppressed,
                "users_left_empty": log.n_users - swapped.released["user"].n_unique(),
                "identifiers": n_found,
            }
            | {f"identifiers_by_{rule.replace(' ', '_')}": n for rule, n in prepared.by_rule.items()},
            changed={"queries_exchanged": out.height},
            measures={"categorised": n_categorised / max(1, n_ready), "largest_k": largest_k},
            columns=self.columns.report(log.columns),
            warnings=(
                *self.columns.warnings(log.columns, n_alone=self.columns.n_alone(out)),
                *self._warnings(log, out.height + swapped.n_suppressed, swapped.n_suppressed),
            ),
        )

    def _warnings(self, log: QueryLog, n_came: int, n_suppressed: int) -> list[str]:
        found = []
        if self.columns.report(log.columns).kept:
            found.append("columns that were kept go with the query to its new user")
        if self.columns.ids is Ids.FRESH:
            found.append("user ids are fresh: who got whose query cannot be verified; with --ids keyed it can")
        if n_suppressed:
            in_time = " in their window" if self.min_query_users > 1 and self.promise.window else ""
            why = f"rows suppressed as no pool of k events and l users set them free{in_time}"
            found.append(f"{why}: {n_suppressed:,} of {n_came:,}")
        return found + caveats(log.reading, seed=self.seed, columns=log.columns, shuffled="users and queries")


def _name_of(classifier: Classifier) -> str:
    return str(classifier.kind) if classifier.table is Classifier().table else "own tables"


def _rows(frame: pl.DataFrame, released: pl.DataFrame, arrived: pl.Series) -> pl.DataFrame:
    """Return the released rows with all columns of the log."""
    out = frame[released["row"]].with_columns(user=released["user"], query=released["query"])
    if "time" in frame.columns:
        # Privacy: the time is that of the arrival; when the query itself was asked would lead back to who did.
        out = out.with_columns(time=frame["time"].gather(arrived.gather(released["arrival"])))
    return out

"""(k, m)-anonymity by deleting terms (Burghardt, Böhm, Guttmann and Clifton), or moving them up in a taxonomy first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Floats, Int32s, Int64s, QueryLog, Reading
from queryveil.errors import BadParameter
from queryveil.guarantees import KmAnonymity, parse_window
from queryveil.methods.bots import caveats, counts_of, without_bots
from queryveil.methods.km._deletion import Objective, check_values, choose, delete, label, share_times, term_values
from queryveil.methods.settings import KmSettings, Target
from queryveil.release import ColumnPolicy, Counts, Ids, Manifest, Release, TimeDetail, ids_per_window, window_starts
from queryveil.release.columns import window_numbers
from queryveil.release.events import release_of, rows_for
from queryveil.release.texts import count_numbered
from queryveil.rng import check_seed, generator
from queryveil.settings import check_settings, parameters_of
from queryveil.text import Tokens, tokenize
from queryveil.text.histories import Histories, collect, rewrite
from queryveil.text.tokens import encode

if TYPE_CHECKING:
    from queryveil.text.taxonomy import Taxonomy

_TIME_UNITS = ("1d", "7d", "28d")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Km(KmSettings):
    """Delete terms until every small combination is shared by k users.

    Promise: (k, m)-anonymity of the terms each user keeps.
    Not promised: anything about times, clicked URLs, counts of queries and of terms, or their order. Times are
    dropped unless they are asked for; those that are `shared` are covered by the promise: the start of a row's window,
    or without windows its day, week or four weeks, the finest that half of the rows can keep when they count as terms.

    - k: users who must share a combination of terms, 2 or more
    - m: terms that an attacker may know; None: whole histories are shared by k users
    - target: what should stay: most terms (log_size), users, bid, clicks, impressions or revenue; or random, fis
    - values: a table with the columns term, bid, clicks, impressions, for the targets named after them and revenue
    - restore: give deleted terms back where the promise allows it; the paper only deletes
    - taxonomy: a term moves up to what it is a kind of before it is deleted; only with the target log_size
    - window: each stretch of time ("1d") is anonymized by itself, and users get a new id in each
    - repeats: `all` rows leave as in the paper, or of equal texts of a released id `once`, a row drawn at random
    - bot_threshold: users with more queries in a session are left out; None keeps every user
    - columns: which other columns leave, and how ids and times change
    - seed: repeat a run; not for releases

    >>> from queryveil.testing import tiny_log
    >>> release = Km(k=2, m=1).anonymize(tiny_log())
    >>> release.promise
    KmAnonymity(k=2, m=1)
    """

    columns: ColumnPolicy = field(default_factory=ColumnPolicy)

    def __post_init__(self) -> None:
        check_settings(self)
        KmAnonymity(k=self.k, m=self.m, window=self.window)
        if self.taxonomy is not None and self.target is not Target.LOG_SIZE:
            raise BadParameter("target", str(self.target), allowed="log_size with a taxonomy")
        if self.taxonomy is not None and self.m is None:
            raise BadParameter("m", "none", allowed="a number with a taxonomy; clump makes whole histories alike")
        check_values(self.target, self.values)
        check_seed(self.seed)
        if self.window is None:
            if self.columns.time is TimeDetail.SHARED and self.m is None:
                raise BadParameter("m", "none", allowed="a number, or a window, where times are shared")
            return
        if self.columns.ids is Ids.KEEP:
            raise BadParameter("ids", "keep", allowed="fresh or keyed with a window: kept ids would join the windows")
        unit = self.columns.time.unit
        if unit is not None and parse_window(self.window) % unit:
            allowed = "a multiple of the released times: whole days, or whole hours with --time hour"
            raise BadParameter("window", self.window, allowed=allowed)

    @property
    def promise(self) -> KmAnonymity:
        """What a release will promise."""
        return KmAnonymity(k=self.k, m=self.m, window=self.window, items=self.taxonomy is not None)

    def anonymize(self, log: QueryLog) -> Release:
        """Return a release of the log that keeps the promise."""
        whole, log = log, rows_for(log, self.columns)
        self.columns.check(log.columns, shares_days=True, has_events=log.events is not None)
        rng = generator(self.seed)
        removed = {"bad_rows_skipped": log.reading.n_bad_rows_skipped}
        people = without_bots(log, threshold=self.bot_threshold, removed=removed)
        progress.step("reading terms")
        by_blanks = log.terms_are_items
        tokens = tokenize(people["query"], by_blanks=by_blanks)
        owners, window_of_owner = self._owners(people)
        histories = collect(tokens, owners, n_users=len(window_of_owner))
        entries = _by_window(window_of_owner[histories.entry_user])
        outcome = (
            self._delete(histories, tokens, entries, rng)
            if self.taxonomy is None
            else self._generalise(histories, tokens, self.taxonomy, entries, rng)
        )

        progress.step("writing queries")
        texts = rewrite(tokens, owners, histories, outcome.word, outcome.words)
        stays = (texts != "").to_numpy()
        code, distinct = encode(texts)
        n_left = int(stays.sum())
        if self.repeats == "once":
            order = rng.permutation(len(code))
            _, first = np.unique((owners.astype(np.int64) * len(distinct) + code)[order], return_index=True)
            stays &= np.isin(np.arange(len(code)), order[first])
            removed["rows_repeated"] = n_left - int(stays.sum())
        frame = people.with_columns(texts)
        if self.window is not None and self.columns.ids is Ids.KEYED:
            frame = frame.with_columns(ids_per_window(frame["user"], windows_of(frame, self.window)))
        frame, columns, time_unit = frame.filter(stays), self.columns, None
        if self.columns.time is TimeDetail.SHARED and "time" in frame.columns:
            if self.window is None:
                time_unit, times = self._share_times(frame, owners[stays], histories, outcome)
                columns = columns if time_unit else replace(columns, time=TimeDetail.DROP)
            else:
                times = window_starts(frame["time"], window=self.window)
            frame = frame.with_columns(times)
        out = columns.apply(frame, owners[stays], rng=rng)

        n_empty = int((tokens.query_terms.lengths[tokens.row_query] == 0).sum())
        gone = outcome.word < 0
        removed |= {
            "rows_without_terms_before": n_empty,
            "rows_without_terms_left": people.height - n_left - n_empty,
            "term_occurrences": int(histories.counts[gone].sum()),
            "terms": int((histories.support() > 0).sum() - (histories.keep(~gone).support() > 0).sum()),
        }
        left, word = histories, outcome.word
        if self.repeats == "once":
            left = collect(tokenize(texts.filter(stays), by_blanks=True), owners[stays], n_users=len(window_of_owner))
            word = left.terms
        notes = notes_on_counts(left, word)
        manifest = self.manifest(
            log.columns,
            by_blanks=by_blanks,
            reading=log.reading,
            counts=counts_of(log, out),
            removed=removed,
            notes=(*notes, *outcome.notes),
            n_alone=self.columns.n_alone(out),
            time_unit=time_unit,
        )
        manifest = msgspec.structs.replace(manifest, changed=outcome.changed, measures=outcome.measures)
        if not by_blanks:
            users = owners if self.window is None else encode(people["user"])[0]
            counted = count_numbered(distinct, released=code[stays], asked=code, users=users)
            manifest = msgspec.structs.replace(manifest, texts=counted)
        return release_of(out, manifest, rows=log, log=whole, columns=columns, rng=rng)

    def _delete(
        self, histories: Histories, tokens: Tokens, by_window: list[Int64s], rng: np.random.Generator
    ) -> _Outcome:
        worth, n_without_value = term_values(tokens.vocabulary, target=self.target, values=self.values)
        kept = np.zeros(len(histories.terms), np.bool_)
        for mine in by_window:
            part, terms = histories.part(mine)
            objective = Objective(target=self.target, worth=worth[terms], restore=self.restore)
            kept[mine] = choose(part, objective, k=self.k, m=self.m, rng=rng)
        note = f"terms without a value in the table, worth nothing to the target: {n_without_value}"
        notes = (note,) if n_without_value else ()
        return _Outcome(word=np.where(kept, histories.terms, NO_ITEM), words=tokens.vocabulary, notes=notes)

    def _generalise(
        self,
        histories: Histories,
        tokens: Tokens,
        taxonomy: Taxonomy,
        by_window: list[Int64s],
        rng: np.random.Generator,
    ) -> _Outcome:
        items = items_of(tokens.vocabulary, taxonomy)
        start = items.of_term[histories.terms]
        item_of_entry = start.copy()
        for mine in by_window:
            part, _ = histories.part(mine)
            item_of_entry[mine] = generalise(part, start[mine], items, k=self.k, m=self.m or 1, rng=rng)
        moved = (item_of_entry >= 0) & (item_of_entry != start)
        note = f"terms that the taxonomy does not know, kept or deleted as they are: {items.n_unknown_terms}"
        return _Outcome(
            word=item_of_entry,
            words=items.names,
            notes=(note,) if items.n_unknown_terms else (),
            changed={"term_occurrences_moved_up": int(histories.counts[moved].sum())},
            measures={"loss": round(loss(item_of_entry, start, items), 6)},
        )

    def _share_times(
        self, frame: pl.DataFrame, owners: Int32s, histories: Histories, outcome: _Outcome
    ) -> tuple[str | None, pl.Series]:
        """Return the released times of the rows that stay, and their unit: None if times fit in none."""
        progress.step("sharing times")
        has_item, n_items = outcome.word >= 0, len(outcome.words)
        released, _ = Histories.of_pairs(
            histories.entry_user[has_item], outcome.word[has_item], n_users=histories.n_users, n_terms=n_items
        )
        starts = {unit: window_starts(frame["time"], window=unit) for unit in _TIME_UNITS}
        return share_times(owners, starts, terms=released, k=self.k, m=self.m or 1)

    def _owners(self, frame: pl.DataFrame) -> tuple[Int32s, Int64s]:
        """Number the histories, one per user, or per user and window; return that of each row, and their windows."""
        users, distinct = encode(frame["user"])
        if self.window is None:
            return users, np.zeros(len(distinct), np.int64)
        windows, stretch = np.unique(windows_of(frame, self.window).to_numpy(), return_inverse=True)
        width = max(1, len(windows))
        found, owners = np.unique(users.astype(np.int64) * width + stretch, return_inverse=True)
        return owners.astype(np.int32), found % width

    def manifest(
        self,
        columns: list[str],
        *,
        by_blanks: bool,
        reading: Reading,
        counts: Counts,
        removed: dict[str, int],
        notes: Sequence[str] = (),
        n_alone: int | None = None,
        time_unit: str | None = None,
    ) -> Manifest:
        """Return what was done to a log with these columns; `time_unit` is that of shared times."""
        columns_now, is_timed = self.columns, "time" in columns and self.columns.time is TimeDetail.SHARED
        if is_timed and self.window is None and time_unit is None:
            notes = (*notes, "times are dropped: neither days nor weeks nor four weeks are shared in half of the rows")
            columns_now = replace(columns_now, time=TimeDetail.DROP)
        warnings = [*self.columns.warnings(columns, n_alone=n_alone), *notes]
        warnings += caveats(reading, seed=self.seed, columns=columns, bot_threshold=self.bot_threshold)
        if self.window is not None and self.columns.time is TimeDetail.DROP:
            warnings.append("without times windows cannot be distinguished: only the log as a whole can be verified")
        return Manifest(
            method="km",
            promise=msgspec.structs.replace(
                self.promise, items=by_blanks or self.taxonomy is not None, time_unit=time_unit
            ),
            parameters=parameters_of(self, taxonomy=None if self.taxonomy is None else self.taxonomy.source),
            counts=counts,
            removed=removed,
            columns=columns_now.report(columns),
            warnings=tuple(warnings),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Outcome:
    """The released item of each entry, a place in `words` or -1, and what there is to say of it."""

    word: Int32s
    words: pl.Series
    notes: tuple[str, ...] = ()
    changed: dict[str, int] = field(default_factory=dict)
    measures: dict[str, float] = field(default_factory=dict)


def notes_on_counts(histories: Histories, word: Int32s) -> list[str]:
    """Return a note if users are alone with their counts of items, by sums of a random number of 64 bits for each."""
    marks = generator(0).integers(2**64, size=int(word.max(initial=0)) + 2, dtype=np.uint64)
    marks[NO_ITEM] = 0
    so_far = np.concatenate([np.zeros(1, np.uint64), np.cumsum(marks[word] * histories.counts.astype(np.uint64))])
    sums = np.diff(so_far[histories.user_terms.ptr])
    n = int((np.unique(sums[sums != 0], return_counts=True)[1] == 1).sum())
    told = "counts of terms are not covered by the promise; users with a set of them that nobody else has"
    return [f"{told}: {n:,}"] if n else []


def _by_window(window_of_entry: Int64s) -> list[Int64s]:
    """Return the entries of each window, in ascending order."""
    order = np.argsort(window_of_entry, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(window_of_entry[order])) + 1)


def windows_of(frame: pl.DataFrame, window: str) -> pl.Series:
    """Return the window of each row; raise for a log without times."""
    if "time" not in frame.columns:
        raise BadParameter("window", window, allowed="left out for a log without times")
    return window_numbers(frame["time"], window=window)


NO_ITEM = -1
"""In place of an item: the term reached the root or has no place in the taxonomy, and is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Items:
    """The terms of a log as leaves below the nodes of a taxonomy: what a term can be released as.

    The first items are the taxonomy's nodes, the root among them; a term that is not the name of a node has an item of
    its own below its node, or below the root if the taxonomy does not know it.
    """

    parent: Int32s
    loss: Floats
    names: pl.Series
    of_term: Int32s
    n_unknown_terms: int

    def price_of_a_step(self) -> Floats:
        """Return what the next step up costs each item."""
        price: Floats = self.loss[np.maximum(self.parent, 0)] - self.loss
        return price


def items_of(vocabulary: pl.Series, taxonomy: Taxonomy) -> Items:
    """Return the items of a vocabulary: every term at its place below the taxonomy."""
    nodes = taxonomy.find_all(vocabulary)
    names = pl.Series(taxonomy.names, dtype=pl.String)
    known = nodes > 0
    is_node = known & (names.gather(np.maximum(nodes, 0)) == vocabulary).to_numpy()
    n_nodes = len(names)
    own = np.flatnonzero(~is_node)
    of_term = nodes.astype(np.int32)
    of_term[own] = n_nodes + np.arange(len(own), dtype=np.int32)
    # A node looks like a term only where it is one: a leaf that somebody searched for by its name.
    marked = np.ones(n_nodes, np.bool_)
    marked[nodes[is_node]] = False
    marked[taxonomy.parent[1:]] = True
    # One word between angle brackets, so that nobody takes it for something that was searched for.
    one_word = "<" + taxonomy.item_names + ">"
    names_shown = pl.select(pl.when(pl.Series(marked)).then(one_word).otherwise(names)).to_series()
    return Items(
        parent=np.concatenate([taxonomy.parent, np.maximum(nodes[own], 0)]).astype(np.int32),
        loss=np.concatenate([taxonomy.loss, np.zeros(len(own))]),
        names=pl.concat([names_shown, vocabulary.gather(own)]),
        of_term=of_term,
        n_unknown_terms=int((~known).sum()),
    )


def generalise(
    histories: Histories, start: Int32s, items: Items, *, k: int, m: int, rng: np.random.Generator
) -> Int32s:
    """Return the released item of each entry, so that (k, m)-anonymity holds.

    `start` has the item of each entry. Two orders of giving way are tried, and the outcome of less loss wins.
    """
    # The item whose next step loses least moves first, or the one that is still most special.
    costs = (items.price_of_a_step(), items.loss)
    outcomes = [
        _move_up(histories, start, items, cost, k=k, m=m, rng=stream)
        for cost, stream in zip(costs, rng.spawn(len(costs)), strict=True)
    ]
    return min(outcomes, key=lambda outcome: loss(outcome, start, items))


def loss(item_of_entry: Int32s, start: Int32s, items: Items) -> float:
    """The mean loss over user-terms: LM of the item that a term is released as, 0 for the term itself, 1 if deleted."""
    if len(item_of_entry) == 0:
        return 0.0
    lost = np.where(item_of_entry == NO_ITEM, 1.0, items.loss[np.maximum(item_of_entry, 0)])
    return float(np.where(item_of_entry == start, 0.0, lost).mean())


def _move_up(
    histories: Histories, start: Int32s, items: Items, cost: Floats, *, k: int, m: int, rng: np.random.Generator
) -> Int32s:
    """Find what cannot stay, move the cheaper half of it one step up, and look again until everything can stay."""
    item_of_entry = start.copy()
    user, n_items = histories.entry_user, len(items.parent)
    step = items.price_of_a_step()
    n_rounds = 0
    while True:
        n_rounds += 1
        progress.step(f"moving terms up, round {n_rounds}")
        here = np.flatnonzero(item_of_entry != NO_ITEM)
        now, place = Histories.of_pairs(user[here], item_of_entry[here], n_users=histories.n_users, n_terms=n_items)
        labelled = label(now, k=k)
        # Among equals the rarer item gives way: the fraction is too small to matter otherwise.
        scores = cost + now.support() / (1e9 * (now.support().max(initial=0) + 1))
        alive = delete(labelled, scores[labelled.label_term], k=k, m=m, rng=rng)
        moving = here[~labelled.marks(alive, len(now.terms))[place]]
        if len(moving) == 0:
            return item_of_entry
        # What the cheap moves settle need not move at a higher price. On BMS-WebView-1 at k=5 this loses 0.0058 for
        # 0.0077 when all move at once (m=2), and 0.0197 for 0.0225 (m=3).
        price = step[item_of_entry[moving]]
        moving = moving[price <= np.median(price)]
        above = items.parent[item_of_entry[moving]]
        item_of_entry[moving] = np.where(above <= 0, NO_ITEM, above)

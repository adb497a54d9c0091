"""Attack by a log of the same people from another time, with their names: whose pseudonym is whose?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.attacks import _likelihood, _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.attacks.sensitive import released_categories
from queryveil.data import Floats, Groups, Int64s, QueryLog
from queryveil.data.rows import Rows
from queryveil.pairing import Pair
from queryveil.rng import generator
from queryveil.text.taxonomy.tree import places

CHANGES = 0.8
"""The share of what people ask later that has nothing to do with what they asked before."""
MOST_THINGS = 100
"""Of a longer log of a person only so many terms and pages are looked at, those that fewest of the release have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterLog(Seeker):
    """Know what the same people asked at another time, and name who of the release each of them is.

    A candidate scores log(1 + odds) for each term, clicked page and category of the person's other log, where the odds
    are how much more often the candidate asked for it than all do: what somebody asks again counts by its rarity, and
    what is new counts nothing. The likeliest candidate is named. Targets are people of the original who are in the
    other log; a group is right for its members, each with a chance of one in their number.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    """

    name = "later_log"
    knows = "a log of the same people from another time"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        yield from _scoring.no_people_or_groups(pair, auxiliary)
        if auxiliary.later is None:
            yield "needs a log of the same people from another time: --later FILE"
        elif not auxiliary.later.frame["user"].is_in(pair.users.implode()).any():
            yield "nobody of the log is in the other one, going by their ids"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        rng = generator(self.seed)
        later = auxiliary.later or pair.log
        number = places(later.frame["user"].unique(maintain_order=True), table=pair.users)
        eligible = np.unique(number[number >= 0]).astype(np.int64)
        targets = _scoring.draw_targets(eligible, n_targets=self.n_targets, rng=rng)
        things = Things(pair, later)
        known = things.of(targets)
        items, odds = _likelihood.odds_of(
            known.values,
            holders=things.holders,
            n_candidates=pair.n_candidates,
            counts=things.counts,
            generalisations=things.generalisations,
            by_accident=CHANGES,
        )
        pick = rng.random(len(targets))
        guesses = _likelihood.guess_likeliest(known.ptr, items, things.holders, odds, pair.n_candidates, pick)
        if isinstance(pair.release.data, Groups):
            right, n_by_chance = _in_groups(pair, auxiliary, guesses.candidate, targets=targets, eligible=eligible)
        else:
            right = pair.identity.chance(guesses.candidate, user=targets)
            n_by_chance = _scoring.found_by_chance(pair, users=targets, among=eligible)
        return self.people_found(right, confidence=guesses.confidence, n_by_chance=n_by_chance)


def _in_groups(
    pair: Pair, auxiliary: AuxiliaryData, group: Int64s, *, targets: Int64s, eligible: Int64s
) -> tuple[Floats, float]:
    """Return the chance that each named group is the person, who is one of its members, and what blind guessing finds.

    Whoever names any one group finds one person in each of its members who could be sought.
    """
    group_of = _scoring.group_of_users(pair, auxiliary)
    members = pair.release.groups.frame["members"].to_numpy()
    right = np.where((group >= 0) & (group == group_of[targets]), 1 / members[group], 0.0)
    own = group_of[eligible]
    n_sought = np.bincount(own[own >= 0], minlength=len(members))
    best = float((n_sought / members).max(initial=0)) / max(1, len(eligible))
    return right.astype(np.float64), best * len(targets)


class Entries(NamedTuple):
    """Who has which thing, and how often."""

    who: Int64s
    thing: Int64s
    n: Int64s | Floats


class Things:
    """Terms, clicked pages and categories, numbered in this order: who of the release has each, and how often."""

    def __init__(self, pair: Pair, later: QueryLog) -> None:
        other, n_terms = _scoring.other_log(pair, later), pair.after.n_terms
        sizes, released, asked = [n_terms], [_released_terms(pair)], [_asked_terms(other, n_terms=n_terms)]
        if (pages := _pages(pair, later)) is not None:
            released.append(pages[0])
            asked.append(pages[1])
            sizes.append(pages[2])
        counts = released_categories(pair)
        who, subject = np.nonzero(counts)
        released.append(Entries(who, subject, counts[who, subject]))
        asked.append(_asked_categories(pair, other))
        first, n = np.cumsum([0, *sizes]), sum(sizes) + counts.shape[1]
        candidate, thing, n_each = _joined(released, first)
        order = np.lexsort((candidate, thing))
        self.holders = Rows.from_entries(thing[order], candidate[order].astype(np.int32), n_rows=n)
        self.counts = n_each[order]
        self.generalisations = _with_further(pair.generalisations, n=n)
        row, thing, _ = _joined(asked, first)
        user = places(later.frame["user"], table=pair.users)[row].astype(np.int64)
        cells = np.unique(user[user >= 0] * n + thing[user >= 0])
        self._own = Rows.from_entries(cells // n, cells % n, n_rows=pair.n_users)

    def of(self, users: Int64s) -> Rows[np.int64]:
        """Return the things of some users in the other log, at most those that fewest of the release have."""
        some = self._own.take(users)
        order = np.lexsort((self.holders.lengths[some.values], some.row_of_entry))
        return Rows(some.ptr, some.values[order]).keep(some.place_in_row < MOST_THINGS)


def _joined(parts: Sequence[Entries], first: Int64s) -> Entries:
    """Return all entries as one, the things of every kind numbered from its first."""
    shifted = (part._replace(thing=part.thing + start) for part, start in zip(parts, first, strict=False))
    return Entries(*(np.concatenate(column) for column in zip(*shifted, strict=True)))


def _with_further(items: Rows[np.int64] | None, *, n: int) -> Rows[np.int64] | None:
    """Return what may stand for each of n things: pages and categories, which come behind the terms, for themselves.

    >>> _with_further(Rows.from_lists([[1], [1]]), n=4).to_lists()
    [[1], [1], [2], [3]]
    """
    if items is None:
        return None
    more = np.arange(items.n_rows, n)
    ptr = np.append(items.ptr, items.ptr[-1] + 1 + np.arange(len(more)))
    return Rows(ptr, np.append(items.values, more).astype(np.int64))


def _released_terms(pair: Pair) -> Entries:
    after = pair.after
    return Entries(after.entry_user.astype(np.int64), after.terms.astype(np.int64), after.counts.astype(np.int64))


def _asked_terms(other: _scoring.OtherLog, *, n_terms: int) -> Entries:
    """Return the row and the term of each term of the other log that original or release have."""
    terms = other.tokens.row_terms()
    there = terms.values < n_terms
    term = terms.values[there].astype(np.int64)
    return Entries(terms.row_of_entry[there], term, np.ones(len(term), np.int64))


def _asked_categories(pair: Pair, other: _scoring.OtherLog) -> Entries:
    """Return the row and the category of each query of the other log that has one."""
    category = _scoring.categories_of(pair, other)[other.tokens.row_query].astype(np.int64)
    row = np.flatnonzero(category >= 0)
    return Entries(row, category[row], np.ones(len(row), np.int64))


def _pages(pair: Pair, later: QueryLog) -> tuple[Entries, Entries, int] | None:
    """Return who of the release clicked which page, which row of the other log did, and the number of pages.

    None if the release or the other log has no clicks.
    """
    if not isinstance(pair.release.data, QueryLog):
        return None
    logs = ((pair.release.log, pair.candidate), (later, np.arange(later.n_rows)))
    rows = [log.with_frame(log.frame.with_columns(who=pl.Series(who).cast(pl.Int64))) for log, who in logs]
    clicks = [each.with_clicks_as_rows().frame for each in rows]
    if any("url" not in frame.columns for frame in clicks):
        return None
    pages = clicks[0].select("url").drop_nulls().unique(maintain_order=True).with_row_index("page")
    counted = [
        each.join(pages, on="url").group_by("who", "page", maintain_order=True).agg(n=pl.len()).cast(pl.Int64)
        for each in clicks
    ]
    released, asked = (Entries(*(each[name].to_numpy() for name in ("who", "page", "n"))) for each in counted)
    return released, asked, len(pages)

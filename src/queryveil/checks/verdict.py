"""The result of verification: a verdict with witnesses that contain no text of the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, ClassVar, Literal, get_args

import msgspec
import polars as pl

from queryveil.checks.tokens import terms_of
from queryveil.data import Groups, QueryLog, Tallies, Transactions
from queryveil.errors import BadInput
from queryveil.guarantees import DifferentialPrivacy, Guarantee, KmAnonymity, TransactionAnonymity
from queryveil.html_tables import Cell, facts

_OfHistories = Literal["combination", "history", "linked_windows", "invented"]
_OfTransactions = Literal["transaction", "invented_transactions", "invented_items"]
_OfClusters = Literal["wide_cluster", "shares", "invented_pair"]
_OfGroups = Literal["linked_group", "linked_term", "missing_holders", "contradiction"]
_OfMembers = Literal["invented_members", "invented_term", "other_members", "other_holders"]
_OfPools = Literal["own_query", "small_pool", "few_users", "surplus_row", "surplus_query"]
_OfNoise = Literal["no_noise", "odd_noise", "weak_noise", "parts_epsilon", "parts_delta", "exact_count"]
_OfCounts = Literal["small_count", "untidy_query", "unasked_query", "large_count"]
_OfClicks = Literal["small_click", "stray_click", "unmade_click", "large_click"]
_OfRows = Literal["more_columns", "odd_id", "not_made_up"]
_OfManifest = Literal["other_promise", "other_parts", "other_items", "other_size", "other_clicks", "other_order"]
_OfLogs = Literal[_OfHistories, _OfTransactions, _OfClusters, _OfGroups, _OfMembers, _OfPools]
Kind = Literal[_OfLogs, _OfNoise, _OfCounts, _OfClicks, _OfRows, _OfManifest]
_ABOUT_QUERIES: tuple[Kind, ...] = (*get_args(_OfClusters), *get_args(_OfPools), *get_args(_OfCounts))
"""What is shown of these are whole queries."""
_ABOUT_CLICKS: tuple[Kind, ...] = get_args(_OfClicks)
"""Of these, a query and a URL."""
UNIT = 1e-15
"""In a witness, epsilons and deltas are whole numbers of this."""


def in_units(value: object) -> int:
    """Return an epsilon or a delta as a witness has it; what is no number is 0.

    >>> in_units(1e-5)
    10000000000
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return ceil(value / UNIT) if 0 <= value < 1e6 else ceil(1e6 / UNIT)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Witness:
    """One violation, by its place in the log that was verified.

    `rows` are data rows, counted from 1; `positions` say which term of each row is meant, counted from 1. What `size`,
    `support` and `needed` count depends on the `kind`.

    - combination, history: `size` terms of one user that only `support` users share where `needed` should; for
      each term the first of that user's rows that holds it.
    - linked_windows: one user id in `support` windows where `needed` (1) is allowed; its first row in two of them.
      No terms, so `size` is 0.
    - invented: something that `support` users or rows have in the release and only `needed` in the original: a term
      (`size` 1, with its first row), or with `size` 0 the users or rows as a whole.
    - transaction: a bag of `size` items that only `support` rows hold where `needed` should; the first of these rows.
    - invented_items: `support` items of a kind in the release, only `needed` in the original; with `size` 1 an item and
      all below it in the taxonomy, with one place where it stands, with `size` 0 all items.
    - invented_transactions: `support` transactions in the release, only `needed` in the original.
    - wide_cluster: two of `size` queries of a cluster, with `support` URLs clicked for both and `needed` for either;
      the first row of each of the two.
    - shares: shares over `size` pairs of cluster and URL that only `support` users have where `needed` should; the
      first row of each of these users.
    - invented_pair: a query with its URL in `support` rows of the release, in `needed` of the original; its first row.

    Of groups of profiles a row is a group.

    - linked_group: a group of `size` members who bring in `support` terms where `needed` should be.
    - linked_term: a term that `support` members of its group hold where `needed` may.
    - missing_holders: a group of `size` members that does not say how many of them hold each of its `needed` terms.
    - contradiction: a group whose counts cannot all be true: `size` members, `support` terms in all, `needed` distinct.
    - invented_members: `support` members in the release, only `needed` users in the original.
    - other_members, other_holders: a group states `support` members, or holders of a term or of all its terms, and
      `needed` are counted in the membership file.
    - invented_term: a term that at least `support` members hold, only `needed` users in the original; its first place.

    Where queries change hands, each is about one row (`size` 1).

    - own_query: the user of the row issued its query, `support` times.
    - small_pool, few_users: at most `support` events or users waited where `needed` should.
    - surplus_row: the `support`-th row that the user has in a category, after `needed` queries at most.
    - surplus_query: the `support`-th row with this text, which had been issued `needed` times at most.

    Of noisy counts, with epsilons and deltas in units of 1e-15:

    - no_noise: `support` counts, or all if 0, of which the manifest does not say what noise they got.
    - odd_noise, weak_noise: a part of the noise (the row is its number) whose mechanism is none, or that has a delta of
      `support` where `needed` is stated.
    - parts_epsilon, parts_delta: those of all parts, `support`, are more than the promised `needed`.
    - exact_count: the manifest tells of the log itself in `support` places.
    - small_count, small_click: a count of `support`, below the lowest threshold, `needed`.
    - untidy_query: a query that is not in its normal form. stray_click: a click of a query that was not released.
    - unasked_query, unmade_click: `support` users of the original are behind it, where `needed` must be.
    - large_count, large_click: a count of `support`, where noise on the users behind it gives at most `needed`.
    - more_columns, odd_id: `support` columns or ids that rows made up from counts do not have.
    - not_made_up: `support` rows of which the manifest does not say that all are made up.
    - other_promise, other_parts, other_items, other_size: the manifest says `support` in one place, `needed` follows
      from another, or from what was released.
    - other_clicks: `support` clicks in the release, where the settings ask for some (`needed` 1) or for none.
    - other_order: `support` rows are not where their counts and texts put them.
    """

    size: int = 0
    support: int
    kind: Kind
    rows: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    needed: int

    def in_words(self) -> str:
        """Return the violation in one line.

        >>> Witness(kind="small_count", size=1, support=3, needed=12, rows=(7,)).in_words()
        'a query left with a count of 3, and 12 is the least that may (row 7)'
        """
        n, needed, row = self.support, self.needed, self.rows[0] if self.rows else 0
        rows = f"row {row}" if len(set(self.rows)) == 1 else f"rows {_listed(self.rows)}"
        if not self.rows:
            rows = "counted on a cluster, which does not tell the rows"
        are_needed = f"{needed} are needed ({rows})"
        terms, members = _count(self.size, "term"), _count(self.size, "member")
        members_stated = _count(n, "member")
        invented = f"a term ({rows})" if self.rows else "the log as a whole"
        whole, now, before = "the release as a whole", f"{_count(n, 'row')} of the release", f"{needed} in the original"
        item = f"an item and what is below it ({rows})" if self.rows else whole
        shared = f"share {n} of the {_count(needed, 'URL')} clicked for them"
        cells = f"{self.size:,} {'pair' if self.size == 1 else 'pairs'} of cluster and URL"
        is_or_are = "is" if needed == 1 else "are"
        behind = f"by {_count(n, 'user')} of the original, {needed:,} {is_or_are} needed (row {row})"
        least, most = f"{needed:,} is the least that may (row {row})", f"noise gives at most {needed:,} (row {row})"
        there, allowed = f"{n * UNIT:.4g}", f"{needed * UNIT:.4g}"
        clicks = f"no clicks, and the release has {_count(n, 'count')} of such"
        if needed:
            clicks = "clicks, and the release has no counts of any"
        sentences: dict[Kind, str] = {
            "combination": f"a combination of {terms} is shared by {_count(n, 'user')}, {are_needed}",
            "history": f"a whole history of {terms} is shared by {_count(n, 'user')}, {are_needed}",
            "linked_windows": f"one user id stands in {_count(n, 'window')} ({rows})",
            "invented": f"{invented} has {n} users or rows in the release, the original {needed}",
            "transaction": f"a bag of {_count(self.size, 'item')} is held by {_count(n, 'transaction')}, {are_needed}",
            "invented_items": f"{item} has {_count(n, 'item')}, the original {needed}",
            "invented_transactions": f"{item} has {_count(n, 'transaction')}, the original {needed}",
            "wide_cluster": f"two queries of a cluster of {self.size:,} {shared} ({rows})",
            "shares": f"shares over {cells} are those of {_count(n, 'user')}, {are_needed}",
            "invented_pair": f"a query with its URL stands in {now}, in {needed} before ({rows})",
            "linked_group": f"the members of a group ({self.size:,}) bring in {_count(n, 'term')}, {are_needed}",
            "linked_term": f"a term of a group is held by {n} of its members, {needed} {is_or_are} allowed ({rows})",
            "missing_holders": f"a group of {members} does not say how many hold each term ({rows})",
            "contradiction": f"the counts of a group of {members} cannot all be true ({rows})",
            "invented_members": f"{whole} has {_count(n, 'member')}, the original {_count(needed, 'user')}",
            "invented_term": f"a term has at least {_count(n, 'holder')} in the release, {before} ({rows})",
            "other_members": f"a group states {members_stated}, {needed:,} in the membership file ({rows})",
            "other_holders": f"a group states {_count(n, 'holder')}, {needed:,} in the membership file ({rows})",
            "own_query": f"a user was given a query of their own ({rows})",
            "small_pool": f"a query left when at most {_count(n, 'event')} waited, {are_needed}",
            "few_users": f"a query left when at most {_count(n, 'user')} waited, {are_needed}",
            "surplus_row": f"a user was given {_count(n, 'row')} of a category and had asked {needed} by then ({rows})",
            "surplus_query": f"a text was released {_count(n, 'time')} and issued {needed} by then ({rows})",
            "no_noise": "counts leave, and the manifest does not say what noise was added to them",
            "odd_noise": f"part {row} of the noise has values that its mechanism cannot have",
            "weak_noise": f"part {row} of the noise has a delta of {there} at its epsilon, and {allowed} is stated",
            "parts_epsilon": f"the epsilons of all noise make {there}, and {allowed} is promised",
            "parts_delta": f"the deltas of all noise make {there}, and {allowed} is promised",
            "exact_count": f"the manifest tells of the log itself, without noise, in {_count(n, 'place')}",
            "small_count": f"a query left with a count of {n:,}, and {least}",
            "small_click": f"a click left with a count of {n:,}, and {least}",
            "untidy_query": f"a query is not in lower case with single blanks, which may mark a person (row {row})",
            "stray_click": f"a click belongs to no query of the release (row {row})",
            "unasked_query": f"a query was asked {behind}",
            "unmade_click": f"a click was made {behind}",
            "large_count": f"a query left with a count of {n:,}, and {most}",
            "large_click": f"a click left with a count of {n:,}, and {most}",
            "more_columns": f"rows of made-up users have {_count(n, 'column')} that no count is about",
            "odd_id": f"{_count(n, 'id')} of made-up users are none of the numbers from 1 on",
            "not_made_up": f"{_count(n, 'row')} of users left, and the manifest does not say that all are made up",
            "other_promise": f"the settings have {there} where {allowed} is promised",
            "other_parts": f"the noise has {_count(n, 'part')}, and the settings ask for {needed:,}",
            "other_items": f"part {row} of the noise is for {_count(n, 'count')} a person, not for {needed:,}",
            "other_size": f"the manifest says {n:,} where the release has {needed:,} queries, rows or users",
            "other_clicks": f"the settings ask for {clicks}",
            "other_order": f"rows are not by count and text, in {_count(n, 'place')}, which may tell of the log",
        }
        return sentences[self.kind]


Found = tuple[int, list[Witness]]
"""The number of violations, and witnesses of the first of them."""
_HOLDS_MADE_UP = (
    "holds as far as it can be checked: the noise that the manifest states keeps epsilon and delta. The rows are made "
    "up; their counts are not in the release."
)
BESIDE = "not covered by the promise, beside the data: "
"""How a note on a report in the folder begins; it limits nothing of what was checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a log keeps a promise, and where it does not.

    `n_violations` counts distinct combinations of the smallest size that has any (each larger one around them is
    violated too and not counted; within each window by itself), or distinct histories, bags, ids, clusters, vectors of
    shares, groups or terms of groups, rows where queries change hands (once for each rule that a row breaks), or what
    is invented; it is exact. `n_users` are the user ids in the log; `n_checked_users` the histories with at least one
    term, which are more than the users where ids stand in several windows. Of transactions each counts as a user, of
    groups each member, of noisy counts each count, or each row if it `is_made_up` from such counts. At most ten
    witnesses are kept, the smallest first. `faults` are what else is wrong with the release: files, columns, times, ids
    and counts that are not what its manifest says, or a promise that is weaker than expected, in one line each.
    """

    N_KEPT: ClassVar[int] = 10

    promise: Guarantee
    holds: bool = True
    witnesses: tuple[Witness, ...] = ()
    n_violations: int = 0
    n_users: int
    n_checked_users: int
    notes: tuple[str, ...] = ()
    is_made_up: bool = False
    faults: tuple[str, ...] = ()

    def with_faults(self, faults: Iterable[str], *, notes: Iterable[str] = ()) -> Verdict:
        """Return this verdict with what else is wrong with the release."""
        found = (*self.faults, *faults)
        return replace(self, holds=self.holds and not found, faults=found, notes=(*self.notes, *notes))

    def joined(self, *, witnesses: Iterable[Witness], n_violations: int, notes: Iterable[str] = ()) -> Verdict:
        """Return this verdict with further violations."""
        return replace(
            self,
            holds=self.holds and not n_violations,
            witnesses=tuple(sorted([*self.witnesses, *witnesses])[: self.N_KEPT]),
            n_violations=self.n_violations + n_violations,
            notes=(*self.notes, *notes),
        )

    def in_words(self) -> str:
        """Return the verdict in one line."""
        if self.holds and self.is_made_up:
            return f"{self.promise.title()} {_HOLDS_MADE_UP}"
        if self.holds:
            nouns = {TransactionAnonymity: "transaction", DifferentialPrivacy: "count"}
            noun = nouns.get(type(self.promise), "user")
            is_limited = any(not note.startswith(BESIDE) for note in self.notes)
            limit = ", as far as it can be checked" if is_limited else ""
            return f"{self.promise.title()} holds for {_count(self.n_users, noun)}{limit}."
        if not self.n_violations:
            count = "" if len(self.faults) == 1 else f"{_count(len(self.faults), 'fault')}, for example "
            return f"The release is not what it should be: {count}{self.faults[0]}."
        count = _count(self.n_violations, "violation")
        return f"The promise is broken: {count}, for example {self.witnesses[0].in_words()}."

    def _repr_html_(self) -> str:
        rows: list[tuple[str, Cell]] = [
            ("verdict", self.in_words()),
            ("promise", self.promise.in_words()),
            *(("violation", witness.in_words()) for witness in self.witnesses),
            *(("fault", fault) for fault in self.faults),
            *(("note", note) for note in self.notes),
        ]
        wrong = "The promise is broken" if self.n_violations else "The release is not what it should be"
        return facts(rows, caption="The promise holds" if self.holds else wrong)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values, for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    def show(self, data: QueryLog | Transactions | Groups | Tallies) -> list[str]:
        """Return the terms or queries of each witness as text; `data` must be what was judged.

        Privacy: this is the one place where a verdict turns into text of the log, so it is asked for by name.
        """
        lines = []
        for witness in self.witnesses:
            try:
                terms = self._terms(witness, data)
            except (IndexError, pl.exceptions.ColumnNotFoundError):
                raise BadInput("this is not the log that was judged; show the witnesses in that one") from None
            lines.append(f"{' + '.join(terms)}: {witness.in_words()}" if terms else witness.in_words())
        return lines

    def _terms(self, witness: Witness, data: QueryLog | Transactions | Groups | Tallies) -> list[str]:
        if witness.kind in _ABOUT_CLICKS:
            clicks = data.clicks if isinstance(data, Tallies) else data.frame
            clicks = data.frame if clicks is None else clicks
            return [clicks[name][witness.rows[0] - 1] for name in ("query", "url")]
        if witness.kind in _ABOUT_QUERIES:
            return list(dict.fromkeys(data.frame["query"][row - 1] for row in witness.rows))
        if witness.kind == "transaction":
            return sorted(_terms_in(data, witness.rows[0], items=True))
        items = isinstance(self.promise, KmAnonymity) and self.promise.items
        places = zip(witness.rows, witness.positions, strict=False)
        return [_terms_in(data, row, items=items)[position - 1] for row, position in places]


def _terms_in(data: QueryLog | Transactions | Groups | Tallies, row: int, *, items: bool) -> list[str]:
    if not isinstance(data, QueryLog):
        column = "items" if isinstance(data, Transactions) else "terms"
        found: list[str] = data.frame[column][row - 1].to_list()
        return found
    return terms_of(data.frame["query"][row - 1], items=items)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n:,} {noun}s"


def _listed(rows: tuple[int, ...]) -> str:
    shown = ", ".join(str(row) for row in rows[:5])
    return f"{shown}, ..." if len(rows) > 5 else shown

"""The result of verification: a verdict with witnesses that contain no text of the log."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, ClassVar, Literal, Self, get_args

import msgspec
import polars as pl

from queryveil.checks.tokens import terms_of
from queryveil.data import Groups, QueryLog, Tallies, Transactions
from queryveil.errors import BadInput
from queryveil.guarantees import DifferentialPrivacy, Guarantee, KmAnonymity, TransactionAnonymity
from queryveil.html_tables import Cell, facts

_OfHistories = Literal["combination", "history", "linked_windows", "invented"]
_OfTransactions = Literal["transaction", "invented_transactions", "invented_items"]
_OfClusters = Literal["wide_cluster", "shares", "near_shares", "invented_pair"]
_OfGroups = Literal["linked_group", "linked_term", "missing_holders", "contradiction", "other_weight"]
_OfMembers = Literal["invented_members", "invented_term", "other_members", "other_holders"]
_OfPools = Literal["own_query", "small_pool", "few_users", "surplus_row", "surplus_query", "repeated_query"]
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

    - `kind`: the rule that is broken; `in_words` has a sentence for each.
    - `size`: the number of terms, items, queries, cells or members that it is about; 0 for the release as a whole.
    - `support`: how many there are: users, rows, items, terms or what else the sentence counts.
    - `needed`: how many there must be, may be at most, or are in the original.
    - `rows`: data rows, counted from 1: for each term the first of the user's rows that holds it; the first row of each
      of two queries, or of each user; of groups of profiles the group; of noise the number of the part.
    - `positions`: which term of each row is meant, counted from 1.

    Where a manifest states noise, epsilons and deltas are in units of 1e-15.
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
        terms, members = count(self.size, "term"), count(self.size, "member")
        members_stated, members_needed = count(n, "member"), count(needed, "member")
        invented = f"a term ({rows})" if self.rows else "the log as a whole"
        whole, now, before = "the release as a whole", f"{count(n, 'row')} of the release", f"{needed} in the original"
        item = f"an item and what is below it ({rows})" if self.rows else whole
        shared = f"share {n} of the {count(needed, 'URL')} clicked for them"
        cells = f"{self.size:,} {'pair' if self.size == 1 else 'pairs'} of cluster and URL"
        is_or_are = "is" if needed == 1 else "are"
        behind = f"by {count(n, 'user')} of the original, {needed:,} {is_or_are} needed (row {row})"
        least, most = f"{needed:,} is the least that may (row {row})", f"noise gives at most {needed:,} (row {row})"
        there, allowed = f"{n * UNIT:.4g}", f"{needed * UNIT:.4g}"
        clicks = f"no clicks, and the release has {count(n, 'count')} of such"
        if needed:
            clicks = "clicks, and the release has no counts of any"
        sentences: dict[Kind, str] = {
            "combination": f"a combination of {terms} is shared by {count(n, 'user')}, {are_needed}",
            "history": f"a whole history of {terms} is shared by {count(n, 'user')}, {are_needed}",
            "linked_windows": f"one user id stands in {count(n, 'window')} ({rows})",
            "invented": f"{invented} has {n} users or rows in the release, the original {needed}",
            "transaction": f"a bag of {count(self.size, 'item')} is held by {count(n, 'transaction')}, {are_needed}",
            "invented_items": f"{item} has {count(n, 'item')}, the original {needed}",
            "invented_transactions": f"{item} has {count(n, 'transaction')}, the original {needed}",
            "wide_cluster": f"two queries of a cluster of {self.size:,} {shared} ({rows})",
            "shares": f"shares over {cells} are those of {count(n, 'user')}, {are_needed}",
            "near_shares": f"shares over {cells} are near those of {count(n, 'user')}, {are_needed}",
            "invented_pair": f"a query with its URL stands in {now}, in {needed} before ({rows})",
            "linked_group": f"the members of a group ({self.size:,}) bring in {count(n, 'term')}, {are_needed}",
            "linked_term": f"a term of a group is held by {n} of its members, {needed} {is_or_are} allowed ({rows})",
            "missing_holders": f"a group of {members} does not say how many hold each term ({rows})",
            "other_weight": f"the weight of a term is not the share of its holders, {n} of {members_needed} ({rows})",
            "contradiction": f"the counts of a group of {members} cannot all be true ({rows})",
            "invented_members": f"{whole} has {count(n, 'member')}, the original {count(needed, 'user')}",
            "invented_term": f"a term has at least {count(n, 'holder')} in the release, {before} ({rows})",
            "other_members": f"a group states {members_stated}, {needed:,} in the membership file ({rows})",
            "other_holders": f"a group states {count(n, 'holder')}, {needed:,} in the membership file ({rows})",
            "own_query": f"a user was given a query of their own ({rows})",
            "small_pool": f"a query left when at most {count(n, 'event')} waited, {are_needed}",
            "few_users": f"a query left when at most {count(n, 'user')} waited, {are_needed}",
            "surplus_row": f"a user was given {count(n, 'row')} of a category and had asked {needed} by then ({rows})",
            "surplus_query": f"a text was released {count(n, 'time')} and issued {needed} by then ({rows})",
            "repeated_query": f"a query was released {count(n, 'time')}, {needed} may be without repeats ({rows})",
            "no_noise": "counts leave, and the manifest does not say what noise was added to them",
            "odd_noise": f"part {row} of the noise has values that its mechanism cannot have",
            "weak_noise": f"part {row} of the noise has a delta of {there} at its epsilon, and {allowed} is stated",
            "parts_epsilon": f"the epsilons of all noise make {there}, and {allowed} is promised",
            "parts_delta": f"the deltas of all noise make {there}, and {allowed} is promised",
            "exact_count": f"the manifest tells of the log itself, without noise, in {count(n, 'place')}",
            "small_count": f"a query left with a count of {n:,}, and {least}",
            "small_click": f"a click left with a count of {n:,}, and {least}",
            "untidy_query": f"a query is not in lower case with single blanks, which may mark a person (row {row})",
            "stray_click": f"a click belongs to no query of the release (row {row})",
            "unasked_query": f"a query was asked {behind}",
            "unmade_click": f"a click was made {behind}",
            "large_count": f"a query left with a count of {n:,}, and {most}",
            "large_click": f"a click left with a count of {n:,}, and {most}",
            "more_columns": f"rows of made-up users have {count(n, 'column')} that no count is about",
            "odd_id": f"{count(n, 'id')} of made-up users are none of the numbers from 1 on",
            "not_made_up": f"{count(n, 'row')} of users left, and the manifest does not say that all are made up",
            "other_promise": f"the settings have {there} where {allowed} is promised",
            "other_parts": f"the noise has {count(n, 'part')}, and the settings ask for {needed:,}",
            "other_items": f"part {row} of the noise is for {count(n, 'count')} a person, not for {needed:,}",
            "other_size": f"the manifest says {n:,} where the release has {needed:,} queries, rows or users",
            "other_clicks": f"the settings ask for {clicks}",
            "other_order": f"rows are not by count and text, in {count(n, 'place')}, which may tell of the log",
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

    def with_faults(self, faults: Iterable[str], *, notes: Iterable[str] = ()) -> Self:
        """Return this verdict with what else is wrong with the release."""
        found = (*self.faults, *faults)
        return replace(self, holds=self.holds and not found, faults=found, notes=(*self.notes, *notes))

    def joined(self, *, witnesses: Iterable[Witness], n_violations: int, notes: Iterable[str] = ()) -> Self:
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
            return f"{self.promise.title()} holds for {count(self.n_users, noun)}{limit}."
        if not self.n_violations:
            n_faults = "" if len(self.faults) == 1 else f"{count(len(self.faults), 'fault')}, for example "
            return f"The release is not what it should be: {n_faults}{self.faults[0]}."
        violations = count(self.n_violations, "violation")
        return f"The promise is broken: {violations}, for example {self.witnesses[0].in_words()}."

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


def count(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural if it needs one."""
    return f"{n} {noun}" if n == 1 else f"{n:,} {noun}s"


def found_in(frame: pl.DataFrame, *, kind: Kind, by: Sequence[str | pl.Expr]) -> Found:
    """Return the number of rows of a frame, each of which is a violation, and witnesses of the first in an order.

    The columns are those of a witness, with `row` and `position` where there is one only; without a `size` it is 1.
    """
    first = frame.sort(*by).head(Verdict.N_KEPT)
    return frame.height, [
        Witness(
            kind=kind,
            size=each.get("size", 1),
            support=each["support"],
            needed=each["needed"],
            rows=tuple(each["rows"]) if "rows" in each else (each["row"],),
            positions=(each["position"],) if "position" in each else (),
        )
        for each in first.iter_rows(named=True)
    ]


def _listed(rows: tuple[int, ...]) -> str:
    shown = ", ".join(str(row) for row in rows[:5])
    return f"{shown}, ..." if len(rows) > 5 else shown

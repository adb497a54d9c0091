"""The result of verification: a verdict with witnesses that contain no text of the log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, ClassVar, Literal, Self, get_args

import msgspec
import polars as pl

from queryveil.checks.tokens import terms_of
from queryveil.data import Groups, QueryLog, Tallies, Transactions
from queryveil.errors import BadInput
from queryveil.guarantees import AskedTexts, DifferentialPrivacy, Guarantee, KmAnonymity, TransactionAnonymity
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
_OfTexts = Literal["rare_part", "text_length", "text_words", "text_letters", "text_contact", "other_count"]
_OfPages = Literal["other_click", "other_views", "other_rank"]
_OfPractice = Literal["small_cell", "joined_rows", _OfPages]
_OfRows = Literal["more_columns", "odd_id", "not_made_up"]
_OfManifest = Literal["other_promise", "other_parts", "other_items", "other_size", "other_clicks", "other_order"]
_OfLogs = Literal[_OfHistories, _OfTransactions, _OfClusters, _OfGroups, _OfMembers, _OfPools]
Kind = Literal[_OfLogs, _OfNoise, _OfCounts, _OfClicks, _OfTexts, _OfPractice, _OfRows, _OfManifest]
_ABOUT_QUERIES: tuple[Kind, ...] = (
    *get_args(_OfClusters),
    *get_args(_OfPools),
    *get_args(_OfCounts),
    *get_args(_OfTexts),
)
"""What is shown of these are whole queries."""
_ABOUT_CLICKS: tuple[Kind, ...] = (*get_args(_OfClicks), *get_args(_OfPages))
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
    - `positions`: which term of each row is meant, counted from 1; 0 is its time.

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
        shown = ", ".join(map(str, self.rows[:5])) + (", ..." if len(self.rows) > 5 else "")
        rows = f"row {self.rows[0]}" if len(set(self.rows)) == 1 else f"rows {shown}"
        if not self.rows:
            rows = "counted on a cluster, which does not tell the rows"
        clicks = f"no clicks, and the release has {count(self.support, 'count')} of such"
        return _SENTENCES[self.kind].format(
            size=_Number(self.size),
            n=_Number(self.support),
            needed=_Number(self.needed),
            row=self.rows[0] if self.rows else 0,
            rows=rows,
            are_needed=f"{self.needed} are needed ({rows})",
            term=f"a term ({rows})" if self.rows else "the log as a whole",
            item=f"an item and what is below it ({rows})" if self.rows else "the release as a whole",
            are="is" if self.needed == 1 else "are",
            there=f"{self.support * UNIT:.4g}",
            allowed=f"{self.needed * UNIT:.4g}",
            clicks="clicks, and the release has no counts of any" if self.needed else clicks,
        )


class _Number(int):
    """A number in a sentence: `{n:user}` is "1 user" or "1,000 users"."""

    def __format__(self, spec: str) -> str:
        return count(self, spec) if spec.isalpha() else super().__format__(spec)


_SENTENCES: Mapping[Kind, str] = {
    "combination": "a combination of {size:term} is shared by {n:user}, {are_needed}",
    "history": "a whole history of {size:term} is shared by {n:user}, {are_needed}",
    "linked_windows": "one user id stands in {n:window} ({rows})",
    "invented": "{term} has {n} users or rows in the release, the original {needed}",
    "transaction": "a bag of {size:item} is held by {n:transaction}, {are_needed}",
    "invented_items": "{item} has {n:item}, the original {needed}",
    "invented_transactions": "{item} has {n:transaction}, the original {needed}",
    "wide_cluster": "two queries of a cluster of {size:,} share {n} of the {needed:URL} clicked for them ({rows})",
    "shares": "shares over {size:pair} of cluster and URL are those of {n:user}, {are_needed}",
    "near_shares": "shares over {size:pair} of cluster and URL are near those of {n:user}, {are_needed}",
    "invented_pair": "a query with its URL stands in {n:row} of the release, in {needed} before ({rows})",
    "linked_group": "the members of a group ({size:,}) bring in {n:term}, {are_needed}",
    "linked_term": "a term of a group is held by {n} of its members, {needed} {are} allowed ({rows})",
    "missing_holders": "a group of {size:member} does not say how many hold each term ({rows})",
    "other_weight": "the weight of a term is not the share of its holders, {n} of {needed:member} ({rows})",
    "contradiction": "the counts of a group of {size:member} cannot all be true ({rows})",
    "invented_members": "the release as a whole has {n:member}, the original {needed:user}",
    "invented_term": "a term has at least {n:holder} in the release, {needed} in the original ({rows})",
    "other_members": "a group states {n:member}, {needed:,} in the membership file ({rows})",
    "other_holders": "a group states {n:holder}, {needed:,} in the membership file ({rows})",
    "own_query": "a user was given a query of their own ({rows})",
    "small_pool": "a query left when at most {n:event} waited, {are_needed}",
    "few_users": "a query left when at most {n:user} waited, {are_needed}",
    "surplus_row": "a user was given {n:row} of a category and had asked {needed} by then ({rows})",
    "surplus_query": "a text was released {n:time} and issued {needed} by then ({rows})",
    "repeated_query": "a query was released {n:time}, {needed} may be without repeats ({rows})",
    "no_noise": "counts leave, and the manifest does not say what noise was added to them",
    "odd_noise": "part {row} of the noise has values that its mechanism cannot have",
    "weak_noise": "part {row} of the noise has a delta of {there} at its epsilon, and {allowed} is stated",
    "parts_epsilon": "the epsilons of all noise make {there}, and {allowed} is promised",
    "parts_delta": "the deltas of all noise make {there}, and {allowed} is promised",
    "exact_count": "the manifest tells of the log itself, without noise, in {n:place}",
    "small_count": "a query left with a count of {n:,}, and {needed:,} is the least that may (row {row})",
    "small_click": "a click left with a count of {n:,}, and {needed:,} is the least that may (row {row})",
    "untidy_query": "a query is not in lower case with single blanks, which may mark a person (row {row})",
    "stray_click": "a click belongs to no query of the release (row {row})",
    "unasked_query": "a query was asked by {n:user} of the original, {needed:,} {are} needed (row {row})",
    "unmade_click": "a click was made by {n:user} of the original, {needed:,} {are} needed (row {row})",
    "large_count": "a query left with a count of {n:,}, and noise gives at most {needed:,} (row {row})",
    "large_click": "a click left with a count of {n:,}, and noise gives at most {needed:,} (row {row})",
    "rare_part": "a word, a name, an address or a phone number of a text was asked by {n:user} of the original, "
    "{are_needed}",
    "small_cell": "a device, country and language are those of {n:user} of the original, {are_needed}",
    "other_count": "a text was asked {n:time} by its count, {needed:,} in the original ({rows})",
    "other_click": "a page was clicked {n:time} by its count, {needed:,} in the original ({rows})",
    "other_views": "a page was shown {n:time} by its count, {needed:,} in the original ({rows})",
    "other_rank": "the mean rank of a page is not that of its clicks in the original ({rows})",
    "text_length": "a text breaks the rule on its length ({rows})",
    "text_words": "a text breaks the rule on its words ({rows})",
    "text_letters": "a text breaks the rule on its letters and digits ({rows})",
    "text_contact": "a text holds an e-mail address or a password ({rows})",
    "joined_rows": "one id has {n:row}, where each row has an id of its own ({rows})",
    "more_columns": "rows of made-up users have {n:column} that no count is about",
    "odd_id": "{n:id} of made-up users are none of the numbers from 1 on",
    "not_made_up": "{n:row} of users left, and the manifest does not say that all are made up",
    "other_promise": "the settings have {there} where {allowed} is promised",
    "other_parts": "the noise has {n:part}, and the settings ask for {needed:,}",
    "other_items": "part {row} of the noise is for {n:count} a person, not for {needed:,}",
    "other_size": "the manifest says {n:,} where the release has {needed:,} queries, rows or users",
    "other_clicks": "the settings ask for {clicks}",
    "other_order": "rows are not by count and text, in {n:place}, which may tell of the log",
}


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

    `n_violations` counts, exactly, distinct combinations of the smallest size that has any (in each window by itself;
    larger ones around them are violated too), or distinct histories, bags, ids, clusters, vectors of shares, groups or
    terms of groups, rows where queries change hands (once for each rule that a row breaks), or what is invented.
    `n_users` are the user ids in the log; `n_checked_users` the histories with a term, of which an id may have one in
    each window. Of transactions each counts as a user, of groups each member, of noisy counts each count, or each row
    if it `is_made_up` from such counts. At most ten witnesses are kept, the smallest first. `faults` are what else is
    wrong with the release, or a promise that is weaker than expected, in one line each.
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

    def joined(self, *found: Found, notes: Iterable[str] = ()) -> Self:
        """Return this verdict with further violations."""
        n = self.n_violations + sum(n for n, _ in found)
        all_of_them = sorted([*self.witnesses, *(witness for _, some in found for witness in some)])
        witnesses, notes = tuple(all_of_them[: self.N_KEPT]), (*self.notes, *notes)
        return replace(self, holds=self.holds and not n, witnesses=witnesses, n_violations=n, notes=notes)

    def in_words(self) -> str:
        """Return the verdict in one line."""
        if self.holds and self.is_made_up:
            return f"{self.promise.title()} {_HOLDS_MADE_UP}"
        if self.holds:
            counts = dict.fromkeys((AskedTexts, DifferentialPrivacy), "count")
            noun = {TransactionAnonymity: "transaction", **counts}.get(
                type(self.promise), "id" if self.promise.changes_ids else "user"
            )
            is_limited = any(not note.startswith(BESIDE) for note in self.notes)
            limit = ", as far as it can be checked" if is_limited else ""
            return f"{self.promise.title()} holds for {count(self.n_users, noun)}{limit}."
        if not self.n_violations:
            found = "a fault:" if len(self.faults) == 1 else f"{count(len(self.faults), 'fault')}, for example"
            return f"The release has {found} {self.faults[0]}."
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
        wrong = "The promise is broken" if self.n_violations else "The release has a fault"
        return facts(rows, caption="The promise holds" if self.holds else wrong)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values, for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    def show(self, data: QueryLog | Transactions | Groups | Tallies) -> list[str]:
        """Return the terms or queries of each witness as text; `data` must be what was judged.

        Privacy: this is the one place where a verdict turns into text of the log, so it is asked for by name.
        """
        try:
            shown = [(self._terms(witness, data), witness.in_words()) for witness in self.witnesses]
        except (IndexError, pl.exceptions.ColumnNotFoundError):
            raise BadInput("this is not the log that was judged; show the witnesses in that one") from None
        return [f"{' + '.join(terms)}: {words}" if terms else words for terms, words in shown]

    def _terms(self, witness: Witness, data: QueryLog | Transactions | Groups | Tallies) -> list[str]:
        if witness.kind in _ABOUT_CLICKS:
            clicks = data.clicks if isinstance(data, Tallies) and data.clicks is not None else data.frame
            return [clicks[name][witness.rows[0] - 1] for name in ("query", "url")]
        if witness.kind in _ABOUT_QUERIES:
            return list(dict.fromkeys(data.frame["query"][row - 1] for row in witness.rows))
        items = isinstance(self.promise, KmAnonymity) and self.promise.items

        def terms_in(row: int) -> list[str]:
            if isinstance(data, QueryLog):
                return terms_of(data.frame["query"][row - 1], items=items)
            return list(data.frame["items" if isinstance(data, Transactions) else "terms"][row - 1])

        if witness.kind == "transaction":
            return sorted(terms_in(witness.rows[0]))
        return [
            terms_in(row)[place - 1] if place else str(data.frame["time"][row - 1])
            for row, place in zip(witness.rows, witness.positions, strict=False)
        ]


def count(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural if it needs one."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{n} {noun}" if n == 1 else f"{n:,} {plural}"


def found_in(frame: pl.DataFrame, *, kind: Kind) -> Found:
    """Return the number of rows of a frame, each of which is a violation, and witnesses of the smallest.

    The columns are those of a witness, with `row` and `position` where there is one only; without a `size` it is 1.
    """
    by = [pl.col(name) for name in ("size", "support", "row", "position") if name in frame.columns]
    first_row = [pl.col("rows").list.first()] if "rows" in frame.columns else []
    first = frame.sort(*by, *first_row).head(Verdict.N_KEPT)
    return frame.height, [
        Witness(
            kind=kind,
            size=each.get("size", 1),
            support=each["support"],
            needed=each["needed"],
            rows=tuple(each["rows"]) if "rows" in each else (each["row"],),
            positions=(each["position"],) if each.get("position") else (),
        )
        for each in first.iter_rows(named=True)
    ]

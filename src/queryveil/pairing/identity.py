"""Identify released users: by ids, by the items that fit a person, or by what both did."""

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
import polars as pl

from queryveil.data import Floats, Groups, Int32s, Int64s, QueryLog, Tallies
from queryveil.data.rows import Rows, group
from queryveil.errors import BadInput
from queryveil.guarantees import DifferentialPrivacy, SwapAnonymity
from queryveil.kernels import njit
from queryveil.pairing.ancestors import Ancestors
from queryveil.release import Ids, TimeDetail, keyed
from queryveil.text.histories import Histories
from queryveil.text.taxonomy.tree import places
from queryveil.text.tokens import encode, hash_tokens

if TYPE_CHECKING:
    from queryveil.pairing.pair import Pair


@njit(cache=True, nogil=True)
def _shared_weight(cells: Int64s, others: Int64s, weight: Floats) -> float:
    """Sum the weights of what two ascending lists have in common."""
    total, i, j = 0.0, 0, 0
    while i < len(cells) and j < len(others):
        if cells[i] == others[j]:
            total += weight[cells[i]]
            i += 1
            j += 1
        elif cells[i] < others[j]:
            i += 1
        else:
            j += 1
    return total


@njit(cache=True, nogil=True)
def most_alike(
    rows: Rows[np.int64], others: Rows[np.int64], holders: Rows[np.int32], weight: Floats, most_looked_at: int
) -> Rows[np.int32]:
    """Return, for each row of cells, the other rows that share the most weight with it.

    A row is compared with those that share its rarest cell, and with those of its next rarest cells as long as no more
    than `most_looked_at` come together, or until nobody else can share as much. Cells of a row are ascending; `holders`
    are the others that have each cell. A row without a cell in common has none.
    """
    n_rows, n_others, n_holders = len(rows.ptr) - 1, len(others.ptr) - 1, np.diff(holders.ptr)
    seen_by, best = np.full(n_others, -1, np.int64), np.empty(n_others, np.int32)
    found_ptr, found = np.zeros(n_rows + 1, np.int64), np.empty(max(16, n_rows), np.int32)
    for row in range(n_rows):
        mine = rows.values[rows.ptr[row] : rows.ptr[row + 1]]
        taken = n_holders[mine] == 0
        n_looked_at, n_best, highest, left = 0, 0, 0.0, 0.0
        for cell in mine[~taken]:
            left += weight[cell]
        while True:
            rarest, size = -1, 0
            for i in range(len(mine)):
                if not taken[i] and (rarest < 0 or n_holders[mine[i]] < size):
                    rarest, size = i, n_holders[mine[i]]
            is_enough = n_looked_at > 0 and n_looked_at + size > most_looked_at
            # Whoever was not looked at has none of the cells taken so far.
            if rarest < 0 or is_enough or left < highest - 1e-9:
                break
            taken[rarest] = True
            left -= weight[mine[rarest]]
            n_looked_at += size
            for other in holders.values[holders.ptr[mine[rarest]] : holders.ptr[mine[rarest] + 1]]:
                if seen_by[other] == row:
                    continue
                seen_by[other] = row
                alike = _shared_weight(mine, others.values[others.ptr[other] : others.ptr[other + 1]], weight)
                if n_best == 0 or alike > highest + 1e-9:
                    highest, n_best = alike, 0
                if alike > highest - 1e-9:
                    best[n_best] = other
                    n_best += 1
        while found_ptr[row] + n_best > len(found):
            found = np.concatenate((found, np.empty(len(found), np.int32)))
        found[found_ptr[row] : found_ptr[row] + n_best] = best[:n_best]
        found_ptr[row + 1] = found_ptr[row] + n_best
    return Rows(found_ptr, found[: found_ptr[-1]].copy())


_MOST_LOOKED_AT = 2_000
"""People compared with each released user; more if more share its rarest cell."""


ESTIMATED = "who is who was estimated, since ids do not tell it"
"""Said of figures that depend on an identity that is not exact."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Identity:
    """The users of the original that each candidate of a release may be.

    - `users`: the users that each candidate may be, each as likely as another.
    - `exact`: whether ids tell it; else it is an estimate: whose history shares most, rare things counting more.
    """

    users: Rows[np.int32]
    exact: bool

    @classmethod
    def unknown(cls, n_candidates: int) -> Self:
        """Return an identity by which no candidate is a person, as of groups."""
        return cls(users=Rows.from_lists([[]] * n_candidates), exact=True)

    @property
    def n_candidates(self) -> int:
        """The number of users, transactions or groups in the release."""
        return self.users.n_rows

    def chance(self, candidate: Int64s, *, user: Int64s) -> Floats:
        """Return the chance that each candidate is the user beside it; of candidate -1 it is 0.

        >>> identity = Identity(users=Rows.from_lists([[4], [0, 2]]), exact=False)
        >>> identity.chance(np.array([0, 1, 1, -1]), user=np.array([4, 2, 3, 0])).tolist()
        [1.0, 0.5, 0.0, 0.0]
        """
        asked = np.flatnonzero(candidate >= 0)
        people = self.users.take(candidate[asked])
        row = people.row_of_entry
        n_hits = np.bincount(row, weights=people.values == user[asked][row], minlength=len(asked))
        chances = np.zeros(len(candidate))
        chances[asked] = n_hits / np.maximum(1, np.diff(people.ptr))
        return chances

    def n_candidates_of(self, n_users: int) -> Floats:
        """Return how many candidates each user is expected to be.

        >>> identity = Identity(users=Rows.from_lists([[2], [0, 2]]), exact=False)
        >>> identity.n_candidates_of(3).tolist()
        [0.5, 0.0, 1.5]
        """
        n_people = self.users.lengths
        each = np.repeat(1 / np.maximum(1, n_people), n_people)
        return np.bincount(self.users.values, weights=each, minlength=n_users).astype(np.float64)

    def sole_user(self) -> Int64s:
        """Return the one user that each candidate can be, -1 where there is none or more than one."""
        found = np.full(self.n_candidates, -1, np.int64)
        alone = self.users.lengths == 1
        found[alone] = self.users.values[self.users.ptr[:-1][alone]]
        return found

    def __repr__(self) -> str:
        return f"Identity(n_candidates={self.n_candidates}, exact={self.exact})"


def identify_by_id(candidates: pl.Series, *, users: pl.Series) -> Identity:
    """Return the users with the ids of the candidates."""
    user = places(candidates, table=users)
    return Identity(users=Rows(np.arange(len(user) + 1), user).keep(user >= 0), exact=True)


def identify_by_overlap(candidates: pl.DataFrame, *, users: pl.DataFrame, n_candidates: int, n_users: int) -> Identity:
    """Return the users who share most with each candidate; frames of `owner` and `cell`, a cell being any value.

    >>> one = pl.DataFrame({"owner": [0, 0, 1], "cell": ["a", "b", "b"]})
    >>> two = pl.DataFrame({"owner": [0, 1, 1, 2], "cell": ["b", "a", "b", "c"]})
    >>> found = identify_by_overlap(one, users=two, n_candidates=2, n_users=3)
    >>> found.users.to_lists()
    [[1], [0, 1]]
    """
    distinct = users.select("cell").unique(maintain_order=True).with_row_index("code")
    theirs = users.unique().join(distinct, on="cell").sort("owner", "code")
    # A cell that nobody of the original has says nothing of anybody.
    mine = candidates.unique().join(distinct, on="cell").sort("owner", "code")
    rows, others = _cells_of(mine, n_candidates), _cells_of(theirs, n_users)
    holders = others.transpose(distinct.height)
    found = most_alike(rows, others, holders, 1 / np.log2(1.0 + holders.lengths), _MOST_LOOKED_AT)
    in_order = np.lexsort((found.values, found.row_of_entry))
    return Identity(users=Rows(found.ptr, found.values[in_order]), exact=False)


def _cells_of(frame: pl.DataFrame, n_owners: int) -> Rows[np.int64]:
    return Rows.from_entries(frame["owner"].to_numpy(), frame["code"].to_numpy().astype(np.int64), n_rows=n_owners)


@njit(cache=True, nogil=True)
def _has_all(items: Int64s, counts: Int64s, has: Int64s, has_counts: Int64s) -> bool:
    """Return whether one ascending list with counts has all of another."""
    j = 0
    for i in range(len(items)):
        while j < len(has) and has[j] < items[i]:
            j += 1
        if j == len(has) or has[j] != items[i] or has_counts[j] < counts[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def first_that_fits(
    bags: Rows[np.int64], counts: Int64s, users: Rows[np.int64], user_counts: Int64s, holders: Rows[np.int32]
) -> Int32s:
    """Return the first bag whose items each user has, each at least as often, -1 where there is none.

    Items ascend in every row, with their counts beside them; `holders` are the users that have each item. A bag without
    items fits nobody.
    """
    n_users, n_holders = len(users.ptr) - 1, np.diff(holders.ptr)
    found = np.full(n_users, -1, np.int32)
    for bag in range(len(bags.ptr) - 1):
        some = slice(bags.ptr[bag], bags.ptr[bag + 1])
        items = bags.values[some]
        if not len(items):
            continue
        rarest = items[np.argmin(n_holders[items])]
        for user in holders.values[holders.ptr[rarest] : holders.ptr[rarest + 1]]:
            own = slice(users.ptr[user], users.ptr[user + 1])
            if found[user] < 0 and _has_all(items, counts[some], users.values[own], user_counts[own]):
                found[user] = bag
    return found


def identify_by_fit(before: Histories, *, after: Histories, ancestors: Ancestors, once: bool) -> Identity:
    """Return the users whom each bag of items may be made from.

    A bag fits a person if each of its items can stand for another of the person's terms, which counts `once` or as
    often as it was asked. Of those that fit a person is taken for the one that keeps most: methods that make bags alike
    seek to lose little. Everybody in equal bags may be any of them.
    """
    number, first = distinct_bags(after)
    # An item of the person's own keeps 1, one that moved up less.
    weight = (1 - ancestors.losses()[after.terms]) * after.counts
    kept = np.bincount(after.entry_user, weights=weight, minlength=after.n_users)[first]
    order = np.argsort(-kept, kind="stable")
    generalisations = ancestors.items_for(ancestors.vocabulary)
    bags, counts = _counted(after, rows=first[order], generalisations=generalisations, once=False)
    users, user_counts = _counted(before, rows=np.arange(before.n_users), generalisations=generalisations, once=once)
    best = first_that_fits(bags, counts, users, user_counts, users.transpose(before.n_terms))
    somewhere = np.flatnonzero(best >= 0)
    ptr, places = group(best[somewhere], len(order))
    # The users of each bag are those of every copy of it.
    users_of = Rows(ptr, somewhere[places].astype(np.int32)).take(np.argsort(order)[number])
    return Identity(users=users_of, exact=False)


def distinct_bags(after: Histories) -> tuple[Int64s, Int64s]:
    """Return the number of each bag, equal bags having the same, and the first bag of each number."""
    seen: dict[bytes, int] = {}
    pairs = np.stack([after.terms, after.counts], axis=1)
    bags = (pairs[a:b].tobytes() for a, b in pairwise(after.user_terms.ptr))
    number = np.array([seen.setdefault(bag, len(seen)) for bag in bags], np.int64)
    _, first = np.unique(number, return_index=True)
    return number, first.astype(np.int64)


def _counted(
    histories: Histories, *, rows: Int64s, generalisations: Rows[np.int64], once: bool
) -> tuple[Rows[np.int64], Int64s]:
    """Return the items that may stand for the terms of some rows, and how many terms each may stand for."""
    some = histories.user_terms.entries(rows)
    counts = np.ones(len(some.values), np.int64) if once else histories.counts[some.values]
    items = generalisations.take(histories.terms[some.values])
    entry = items.row_of_entry
    frame = pl.DataFrame({"row": some.row_of_entry[entry], "item": items.values, "n": counts[entry]})
    found = frame.group_by("row", "item").agg(pl.col("n").sum()).sort("row", "item")
    items = Rows.from_entries(found["row"].to_numpy(), found["item"].to_numpy(), n_rows=len(rows))
    return items, found["n"].cast(pl.Int64).to_numpy()


def identify(pair: "Pair") -> Identity:
    """Return which users of the original each candidate of a pair may be."""
    release, users, candidates = pair.release, pair.users, pair.candidates
    data, columns, parameters = release.data, release.manifest.columns, release.manifest.parameters
    if pair.ancestors is not None and not isinstance(data, QueryLog):
        once = bool(parameters.get("distinct"))
        return identify_by_fit(pair.before, after=pair.after, ancestors=pair.ancestors, once=once)
    if isinstance(data, Groups | Tallies) or isinstance(release.promise, DifferentialPrivacy):
        # Users drawn from noisy counts are nobody, whatever their ids.
        return Identity.unknown(len(candidates))
    if isinstance(data, QueryLog) and columns.ids is Ids.KEEP:
        found = identify_by_id(candidates, users=users)
        _check_known(found, "none of its user ids is in the original: give the log that it was made from")
        return found
    is_swapped = isinstance(release.promise, SwapAnonymity)
    if isinstance(data, QueryLog) and columns.ids is Ids.KEYED and (is_swapped or release.promise.window is None):
        if pair.key is None:
            raise BadInput("its user ids are keyed, so the key is needed to tell who is who: add --key FILE")
        names = keyed(users, key=pair.key)
        found = identify_by_id(pair.pseudonyms(names, key=pair.key), users=names)
        _check_known(found, "none of its user ids comes from this key and the original: give those it was made with")
        return found
    if is_swapped:
        raise BadInput("its user ids are fresh, so nobody can tell who is who; anonymize with --ids keyed --key FILE")
    is_hashed = release.manifest.method == "token_hash"
    if is_hashed and pair.key is None:
        raise BadInput("its terms are hashed, so the key is needed to tell who is who: add --key FILE")
    before, after = _cells(pair)
    found = identify_by_overlap(after, users=before, n_candidates=len(candidates), n_users=len(users))
    if is_hashed:
        _check_known(found, "none of its terms comes from this key and the original: give those it was made with")
    return found


def _check_known(identity: Identity, reason: str) -> None:
    """Raise if nobody is known; attackers would seem to find nobody, however much they find."""
    if identity.n_candidates and not len(identity.users.values):
        raise BadInput(reason)


def _cells(pair: "Pair") -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what each user and each candidate did as cells: a term, and when and where it led if both sides tell.

    Where items moved up, the cells of an original's term are all items that may stand for it.
    """
    before, after = (tokens.row_terms() for tokens in pair.tokens)
    row, terms, released_row = before.row_of_entry, before.values.astype(np.int64), after.row_of_entry
    if pair.release.manifest.method == "token_hash" and pair.key is not None:
        own = pair.original_tokens.vocabulary
        number, _ = encode(pl.concat([pair.vocabulary.rename(""), hash_tokens(own, key=pair.key).rename("")]))
        terms = number[len(pair.vocabulary) :].astype(np.int64)[terms]
    if pair.generalisations is not None:
        items = pair.generalisations.take(terms)
        row, terms = row[items.row_of_entry], items.values
    frame = pl.DataFrame({"term": np.concatenate([terms, after.values])})
    for name, columns in (("moment", _moments(pair)), ("url", _urls(pair))):
        if columns is not None:
            frame = frame.with_columns(pl.concat([columns[0].gather(row), columns[1].gather(released_row)]).alias(name))
    # Two of a million cells fall together by chance once in forty million logs.
    cells = frame.hash_rows()
    return (
        pl.DataFrame({"owner": pair.user[row], "cell": cells[: len(row)]}),
        pl.DataFrame({"owner": pair.candidate[released_row], "cell": cells[len(row) :]}),
    )


def _moments(pair: "Pair") -> tuple[pl.Series, pl.Series] | None:
    """Return the times of both, rounded as the release's are; None if one has none, or other people's."""
    time, data = pair.release.manifest.columns.time, pair.release.data
    unit = None if time is TimeDetail.SHARED else time.unit
    if unit is None or "time" not in pair.log.columns or "time" not in data.columns:
        return None
    step = unit // timedelta(microseconds=1)
    return pair.log.frame["time"].to_physical() // step, data.frame["time"].to_physical() // step


def _urls(pair: "Pair") -> tuple[pl.Series, pl.Series] | None:
    if "url" not in pair.log.columns or "url" not in pair.release.data.columns:
        return None
    released = pair.release.data.frame["url"]
    # In AOL's format a column that was dropped is there and empty.
    return None if released.null_count() == len(released) else (pair.log.frame["url"], released)

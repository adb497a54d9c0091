"""What attacks on people share: drawing targets, scoring candidates, and blind guessing.

`holders` are compressed rows of the candidates that have each thing (a term, a moment), ascending.
"""

from collections.abc import Iterable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from queryveil.attacks._likelihood import Guesses
from queryveil.attacks.attacker import AuxiliaryData, Reasons
from queryveil.data import Floats, Groups, Int8s, Int32s, Int64s, QueryLog, Transactions
from queryveil.data.rows import Rows
from queryveil.guarantees import DifferentialPrivacy, SwapAnonymity
from queryveil.kernels import njit
from queryveil.pairing import Pair, is_generalised, share_numbers
from queryveil.release import Release
from queryveil.text.classifier import Classifier
from queryveil.text.histories import Histories, collect
from queryveil.text.tokens import Tokens, encode, tokenize

_NEARLY = 1e-9


@njit(cache=True, nogil=True)
def add_up(things: Int64s, holders: Rows[np.int32], weight: Floats, score: Floats, touched: Int32s) -> int:
    """Add the weights, all above 0, of things to the scores of their holders, 0 before; return how many are listed."""
    n_touched = 0
    for thing in things:
        for candidate in holders.values[holders.ptr[thing] : holders.ptr[thing + 1]]:
            if score[candidate] == 0.0:
                touched[n_touched] = candidate
                n_touched += 1
            score[candidate] += weight[thing]
    return n_touched


@njit(cache=True, nogil=True)
def guess_best(
    known: Rows[np.int64], holders: Rows[np.int32], weight: Floats, n_candidates: int, eccentricity: float
) -> Guesses:
    """Return the candidate with the highest score for each target, -1 where the second is too near, and how far it is.

    A candidate's score is the sum of the weights of the known things it holds. The best must lie above the second by
    `eccentricity` standard deviations of the scores of all candidates; by how many it does is the confidence.
    """
    n_targets = len(known.ptr) - 1
    score = np.zeros(n_candidates)
    touched = np.empty(n_candidates, np.int32)
    guessed, confidence = np.full(n_targets, -1, np.int64), np.zeros(n_targets)
    for target in range(n_targets):
        things = known.values[known.ptr[target] : known.ptr[target + 1]]
        n_touched = add_up(things, holders, weight, score, touched)
        best, second, total, squares, first = 0.0, 0.0, 0.0, 0.0, np.int64(-1)
        for i in range(n_touched):
            mine = score[touched[i]]
            score[touched[i]] = 0.0
            total += mine
            squares += mine * mine
            if mine > best:
                best, second, first = mine, best, np.int64(touched[i])
            elif mine > second:
                second = mine
        mean = total / max(1, n_candidates)
        deviation = sqrt(max(0.0, squares / max(1, n_candidates) - mean * mean))
        if best - second > _NEARLY and best - second >= eccentricity * deviation - _NEARLY:
            guessed[target] = first
            confidence[target] = (best - second) / max(deviation, _NEARLY)
    return Guesses(guessed, confidence)


def no_people(pair: Pair) -> Reasons:
    """Yield why nobody can be sought in a release."""
    if not isinstance(pair.release.data, QueryLog | Transactions):
        yield "the release has no rows that are one person's"
    if isinstance(pair.release.manifest.promise, DifferentialPrivacy):
        yield "the users of the release are made up"


def unreadable(pair: Pair) -> Reasons:
    """Yield why the terms of a release cannot be told."""
    if pair.release.manifest.method == "token_hash":
        yield "the terms of the release are hashed"
    if pair.ancestors is None and is_generalised(pair.release):
        yield "its items moved up in a taxonomy that was not given: --taxonomy FILE"


def no_terms(pair: Pair) -> Reasons:
    """Yield why nobody can be sought by terms in a release."""
    yield from unreadable(pair)
    yield from no_people(pair)


def no_groups(pair: Pair) -> Reasons:
    """Yield why a release has no groups of people that could be attacked."""
    if not isinstance(pair.release.data, Groups):
        yield "the release has no groups"
    if not pair.release.groups.n_groups:
        yield "the release is empty"


def no_swap(pair: Pair) -> Reasons:
    """Yield why a release was not swapped."""
    if not isinstance(pair.release.promise, SwapAnonymity):
        yield "no queries changed hands"


def swapped(pair: Pair) -> Reasons:
    """Yield why the rows of a user of a release are not one person's."""
    if isinstance(pair.release.promise, SwapAnonymity):
        yield "queries changed hands, so the rows of an id are not one person's"


def has_several_ids(pair: Pair) -> bool:
    """Return whether people have several ids in a release: one for each window, or for each mini-session."""
    promise = pair.release.promise
    return promise.window is not None or promise.changes_ids or pair.n_candidates > pair.n_users


def no_membership(auxiliary: AuxiliaryData) -> Reasons:
    """Yield why the group of a person is not known."""
    if auxiliary.membership is None:
        yield "needs who is in which group: --membership FILE"


def no_people_or_groups(pair: Pair, auxiliary: AuxiliaryData) -> Reasons:
    """Yield why neither people nor the groups of people can be told by their terms."""
    yield from unreadable(pair)
    if isinstance(pair.release.data, Groups):
        yield from no_groups(pair)
        yield from no_membership(auxiliary)
    else:
        yield from no_people(pair)


def weights_are_shares(release: Release) -> bool:
    """Return whether the weight of a group's term is the share of the members that have it."""
    parameters = release.manifest.parameters
    return parameters.get("representative") == "centroid" and parameters.get("weights") == "binary"


class OtherLog(NamedTuple):
    """The terms of another log in the numbers of a pair's, further ones being numbered on, and who asked each row."""

    tokens: Tokens
    user: Int32s
    users: pl.Series

    @property
    def histories(self) -> Histories:
        """The terms of each of its users."""
        return collect(self.tokens, self.user, n_users=len(self.users))


def other_log(pair: Pair, log: QueryLog) -> OtherLog:
    """Return the terms of another log in the numbers of the pair's terms."""
    user, users = encode(log.frame["user"])
    _, tokens = share_numbers(pair.tokens[0], tokenize(log.frame["query"], by_blanks=log.terms_are_items))
    return OtherLog(tokens, user, users)


def categories_of(pair: Pair, other: OtherLog) -> Int8s:
    """Return the category of each query of another log, as its place in `CATEGORIES`; -1 for none."""
    further = Classifier().classify(other.tokens.queries[len(pair.queries) :]).category
    return np.concatenate([pair.categories, further])


def public_histories(pair: Pair, log: QueryLog) -> tuple[Histories, pl.Series]:
    """Return the public histories in the numbers of the pair's terms, and the vocabulary with further ones."""
    other = other_log(pair, log)
    return other.histories, other.tokens.vocabulary


def group_of_users(pair: Pair, auxiliary: AuxiliaryData) -> Int64s:
    """Return the place of each user's group in the release, -1 for users without one."""
    assert auxiliary.membership is not None
    rows = pair.release.groups.frame.select("group").with_row_index("row")
    placed = auxiliary.membership.select("user", "group").join(rows, on="group")
    found = pl.DataFrame({"user": pair.users}).join(placed, on="user", how="left", maintain_order="left")
    return found["row"].cast(pl.Int64).fill_null(-1).to_numpy()


def group_terms(groups: Groups) -> pl.DataFrame:
    """Return each `term`, in one word, of each group (its place is `row`), with its `weight` and any `holders`."""
    n_terms = pl.col("terms").list.len()
    told = pl.col("holders").fill_null(pl.lit(None, pl.Int64).repeat_by(n_terms))
    words = pl.col("terms").list.eval(pl.element().str.replace_all(r"\s+", "_"))
    frame = groups.frame.with_row_index("row").with_columns(told, term=words, weight="weights", n_terms=n_terms)
    return frame.explode("term", "weight", "holders", empty_as_null=False)


def tells_holders(groups: Groups) -> bool:
    """Return whether all groups say how many of their members have a term."""
    return not groups.frame["holders"].null_count()


def group_holders(groups: Groups) -> pl.DataFrame:
    """Return each `group` and `term` with the `n` members who have it, by its weight where groups do not say."""
    by_share = pl.col("weight").clip(0, 1) * pl.col("members")
    n = pl.col("holders").cast(pl.Float64) if tells_holders(groups) else by_share
    return group_terms(groups).select("group", "term", n=n)


def draw_targets(eligible: Int64s, *, n_targets: int, rng: np.random.Generator) -> Int64s:
    """Draw at most `n_targets` of the eligible ones."""
    return np.sort(rng.choice(eligible, size=min(n_targets, len(eligible)), replace=False))


def draw_each(rows: Rows[Any], *, of: Int64s, n: int, rng: np.random.Generator) -> Rows[Any]:
    """Draw up to n values of each of some rows.

    >>> drawn = draw_each(Rows.from_lists([[4, 7], [5]]), of=np.array([0, 1]), n=2, rng=np.random.default_rng(1))
    >>> [sorted(row) for row in drawn.to_lists()]
    [[4, 7], [5]]
    """
    ptr, values = some = rows.take(of)
    row = some.row_of_entry
    order = np.lexsort((rng.random(len(values)), row))
    return Rows(ptr, values[order]).keep(np.arange(len(values)) - ptr[row] < n)


def holders_of_all(holders: Rows[np.int32], forms: Iterable[Int64s]) -> Int32s:
    """Return the candidates that have every thing in any of its forms; nobody if there are no things."""
    rarest, *others = sorted((holders.take(form).values for form in forms), key=len) or [holders.values[:0]]
    found = np.unique(rarest)
    for those in others:
        found = found[np.isin(found, those)] if len(found) else found
    return found


def guess_candidates(
    known: Rows[np.int64], *, holders: Rows[np.int32], n_candidates: int, eccentricity: float
) -> Guesses:
    """Return the candidate who best fits what is known of each target, -1 where none stands out.

    A thing weighs 1/log of how many have it. The best must stand out by `eccentricity` standard deviations.
    """
    # Paper: Narayanan and Shmatikov 2008, section 4. Differs: what one has weighs as much as what two have, since
    # log 1 is 0.
    weight = 1 / np.log(np.maximum(2, np.diff(holders.ptr)))
    return guess_best(known, holders, weight, n_candidates, eccentricity)


def as_items(terms: Rows[np.int64], *, generalisations: Rows[np.int64] | None) -> Rows[np.int64]:
    """Return rows of the items that may stand for the terms of each row, each once.

    >>> as_items(Rows.from_lists([[0, 1], [2]]), generalisations=Rows.from_lists([[0], [0, 1], []])).to_lists()
    [[0, 1], []]
    """
    if generalisations is None:
        return terms
    found = generalisations.take(terms.values)
    row = terms.row_of_entry[found.row_of_entry]
    n_items = max(1, generalisations.n_rows)
    row, items = np.divmod(np.unique(row * n_items + found.values), n_items)
    return Rows.from_entries(row, items, n_rows=terms.n_rows)


def found_by_chance(pair: Pair, *, users: Int64s, among: Int64s | None = None, n_guesses: Int64s | int = 1) -> float:
    """Return how many users the best blind guess finds: the same `n_guesses` candidates for everybody.

    A blind guesser knows `among` whom the users were drawn, everybody if None, and names one of these every time.
    """
    eligible = np.ones(pair.n_users) if among is None else np.bincount(among, minlength=pair.n_users)
    people = pair.identity.users
    hits = np.bincount(people.row_of_entry, weights=eligible[people.values], minlength=people.n_rows)
    best = float((hits / np.maximum(1, people.lengths)).max(initial=0)) / max(1, int(eligible.sum()))
    return float(np.broadcast_to(np.minimum(1.0, best * n_guesses), len(users)).sum())

"""The ground truth of attacks on swap: which user asked which query."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, lgamma

import numpy as np
import polars as pl
from numba import njit

from queryveil.data import Floats, Int8s, Int32s, Int64s, QueryLog
from queryveil.errors import BadInput
from queryveil.text.classifier import CATEGORIES, Classifier
from queryveil.text.identifiers import remove_identifiers
from queryveil.text.tokens import encode, normalise

N_POOLS = len(CATEGORIES) + 1
"""A pool for each category, and one for queries without."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Guess:
    """Rows put together anew: guess i says that the user of `user_row[i]` asked the query of `query_row[i]`."""

    user_row: Int64s
    query_row: Int64s
    k_now: Int64s
    """What k has grown to in each pool."""

    def __len__(self) -> int:
        return len(self.user_row)

    def __repr__(self) -> str:
        return f"Guess(n_rows={len(self)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Seen:
    """The rows of a release with numbers for users and texts; texts that differ in case or blanks are one.

    `category` is the number of a row's pool, the last one being that of queries without a category.

    >>> rows = QueryLog.from_frame({"user": ["u1", "u2", "u1"], "query": ["Soccer cup", "soccer  cup", "piano song"]})
    >>> seen = Seen.of(rows)
    >>> seen.user.tolist(), seen.text.tolist(), [CATEGORIES[c] for c in seen.category]
    ([0, 1, 0], [0, 0, 1], ['Sports', 'Sports', 'Arts'])
    """

    log: QueryLog
    user: Int32s
    text: Int32s
    category: Int32s
    users: pl.Series
    texts: pl.Series

    @classmethod
    def of(cls, released: QueryLog, *, classifier: Classifier | None = None, category: Int8s | None = None) -> Seen:
        """Number a release and classify it; `category` spares that, if the numbers of the pools are known.

        Paper: the worst case is an attacker who has the same classifier.
        """
        texts = normalise(released.frame["query"])
        user, users = encode(released.frame["user"])
        text, distinct = encode(texts)
        if category is None:
            found = (classifier or Classifier()).classify(distinct).category.astype(np.int32)
            by_text = np.where(found < 0, N_POOLS - 1, found).astype(np.int32)
        else:
            # Backwards, so that the first row of a text decides.
            by_text = np.zeros(len(distinct), np.int32)
            by_text[text[::-1]] = category[::-1]
        return cls(log=released, user=user, text=text, category=by_text[text], users=users, texts=distinct)

    @property
    def n_rows(self) -> int:
        """The number of released rows."""
        return len(self.user)

    @property
    def pair(self) -> Int32s:
        """One number for a row's user and category."""
        return self.user * np.int32(N_POOLS) + self.category

    def time_order(self) -> Int64s:
        """Return the rows in order of time, those of the same time in the order they have; those without come last."""
        if "time" not in self.log.columns:
            raise BadInput("the release has no times to sort by; attack it in the order it has")
        rows = self.log.frame.select("time").with_row_index("row")
        order: Int64s = rows.sort("time", "row", nulls_last=True)["row"].cast(pl.Int64).to_numpy()
        return order

    def log_of(self, guess: Guess) -> QueryLog:
        """Return a guess as a log."""
        frame = self.log.frame
        return QueryLog(
            frame=pl.DataFrame({"user": frame["user"][guess.user_row], "query": frame["query"][guess.query_row]})
        )

    def __repr__(self) -> str:
        # Privacy: users and texts stay out of it.
        return f"Seen(n_rows={self.n_rows}, n_users={len(self.users)})"


RANDOM, MOST_WAITING, MOST_SO_FAR, PRODUCT = 1, 2, 3, 4
_NEGLIGIBLE = 1e-18


@njit(cache=True, nogil=True)
def rebuild(
    category: Int32s,
    pair: Int32s,
    draws: Floats,
    n_categories: int,
    n_pairs: int,
    k: int,
    growth: float,
    choice: int,
    grows: bool,
) -> tuple[Int64s, Int64s, Int64s]:
    """The row that each guess takes its user from, the row of its query, and the k that every category ends with.

    `pair` numbers a row's user and category, so that one user has another number in another category. Each
    row has two draws from [0, 1): for the user, and for the query. `choice` says which user is taken. Without `grows`
    a pair is taken even if all users are the same.
    """
    n_rows = len(category)
    k_now = np.full(n_categories, k, np.int64)
    size = np.zeros(n_categories, np.int64)
    n_users = np.zeros(n_categories, np.int64)
    users = [np.empty(k, np.int64) for _ in range(n_categories)]
    queries = [np.empty(k, np.int64) for _ in range(n_categories)]
    waiting, so_far = np.zeros(n_pairs, np.int32), np.zeros(n_pairs, np.int32)
    seen = np.full(n_pairs, -1, np.int64)
    guessed_user, guessed_query = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    n_guessed = 0
    for row in range(n_rows):
        c, who = category[row], pair[row]
        users[c][size[c]], queries[c][size[c]] = row, row
        size[c] += 1
        n_users[c] += waiting[who] == 0
        waiting[who] += 1
        so_far[who] += 1
        # Paper: algorithm 3, line 5. It asks for exactly k; a pool grows by one row at a time, so it is never passed.
        if size[c] < k_now[c]:
            continue
        if grows and n_users[c] < 2:
            k_now[c] = ceil(k_now[c] * growth)
            if k_now[c] > len(users[c]):
                users[c], queries[c] = _longer(users[c], k_now[c]), _longer(queries[c], k_now[c])
            continue
        at = _choose(users[c], size[c], pair, waiting, so_far, seen, row, choice, draws[row, 0])
        query_at = int(draws[row, 1] * size[c])
        taken = users[c][at]
        guessed_user[n_guessed], guessed_query[n_guessed] = taken, queries[c][query_at]
        n_guessed += 1
        waiting[pair[taken]] -= 1
        n_users[c] -= waiting[pair[taken]] == 0
        size[c] -= 1
        users[c][at], queries[c][query_at] = users[c][size[c]], queries[c][size[c]]
    return guessed_user[:n_guessed].copy(), guessed_query[:n_guessed].copy(), k_now


@njit(cache=True, nogil=True)
def _choose(
    users: Int64s,
    size: int,
    pair: Int32s,
    waiting: Int32s,
    so_far: Int32s,
    seen: Int64s,
    row: int,
    choice: int,
    draw: float,
) -> int:
    """Return the place of the user that is taken: among equals one by the draw, each user as likely."""
    if choice == RANDOM:
        return int(draw * size)
    best, n_best = -1, 0
    for i in range(size):
        who = pair[users[i]]
        if seen[who] == row:
            continue
        seen[who] = row
        score = _score(choice, waiting[who], so_far[who])
        if score > best:
            best, n_best = score, 0
        n_best += score == best
    left = int(draw * n_best)
    for i in range(size):
        who = pair[users[i]]
        # The second way through: what was seen in the first is taken back, so that a user counts once here too.
        if seen[who] != row:
            continue
        seen[who] = -1
        if _score(choice, waiting[who], so_far[who]) == best:
            if left == 0:
                return i
            left -= 1
    return -1


@njit(cache=True, nogil=True)
def _score(choice: int, waiting: int, so_far: int) -> int:
    if choice == MOST_WAITING:
        return int(waiting)
    if choice == MOST_SO_FAR:
        return int(so_far)
    return int(waiting) * int(so_far)


@njit(cache=True, nogil=True)
def _longer(values: Int64s, least: int) -> Int64s:
    longer = np.empty(max(least, 2 * len(values)), np.int64)
    longer[: len(values)] = values
    return longer


@njit(cache=True, nogil=True)
def expected_matches(n_true: Int64s, n_user: Int64s, n_text: Int64s, n_all: Int64s) -> float:
    """Return how many true rows a random dealing of users to texts hits on average.

    For each pair of a user and a text: how often it truly is there, how often the user and how often the text stand in
    their category, and how many rows that category has. A dealing puts them together as often as a hypergeometric
    number says, and no more than the true rows can be hit.
    """
    total = 0.0
    for i in range(len(n_true)):
        if n_user[i] > 0 and n_text[i] > 0:
            total += _expected_least(n_true[i], n_user[i], n_text[i], n_all[i])
    return total


@njit(cache=True, nogil=True)
def _expected_least(most: int, marked: int, drawn: int, n: int) -> float:
    """Return E[min(most, X)] for X the marked ones among `drawn` of `n`."""
    mean = marked * drawn / n
    low, high = max(0, marked + drawn - n), min(marked, drawn)
    if high <= most:
        return mean
    if mean < most:
        # What lies above is little, and summed without taking large numbers from each other.
        above = 0.0
        for x in range(max(most + 1, low), high + 1):
            term = (x - most) * _chance(x, marked, drawn, n)
            above += term
            if x > mean + 1 and term < _NEGLIGIBLE:
                break
        return mean - above
    below = 0.0
    for x in range(low, most):
        below += (most - x) * _chance(x, marked, drawn, n)
    return most - below


@njit(cache=True, nogil=True)
def _chance(x: int, marked: int, drawn: int, n: int) -> float:
    return exp(_ways(marked, x) + _ways(n - marked, drawn - x) - _ways(n, drawn))


@njit(cache=True, nogil=True)
def _ways(n: int, k: int) -> float:
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Truth:
    """The rows of the original, in the numbers of what the attacker sees.

    `n_targets` counts all rows with a query once identifiers are gone; `pairs` numbers those whose user and text the
    release has at all, each once, and `counts` says how often it is there.
    """

    seen: Seen
    n_targets: int
    n_by_chance: float
    """What blind guessing hits on average: users and queries of each category dealt out at random.

    It is computed, not drawn: the mean over all ways to deal.
    """
    pairs: Int64s
    counts: Int64s

    @classmethod
    def of(cls, original: QueryLog, *, seen: Seen, cleaned: bool = False) -> Truth:
        """Take the original, whose users go by the same ids as in the release.

        Its queries lose their identifiers, as those of a release have; `cleaned` says that they have already.
        """
        queries = original.frame["query"]
        texts = normalise(queries if cleaned else remove_identifiers(queries).queries)
        rows = pl.DataFrame({"user": original.frame["user"], "text": texts}).filter(pl.col("text") != "")
        user, text = _numbers(rows["user"], known=seen.users), _numbers(rows["text"], known=seen.texts)
        there = (user < len(seen.users)) & (text < len(seen.texts))
        pairs, counts = np.unique(_pair(user[there], text[there], seen=seen), return_counts=True)
        by_chance = _by_chance(pairs, counts, seen=seen)
        return cls(seen=seen, n_targets=rows.height, n_by_chance=by_chance, pairs=pairs, counts=counts)

    def n_hit(self, guess: Guess) -> int:
        """Count the rows of a guess on the release that are true; the same as the matcher counts."""
        return self._hit(self.seen.user[guess.user_row], self.seen.text[guess.query_row])

    def n_hit_as_released(self) -> int:
        """Count the rows of the release that are true as they stand."""
        return self._hit(self.seen.user, self.seen.text)

    def _hit(self, user: Int32s, text: Int32s) -> int:
        pairs, counts = np.unique(_pair(user, text, seen=self.seen), return_counts=True)
        _, ours, theirs = np.intersect1d(self.pairs, pairs, assume_unique=True, return_indices=True)
        return int(np.minimum(self.counts[ours], counts[theirs]).sum())

    def __repr__(self) -> str:
        # Privacy: numbers only.
        return f"Truth(n_targets={self.n_targets})"


def _numbers(texts: pl.Series, *, known: pl.Series) -> Int32s:
    """Return each text its place among the known ones; others get numbers from there on."""
    codes, _ = encode(pl.concat([known.rename(""), texts.rename("")]))
    return codes[len(known) :]


def _pair(user: Int32s, text: Int32s, *, seen: Seen) -> Int64s:
    pairs: Int64s = user.astype(np.int64) * len(seen.texts) + text
    return pairs


def _by_chance(pairs: Int64s, counts: Int64s, *, seen: Seen) -> float:
    n_texts = len(seen.texts)
    of_text = np.zeros(n_texts, np.int64)
    of_text[seen.text] = seen.category
    user, text = np.divmod(pairs, max(1, n_texts))
    category = of_text[text]
    in_pool = np.bincount(seen.pair, minlength=len(seen.users) * N_POOLS)[user * N_POOLS + category]
    of_this_text = np.bincount(seen.text, minlength=n_texts)[text]
    rows_of_pool = np.bincount(seen.category, minlength=N_POOLS)[category]
    return float(expected_matches(counts, in_pool, of_this_text, rows_of_pool))

"""What an attacker sees of a swapped release: its rows, and by the same classifier their categories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.errors import BadInput
from queryveil.kernels.arrays import Int8s, Int32s, Int64s
from queryveil.log import QueryLog
from queryveil.text.categories import CATEGORIES
from queryveil.text.classifier import Classifier
from queryveil.text.codes import encode
from queryveil.text.normal_form import normalise

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
        """Give the rows in order of time, those of the same time in the order they have; those without come last."""
        if "time" not in self.log.columns:
            raise BadInput("the release has no times to sort by; attack it in the order it has")
        rows = self.log.frame.select("time").with_row_index("row")
        order: Int64s = rows.sort("time", "row", nulls_last=True)["row"].cast(pl.Int64).to_numpy()
        return order

    def log_of(self, guess: Guess) -> QueryLog:
        """Give a guess as a log."""
        frame = self.log.frame
        return QueryLog(
            frame=pl.DataFrame({"user": frame["user"][guess.user_row], "query": frame["query"][guess.query_row]})
        )

    def __repr__(self) -> str:
        # Privacy: users and texts stay out of it.
        return f"Seen(n_rows={self.n_rows}, n_users={len(self.users)})"

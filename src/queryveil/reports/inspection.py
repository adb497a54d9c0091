"""Inspect a log: sizes, columns, and how many users are identified by their own terms."""

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import numba
import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Bools, Int8s, Int32s, QueryLog, count_kinds, is_click
from queryveil.data.rows import Rows
from queryveil.errors import BadParameter
from queryveil.html_tables import Cell, facts, percent
from queryveil.kernels import njit
from queryveil.methods.km.combinations import Index, first_alike, index_terms, mark_alone, relabel
from queryveil.reports._blocks import count
from queryveil.text import tokenize
from queryveil.text.histories import Histories, collect
from queryveil.text.tokens import encode

_MAX_SIZE = 3
_TOLD = ("device", "country", "language")
_LEAST_STEPS, _STEPS_PER_ENTRY = 1 << 31, 1000
"""Combinations of three are looked at in so many steps at least, and in so many for each term of each user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The size of a log, and `alone[s]`: how many users have up to s terms that fewer than k users share.

    - `n_bad_rows_skipped`, `n_foreign_documents`, `n_fields_left_out`: what was left out when the log was read.
    - `events`: how many events there are of each kind, and `n_events_without_query` of them are of no query of the log.
    - `n_searches`, `n_searches_with_clicks`: what these events belong to.
    - `n_told`: in how many rows a device, a country and a language are known, where the log has these columns.
    - `at_least`: the sizes for which the number of users is a lower bound, because there are too many combinations.
    """

    n_rows: int
    n_users: int
    n_distinct_queries: int
    n_empty_queries: int
    n_terms: int
    n_term_occurrences: int
    longest_history: int
    first_time: datetime | None
    last_time: datetime | None
    columns: tuple[str, ...]
    k: int
    alone: dict[int, int]
    at_least: tuple[int, ...] = ()
    n_bad_rows_skipped: int = 0
    n_foreign_documents: int = 0
    n_fields_left_out: int = 0
    events: dict[str, int] = field(default_factory=dict)
    n_events_without_query: int = 0
    n_searches: int = 0
    n_searches_with_clicks: int = 0
    n_told: dict[str, int] = field(default_factory=dict)

    def facts(self) -> dict[str, Cell]:
        """Return what is shown of the log, by name."""
        left_out = {
            "bad rows skipped": self.n_bad_rows_skipped,
            "documents of other indexes left out": self.n_foreign_documents,
            "fields without a column left out": self.n_fields_left_out,
        }
        times = [f"{time:%Y-%m-%d %H:%M}" for time in (self.first_time, self.last_time) if time is not None]
        few = "nobody else has" if self.k == 2 else f"fewer than {self.k} users have"
        return {
            "rows": self.n_rows,
            "users": self.n_users,
            "distinct queries": self.n_distinct_queries,
            "empty queries": self.n_empty_queries,
            "terms": f"{self.n_terms:,} in {self.n_term_occurrences:,} occurrences",
            "longest history": f"{self.longest_history:,} terms",
            "time": " to ".join(times) or "no times",
            "columns": ", ".join(self.columns),
            **{f"rows with a {role}": self._share_of_rows(n) for role, n in self.n_told.items()},
            **self._of_events(),
            **{name: n for name, n in left_out.items() if n},
            **{f"users with {count(size, 'term')} {few}": self._n_alone(size) for size in self.alone},
        }

    def _share_of_rows(self, n: int) -> str:
        return f"{n:,} of {self.n_rows:,}"

    def _of_events(self) -> dict[str, Cell]:
        if not self.n_searches and not self.events:
            return {}
        told: dict[str, Cell] = {"searches": f"{self.n_searches:,}, {self.n_searches_with_clicks:,} with clicks"}
        told |= {f"events: {kind}": n for kind, n in self.events.items()}
        if self.n_events_without_query:
            told["events of no query in the log"] = self.n_events_without_query
        return told

    def _n_alone(self, size: int) -> str:
        share = f" ({percent(self.alone[size] / self.n_users)})" if self.n_users else ""
        return f"{'at least ' if size in self.at_least else ''}{self.alone[size]:,}{share}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        return facts(self.facts().items(), caption="What is in the log")


def inspect(log: QueryLog, *, k: int = 2, m: int = 3) -> Inspection:
    """Count what is in a log, and the users with one, two, ... m terms that fewer than k users share.

    Examples
    --------
    >>> from queryveil.testing import tiny_log
    >>> inspect(tiny_log()).alone
    {1: 4, 2: 4, 3: 4}
    """
    check_sizes(k=k, m=m)
    progress.step("reading terms")
    tokens = tokenize(log.frame["query"])
    owners, users = encode(log.frame["user"])
    histories = collect(tokens, owners, n_users=len(users))
    times = log.frame["time"] if "time" in log.columns else None
    alone = count_alone(histories, k=k, m=m)
    return Inspection(
        n_rows=log.n_rows,
        n_users=len(users),
        n_distinct_queries=log.frame["query"].n_unique(),
        n_empty_queries=int((log.frame["query"] == "").sum()),
        n_terms=tokens.n_terms,
        n_term_occurrences=int(histories.counts.sum()),
        longest_history=int(histories.user_terms.lengths.max(initial=0)),
        first_time=times.min() if times is not None else None,  # type: ignore[arg-type]
        last_time=times.max() if times is not None else None,  # type: ignore[arg-type]
        columns=tuple(log.columns),
        k=k,
        alone=alone.n_users,
        at_least=alone.at_least,
        n_bad_rows_skipped=log.reading.n_bad_rows_skipped,
        n_foreign_documents=log.reading.n_foreign_documents,
        n_fields_left_out=log.reading.n_fields_left_out,
        n_told={role: int(log.frame[role].count()) for role in _TOLD if role in log.columns},
        **_events(log),
    )


def _events(log: QueryLog) -> dict[str, Any]:
    if log.events is None or "search" not in log.columns:
        return {}
    of_searches = log.events.drop_nulls("search")
    return {
        "events": count_kinds(log.events),
        "n_events_without_query": log.events.height - of_searches.height,
        "n_searches": log.frame["search"].drop_nulls().n_unique(),
        "n_searches_with_clicks": of_searches.filter(is_click(pl.col("action")))["search"].n_unique(),
    }


def check_sizes(*, k: int, m: int) -> None:
    if k < 2:
        raise BadParameter("k", k, allowed="2 or more")
    if not 1 <= m <= _MAX_SIZE:
        raise BadParameter("m", m, allowed="1, 2 or 3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """How many users stand alone, by size, `at_least` in some."""

    n_users: dict[int, int]
    at_least: tuple[int, ...] = ()


def count_alone(histories: Histories, *, k: int, m: int) -> Alone:
    """Count the users with a combination of up to 1, 2, ... m terms that fewer than k users have; four only for k = 2.

    Terms that exactly the same users have are one term here: no combination tells these users apart. There
    is a limit to the combinations of three and four that are looked at, the rarest terms first.
    """
    rows = _without_doubles(histories)
    index = index_terms(rows, n_terms=histories.n_terms)
    n_threads = numba.get_num_threads()
    work = np.zeros((n_threads, histories.n_terms), np.int32)
    alone = np.zeros(histories.n_users, np.int8)
    each = max(1, max(_LEAST_STEPS, _STEPS_PER_ENTRY * len(rows.values)) // n_threads)
    found: dict[int, int] = {}
    steps = np.zeros(n_threads, np.int64)
    for size in range(1, min(m, _MAX_SIZE) + 1):
        progress.step("counting users who stand alone", (size - 1) / m)
        steps = mark_alone(index, k, size, work, alone, each)
        found[size] = int(alone.sum())
    is_cut = {min(m, _MAX_SIZE): bool((steps > each).any())}
    if m > _MAX_SIZE:
        is_cut[m] = bool(_mark_by_four(index, work[0], alone, each)) or is_cut[_MAX_SIZE]
        found[m] = int(alone.sum())
    return Alone(n_users=found, at_least=tuple(m for m, cut in is_cut.items() if cut and found[m] < histories.n_users))


@njit(cache=True, nogil=True)
def _mark_by_four(index: Index, place: Int32s, alone: Int8s, most_steps: int) -> bool:
    """Mark the users with four terms that nobody else has all of; return whether some may have been overlooked."""
    ptr, terms, entry_user, posting_ptr, postings = index
    steps = 0
    for user in range(len(alone)):
        own = terms[ptr[user] : ptr[user + 1]]
        if alone[user] or steps > most_steps:
            continue
        place[own] = np.arange(1, len(own) + 1)
        for i in range(len(own)):
            others = entry_user[postings[posting_ptr[own[i]] : posting_ptr[own[i] + 1]]]
            # Terms are in the order of rarity: whatever has a rarer term was looked at with that one.
            holds = np.zeros((len(others), len(own) - i), np.bool_)
            n = 0
            for other in others:
                if other == user:
                    continue
                for term in terms[ptr[other] : ptr[other + 1]]:
                    if place[term] > i:
                        holds[n, place[term] - i - 1] = True
                steps += ptr[other + 1] - ptr[other]
                n += 1
            is_alone, taken = _parts_by_three(holds[:n], most_steps - steps)
            steps += taken
            if is_alone:
                alone[user] = 1
            if is_alone or steps > most_steps:
                break
        place[own] = 0
    return steps > most_steps


@njit(cache=True, nogil=True)
def _parts_by_three(holds: Bools, most_steps: int) -> tuple[bool, int]:
    """Return whether there are three terms that no other holds all of (`holds[other, term]`), and the steps taken."""
    n_terms, steps = holds.shape[1], 0
    if len(holds) == 0:
        return True, 0
    # One of the terms must be one that the other lacks who is most like the person.
    alike = np.argmax(holds.sum(axis=1))
    for one in range(n_terms):
        if holds[alike, one]:
            continue
        with_one = np.flatnonzero(holds[:, one])
        if len(with_one) == 0:
            return True, steps
        for two in range(n_terms):
            if holds[with_one[0], two]:
                continue
            with_two = with_one[holds[with_one, two]]
            if len(with_two) == 0:
                return True, steps
            for three in range(n_terms):
                steps += len(with_two)
                if not holds[with_two[0], three] and not holds[with_two, three].any():
                    return True, steps
            if steps > most_steps:
                return False, steps
    return False, steps


def _without_doubles(histories: Histories) -> Rows[np.int32]:
    """Return the terms of each user as numbers, the rarest first, without those that another one stands for."""
    order = np.argsort(histories.support(), kind="stable")
    labels = np.empty(histories.n_terms, np.int32)
    labels[order] = np.arange(histories.n_terms, dtype=np.int32)
    first = first_alike(index_terms(histories.user_terms, n_terms=histories.n_terms))
    labels[first != np.arange(histories.n_terms)] = -1
    return relabel(histories.user_terms, labels)[0]

"""The pools of the swap method in plain Python, as the definition reads: slow, to compare with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar
from unicodedata import category as kind_of
from unicodedata import normalize

Event: TypeAlias = tuple[str, str, int]
"""A user, a query and the number of its category."""

_TRIES = 8
_MAX_CHECKS = 4096


def fold(text: str) -> str:
    """Return a query's words in lower case, by which it is the same query.

    >>> fold(" Red  WINE!")
    'red wine'
    """
    letters = normalize("NFC", text.lower())
    return " ".join("".join(c if kind_of(c)[0] in "LM" or kind_of(c) == "Nd" else " " for c in letters).split())


@dataclass(slots=True, kw_only=True)
class Released:
    """A query, the user it was given to, and the arrival that set it free."""

    user: str
    query: str
    category: int
    arrival: int


@dataclass(slots=True, kw_only=True)
class _Pool:
    needed: int
    users: list[tuple[int, str]] = field(default_factory=list)
    queries: list[tuple[int, str, str]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class PlainPools:
    """Algorithm 2 with the rules of this package; `numbers` are random ones below 2**64, taken in order.

    >>> pools = PlainPools(k=2, l=2, growth=1.2, max_pool=10, numbers=iter([0, 2**63]))
    >>> pools.add([("a", "monza tickets", 14), ("b", "tennis titles", 14)])
    [Released(user='b', query='monza tickets', category=14, arrival=1)]
    """

    k: int
    l: int  # noqa: E741 - as in the papers
    growth: float
    max_pool: int
    numbers: Iterator[int]
    once: bool = False
    shrinks: bool = False
    n_suppressed: int = 0
    n_repeated: int = 0
    issued: set[tuple[str, str]] = field(default_factory=set, repr=False)
    pools: dict[int, _Pool] = field(default_factory=dict, repr=False)
    _n_arrived: int = 0

    def add(self, events: Sequence[Event]) -> list[Released]:
        """Let events arrive; all of them count as issued before."""
        before = set(self.issued)
        self.issued |= {(user, fold(query)) for user, query, _ in events}
        found: list[Released] = []
        for arrival, (user, query, category) in enumerate(events):
            if self.once and (user, fold(query)) in before:
                self.n_repeated += 1
                continue
            before.add((user, fold(query)))
            pool = self.pools.setdefault(category, _Pool(needed=self.k))
            pool.users.append((self._n_arrived, user))
            pool.queries.append((self._n_arrived, query, user))
            self._n_arrived += 1
            found += self._try(pool, category, arrival)
            if len(pool.users) > self.max_pool:
                self._drop_oldest(pool)
        return found

    def drain(self) -> list[Released]:
        """Release what the promise still allows when nothing more arrives."""
        found: list[Released] = []
        for category in sorted(self.pools):
            pool = self.pools[category]
            while len(pool.users) >= self.k and self._is_mixed(pool):
                pair = self._draw(pool)
                if pair is None:
                    break
                found.append(self._release(pool, *pair, category=category, arrival=0))
        return found

    def _try(self, pool: _Pool, category: int, arrival: int) -> list[Released]:
        found: list[Released] = []
        while len(pool.users) >= pool.needed and len(found) < (2 if self.shrinks else 1):
            pair = self._draw(pool) if self._is_mixed(pool) else None
            if pair is None:
                if not found and (self._is_mixed(pool) or len({user for _, user in pool.users}) == 1):
                    pool.needed = min(max(pool.needed + 1, math.ceil(pool.needed * self.growth)), self.max_pool)
                break
            found.append(self._release(pool, *pair, category=category, arrival=arrival))
            if self.shrinks:
                pool.needed = max(self.k, int(pool.needed / self.growth))
        return found

    def _is_mixed(self, pool: _Pool) -> bool:
        users = {user for _, user in pool.users}
        issuers = {issuer for _, _, issuer in pool.queries}
        return min(len(users), len(issuers)) >= self.l

    def _below(self, n: int) -> int:
        return ((next(self.numbers) >> 32) * n) >> 32

    def _draw(self, pool: _Pool) -> tuple[int, int] | None:
        """Return the places of a query and of a user who never issued it."""
        n = len(pool.users)
        query = self._below(n)
        for _ in range(_TRIES):
            user = self._below(n)
            if self._fits(pool, query, user):
                return query, user
        order, place, n_checks = list(range(n)), query, 0
        for step in range(n):
            order[step], order[place] = order[place], order[step]
            fitting = [user for user in range(n) if self._fits(pool, order[step], user)]
            if fitting:
                return order[step], fitting[self._below(len(fitting))]
            n_checks += n
            if n_checks >= _MAX_CHECKS or step + 1 == n:
                break
            place = step + 1 + self._below(n - step - 1)
        return None

    def _fits(self, pool: _Pool, query: int, user: int) -> bool:
        return (pool.users[user][1], fold(pool.queries[query][1])) not in self.issued

    def _release(self, pool: _Pool, query: int, user: int, *, category: int, arrival: int) -> Released:
        released = Released(user=pool.users[user][1], query=pool.queries[query][1], category=category, arrival=arrival)
        _fill_gap(pool.queries, query)
        _fill_gap(pool.users, user)
        return released

    def _drop_oldest(self, pool: _Pool) -> None:
        _fill_gap(pool.users, pool.users.index(min(pool.users)))
        _fill_gap(pool.queries, pool.queries.index(min(pool.queries)))
        self.n_suppressed += 1


_Item = TypeVar("_Item")


def _fill_gap(items: list[_Item], place: int) -> None:
    """Remove an item; the last one takes its place."""
    items[place] = items[-1]
    items.pop()

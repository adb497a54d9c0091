"""What a release promises, as values that can be compared, printed and written to a manifest."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

import msgspec

from queryveil.errors import BadParameter

_MOST = 2**31 - 1
"""The most users that can be counted."""


class KmAnonymity(msgspec.Struct, frozen=True, kw_only=True, tag="km", tag_field="model", repr_omit_defaults=True):
    """Any combination of up to m terms of a user stands in the histories of at least k users.

    With `m=None` each history as a whole is identical to those of at least k-1 other users.
    With a `window` the histories are those of one window of time (`1d`, `7d`, ..., counted from 1970-01-01 UTC), and no
    user id goes from one window to the next.
    With `items` terms are separated by blanks only, and upper and lower case differ: items of transaction files, or
    nodes of a taxonomy in `<angle_brackets>`, may stand among them.

    >>> KmAnonymity(k=10, m=3)
    KmAnonymity(k=10, m=3)
    >>> print(KmAnonymity(k=10, m=3).in_words())
    Whoever knows up to 3 search terms of a person finds at least 10 people in this log who used all of them, or nobody.
    """

    k: int
    m: int | None
    window: str | None = None
    items: bool = False

    def __post_init__(self) -> None:
        _check_k(self.k)
        if self.m is not None and not (isinstance(self.m, int) and 1 <= self.m <= _MOST):
            raise BadParameter("m", self.m, allowed="1 or more, or none for whole histories")
        if self.window is not None:
            parse_window(self.window)

    def in_words(self) -> str:
        """Say the promise to somebody who has not read the paper."""
        within = f" within each window of {self.window}" if self.window else ""
        if self.m is None:
            return (
                f"Every person in this log has exactly the same set of search terms as at least {self.k - 1} "
                f"others{within}, or no terms at all."
            )
        terms = "1 search term" if self.m == 1 else f"up to {self.m} search terms"
        return (
            f"Whoever knows {terms} of a person finds at least {self.k} people in this log who used "
            f"all of them{within}, or nobody."
        )


class TransactionAnonymity(msgspec.Struct, frozen=True, kw_only=True, tag="transactions", tag_field="model"):
    """Every transaction is identical, as a bag of items, to at least k-1 others.

    The order of items does not matter, but how often each stands there does. A transaction without items is a bag like
    any other: there are none of them, or at least k.

    >>> print(TransactionAnonymity(k=5).in_words())
    Every transaction in this release has exactly the same items, as often, as at least 4 others.
    """

    k: int

    def __post_init__(self) -> None:
        _check_k(self.k)

    def in_words(self) -> str:
        """Say the promise to somebody who has not read the paper."""
        others = "1 other" if self.k == 2 else f"{self.k - 1} others"
        return f"Every transaction in this release has exactly the same items, as often, as at least {others}."


Guarantee: TypeAlias = KmAnonymity | TransactionAnonymity


def _check_k(k: int) -> None:
    if not isinstance(k, int) or k < 2:
        raise BadParameter("k", k, allowed="2 or more")
    if k > _MOST:
        raise BadParameter("k", k, allowed=f"{_MOST} or less")


_WINDOW_DIGITS = 6
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def parse_window(window: str) -> timedelta:
    """Read a length of time such as `12h`, `1d` or `2w`.

    >>> parse_window("7d")
    datetime.timedelta(days=7)
    """
    number, unit = window[:-1], window[-1:]
    is_number = number.isascii() and number.isdigit() and len(number) <= _WINDOW_DIGITS
    if unit not in _UNITS or not is_number or int(number) == 0:
        raise BadParameter("window", window, allowed="a number and a unit: 12h, 1d, 7d, 2w")
    return int(number) * _UNITS[unit]

"""The interface of all guarantees, and the lengths of windows."""

from datetime import timedelta
from typing import ClassVar

import msgspec

from queryveil.errors import BadParameter

MOST = 2**31 - 1
"""The most users that can be counted."""
ONE_RELEASE = "A second release about the same people may undo this one."


class Promise(msgspec.Struct, frozen=True, kw_only=True, tag_field="model"):
    """The base of all guarantees: frozen values that are compared, printed and written to a manifest."""

    released: ClassVar[str] = "log"
    """What kind of data it is about."""
    is_noisy: ClassVar[bool] = False
    """Whether the release is noisy, and does not tell how large the log was."""
    is_of_profiles: ClassVar[bool] = False
    """Whether the original may be profiles instead of a log."""
    needs_original: ClassVar[bool] = False
    """Whether it can be checked beside the original only."""
    promises_nothing: ClassVar[bool] = False
    """Whether there is nothing to check."""

    def in_words(self) -> str:
        """Return the promise in words for somebody who has not read the paper."""
        raise NotImplementedError

    def not_promised(self) -> tuple[str, ...]:
        """Return what an attacker can still do."""
        raise NotImplementedError

    @property
    def items(self) -> bool:
        """Whether terms are items, which are separated by blanks only."""
        return False

    @property
    def window(self) -> str | None:
        """The length of the windows that users have another id in each of."""
        return None


def others(k: int) -> str:
    """Write how many other users there are among k."""
    return "1 other" if k == 2 else f"{k - 1} others"


def check_k(k: int) -> None:
    """Raise if k is no number of users that can hide a person."""
    if not isinstance(k, int) or k < 2:
        raise BadParameter("k", k, allowed="2 or more")
    if k > MOST:
        raise BadParameter("k", k, allowed=f"{MOST} or less")


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

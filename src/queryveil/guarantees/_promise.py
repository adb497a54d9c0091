"""The base class of guarantees, differential privacy, and the absence of a guarantee."""

from datetime import timedelta
from decimal import ROUND_CEILING, Decimal
from typing import ClassVar

import msgspec

from queryveil.errors import BadParameter
from queryveil.settings import is_number

MOST = 2**31 - 1  # the most users that can be counted
ONE_RELEASE = "A second release about the same people may undo this one."
_MOST_EPSILON = 100
_MOST_PICTURED = 10**12  # nobody can picture 1 in more than this
_WINDOW_DIGITS = 6
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class Promise(msgspec.Struct, frozen=True, kw_only=True, tag_field="model"):
    """The base of all guarantees: frozen values that are compared, printed and written to a manifest."""

    released: ClassVar[str] = "log"  # what kind of data it is about
    is_noisy: ClassVar[bool] = False  # whether the release is noisy, and does not tell how large the log was
    is_of_profiles: ClassVar[bool] = False  # whether the original may be profiles instead of a log
    needs_original: ClassVar[bool] = False  # whether it can be checked beside the original only
    promises_nothing: ClassVar[bool] = False  # whether there is nothing to check

    def title(self) -> str:
        """Return the name of the promise with its parameters, as the field calls it; a sentence may begin with it."""
        raise NotImplementedError

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
    def time_unit(self) -> str | None:
        """The unit released times are rounded down to, where they count as terms."""
        return None

    @property
    def changes_ids(self) -> bool:
        """Whether a user has several ids that no window tells apart: one for each mini-session, or for each row."""
        return False

    @property
    def window(self) -> str | None:
        """The length of the time windows; users get a new id in each."""
        return None


def others(k: int) -> str:
    """Return the other users among k in words."""
    return "1 other" if k == 2 else f"{k - 1} others"


def check_k(k: int) -> None:
    """Raise if k is no number of users that can hide a person."""
    if not isinstance(k, int) or k < 2:
        raise BadParameter("k", k, allowed="2 or more")
    if k > MOST:
        raise BadParameter("k", k, allowed=f"{MOST} or less")


def parse_window(window: str, *, name: str = "window") -> timedelta:
    """Read a length of time such as `12h`, `1d` or `2w`.

    >>> parse_window("7d")
    datetime.timedelta(days=7)
    """
    number, unit = window[:-1], window[-1:]
    is_number = number.isascii() and number.isdigit() and len(number) <= _WINDOW_DIGITS
    if unit not in _UNITS or not is_number or int(number) == 0:
        raise BadParameter(name, window, allowed="a number and a unit: 12h, 1d, 7d, 2w")
    return int(number) * _UNITS[unit]


class DifferentialPrivacy(Promise, frozen=True, kw_only=True, tag="dp"):
    """User-level (epsilon, delta)-differential privacy of everything in the release together.

    Two logs are neighbours if all rows of one person are added or removed.

    - `epsilon`, `delta`: the probability of any set of outcomes under one log is at most exp(`epsilon`) times that
      under the other, plus `delta`.

    >>> print(DifferentialPrivacy(epsilon=1.0, delta=1e-5).in_words())
    With or without any one person's searches, every possible release is about as likely: its probability differs by a
    factor of at most 2.72, plus at most 1 in 100,000.
    """

    is_noisy: ClassVar[bool] = True

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            if not is_number(value):
                raise BadParameter(name, repr(value), allowed="a number")
        if not 0 < self.epsilon <= _MOST_EPSILON:
            raise BadParameter("epsilon", self.epsilon, allowed=f"above 0 and at most {_MOST_EPSILON}")
        if not 0 < self.delta < 1:
            raise BadParameter("delta", self.delta, allowed="above 0 and below 1")

    def title(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-differential privacy"

    def in_words(self) -> str:
        return (
            "With or without any one person's searches, every possible release is about as likely: its probability "
            f"differs by a factor of at most {_factor(self.epsilon)}, plus at most {_part(self.delta)}."
        )

    def not_promised(self) -> tuple[str, ...]:
        return (
            "What is true of people in general is learned, also of those who are not in the log.",
            "Several people who act alike, or one person with several user ids, are not one person here: their "
            "factors multiply.",
            "Each further release about the same people adds its epsilon and delta; a ledger keeps count of that.",
            "Counts are noisy, and a query that is missing may well have been asked.",
        )


class NoPromise(Promise, frozen=True, kw_only=True, tag="none"):
    """Nothing is promised.

    - `reason`: why.

    >>> print(NoPromise(reason="counts were rounded as in the paper").in_words())
    This release promises nothing: counts were rounded as in the paper.
    """

    promises_nothing: ClassVar[bool] = True

    reason: str

    def title(self) -> str:
        return "No promise"

    def in_words(self) -> str:
        return f"This release promises nothing: {self.reason}."

    def not_promised(self) -> tuple[str, ...]:
        return ("Nothing is guaranteed: any person may be identifiable in this release.",)


def _factor(epsilon: float) -> str:
    """Return exp(epsilon) as text, rounded up, and so never 1.

    >>> [_factor(epsilon) for epsilon in (0.0001, 0.1, 1, 5, 8, 20)]
    ['1.00011', '1.11', '2.72', '149', '2,981', '4.86e+08']
    """
    factor = Decimal(float(epsilon)).exp()
    if factor < Decimal("1.1"):
        return str(1 + _rounded_up(factor - 1, digits=2))
    if 1000 <= factor < 1_000_000:
        return f"{factor.to_integral_value(ROUND_CEILING):,}"
    return f"{float(_rounded_up(factor, digits=3)):.3g}"


def _part(delta: float) -> str:
    """Return delta as text, rounded up but never to 1: as 1 in so many where that can be pictured.

    >>> [_part(delta) for delta in (1e-5, 7e-7, 1e-100, 0.3, 0.99999)]
    ['1 in 100,000', '1 in 1,428,571', '1e-100', '0.3', '0.99999']
    """
    exact = Decimal(repr(float(delta)))
    if 10 <= 1 / exact <= _MOST_PICTURED:
        return f"1 in {int(1 / exact):,}"
    rounded = _rounded_up(exact, digits=3)
    return f"{float(rounded if rounded < 1 else exact)!r}"


def _rounded_up(value: Decimal, *, digits: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(value.adjusted() - digits + 1), ROUND_CEILING)

"""What a release promises, as values that can be compared, printed and written to a manifest."""

from __future__ import annotations

from datetime import timedelta
from decimal import ROUND_CEILING, Decimal
from typing import TypeAlias

import msgspec

from queryveil.errors import BadParameter
from queryveil.settings import is_number

_MOST = 2**31 - 1
"""The most users that can be counted."""
_MOST_EPSILON = 100
_MOST_PICTURED = 10**12
"""Nobody can picture 1 in more than this."""
_LEAST_P = 1e-9
"""It needs a thousand million users."""
_USERS_ARE_IDS = "User ids are counted, not people: one person with several ids counts as several."
_ONE_RELEASE = "A second release about the same people may undo this one."


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

    def not_promised(self) -> tuple[str, ...]:
        """Return what an attacker can still do."""
        if self.m is None:
            more = "What all of them have in common is told of each: if all asked for an illness, all have it."
        else:
            more = (
                f"Whoever knows {self.m + 1} terms or more may be left with one person, and so may whoever knows that "
                "a person never used a term."
            )
        return (
            more,
            "The number of a person's queries, their days and times, and every column that was kept are not covered.",
            _USERS_ARE_IDS,
            _ONE_RELEASE,
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
        return f"Every transaction in this release has exactly the same items, as often, as at least {_others(self.k)}."

    def not_promised(self) -> tuple[str, ...]:
        """Return what an attacker can still do."""
        return (
            "What all of a cluster have in common is told of each of them: if all asked for an illness, all have it.",
            "Transactions are counted, not people: where a transaction is a query, one person can have several.",
            _ONE_RELEASE,
        )


class KdeltaAnonymity(
    msgspec.Struct, frozen=True, kw_only=True, tag="kdelta", tag_field="model", repr_omit_defaults=True
):
    """Every user has the same shares of queries and clicked URLs as at least k-1 others.

    The shares are those of a user's rows in each cell, a cell being a cluster of queries and a URL. Within a cluster
    any two queries differ in at most `delta` of the URLs clicked for them (1 minus the Jaccard similarity), in the
    released log itself. With `same_texts` every query is a cluster of its own. The number of a user's rows may differ.

    >>> print(KdeltaAnonymity(k=5, delta=0.5).in_words())
    Every person in this log has the same shares of queries and clicked URLs as at least 4 others, where queries count
    as the same if the URLs clicked for them differ by 50 % at most; their texts may differ.
    """

    k: int
    delta: float
    same_texts: bool = False

    def __post_init__(self) -> None:
        _check_k(self.k)
        if not 0 <= self.delta <= 1:
            raise BadParameter("delta", self.delta, allowed="between 0 and 1")

    def in_words(self) -> str:
        """Say the promise to somebody who has not read the paper."""
        if self.same_texts:
            same = "the same queries and clicked URLs, in the same shares"
            return f"Every person in this log has {same}, as at least {_others(self.k)}."
        return (
            f"Every person in this log has the same shares of queries and clicked URLs as at least {_others(self.k)}, "
            f"where queries count as the same if the URLs clicked for them differ by {100 * self.delta:.4g} % at most; "
            "their texts may differ."
        )

    def not_promised(self) -> tuple[str, ...]:
        """Return what an attacker can still do."""
        texts = (
            "A text stays as it is, with a name in it if there was one; that others share it is all that is promised."
            if self.same_texts
            else "The words of a query are not covered: a text that one person asked, a name in it, may stand there."
        )
        return (
            texts,
            "The number of a person's rows and their days and times are not covered.",
            "Rows may be made up or carry another text: no row may be taken for what a person did.",
            "What all of a group have in common is told of each of them.",
            _ONE_RELEASE,
        )


class Linkability(msgspec.Struct, frozen=True, kw_only=True, tag="plink", tag_field="model"):
    """A term of a group links to a member of it with a probability of at most p.

    As in the paper: the average profile is at most the share p of all terms that a group's members bring in. With
    `strict`: no term of a group is held by more than the share p of its members.

    >>> print(Linkability(p=0.4).in_words())
    Of all the terms that the members of a group bring in, an average person's are at most 40 %; a term that most
    members share is not covered.
    >>> print(Linkability(p=0.4, strict=True).in_words())
    No term of a group is held by more than 40 % of its members.
    """

    p: float
    strict: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.p <= 1:
            raise BadParameter("p", self.p, allowed="above 0 and at most 1")
        if self.p < _LEAST_P:
            raise BadParameter("p", self.p, allowed=f"{_LEAST_P} or more")

    def in_words(self) -> str:
        """Say the promise to somebody who has not read the paper."""
        share = f"{100 * self.p:.4g} %"
        if self.strict:
            return f"No term of a group is held by more than {share} of its members."
        return (
            f"Of all the terms that the members of a group bring in, an average person's are at most {share}; "
            "a term that most members share is not covered."
        )

    def not_promised(self) -> tuple[str, ...]:
        """Return what an attacker can still do."""
        own = (
            "What all of a group mean in different words (gout, asthma, lupus) is told of each of them; and that a "
            "common term is missing can mean that most have it."
            if self.strict
            else "A term that all of a group share is told of each of them, and a person with many terms stands out."
        )
        return (
            own,
            "A rare term, or a name that is a word, leaves with the group of the one person who had it.",
            "Whoever has the list of who is in which group sees through it.",
            _ONE_RELEASE,
        )


class SwapAnonymity(msgspec.Struct, frozen=True, kw_only=True, tag="swap", tag_field="model", repr_omit_defaults=True):
    """Queries change hands within a pool of their category, and nobody is given a query of their own.

    An event leaves only from a pool of its category in which at least k events wait, with at least l distinct users
    among them. No released row pairs a user with a query text that this user issued: anywhere in the log, or, on a
    stream, before the release and among the last `remembered` events. Nobody has more rows in a category than before.

    >>> print(SwapAnonymity(k=10, l=10).in_words())
    Every query left a pool of at least 10 queries of its category, from at least 10 people, and was handed to somebody
    who never asked it.
    """

    k: int
    l: int  # noqa: E741 - as in the papers
    remembered: int | None = None

    def __post_init__(self) -> None:
        _check_k(self.k)
        if not isinstance(self.l, int) or not 2 <= self.l <= self.k:
            raise BadParameter("l", self.l, allowed=f"between 2 and k ({self.k})")
        if self.remembered is not None and (not isinstance(self.remembered, int) or self.remembered < 1):
            raise BadParameter("remembered", self.remembered, allowed="1 or more events")

    def in_words(self) -> str:
        """Say the promise to somebody who has not read the paper."""
        asked = "never asked it"
        if self.remembered is not None:
            asked = f"had not asked it among the last {self.remembered:,} events"
        return (
            f"Every query left a pool of at least {self.k} queries of its category, from at least {self.l} people, "
            f"and was handed to somebody who {asked}."
        )

    def not_promised(self) -> tuple[str, ...]:
        """Return what an attacker can still do."""
        return (
            "Texts leave as they are, without identifiers that were recognised: whoever recognises a query knows that "
            "it was asked, and names that no table knows stay.",
            "Who asks how often for what kind of thing is what a release shows, and such counts can be a fingerprint.",
            "Whoever is given a query did not ask it: no row may be taken for what a person did.",
            "Events and ids are counted, not people: whoever can send events under many ids learns what others sent.",
            "Released times are near those of a person's own queries, and may tell which id is whose.",
            _ONE_RELEASE,
        )


class DifferentialPrivacy(msgspec.Struct, frozen=True, kw_only=True, tag="dp", tag_field="model"):
    """Whether one person is in the log changes the chance of any outcome by a factor of at most exp(epsilon).

    Two logs are neighbours if one person's rows are added or removed, all of them. The chance of any set of outcomes
    under one log is at most exp(epsilon) times that under the other, plus `delta`. It is the promise of everything in
    the release together.

    >>> print(DifferentialPrivacy(epsilon=1.0, delta=1e-5).in_words())
    With or without any one person's searches, whatever is seen in this release is about as likely: the chances differ
    by a factor of at most 2.72, but for a part of 1 in 100,000.
    """

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

    def in_words(self) -> str:
        """Say the promise to somebody who has not read the paper."""
        return (
            "With or without any one person's searches, whatever is seen in this release is about as likely: the "
            f"chances differ by a factor of at most {_factor(self.epsilon)}, but for a part of {_part(self.delta)}."
        )

    def not_promised(self) -> tuple[str, ...]:
        """Return what an attacker can still do."""
        return (
            "What is true of people in general is learned, also of those who are not in the log.",
            "Several people who act alike, or one person with several user ids, are not one person here: their "
            "factors multiply.",
            "Each further release about the same people adds its epsilon and delta; a ledger keeps count of that.",
            "Counts are noisy, and a query that is missing may well have been asked.",
        )


class NoPromise(msgspec.Struct, frozen=True, kw_only=True, tag="none", tag_field="model"):
    """Nothing is promised, and why.

    >>> print(NoPromise(reason="counts were rounded as in the paper").in_words())
    This release promises nothing: counts were rounded as in the paper.
    """

    reason: str

    def in_words(self) -> str:
        """Say that there is no promise."""
        return f"This release promises nothing: {self.reason}."

    def not_promised(self) -> tuple[str, ...]:
        """Return what an attacker can still do."""
        return ("Anything: nobody may rely on it that a person cannot be found in this release.",)


Guarantee: TypeAlias = (
    KmAnonymity | TransactionAnonymity | KdeltaAnonymity | Linkability | SwapAnonymity | DifferentialPrivacy | NoPromise
)


def _factor(epsilon: float) -> str:
    """Write exp(epsilon), rounded up, and so never as 1.

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
    """Write delta, rounded up but never to 1: as 1 in so many where that can be pictured.

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


def _others(k: int) -> str:
    return "1 other" if k == 2 else f"{k - 1} others"


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

"""Guarantees of k-anonymity in its variants: km, transactions, k-delta, p-linkability and swap."""

from typing import ClassVar

from queryveil.errors import BadParameter
from queryveil.guarantees._promise import MOST, ONE_RELEASE, Promise, check_k, others, parse_window

_LEAST_P = 1e-9  # it needs a thousand million users
_USERS_ARE_IDS = "User ids are counted, not people: one person with several ids counts as several."


class KmAnonymity(Promise, frozen=True, kw_only=True, tag="km", repr_omit_defaults=True):
    """Any combination of up to m terms of a user occurs in the histories of at least k users.

    - `k`: the least number of users.
    - `m`: the most terms of a combination; None: each whole history is identical to those of at least k-1 other users.
    - `window`: the length of a window of time (`1d`, `7d`, ..., counted from 1970-01-01 UTC). Histories are those of
      one window, and no user id occurs in two.
    - `time_unit`: if released times count as terms, how long the stretches are (`1d`, `7d`, `28d`, counted as windows
      are) whose starts they are.
    - `items`: whether terms are separated by blanks only and upper and lower case differ, as for items of transaction
      files and nodes of a taxonomy in `<angle_brackets>`.

    >>> KmAnonymity(k=10, m=3)
    KmAnonymity(k=10, m=3)
    >>> KmAnonymity(k=10, m=3).title()
    '(10, 3)-anonymity'
    >>> print(KmAnonymity(k=10, m=3).in_words())
    Whoever knows up to 3 search terms of a person finds at least 10 people in this log who used all of them, or nobody.
    """

    k: int
    m: int | None
    window: str | None = None
    items: bool = False
    time_unit: str | None = None

    def __post_init__(self) -> None:
        check_k(self.k)
        if self.time_unit is not None:
            if self.window is not None or self.m is None:
                raise BadParameter("time_unit", self.time_unit, allowed="left out with windows and for whole histories")
            parse_window(self.time_unit, name="time_unit")
        if self.m is not None and not (isinstance(self.m, int) and 1 <= self.m <= MOST):
            raise BadParameter("m", self.m, allowed="1 or more, or none for whole histories")
        if self.window is not None:
            parse_window(self.window)

    def title(self) -> str:
        name = f"{self.k}-anonymity of whole histories" if self.m is None else f"({self.k}, {self.m})-anonymity"
        if self.time_unit:
            return f"{name} of terms and times"
        return f"{name} in windows of {self.window}" if self.window else name

    def in_words(self) -> str:
        within = f" within each window of {self.window}" if self.window else ""
        if self.m is None:
            return (
                f"Every person in this log has exactly the same set of search terms as at least {self.k - 1} "
                f"others{within}, or no terms at all."
            )
        terms = "1 search term" if self.m == 1 else f"up to {self.m} search terms"
        if self.time_unit:
            terms, within = f"{terms} or times", f" (times are stretches of {self.time_unit})"
        return (
            f"Whoever knows {terms} of a person finds at least {self.k} people in this log who used "
            f"all of them{within}, or nobody."
        )

    def not_promised(self) -> tuple[str, ...]:
        if self.m is None:
            more = "What all have in common is revealed about each of them: if all asked for an illness, all have it."
        else:
            more = (
                f"Whoever knows {self.m + 1} terms or more may be left with one person, and so may whoever knows that "
                "a person never used a term."
            )
        times = "that a time belongs to a query: it counts as one of the person" if self.time_unit else "days and times"
        return (
            more,
            f"Not covered are how many queries a person has or has a term in, columns that were kept, and {times}.",
            _USERS_ARE_IDS,
            ONE_RELEASE,
        )


class TransactionAnonymity(Promise, frozen=True, kw_only=True, tag="transactions"):
    """Every transaction is identical, as a bag of items, to at least k-1 others.

    - `k`: the least number of identical transactions. The order of items does not matter, but their multiplicity does.
      A transaction without items is a bag like any other: there are none of them, or at least `k`.

    >>> print(TransactionAnonymity(k=5).in_words())
    Every transaction in this release has exactly the same items, as often, as at least 4 others.
    """

    released: ClassVar[str] = "transactions"

    k: int

    def __post_init__(self) -> None:
        check_k(self.k)

    def title(self) -> str:
        return f"{self.k}-anonymity of transactions"

    def in_words(self) -> str:
        return f"Every transaction in this release has exactly the same items, as often, as at least {others(self.k)}."

    def not_promised(self) -> tuple[str, ...]:
        return (
            "What all of a cluster share is revealed about each of them: if all asked for an illness, all have it.",
            "Transactions are counted: where a transaction is a query, the files cannot show that k are of k people.",
            ONE_RELEASE,
        )


class KdeltaAnonymity(Promise, frozen=True, kw_only=True, tag="kdelta", repr_omit_defaults=True):
    """Every user has the same shares of queries and clicked URLs as at least k-1 others.

    The shares are those of a user's rows in each cell, a cell being a cluster of queries and a URL. The number of a
    user's rows may differ.

    - `k`: the least number of users.
    - `delta`: within a cluster any two queries differ in at most this share of the URLs clicked for them (1 minus the
      Jaccard similarity), in the released log itself.
    - `same_texts`: whether every query is a cluster of its own.
    - `same_days`: whether the shares are those of cells on each day, so that days are shared too.
    - `max_distance`: how far the shares of these k users may be from the user's own, as half the sum of the absolute
      differences (D in the paper), below 1; at 0 they are equal.

    >>> print(KdeltaAnonymity(k=5, delta=0.5).in_words())
    Every person in this log has the same shares of queries and clicked URLs as at least 4 others, where queries count
    as the same if the URLs clicked for them differ by 50 % at most; their texts may differ.
    >>> print(KdeltaAnonymity(k=5, delta=0.5, max_distance=0.2).in_words())
    Every person in this log has the same shares of queries and clicked URLs as at least 4 others, but for 20 % of them
    at most, where queries count as the same if the URLs clicked for them differ by 50 % at most; their texts may
    differ.
    """

    k: int
    delta: float
    same_texts: bool = False
    same_days: bool = False
    max_distance: float = 0.0

    def __post_init__(self) -> None:
        check_k(self.k)
        if not 0 <= self.delta <= 1:
            raise BadParameter("delta", self.delta, allowed="between 0 and 1")
        if not 0 <= self.max_distance < 1:
            raise BadParameter("max_distance", self.max_distance, allowed="0 or more and below 1")

    def title(self) -> str:
        near = f" with D up to {self.max_distance:g}" if self.max_distance else ""
        days = ", same days" if self.same_days else ""
        return f"({self.k}, {'same texts' if self.same_texts else f'{self.delta:g}'}{days}) k-delta-anonymity{near}"

    def in_words(self) -> str:
        near = f", but for {100 * self.max_distance:.4g} % of them at most" if self.max_distance else ""
        days = " on each day" if self.same_days else ""
        if self.same_texts:
            same = f"the same queries and clicked URLs{days}, in the same shares"
            return f"Every person in this log has {same}, as at least {others(self.k)}{near}."
        return (
            f"Every person in this log has the same shares of queries and clicked URLs{days} as at least "
            f"{others(self.k)}{near}, where queries count as the same if the URLs clicked for them differ by "
            f"{100 * self.delta:.4g} % at most; their texts may differ."
        )

    def not_promised(self) -> tuple[str, ...]:
        texts = (
            "A text stays as it is, with a name in it if there was one; that others share it is all that is promised."
            if self.same_texts
            else "The words of a query are not covered: a text that one person asked, a name in it, may stand there."
        )
        near = "What a person has beyond the shares of the group is that person's own, and may be known to somebody."
        return (
            texts,
            *([near] if self.max_distance else []),
            "A day is one on which somebody of the group searched; the number of a person's rows is not covered."
            if self.same_days
            else "The number of a person's rows and their days and times are not covered.",
            "Rows may be made up or carry another text: no row may be taken for what a person did.",
            "What all of a group have in common is revealed about each of them.",
            ONE_RELEASE,
        )


class Linkability(Promise, frozen=True, kw_only=True, tag="plink"):
    """A term of a group links to a member of it with a probability of at most p.

    - `p`: as in the paper, the average profile is at most this share of all terms that a group's members bring in.
    - `strict`: whether instead no term of a group is held by more than the share p of its members.

    >>> print(Linkability(p=0.4).in_words())
    Of all the terms that the members of a group bring in, an average person's are at most 40 %; a term that most
    members share is not covered.
    >>> print(Linkability(p=0.4, strict=True).in_words())
    No term of a group is held by more than 40 % of its members.
    """

    released: ClassVar[str] = "groups"
    is_of_profiles: ClassVar[bool] = True

    p: float
    strict: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.p <= 1:
            raise BadParameter("p", self.p, allowed="above 0 and at most 1")
        if self.p < _LEAST_P:
            raise BadParameter("p", self.p, allowed=f"{_LEAST_P} or more")

    def title(self) -> str:
        return f"{'Strict ' if self.strict else ''}{self.p:g}-linkability"

    def in_words(self) -> str:
        share = f"{100 * self.p:.4g} %"
        if self.strict:
            return f"No term of a group is held by more than {share} of its members."
        return (
            f"Of all the terms that the members of a group bring in, an average person's are at most {share}; "
            "a term that most members share is not covered."
        )

    def not_promised(self) -> tuple[str, ...]:
        own = (
            "What all of a group mean in different words (gout, asthma, lupus) is revealed about each of them; and "
            "that a common term is missing can mean that most have it."
            if self.strict
            else "A term that all of a group share is revealed about each, and a person with many terms stands out."
        )
        return (
            own,
            "A rare term, or a name that is a word, leaves with the group of the one person who had it.",
            "Anybody with the membership file can link users to their group's terms.",
            ONE_RELEASE,
        )


class SwapAnonymity(Promise, frozen=True, kw_only=True, tag="swap", repr_omit_defaults=True):
    """Queries are exchanged within a pool of their category, and nobody is assigned a query of their own.

    Nobody has more rows in a category than before.

    - `k`: an event is released only from a pool of its category in which at least so many events wait.
    - `l`: the least number of distinct users among them.
    - `remembered`: no released row pairs a user with a query text that this user issued: anywhere in the log (None), or
      on a stream before the release and among the last so many events.
    - `once`: what a user issued several times is released once: anywhere in the log, or among so many events.
    - `window`: length of the time windows of release; users get a new id in each.
    - `min_query_users`: approximate number of distinct users who must ask a text before it is released, the user of the
      released event included; where ids change, for the first time in one window (on a stream, of arrival).
    - `noise_bound`: largest noise added to that threshold, or taken from it, per text and window.

    >>> print(SwapAnonymity(k=10, l=10).in_words())
    Every query left a pool of at least 10 queries of its category, from at least 10 people, and was handed to somebody
    who never asked it.
    """

    needs_original: ClassVar[bool] = True

    k: int
    l: int  # noqa: E741 - as in the papers
    remembered: int | None = None
    once: bool = False
    window: str | None = None
    min_query_users: int = 1
    noise_bound: int = 0

    def __post_init__(self) -> None:
        check_k(self.k)
        if self.min_query_users < 1 or not 0 <= self.noise_bound < self.min_query_users:
            raise BadParameter("noise_bound", self.noise_bound, allowed="0 or more, and below min_query_users")
        if self.window is not None:
            parse_window(self.window)
        if not isinstance(self.l, int) or not 2 <= self.l <= self.k:
            raise BadParameter("l", self.l, allowed=f"between 2 and k ({self.k})")
        if self.remembered is not None and (not isinstance(self.remembered, int) or self.remembered < 1):
            raise BadParameter("remembered", self.remembered, allowed="1 or more events")

    @property
    def fewest(self) -> int:
        """The least number of users who asked a text that is released."""
        return self.min_query_users - self.noise_bound

    def title(self) -> str:
        return f"Swap anonymity (k={self.k}, l={self.l})"

    def in_words(self) -> str:
        asked = "never asked it"
        if self.remembered is not None:
            asked = f"had not asked it among the last {self.remembered:,} events"
        rules = [
            f"Every query left a pool of at least {self.k} queries of its category, from at least {self.l} people, "
            f"and was handed to somebody who {asked}",
            *(["what a person asked again left once"] if self.once else []),
            *([f"ids change every {self.window}"] if self.window else []),
        ]
        if self.min_query_users > 1:
            anew = f", counted anew every {self.window}" if self.window else ""
            people = f"about {self.min_query_users} people, at least {self.fewest}, had asked them"
            rules.append(f"texts left once {people}{anew}")
        return "; ".join(rules) + "."

    def not_promised(self) -> tuple[str, ...]:
        return (
            "Texts leave as they are, without identifiers that were recognised: whoever recognises a query knows that "
            "it was asked, and names that no table knows stay.",
            "Who asks how often for what kind of thing is what a release shows, and such counts can be a fingerprint.",
            "Whoever is given a query did not ask it: no row may be taken for what a person did.",
            "Events and ids are counted, not people: whoever can send events under many ids learns what others sent.",
            "Released times are near those of a person's own queries, and may tell which id is whose.",
            ONE_RELEASE,
        )

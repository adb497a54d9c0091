"""The settings of every method: defaults, ranges and help, readable without loading what the methods work with.

A method inherits its settings; a field that holds data of its own (a policy for columns, a key) stands in the method.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from queryveil.errors import BadParameter
from queryveil.settings import check_settings, setting

if TYPE_CHECKING:
    import polars as pl

    from queryveil.guarantees import SwapAnonymity
    from queryveil.text.classifier import Classifier
    from queryveil.text.taxonomy import Taxonomy

MOST_ITEMS = 1000
"""Dp: no more counts may a person have a part in."""
_BOTS: dict[str, Any] = {
    "at_least": 1,
    "none": "to keep every user",
    "option": "bots",
    "typed_none": 0,
    "help": "A bot asks more in a session; 0: no bots.",
}
_SEED: dict[str, Any] = {"help": "Repeat a run; not for releases.", "recorded": False}
_TAXONOMY: dict[str, Any] = {
    "metavar": "wordnet|FILE",
    "typed_default": "wordnet",
    "help": "WordNet's nouns, or a CSV of child,parent.",
}
_UNIT: dict[str, Any] = {"help": "A transaction is a user, or a query."}
_SAME: dict[str, Any] = {"at_least": 2, "help": "Transactions that must be identical, 2 or more."}


class Target(StrEnum):
    """What the terms that stay should be worth."""

    LOG_SIZE = "log_size"
    USERS = "users"
    BID = "bid"
    CLICKS = "clicks"
    IMPRESSIONS = "impressions"
    REVENUE = "revenue"
    RANDOM = "random"
    FIS = "fis"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KmSettings:
    """Delete terms until any m terms of a user are shared by k users."""

    k: int = setting(10, at_least=2, help="Users who must share terms, 2 or more.")
    m: int | None = setting(
        3, at_least=1, none="for whole histories", typed_none="none", help="Terms that may be known, or none: all."
    )
    target: Target = setting(
        Target.LOG_SIZE, help="Keep most log_size, users, bid, clicks, impressions, revenue; or random, fis."
    )
    values: pl.DataFrame | None = setting(
        None, metavar="FILE", help="Table of term,bid,clicks,impressions.", recorded=False, repr=False
    )
    restore: bool = setting(True, help="Only delete, as the paper does.")
    taxonomy: Taxonomy | None = setting(
        None, metavar="wordnet|FILE", help="Move terms up in it before deleting.", repr=False
    )
    window: str | None = setting(None, help="Cut histories by time: 12h, 1d, 7d.")
    repeats: str = setting("all", one_of=("once", "all"), help="Equal texts of an id: all or once.")
    bot_threshold: int | None = setting(100, **_BOTS)
    seed: int | None = setting(None, repr=False, **_SEED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KdeltaSettings:
    """Add and leave out queries until k users have the same shares of queries and clicks."""

    k: int = setting(5, at_least=2, help="Users with equal shares.")
    delta: float = setting(0.5, at_least=0, at_most=1, help="How far like queries may differ.")
    mode: str = setting("exact", one_of=("exact", "paper"), help="exact, or paper: rounded counts.")
    max_distance: float = setting(0.0, at_least=0, below=1, help="How far shares may differ.")
    additions: bool = setting(True, help="Only leave rows out, add none.")
    same_texts: bool = setting(False, help="Give k users the same texts, too.")
    centroids: str = setting("best", one_of=("best", "paper"), help="best: least change; or paper.")
    min_cluster_users: int = setting(2, at_least=1, help="Users a cluster of queries needs.")
    min_query_users: int = setting(1, at_least=1, help="Users a query needs.")
    bot_threshold: int | None = setting(100, **_BOTS)
    seed: int | None = setting(None, repr=False, **_SEED)


class Weights(StrEnum):
    """What the weight of a term of a log is."""

    BINARY = "binary"
    COUNT = "count"
    TFIDF = "tfidf"


class Representative(StrEnum):
    """How the profile of a group is made from those of its members."""

    CENTROID = "centroid"
    UNION = "union"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlinkSettings:
    """Group similar profiles until no member stands out, and release one profile per group."""

    p: float = setting(0.4, above=0, at_most=1, help="Most a term may link to a member.")
    a: int = setting(1, at_least=0, at_most=3, help="Steps up in WordNet, 0 to 3.")
    strict: bool = setting(False, help="Hold p for every term; drop those that exceed it.")
    weights: Weights = setting(Weights.BINARY, help="binary, count or tfidf, for profiles made from a log.")
    representative: Representative = setting(
        Representative.CENTROID, help="centroid or union of the members' profiles."
    )
    aversion: float = setting(1.0, at_least=0, at_most=100, help="Strict only: higher drops fewer terms.")
    taxonomy: Taxonomy | None = setting(None, repr=False, **_TAXONOMY)
    bot_threshold: int | None = setting(100, **_BOTS)
    seed: int | None = setting(None, repr=False, **_SEED)


class Unit(StrEnum):
    """What a transaction is made of."""

    USER = "user"
    QUERY = "query"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClumpSettings:
    """Put similar users together and release what all of a cluster have in common."""

    k: int = setting(5, **_SAME)
    r: int = setting(10, help="Open clusters that are compared.")
    unit: Unit = setting(Unit.USER, **_UNIT)
    distinct: bool = setting(False, help="Take each item of a transaction once.")
    dedupe: bool = setting(False, help="Release each item of a cluster once (Clump2).")
    paper: bool = setting(False, help="The paper's algorithm to the letter.")
    taxonomy: Taxonomy | None = setting(None, repr=False, **_TAXONOMY)
    seed: int | None = setting(None, repr=False, **_SEED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionSettings:
    """Specialise items from the root of a taxonomy down while k transactions stay identical."""

    k: int = setting(5, **_SAME)
    unit: Unit = setting(Unit.USER, **_UNIT)
    taxonomy: Taxonomy | None = setting(None, repr=False, **_TAXONOMY)
    seed: int | None = setting(None, repr=False, **_SEED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolRules:
    """The conditions under which a pool of swap releases an event."""

    k: int = setting(10, at_least=2, help="Events in a pool.")
    l: int | None = setting(None, help="Users in it; k if not given.")  # noqa: E741 - as in the papers
    growth: float = setting(1.2, above=1, allowed="above 1", help="Factor for k if stuck.")
    max_pool: int = setting(10_000, help="Most events in it.")
    shrink: bool = setting(True, help="Grown pools stay, as in the paper.")
    repeats: str = setting("once", one_of=("once", "all"), help="Repeats: once or all.")
    window: str | None = setting("1d", typed_none="none", help="Life of an id, or none.")
    min_query_users: int = setting(1, at_least=1, help="Users a text needs.")

    def __post_init__(self) -> None:
        check_settings(self)
        if not isinstance(self.max_pool, int) or not self.k <= self.max_pool <= 2**31:
            raise BadParameter("max_pool", self.max_pool, allowed=f"at least k ({self.k}), at most 2,147,483,648")
        if self.min_query_users == 2:
            raise BadParameter("min_query_users", 2, allowed="1, or 3 and more: less has no room for noise")
        if self.min_query_users > 1 and self.repeats != "once":
            raise BadParameter("repeats", self.repeats, allowed="once where texts need several people")

    @property
    def n_distinct(self) -> int:
        """How many distinct users a pool needs."""
        return self.k if self.l is None else self.l

    def pool_settings(self, *, remembered: int | None) -> PoolSettings:
        """Return these rules with a memory of who issued what."""
        rules = {rule.name: getattr(self, rule.name) for rule in fields(PoolRules)}
        return PoolSettings(**rules, remembered=remembered)


_REMEMBERED = 32_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings(PoolRules):
    """The conditions under which a pool releases an event: it holds k events of l users (of k users if l is None).

    `growth` is by how much k grows in a pool where nothing can leave (δ in the paper), up to `max_pool` events: beyond
    that the oldest is suppressed. `remembered` is how many events the memory of who issued what goes back; None is for
    a log that is added at once. `repeats` says whether what a user issues again, as far as that memory goes back, is
    left out.
    """

    remembered: int | None = _REMEMBERED

    def __post_init__(self) -> None:
        PoolRules.__post_init__(self)
        self.promise  # noqa: B018 - it checks l and remembered

    @property
    def promise(self) -> SwapAnonymity:
        """The guarantee for released events."""
        from queryveil.guarantees import SwapAnonymity  # noqa: PLC0415 - the help of commands needs no guarantee

        return SwapAnonymity(
            k=self.k,
            l=self.n_distinct,
            remembered=self.remembered,
            once=self.repeats == "once",
            window=self.window,
            min_query_users=self.min_query_users,
            noise_bound=max(0, self.min_query_users - 2),
        )


_DRAIN: dict[str, Any] = {"one_of": ("suppress", "release")}
_UNCLASSIFIED: dict[str, Any] = {"one_of": ("pool", "drop")}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SwapSettings(PoolRules):
    """Return each query to somebody else who asked for the same kind of thing."""

    drain: str = setting("suppress", help="Events left: suppress or release.", **_DRAIN)
    unclassified: str = setting("pool", help="pool or drop queries of no category.", **_UNCLASSIFIED)
    order: str = setting("time", one_of=("time", "file"), help="By time, or file.")
    classifier: Classifier | str | None = setting(None, typed_default="evidence", help="evidence or paper.", repr=False)
    seed: int | None = setting(None, repr=False, **_SEED)


_RUNNING = "How it runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings(PoolRules):
    """How events are anonymized while they come in."""

    remembered: int = setting(_REMEMBERED, option="remember", help="Events remembered.")
    max_wait: str | None = setting("7d", typed_none="none", help="Longest wait; none: ever.")
    unclassified: str = setting("pool", help="pool or drop.", **_UNCLASSIFIED)
    classifier: str = setting("evidence", help="evidence or paper.")
    workers: int = setting(
        1, at_least=1, at_most=64, allowed="between 1 and 64", help="Processes that classify.", panel=_RUNNING
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSettings(LiveSettings):
    """How lines are anonymized: those of a file have an end."""

    drain: str = setting("suppress", help="Events left: suppress or release.", **_DRAIN)
    patience: float | None = setting(
        None, at_least=0, allowed="0 or more seconds", help="Seconds to try again; 60 for files.", panel=_RUNNING
    )


class Mechanism(StrEnum):
    """The kinds of noise; `auto` takes the one that lets the smallest counts leave."""

    AUTO = "auto"
    TRUNCATED_GEOMETRIC = "truncated-geometric"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    ZEALOUS = "zealous"


class Choice(StrEnum):
    """How a person's few queries are picked: at `random`, or those that the person asked most often (`frequent`)."""

    RANDOM = "random"
    FREQUENT = "frequent"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DpSettings:
    """Release queries with counts, noisy enough to hide any one user."""

    epsilon: float = setting(1.0, above=0, at_most=100, help="Above 0; less is safer.")
    delta: float = setting(
        1e-5, above=0, below=1, help="Chance that the promise fails; far below 1 in the number of users."
    )
    max_queries: int = setting(5, at_least=1, at_most=MOST_ITEMS, help="Queries that a user counts for.")
    mechanism: Mechanism = setting(
        Mechanism.AUTO, help="auto, truncated-geometric, gaussian, laplace or zealous noise."
    )
    rounds: Literal[1, 2] = setting(1, one_of=(1, 2), help="1, or 2: pick again from what is not out yet.")
    choose: Choice = setting(Choice.RANDOM, allowed=f"one of {', '.join(Choice)}", help="random or frequent queries.")
    clicks: float = setting(
        0.0,
        at_least=0,
        below=1,
        allowed="a part of the budget, 0 or more and below 1",
        help="Part of the budget for clicked URLs, 0 to below 1.",
    )
    max_clicks: int = setting(5, at_least=1, at_most=MOST_ITEMS, help="Clicks that a user counts for.")
    bot_threshold: int | None = setting(100, **_BOTS)
    seed: int | None = setting(None, repr=False, **_SEED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PseudonymiseSettings:
    """Change the user ids and nothing else, as AOL did. Promises nothing."""

    seed: int | None = setting(None, repr=False, **_SEED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenHashSettings:
    """Replace every term by a keyed hash. Promises nothing."""

    seed: int | None = setting(None, repr=False, **_SEED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryThresholdSettings:
    """Keep queries that k users asked, drop the rest. Promises nothing."""

    k: int = setting(5, at_least=2, help="Users who must have asked a query.")
    seed: int | None = setting(None, repr=False, **_SEED)


_WITHIN: dict[str, Any] = {"typed_none": "none"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Google2024Settings:
    """Release exact counts of texts and clicks that enough users share, as Google does since 2024."""

    n_users: int = setting(30, at_least=2, help="Users who must have asked a text.")
    within: str | None = setting("395d", help="Last part of the log in which they did; none: all of it.", **_WITHIN)
    n_row_users: int = setting(5, at_least=2, help="Users who must have clicked a row.")
    rows_within: str | None = setting("91d", help="Last part of the log that is counted; none: all.", **_WITHIN)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ec2026Settings:
    """Release mini-sessions of texts whose words enough users asked, as the EU ordered in 2026."""

    n_users: int = setting(50, at_least=2, help="Users of each word, name, phone.")
    within: str | None = setting("395d", help="Time in which they did, or none.", **_WITHIN)
    listed: str | None = setting("1826d", help="How far back that counts, or none.", **_WITHIN)
    cell_users: int = setting(1000, at_least=2, help="Users of each device, country and language.")
    most_words: int = setting(10, at_least=1, help="Most words of a text.")
    session_rows: int = setting(3, at_least=1, help="Most rows of a mini-session.")
    session_minutes: int = setting(30, at_least=1, help="A pause that ends it.")
    seed: int | None = setting(None, repr=False, **_SEED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ddg2026Settings:
    """Drop texts with personal data and keep pseudonymous users, as DuckDuckGo proposed. Promises nothing."""

    public_users: int = setting(20, at_least=1, help="Users who make a name public; not published.")
    seed: int | None = setting(None, repr=False, **_SEED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BraveWdpSettings:
    """Release single rows whose text keeps the rules of Brave's Web Discovery Project."""

    most_characters: int = setting(120, at_least=1, help="Most characters of a text.")
    most_logogram_characters: int = setting(50, at_least=1, help="Most if Asian.")
    many_words: int = setting(9, at_least=1, help="Words that count as many.")
    most_long_words: int = setting(16, at_least=0, help="Most of 4 letters then.")
    most_digits: int = setting(7, at_least=0, help="Most digits in a run.")
    longest_word: int = setting(45, at_least=1, help="Most characters of a word.")
    longest_odd_word: int = setting(20, at_least=1, help="Of one with other signs.")
    url_users: int = setting(20, at_least=1, help="Users a kept URL needs.")
    seed: int | None = setting(None, repr=False, **_SEED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MozillaSettings:
    """Drop texts that are short, not English, or hold a digit, an @ or a name, as Mozilla does."""

    least_characters: int = setting(6, at_least=1, help="Least characters of a text.")
    name_score: float = setting(0.2, at_least=0, at_most=1, help="Score from which a text has a name.")
    english: float = setting(0.5, at_least=0, at_most=1, help="Share of English words; not published.")
    users: bool = setting(False, help="Keep a pseudonym of each user; not published.")
    seed: int | None = setting(None, repr=False, **_SEED)

"""How much of a log is left in a release; where that is hardly anything, a warning with a setting that keeps more."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import msgspec
import polars as pl

from queryveil.data import Groups, Profiles, QueryLog, Tallies, Transactions
from queryveil.errors import QueryveilError
from queryveil.release import Release
from queryveil.settings import settings_of
from queryveil.text.tokens import tokenize

LITTLE, FEW = 0.25, 0.1
"""Little is left if it is below this share of rows, or of words as typed where that is fewer than `FEW_WORDS`."""
FEW_WORDS = 50
MOST_ROWS, MOST_ROWS_OF_SLOW = 50_000, 10_000
"""In larger logs no other settings are tried, which would take more than a second or two."""
_WEAKER = {
    "km": ("k", "m"),
    "kdelta": ("k", "min_cluster_users"),
    "swap": ("k", "min_query_users"),
    "clump": ("k",),
    "partition": ("k",),
    "query_threshold": ("k",),
    "google_2024": ("n_users", "n_row_users"),
    "ec_2026": ("n_users", "cell_users"),
}
"""By method, the settings that decide how much is left: the lower, the more, and the less is protected."""
_SLOW = ("ec_2026", "google_2024")
_EPSILONS = (2.0, 5.0, 10.0)
_SOME = 5
"""With so many noisy counts it is not by the luck of the noise that there are any."""

Data = QueryLog | Transactions | Profiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """How much of a log is left in a release.

    - `noun`: what is counted: rows, users where each is a transaction or in a group, queries where these are counted.
    - `n`, `n_before`: how many there are, without those made up, and how many there were.
    - `n_words`, `n_words_before`: the distinct words of queries that are left as typed, and how many there were.

    >>> print(Remains(noun="rows", n=144, n_before=648, n_words=3, n_words_before=222))
    144 of 648 rows and 3 of 222 words as typed
    """

    noun: str
    n: int
    n_before: int
    n_words: int
    n_words_before: int

    @property
    def is_little(self) -> bool:
        """Whether this is hardly anything."""
        has_few_words = self.n_words < min(FEW_WORDS, FEW * self.n_words_before)
        return has_few_words or (self.noun != "queries" and self.n < LITTLE * self.n_before)

    def __str__(self) -> str:
        rows = f"{self.n:,} of {self.n_before:,} {self.noun}"
        return f"{rows} and {self.n_words:,} of {self.n_words_before:,} words as typed"

    @property
    def briefly(self) -> str:
        """What is left, without what there was."""
        return f"{self.n:,} {self.noun} and {self.n_words:,} words"


def what_is_left(data: Data, release: Release) -> Remains:
    """Return how much of a log is left in a release of it.

    >>> from queryveil.methods import QueryThreshold
    >>> log = QueryLog.from_frame({"user": ["1", "2", "3"], "query": ["red wine", "red wine", "gout diet"]})
    >>> print(what_is_left(log, QueryThreshold(k=2).anonymize(log)))
    2 of 3 rows and 2 of 4 words as typed
    """
    counts, manifest = release.manifest.counts, release.manifest
    before, after = _words(data), _words(release.data)
    noun, n, n_before = "rows", counts.n_rows_after - manifest.changed.get("rows_added", 0), counts.n_rows_before
    if isinstance(release.data, Groups) or manifest.parameters.get("unit") == "user":
        noun, n, n_before = "users", counts.n_users_after, counts.n_users_before
    elif isinstance(release.data, Tallies):
        noun, n = "queries", release.data.n_queries
        n_before = len(tokenize(data.frame["query"]).queries) if isinstance(data, QueryLog) else n
    there = before.is_in(after.implode()) if len(after) else pl.Series([], dtype=pl.Boolean)
    return Remains(noun=noun, n=n, n_before=n_before, n_words=int(there.sum()), n_words_before=len(before))


def _words(data: QueryLog | Transactions | Profiles | Groups | Tallies) -> pl.Series:
    """Return the distinct words, or items, of anything."""
    if isinstance(data, QueryLog | Tallies):
        by_blanks = isinstance(data, QueryLog) and data.terms_are_items
        return tokenize(data.frame["query"], by_blanks=by_blanks).vocabulary
    listed = data.frame["items" if isinstance(data, Transactions) else "terms"]
    return listed.explode(empty_as_null=False, keep_nulls=False).unique()


def warn_if_little(method: Any, data: Data, release: Release) -> Release:
    """Return the release; if hardly anything is left in it, its manifest warns of it and names what would keep more.

    Weaker settings are tried on the log, the least weak first, until one keeps more than hardly anything, else the one
    that keeps most is named. A method whose releases hold no words (hashes, noisy counts) gets no such warning.

    >>> from queryveil.methods import QueryThreshold
    >>> log = QueryLog.from_frame({"user": ["1", "2", "3"], "query": ["red wine", "red wine", "gout diet"]})
    >>> method = QueryThreshold(k=3)
    >>> warn_if_little(method, log, method.anonymize(log)).manifest.warnings[-1]
    'nothing was released: 0 of 3 rows and 0 of 4 words as typed; with --k 2 it would be 2 rows and 2 words, for less
    protection'
    """
    manifest = release.manifest
    if manifest.method == "token_hash" or manifest.promise.is_noisy:
        return release
    left = what_is_left(data, release)
    if not left.n_before or not left.is_little:
        return release
    what = "little" if left.n else "nothing"
    warning = f"{what} was released: {left}; {_way_out(method, data, left, name=manifest.method)}"
    return replace(release, manifest=msgspec.structs.replace(manifest, warnings=(*manifest.warnings, warning)))


def _way_out(method: Any, data: Data, left: Remains, *, name: str) -> str:
    names = _WEAKER.get(name, ())
    if not names:
        return "no weaker setting is known to keep more"
    if data.n_rows > (MOST_ROWS_OF_SLOW if name in _SLOW else MOST_ROWS):
        flags = " or ".join(settings_of(type(method))[each].flag for each in names)
        return f"a smaller {flags} keeps more, for less protection; so does a log of more users"
    best, kept = method, left
    for weaker in _weaker(method, names=names):
        try:
            found = what_is_left(data, weaker.anonymize(data))
        except QueryveilError:
            # Settings that do not go together, or not with this log.
            continue
        if (found.n_words, found.n) > (kept.n_words, kept.n):
            best, kept = weaker, found
        if not kept.is_little:
            break
    if best is method:
        return "weaker settings that were tried keep no more; a log of more users does"
    flags = _flags(best, instead_of=method, names=names)
    if kept.is_little:
        return f"of the settings that were tried {flags} keeps most: {kept.briefly}, for less protection"
    return f"with {flags} it would be {kept.briefly}, for less protection"


def _weaker(method: Any, *, names: tuple[str, ...]) -> Iterator[Any]:
    """Yield the method with weaker settings, those that protect most first."""
    first, *others = (_values(getattr(method, name), name=name) for name in names)
    for values in list(product(first, *others))[1:]:
        changed: dict[str, Any] = dict(zip(names, values, strict=True))
        if getattr(method, "l", None) is not None:
            # No pool has more users than events.
            changed["l"] = min(method.l, changed["k"])
        try:
            yield replace(method, **changed)
        except QueryveilError:
            continue


def _values(value: int | None, *, name: str) -> list[int | None]:
    """Return a setting and lower values of it.

    >>> _values(10, name="k"), _values(None, name="m"), _values(50, name="n_users")
    ([10, 5, 3, 2], [None, 1], [50, 16, 5, 2])
    """
    lower = [1]
    if value is not None and name in ("k", "n_users"):
        lower = [value // 2, 3, 2] if name == "k" else [value // 3, value // 10, 2]
    elif name in ("n_row_users", "cell_users"):
        lower = [2]
    return list(dict.fromkeys([value, *(each for each in lower if value is None or 1 <= each < value)]))


def _flags(method: Any, *, instead_of: Any, names: tuple[str, ...]) -> str:
    settings = settings_of(type(method))
    changed = [name for name in names if getattr(method, name) != getattr(instead_of, name)]
    return " ".join(f"{settings[name].flag} {getattr(method, name):g}" for name in changed)


def way_out_of_no_counts(method: Any, log: QueryLog) -> str:
    """Return what would release noisy counts of queries where dp released none, found by trying it.

    Privacy: this is for the owner of the log, and in no manifest: which settings release something is told by the log.
    """
    if log.n_rows > MOST_ROWS:
        return "more people, a smaller --max-queries or a larger --epsilon would help"
    tried = [epsilon for epsilon in (method.epsilon, *_EPSILONS) if epsilon >= method.epsilon]
    best, most = method, 0
    for epsilon in tried:
        other = replace(method, epsilon=epsilon, max_queries=1)
        n = other.anonymize(log).tallies.n_queries
        if n > most:
            best, most = other, n
        if most >= _SOME:
            break
    if not most:
        return f"nor would one with --epsilon {tried[-1]:g} --max-queries 1; more people would help"
    price = "for the same promise" if best.epsilon == method.epsilon else "for less protection"
    flags = _flags(best, instead_of=method, names=("epsilon", "max_queries"))
    return f"with {flags} it would be about {most:,}, {price}"

"""What was removed and changed, by kind, in plain words."""

from __future__ import annotations

from dataclasses import dataclass

from queryveil.release import Manifest

_WORDS = {
    "bad_rows_skipped": "rows that could not be read (never part of the log)",
    "bot_users": "users taken for programs",
    "bot_rows": "rows of users taken for programs",
    "rows_without_terms_before": "rows without any term, as they came",
    "rows_without_terms_left": "rows that lost all their terms",
    "term_occurrences": "terms taken out of queries",
    "terms": "different terms that are gone altogether",
    "terms_without_value": "terms that the table of values does not list (worth 0, not all removed)",
    "words_outside_the_taxonomy": "terms that the taxonomy does not know",
    "duplicate_items": "repetitions within a transaction",
    "transactions_without_items": "people or queries without any term of the taxonomy",
    "items_suppressed": "terms for which nothing is released",
    "rows_without_query": "rows with an empty query",
    "rows_of_rare_queries": "rows with a query that too few people asked",
    "rows_of_rare_clusters": "rows with a kind of query that too few people asked",
    "rows_suppressed": "rows held back to keep the promise",
    "rows_of_identifiers": "rows that were nothing but identifiers",
    "rows_unclassified": "rows of no category",
    "rows_still_waiting": "rows still waiting to leave in a later run",
    "users_left_empty": "users of whom nothing is left",
    "users_without_terms": "users without any term to release",
    "stop_word_occurrences": "terms that say nothing (the, of, ..)",
    "term_occurrences_outside_the_taxonomy": "terms that the taxonomy does not know",
    "terms_dropped": "terms that too many of a group share, once per group",
    "term_occurrences_dropped": "terms that too many of a group share, once per member",
    "identifiers": "identifiers taken out of queries (names, numbers, addresses)",
    "term_occurrences_moved_up": "terms replaced by what they are a kind of",
    "rows_added": "rows that were made up",
    "queries_exchanged": "rows whose query was exchanged for another",
    "term_occurrences_hashed": "terms replaced by a code",
    "distinct_queries": "different queries that too few people asked",
}
_NOT_IN_THE_LOG = "bad_rows_skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One kind of what was done: how many, in words, and whether it counts rows that are gone."""

    label: str
    n: int
    is_rows: bool = False


def removed(manifest: Manifest) -> tuple[Edit, ...]:
    """Give what was removed, the rows first; kinds of which there were none are left out."""
    found = [
        Edit(label=in_words(name), n=n, is_rows=_is_rows(name))
        for name, n in manifest.removed.items()
        if n and not name.startswith(("identifiers_by_", "identifiers_of_"))
    ]
    return tuple(sorted(found, key=lambda edit: (not edit.is_rows, -edit.n if edit.is_rows else 0)))


def changed(manifest: Manifest) -> tuple[Edit, ...]:
    """Give what was changed and not removed."""
    return tuple(Edit(label=in_words(name), n=n) for name, n in manifest.changed.items() if n)


def in_words(name: str) -> str:
    """Say a name of the manifest's `removed` or `changed` in plain words.

    >>> in_words("bot_rows"), in_words("rows_of_somebody_elses_method")
    ('rows of users taken for programs', 'rows of somebody elses method')
    """
    return _WORDS.get(name, name.replace("_", " "))


def _is_rows(name: str) -> bool:
    return "rows" in name and name != _NOT_IN_THE_LOG

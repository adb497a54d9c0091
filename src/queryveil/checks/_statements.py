"""Check what a manifest states beside its promise: settings, counts, versions and warnings that a release can have.

What is stated of the files is compared with them in `checks.whole`, and all of a dp release in `checks.dp`.
Of a method that is not one of ours, names of settings and counts and texts of warnings are its own.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from queryveil import guarantees
from queryveil.checks.verdict import count
from queryveil.data import KINDS, ROLES, Format, Profiles, QueryLog
from queryveil.errors import printable
from queryveil.release import EVENTS, MANIFEST, Ids, Manifest, TimeDetail

_MOST = 2**53
"""No log has as many rows."""
_Fits = Callable[[Any], bool]


def _whole(least: int, most: int = _MOST, *, or_none: bool = False) -> _Fits:
    return lambda value: (or_none and value is None) or (type(value) is int and least <= value <= most)


def _number(least: float, most: float = float(_MOST)) -> _Fits:
    return lambda value: type(value) in (int, float) and least <= value <= most


def _one_of(*values: object) -> _Fits:
    return lambda value: any(value == each and type(value) is type(each) for each in values)


def _yes_or_no(*names: str) -> dict[str, _Fits]:
    return dict.fromkeys(names, _one_of(True, False))


_BOTS = {"bot_threshold": _whole(1, or_none=True)}
_UNIT = {"unit": _one_of("user", "query")}
_TAXONOMY = {"taxonomy": _one_of("wordnet", "own")}
_WINDOW: dict[str, _Fits] = {"window": lambda value: value is None or isinstance(value, str)}
_STRETCHES: dict[str, _Fits] = dict.fromkeys(
    ("within", "rows_within", "listed"), lambda value: value is None or isinstance(value, str)
)
_TARGETS = ("log_size", "users", "bid", "clicks", "impressions", "revenue", "random", "fis")
_MECHANISMS = ("auto", "truncated-geometric", "gaussian", "laplace", "zealous")
_SETTINGS: Mapping[str, Mapping[str, _Fits]] = {
    "km": {
        "k": _whole(2),
        "m": _whole(1, or_none=True),
        "target": _one_of(*_TARGETS),
        "taxonomy": _one_of(None, "wordnet", "own"),
        "repeats": _one_of("once", "all"),
        **_yes_or_no("restore"),
        **_WINDOW,
        **_BOTS,
    },
    "kdelta": {
        "k": _whole(2),
        "delta": _number(0, 1),
        "mode": _one_of("exact", "paper"),
        "max_distance": lambda value: _number(0, 1)(value) and value < 1,
        "centroids": _one_of("best", "paper"),
        **dict.fromkeys(("min_cluster_users", "min_query_users"), _whole(1)),
        **_yes_or_no("additions", "same_texts"),
        **_BOTS,
    },
    "plink": {
        "p": _number(0, 1),
        "a": _whole(0, 3),
        "weights": _one_of("binary", "count", "tfidf", "given"),
        "representative": _one_of("centroid", "union"),
        "aversion": _number(0, 100),
        "items": _one_of(True),
        **_yes_or_no("strict"),
        **_TAXONOMY,
        **_BOTS,
    },
    "clump": {"k": _whole(2), "r": _whole(1), **_yes_or_no("distinct", "dedupe", "paper"), **_TAXONOMY, **_UNIT},
    "partition": {"k": _whole(2), **_TAXONOMY, **_UNIT},
    "swap": {
        **dict.fromkeys(("k", "l"), _whole(2)),
        "growth": _number(1),
        **dict.fromkeys(("max_pool", "min_query_users"), _whole(1)),
        "repeats": _one_of("once", "all"),
        **_yes_or_no("shrink"),
        "max_wait": lambda value: value is None or isinstance(value, str),
        **dict.fromkeys(("first_window", "last_window"), _whole(0)),
        "drain": _one_of("suppress", "release"),
        "unclassified": _one_of("pool", "drop"),
        "order": _one_of("time", "file"),
        "times": _one_of("of release"),
        "classifier": _one_of("evidence", "paper", "own tables"),
        **_WINDOW,
    },
    "dp": {
        # Whether these agree with the promise and the noise is checked in `checks.dp`.
        **dict.fromkeys(
            ("epsilon", "delta", "max_queries", "rounds"), lambda value: value is None or isinstance(value, int | float)
        ),
        "mechanism": _one_of(*_MECHANISMS),
        "choose": _one_of("random", "frequent"),
        "clicks": lambda value: _number(0, 1)(value) and value < 1,
        "max_clicks": _whole(1, 1000),
        "synthesized": _one_of(True),
        **_BOTS,
    },
    "google_2024": {**dict.fromkeys(("n_users", "n_row_users"), _whole(2)), **_STRETCHES},
    "ec_2026": {
        **dict.fromkeys(("n_users", "cell_users"), _whole(2)),
        **dict.fromkeys(("most_words", "session_rows", "session_minutes"), _whole(1)),
        **_STRETCHES,
    },
    "brave_wdp": {
        **dict.fromkeys(("most_characters", "most_logogram_characters", "many_words"), _whole(1)),
        **dict.fromkeys(("longest_word", "longest_odd_word", "url_users"), _whole(1)),
        **dict.fromkeys(("most_long_words", "most_digits"), _whole(0)),
    },
    "mozilla": {
        "least_characters": _whole(1),
        **dict.fromkeys(("name_score", "english"), _number(0, 1)),
        **_yes_or_no("users"),
    },
}
"""The settings of each method, and whether a value is one that they can have."""
_PROMISES: Mapping[str, type[guarantees.Guarantee] | None] = {
    "km": guarantees.KmAnonymity,
    "kdelta": guarantees.KdeltaAnonymity,
    "plink": guarantees.Linkability,
    "clump": guarantees.TransactionAnonymity,
    "partition": guarantees.TransactionAnonymity,
    "swap": guarantees.SwapAnonymity,
    "dp": guarantees.DifferentialPrivacy,
    "google_2024": guarantees.AskedTexts,
    "ec_2026": guarantees.AskedEntities,
    "brave_wdp": guarantees.TextRule,
    "mozilla": guarantees.TextRule,
    "ddg_2026": None,
    "pseudonymise": None,
    "query_threshold": None,
    "token_hash": None,
}
_AMOUNTS = re.compile(
    # Removed.
    r"bad_rows_skipped|bot_(users|rows)|rows_without_(query|terms_before|terms_left)|rows_of_(identifiers|rare_queries|"
    r"rare_clusters|long_texts|short_texts|rare_words|small_cells|earlier_times|many_words|long_words|long_numbers|"
    r"contacts|digits|other_languages|names)|page_addresses_of_few_users|rows_(unclassified|repeated|suppressed|still_waiting)|"
    r"users_(left_empty|without_terms)|distinct_queries|"
    r"identifiers(_(of|by)_[a-z0-9_,' -]{1,60})?|terms(_dropped|_written_in_two_ways)?|term_occurrences(_dropped|"
    r"_outside_the_taxonomy)?|stop_word_occurrences|words_outside_the_taxonomy|duplicate_items|items_suppressed|"
    r"transactions_(without_items|of_too_few_people)|"
    # Changed.
    r"rows_added|queries_exchanged|term_occurrences_(moved_up|hashed)|"
    # Measured.
    r"shards|loss|ggd|ncp|average_(length|level)|groups|largest_group|(additions|suppressions)_(per_user|"
    r"paper_centroids)|share_of_distinct_(queries|urls)_lost|top_50_(queries|urls)_kept|"
    r"(largest|mean)_distance_left|"
    r"average_group_size|largest_share(_before_dropping)?|(average|largest)_linkability|mean_similarity_to_group|"
    r"average_precision_at_10(_[a-z_]{1,40})?|categorised|largest_k"
)
_WARNINGS = re.compile(
    r"user ids are (the original ones: whoever knows an id knows the person's rows|the same in every release under "
    r"this key: releases can be joined by them|fresh: who got whose query cannot be verified; with --ids keyed it can)|"
    r"times are exact: whoever knows when a person searched finds the person's rows|"
    r"(times|counts of terms) are not covered by the promise; users with a set of them that nobody else has: [\d,]+|"
    r"made with a seed: whoever knows it can undo the shuffling of (users and rows|users and queries|groups|rows)|"
    r"the log has no times, so programs could not be told from people|"
    r"rows that were not UTF-8 and were read as Latin-1: [\d,]+|"
    r"documents of indexes that are none of UBI, left out: [\d,]+|"
    r"fields of documents for which there is no column, left out: [\d,]+|"
    r"events that were kept, which the promise does not cover: [\d,]+, of [\d,]+ searches|"
    r"terms without a value in the table, worth nothing to the target: [\d,]+|"
    r"terms that the taxonomy does not know, kept or deleted as they are: [\d,]+|"
    r"without times windows cannot be distinguished: only the log as a whole can be verified|"
    r"rows that were made up, copies of other users' rows: [\d,]+|"
    r"made-up rows can be recognised: their exact times are those of other rows of the same user|"
    r"copied rows may be recognised by the columns that were kept|"
    r"no clicks: queries are alike only if their texts are the same|"
    r"released queries that only one user asked: [\d,]+; the promise lets them through, --min-query-users 2 drops them"
    r"(, --same-texts shares them)?|"
    r"columns that were kept go with the query to its new user|"
    r"rows suppressed as no pool of k events and l users set them free(?: in their window)?: [\d,]+ of [\d,]+|"
    r"in (1 group|[\d,]+ groups) a term is shared by more than p of the members; --strict drops such terms|"
    r"the weight of a term is the share of its group's members that have it|"
    r"strict limits the share of each term, not which terms of a group belong together|"
    r"search with these profiles was less precise than without any|"
    r"what strictness costs in precision was not measured: [\w ,.;:'()\[\]-]{1,200}|"
    r"a transaction is a query: those of a cluster are of k people or more, which the files alone cannot show|"
    r"events were still waiting when this was written; a later run releases them|"
    r"the number of users before is an estimate: a stream does not remember who was there|"
    r"cells that a spreadsheet would take for formulas: [\d,]+; import the file as text|"
    r"(?:nothing|little) was released: [\d,]+ of [\d,]+ (?:rows|users|queries) and [\d,]+ of [\d,]+ words as typed; "
    r"(?:no weaker setting is known to keep more|"
    r"weaker settings that were tried keep no more; a log of more users does|"
    r"a smaller --[a-z-]{1,20}(?: or --[a-z-]{1,20})? keeps more, for less protection; so does a log of more users|"
    r"(?:with|of the settings that were tried)(?: --[a-z-]{1,20} [\d]{1,9}){1,2} (?:it would be|keeps most:) [\d,]+ "
    r"(?:rows|users|queries) and [\d,]+ words, for less protection)"
)
_PACKAGE, _VERSION = re.compile("[A-Za-z][A-Za-z0-9._-]{0,40}"), re.compile(r"\d[0-9A-Za-z.+-]{0,40}")
_ESTIMATED = "the number of users before is an estimate: a stream does not remember who was there"


def statements(manifest: Manifest) -> Iterator[str]:
    """Yield what a manifest states that no release of its method has, in one line each."""
    if isinstance(manifest.promise, guarantees.NoPromise):
        return
    for rule in (_method, _amounts, _rows, _events, _parts, _warnings, _columns, _file):
        yield from rule(manifest)


def _method(manifest: Manifest) -> Iterator[str]:
    expected = _PROMISES.get(manifest.method, type(manifest.promise))
    if not manifest.method or expected is not type(manifest.promise):
        yield f"{MANIFEST} names a method that makes another promise"
    if n_odd := n_odd_settings(manifest):
        yield f"{MANIFEST} has {count(n_odd, 'setting')} that {manifest.method} does not have, or not with such a value"


def n_odd_settings(manifest: Manifest) -> int:
    """Count the settings that a method of ours does not have, or not with such a value."""
    if manifest.method not in _SETTINGS:
        return 0
    known = _SETTINGS[manifest.method]
    return sum(name not in known or not known[name](value) for name, value in manifest.parameters.items())


class _Keyed(list[tuple[str, Any]]):
    """The keys and values of an object, each as often as it stands there."""


def n_overlooked(text: bytes, manifest: Manifest) -> int:
    """Count the keys in the text of a manifest that were not read, and those that stand there twice."""
    try:
        said = json.loads(text, object_pairs_hook=_Keyed)
    except (ValueError, RecursionError):
        # The manifest itself was read, so it is in something else that Python finds no sense.
        return 1
    return _n_more(said, msgspec.to_builtins(manifest))


def _n_more(said: Any, read: Any) -> int:
    """Count what stands in JSON beyond what was read of it.

    >>> _n_more(_Keyed([("k", 2), ("who", "me"), ("k", 3)]), {"k": 3})
    2
    """
    if isinstance(said, _Keyed) and isinstance(read, dict):
        known = [(key, value) for key, value in said if key in read]
        twice = len(known) - len(dict(known))
        return len(said) - len(known) + twice + sum(_n_more(value, read[key]) for key, value in known)
    if isinstance(said, list) and isinstance(read, list | tuple):
        # Of a list that stands there twice only the last was read.
        return sum(_n_more(one, other) for one, other in zip(said, read, strict=False))
    return 0


def _amounts(manifest: Manifest) -> Iterator[str]:
    counts = manifest.counts
    sizes = [counts.n_rows_before, counts.n_rows_after, counts.n_users_before, counts.n_users_after]
    sizes += [] if manifest.texts is None else [n or 0 for n in msgspec.structs.astuple(manifest.texts)]
    amounts = [*manifest.removed.items(), *manifest.changed.items(), *manifest.measures.items()]
    values = [*sizes, manifest.columns.n_others_dropped, *(value for _, value in amounts)]
    if not all(0 <= value <= _MOST for value in values):
        yield f"{MANIFEST} has a count or a measure that is negative or too large"
    if manifest.method in _PROMISES and not all(_AMOUNTS.fullmatch(name) for name, _ in amounts):
        yield f"{MANIFEST} counts or measures what no release of {manifest.method} does"


def _rows(manifest: Manifest) -> Iterator[str]:
    """Rows that were released, removed and made up account for each other."""
    counts = manifest.counts
    if (
        manifest.promise.window is None
        and not manifest.promise.changes_ids
        and counts.n_users_after > counts.n_users_before
    ):
        yield f"{MANIFEST} counts more users than there were before"
    if manifest.data is None or manifest.data.kind != "log":
        return
    n_removed = sum(n for name, n in manifest.removed.items() if "rows" in name and name != "bad_rows_skipped")
    n_added = manifest.changed.get("rows_added", 0)
    if counts.n_rows_before - n_removed + n_added != counts.n_rows_after or n_added > counts.n_rows_after:
        yield f"{MANIFEST} counts rows before, removed, made up and released that do not add up"


def _events(manifest: Manifest) -> Iterator[str]:
    """Events are of kinds that have a name, and were kept where columns say so, in a format that has any."""
    counts, data = manifest.events, manifest.data
    if counts is not None and not {*counts.kept, *counts.dropped} <= set(KINDS):
        yield f"{MANIFEST} counts events of a kind that has no name"
    numbers = [] if counts is None else [*counts.kept.values(), *counts.dropped.values(), counts.clicks_as_rows]
    if not all(0 <= n <= _MOST for n in numbers):
        yield f"{MANIFEST} has a count of events that is negative or too large"
    is_kept, has_any = EVENTS in manifest.columns.kept, counts is not None and any(counts.kept.values())
    if has_any and (not is_kept or counts is None or counts.clicks_as_rows):
        yield f"{MANIFEST} counts events that were kept, and says that none were"
    if is_kept and data is not None and (data.kind != "log" or (counts is not None and data.format is not Format.UBI)):
        yield f"{MANIFEST} says that events were kept, and {printable(data.name)} has no place for any"


def _parts(manifest: Manifest) -> Iterator[str]:
    has_clusters = isinstance(manifest.promise, guarantees.KdeltaAnonymity) and not manifest.promise.same_texts
    if (manifest.query_clusters and not has_clusters) or manifest.noise:
        yield f"{MANIFEST} has clusters of queries or noise, which no such release has"
    if not all(_PACKAGE.fullmatch(name) and _VERSION.fullmatch(text) for name, text in manifest.versions.items()):
        yield f"{MANIFEST} has versions that are none"


def _warnings(manifest: Manifest) -> Iterator[str]:
    if manifest.method in _PROMISES:
        of_columns = {f"column {name} was kept and is not covered by the promise" for name in manifest.columns.kept}
        n_odd = sum(each not in of_columns and _WARNINGS.fullmatch(each) is None for each in manifest.warnings)
        if n_odd or len(set(manifest.warnings)) < len(manifest.warnings):
            yield f"{MANIFEST} has warnings that no release of {manifest.method} has"


def _columns(manifest: Manifest) -> Iterator[str]:
    kept, dropped = manifest.columns.kept, manifest.columns.dropped
    named = [*kept, *dropped]
    if len(set(named)) < len(named) or not set(dropped) <= set(ROLES) - {"user", "query"}:
        yield f"{MANIFEST} names columns that were dropped and are none"
    data = manifest.data
    if data is not None and data.format not in _USUAL_NAMES and set(dropped) & set(data.names):
        yield f"{MANIFEST} says of a column that it was dropped, and {printable(data.name)} has it"
    if data is not None and data.kind != "log":
        report = manifest.columns
        if report.ids is not Ids.FRESH or report.time is not TimeDetail.DROP or kept:
            yield f"{MANIFEST} says what became of ids, times or columns, and such a release has none"


_USUAL_NAMES = {
    Format.AOL: {"user": "AnonID", "query": "Query", "time": "QueryTime", "rank": "ItemRank", "url": "ClickURL"},
    **{each: {role: role for role in ROLES} for each in (Format.EXCITE, Format.UBI, Format.TRANSACTIONS)},
}
_OF_TRANSACTIONS = (Format.CSV, Format.TSV, Format.JSONL, Format.PARQUET)


def _file(manifest: Manifest) -> Iterator[str]:
    """The file is described as all of its kind are."""
    data = manifest.data
    if data is None:
        return
    name, is_log = printable(data.name), data.kind == "log"
    formats = {"groups": (Format.JSONL,), "transactions": _OF_TRANSACTIONS}.get(data.kind, tuple(Format))
    if data.kind == "clicks" or data.format not in formats:
        yield f"{MANIFEST} describes {name} as no such file is"
    usual = _USUAL_NAMES.get(data.format, {}) if is_log else {}
    is_usual = all(column in (role, usual.get(role)) for role, column in data.names.items())
    if not set(data.names) <= set(ROLES) or not (is_usual or (is_log and data.format not in _USUAL_NAMES)):
        yield f"{MANIFEST} names columns of {name} that such a file does not have"
    has_none = data.kind == "groups" or data.format in (Format.EXCITE, Format.TRANSACTIONS)
    if data.format is not Format.AOL and data.has_header is has_none:
        yield f"{MANIFEST} says of {name} that it has {'a' if has_none else 'no'} header"
    clicks = manifest.clicks
    is_odd = clicks is not None and (clicks.kind != "clicks" or clicks.names or clicks.parts or not clicks.has_header)
    if clicks is not None and data.kind == "queries" and is_odd:
        yield f"{MANIFEST} describes {printable(clicks.name)} as no such file is"


def other_before(manifest: Manifest, original: QueryLog | Profiles) -> Iterator[str]:
    """Yield where the manifest states other sizes of the original."""
    # Of profiles and the log that they were made from only the people are the same.
    is_same_kind = isinstance(original, Profiles) is (manifest.parameters.get("weights") == "given")
    n_rows, n_users = manifest.counts.n_rows_before, manifest.counts.n_users_before
    if is_same_kind and n_rows != original.n_rows:
        yield f"{MANIFEST} says {n_rows:,} rows before, and the original has {original.n_rows:,}"
    if n_users != original.n_users and _ESTIMATED not in manifest.warnings:
        yield f"{MANIFEST} says {n_users:,} users before, and the original has {original.n_users:,}"
    if is_same_kind and isinstance(original, QueryLog):
        n_dropped, n_others = manifest.columns.n_others_dropped, sum(name not in ROLES for name in original.columns)
        if n_dropped > n_others:
            yield f"{MANIFEST} says that {n_dropped:,} other columns were dropped, and the original has {n_others:,}"

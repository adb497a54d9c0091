"""Conformance checks: the rules that every method must pass, runnable on any log."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unicodedata import normalize

import msgspec
import polars as pl

from queryveil.checks import verify
from queryveil.data import QueryLog, Tallies
from queryveil.errors import NothingPromised, TooFewUsers
from queryveil.release import ColumnPolicy, Ids, Release, TimeDetail, read_release
from queryveil.release.manifest import n_rows_left


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One house rule: `run(log)` raises AssertionError if the method breaks it on that log."""

    name: str
    run: Callable[[QueryLog], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnEngine:
    """A method run by another engine; `anonymize` returns the release that the engine made."""

    method: Any
    engine: Callable[[Any, QueryLog], Release]

    def anonymize(self, log: QueryLog) -> Release:
        """Return a release of the log."""
        return self.engine(self.method, log)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.method, name)


def checks_for(method: Any) -> Iterator[Check]:
    """Return the house rules for a method that takes `anonymize(log)` and has the settings `columns` and `seed`.

    Run each on logs of your choice, for example on those of `queryveil.testing.strategies.logs()`. A method whose
    promise needs a number of people may raise `TooFewUsers`, but only where no more than k-1 of them remain. For one
    without a promise the checks make sure that `verify` says so. One that releases noisy counts has no `columns`; for
    it they check that no query is invented and that the manifest reveals nothing about the log. The same checks hold on
    any engine: pass the method as `OnEngine`.

    >>> from queryveil.methods import Km
    >>> from queryveil.testing import tiny_log
    >>> for check in checks_for(Km(k=2, m=2)):
    ...     check.run(tiny_log())
    """
    is_counted = method.promise.released == "queries"
    for rule in _NOISY_RULES if method.promise.is_noisy else _COUNTED_RULES if is_counted else _RULES:
        yield Check(name=rule.__name__.strip("_"), run=lambda log, rule=rule: _run(rule, method, log))  # type: ignore[misc]


def _run(rule: Callable[[Any, QueryLog], None], method: Any, log: QueryLog) -> None:
    try:
        rule(method, log)
    except TooFewUsers as error:
        if log.n_users == 0 or error.n_users >= method.k:
            raise


def _the_promise_is_kept(method: Any, log: QueryLog) -> None:
    _assert_kept(method, method.anonymize(log), original=log)


def _assert_kept(method: Any, release: Release, *, original: QueryLog) -> None:
    if method.promise.promises_nothing:
        try:
            verdict = verify(release, original=original)
        except NothingPromised:
            return
        raise AssertionError(f"a method that promises nothing made a release that was judged: {verdict.in_words()}")
    # Some promises can be judged beside the original only, with the key of the user ids.
    columns = getattr(method, "columns", None)
    verdict = verify(release, original=original, key=None if columns is None else columns.key)
    assert verdict.holds, verdict.in_words()


def _the_promise_is_the_one_asked_for(method: Any, log: QueryLog) -> None:
    assert method.anonymize(log).promise == method.promise


def _the_written_files_keep_the_promise(method: Any, log: QueryLog) -> None:
    release = method.anonymize(log)
    with TemporaryDirectory() as scratch:
        folder = release.save(Path(scratch) / "release")
        _assert_kept(method, read_release(folder), original=log)


def _changed(method: Any, **settings: Any) -> Any:
    if isinstance(method, OnEngine):
        return replace(method, method=replace(method.method, **settings))
    return replace(method, **settings)


def _with_kept_ids(method: Any, log: QueryLog) -> Release | None:
    """Return a release in which users keep their ids; None for a method that gives them several."""
    if getattr(method, "window", None) is not None or method.promise.changes_ids:
        return None
    release: Release = _changed(method, columns=replace(method.columns, ids=Ids.KEEP, key=None)).anonymize(log)
    return release


def _no_user_is_invented(method: Any, log: QueryLog) -> None:
    release = _with_kept_ids(method, log)
    assert release is None or set(release.data.frame["user"]) <= set(log.frame["user"])


def _no_term_is_invented(method: Any, log: QueryLog) -> None:
    release = _with_kept_ids(method, log)
    if release is None:
        return
    before, after = _terms_by_user(log), _terms_by_user(release.log)
    changed = release.manifest.changed
    if changed.get("rows_added") or changed.get("queries_exchanged"):
        # Rows may be added or changed where the manifest says so, but only to such as others really have.
        assert set().union(*after.values()) <= set().union(*before.values())
        return
    if changed.get("term_occurrences_hashed"):
        # Hashes are no words of the log, but nobody may have more of them than words.
        assert all(len(terms) <= len(before[user]) for user, terms in after.items())
        return
    assert all(terms <= before[user] for user, terms in after.items())


def _terms_by_user(log: QueryLog) -> dict[str, set[str]]:
    terms: dict[str, set[str]] = {}
    for user, query in log.frame.select("user", "query").iter_rows():
        words = "".join(c if c.isalnum() else " " for c in query.lower()).split()
        terms.setdefault(user, set()).update(words)
    return terms


def _the_edits_add_up(method: Any, log: QueryLog) -> None:
    release: Release = method.anonymize(log)
    counts, removed = release.manifest.counts, release.manifest.removed
    rows_removed = sum(n for name, n in removed.items() if "rows" in name and name != "bad_rows_skipped")
    assert counts.n_rows_before == log.n_rows
    n_added = release.manifest.changed.get("rows_added", 0)
    assert counts.n_rows_after == release.data.n_rows == log.n_rows - rows_removed + n_added
    assert counts.n_users_before == log.n_users
    assert counts.n_users_after == release.log.n_users


def _the_input_is_untouched(method: Any, log: QueryLog) -> None:
    before = log.frame.clone()
    method.anonymize(log)
    assert log.frame.equals(before)


def _a_seed_repeats(method: Any, log: QueryLog) -> None:
    seeded = _changed(method, seed=7)
    once, twice = seeded.anonymize(log), seeded.anonymize(log)
    assert once.data.frame.equals(twice.data.frame)
    assert any("seed" in warning for warning in once.manifest.warnings)


def _an_empty_log_works(method: Any, log: QueryLog) -> None:
    nothing = log.with_frame(log.frame.clear())
    release = method.anonymize(nothing)
    assert release.data.n_rows == 0
    _assert_kept(method, release, original=nothing)


def _one_user_works(method: Any, log: QueryLog) -> None:
    if log.n_rows == 0:
        return
    alone = log.with_frame(log.frame.filter(pl.col("user") == log.frame["user"][0]))
    _assert_kept(method, method.anonymize(alone), original=alone)


def _the_manifest_holds_no_text(method: Any, log: QueryLog) -> None:
    # Short texts stand in any JSON by chance.
    texts = {text for text in (*log.frame["user"], *log.frame["query"]) if len(text) > 6}
    manifest = msgspec.json.encode(method.anonymize(log).manifest).decode()
    assert not any(text in manifest for text in texts)


def _what_stays_does_not_leave_unseen(method: Any, log: QueryLog) -> None:
    """Look for texts of one user more behind the released rows, where memory may still hold them."""
    secrets = {"user": "nobody-else-is-called-so", "query": "nobodyelsehasaskedsomuch", "url": "nobody-else.example/x"}
    one = log.frame.head(1).with_columns(pl.lit(text).alias(name) for name, text in secrets.items())
    more = log.with_frame(pl.concat([log.frame, one.select(log.columns)]))
    data = method.anonymize(more).data
    frames = [data.frame, *([data.clicks] if isinstance(data, Tallies) and data.clicks is not None else [])]
    released, held = " ".join(frame.write_json() for frame in frames), pickle.dumps(data)
    assert not any(text.encode() in held for text in secrets.values() if text not in released)


def _only_columns_of_the_policy_leave(method: Any, log: QueryLog) -> None:
    strict = _changed(method, columns=ColumnPolicy(time=TimeDetail.DROP))
    if getattr(method, "window", None) is not None and "time" not in log.columns:
        return
    assert set(strict.anonymize(log).data.columns) <= {"user", "query", *getattr(method, "protected", ())}


def _no_query_is_invented(method: Any, log: QueryLog) -> None:
    tallies = method.anonymize(log).tallies
    asked = {_plain(query) for query in log.frame["query"]}
    assert set(tallies.frame["query"]) <= asked - {""}
    if tallies.clicks is not None and "url" in log.columns:
        made = {(_plain(query), url) for query, url in log.frame.select("query", "url").iter_rows()}
        assert set(tallies.clicks.select("query", "url").iter_rows()) <= made


def _plain(query: str) -> str:
    return normalize("NFC", " ".join(normalize("NFC", query).lower().split()))


def _the_manifest_tells_nothing_of_the_log(method: Any, log: QueryLog) -> None:
    """Compare with the same log without one of its users: but for what is in the release, nothing may differ."""
    fewer = log.with_frame(log.frame.filter(pl.col("user") != log.frame["user"][0]) if log.n_rows else log.frame)
    told = []
    for each in (log, fewer):
        release = method.anonymize(each)
        counts = release.manifest.counts
        assert counts.n_rows_after == release.tallies.n_queries
        size = msgspec.structs.replace(counts, n_rows_after=0)
        told.append(msgspec.structs.replace(release.manifest, counts=size, data=None, clicks=None))
    assert told[0] == told[1]


def _the_counts_add_up(method: Any, log: QueryLog) -> None:
    release: Release = method.anonymize(log)
    counts = release.manifest.counts
    assert (counts.n_rows_before, counts.n_users_before) == (log.n_rows, log.n_users)
    assert (counts.n_rows_after, counts.n_users_after) == (release.tallies.n_queries, 0)
    assert n_rows_left(release.manifest) == release.tallies.frame["count"].sum()


_RULES_OF_COUNTS = (
    _the_promise_is_kept,
    _the_promise_is_the_one_asked_for,
    _the_written_files_keep_the_promise,
    _the_input_is_untouched,
    _an_empty_log_works,
    _one_user_works,
    _the_manifest_holds_no_text,
    _what_stays_does_not_leave_unseen,
)
_RULES_OF_ALL = (*_RULES_OF_COUNTS, _a_seed_repeats)
_RULES = (
    *_RULES_OF_ALL,
    _no_user_is_invented,
    _no_term_is_invented,
    _the_edits_add_up,
    _only_columns_of_the_policy_leave,
)
# Exact counts are drawn by nobody.
_COUNTED_RULES = (*_RULES_OF_COUNTS, _no_query_is_invented, _the_counts_add_up)
_NOISY_RULES = (*_RULES_OF_ALL, _no_query_is_invented, _the_manifest_tells_nothing_of_the_log)

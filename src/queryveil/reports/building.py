"""Collect everything for the report on a release: verdict, attacks, utility and sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from queryveil import progress
from queryveil.attacks.attacker import Given, Person
from queryveil.attacks.suite import Attacks, attackers, run
from queryveil.checks import verify
from queryveil.data import Profiles, QueryLog, Tallies, Transactions
from queryveil.errors import BadInput
from queryveil.formats import are_profiles, read_log, read_profiles
from queryveil.guarantees import NoPromise
from queryveil.pairing import Paired, another_log
from queryveil.release import Release, read_release
from queryveil.reports.value import Judgement, Report, State, curves_of
from queryveil.text.classifier import Classifier
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility.advertising import check_values
from queryveil.utility.measuring import measure
from queryveil.utility.score import Measures

N_SHOWN = 20
"""So many queries of the release are shown to who asks for them."""
_IN_MEMORY = "DIR"
_NOT_ATTACKED = "What attackers find is not known without the original: queryveil report DIR --original LOG."
_NOT_MEASURED = "What it is still good for is not known without the original: queryveil report DIR --original LOG."
_NO_LOG = "Attackers need the original as a log, and it was given in another form."


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class _Sides:
    """A release and what it was made from, as far as that is known, with what is needed to compare them."""

    release: Release
    original: QueryLog | Transactions | Profiles | None
    key: bytes | None
    taxonomy: Taxonomy | None
    paired: Paired | None = None
    why_not_paired: str = ""


def report(
    release: Release | Path | str,
    *,
    original: QueryLog | Transactions | Profiles | Path | str | None = None,
    key: bytes | None = None,
    taxonomy: Taxonomy | None = None,
    classifier: Classifier | None = None,
    public: QueryLog | None = None,
    people: Sequence[Person] = (),
    remake: Callable[[QueryLog], Release] | None = None,
    values: pl.DataFrame | None = None,
    membership: pl.DataFrame | None = None,
    show: bool = False,
    n_targets: int = 1000,
    seed: int | None = None,
) -> Report:
    """Judge a release, and with the `original` attack and measure it too.

    `key` is that of keyed ids or hashed terms; `taxonomy` and `classifier` are those the release was made with, if they
    are your own. Some attackers need a `public` log of the same kind by other people, a directory of `people`, or
    `remake`, the method of the release. `values` says what terms are worth, `membership` who is in which group. With
    `show` the report holds the release's most frequent queries; otherwise it has no text of any log.

    Examples
    --------
    >>> from queryveil.methods import Km
    >>> from queryveil.testing import tiny_log
    >>> report(Km(k=2, m=1).anonymize(tiny_log()))
    Report(method='km', state='holds')
    """
    if values is not None:
        check_values(values)
    given = release if isinstance(release, Release) else read_release(release)
    sides = _side_by_side(given, _read(original, given), key=key, taxonomy=taxonomy or _taxonomy(given))
    progress.step("judging the promise")
    judgement = _judge(release, sides, classifier=classifier)
    needs = Given(public=public, people=people, remake=remake, key=key)
    attacks, why_no_attacks = _attack(sides, needs, n_targets=n_targets, seed=seed)
    measures, why_no_measures = _measure(sides, values=values, membership=membership)
    return Report(
        folder=_IN_MEMORY if isinstance(release, Release) else Path(release).absolute().name,
        manifest=given.manifest,
        columns=tuple(given.data.columns),
        n_clicks=_n_clicks(given),
        judgement=judgement,
        attacks=attacks,
        why_no_attacks=why_no_attacks,
        measures=measures,
        why_no_measures=why_no_measures,
        curves=curves_of(sides.original, release=given) if isinstance(sides.original, QueryLog) else None,
        top_queries=_top_queries(given) if show else None,
        made_on=datetime.now(UTC).date(),
    )


def _read(
    original: QueryLog | Transactions | Profiles | Path | str | None, release: Release
) -> QueryLog | Transactions | Profiles | None:
    if not isinstance(original, Path | str):
        return original
    if release.promise.is_of_profiles and are_profiles(original):
        return read_profiles(original)
    return read_log(original)


def _taxonomy(release: Release) -> Taxonomy | None:
    return Taxonomy.wordnet() if release.manifest.parameters.get("taxonomy") == "wordnet" else None


def _side_by_side(
    release: Release,
    original: QueryLog | Transactions | Profiles | None,
    *,
    key: bytes | None,
    taxonomy: Taxonomy | None,
) -> _Sides:
    paired, why_not = None, _NOT_ATTACKED if original is None else _NO_LOG
    other = another_log(original.n_rows, release=release) if isinstance(original, QueryLog) else None
    if other is not None:
        # By another log nobody would be found, as if the release were safe.
        raise BadInput(other)
    if isinstance(original, QueryLog):
        progress.step("telling who is who")
        try:
            paired, why_not = Paired.of(original, release=release, key=key, taxonomy=taxonomy), ""
        except BadInput as error:
            why_not = f"No attacker was tried: {error}."
    return _Sides(release=release, original=original, key=key, taxonomy=taxonomy, paired=paired, why_not_paired=why_not)


def _judge(release: Release | Path | str, sides: _Sides, *, classifier: Classifier | None) -> Judgement:
    promise, beside = sides.release.promise, sides.original is not None
    if isinstance(promise, NoPromise):
        return Judgement(state=State.NOTHING_PROMISED, reason=promise.reason)
    try:
        # As it was given: what is wrong with a folder is said with its name.
        verdict = verify(
            release, original=sides.original, key=sides.key, taxonomy=sides.taxonomy, classifier=classifier
        )
    except BadInput as error:
        # Only where queries change hands may a sound release be without a verdict, for want of what it needs.
        if not promise.needs_original:
            raise
        return Judgement(state=State.NOT_JUDGED, reason=str(error), beside_original=beside)
    state = State.HOLDS if verdict.holds else State.BROKEN
    return Judgement(state=state, verdict=verdict, beside_original=beside)


def _attack(sides: _Sides, needs: Given, *, n_targets: int, seed: int | None) -> tuple[Attacks | None, str]:
    crowd = attackers(sides.release, n_targets=n_targets, seed=seed)
    if sides.paired is None:
        return None, sides.why_not_paired
    return run(crowd, sides.paired, before=Paired.pseudonymised(sides.paired.original), given=needs), ""


def _measure(
    sides: _Sides, *, values: pl.DataFrame | None, membership: pl.DataFrame | None
) -> tuple[Measures | None, str]:
    if sides.original is None:
        return None, _NOT_MEASURED
    try:
        measures = measure(
            sides.original,
            sides.release,
            key=sides.key,
            values=values,
            taxonomy=sides.taxonomy,
            membership=membership,
            paired=sides.paired,
        )
    except BadInput as error:
        # A release that has more than its original cannot be measured by it, and the verdict says what is wrong.
        return None, f"Nothing was measured: {error}."
    return measures, ""


def _n_clicks(release: Release) -> int | None:
    has_clicks = isinstance(release.data, Tallies) and release.data.clicks is not None
    return release.tallies.n_clicks if has_clicks else None


def _top_queries(release: Release) -> tuple[tuple[str, int], ...]:
    """Return the texts that stand in most rows of a released log or have the largest counts; others have no queries."""
    if isinstance(release.data, Tallies):
        tallied = release.data.frame.sort(["count", "query"], descending=[True, False])
        return tuple((query, int(n)) for query, n in tallied.head(N_SHOWN).iter_rows())
    if not isinstance(release.data, QueryLog):
        return ()
    counted = release.data.frame["query"].value_counts(name="n").sort(["n", "query"], descending=[True, False])
    return tuple((query, int(n)) for query, n in counted.head(N_SHOWN).iter_rows())

"""Collect everything for the report on a release: verdict, attacks, utility and sizes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path

import msgspec
import polars as pl

from queryveil import progress
from queryveil.attacks import Attacker, Attacks, AuxiliaryData, Person, suite
from queryveil.attacks.limits import Limit
from queryveil.checks import verify
from queryveil.checks.verdict import BESIDE
from queryveil.data import QueryLog, Tallies
from queryveil.errors import BadInput, BadParameter, NothingPromised
from queryveil.formats import read_original
from queryveil.guarantees import NoPromise
from queryveil.pairing import Original, Pair
from queryveil.release import Release, read_release
from queryveil.reports.assessment import isolation_of
from queryveil.reports.value import Circumstances, Judgement, Report, State, Validity, curves_of
from queryveil.rng import check_seed
from queryveil.text.classifier import Classifier
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility import Measures, measuring
from queryveil.utility.kept import check_values

N_SHOWN = 20
_NOT_ATTACKED = "What attackers find is not known without the original: queryveil report DIR --original LOG."
_NOT_MEASURED = "What it is still good for is not known without the original: queryveil report DIR --original LOG."
_NO_LOG = "Attackers need the original as a log, and it was given in another form."


def report(
    release: Release | Path | str,
    *,
    original: Original | Path | str | None = None,
    key: bytes | None = None,
    taxonomy: Taxonomy | None = None,
    classifier: Classifier | None = None,
    public: QueryLog | None = None,
    people: Sequence[Person] = (),
    remake: Callable[[QueryLog], Release] | None = None,
    later: QueryLog | None = None,
    values: pl.DataFrame | None = None,
    membership: pl.DataFrame | None = None,
    show: bool = False,
    n_targets: int = 1000,
    seed: int | None = None,
    attacks: Attacks | None = None,
    limit: Limit | None = None,
    circumstances: Circumstances | None = None,
    valid_months: int = 12,
) -> Report:
    """Judge a release, and with the `original` attack and measure it too.

    - key: that of keyed ids or hashed terms
    - taxonomy, classifier: those the release was made with, if they are your own
    - public, people, remake, later: what some attackers need: a log by other people, a directory, the method of the
      release, a log of the same people from another time
    - values, membership: what terms are worth, and who is in which group
    - show: let the report hold the release's most frequent queries; otherwise it has no text of any log
    - n_targets, seed: people that each attacker looks for at most, and what repeats their draws; without a seed one
      that follows from the checksum of the data, so that two reports on a release say the same
    - attacks: what attackers found, if they were run before; then none is run
    - limit: how much attackers may find, and which of them are ruled out, each with its reason
    - circumstances: who releases it to whom, and for what
    - valid_months: after how many months attacks should be run again

    Examples
    --------
    >>> from queryveil.methods import Km
    >>> from queryveil.testing import tiny_log
    >>> report(Km(k=2, m=1).anonymize(tiny_log()))
    Report(method='km', state='holds')
    """
    if values is not None:
        check_values(values)
    judged = release if isinstance(release, Release) else read_release(release)
    if isinstance(original, Path | str):
        original = read_original(original, judged.promise)
    pair = None if original is None else Pair(original, release=judged, key=key, taxonomy=taxonomy)
    if pair is not None and isinstance(original, QueryLog):
        pair.check_original()
    progress.step("judging the promise")
    tree = taxonomy if pair is None else pair.known_taxonomy
    judgement = _judge(judged, original, key=key, taxonomy=tree, classifier=classifier)
    validity, why_no_attacks = _validity(judged, n_targets=n_targets, seed=seed, months=valid_months), ""
    if attacks is not None:
        most = max((one.after.n_targets for one in attacks.attempts), default=0)
        validity = replace(validity, seed=None, commitment="", n_targets=most)
    else:
        crowd = suite.attackers(judged, n_targets=n_targets, seed=validity.seed if seed is None else seed)
        auxiliary = AuxiliaryData(
            public=public, people=people, remake=remake, key=key, membership=membership, later=later
        )
        attacks, why_no_attacks = _attack(pair, crowd, auxiliary)
    measures, why_no_measures = _measure(pair, values=values, membership=membership, public=public, seed=seed)
    progress.step("counting records that stand alone")
    has_rows = pair is not None and isinstance(judged.data, QueryLog)
    isolation = isolation_of(judged, tokens=pair.release_tokens if pair is not None and has_rows else None)
    has_clicks = isinstance(judged.data, Tallies) and judged.data.clicks is not None
    return Report(
        folder="DIR" if judged.folder is None else judged.folder.absolute().name,
        manifest=judged.manifest,
        columns=tuple(judged.data.columns),
        n_clicks=judged.tallies.n_clicks if has_clicks else None,
        judgement=judgement,
        attacks=attacks,
        why_no_attacks=why_no_attacks,
        measures=measures,
        why_no_measures=why_no_measures,
        curves=curves_of(pair) if pair is not None and isinstance(original, QueryLog) else None,
        limit=limit or Limit(),
        isolation=isolation,
        circumstances=circumstances or Circumstances(),
        months=_months(judged.data) or _months(original),
        validity=validity,
        top_queries=_top_queries(judged) if show else None,
        made_on=datetime.now(UTC).date(),
    )


_SEED_BITS = 63


def _validity(release: Release, *, n_targets: int, seed: int | None, months: int) -> Validity:
    """Return what repeats a report: a seed that nobody chose, since it follows from the checksum of the data."""
    check_seed(seed)
    if not 1 <= months <= 120:
        raise BadParameter("valid_months", months, allowed="a whole number from 1 to 120")
    file = release.manifest.data
    made_of = msgspec.json.encode(release.manifest) if file is None else file.sha256.encode()
    if seed is not None:
        # Privacy: a seed that was given may be that of the release, which must not be told.
        made_of += f" {seed}".encode()
    digest = sha256(b"queryveil report " + made_of)
    drawn = int.from_bytes(digest.digest()[:8], "big") >> (64 - _SEED_BITS)
    return Validity(
        seed=drawn if seed is None else None,
        commitment=digest.hexdigest() if seed is None else "",
        until=_months_later(datetime.now(UTC).date(), months),
        n_targets=n_targets,
    )


def _months_later(day: date, n: int) -> date:
    """Return the day so many months later, or the last one of that month.

    >>> _months_later(date(2026, 1, 31), 1).isoformat()
    '2026-02-28'
    """
    years, month = divmod(day.month - 1 + n, 12)
    first = date(day.year + years, month + 1, 1)
    following = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    return first.replace(day=min(day.day, (following - first).days))


def _months(data: object) -> tuple[str, str] | None:
    """Return the first and the last month of a log's times; None if it has none."""
    if not isinstance(data, QueryLog) or "time" not in data.columns:
        return None
    first, last = data.frame["time"].min(), data.frame["time"].max()
    return (f"{first:%Y-%m}", f"{last:%Y-%m}") if isinstance(first, date) and isinstance(last, date) else None


def _judge(
    release: Release,
    original: Original | None,
    *,
    key: bytes | None,
    taxonomy: Taxonomy | None,
    classifier: Classifier | None,
) -> Judgement:
    promise, beside = release.promise, original is not None
    try:
        verdict = verify(release, original=original, key=key, taxonomy=taxonomy, classifier=classifier)
    except NothingPromised:
        assert isinstance(promise, NoPromise)
        return Judgement(state=State.NOTHING_PROMISED, reason=promise.reason)
    except BadInput as error:
        # Only where queries change hands may a sound release be without a verdict, for want of what it needs.
        if not promise.needs_original:
            raise
        return Judgement(state=State.NOT_JUDGED, reason=str(error), beside_original=beside)
    # A report that stands in the folder already changes nothing of what the next one says.
    verdict = replace(verdict, notes=tuple(note for note in verdict.notes if not note.startswith(BESIDE)))
    state = State.HOLDS if verdict.holds else State.BROKEN
    return Judgement(state=state, verdict=verdict, beside_original=beside)


def _attack(pair: Pair | None, crowd: Sequence[Attacker], auxiliary: AuxiliaryData) -> tuple[Attacks | None, str]:
    if pair is None or not isinstance(pair.original, QueryLog):
        return None, _NOT_ATTACKED if pair is None else _NO_LOG
    progress.step("telling who is who")
    try:
        _ = pair.identity
    except BadInput as error:
        return None, f"No attacker was tried: {error}."
    return suite.run(crowd, pair, auxiliary=auxiliary), ""


def _measure(
    pair: Pair | None,
    *,
    values: pl.DataFrame | None,
    membership: pl.DataFrame | None,
    public: QueryLog | None,
    seed: int | None,
) -> tuple[Measures | None, str]:
    if pair is None:
        return None, _NOT_MEASURED
    try:
        reference = measuring.reference_of(pair, public=public, seed=seed or 0)
        return measuring.run(pair, values=values, membership=membership, reference=reference), ""
    except BadInput as error:
        # A release that has more than its original cannot be measured by it, and the verdict says what is wrong.
        return None, f"Nothing was measured: {error}."


def _top_queries(release: Release) -> tuple[tuple[str, int], ...]:
    """Return the texts that stand in most rows of a released log or have the largest counts; others have no queries."""
    if isinstance(release.data, Tallies):
        counted = release.data.frame.select("query", "count")
    elif isinstance(release.data, QueryLog):
        counted = release.data.frame["query"].value_counts()
    else:
        return ()
    ordered = counted.sort(["count", "query"], descending=[True, False])
    return tuple((query, int(n)) for query, n in ordered.head(N_SHOWN).iter_rows())

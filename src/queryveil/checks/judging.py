"""Verify any release: choose the checker by the type of its promise, and read the original that it needs."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import polars as pl

from queryveil import guarantees
from queryveil.checks import dp, kdelta, km, plink, practice, swap, transactions, whole
from queryveil.checks._statements import other_before
from queryveil.checks.arrivals import Classifier, arrivals_of
from queryveil.checks.dp import claims_broken
from queryveil.checks.expected import Expectation
from queryveil.checks.invented import Tree, invented
from queryveil.checks.texts import too_few_of_one
from queryveil.checks.tokens import terms_of
from queryveil.checks.verdict import Verdict
from queryveil.data import Groups, Profiles, QueryLog, Tallies, Transactions
from queryveil.errors import BadInput, BadParameter, BadRelease, NothingPromised
from queryveil.formats import read_original
from queryveil.formats.aggregates import read_membership
from queryveil.release import SEEDED_NOISE, Noise, Release, as_made_from, read_release

_NODE = r"(?:^|[ \t\r\n])<[^ \t\r\n]*>(?:[ \t\r\n]|$)"
_NODES_NOT_JUDGED = "nodes in angle brackets were not compared with the original; give the taxonomy to do so"
_NOT_RECOUNTED = "members were counted by the membership file; to count the holders of terms too, add --original LOG"
_NEEDS_ORIGINAL = "queries that changed hands can only be judged beside the original: add --original LOG"
_NO_USERS = "who asked what is released can only be counted in the original: add --original LOG"

_Read = QueryLog | Transactions | Profiles
Original = _Read | Path | str
"""What a release was made from, or its file."""


def verify(
    release: Release | Path | str,
    *,
    original: Original | None = None,
    taxonomy: Tree | None = None,
    key: bytes | None = None,
    classifier: Classifier | None = None,
    membership: pl.DataFrame | Path | str | None = None,
    expect: str | None = None,
    signed_by: Path | str | None = None,
) -> Verdict:
    """Return the verdict on a release: on its promise, and on everything that lies in its folder.

    Of a release that was made here and not read from a folder, the promise alone is judged.

    - `release`: the release, or its folder.
    - `original`: what it was made from, or its file: a log, transactions, or profiles. With it, anything that only the
      release has is a violation. Required for swap.
    - `taxonomy`: the taxonomy in which terms or items were generalised; needed to compare them with the original.
    - `key`: the key of keyed user ids; needed for swap.
    - `classifier`: the classifier that swap used, if it has tables of your own.
    - `membership`: who is in which group, or its file: members and, with the original, holders are counted again.
    - `expect`: the promise that is expected, as `km k=5 m=2`: another one or a weaker one is a fault.
    - `signed_by`: the file with the public key of whoever must have signed it; without their signature it is a fault.
    """
    expected = None if expect is None else Expectation.from_text(expect)
    release = release if isinstance(release, Release) else read_release(release)
    faults = whole.faults_of(release) + ([] if expected is None else expected.faults(release.manifest))
    if signed_by is not None:
        if release.contents is None:
            raise BadInput("only a release that was read from its folder can be signed; save it, and sign the folder")
        from queryveil.release.signing import signature_fault  # noqa: PLC0415 - loads cryptography only where needed

        fault = signature_fault(release.contents, public=signed_by)
        faults += [] if fault is None else [fault]
    try:
        before = read_original(original, release.promise) if isinstance(original, Path | str) else original
        faults += whole.other_events(release, before)
        before = as_made_from(before, release.manifest) if isinstance(before, QueryLog) else before
        faults += _other_before(release, before)
        verdict = _judged(
            release, original=before, taxonomy=taxonomy, key=key, classifier=classifier, membership=membership
        )
    except (BadInput, BadRelease, NothingPromised):
        # What is wrong with the folder is said, whether or not the promise can be judged.
        if not faults:
            raise
        n_users = release.data.n_users if isinstance(release.data, QueryLog) else release.data.n_rows
        verdict = Verdict(promise=release.promise, n_users=n_users, n_checked_users=0)
    return verdict.with_faults(faults, notes=whole.notes_of(release.contents))


def _other_before(release: Release, original: _Read | None) -> list[str]:
    """Return where the manifest states other sizes of the original than it has."""
    promises_sizes = not (release.promise.is_noisy or release.promise.promises_nothing)
    if release.contents is None or not promises_sizes or not isinstance(original, QueryLog | Profiles):
        return []
    return list(other_before(release.manifest, original))


def _judged(
    release: Release,
    *,
    original: _Read | None,
    taxonomy: Tree | None,
    key: bytes | None,
    classifier: Classifier | None,
    membership: pl.DataFrame | Path | str | None,
) -> Verdict:
    if membership is not None and not isinstance(release.promise, guarantees.Linkability):
        raise BadInput("a membership file is of a release of plink, and this is none; leave it out")
    match release.promise:
        case guarantees.TransactionAnonymity() as promise:
            unit = release.manifest.parameters.get("unit")
            baskets = None if original is None else _as_transactions(original, unit=unit)
            return transactions.verify_transactions(release.transactions, promise, original=baskets, taxonomy=taxonomy)
        case guarantees.KdeltaAnonymity() as promise:
            return _verify_kdelta(release, promise, original=_as_log(original))
        case guarantees.Linkability() as promise:
            if isinstance(original, Transactions):
                allowed = "a log or profiles, because the release is of groups"
                raise BadParameter("original", "transactions", allowed=allowed)
            verdict = plink.verify_linkability(release.groups, promise, original=original)
            if membership is None:
                return verdict
            if isinstance(membership, pl.DataFrame):
                members = membership.select(pl.col("user").cast(pl.String), pl.col("group").cast(pl.Int64))
            else:
                members = read_membership(Path(membership))
            others = plink.recounted(release.groups, members, original=original)
            return verdict.joined(others, notes=() if original is not None else (_NOT_RECOUNTED,))
        case guarantees.SwapAnonymity() as promise:
            log = _as_log(original)
            if log is None:
                raise BadInput(_NEEDS_ORIGINAL)
            came = arrivals_of(log, release=release, key=key, classifier=classifier)
            verdict = swap.verify_swap(came.rows or release.log, promise, original=came)
            return verdict.with_faults(_too_few(release, came.frame))
        case guarantees.DifferentialPrivacy() as promise:
            return _verify_dp(release, promise, original=_as_log(original))
        case guarantees.AskedTexts() | guarantees.AskedEntities() | guarantees.TextRule() as promise:
            return _verify_practice(release, promise, original=_as_log(original))
        case guarantees.NoPromise() as promise:
            raise NothingPromised(promise.reason)
        case promise:
            return _verify_km(release, promise, original=_as_log(original), taxonomy=taxonomy)


def _verify_practice(
    release: Release,
    promise: guarantees.AskedTexts | guarantees.AskedEntities | guarantees.TextRule,
    *,
    original: QueryLog | None,
) -> Verdict:
    if isinstance(promise, guarantees.TextRule):
        verdict = practice.verify_text_rule(release.log, promise, original=original)
        return verdict if original is None else verdict.with_faults(_too_few(release, original.frame))
    if original is None:
        raise BadInput(_NO_USERS)
    if isinstance(promise, guarantees.AskedTexts):
        return practice.verify_asked_texts(release.tallies, promise, original=original)
    verdict = practice.verify_asked_entities(release.log, promise, original=original)
    return verdict.with_faults(_too_few(release, original.frame))


def _verify_kdelta(release: Release, promise: guarantees.KdeltaAnonymity, *, original: QueryLog | None) -> Verdict:
    clusters, additions = release.manifest.query_clusters, release.manifest.parameters.get("additions") is not False
    try:
        verdict = kdelta.verify_kdelta(release.log, promise, clusters=clusters, original=original, additions=additions)
        return verdict if original is None else verdict.with_faults(_too_few(release, original.frame))
    except BadInput as error:
        # The manifest does not number the queries of this log.
        if release.contents is None:
            raise
        raise BadRelease(str(release.folder), str(error)) from None


def _too_few(release: Release, asked: pl.DataFrame) -> list[str]:
    """Return where the manifest of a folder counts too few texts that one person alone asked."""
    return [] if release.contents is None else too_few_of_one(release.log, release.manifest, asked=asked)


def _verify_dp(release: Release, promise: guarantees.DifferentialPrivacy, *, original: QueryLog | None) -> Verdict:
    data, manifest = release.data if isinstance(release.data, QueryLog) else release.tallies, release.manifest
    told = claims_broken(manifest, data, text=None if release.contents is None else release.contents.manifest)
    notes = (SEEDED_NOISE,) if SEEDED_NOISE in manifest.warnings else ()
    verdict = dp.verify_dp(data, promise, noise=manifest.noise, original=original)
    return verdict.joined((len(told), told), notes=notes)


def _verify_km(
    release: Release, promise: guarantees.KmAnonymity, *, original: QueryLog | None, taxonomy: Tree | None
) -> Verdict:
    unit = release.manifest.columns.time.unit
    # A format with fixed columns has an empty one for times that were dropped.
    without_times = unit is None and "time" in release.log.columns
    data = release.log.with_frame(release.log.frame.drop("time")) if without_times else release.log
    verdict = km.verify_km(data, promise, time_unit=unit)
    if original is None:
        return verdict
    found = invented(release.log, original=original, promise=promise, taxonomy=taxonomy)
    has_nodes = promise.items and taxonomy is None and release.log.frame["query"].str.contains(_NODE).any()
    return verdict.joined(found, notes=(_NODES_NOT_JUDGED,) if has_nodes else ())


def judge(
    data: QueryLog | Transactions | Groups | Tallies,
    promise: guarantees.Guarantee,
    *,
    time_unit: timedelta | None = None,
    clusters: str = "",
    noise: Sequence[Noise] = (),
) -> Verdict:
    """Return the verdict on a promise about released data, without the original.

    - `time_unit`: what the times of a log were rounded to.
    - `clusters`: the manifest's `query_clusters`, for kdelta.
    - `noise`: the manifest's noise, for dp.
    """
    match promise, data:
        case guarantees.NoPromise(), _:
            raise NothingPromised(promise.reason)
        case guarantees.SwapAnonymity(), QueryLog():
            raise BadInput(_NEEDS_ORIGINAL)
        case (guarantees.AskedTexts(), Tallies()) | (guarantees.AskedEntities(), QueryLog()):
            raise BadInput(_NO_USERS)
        case guarantees.TextRule(), QueryLog():
            return practice.verify_text_rule(data, promise)
        case guarantees.TransactionAnonymity(), Transactions():
            return transactions.verify_transactions(data, promise)
        case guarantees.Linkability(), Groups():
            return plink.verify_linkability(data, promise)
        case guarantees.KdeltaAnonymity(), QueryLog():
            return kdelta.verify_kdelta(data, promise, clusters=clusters)
        case guarantees.KmAnonymity(), QueryLog():
            return km.verify_km(data, promise, time_unit=time_unit)
        case guarantees.DifferentialPrivacy(), QueryLog() | Tallies():
            return dp.verify_dp(data, promise, noise=noise)
    about = {
        "dp": "queries with counts",
        "asked_texts": "queries with counts",
        "plink": "groups of profiles",
        "transactions": "transactions",
    }
    model = promise.__struct_config__.tag
    kind = "groups of profiles" if isinstance(data, Groups) else data.noun
    raise BadInput(f"this promise is about {about.get(str(model), 'a log')}, and the data is {kind}")


def _as_transactions(original: _Read, *, unit: object) -> Transactions:
    if isinstance(original, Transactions):
        return original
    if isinstance(original, Profiles):
        raise BadParameter("original", "profiles", allowed="transactions or a log, because the release is transactions")
    by_blanks = original.terms_are_items
    lists = [query.split() if by_blanks else terms_of(query) for query in original.frame["query"]]
    rows = original.frame.select("user").with_columns(items=pl.Series(lists, dtype=pl.List(pl.String)))
    if unit != "query":
        rows = rows.group_by("user", maintain_order=True).agg(pl.col("items").explode(empty_as_null=False))
    return Transactions.from_frame(rows.select("items"))


def _as_log(original: _Read | None) -> QueryLog | None:
    if isinstance(original, Transactions | Profiles):
        found = "transactions" if isinstance(original, Transactions) else "profiles"
        raise BadParameter("original", found, allowed="a log, because the release is one")
    return original

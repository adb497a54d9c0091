"""Measure the utility of a release with all measures that apply."""

from pathlib import Path

import polars as pl

from queryveil import progress
from queryveil.data import QueryLog, Tallies, Transactions
from queryveil.errors import BadInput
from queryveil.formats import read_log
from queryveil.guarantees import DifferentialPrivacy
from queryveil.pairing import Identity, Original, Pair
from queryveil.release import Release, read_release
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility import kept, query_counts
from queryveil.utility.category_profiles import category_profiles
from queryveil.utility.frequencies import frequencies
from queryveil.utility.generalisation import GROUP, generalisation
from queryveil.utility.personalised import group_search
from queryveil.utility.score import Measures, Score, note
from queryveil.utility.suggestions import suggestions


def measure(
    original: Original | Path | str,
    release: Release | Path | str,
    *,
    key: bytes | None = None,
    values: pl.DataFrame | None = None,
    taxonomy: Taxonomy | None = None,
    membership: pl.DataFrame | None = None,
) -> Measures:
    """Measure a release by all that applies to it; the notes say what was left out and why.

    - `original`: what the release was made from, or its file.
    - `release`: the release, or its folder.
    - `key`: the key of keyed ids.
    - `values`: a table of term, bid, clicks and impressions.
    - `taxonomy`: the taxonomy it was made with, if that was not WordNet.
    - `membership`: a table of user and group.

    >>> from queryveil.methods import Km
    >>> from queryveil.testing import tiny_log
    >>> measures = measure(tiny_log(), Km(k=2, m=1).anonymize(tiny_log()))
    >>> round(measures.named("log_size_kept").value, 2), measures.named("terms_kept").value
    (0.64, 0.375)
    """
    judged = release if isinstance(release, Release) else read_release(release)
    before = read_log(original) if isinstance(original, str | Path) else original
    pair = Pair(before, release=judged, key=key, taxonomy=taxonomy)
    return run(pair, values=values, membership=membership)


def run(pair: Pair, *, values: pl.DataFrame | None = None, membership: pl.DataFrame | None = None) -> Measures:
    """Measure the release of a pair by all that applies to it."""
    release = pair.release
    found = Measures() if pair.mismatch is None else note(pair.mismatch)
    if isinstance(release.data, Tallies) or isinstance(release.promise, DifferentialPrivacy):
        return found + _measure_counts(pair, values=values)
    if isinstance(release.data, QueryLog):
        return found + _measure_log(pair, values=values)
    if isinstance(release.data, Transactions):
        return found + _measure_transactions(pair, values=values)
    progress.step("measuring what is kept")
    found += kept.kept_of_groups(pair)
    if values is not None:
        found += note("advertising is left out: groups do not say how often their terms were asked")
    progress.step("measuring personalised search")
    return found + group_search(pair, membership=membership)


def _measure_log(pair: Pair, *, values: pl.DataFrame | None) -> Measures:
    if not isinstance(pair.original, QueryLog):
        raise BadInput("a released log is measured by the log that it was made from; give that")
    progress.step("measuring what is kept")
    terms = kept.TermCounts.of(pair)
    progress.step("telling who is who")
    identity, why_not = _identity(pair)
    found = kept.kept_of_log(pair, terms=terms, identity=identity)
    found += _no_values() if values is None else kept.advertising(terms, values=values)
    progress.step("measuring search")
    found += frequencies(pair) + suggestions(pair)
    progress.step("measuring profiles")
    found += note(f"profiles are left out: {why_not}") if identity is None else category_profiles(pair)
    if pair.release.manifest.method == "token_hash":
        found += note("terms are hashed: measured is what can be read, and the counts of hashes are still there")
    return found + _loss(pair.release)


def _identity(pair: Pair) -> tuple[Identity | None, str]:
    """Return who is who, or None and why nobody can tell."""
    if pair.log.terms_are_items:
        return None, "items of transactions are no queries, and have no categories"
    try:
        return pair.identity, ""
    except BadInput as error:
        return None, str(error)


def _loss(release: Release) -> Measures:
    """Take over what km with a taxonomy says of itself: what a term moved up by cannot be told from the files."""
    loss = release.manifest.measures.get("loss")
    if loss is None or release.manifest.parameters.get("taxonomy") is None:
        return Measures()
    about = "of each term of a user lost by moving it up or deleting it, 0 to 1, as the manifest says"
    return Measures(scores=(Score(name="loss", value=loss, better="less", about=about, group=GROUP),))


def _measure_transactions(pair: Pair, *, values: pl.DataFrame | None) -> Measures:
    progress.step("measuring what is kept")
    terms = kept.count_items(pair.bags, released=pair.release.transactions)
    found = kept.kept_of_transactions(pair, terms=terms)
    found += _no_values() if values is None else kept.advertising(terms, values=values)
    if pair.known_taxonomy is None:
        return found + note("GGD, NCP and level are left out: they need the taxonomy it was made with: add --taxonomy")
    progress.step("measuring generalisation")
    return found + generalisation(pair, taxonomy=pair.known_taxonomy)


def _measure_counts(pair: Pair, *, values: pl.DataFrame | None) -> Measures:
    if not isinstance(pair.original, QueryLog):
        raise BadInput("counts of queries are measured by the log that they were made from; give that")
    progress.step("measuring what is kept")
    counts = query_counts.QueryCounts.of(pair)
    found = query_counts.kept_of_counts(counts, release=pair.release)
    found += _no_values() if values is None else kept.advertising(counts.terms, values=values)
    progress.step("measuring search")
    return found + query_counts.search_in_counts(counts, pair=pair)


def _no_values() -> Measures:
    return note("advertising is left out: it needs a table of what terms are worth: add --values FILE")

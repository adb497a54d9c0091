"""Measure the utility of a release with all measures that apply."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from queryveil import progress
from queryveil.data import QueryLog, Tallies, Transactions
from queryveil.errors import BadInput
from queryveil.formats import read_log
from queryveil.guarantees import DifferentialPrivacy
from queryveil.pairing import Paired, another_log
from queryveil.release import Release, read_release
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility.advertising import advertising
from queryveil.utility.category_profiles import category_profiles
from queryveil.utility.frequencies import frequencies
from queryveil.utility.generalisation import GROUP as GENERALISATION
from queryveil.utility.generalisation import generalisation
from queryveil.utility.kept import kept_of_groups, kept_of_log, kept_of_transactions
from queryveil.utility.personalised import group_search
from queryveil.utility.score import Measures, Score, note
from queryveil.utility.sides import Original, Sides, bags_of, count_items, items_in
from queryveil.utility.suggestions import suggestions
from queryveil.utility.tallied import Tallied, kept_of_tallies, search_in_tallies


def measure(
    original: Original | Path | str,
    release: Release | Path | str,
    *,
    key: bytes | None = None,
    values: pl.DataFrame | None = None,
    taxonomy: Taxonomy | None = None,
    membership: pl.DataFrame | None = None,
    paired: Paired | None = None,
) -> Measures:
    """Measure a release by all that applies to it; the notes say what was left out and why.

    `key` is that of keyed ids, `values` a table of term, bid, clicks and impressions, `taxonomy` the one it was made
    with if that was not WordNet, `membership` says who is in which group. `paired` saves putting the two side by side.

    Examples
    --------
    >>> from queryveil.methods import Km
    >>> from queryveil.testing import tiny_log
    >>> measures = measure(tiny_log(), Km(k=2, m=1).anonymize(tiny_log()))
    >>> round(measures.named("log_size_kept").value, 2), measures.named("terms_kept").value
    (0.64, 0.375)
    """
    judged = release if isinstance(release, Release) else read_release(release)
    before = read_log(original) if isinstance(original, str | Path) else original
    tree = taxonomy or _known_taxonomy(judged)
    found = _other_original(before, judged)
    if isinstance(judged.data, Tallies) or isinstance(judged.promise, DifferentialPrivacy):
        return found + _measure_tallies(before, judged, values=values)
    if isinstance(judged.data, QueryLog):
        return found + _measure_log(before, judged, key=key, values=values, taxonomy=tree, paired=paired)
    if isinstance(judged.data, Transactions):
        return found + _measure_transactions(before, judged, values=values, taxonomy=tree)
    progress.step("measuring what is kept")
    found += kept_of_groups(before, groups=judged.groups)
    if values is not None:
        found += note("advertising is left out: groups do not say how often their terms were asked")
    progress.step("measuring personalised search")
    return found + group_search(before, release=judged, membership=membership, taxonomy=tree)


def _known_taxonomy(release: Release) -> Taxonomy | None:
    return Taxonomy.wordnet() if release.manifest.parameters.get("taxonomy") == "wordnet" else None


def _other_original(original: Original, release: Release) -> Measures:
    other = another_log(original.n_rows, release=release)
    return Measures() if other is None else note(other)


def _measure_log(
    original: Original,
    release: Release,
    *,
    key: bytes | None,
    values: pl.DataFrame | None,
    taxonomy: Taxonomy | None,
    paired: Paired | None,
) -> Measures:
    if not isinstance(original, QueryLog):
        raise BadInput("a released log is measured by the log that it was made from; give that")
    progress.step("measuring what is kept")
    sides = Sides.of(original, release=release)
    progress.step("telling who is who")
    side_by_side: Paired | str = "items of transactions are no queries, and have no categories"
    if not original.terms_are_items:
        side_by_side = paired or _paired(original, release, key=key, taxonomy=taxonomy)
    who = side_by_side.who if isinstance(side_by_side, Paired) else None
    found = kept_of_log(sides, original=original, release=release, taxonomy=taxonomy, who=who)
    found += _no_values() if values is None else advertising(sides.terms, values=values)
    progress.step("measuring search")
    found += frequencies(sides) + suggestions(sides, time=release.manifest.columns.time)
    progress.step("measuring profiles")
    if isinstance(side_by_side, Paired):
        found += category_profiles(sides, paired=side_by_side)
    else:
        found += note(f"profiles are left out: {side_by_side}")
    if release.manifest.method == "token_hash":
        found += note("terms are hashed: measured is what can be read, and the counts of hashes are still there")
    return found + _loss(release)


def _paired(original: QueryLog, release: Release, *, key: bytes | None, taxonomy: Taxonomy | None) -> Paired | str:
    """Put the two side by side, or say why nobody can tell who is who."""
    try:
        return Paired.of(original, release=release, key=key, taxonomy=taxonomy)
    except BadInput as error:
        return str(error)


def _loss(release: Release) -> Measures:
    """Take over what km with a taxonomy says of itself: what a term moved up by cannot be told from the files."""
    loss = release.manifest.measures.get("loss")
    if loss is None or release.manifest.parameters.get("taxonomy") is None:
        return Measures()
    about = "of each term of a user lost by moving it up or deleting it, 0 to 1, as the manifest says"
    return Measures(scores=(Score(name="loss", value=loss, better="less", about=about, group=GENERALISATION),))


def _measure_transactions(
    original: Original, release: Release, *, values: pl.DataFrame | None, taxonomy: Taxonomy | None
) -> Measures:
    progress.step("measuring what is kept")
    by_query = isinstance(original, QueryLog) and release.manifest.parameters.get("unit") == "query"
    bags = bags_of(original, by_query=by_query)
    terms = count_items(items_in(bags), after=items_in(release.transactions))
    found = kept_of_transactions(terms, bags=bags, release=release, taxonomy=taxonomy, by_query=by_query)
    found += _no_values() if values is None else advertising(terms, values=values)
    if taxonomy is None:
        return found + note("GGD, NCP and level are left out: they need the taxonomy it was made with: add --taxonomy")
    progress.step("measuring generalisation")
    return found + generalisation(bags, release=release, taxonomy=taxonomy)


def _measure_tallies(original: Original, release: Release, *, values: pl.DataFrame | None) -> Measures:
    if not isinstance(original, QueryLog):
        raise BadInput("counts of queries are measured by the log that they were made from; give that")
    progress.step("measuring what is kept")
    tallied = Tallied.of(original, release=release)
    found = kept_of_tallies(tallied, release=release)
    found += _no_values() if values is None else advertising(tallied.terms, values=values)
    progress.step("measuring search")
    return found + search_in_tallies(tallied, original=original, release=release)


def _no_values() -> Measures:
    return note("advertising is left out: it needs a table of what terms are worth: add --values FILE")

"""Measure the utility of a release with all measures that apply."""

from pathlib import Path

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Int64s, QueryLog, Tallies, Transactions
from queryveil.errors import BadInput
from queryveil.formats import read_original
from queryveil.guarantees import DifferentialPrivacy
from queryveil.pairing import Original, Pair, share_numbers
from queryveil.release import Release, read_release
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import Tokens, split_items, tokenize
from queryveil.utility import kept
from queryveil.utility.frequencies import category_profiles, frequencies, frequencies_of_counts, top_urls
from queryveil.utility.kept import GENERALISATION, generalisation
from queryveil.utility.personalised import group_search
from queryveil.utility.score import Measures, Score, note, share
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
    before = read_original(original, judged.promise) if isinstance(original, str | Path) else original
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
    identity, why_not = None, "items of transactions are no queries, and have no categories"
    if not pair.log.terms_are_items:
        try:
            identity = pair.identity
        except BadInput as error:
            why_not = str(error)
    found = kept.kept_of_log(pair, terms=terms, identity=identity)
    found += kept.advertising(terms, values=values)
    progress.step("measuring search")
    found += frequencies(pair) + suggestions(pair)
    progress.step("measuring profiles")
    found += note(f"profiles are left out: {why_not}") if identity is None else category_profiles(pair)
    if pair.release.manifest.method == "token_hash":
        found += note("terms are hashed: measured is what can be read, and the counts of hashes are still there")
    return found + _loss(pair.release)


def _loss(release: Release) -> Measures:
    """Return the loss in the manifest of km with a taxonomy: the files do not show how far a term was generalised."""
    loss = release.manifest.measures.get("loss")
    if loss is None or release.manifest.parameters.get("taxonomy") is None:
        return Measures()
    about = "of each term of a user lost by moving it up or deleting it, 0 to 1, as the manifest says"
    return Measures(scores=(Score(name="loss", value=loss, better="less", about=about, group=GENERALISATION),))


def _measure_transactions(pair: Pair, *, values: pl.DataFrame | None) -> Measures:
    progress.step("measuring what is kept")
    terms = kept.count_items(pair.bags, released=pair.release.transactions)
    found = kept.kept_of_transactions(pair, terms=terms)
    found += kept.advertising(terms, values=values)
    if pair.known_taxonomy is None:
        return found + note("GGD, NCP and level are left out: they need the taxonomy it was made with: add --taxonomy")
    progress.step("measuring generalisation")
    return found + generalisation(pair, taxonomy=pair.known_taxonomy)


_ABOUT_COUNTS = {
    "rows_kept": "of the rows are counted in the release",
    "log_size_kept": "of all that was asked, counted in terms, is counted in the release",
}
_NO_USERS = "users kept, suggestions and profiles are left out: the release has no rows that are one person's"
_MADE_UP = (
    "all rows are made up: kept is what they have in common with the log, each query counted; users kept, suggestions "
    "and profiles are left out, since queries were dealt to made-up users by chance"
)


def _measure_counts(pair: Pair, *, values: pl.DataFrame | None) -> Measures:
    """Measure noisy counts, or rows made up from them: of each query at most as much is kept as was there."""
    if not isinstance(pair.original, QueryLog):
        raise BadInput("counts of queries are measured by the log that they were made from; give that")
    progress.step("measuring what is kept")
    asked, before, after = _query_counts(pair)
    # Counts of people may be below those of rows and noise may lift them above: what is above counts as noise.
    was, left = before > 0, np.minimum(before, after)
    n_terms, n_kept = kept.count_terms(asked, before), kept.count_terms(asked, left)
    terms = kept.TermCounts(vocabulary=asked.vocabulary, before=n_terms, after=n_kept)
    shares = {
        "rows_kept": share(int(left.sum()), len(asked.row_query)),
        "terms_kept": kept.terms_kept(terms),
        "queries_kept": share(int((was & (after > 0)).sum()), int(was.sum())),
        "log_size_kept": share(float(terms.kept.sum()), float(terms.before.sum())),
    }
    scores = tuple(kept.kept_score(name, value, about=_ABOUT_COUNTS.get(name)) for name, value in shares.items())
    found = Measures(scores=scores, notes=(_NO_USERS if isinstance(pair.release.data, Tallies) else _MADE_UP,))
    found += kept.advertising(terms, values=values)
    progress.step("measuring search")
    found += frequencies_of_counts(before, after)
    urls = pair.log.frame["url"] if "url" in pair.log.columns else None
    return found + top_urls(None if urls is None or urls.null_count() == len(urls) else urls, _clicked(pair.release))


def _query_counts(pair: Pair) -> tuple[Tokens, Int64s, Int64s]:
    """Return the tokens of the original, and how often the original and the release have each of all queries."""
    asked = pair.original_tokens
    if pair.log.terms_are_items:
        asked = tokenize(split_items(pair.log.frame.select("query"))["query"], by_blanks=True)
    asked, released = share_numbers(asked, pair.release_tokens)
    row, counts = _counted(pair)
    has_terms = asked.query_terms.lengths > 0
    weights = np.maximum(0, counts)
    after = np.bincount(released.row_query[row], weights=weights, minlength=len(asked.queries)).astype(np.int64)
    return asked, kept.asked_of(asked) * has_terms, after * has_terms


def _counted(pair: Pair) -> tuple[Int64s, Int64s]:
    """Return a released row of each query with its count; those of made-up rows are how many there are."""
    data = pair.release.data
    if isinstance(data, Tallies):
        return np.arange(data.frame.height), data.frame["count"].to_numpy()
    log, n_rows = pair.release.log, pair.log.n_rows
    # Rows can be made up without end, so where there are more than in the log, counts are scaled down.
    scale = min(1.0, n_rows / max(1, log.n_rows))
    by_query = log.frame.select("query").with_row_index("row").group_by("query")
    counted = by_query.agg(pl.col("row").first().cast(pl.Int64), count=(pl.len() * scale).round().cast(pl.Int64))
    return counted["row"].to_numpy(), counted["count"].to_numpy()


def _clicked(release: Release) -> pl.DataFrame | None:
    if isinstance(release.data, Tallies):
        return release.data.clicks
    if "url" not in release.log.columns:
        return None
    return release.log.frame.drop_nulls("url").group_by("url").agg(count=pl.len().cast(pl.Int64))

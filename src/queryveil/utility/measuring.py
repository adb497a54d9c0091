"""Measure the utility of a release with all measures that apply."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Int64s, QueryLog, Tallies, Transactions
from queryveil.errors import BadInput
from queryveil.formats import read_original
from queryveil.pairing import Original, Pair, share_numbers
from queryveil.release import Release, read_release
from queryveil.rng import generator
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import Tokens, split_items, tokenize
from queryveil.utility import kept
from queryveil.utility.coverage import CountQueries, count_queries, counted_by_user, coverage, words_as_typed
from queryveil.utility.frequencies import (
    Trends,
    category_profiles,
    frequencies,
    frequencies_of_counts,
    top_urls,
    urls_of,
)
from queryveil.utility.interests import Interests, no_interests
from queryveil.utility.kept import GENERALISATION, generalisation
from queryveil.utility.personalised import group_search
from queryveil.utility.ranking import Ranking
from queryveil.utility.score import Measures, Score, note, share
from queryveil.utility.spelling import Respellings
from queryveil.utility.suggestions import Completions, RelatedQueries, suggestions
from queryveil.utility.views import View, counted, is_counted


def measure(
    original: Original | Path | str,
    release: Release | Path | str,
    *,
    key: bytes | None = None,
    values: pl.DataFrame | None = None,
    taxonomy: Taxonomy | None = None,
    membership: pl.DataFrame | None = None,
    public: QueryLog | None = None,
    seed: int = 0,
) -> Measures:
    """Measure a release by all that applies to it; the notes say what was left out and why.

    - `original`: what the release was made from, or its file.
    - `release`: the release, or its folder.
    - `key`: the key of keyed ids.
    - `values`: a table of term, bid, clicks and impressions.
    - `taxonomy`: the taxonomy it was made with, if that was not WordNet.
    - `membership`: a table of user and group.
    - `public`: a log by other people; ranking and completions are judged on what they asked and clicked.
    - `seed`: decides which clicks, queries and words are drawn.

    >>> from queryveil.methods import Km
    >>> from queryveil.testing import tiny_log
    >>> measures = measure(tiny_log(), Km(k=2, m=1).anonymize(tiny_log()))
    >>> round(measures.named("log_size_kept").value, 2), measures.named("terms_kept").value
    (0.64, 0.375)
    """
    judged = release if isinstance(release, Release) else read_release(release)
    before = read_original(original, judged.promise) if isinstance(original, str | Path) else original
    pair = Pair(before, release=judged, key=key, taxonomy=taxonomy)
    return run(pair, values=values, membership=membership, reference=reference_of(pair, public=public, seed=seed))


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Reference:
    """What measures of purpose need of an original alone, computed once for all its releases.

    - `log`: the original.
    - `public`: a log by other people, on whose queries and clicks releases are judged. Without one, they are judged on
      the last fifth of the original by time, or on a fifth of its users where it has no times.
    - `seed`: decides which clicks, queries and words are drawn.
    """

    log: QueryLog
    public: QueryLog | None = None
    seed: int = 0

    @cached_property
    def of_clicks(self) -> "Reference":
        """The same of the original with a row for each click, for releases that were made of such rows."""
        return replace(self, log=self.log.with_clicks_as_rows())

    @cached_property
    def pair(self) -> Pair:
        """The original beside itself."""
        return Pair.pseudonymised(self.log)

    @cached_property
    def view(self) -> View:
        """What the original shows."""
        return View.of(self.pair)

    @cached_property
    def judged(self) -> View:
        """The queries and clicks that releases are judged on."""
        return View.of(Pair.pseudonymised(self.public or _last_fifth(self.log, seed=self.seed)))

    @cached_property
    def ranking(self) -> Ranking | None:
        """The judged clicks."""
        return Ranking.of(self.view, judged=self.judged.clicks, seed=self.seed)

    @cached_property
    def completions(self) -> Completions | None:
        """The judged queries."""
        asked = self.judged.queries.to_frame("query").with_columns(count=self.judged.n_asked)
        return Completions.of(self.view, judged=asked.filter(pl.col("count") > 0))

    @cached_property
    def respellings(self) -> Respellings | None:
        """The respellings of the original."""
        return Respellings.of(self.view)

    @cached_property
    def related(self) -> RelatedQueries | None:
        """The related queries of the original."""
        return RelatedQueries.of(self.view)

    @cached_property
    def trends(self) -> Trends | None:
        """The counts of queries in each period of the original."""
        return Trends.of(self.view)

    @cached_property
    def interests(self) -> Interests | None:
        """The last query of each person, and what the original's histories say of it."""
        return Interests.of(self.pair, seed=self.seed)

    @cached_property
    def counting(self) -> CountQueries | None:
        """Count queries on the users of the original."""
        return counted_by_user(self.pair, seed=self.seed)

    def __repr__(self) -> str:
        # Privacy: numbers only.
        return f"Reference(log={self.log!r}, public={self.public!r})"


def reference_of(pair: Pair, *, public: QueryLog | None = None, seed: int = 0) -> Reference | None:
    """Return what measures need of the original of a pair; None where that is no log."""
    return Reference(log=pair.given, public=public, seed=seed) if isinstance(pair.given, QueryLog) else None


def _last_fifth(log: QueryLog, *, seed: int) -> QueryLog:
    """Return the rows of the last fifth by time, or those of a fifth of the users."""
    frame = log.frame
    if "time" in frame.columns and frame["time"].null_count() < frame.height:
        return log.with_frame(frame.filter(pl.col("time") >= frame["time"].quantile(0.8, interpolation="lower")))
    users = frame["user"].unique().sort()
    drawn = users.gather(generator(seed).permutation(len(users))[: -(-len(users) // 5)])
    return log.with_frame(frame.filter(pl.col("user").is_in(drawn.implode())))


def run(
    pair: Pair,
    *,
    values: pl.DataFrame | None = None,
    membership: pl.DataFrame | None = None,
    reference: Reference | None = None,
    only: str | None = None,
) -> Measures:
    """Measure the release of a pair by all that applies to it.

    - `pair`, `values`, `membership`: as in `measure`.
    - `reference`: the original that the release was made from, where several releases of it are measured.
    - `only`: the score that is wanted; measures that cannot give it may be left out.
    """
    release = pair.release
    if reference is not None and reference.log is not pair.given:
        raise BadInput("the reference must hold the log that is beside the release")
    reference = reference or reference_of(pair)
    if reference is not None and pair.original is not pair.given:
        reference = reference.of_clicks
    if reference is not None:
        # The terms of the original are taken out once for both.
        reference.__dict__.setdefault("pair", pair.baseline)
    found = Measures() if pair.mismatch is None else note(pair.mismatch)
    if only in _EXAMS and reference is not None:
        return found + _purposes(pair, reference, only=only)
    if is_counted(pair):
        if reference is None:
            raise BadInput("counts of queries are measured by the log that they were made from; give that")
        return found + _measure_counts(pair, reference, values=values)
    if isinstance(release.data, QueryLog):
        if reference is None:
            raise BadInput("a released log is measured by the log that it was made from; give that")
        return found + _measure_log(pair, reference, values=values)
    if isinstance(release.data, Transactions):
        return found + _measure_transactions(pair, values=values, seed=_seed(reference))
    progress.step("measuring what is kept")
    found += kept.kept_of_groups(pair) + count_queries(pair, asked=None, seed=_seed(reference))
    if values is not None:
        found += note("advertising is left out: groups do not say how often their terms were asked")
    progress.step("measuring personalised search")
    found += group_search(pair, membership=membership)
    if reference is None or membership is None:
        return found
    interests = reference.interests
    return found + (no_interests() if interests is None else interests.measure_groups(pair, membership=membership))


def _seed(reference: Reference | None) -> int:
    return 0 if reference is None else reference.seed


def _measure_log(pair: Pair, reference: Reference, *, values: pl.DataFrame | None) -> Measures:
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
    found += _purposes(pair, reference) + words_as_typed(terms)
    found += count_queries(pair, asked=reference.counting, seed=reference.seed)
    found += kept.advertising(terms, values=values)
    progress.step("measuring search")
    found += frequencies(pair) + suggestions(pair)
    progress.step("measuring profiles")
    if identity is None:
        found += note(f"profiles and interests are left out: {why_not}")
    else:
        interests = reference.interests
        found += category_profiles(pair)
        found += no_interests() if interests is None else interests.measure(pair, category=pair.categories)
    if pair.release.manifest.method == "token_hash":
        found += note("terms are hashed: measured is what can be read, and the counts of hashes are still there")
    return found + _loss(pair.release)


_JUDGED_INSIDE = (
    "ranking and completions are judged on queries and clicks that are in the log itself, the log by its own too; to "
    "judge them on other people's, add --public LOG"
)
_WITHOUT: dict[str, str] = {
    "ranking": "ranking is left out: the log has no clicks, or those judged on have none",
    "completions": "completions are left out: the log completes no query that is judged on",
    "respellings": "spelling is left out: nobody in the log corrects a letter of a query",
    "related": "related queries are left out: no query of three users has another beside it twice",
    "trends": "trends are left out: the log has no times, or times of one day only",
}


_EXAMS = {
    "ranking_kept": "ranking",
    "completions_kept": "completions",
    "spelling_kept": "respellings",
    "related_kept": "related",
    "trends_kept": "trends",
}
"""By score of a purpose, what of a reference gives it."""


def _purposes(pair: Pair, reference: Reference, *, only: str | None = None) -> Measures:
    """Measure by what needs queries, clicks and times, and not who is who."""
    if pair.log.terms_are_items:
        return note(
            "coverage, ranking, completions, spelling, related queries and trends are left out: items are no queries"
        )
    if only is not None and not (isinstance(pair.release.data, QueryLog) or is_counted(pair)):
        return note("items and groups are no queries, and have no measure of this purpose")
    view = View.of(pair)
    progress.step("measuring coverage")
    found = coverage(reference.view, after=view) if only is None else Measures()
    for name, why_not in _WITHOUT.items() if only is None else [(_EXAMS[only], _WITHOUT[_EXAMS[only]])]:
        progress.step(f"measuring {name}")
        exam = getattr(reference, name)
        found += note(why_not) if exam is None else exam.measure(view)
    is_inside = reference.public is None and (reference.ranking or reference.completions)
    return found + (note(_JUDGED_INSIDE) if is_inside else Measures())


def _loss(release: Release) -> Measures:
    """Return the loss in the manifest of km with a taxonomy: the files do not show how far a term was generalised."""
    loss = release.manifest.measures.get("loss")
    if loss is None or release.manifest.parameters.get("taxonomy") is None:
        return Measures()
    about = "of each term of a user lost by moving it up or deleting it, 0 to 1, as the manifest says"
    return Measures(scores=(Score(name="loss", value=loss, better="less", about=about, group=GENERALISATION),))


def _measure_transactions(pair: Pair, *, values: pl.DataFrame | None, seed: int) -> Measures:
    progress.step("measuring what is kept")
    terms = kept.count_items(pair.bags, released=pair.release.transactions)
    found = kept.kept_of_transactions(pair, terms=terms) + words_as_typed(terms)
    found += count_queries(pair, asked=None, seed=seed)
    found += kept.advertising(terms, values=values)
    if pair.known_taxonomy is None:
        return found + note("GGD, NCP and level are left out: they need the taxonomy it was made with: add --taxonomy")
    progress.step("measuring generalisation")
    return found + generalisation(pair, taxonomy=pair.known_taxonomy)


_ABOUT_COUNTS = {
    "rows_kept": "of the rows are counted in the release",
    "log_size_kept": "of all that was asked, counted in terms, is counted in the release",
}
_NO_USERS = (
    "users kept, suggestions, profiles and interests are left out: the release has no rows that are one person's"
)
_MADE_UP = (
    "all rows are made up: kept is what they have in common with the log, each query counted; users kept, suggestions, "
    "profiles and interests are left out, since queries were dealt to made-up users by chance"
)


def _measure_counts(pair: Pair, reference: Reference, *, values: pl.DataFrame | None) -> Measures:
    """Measure counts, or rows made up from them: of each query at most as much is kept as was there."""
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
    found += _purposes(pair, reference) + words_as_typed(terms)
    found += count_queries(pair, asked=reference.counting, seed=reference.seed)
    found += kept.advertising(terms, values=values)
    progress.step("measuring search")
    found += frequencies_of_counts(before, after)
    return found + top_urls(urls_of(pair.log), _clicked(pair.release))


def _query_counts(pair: Pair) -> tuple[Tokens, Int64s, Int64s]:
    """Return the tokens of the original, and how often the original and the release have each of all queries."""
    asked = pair.original_tokens
    if pair.log.terms_are_items:
        asked = tokenize(split_items(pair.log.frame.select("query"))["query"], by_blanks=True)
    asked, released = share_numbers(asked, pair.release_tokens)
    row, counts = counted(pair)
    has_terms = asked.query_terms.lengths > 0
    weights = np.maximum(0, counts)
    after = np.bincount(released.row_query[row], weights=weights, minlength=len(asked.queries)).astype(np.int64)
    return asked, kept.asked_of(asked) * has_terms, after * has_terms


def _clicked(release: Release) -> pl.DataFrame | None:
    if isinstance(release.data, Tallies):
        return release.data.clicks
    if (urls := urls_of(release.log)) is None:
        return None
    return urls.drop_nulls().to_frame("url").group_by("url").agg(count=pl.len().cast(pl.Int64))

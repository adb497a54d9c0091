"""Utility for ranking: what a search engine learns from the clicks of a release, judged on clicks of other people.

One model ranks and says how likely each click is. The chance that a click after query q goes to page u is

    (clicks of q on u + 2 * back-off) / (clicks of q + 2),

and the back-off is 0.8 times the mean, over the words of q that the model knows, of the share of u among the clicks
after that word, rarer words counting more (as in BM25), plus 0.2 times the share of u among all clicks. A page has one
click to begin with, by the words of its own address: that is all that the model knows without any log.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from queryveil.data import Floats, Int32s, Int64s
from queryveil.data.rows import Rows
from queryveil.kernels import njit
from queryveil.rng import generator
from queryveil.text.tokens import join_terms
from queryveil.utility.score import Measures, kept, note, part_of_gain
from queryveil.utility.views import View

AT = 10
MOST_JUDGED = 5000  # clicks that are judged, drawn at random if there are more
_PRIOR_CLICKS = 2.0
_BY_WORDS = 0.8
_LEAST_GAIN = 0.001  # a log that adds less to ranking is no measure


@njit(cache=True, nogil=True)
def rank_clicks(
    judged: Rows[np.int32],
    own: Rows[np.int32],
    own_clicks: Floats,
    words: Rows[np.int32],
    pages: Rows[np.int32],
    shares: Floats,
    rarity: Floats,
    popularity: Floats,
    ascending: Floats,
) -> tuple[Int64s, Floats]:
    """Return the place and the chance of each judged page of each query; of pages that score the same, the last.

    `own` are the pages clicked after each query, `words` its words, `pages` and `shares` those clicked after each word.
    `ascending` is the popularity in order.
    """
    n_pages = len(popularity)
    extra, is_touched, touched = np.zeros(n_pages), np.zeros(n_pages, np.bool_), np.empty(n_pages, np.int64)
    place, chance = np.zeros(len(judged.values), np.int64), np.zeros(len(judged.values))
    for j in range(len(judged.ptr) - 1):
        n_touched, n_own, rare = 0, 0.0, 0.0
        for i in range(words.ptr[j], words.ptr[j + 1]):
            rare += rarity[words.values[i]]
        by_words = _BY_WORDS if rare > 0 else 0.0
        for i in range(words.ptr[j], words.ptr[j + 1]):
            word = words.values[i]
            scale = _PRIOR_CLICKS * by_words * rarity[word] / rare if rare > 0 else 0.0
            for k in range(pages.ptr[word], pages.ptr[word + 1]):
                page = pages.values[k]
                extra[page] += scale * shares[k]
                if not is_touched[page]:
                    is_touched[page] = True
                    touched[n_touched] = page
                    n_touched += 1
        for i in range(own.ptr[j], own.ptr[j + 1]):
            page = own.values[i]
            extra[page] += own_clicks[i]
            n_own += own_clicks[i]
            if not is_touched[page]:
                is_touched[page] = True
                touched[n_touched] = page
                n_touched += 1
        base = _PRIOR_CLICKS * (1.0 - by_words)
        for i in range(judged.ptr[j], judged.ptr[j + 1]):
            score = extra[judged.values[i]] + base * popularity[judged.values[i]]
            # Sums that should be equal may differ in the last bits.
            least = score - 1e-12
            n_ahead = n_pages - np.searchsorted(ascending, least / base)
            for k in range(n_touched):
                by_all = base * popularity[touched[k]]
                n_ahead += (extra[touched[k]] + by_all >= least) - (popularity[touched[k]] >= least / base)
            place[i] = n_ahead
            chance[i] = score / (n_own + _PRIOR_CLICKS)
        for k in range(n_touched):
            extra[touched[k]] = 0.0
            is_touched[touched[k]] = False
    return place, chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How well a model did: NDCG at 10 and the mean log-likelihood of a click."""

    ndcg: float
    likelihood: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Ranking:
    """The clicks that rankings are judged on, and how well they are ranked with the whole log and with none.

    - `judged`: `query`, `url` and `count`, in the order of `query` and `url`.
    - `pages`, `words`: the pages that may be ranked, by number, and the words of their addresses.
    - `with_log`, `without`: the quality reached with the original, and without any clicks.
    """

    judged: pl.DataFrame
    pages: pl.DataFrame
    words: pl.DataFrame
    with_log: Quality
    without: Quality

    @classmethod
    def of(cls, view: View, *, judged: pl.DataFrame | None, seed: int) -> Self | None:
        """Prepare the clicks to judge on, with their queries as terms; None if there are none on either side."""
        if view.clicks is None or judged is None or not judged.height:
            return None
        chosen = _draw(judged, seed=seed)
        urls = pl.concat([view.clicks["url"], chosen["url"]]).unique().sort()
        pages = urls.to_frame("url").with_columns(page=pl.int_range(pl.len(), dtype=pl.Int32))
        words = pages.with_columns(word=join_terms(pages["url"]).str.split(" ").list.unique()).explode("word")
        bare = Quality(ndcg=0.0, likelihood=0.0)
        empty = cls(judged=chosen, pages=pages, words=words.select("word", "page"), with_log=bare, without=bare)
        found = (empty.quality(clicks) for clicks in (view.clicks, None))
        with_log, without = found
        return cls(judged=chosen, pages=pages, words=empty.words, with_log=with_log, without=without)

    def quality(self, clicks: pl.DataFrame | None) -> Quality:
        """Train on clicks (`query`, `url`, `count`), and return how well the judged clicks are ranked."""
        none = self.judged.select("query", "url", "count").clear()
        known = (none if clicks is None else clicks).join(self.pages, on="url")
        asked = self.judged.select("query").unique(maintain_order=True).with_row_index("place")
        n_asked, n_pages = asked.height, self.pages.height
        own = known.join(asked, on="query").sort("place", "page")
        terms = asked.select("place", word=pl.col("query").str.split(" ").list.unique(maintain_order=True))
        terms = terms.explode("word", empty_as_null=False)
        vocabulary = terms.select("word").unique(maintain_order=True).with_row_index("number")
        by_word = self._by_word(known, vocabulary)
        n_after = by_word.select(pl.col("count") / pl.col("count").sum().over("number"))["count"]
        pages = _rows(by_word["number"], by_word["page"], n_rows=vocabulary.height)
        # A word that no page has and nobody asked says nothing.
        rarity = np.where(pages.lengths > 0, np.log1p(n_pages / np.maximum(1, pages.lengths)), 0.0)
        total = known.group_by("page").agg(pl.col("count").sum())
        popularity = np.ones(n_pages)
        popularity[total["page"].to_numpy()] += total["count"].to_numpy()
        popularity /= popularity.sum()
        judged = self.judged.join(asked, on="query", maintain_order="left").join(
            self.pages, on="url", maintain_order="left"
        )
        numbers = terms.join(vocabulary, on="word", maintain_order="left")
        place, chance = rank_clicks(
            _rows(judged["place"], judged["page"], n_rows=n_asked),
            _rows(own["place"], own["page"], n_rows=n_asked),
            np.array(own["count"], np.float64),
            _rows(numbers["place"], numbers["number"].cast(pl.Int32), n_rows=n_asked),
            pages,
            np.array(n_after, np.float64),
            rarity,
            popularity,
            np.sort(popularity),
        )
        n = judged["count"].to_numpy()
        likelihood = float((n * np.log(chance)).sum() / n.sum())
        return Quality(ndcg=_ndcg(judged["place"].to_numpy(), place, n), likelihood=likelihood)

    def _by_word(self, known: pl.DataFrame, vocabulary: pl.DataFrame) -> pl.DataFrame:
        """Return how often each page is clicked after each word, one click by the words of its address included."""
        split = known.select("page", "count", word=pl.col("query").str.split(" ").list.unique())
        said = split.explode("word", empty_as_null=False).select("word", "page", pl.col("count").cast(pl.Int64))
        named = self.words.with_columns(count=pl.lit(1, pl.Int64))
        both = pl.concat([said.join(vocabulary, on="word"), named.join(vocabulary, on="word")])
        return both.group_by("number", "page").agg(pl.col("count").sum()).sort("number", "page")

    def measure(self, view: View) -> Measures:
        """Return how much of what the log adds to ranking, and to the likelihood of clicks, a release adds."""
        whole, bare = self.with_log, self.without
        if whole.ndcg - bare.ndcg < _LEAST_GAIN:
            return note("ranking is left out: the clicks of the log do not help to rank those that are judged")
        found = bare if view.clicks is None else self.quality(view.clicks)
        value = part_of_gain(found.ndcg, whole=whole.ndcg, none=bare.ndcg)
        about = (
            f"of what the log's clicks add to ranking is there (NDCG@10 {found.ndcg:.3f}; {bare.ndcg:.3f} without a "
            f"log, {whole.ndcg:.3f} with all of it)"
        )
        ranked = kept("ranking_kept", value, about=about, group="search")
        value = part_of_gain(found.likelihood, whole=whole.likelihood, none=bare.likelihood)
        about = "of what the log adds to predicting the clicked page is there (log-likelihood)"
        likely = kept("click_likelihood_kept", value, about=about, group="search")
        notes = ("the release has no clicks, so that ranking learns nothing",) if view.clicks is None else ()
        return Measures(scores=(ranked, likely), notes=notes)


def _draw(judged: pl.DataFrame, *, seed: int) -> pl.DataFrame:
    """Return the clicks to judge, each with how often it is there."""
    summed = judged.group_by("query", "url").agg(pl.col("count").sum()).sort("query", "url")
    n = summed["count"].to_numpy()
    if n.sum() > MOST_JUDGED:
        drawn = generator(seed).multivariate_hypergeometric(n, MOST_JUDGED, method="marginals")
        summed = summed.with_columns(count=pl.Series(drawn)).filter(pl.col("count") > 0)
    return summed


def _rows(row: pl.Series, values: pl.Series, *, n_rows: int) -> Rows[np.int32]:
    return Rows.from_entries(row.to_numpy().astype(np.int64), values.to_numpy().astype(np.int32), n_rows=n_rows)


def _ndcg(query: Int32s | Int64s, place: Int64s, n: Int64s) -> float:
    """Return the mean NDCG at 10 of the queries, each counted as often as it is clicked; gains are clicks."""
    gain = np.where(place <= AT, n / np.log2(1.0 + place), 0.0)
    # The best order has the page that is clicked most first.
    order = np.lexsort((-n, query))
    first = np.r_[True, query[order][1:] != query[order][:-1]] if len(order) else np.zeros(0, np.bool_)
    best_place = np.arange(len(order)) - np.maximum.accumulate(np.where(first, np.arange(len(order)), 0)) + 1
    best = np.where(best_place <= AT, n[order] / np.log2(1.0 + best_place), 0.0)
    reached, possible, weight = (
        np.bincount(q, weights=w) for q, w in ((query, gain), (query[order], best), (query, n))
    )
    return float((weight * reached / np.maximum(possible, 1e-300)).sum() / weight.sum())

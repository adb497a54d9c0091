"""What was clicked: the same result at the same rank for the same need."""

from __future__ import annotations

import numpy as np
import polars as pl

from queryveil.synth.chance import mandelbrot, ranks
from queryveil.synth.needs import N_TOPICS, NAVIGATE
from queryveil.synth.sessions import Rows
from queryveil.synth.shapes import Shape
from queryveil.synth.vocabulary import N_SUBTOPICS, Vocabulary

_ENDINGS = pl.Series([".com", ".org", ".net", ".com"])


def url_table(vocabulary: Vocabulary) -> pl.Series:
    """Give the address of each site."""
    first, beyond = vocabulary.ranges["site"]
    ending = np.where(np.arange(beyond - first) % 2 == 0, 0, np.arange(beyond - first) % 4)
    return ("http://www." + vocabulary.table.slice(first, beyond - first) + _ENDINGS.gather(ending)).rename("url")


def draw_clicks(
    rng: np.random.Generator, *, shape: Shape, vocabulary: Vocabulary, rows: Rows, urls: pl.Series
) -> tuple[pl.Series, pl.Series]:
    """Give rank and URL of each row, null where nothing was clicked."""
    n, n_sites = len(rows.user), len(urls)
    clicked = rng.random(n) < shape.clicked
    navigates = rows.kind == NAVIGATE
    rank = rng.geometric(np.where(navigates, 0.9, 0.4)).clip(max=50)
    # The result depends on need and rank alone: mixing their numbers stands in for a search engine.
    mixed = (
        rows.core.astype(np.uint64) * np.uint64(2_654_435_761) + rank.astype(np.uint64) * np.uint64(40_503_001)
    ) % (np.uint64(2**32))
    topic = rows.subtopic // N_SUBTOPICS
    place = ranks(mandelbrot(max(1, n_sites // N_TOPICS), power=0.7, offset=2.0), mixed / 2.0**32)
    site = np.minimum(place * N_TOPICS + topic, n_sites - 1)
    own = navigates & (rank == 1)
    site[own] = rows.core[own] - vocabulary.start("site")
    shown = pl.Series(clicked)
    choice = pl.DataFrame({"rank": rank, "site": site.astype(np.uint32)}).select(
        pl.when(shown).then(pl.col("rank").cast(pl.Int64)), pl.when(shown).then(pl.col("site"))
    )
    return choice["rank"], urls.gather(choice["site"])

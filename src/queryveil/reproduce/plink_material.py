"""What the plink figures are measured on: profiles of users, and a corpus for them to search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.errors import BadInput
from queryveil.log import QueryLog
from queryveil.methods.plink_profiles import TermProfiles, Weights, profiles_of
from queryveil.profiles import Profiles
from queryveil.rng import generator
from queryveil.synth import synthesize
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility.corpus import Corpus
from queryveil.utility.search_index import SearchIndex

# Paper: section 4.
USERS = 720
TERMS = 150
LOG_USERS = 110_000
"""So many users of a made-up log have 720 among them with 150 terms of WordNet; the paper does not say how it chose."""
BOT_THRESHOLD = 100
FEWEST_USERS = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Material:
    """Profiles, an index to search, and notes on both."""

    profiles: Profiles
    index: SearchIndex
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        # Privacy: the terms stay out of it.
        return f"Material(profiles={self.profiles!r}, index={self.index!r})"


def gather(log: QueryLog | None, *, users: int | None, corpus: Corpus | None, seed: int) -> Material:
    """Take the users with the most terms, cut to the paper's size, from a log or from one made up; index the corpus."""
    index = SearchIndex.of(corpus)
    origin = "the log was given"
    if log is None:
        log = synthesize(like="aol", users=LOG_USERS if users is None else users, seed=seed).log
        origin = "the log is made up, in the shape of AOL's"
    n_users = log.n_users
    everybody = profiles_of(log, Taxonomy.wordnet(), weights=Weights.BINARY, bot_threshold=BOT_THRESHOLD)
    if everybody.n_users < FEWEST_USERS:
        raise BadInput(
            f"{everybody.n_users} users of the log have a term of WordNet, too few for these figures; give a larger log"
        )
    profiles = _longest(everybody, seed=seed)
    searched = "a corpus that was given" if corpus else "WordNet's glosses by topic (theirs: TIPSTER)"
    return Material(
        profiles=profiles,
        index=index,
        notes=(
            f"{origin}: of its {n_users:,} users the {profiles.n_users:,} with the most terms that WordNet knows, at "
            f"most {TERMS} of these drawn at random, {profiles.n_entries / profiles.n_users:.1f} on average "
            f"(theirs: {USERS} and {TERMS}, of AOL's log)",
            _alike(profiles),
            f"the corpus: {searched}, {index.n_documents:,} documents",
        ),
    )


def _longest(everybody: TermProfiles, *, seed: int) -> Profiles:
    rng = generator(seed)
    rows = np.sort(np.argsort(-everybody.sizes, kind="stable")[:USERS])
    drawn = []
    for row in rows:
        mine = everybody.terms[everybody.ptr[row] : everybody.ptr[row + 1]]
        drawn.append(everybody.vocabulary.gather(rng.permutation(mine)[:TERMS]))
    return Profiles.from_frame(
        {"user": everybody.users.gather(rows), "terms": drawn, "weights": [[1.0] * len(terms) for terms in drawn]}
    )


def _alike(profiles: Profiles) -> str:
    """Say how many terms two users share, which decides what groups can be."""
    holders = profiles.frame.explode("terms", "weights").group_by("terms").len()["len"].cast(pl.Float64)
    n_pairs = profiles.n_users * (profiles.n_users - 1) / 2
    shared = float((holders * (holders - 1) / 2).sum()) / n_pairs
    return (
        f"the profiles have {len(holders):,} distinct terms, and two users share {shared:.1f} on average; "
        "the more they share, the better one profile stands in for another"
    )

"""Personalised search with the profiles of groups, measured for a release and the log or profiles it was made from."""

from __future__ import annotations

import numpy as np
import polars as pl

from queryveil.errors import BadInput, MissingExtra
from queryveil.kernels.arrays import Floats
from queryveil.profiles import Profiles
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.text.stop_words import ENGLISH
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility.measures import Measures, note
from queryveil.utility.personalised import personalised_search
from queryveil.utility.sides import Original, bags_of

MOST_USERS = 500
"""Users whose searches are tried, drawn at random if there are more."""
_SEED = 0


def group_search(
    original: Original, *, release: Release, membership: pl.DataFrame | None, taxonomy: Taxonomy | None
) -> Measures:
    """Measure how much of the order of a user's search results the group's profile keeps."""
    if membership is None:
        return note("personalised search is left out: who is in which group is needed: add --membership FILE")
    profiles = _own(original, weights=str(release.manifest.parameters.get("weights")), taxonomy=taxonomy)
    drawn = generator(_SEED).permutation(profiles.n_users)[:MOST_USERS]
    some = profiles.with_frame(profiles.frame[np.sort(drawn)])
    try:
        found = personalised_search(release.groups, profiles=some, membership=membership)
    except (MissingExtra, BadInput) as error:
        return note(f"personalised search is left out: {error}")
    return Measures(scores=(found.score,))


def _own(original: Original, *, weights: str, taxonomy: Taxonomy | None) -> Profiles:
    """Give people's own profiles: as they are, or a log's terms that the taxonomy knows, without stop words."""
    if isinstance(original, Profiles):
        return original
    bags = bags_of(original).frame.rename({"id": "user"}).explode("items", empty_as_null=False)
    counted = bags.group_by("user", "items", maintain_order=True).agg(pl.len().alias("n"))
    words = counted["items"].unique(maintain_order=True)
    is_term = ~words.is_in(list(ENGLISH)).to_numpy()
    if taxonomy is not None and len(words):
        is_term &= taxonomy.find_all(words) >= 0
    counted = counted.filter(pl.col("items").is_in(words.filter(is_term).implode()))
    counted = counted.with_columns(weight=pl.Series(_weights(counted, weights)))
    profiles = counted.group_by("user", maintain_order=True).agg(terms="items", weights="weight")
    return Profiles(frame=profiles)


def _weights(counted: pl.DataFrame, weights: str) -> Floats:
    n = counted["n"].to_numpy().astype(np.float64)
    if weights == "tfidf":
        rarity = counted.select(1 + (pl.col("user").n_unique() / pl.len().over("items")).log())
        return np.asarray(n * rarity.to_series().to_numpy(), np.float64)
    return n if weights == "count" else np.ones(len(n))

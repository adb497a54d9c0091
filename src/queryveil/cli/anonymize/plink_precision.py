"""What personalised search keeps with the profiles of groups, for the manifest of a plink release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from queryveil.errors import BadInput, MissingExtra

if TYPE_CHECKING:
    from pathlib import Path

    from queryveil.data import Profiles, QueryLog
    from queryveil.methods import Grouping, Plink
    from queryveil.release import Release

MOST_USERS = 1000
"""Users whose searches are tried, drawn at random if there are more."""


def with_precision(grouping: Grouping, method: Plink, data: QueryLog | Profiles, *, corpus: Path | None) -> Release:
    """The release with the precision of search in its manifest; if it is strict, also that of groups that are not.

    Without a `corpus` the packaged one is searched, and where that cannot be done a warning says so.
    """
    try:
        measures = _precision(grouping, method, data, corpus=corpus)
    except (MissingExtra, BadInput) as error:
        if corpus is not None:
            raise
        return _with(grouping.release, warning=f"what strictness costs in precision was not measured: {error}")
    warning = None
    if measures["average_precision_at_10"] < measures["average_precision_at_10_without_profile"]:
        warning = "search with these profiles was less precise than without any"
    return _with(grouping.release, measures=measures, warning=warning)


def _precision(
    grouping: Grouping, method: Plink, data: QueryLog | Profiles, *, corpus: Path | None
) -> dict[str, float]:
    from queryveil.rng import generator
    from queryveil.utility.personalised import PersonalisedSearch
    from queryveil.utility.search_index import SearchIndex, read_corpus

    index = SearchIndex.of(read_corpus(corpus))
    everybody = grouping.profiles
    drawn = generator(method.seed).permutation(everybody.n_users)[:MOST_USERS]
    search = PersonalisedSearch(everybody.with_frame(everybody.frame[drawn]), index=index)
    found = search.measure(grouping.release.groups, membership=grouping.membership)
    measures = {
        "average_precision_at_10": found.group_profile,
        "average_precision_at_10_without_profile": found.without_profile,
    }
    if method.strict:
        loose = replace(method, strict=False).group(data)
        measures["average_precision_at_10_if_not_strict"] = search.measure(
            loose.release.groups, membership=loose.membership
        ).group_profile
    return {name: round(value, 4) for name, value in measures.items()}


def _with(release: Release, *, measures: dict[str, float] | None = None, warning: str | None = None) -> Release:
    manifest = release.manifest
    manifest = msgspec.structs.replace(
        manifest,
        measures=manifest.measures | (measures or {}),
        warnings=(*manifest.warnings, *([warning] if warning else [])),
    )
    return replace(release, manifest=manifest)

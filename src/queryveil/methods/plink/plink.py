"""p-linkability of profiles by grouping: Zhu and Xiong."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import ROLES, Bools, Profiles, QueryLog
from queryveil.guarantees import Linkability
from queryveil.methods.bots import caveats
from queryveil.methods.plink._groups import grouped
from queryveil.methods.plink._representatives import Shared, groups_of, shared_terms, similarity_to_group, weights_of
from queryveil.methods.plink._similarity import augmented
from queryveil.methods.plink.profiles import TermProfiles, profiles_of
from queryveil.methods.settings import PlinkSettings, Representative
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail
from queryveil.rng import check_seed, generator
from queryveil.settings import check_settings, parameters_of
from queryveil.text.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Grouping:
    """A release of groups, and what must not leave: who is in which group, and the profiles that were grouped.

    `membership` has the columns user and group.
    """

    release: Release
    membership: pl.DataFrame
    profiles: Profiles

    def __repr__(self) -> str:
        # Privacy: the membership and the profiles are what the release hides.
        return f"Grouping({self.release.groups!r})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plink(PlinkSettings):
    """Put users of similar interests into groups and release what a group is interested in.

    Promise: the average profile is at most the share p of all terms that a group's members bring in (|U|avg / |G| in
    the paper). With `strict`: no released term of a group is held by more than the share p of its members.
    Not promised: without `strict`, that a term which most or all members share cannot be linked to each of them. Either
    way two terms of one meaning (kitten, kittens) count as two.

    Parameters
    ----------
    p: the share that is promised, above 0 and at most 1; a group has at least 1/p members
    a: steps up in the taxonomy when profiles are compared, 0 to 3
    strict: hold p for every single term, and drop those that exceed it
    weights: of the terms of a log: binary, count or tfidf; profiles that are given have their own
    representative: the profile of a group is the centroid or the union of its members' profiles
    taxonomy: what profiles are compared by, and which terms of a log count; None: WordNet's nouns
    bot_threshold: users with more queries in a session are left out; None keeps every user
    seed: repeat a run; not for releases

    Examples
    --------
    >>> people = Profiles.from_dicts({"u1": {"kitten": 1, "riding": 0.8}, "u2": {"pup": 0.6, "equitation": 1}})
    >>> release = Plink(p=0.5).anonymize(people)
    >>> release.groups.frame.select("members", "size", "terms").rows()
    [(2, 4, ['equitation', 'kitten', 'pup', 'riding'])]
    """

    def __post_init__(self) -> None:
        check_settings(self)
        Linkability(p=self.p, strict=self.strict)
        check_seed(self.seed)

    @property
    def promise(self) -> Linkability:
        """What a release will promise."""
        return Linkability(p=self.p, strict=self.strict)

    def anonymize(self, data: QueryLog | Profiles) -> Release:
        """Return a release of groups that keeps the promise."""
        return self.group(data).release

    def group(self, data: QueryLog | Profiles) -> Grouping:
        """Return the release and, for whoever may know, the group of each user."""
        taxonomy = self.taxonomy or Taxonomy.wordnet()
        rng = generator(self.seed)
        profiles = profiles_of(data, taxonomy, weights=self.weights, bot_threshold=self.bot_threshold)
        vectors = augmented(profiles, taxonomy, a=self.a)
        group_of = grouped(profiles, vectors, p=self.p, strict=self.strict, rng=rng)
        group_of = rng.permutation(int(group_of.max(initial=-1)) + 1).astype(np.int32)[group_of]

        shared = shared_terms(profiles, group_of)
        exceeds = shared.exceeds(self.p)
        # Differs: a term is not generalised before it is dropped. Whoever has a term has what lies above it, so that
        # a hypernym is held by no fewer members and cannot pass where the term did not.
        # Privacy: a term leaves for all of its holders or for none; hiding some would make the shares untrue.
        kept = ~exceeds if self.strict else np.ones_like(exceeds)
        weights = weights_of(profiles, shared, self.representative)
        groups = groups_of(profiles, shared, weights, kept, with_holders=self.strict)
        measures = _measures(profiles, shared, kept, strict=self.strict)
        measures["mean_similarity_to_group"] = similarity_to_group(profiles, group_of, shared, weights, kept)
        manifest = Manifest(
            method="plink",
            promise=self.promise,
            parameters=parameters_of(self, taxonomy=taxonomy.source)
            | ({"weights": "given", "bot_threshold": None} if isinstance(data, Profiles) else {}),
            counts=Counts(
                n_rows_before=data.n_users if isinstance(data, Profiles) else data.n_rows,
                n_rows_after=groups.n_rows,
                n_users_before=data.n_users,
                n_users_after=groups.n_members,
            ),
            removed=profiles.removed | _dropped(shared, kept),
            measures={name: round(value, 6) for name, value in measures.items()},
            columns=_column_report([] if isinstance(data, Profiles) else data.columns),
            warnings=tuple(self._warnings(data, profiles, shared, exceeds)),
        )
        membership = pl.DataFrame({"user": profiles.users, "group": group_of.astype(np.int64) + 1})
        release = Release(data=groups, manifest=manifest)
        return Grouping(release=release, membership=membership, profiles=profiles.as_profiles())

    def _warnings(self, data: QueryLog | Profiles, profiles: TermProfiles, shared: Shared, exceeds: Bools) -> list[str]:
        found = []
        n_open = len(np.unique(shared.group[exceeds]))
        if n_open and not self.strict:
            in_groups = "in 1 group" if n_open == 1 else f"in {n_open:,} groups"
            found.append(f"{in_groups} a term is shared by more than p of the members; --strict drops such terms")
        is_binary = bool((profiles.weights == 1).all())
        if is_binary and profiles.n_users and self.representative is Representative.CENTROID and not self.strict:
            found.append("the weight of a term is the share of its group's members that have it")
        is_log_without_times = isinstance(data, QueryLog) and "time" not in data.columns
        return found + caveats(
            data.reading,
            seeded=self.seed is not None,
            shuffled="groups",
            cannot_tell_bots=self.bot_threshold is not None and is_log_without_times,
        )


def _measures(profiles: TermProfiles, shared: Shared, kept: Bools, *, strict: bool) -> dict[str, float]:
    n_groups = len(shared.members)
    size = np.bincount(shared.group, weights=shared.holders, minlength=n_groups)
    linkability = len(profiles.terms) / max(1, profiles.n_users) / size
    share = shared.share
    out = {
        "groups": float(n_groups),
        "average_group_size": profiles.n_users / max(1, n_groups),
        "largest_share": float(share[kept].max(initial=0.0)),
        "average_linkability": float(linkability.mean()) if n_groups else 0.0,
        "largest_linkability": float(linkability.max(initial=0.0)),
    }
    if strict:
        out["largest_share_before_dropping"] = float(share.max(initial=0.0))
    return out


def _dropped(shared: Shared, kept: Bools) -> dict[str, int]:
    """Count the terms that groups do not release, each once per group, and those of their members."""
    return {
        "terms_dropped": int((~kept).sum()),
        "term_occurrences_dropped": int(shared.holders[~kept].sum()),
    }


def _column_report(columns: list[str]) -> ColumnReport:
    return ColumnReport(
        ids=Ids.FRESH,
        time=TimeDetail.DROP,
        dropped=tuple(name for name in columns if name in ROLES and name not in ("user", "query")),
        n_others_dropped=sum(name not in ROLES for name in columns),
    )

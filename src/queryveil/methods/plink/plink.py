"""p-linkability of profiles by grouping: Zhu and Xiong; a group releases the centroid or union of its members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import GROUPS_SCHEMA, Bools, Floats, Groups, Int32s, Int64s, Profiles, QueryLog
from queryveil.data.rows import Rows
from queryveil.errors import BadParameter
from queryveil.guarantees import Linkability
from queryveil.methods.bots import caveats, no_events, nothing_kept
from queryveil.methods.plink._groups import grouped, may_share
from queryveil.methods.plink.profiles import COMPANIONS, TermProfiles, augmented, profiles_of
from queryveil.methods.settings import PlinkSettings, Representative, Weights
from queryveil.release import Counts, Manifest, Release
from queryveil.rng import check_seed, generator
from queryveil.settings import check_settings, parameters_of
from queryveil.text.taxonomy import Taxonomy

_DIGITS = 6
"""Released weights are rounded to so many."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Grouping:
    """A release of groups, and what must not leave: the `membership` (user, group) and the profiles, as grouped."""

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
    the paper). With `strict`: no released term of a group is held by more than the share p of its members, and its
    weight is that share.
    Not promised: without `strict`, that a term which most or all members share cannot be linked to each of them. Either
    way two terms of one meaning (kitten, kittens) count as two.

    - p: the share that is promised, above 0 and at most 1; a group has at least 1/p members
    - a: steps up in the taxonomy when profiles are compared, 0 to 3
    - strict: hold p for every single term, and drop those that exceed it
    - weights: of the terms of a log: binary, count or tfidf; profiles that are given have their own; binary if strict
    - representative: the profile of a group is the centroid or the union of its members' profiles; centroid if strict
    - aversion: penalty on similarity to a strict group for terms that have reached the share p; higher drops fewer
      terms but makes a member's terms easier to guess
    - taxonomy: what profiles are compared by, and which terms of a log count; None: WordNet's nouns
    - bot_threshold: users with more queries in a session are left out; None keeps every user
    - seed: repeat a run; not for releases

    >>> people = Profiles.from_dicts({"u1": {"kitten": 1, "riding": 0.8}, "u2": {"pup": 0.6, "equitation": 1}})
    >>> release = Plink(p=0.5).anonymize(people)
    >>> release.groups.frame.select("members", "size", "terms").rows()
    [(2, 4, ['equitation', 'kitten', 'pup', 'riding'])]
    """

    def __post_init__(self) -> None:
        check_settings(self)
        Linkability(p=self.p, strict=self.strict)
        # Privacy: terms with one weight may be one person's, so that whoever knows one of them knows the others.
        for name, only in (("weights", Weights.BINARY), ("representative", Representative.CENTROID)):
            if self.strict and getattr(self, name) is not only:
                allowed = f"{only} if strict, where the only weight is the share of members who have a term"
                raise BadParameter(name, getattr(self, name), allowed=allowed)
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
        vectors = augmented(profiles, taxonomy, a=self.a, n_companions=COMPANIONS if self.strict else 0)
        group_of = grouped(profiles, vectors, p=self.p, strict=self.strict, aversion=self.aversion, rng=rng)
        group_of = rng.permutation(int(group_of.max(initial=-1)) + 1).astype(np.int32)[group_of]

        shared = shared_terms(profiles, group_of)
        exceeds = shared.exceeds(self.p)
        # Differs: a term is not generalised before it is dropped. Whoever has a term has what lies above it, so that
        # a hypernym is held by no fewer members and cannot pass where the term did not.
        # Privacy: a term leaves for all of its holders or for none; hiding some would make the shares untrue.
        kept = ~exceeds if self.strict else np.ones_like(exceeds)
        weights = rounded(shared.share) if self.strict else weights_of(profiles, shared, self.representative)
        groups = groups_of(profiles, shared, weights, kept, with_holders=self.strict)
        measures = _measures(profiles, shared, kept, strict=self.strict)
        measures["mean_similarity_to_group"] = similarity_to_group(profiles, group_of, shared, weights, kept)
        manifest = Manifest(
            method="plink",
            promise=self.promise,
            parameters=parameters_of(self, taxonomy=taxonomy.source) | _parameters_of_data(data),
            counts=Counts(
                n_rows_before=data.n_users if isinstance(data, Profiles) else data.n_rows,
                n_rows_after=groups.n_rows,
                n_users_before=data.n_users,
                n_users_after=groups.n_members,
            ),
            # Terms that groups do not release, each once per group, and those of their members.
            removed=profiles.removed
            | {"terms_dropped": int((~kept).sum()), "term_occurrences_dropped": int(shared.holders[~kept].sum())},
            measures={name: round(value, 6) for name, value in measures.items()},
            columns=nothing_kept(data),
            events=no_events(data),
            warnings=tuple(self._warnings(data, profiles, shared, exceeds)),
        )
        membership = pl.DataFrame({"user": profiles.users, "group": group_of.astype(np.int64) + 1})
        release = Release(data=groups, manifest=manifest)
        return Grouping(release=release, membership=membership, profiles=profiles.as_profiles())

    def _warnings(self, data: QueryLog | Profiles, profiles: TermProfiles, shared: Shared, exceeds: Bools) -> list[str]:
        is_binary = bool((profiles.weights == 1).all())
        found = self.notes(n_open=len(np.unique(shared.group[exceeds])), is_binary=is_binary and profiles.n_users > 0)
        threshold = self.bot_threshold if isinstance(data, QueryLog) else None
        return found + caveats(
            data.reading, seed=self.seed, columns=data.columns, shuffled="groups", bot_threshold=threshold
        )

    def notes(self, *, n_open: int, is_binary: bool) -> list[str]:
        """Return the warnings if `n_open` groups have a term of more than p of their members, or weights are binary."""
        found = (
            ["strict limits the share of each term, not which terms of a group belong together"] if self.strict else []
        )
        if n_open and not self.strict:
            in_groups = "in 1 group" if n_open == 1 else f"in {n_open:,} groups"
            found.append(f"{in_groups} a term is shared by more than p of the members; --strict drops such terms")
        if is_binary and self.representative is Representative.CENTROID and not self.strict:
            found.append("the weight of a term is the share of its group's members that have it")
        return found


def _parameters_of_data(data: QueryLog | Profiles) -> dict[str, str | int | float | bool | None]:
    """Return what the data decides instead of a setting."""
    if isinstance(data, Profiles):
        return {"weights": "given", "bot_threshold": None}
    # Items keep their upper case; terms of queries have none.
    return {"items": True} if data.terms_are_items else {}


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Shared:
    """The terms of every group, by group and text, and how many members have each.

    Entry e of the profiles is of the term `place[e]` here; that is of group `group[t]` and reads `vocabulary[term[t]]`.
    """

    place: Int64s
    group: Int64s
    term: Int64s
    holders: Int64s
    members: Int64s

    @property
    def share(self) -> Floats:
        """The share of its group's members that have each term."""
        return np.asarray(self.holders / self.members[self.group], np.float64)

    def exceeds(self, p: float) -> Bools:
        """Tell which terms more than the share p of the members have."""
        limits = {m: may_share(m, p=p) for m in np.unique(self.members).tolist()}
        of_group = np.array([limits[m] for m in self.members.tolist()], np.int64)
        return np.asarray(self.holders > of_group[self.group])


def shared_terms(profiles: TermProfiles, group_of: Int32s) -> Shared:
    """Collect the terms of the members of each group."""
    by_text = profiles.vocabulary.arg_sort().to_numpy().astype(np.int64)
    n_terms = max(1, len(by_text))
    keys = group_of[profiles.entry_user].astype(np.int64) * n_terms + np.argsort(by_text)[profiles.terms]
    found, place, holders = np.unique(keys, return_inverse=True, return_counts=True)
    return Shared(
        place=place.astype(np.int64),
        group=found // n_terms,
        term=by_text[found % n_terms],
        holders=holders.astype(np.int64),
        members=np.bincount(group_of).astype(np.int64),
    )


def weights_of(profiles: TermProfiles, shared: Shared, representative: Representative) -> Floats:
    """Return the weight of each term in its group: the mean over all members, or the largest."""
    n_terms = len(shared.group)
    if representative is Representative.UNION:
        out = _largest(profiles.weights, shared.place, n_terms)
    else:
        # Divided first: a sum of large weights may be more than a number holds.
        parts = profiles.weights / shared.members[shared.group[shared.place]]
        out = np.bincount(shared.place, weights=parts, minlength=n_terms).astype(np.float64)
    return rounded(out)


def rounded(weights: Floats) -> Floats:
    """Return weights as they are released; one that is rounded away would say that nobody has the term."""
    return np.asarray(np.maximum(pl.Series(weights).round(_DIGITS).to_numpy(), 10.0**-_DIGITS), np.float64)


def groups_of(profiles: TermProfiles, shared: Shared, weights: Floats, kept: Bools, *, with_holders: bool) -> Groups:
    """Write the groups in the order of their numbers, the kept terms of each in the order of their texts."""
    n_groups = len(shared.members)
    terms = Rows.from_entries(shared.group[kept], shared.term[kept], n_rows=n_groups)
    sizes = np.bincount(shared.group[kept], weights=shared.holders[kept], minlength=n_groups).astype(np.int64)
    frame = pl.DataFrame(
        {
            "group": np.arange(1, n_groups + 1),
            "members": shared.members,
            "size": sizes,
            "terms": terms.to_series(profiles.vocabulary.gather(terms.values)),
            "weights": terms.to_series(weights[kept]),
            "holders": terms.to_series(shared.holders[kept]) if with_holders else [None] * n_groups,
        },
        schema=GROUPS_SCHEMA,
    )
    return Groups(frame=frame)


def similarity_to_group(
    profiles: TermProfiles, group_of: Int32s, shared: Shared, weights: Floats, kept: Bools
) -> float:
    """Return the mean cosine of a member's profile with what its group releases; 0 where that is nothing."""
    if not profiles.n_users:
        return 0.0
    owner = profiles.entry_user
    # Only ratios count, and large weights have squares that no number holds.
    released = np.where(kept, weights, 0.0) / _largest(weights, shared.group, len(shared.members))[shared.group]
    mine = profiles.weights / _largest(profiles.weights, owner, profiles.n_users)[owner]
    products = np.bincount(owner, weights=mine * released[shared.place], minlength=profiles.n_users)
    length = np.sqrt(np.bincount(owner, weights=mine**2, minlength=profiles.n_users))
    of_group = np.sqrt(np.bincount(shared.group, weights=released**2, minlength=len(shared.members)))[group_of]
    return float(np.mean(products / (length * np.where(of_group > 0, of_group, 1.0))))


def _largest(values: Floats, row: Int32s | Int64s, n_rows: int) -> Floats:
    out = np.zeros(n_rows)
    np.maximum.at(out, row, values)
    return out

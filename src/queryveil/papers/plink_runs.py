"""Group the same profiles with several settings, and let every grouping search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import polars as pl

from queryveil.data import GROUPS_SCHEMA, Groups, Profiles, QueryLog
from queryveil.errors import BadInput
from queryveil.methods.plink import Plink
from queryveil.methods.plink.profiles import TermProfiles, profiles_of
from queryveil.methods.settings import Weights
from queryveil.papers.table import OURS, THEIRS, Cell
from queryveil.progress import step, watch
from queryveil.rng import generator
from queryveil.synthesis import synthesize
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility.personalised import N_RELEVANT, N_RESULTS, PersonalisedSearch
from queryveil.utility.search_index import Corpus, SearchIndex

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
    rows = np.sort(np.argsort(-everybody.user_terms.lengths, kind="stable")[:USERS])
    drawn = []
    for row in rows:
        mine = everybody.user_terms.row(row)
        drawn.append(everybody.vocabulary.gather(rng.permutation(mine)[:TERMS]))
    return Profiles.from_frame(
        {"user": everybody.users.gather(rows), "terms": drawn, "weights": [[1.0] * len(terms) for terms in drawn]}
    )


def _alike(profiles: Profiles) -> str:
    """Return how many terms two users share, which decides what groups can be."""
    holders = profiles.frame.explode("terms", "weights").group_by("terms").len()["len"].cast(pl.Float64)
    n_pairs = profiles.n_users * (profiles.n_users - 1) / 2
    shared = float((holders * (holders - 1) / 2).sum()) / n_pairs
    return (
        f"the profiles have {len(holders):,} distinct terms, and two users share {shared:.1f} on average; "
        "the more they share, the better one profile stands in for another"
    )


def by_chance(profiles: Profiles, *, membership: pl.DataFrame, rng: np.random.Generator) -> tuple[Groups, pl.DataFrame]:
    """Deal users out to groups of the same sizes at random; gives the groups' centroids and who is in which.

    >>> people = Profiles.from_dicts({"u1": {"pear": 1.0}, "u2": {"pear": 1.0, "plum": 1.0}})
    >>> together = pl.DataFrame({"user": ["u1", "u2"], "group": [1, 1]})
    >>> groups, _ = by_chance(people, membership=together, rng=np.random.default_rng(0))
    >>> groups.frame.select("terms", "weights").rows()
    [(['pear', 'plum'], [1.0, 0.5])]
    """
    dealt = membership.with_columns(user=membership["user"].gather(rng.permutation(membership.height)))
    entries = profiles.frame.join(dealt, on="user").explode("terms", "weights", empty_as_null=False)
    members = dealt.group_by("group").agg(members=pl.len().cast(pl.Int64))
    by_term = (
        entries.group_by("group", "terms")
        .agg(pl.col("weights").sum(), holders=pl.len().cast(pl.Int64))
        .join(members, on="group")
        .with_columns(weights=pl.col("weights") / pl.col("members"))
        .sort("group", "terms")
    )
    frame = by_term.group_by("group", maintain_order=True).agg(
        pl.col("members").first(), pl.col("holders").sum().alias("size"), "terms", "weights"
    )
    return Groups(
        frame=frame.with_columns(holders=pl.lit(None, GROUPS_SCHEMA["holders"])).select(list(GROUPS_SCHEMA))
    ), dealt


P, A = 0.4, 1
PS = (0.1, 0.2, 0.3, 0.4)
STEPS = (0, 1, 2, 3)
THEIR_PRECISION = 0.7886

N_GROUPINGS = 3
"""The first seed of a grouping is drawn at random; every figure is the mean over so many draws."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The settings of a grouping; `strict` drops the terms that more than p of a group's members have."""

    p: float = P
    a: int = A
    strict: bool = False

    @property
    def promise(self) -> str:
        """What the rows of tables call it."""
        return "strict" if self.strict else "as in the paper"


PROMISES = (False, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to, as the mean over its groupings; the largest figures are the largest of all of them.

    `by_chance` is the precision of groups as large whose members are drawn at random, nothing dropped. `spread` is how
    far the precision of its groupings lies apart.
    """

    without_profile: float
    by_chance: float
    precision: float
    spread: float
    group_size: float
    average_linkability: float
    largest_linkability: float
    largest_share: float
    dropped: float
    n_queries: int


class Runs:
    """The runs on one material, each made once."""

    def __init__(self, material: Material, *, seed: int) -> None:
        self.material, self.seed = material, seed
        self._search = PersonalisedSearch(material.profiles, index=material.index, seed=seed)
        self._found: dict[Run, Outcome] = {}

    def make(self, runs: Iterable[Run]) -> None:
        """Make those of the runs that were not made yet."""
        missing = [run for run in dict.fromkeys(runs) if run not in self._found]
        for i, run in enumerate(missing):
            step(f"p={run.p}, a={run.a}, {run.promise}", i / len(missing))
            # The steps inside a run would hide which run it is.
            with watch(lambda _name, _share: None):
                self._found[run] = self._outcome(run)

    def outcome(self, run: Run) -> Outcome:
        """Return the measures of a run."""
        self.make([run])
        return self._found[run]

    @property
    def notes(self) -> tuple[str, ...]:
        """What holds for all figures of these runs."""
        return (
            *self.material.notes,
            f"{self._search.n_queries:,} queries of {self._search.n_users:,} users, of their own terms, as many words "
            f"as it takes to find {N_RESULTS} documents; the first {N_RELEVANT} by the user's own profile are relevant",
            f"every figure is the mean over {N_GROUPINGS} groupings, which begin with different users",
        )

    def _outcome(self, run: Run) -> Outcome:
        found = [self._grouping(run, seed=self.seed + i) for i in range(N_GROUPINGS)]
        precisions = [outcome.precision for outcome in found]
        return Outcome(
            without_profile=found[0].without_profile,
            by_chance=fmean(outcome.by_chance for outcome in found),
            precision=fmean(precisions),
            spread=max(precisions) - min(precisions),
            group_size=fmean(outcome.group_size for outcome in found),
            average_linkability=fmean(outcome.average_linkability for outcome in found),
            largest_linkability=max(outcome.largest_linkability for outcome in found),
            largest_share=max(outcome.largest_share for outcome in found),
            dropped=fmean(outcome.dropped for outcome in found),
            n_queries=found[0].n_queries,
        )

    def _grouping(self, run: Run, *, seed: int) -> Outcome:
        profiles = self.material.profiles
        grouping = Plink(p=run.p, a=run.a, strict=run.strict, seed=seed).group(profiles)
        found = self._search.measure(grouping.release.groups, membership=grouping.membership)
        dealt, membership = by_chance(profiles, membership=grouping.membership, rng=generator(seed))
        manifest = grouping.release.manifest
        return Outcome(
            without_profile=found.without_profile,
            by_chance=self._search.measure(dealt, membership=membership).group_profile,
            precision=found.group_profile,
            spread=0.0,
            group_size=manifest.measures["average_group_size"],
            average_linkability=manifest.measures["average_linkability"],
            largest_linkability=manifest.measures["largest_linkability"],
            largest_share=manifest.measures["largest_share"],
            dropped=manifest.removed["term_occurrences_dropped"] / max(1, profiles.n_entries),
            n_queries=found.n_queries,
        )


def curve(runs: Runs, settings: Iterable[Run], measure: Callable[[Outcome], float]) -> list[float]:
    """Measure runs one after the other."""
    wanted = list(settings)
    runs.make(wanted)
    return [measure(runs.outcome(run)) for run in wanted]


def ours_row(name: str, figures: Iterable[float], *, digits: int = 4) -> tuple[Cell, ...]:
    """Return a row of ours."""
    return (name, OURS, *(round(figure, digits) for figure in figures))


def theirs_row(name: str, *, n: int) -> tuple[Cell, ...]:
    """Return a row of theirs: the figures are only drawn in the paper."""
    return (name, THEIRS, *(None,) * n)


def spread_note(runs: Runs, settings: Iterable[Run]) -> str:
    """Return how far groupings with the same settings lie apart; smaller differences mean nothing."""
    widest = max(runs.outcome(run).spread for run in settings)
    return f"groupings of the same settings lie up to {widest:.4f} apart in precision"

"""Zhu and Xiong: search with the profile of a group of users (figures 2 to 6)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

import numpy as np
import polars as pl

from queryveil.data import GROUPS_SCHEMA, Groups, Profiles, QueryLog
from queryveil.errors import BadInput
from queryveil.methods.plink import Plink
from queryveil.methods.plink.profiles import TermProfiles, profiles_of
from queryveil.methods.settings import Weights
from queryveil.papers import driver
from queryveil.papers.driver import DRAWN_NOTE, Cells, Content, at_each, beside, claim
from queryveil.rng import generator
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility.personalised import N_RELEVANT, N_RESULTS, PersonalisedSearch
from queryveil.utility.search_index import Corpus, SearchIndex

# Paper: section 4.
USERS, TERMS = 720, 150
LOG_USERS = 110_000
"""So many users of a made-up log have 720 among them with 150 terms of WordNet; the paper does not say how it chose."""
FEWEST_USERS = 20
P, A = 0.4, 1
PS = (0.1, 0.2, 0.3, 0.4)
AT_PS = tuple(f"p={p}" for p in PS)
STEPS = (0, 1, 2, 3)
PAPER, STRICT = "as in the paper", "strict"
THEIR_PRECISION = 0.7886
N_GROUPINGS = 3  # the first seed of a grouping is drawn at random; every figure is the mean over so many draws
# Our limits for what the paper says without a figure.
SIGNIFICANT, CLOSE = 1.1, 0.75


def gather(log: QueryLog | None, *, users: int | None, corpus: Corpus | None, seed: int) -> "Runs":
    """Take the users with the most terms, cut to the paper's size, of a log or of one made up; index the corpus."""
    index = SearchIndex.of(corpus)
    log, origin = driver.given_or_made_up(log, like="aol", users=LOG_USERS if users is None else users, seed=seed)
    n_users = log.n_users
    everybody = profiles_of(log, Taxonomy.wordnet(), weights=Weights.BINARY, bot_threshold=driver.BOT_THRESHOLD)
    if everybody.n_users < FEWEST_USERS:
        few = f"{everybody.n_users} users of the log have a term of WordNet, too few for these figures"
        raise BadInput(f"{few}; give a larger log")
    profiles = _longest(everybody, seed=seed)
    searched = "a corpus that was given" if corpus else "WordNet's glosses by topic (theirs: TIPSTER)"
    # How many terms two users share decides what groups can be.
    holders = profiles.frame.explode("terms", "weights").group_by("terms").len()["len"].cast(pl.Float64)
    shared = float((holders * (holders - 1) / 2).sum()) / (profiles.n_users * (profiles.n_users - 1) / 2)
    search = PersonalisedSearch(profiles, index=index, seed=seed)
    return Runs(
        seed=seed,
        profiles=profiles,
        search=search,
        notes=(
            f"{origin}: of its {n_users:,} users the {profiles.n_users:,} with the most terms that WordNet knows, at "
            f"most {TERMS} of these drawn at random, {profiles.n_entries / profiles.n_users:.1f} on average "
            f"(theirs: {USERS} and {TERMS}, of AOL's log)",
            f"the profiles have {len(holders):,} distinct terms, and two users share {shared:.1f} on average; "
            "the more they share, the better one profile stands in for another",
            f"the corpus: {searched}, {index.n_documents:,} documents",
            f"{search.n_queries:,} queries of {search.n_users:,} users, of their own terms, as many words "
            f"as it takes to find {N_RESULTS} documents; the first {N_RELEVANT} by the user's own profile are relevant",
            f"every figure is the mean over {N_GROUPINGS} groupings, which begin with different users",
        ),
    )


def _longest(everybody: TermProfiles, *, seed: int) -> Profiles:
    rng = generator(seed)
    rows = np.sort(np.argsort(-everybody.user_terms.lengths, kind="stable")[:USERS])
    drawn = [everybody.vocabulary.gather(rng.permutation(everybody.user_terms.row(row))[:TERMS]) for row in rows]
    return Profiles.from_frame(
        {"user": everybody.users.gather(rows), "terms": drawn, "weights": [[1.0] * len(terms) for terms in drawn]}
    )


def by_chance(profiles: Profiles, *, membership: pl.DataFrame, rng: np.random.Generator) -> tuple[Groups, pl.DataFrame]:
    """Deal users out to groups of the same sizes at random; return the groups' centroids and who is in which."""
    dealt = membership.with_columns(user=membership["user"].gather(rng.permutation(membership.height)))
    sized = dealt.with_columns(members=pl.len().over("group").cast(pl.Int64))
    entries = profiles.frame.join(sized, on="user").explode("terms", "weights", empty_as_null=False)
    by_term = entries.group_by("group", "members", "terms").agg(pl.col("weights").sum(), size=pl.len().cast(pl.Int64))
    by_term = by_term.with_columns(pl.col("weights") / pl.col("members")).sort("group", "terms")
    frame = by_term.group_by("group", "members", maintain_order=True).agg(pl.col("size").sum(), "terms", "weights")
    frame = frame.with_columns(holders=pl.lit(None, GROUPS_SCHEMA["holders"])).select(list(GROUPS_SCHEMA))
    return Groups(frame=frame), dealt


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The settings of a grouping; `strict` drops the terms that more than p of a group's members have."""

    p: float = P
    a: int = A
    strict: bool = False

    def __str__(self) -> str:
        return f"p={self.p}, a={self.a}, {STRICT if self.strict else PAPER}"


Figures = dict[str, float]
"""What a run came to, as the mean over its groupings; the largest figures are the largest of all of them.

"by_chance" is the precision of groups as large whose members are drawn at random, nothing dropped. "spread" is how far
the precision of its groupings lies apart.
"""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Runs(driver.Runs[Run, Figures]):
    """What each grouping of the profiles came to."""

    profiles: Profiles
    search: PersonalisedSearch

    def with_strict(self, settings: Iterable[Run]) -> dict[str, list[Figures]]:
        """Return what each setting came to, as in the paper and with the strict promise."""
        wanted = list(settings)
        return self.make_rows({PAPER: wanted, STRICT: [replace(run, strict=True) for run in wanted]})

    def _run(self, setting: Run) -> Figures:
        found = [self._grouping(setting, seed=self.seed + i) for i in range(N_GROUPINGS)]
        figures = {name: [each[name] for each in found] for name in found[0]}
        joined = {name: max(each) if name.startswith("largest") else fmean(each) for name, each in figures.items()}
        return joined | {"spread": max(figures["precision"]) - min(figures["precision"])}

    def _grouping(self, run: Run, *, seed: int) -> Figures:
        grouping = Plink(p=run.p, a=run.a, strict=run.strict, seed=seed).group(self.profiles)
        found = self.search.measure(grouping.release.groups, membership=grouping.membership)
        dealt, membership = by_chance(self.profiles, membership=grouping.membership, rng=generator(seed))
        manifest = grouping.release.manifest
        measured = ("average_group_size", "average_linkability", "largest_linkability", "largest_share")
        return {name: manifest.measures[name] for name in measured} | {
            "without_profile": found.without_profile,
            "by_chance": self.search.measure(dealt, membership=membership).group_profile,
            "precision": found.group_profile,
            "dropped": manifest.removed["term_occurrences_dropped"] / max(1, self.profiles.n_entries),
        }


@driver.table
def fig2(runs: Runs) -> Content:
    """Zhu and Xiong, figure 2: average precision at 10, p=0.4, a=1."""
    found = runs.with_strict([Run()])
    (paper,), (strict,) = found.values()
    precision, without = paper["precision"], paper["without_profile"]
    ours = {
        "no profile": [without],
        "a random group's profile": [paper["by_chance"]],
        "the group's profile": [precision],
        "the group's profile, strict": [strict["precision"]],
        "the user's own profile": [1.0],
    }
    theirs: dict[str, Cells] = {
        "no profile": (None,),
        "the group's profile": (THEIR_PRECISION,),
        "the user's own profile": (1.0,),
    }
    return Content(
        columns=("ranked by", "whose", "average precision at 10"),
        rows=beside(ours, theirs, digits=4),
        notes=(
            DRAWN_NOTE + "; 0.7886 is the only figure there",
            claim("group profiles improve significantly on search without one", holds=precision > SIGNIFICANT * without)
            + f"{precision / without:.2f} times, {SIGNIFICANT} is our limit",
            "a random group is as large and has the user in it, with others drawn at random: what the group is better "
            "by is what similarity is worth",
            _cost_of_strict(runs, Run()),
            _spread(found),
        ),
    )


def _cost_of_strict(runs: Runs, setting: Run) -> str:
    """Return a note on what the stricter promise buys and costs."""
    (paper,), (strict,) = runs.with_strict([setting]).values()
    return (
        f"at p={setting.p} a term of a group is held by up to {100 * paper['largest_share']:.0f} % of its members as "
        f"in the paper and {100 * strict['largest_share']:.0f} % with strict, which drops "
        f"{100 * strict['dropped']:.1f} % of the terms of users and changes the precision by "
        f"{strict['precision'] - paper['precision']:+.4f}"
    )


def _spread(found: Mapping[str, Iterable[Figures]]) -> str:
    """Return a note on how far groupings with the same settings lie apart; smaller differences mean nothing."""
    widest = max(each["spread"] for row in found.values() for each in row)
    return f"groupings of the same settings lie up to {widest:.4f} apart in precision"


def _curves(found: Mapping[str, Iterable[Figures]], figure: str) -> dict[str, list[float]]:
    """Return one figure at each setting, as in the paper and with strict."""
    return {promise: [each[figure] for each in row] for promise, row in found.items()}


def _content(
    at: Sequence[str], ours: Mapping[str, list[float]], *notes: str, head: str = "promise", digits: int = 4
) -> Content:
    """Show ours, the first row of it below theirs, which is only drawn."""
    drawn = {next(iter(ours)): (None,) * len(at)}
    return Content((head, "whose", *at), beside(ours, drawn, digits=digits), notes)


@driver.table
def fig3(runs: Runs) -> Content:
    """Zhu and Xiong, figure 3: average precision at 10 by augmentation level, p=0.4."""
    found = runs.with_strict(Run(a=a) for a in STEPS)
    ours, names = _curves(found, "precision"), [f"a={a}" for a in STEPS]
    paper = ours[PAPER]
    rises = paper[0] < paper[-1] and all(a <= b for a, b in pairwise(paper))
    return _content(
        names,
        ours,
        DRAWN_NOTE + f"; nor does it say at which p, {P} is our guess",
        claim("the higher a, the better", holds=rises) + at_each(names, paper),
        _cost_of_strict(runs, Run()),
        _spread(found),
    )


@driver.table
def fig4(runs: Runs) -> Content:
    """Zhu and Xiong, figure 4: average precision at 10 by privacy level, a=1."""
    found = runs.with_strict(Run(p=p) for p in PS)
    ours = _curves(found, "precision")
    others = {
        "random groups": [each["by_chance"] for each in found[PAPER]],
        "no profile": [runs.found(Run())["without_profile"]] * len(PS),
    }
    return _content(
        AT_PS,
        ours | others,
        DRAWN_NOTE,
        claim("the lower p, the lower the precision", holds=all(a < b for a, b in pairwise(ours[PAPER])))
        + at_each(AT_PS, ours[PAPER]),
        *(_cost_of_strict(runs, Run(p=p)) for p in PS),
        _spread(found),
    )


@driver.table
def fig5(runs: Runs) -> Content:
    """Zhu and Xiong, figure 5: average number of users in a group, a=1."""
    ours = _curves(runs.with_strict(Run(p=p) for p in PS), "average_group_size")
    return _content(
        AT_PS,
        ours,
        DRAWN_NOTE,
        claim("groups get smaller as p grows", holds=all(a > b for a, b in pairwise(ours[PAPER])))
        + at_each(AT_PS, ours[PAPER], digits=2),
        "where all profiles have the same size, a group needs 1/p users, rounded up: "
        + at_each(AT_PS, (-(-1 // p) for p in PS), digits=0),
        digits=2,
    )


@driver.table
def fig6(runs: Runs) -> Content:
    """Zhu and Xiong, figure 6: actual linkability against p, a=1."""
    found = runs.with_strict(Run(p=p) for p in PS)
    shares = _curves(found, "largest_share")
    average, largest = (_curves(found, name)[PAPER] for name in ("average_linkability", "largest_linkability"))
    close = all(CLOSE * p <= round(figure, 6) <= p for p, figure in zip(PS, average, strict=True))
    ours = {
        "average |U|avg / |G|": average,
        "largest |U|avg / |G|": largest,
        "largest share of a term": shares[PAPER],
        "largest share of a term, strict": shares[STRICT],
    }
    return _content(
        AT_PS,
        ours,
        DRAWN_NOTE,
        claim("the actual linkability is close to p but below it", holds=close)
        + f"{at_each(AT_PS, average)}; {CLOSE} p is our limit, and p itself counts as below",
        "|U|avg / |G| takes the terms of a group as if each were one member's: a term that all members share links "
        "to each of them for sure, which the largest share shows",
        head="linkability",
    )

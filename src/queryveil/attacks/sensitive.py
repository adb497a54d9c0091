"""Attack on what people would rather keep to themselves: does a person have a query of a sensitive category?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from queryveil.attacks import _likelihood, _scoring
from queryveil.attacks._learning import learned_scores
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, SeededAttacker, Seeker, Surest
from queryveil.data import Bools, Floats, Groups, Int8s, Int32s, Int64s, QueryLog
from queryveil.data.rows import Rows
from queryveil.errors import BadParameter
from queryveil.pairing import Pair
from queryveil.rng import generator
from queryveil.settings import setting
from queryveil.text.classifier import CATEGORIES, Classifier
from queryveil.text.histories import Histories, collect
from queryveil.text.tokens import Tokens

SENSITIVE = ("Health", "Society")
"""Of the categories that are known here: illness and medicine; religion, politics, sexuality, law and relationships."""
_PRIOR = 10.0
"""As if so many more people had each category, with each term as often as anybody: of rare terms little is known."""
_MOST_PEOPLE = 4000
"""The attacker learns from half of so many people, or of the targets if these are more."""
_N = len(CATEGORIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitive(Seeker):
    """Know some terms of a person, none of them of a sensitive query, and guess at a sensitive category.

    The guess is whether the person asked a query of the category. By the known terms every candidate of the release is
    more or less likely to be the person, and what the candidates asked, weighed by that, tells of the category; of a
    group it is what its members asked, the group of the person being known. How much that counts, beside how people
    with these terms have the category in the public log, is learned from half of the people, whose queries are known;
    the halves take turns. Found are right guesses, for or against. By chance is what the same attacker guesses rightly
    without the release, by the public log, and learning from the same people; or the more frequent answer for
    everybody, if that is better. The surest are those of whom the attacker is surest that they have the category.

    - `n_targets`, `seed`: as for every attacker that draws targets; of each one of the categories is sought.
    - `n_known`: how many terms are known; None for all that are not of sensitive queries.
    - `categories`: the sensitive categories.

    >>> Sensitive(n_known=8).name, Sensitive(n_known=None).n_known
    ('sensitive', None)
    """

    name = "sensitive"
    what = "people, each with a sensitive category or without it"

    n_known: int | None = setting(
        3, at_least=1, none="for all that are not sensitive", help="How many terms are known."
    )
    categories: tuple[str, ...] = SENSITIVE

    def __post_init__(self) -> None:
        SeededAttacker.__post_init__(self)
        for name in self.categories or ("",):
            if name not in CATEGORIES:
                raise BadParameter("categories", name or "none", allowed=f"some of {', '.join(CATEGORIES)}")

    @property
    def knows(self) -> str:
        few = f"{self.n_known} terms of a person that are not of sensitive queries"
        terms = "the terms of a person but those of sensitive queries" if self.n_known is None else few
        return f"{terms}, the histories of half of the others, and a log by other people"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        yield from _scoring.no_people_or_groups(pair, auxiliary)
        if auxiliary.public is None:
            yield "needs a public log of the same kind: --public FILE"
        if len(self._eligible(self._harmless(pair))) < 2:
            yield "too few people have terms that are not of sensitive queries"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        rng, own, sought = generator(self.seed), self._harmless(pair), self._sought
        people = rng.permutation(self._eligible(own))[: max(self.n_targets, _MOST_PEOPLE)]
        known = _scoring.draw_each(own.user_terms, of=people, n=self.n_known or own.n_terms, rng=rng)
        background = _Background(pair, auxiliary.public or pair.log, sought=sought)
        told = self._told(pair, auxiliary, known=known, people=people)
        alone = [background.looks(known, category=each, is_few=self.n_known is not None) for each in sought]
        columns = np.column_stack([sought, _N + sought])
        both = [np.column_stack([one, told[:, some], told[:, -2:]]) for one, some in zip(alone, columns, strict=True)]
        category = pair.categories[pair.tokens[0].row_query].astype(np.int64)
        truth = count_categories(pair.user, category, n_owners=pair.n_users)[people][:, sought] > 0
        # Each person is sought with one of the categories; the first ones are the targets.
        asked, first = rng.integers(len(sought), size=len(people)), slice(self.n_targets)
        without, with_it = (_guesses(looks, truth=truth, asked=asked, rng=rng)[first] for looks in (alone, both))
        has_it, asked = truth[np.arange(len(people)), asked][first], asked[first]
        n_asked, n_having = np.bincount(asked), np.bincount(asked, has_it)
        return self.exposure(
            n_targets=len(has_it),
            n_found=int(((with_it > 0) == has_it).sum()),
            n_by_chance=max(int(((without > 0) == has_it).sum()), int(np.maximum(n_having, n_asked - n_having).sum())),
            surest=Surest.of(has_it.astype(np.float64), confidence=with_it),
        )

    @property
    def _sought(self) -> Int64s:
        return np.array([CATEGORIES.index(name) for name in self.categories], np.int64)

    def _harmless(self, pair: Pair) -> Histories:
        return _harmless_terms(pair.tokens[0], pair.user, pair.categories, sought=self._sought, n_users=pair.n_users)

    def _eligible(self, own: Histories) -> Int64s:
        return np.flatnonzero(own.user_terms.lengths >= (self.n_known or 1))

    def _told(self, pair: Pair, auxiliary: AuxiliaryData, *, known: Rows[np.int32], people: Int64s) -> Floats:
        """Return what the release tells of each person, as of candidates, and how sure it is that it is of this one."""
        values = _released_subjects(pair)
        if isinstance(pair.release.data, Groups):
            group = _scoring.group_of_users(pair, auxiliary)[people]
            there = group >= 0
            return np.column_stack([np.where(there[:, None], values[group], values.mean(axis=0)), there])
        holders = pair.holders
        items, odds = _likelihood.odds_of(
            known.values.astype(np.int64),
            holders=holders,
            n_candidates=pair.n_candidates,
            counts=np.ones(len(holders.values), np.int64),
            generalisations=pair.generalisations,
        )
        return _likelihood.mean_of_likely(known.ptr, items, holders, odds, values)


def _guesses(looks: Sequence[Floats], *, truth: Bools, asked: Int64s, rng: np.random.Generator) -> Floats:
    """Return the log odds that each person has the category asked for; each half of the people learns from the other.

    `looks` is what is seen of all people, for every category; `truth` has a column for each category.
    """
    half, found = np.arange(len(truth)) % 2, np.zeros(len(truth))
    for i, table in enumerate(looks):
        for side in (0, 1):
            taught, some = half != side, (half == side) & (asked == i)
            has_it = truth[taught, i].astype(np.float64)
            found[some] = learned_scores(table[taught], has_it, of=table[some], rng=rng)
    return found


def _harmless_terms(tokens: Tokens, user: Int32s, category: Int8s, *, sought: Int64s, n_users: int) -> Histories:
    """Return the terms of each user's queries that are of none of the categories; `category` is that of each query."""
    kept = ~np.isin(category[tokens.row_query], sought)
    return collect(replace(tokens, row_query=tokens.row_query[kept]), user[kept], n_users=n_users)


def count_categories(owner: Int32s, category: Int64s, *, n_owners: int, weights: Floats | None = None) -> Floats:
    """Return how much of each category every owner has, a column for each; -1 is of none.

    >>> count_categories(np.array([0, 0, 1], np.int32), np.array([4, 4, -1]), n_owners=2)[:, 4].tolist()
    [2.0, 0.0]
    """
    there = category >= 0
    cells = owner[there].astype(np.int64) * _N + category[there]
    some = None if weights is None else weights[there]
    return np.bincount(cells, some, minlength=n_owners * _N).reshape(n_owners, _N).astype(np.float64)


def released_categories(pair: Pair) -> Floats:
    """Return how many queries, or terms of a bag or of a member of a group, each candidate has of every category."""
    if isinstance(pair.release.data, QueryLog):
        query = pair.released_rows["query"].to_numpy()
        return count_categories(pair.candidate, np.append(pair.categories, -1)[query], n_owners=pair.n_candidates)
    owner, category, share = _held(pair)
    return count_categories(owner, category, n_owners=pair.n_candidates, weights=share)


def _released_subjects(pair: Pair) -> Floats:
    """Return of each candidate the chance of every category, log(1 + its queries or terms), and log(1 + all) last."""
    counts = released_categories(pair)
    if isinstance(pair.release.data, QueryLog):
        chance, n_all = np.minimum(1.0, counts), np.bincount(pair.candidate, minlength=pair.n_candidates)
    else:
        owner, category, share = _held(pair)
        # That nobody has any of them, if terms are independent.
        nobody = np.log1p(-np.minimum(share, 1 - 1e-9))
        chance = -np.expm1(count_categories(owner, category, n_owners=pair.n_candidates, weights=nobody))
        n_all = np.bincount(owner, share, minlength=pair.n_candidates)
    return np.column_stack([chance, np.log1p(counts), np.log1p(n_all)])


def _held(pair: Pair) -> tuple[Int32s, Int64s, Floats]:
    """Return the candidate of each term of bags or groups, the category of the term, and the share of members with it.

    How often a bag has a term does not count.
    """
    words = pair.vocabulary.str.replace_all("_", " ", literal=True)
    category = Classifier().classify(words).category.astype(np.int64)
    if not isinstance(pair.release.data, Groups):
        after = pair.after
        return after.entry_user, category[after.terms], np.ones(len(after.terms))
    groups = pair.release.groups
    rows = groups.frame.select("group", "members").with_row_index("row")
    terms = pl.DataFrame({"term": pair.vocabulary}).with_row_index("place")
    held = _scoring.group_holders(groups).join(rows, on="group").join(terms, on="term")
    share = (held["n"] / held["members"]).clip(0, 1)
    return held["row"].to_numpy().astype(np.int32), category[held["place"].to_numpy()], share.to_numpy()


class _Background:
    """How the terms of people go with sensitive categories in a public log."""

    def __init__(self, pair: Pair, log: QueryLog, *, sought: Int64s) -> None:
        other = _scoring.other_log(pair, log)
        (tokens, user, users), category = other, _scoring.categories_of(pair, other)
        has = count_categories(user, category[tokens.row_query].astype(np.int64), n_owners=len(users)) > 0
        own = _harmless_terms(tokens, user, category, sought=sought, n_users=len(users))
        held, share = own.support(), (own.support() + 0.5) / (len(users) + 1)
        self._ratios: dict[np.int64, Floats] = {}
        for each in sought:
            with_it = np.bincount(own.terms, weights=has[own.entry_user, each], minlength=tokens.n_terms)
            sides = ((with_it, has[:, each].sum()), (held - with_it, (~has[:, each]).sum()))
            one, other = (np.log((n + _PRIOR * share) / (n_all + _PRIOR)) for n, n_all in sides)
            self._ratios[each] = np.asarray(one - other, np.float64)

    def looks(self, known: Rows[np.int32], *, category: np.int64, is_few: bool) -> Floats:
        """Return the log odds of the category by the known terms, and where all are known the mean and how many."""
        found = np.bincount(known.row_of_entry, self._ratios[category][known.values], minlength=known.n_rows)
        if is_few:
            return found[:, None].astype(np.float64)
        return np.column_stack([found, found / np.maximum(1, known.lengths), known.lengths])

"""Attack with a directory of names and towns: people search for themselves, Jones et al. 2008."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Person, Reasons, Seeker
from queryveil.data import Bools, Int64s
from queryveil.data.rows import Rows
from queryveil.pairing import Pair
from queryveil.rng import generator
from queryveil.text.identifiers._kernels import FIRST, SURNAME
from queryveil.text.identifiers.table import identifier_table
from queryveil.text.tokens import tokenize

MOST_PAIRS = 3
"""Name-town pairs per person."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Entry:
    """The user of the original who is a person of the directory, and the terms of name and town if all are known."""

    user: int
    terms: Int64s

    def __repr__(self) -> str:
        # Privacy: neither who nor what.
        return f"Entry(n_terms={len(self.terms)})"


def entries_of_people(pair: Pair, *, people: Sequence[Person], n_targets: int, rng: np.random.Generator) -> list[Entry]:
    """Return the entries of people; somebody whose user is not given is the only user with that name and town."""
    terms = _terms(pair, people)
    number = dict(zip(pair.users, range(pair.n_users), strict=True))
    holders = pair.before.user_terms.transpose(pair.before.n_terms)
    found: dict[int, Entry] = {}
    for place in rng.permutation(len(people)).tolist():
        user = people[place].user
        if user is None:
            users = _scoring.holders_of_all(holders, terms[place][:, None])
            who = int(users[0]) if len(users) == 1 else None
        else:
            who = number.get(user)
        if who is not None and who not in found:
            found[who] = Entry(user=who, terms=terms[place])
        if len(found) == n_targets:
            break
    return list(found.values())


def entries_of_tables(pair: Pair, *, n_targets: int, rng: np.random.Generator) -> list[Entry]:
    """Return the rarest pairs of a name and a town in the histories of users that have both."""
    before = pair.before
    table, user, terms = identifier_table(), before.entry_user, before.terms
    # Names are terms that are names of people and hardly anything else.
    is_name = np.array([bool(table.tokens.get(term, 0) & (FIRST | SURNAME)) for term in pair.vocabulary], np.bool_)
    is_town = np.array([term in table.cities for term in pair.vocabulary], np.bool_)
    n_names, n_towns, n_either = (
        np.bincount(user[is_one[terms]], minlength=before.n_users) for is_one in (is_name, is_town, is_name | is_town)
    )
    eligible = np.flatnonzero((n_names > 0) & (n_towns > 0) & (n_either > 1))
    targets = _scoring.draw_targets(eligible, n_targets=n_targets, rng=rng)
    support, (ptr, _) = before.support(), before.user_terms
    return [
        Entry(user=target, terms=np.array(found, np.int64))
        for target in targets.tolist()
        for found in _rarest_pairs(terms[ptr[target] : ptr[target + 1]].astype(np.int64), support, is_name, is_town)
    ]


def _terms(pair: Pair, people: Sequence[Person]) -> list[Int64s]:
    """Return the terms of each person's name and town; none at all if the vocabulary lacks one of them."""
    texts = pl.Series([f"{person.name} {person.town}" for person in people], dtype=pl.String)
    tokens = tokenize(texts, by_blanks=pair.log.terms_are_items)
    place = dict(zip(pair.vocabulary, range(len(pair.vocabulary)), strict=True))
    number = np.array([place.get(term, -1) for term in tokens.vocabulary], np.int64)
    ptr, values = tokens.query_terms
    found = [np.unique(number[values[ptr[query] : ptr[query + 1]]]) for query in tokens.row_query]
    return [terms if (terms >= 0).all() else terms[:0] for terms in found]


def _rarest_pairs(terms: Int64s, support: Int64s, is_name: Bools, is_town: Bools) -> Iterator[tuple[int, ...]]:
    by_support = terms[np.argsort(support[terms], kind="stable")]
    # One more of each than pairs are wanted, since a term may be both.
    names = by_support[is_name[by_support]][: MOST_PAIRS + 1].tolist()
    towns = by_support[is_town[by_support]][: MOST_PAIRS + 1].tolist()
    pairs = {tuple(sorted((name, town))) for name in names for town in towns if name != town}
    yield from sorted(pairs, key=lambda pair: (int(support[pair[0]] * support[pair[1]]), pair))[:MOST_PAIRS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanity(Seeker):
    """Know a directory of names and towns, and seek who has both in the same history.

    A candidate is named if no other has all the words of a name and of its town; if there is none and items were
    generalised, a candidate is named if no other has an ancestor of every missing word. Where people have several ids,
    one for every window or mini-session, any of those that have all the words is named. Without `people` the names and
    American towns of one word that come with the package stand in for a phone book: sought are people of the original
    whose own queries hold one of each, by their three rarest pairs.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    """

    name = "vanity"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        yield from _scoring.no_terms(pair)
        if not self._directory(pair, auxiliary):
            nobody = "nobody in the log has a name and a town among their terms; give a directory: --people FILE"
            yield "none of the people given is one user of the log" if auxiliary.people else nobody

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        people = _found(self._directory(pair, auxiliary), pair)
        source = "a directory of people" if auxiliary.people else "a phone book"
        return self.people_found(
            people["chance"].to_numpy(),
            confidence=people["sure"].to_numpy(),
            # Anybody may be in the directory.
            n_by_chance=_scoring.found_by_chance(pair, users=people["user"].to_numpy()),
            knows=f"{source}: names and towns",
        )

    def _directory(self, pair: Pair, auxiliary: AuxiliaryData) -> Sequence[Entry]:
        rng = generator(self.seed)
        if auxiliary.people:
            return entries_of_people(pair, people=auxiliary.people, n_targets=self.n_targets, rng=rng)
        return entries_of_tables(pair, n_targets=self.n_targets, rng=rng)


def _found(directory: Sequence[Entry], pair: Pair) -> pl.DataFrame:
    """Return each `user` sought, how `sure` it is who it is, and the `chance` that it is the right one."""
    holders, items = pair.holders, pair.generalisations
    most = pair.n_candidates if _scoring.has_several_ids(pair) else 1
    candidates = []
    for entry in directory:
        found = _scoring.holders_of_all(holders, entry.terms[:, None])
        if not len(found) and items is not None:
            found = _scoring.holders_of_all(holders, [items.row(term) for term in entry.terms.tolist()])
        candidates.append(found[: len(found) if len(found) <= most else 0].tolist())
    users = np.array([entry.user for entry in directory], np.int64)
    named = Rows.from_lists(candidates)
    n_named = np.maximum(1, named.lengths)
    right = pair.identity.chance(named.values.astype(np.int64), user=users[named.row_of_entry])
    chance = np.bincount(named.row_of_entry, weights=right, minlength=len(users)) / n_named
    chances = pl.DataFrame({"user": users, "sure": (named.lengths > 0) / n_named, "chance": chance})
    # A person with several entries is found by the best of them.
    return chances.group_by("user", maintain_order=True).agg(pl.all().max())

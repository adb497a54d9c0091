"""Look for texts that one person alone asked: a query of common parts can still be nobody else's."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks.attacker import Attacker, AuxiliaryData, Exposure, Person, Reasons
from queryveil.data import Int64s, QueryLog, Tallies
from queryveil.guarantees import KmAnonymity, SwapAnonymity
from queryveil.pairing import Pair
from queryveil.release.texts import distinct_texts, sole_askers
from queryveil.text.identifiers import remove_identifiers
from queryveil.text.tokens import join_terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragments(Attacker):
    """Read the release, and count the distinct texts in it that one person of the original alone asked.

    Such a text identifies its asker's rows or membership, and may contain a name. Texts are as the method writes them:
    in swap without recognised identifiers, in km what is left of a query. For km a text counts as asked by the users
    who have it in the release. Blind guessing finds none.

    - `of_people`: seek the people of a directory instead: found is whose name stands in a released text that this
      person alone asked. Targets are those who have their name in a query of their own.
    """

    of_people: bool = False

    @property
    def name(self) -> str:
        return "named_fragments" if self.of_people else "fragments"

    @property
    def knows(self) -> str:
        return "the release, and names of people" if self.of_people else "the release"

    @property
    def what(self) -> str:
        return "names" if self.of_people else "texts"

    @property
    def is_complete(self) -> bool:
        # Every released text is judged; people of a directory stand for others.
        return not self.of_people

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        data = pair.release.data
        if not isinstance(data, QueryLog | Tallies) or pair.log.terms_are_items:
            yield "the release has no texts of queries"
        if pair.release.manifest.method == "token_hash":
            yield "the texts are hashes"
        if self.of_people and not auxiliary.people:
            yield "it needs a directory of people: --people FILE"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        texts, _ = distinct_texts(pair.release.data.frame["query"])
        asker = _sole_askers(pair, texts)
        if not self.of_people:
            return self.exposure(n_targets=len(texts), n_found=int((asker >= 0).sum()), n_by_chance=0)
        people = auxiliary.people
        is_target = _has_name(people, pair, texts=pair.log.frame["query"], users=pair.user.astype(np.int64))
        is_found = _has_name(people, pair, texts=texts.filter(asker >= 0), users=asker[asker >= 0])
        n_found = sum(found and sought for found, sought in zip(is_found, is_target, strict=True))
        return self.exposure(n_targets=sum(is_target), n_found=n_found, n_by_chance=0)


def _sole_askers(pair: Pair, texts: pl.Series) -> Int64s:
    """Return the number of the person who alone asked each text; -1 where several did."""
    if isinstance(pair.release.promise, KmAnonymity):
        # Who has several ids, one for each window, is one person; an id that may be several people's is one of its own.
        person = pair.identity.sole_user()
        person = np.where(person >= 0, person, pair.n_users + np.arange(len(person)))
        return sole_askers(texts, asked=pair.release.log.frame["query"], users=person[pair.candidate])
    asked = pair.log.frame["query"]
    if isinstance(pair.release.promise, SwapAnonymity):
        asked = remove_identifiers(asked).queries
    return sole_askers(texts, asked=asked, users=pair.user)


def _has_name(people: Sequence[Person], pair: Pair, *, texts: pl.Series, users: Int64s) -> list[bool]:
    """Tell of each person whether a text of theirs holds all words of the name; anybody's, if the user is not given."""
    number = dict(zip(pair.users, range(pair.n_users), strict=True))
    sought = np.array([-1 if person.user is None else number.get(person.user, -2) for person in people], np.int64)
    mine = np.isin(users, sought) | bool((sought == -1).any())
    words = [set(text.split(" ")) for text in join_terms(texts.filter(pl.Series(mine)))]
    owners = users[mine]
    names = [set(name.split(" ")) for name in join_terms(pl.Series([each.name for each in people], dtype=pl.String))]
    return [
        any((user in (-1, owner)) and name <= said for owner, said in zip(owners.tolist(), words, strict=True))
        for user, name in zip(sought.tolist(), names, strict=True)
    ]

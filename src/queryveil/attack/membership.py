"""Somebody who knows all that a person asked, and wonders whether the person is in the log: Homer et al."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attack.exposure import Exposure
from queryveil.attack.homer import gains, released_share, share_of, statistic
from queryveil.attack.likeness import Likeness
from queryveil.attack.ports import Given
from queryveil.attack.scoring import Covering, as_items, draw_targets, no_people, unreadable
from queryveil.attack.seeking import Seeker
from queryveil.histories import Histories, collect, spread
from queryveil.kernels.arrays import Floats, Int64s
from queryveil.log import Format, QueryLog
from queryveil.paired import Paired
from queryveil.rng import generator
from queryveil.text.codes import encode
from queryveil.text.tokens import tokenize

FALSE_POSITIVES = 0.01
"""So many of those who are not in the log may be taken for members."""
LEAST_NON_MEMBERS, MOST_NON_MEMBERS = 100, 3000
"""One in a hundred cannot be told from fewer, and more take time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership(Seeker):
    """Know the whole history of a person and how common each term is, and tell whether the person is in the release.

    Where rows are one person's, in logs and transactions, the statistic is how much likelier the candidate most like
    the person is this person than anybody else: what both have counts the more the rarer it is, what only the candidate
    has counts against it (little where rows were added or change hands, as the release says), and so does what only the
    person has, as far as the release still has it of others.
    Of groups and noisy counts, and of everything if not `by_candidate`, only frequencies are looked at: the sum over
    all terms of |x - pop| - |x - released|. x is 1 for the person's own terms and 0 for others, `released` is the share
    of the release's users, bags or members that have a term. If `weighted`, a term counts by how many times as common
    it is, and the sum is divided by the square root of the number of own terms; else the few common terms drown the
    many rare ones, and long histories the short ones.
    Of noisy counts of queries, `released` is a term's part of all counts, scaled so that the released terms are as
    common in all as in the public log; a term that is not released tells nothing.
    One half of the public log's users, drawn at random, gives `pop`; up to 3,000 of the other half are known not to be
    in the release, and the threshold is such that 1 in 100 of these is above it. Targets are people of the original;
    found are those above.

    >>> Membership().name
    'membership'
    """

    by_candidate: bool = True
    weighted: bool = True

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "membership"

    def misses(self, paired: Paired, *, given: Given) -> str | None:
        """Say why it cannot attack this release."""
        if reason := unreadable(paired):
            return reason
        if given.public is None:
            return "needs a public log of the same kind: --public FILE"
        if given.public.n_users < 2 * LEAST_NON_MEMBERS:
            return f"needs a public log of {2 * LEAST_NON_MEMBERS} people or more"
        if not paired.n_users or not paired.n_candidates:
            return "the release is empty"
        return None

    def attack(self, paired: Paired, *, given: Given) -> Exposure:
        """Set the threshold by people who are not in the release, and count the targets above it."""
        rng = generator(self.seed)
        public, vocabulary = _public(paired, given.public or paired.original)
        known, others = np.split(rng.permutation(public.n_users), [public.n_users // 2])
        targets = draw_targets(np.arange(paired.n_users), n_targets=self.n_targets, rng=rng)
        outside = others[:MOST_NON_MEMBERS]
        if self.by_candidate and no_people(paired) is None:
            covering = None if paired.cover is None else paired.cover.covering(vocabulary)
            _, items = _rows(public, users=known, covering=covering)
            n_holders = np.bincount(items, minlength=len(vocabulary))
            like = Likeness.of(paired.release, after=paired.after, n_holders=n_holders, n_people=len(known))
            of_outside, of_targets = (
                like.of_each(ptr, own=own)
                for ptr, own in (
                    _rows(public, users=outside, covering=covering),
                    _rows(paired.before, users=targets, covering=covering),
                )
            )
        else:
            population = share_of(public, users=known, n_terms=len(vocabulary))
            released = released_share(paired, vocabulary=vocabulary, population=population)
            gain = gains(population, released=released, weighted=self.weighted)
            of_outside = statistic(public, users=outside, gain=gain, weighted=self.weighted)
            of_targets = statistic(paired.before, users=targets, gain=gain, weighted=self.weighted)
        return Exposure.counted(
            attacker=self.name,
            knows="all terms of a person, and how common they are",
            what="people",
            n_targets=len(targets),
            n_found=int((of_targets > above(of_outside)).sum()),
            n_by_chance=FALSE_POSITIVES * len(targets),
        )


def _rows(histories: Histories, *, users: Int64s, covering: Covering | None) -> tuple[Int64s, Int64s]:
    """Give what may stand for the terms of some users, as compressed rows."""
    row, entries = spread(histories.row_ptr, rows=users)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(users)))]).astype(np.int64)
    return as_items(ptr, terms=histories.terms[entries].astype(np.int64), covering=covering)


def above(outside: Floats) -> float:
    """Give the lowest value that no more than 1 in 100 of those outside is above.

    >>> above(np.arange(300.0))
    296.0
    """
    return float(np.sort(outside)[::-1][int(FALSE_POSITIVES * len(outside))])


def _public(paired: Paired, log: QueryLog) -> tuple[Histories, pl.Series]:
    """Give the public histories in the numbers of the pair's terms, further terms being numbered on."""
    user, users = encode(log.frame["user"])
    tokens = tokenize(log.frame["query"], by_blanks=log.layout.format is Format.TRANSACTIONS)
    own = collect(tokens, user, n_users=len(users))
    both = pl.concat([paired.vocabulary.rename(""), tokens.vocabulary.rename("")])
    number, vocabulary = encode(both)
    terms = number[len(paired.vocabulary) :][own.terms]
    return Histories(row_ptr=own.row_ptr, terms=terms, counts=own.counts, n_terms=len(vocabulary)), vocabulary

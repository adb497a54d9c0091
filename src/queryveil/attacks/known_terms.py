"""Attack by a few known search terms of a person: Narayanan and Shmatikov's scoring."""

from dataclasses import dataclass

import numpy as np

from queryveil.attacks.attacker import AuxiliaryData, Seeker, check_least
from queryveil.attacks.exposure import Exposure
from queryveil.attacks.scoring import (
    Postings,
    as_items,
    draw_each,
    draw_targets,
    found_by_chance,
    name_candidates,
    name_likeliest_candidates,
    no_terms,
)
from queryveil.data import Int64s
from queryveil.data.rows import Rows
from queryveil.pairing import Pair
from queryveil.rng import generator
from queryveil.text.histories import Histories

ECCENTRICITY = 1.5
"""So many standard deviations the best must stand above the second."""
_MOST_DRAWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTerms(Seeker):
    """Know `n_known` random terms of a person's history, and seek who has most of them.

    Every candidate scores 1/log of a term's support for each term it has; the best is named if it stands 1.5 standard
    deviations of all scores above the second. With `n_wrong` as many terms come on top that the person never used:
    drawn as if from somebody else's history, so common ones are drawn more often. Targets are people of the original
    with that many terms, those who are no longer in the release among them. Where items moved up in a taxonomy, a term
    is sought as all that may stand for it.

    If not `cautious`, somebody is always named: the likeliest to have these terms and not many others. That finds what
    caution leaves: where many share every few terms, the best rarely stands out, and still is right quite often.

    >>> KnownTerms(n_known=4).name, KnownTerms(cautious=False).name
    ('known_terms', 'likely_terms')
    """

    n_known: int = 4
    n_wrong: int = 0
    cautious: bool = True

    def __post_init__(self) -> None:
        Seeker.__post_init__(self)
        check_least("n_known", self.n_known, least=1)
        check_least("n_wrong", self.n_wrong, least=0)

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "known_terms" if self.cautious else "likely_terms"

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:  # noqa: ARG002 - as every attacker
        """Return why it cannot attack this release."""
        if reason := no_terms(pair):
            return reason
        if not len(self._eligible(pair)):
            return f"nobody in the log has {self.n_known} terms"
        return None

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        """Name a candidate for each target, and count those who are right."""
        rng = generator(self.seed)
        targets = draw_targets(self._eligible(pair), n_targets=self.n_targets, rng=rng)
        known = self._known(pair.before, targets, rng)
        postings, generalisations = Postings.of(pair.after), pair.generalisations
        if self.cautious:
            known = as_items(known, generalisations=generalisations)
            named = name_candidates(known, postings=postings, eccentricity=ECCENTRICITY)
        else:
            once = np.ones(len(postings.holders), np.int64)
            named = name_likeliest_candidates(
                known, postings=postings, counts=once, rng=rng, generalisations=generalisations
            )
        wrong = f" and {self.n_wrong} that are not" if self.n_wrong else ""
        return Exposure.counted(
            attacker=self.name,
            knows=f"{self.n_known} random terms of a person's history{wrong}",
            what="people",
            n_targets=len(targets),
            n_found=round(float(pair.identity.chance(named, user=targets).sum())),
            n_by_chance=found_by_chance(pair, users=targets),
            n_known=self.n_known,
            n_wrong=self.n_wrong,
        )

    def _eligible(self, pair: Pair) -> Int64s:
        return np.flatnonzero(pair.before.user_terms.lengths >= self.n_known)

    def _known(self, before: Histories, targets: Int64s, rng: np.random.Generator) -> Rows[np.int64]:
        """Draw what is known of each target, true terms first."""
        drawn = draw_each(before.user_terms, of=targets, n=self.n_known, rng=rng)
        known = drawn.values.reshape(len(targets), self.n_known)
        known = np.concatenate([known, _wrong(before, targets, n=self.n_wrong, rng=rng)], axis=1)
        ptr = np.arange(len(targets) + 1, dtype=np.int64) * known.shape[1]
        # Where everybody has everything, fewer wrong ones can be had: -1 stands for them.
        return Rows(ptr, known.ravel().astype(np.int64)).keep(known.ravel() >= 0)


def _wrong(before: Histories, targets: Int64s, *, n: int, rng: np.random.Generator) -> Int64s:
    """Draw terms that the targets never used, all different; -1 where none was found."""
    wrong = np.full((len(targets), n), -1, np.int64)
    entry_key = before.entry_user.astype(np.int64) * before.n_terms + before.terms
    for i in range(n):
        for _ in range(_MOST_DRAWS):
            open_ = np.flatnonzero(wrong[:, i] < 0)
            if not len(open_):
                break
            drawn = before.terms[rng.integers(0, len(before.terms), len(open_))].astype(np.int64)
            key = targets[open_] * before.n_terms + drawn
            place = np.minimum(np.searchsorted(entry_key, key), len(entry_key) - 1)
            fits = (entry_key[place] != key) & ~(wrong[open_, :i] == drawn[:, None]).any(axis=1)
            wrong[open_[fits], i] = drawn[fits]
    return wrong

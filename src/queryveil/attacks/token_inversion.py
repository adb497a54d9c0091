"""Attack on hashed terms with a public log of the same kind: Kumar et al. 2007.

Kumar et al. match by frequency and then by what stands beside terms that are matched already. Here nothing is settled
before the end: each hashed term has a chance of being each public one, and these chances are sharpened in rounds.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.data import Float32s, Int32s, Int64s
from queryveil.pairing import Pair
from queryveil.rng import generator
from queryveil.settings import setting
from queryveil.text.tokens import Tokens, encode, hash_tokens, tokenize

_FURTHEST = 5
"""Terms of one query count as neighbours up to so many places apart."""
_BANDS = tuple(2**i for i in range(13))
"""Neighbours are put into bands by their rank among all terms: the first, the second, the next two, the next four."""
_PEOPLE_AT_ONCE = 5_000


class TokenCounts:
    """The most used terms of a log, and how many people use each in which way; `user` numbers the user of each row.

    - `terms`: the `n_terms` most used terms; ties are drawn.
    - `n_people`: the number of people.
    - `uses`: the people who use each at all, alone, with one, two or more others, in the first and in the last place.
    - `bands`: the people who use each beside a term of each band.
    - `together`: the people who use any two in one query.
    - `apart`: the people who use any two in different queries.
    """

    def __init__(self, tokens: Tokens, *, user: Int32s, n_terms: int, rng: np.random.Generator) -> None:
        found, vocabulary = _occurrences(tokens, user), tokens.vocabulary
        holders = found.select("user", "term").unique().sort("user")
        support = np.bincount(holders["term"].to_numpy(), minlength=len(vocabulary))
        order = np.lexsort((rng.random(len(vocabulary)), -support))
        rank = np.argsort(order)
        found = found.with_columns(rank=rank[found["term"].to_numpy()])
        n = min(n_terms, len(vocabulary))
        self.terms, self.n_people = vocabulary.gather(order[:n]), int(user.max(initial=-1)) + 1
        self.uses = _uses(found, n=n)
        self.bands, self.together = _neighbours(found, support, n=n)
        people, ranks = holders["user"].to_numpy(), rank[holders["term"].to_numpy()]
        self.apart = np.maximum(0, _in_histories(people, ranks, n_people=self.n_people, n=n) - self.together)


def _occurrences(tokens: Tokens, user: Int32s) -> pl.DataFrame:
    """Return every `term` of every query, a query once for each `user` who `asked` it, its `place` and the `length`."""
    n_queries = max(1, len(tokens.queries))
    asked = np.unique(user.astype(np.int64) * n_queries + tokens.row_query)
    asker, query = np.divmod(asked, n_queries)
    terms = tokens.query_terms.take(query)
    row, place = terms.row_of_entry, terms.place_in_row
    columns = {"user": asker[row], "asked": row, "place": place, "length": terms.lengths[row], "term": terms.values}
    return pl.DataFrame(columns)


def _uses(found: pl.DataFrame, *, n: int) -> Float32s:
    """Count the people behind the occurrences of each of the first terms, in each of the ways to use it."""
    place, length, longer = pl.col("place"), pl.col("length"), pl.col("length") > 1
    by_length = (length > 0, length == 1, length == 2, length == 3, length > 3)
    kinds = enumerate((*by_length, longer & (place == 0), longer & (place == length - 1)))
    top = found.filter(pl.col("rank") < n).group_by("rank")
    people = top.agg(pl.col("user").filter(kind).n_unique().alias(str(i)) for i, kind in kinds)
    return people.sort("rank").drop("rank").to_numpy().astype(np.float32)


def _neighbours(found: pl.DataFrame, support: Int64s, *, n: int) -> tuple[Float32s, Float32s]:
    """Count the people who use each term beside one of each band, and beside each other."""
    n_terms, parts = max(1, len(support)), []
    user, asked, rank = (found[name].to_numpy() for name in ("user", "asked", "rank"))
    for distance in range(1, _FURTHEST + 1):
        left = np.flatnonzero(asked[:-distance] == asked[distance:])
        for one, other in ((left, left + distance), (left + distance, left)):
            top, beside = rank[one], rank[other]
            chosen = (top < n) & (top != beside)
            parts.append((user[one[chosen]] * max(1, n) + top[chosen]) * n_terms + beside[chosen])
    pairs = np.unique(np.concatenate(parts))
    top, beside = pairs // n_terms % max(1, n), pairs % n_terms
    # What one person alone uses is a band of its own, whatever its rank.
    once = np.sort(support)[::-1][beside] == 1
    band = np.where(once, len(_BANDS) + 1, np.digitize(beside, _BANDS))
    n_bands = len(_BANDS) + 2
    bands = np.bincount(top * n_bands + band, minlength=n * n_bands).reshape(n, n_bands)
    both = beside < n
    together = np.bincount(top[both] * n + beside[both], minlength=n * n).reshape(n, n)
    return bands.astype(np.float32), together.astype(np.float32)


def _in_histories(user: Int64s, rank: Int64s, *, n_people: int, n: int) -> Float32s:
    """Count the people who have any two of the terms; users are in ascending order."""
    both = np.zeros((n, n), np.float32)
    for first in range(0, n_people, _PEOPLE_AT_ONCE):
        some = slice(*np.searchsorted(user, [first, first + _PEOPLE_AT_ONCE]))
        is_top = rank[some] < n
        has = np.zeros((min(_PEOPLE_AT_ONCE, n_people - first), n), np.float32)
        has[user[some][is_top] - first, rank[some][is_top]] = 1
        both += has.T @ has
    np.fill_diagonal(both, 0)
    return both


_N_ROUNDS = 10
_FIRST_TEMPERATURE, _LAST_TEMPERATURE = 8.0, 1.0
"""A difference in score counts by its ratio to this: little at first, when anchors are few."""
_PSEUDO = 0.3
_USES = (1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
_BAND, _TOGETHER, _APART = 0.5, 0.5, 0.05
_BAND_AT_FIRST = 0.3
"""From the first round on bands count so much less, and ever less: terms stand in for their bands."""
_EXPECTED, _BLIND_ROUNDS = 0.2, 3
"""How much rare neighbours weigh, and for how many rounds they do not: while anchors are few they mislead."""
_N_BALANCINGS = 10
_NO_CHANCE = 1e-18
"""Below it a chance changes no sum of float32; products of two are numbers that processors are slow with."""


def by_rank(hashed: TokenCounts, *, public: TokenCounts) -> Int64s:
    """Take each hashed term for the public one of the same rank, -1 if there is none."""
    place = np.arange(len(hashed.terms))
    return np.where(place < len(public.terms), place, -1)


def by_company(hashed: TokenCounts, *, public: TokenCounts) -> Int64s:
    """Take each hashed term for the public one that it most likely is, by how it is used and beside what."""
    if not len(hashed.terms) or not len(public.terms):
        return np.full(len(hashed.terms), -1, np.int64)
    scale = np.float32(hashed.n_people / public.n_people)
    uses = -_apart(hashed.uses, public.uses * scale, weights=np.array(_USES, np.float32))
    bands = -_apart(hashed.bands, public.bands * scale, weights=np.float32(_BAND))
    chances = _balanced(uses + bands, temperature=_FIRST_TEMPERATURE / 2)
    for n in range(_N_ROUNDS):
        done = n / (_N_ROUNDS - 1)
        score = uses + _BAND_AT_FIRST * (1 - n / _N_ROUNDS) * bands
        # Public counts are blurred as much as the chances blur the hashed ones, or certainty would count as likeness.
        mass = chances.sum(axis=0)
        blur = (chances / np.maximum(mass, 1e-9)).T @ chances
        pairs = ((hashed.together, public.together, _TOGETHER), (hashed.apart, public.apart, _APART))
        for one, other, weight in pairs:
            ours, theirs = one @ chances, (other * np.minimum(mass, 1)) @ blur * scale
            score = score - _apart(ours, theirs, weights=np.float32(weight))
            if one is hashed.together and n >= _BLIND_ROUNDS:
                score = score + _EXPECTED * _as_expected(ours, theirs)
        temperature = _FIRST_TEMPERATURE * (_LAST_TEMPERATURE / _FIRST_TEMPERATURE) ** done
        chances = _balanced(score, temperature=temperature)
    return np.asarray(chances.argmax(axis=1), np.int64)


def _apart(ours: Float32s, theirs: Float32s, *, weights: Float32s | np.float32) -> Float32s:
    """Return how far each row of counts is from each other row; square roots of counts all vary alike."""
    width = np.sqrt(weights)
    x, y = np.sqrt(ours + _PSEUDO) * width, np.sqrt(theirs + _PSEUDO) * width
    return np.asarray((x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1) - 2 * (x @ y.T), np.float32)


def _as_expected(ours: Float32s, theirs: Float32s) -> Float32s:
    """Return the log-likelihood of each of our rows of counts if it has the lifts of each of theirs.

    A lift is how many times as often two terms stand together as by chance. Square roots of small counts tell little;
    here a rare pair that both have tells much.
    """
    lift = (theirs + 1) / (_independent(theirs) + 1)
    return np.asarray(ours @ np.log(lift).T - _independent(ours) @ (lift - 1).T, np.float32)


def _independent(counts: Float32s) -> Float32s:
    total = max(float(counts.sum()), 1e-9)
    return np.asarray(np.outer(counts.sum(axis=1), counts.sum(axis=0)) / np.float32(total), np.float32)


def _balanced(score: Float32s, *, temperature: float) -> Float32s:
    """Turn scores into chances: each hashed term is one public term, each public term at most one hashed."""
    chances = np.exp((score - score.max(axis=1, keepdims=True)) / np.float32(temperature))
    for _ in range(_N_BALANCINGS):
        chances /= chances.sum(axis=1, keepdims=True)
        chances /= np.maximum(chances.sum(axis=0, keepdims=True), 1)
    chances = np.asarray(chances / chances.sum(axis=1, keepdims=True), np.float32)
    chances[chances < _NO_CHANCE] = 0
    return chances


_MORE_PUBLIC = 1.2
"""A term of the hashed top may be a bit below the public one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInversion(Seeker):
    """Have a public log by other people, and find out which hash is which term.

    Targets are the hashes that most people use; found are those that are matched with their true term. A blind guesser
    matches all of them with one of the most used public terms.

    - `n_targets`: the number of hashes.
    - `seed`: repeats how ties are drawn.
    - `only_rank`: whether a hash is matched with the term of the same rank, by nothing else.

    >>> TokenInversion().name, TokenInversion(only_rank=True).name
    ('token_inversion', 'token_rank')
    """

    knows = "a log of the same kind by other people"
    what = "hashed terms"

    n_targets: int = setting(500, at_least=1, help="The number of hashes.")
    only_rank: bool = False

    @property
    def name(self) -> str:
        return "token_rank" if self.only_rank else "token_inversion"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        if pair.release.manifest.method != "token_hash":
            yield "the terms of the release are not hashed"
        if auxiliary.public is None or not auxiliary.public.n_rows:
            yield "needs a public log of the same kind: --public FILE"
        if auxiliary.key is None:
            yield "needs the key of the hashes to judge it: --key FILE"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        log, key = auxiliary.public or pair.log, auxiliary.key or b""
        rng = generator(self.seed)
        hashed = TokenCounts(pair.release_tokens, user=pair.candidate, n_terms=self.n_targets, rng=rng)
        tokens, (user, _) = tokenize(log.frame["query"], by_blanks=log.terms_are_items), encode(log.frame["user"])
        public = TokenCounts(tokens, user=user, n_terms=round(_MORE_PUBLIC * self.n_targets), rng=rng)
        guess = (by_rank if self.only_rank else by_company)(hashed, public=public)
        vocabulary = pair.original_tokens.vocabulary
        table = pl.DataFrame({"hash": hash_tokens(vocabulary, key=key), "term": vocabulary})
        true = hashed.terms.to_frame("hash").join(table, on="hash", how="left", maintain_order="left")["term"]
        guessed = public.terms.gather(pl.Series(np.where(guess < 0, 0, guess))) if len(public.terms) else true.clear()
        right = (guessed == true).fill_null(False).to_numpy() & (guess >= 0) if len(guessed) else guess >= 0
        top = public.terms.head(len(hashed.terms))
        # The same term for every hash is right once, if any of them is that term.
        n_by_chance = int(top.is_in(true.drop_nulls().implode()).any())
        return self.exposure(n_targets=len(hashed.terms), n_found=int(right.sum()), n_by_chance=n_by_chance)

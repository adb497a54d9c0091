"""Build the table of WordNet's nouns that the package ships, from the files of Debian's `wordnet-base`.

    python tools/build_wordnet.py /usr/share/wordnet

writes src/queryveil/text/data/wordnet.npz and the licence beside it. The same files give the same bytes.
`queryveil.text.taxonomy.taxonomy` says what the columns are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from queryveil.text.taxonomy.tree import depth_first, renumber

DATA = Path(__file__).resolve().parents[1] / "src" / "queryveil" / "text" / "data"
HYPERNYMS = ("@", "@i")


class Synset(NamedTuple):
    """One line of data.noun: what it is called and what it is a kind of."""

    offset: str
    first_word: str
    hypernyms: list[str]


def plain(lemma: str) -> str:
    """Write a lemma as people do."""
    return lemma.replace("_", " ").lower()


def lines(path: Path) -> Iterator[str]:
    """Give the lines of a file of WordNet below its licence, which is indented by two blanks."""
    with path.open(encoding="ascii") as file:
        yield from (line for line in file if not line.startswith("  "))


def read_synsets(path: Path) -> list[Synset]:
    """Read data.noun: offset, file, type, number of words (hex), words with ids, number of pointers, pointers."""
    synsets = []
    for line in lines(path):
        fields = line.partition(" | ")[0].split()
        at = 4 + 2 * int(fields[3], 16)
        pointers = [fields[i : i + 4] for i in range(at + 1, at + 1 + 4 * int(fields[at]), 4)]
        hypernyms = [target for kind, target, _, _ in pointers if kind in HYPERNYMS]
        synsets.append(Synset(fields[0], plain(fields[4]), hypernyms))
    return synsets


def read_senses(path: Path) -> dict[str, list[str]]:
    """Read index.noun: lemma, type, number of senses, ..., and at the end the offsets, most frequent sense first."""
    senses = {}
    for line in lines(path):
        fields = line.split()
        senses[plain(fields[0])] = fields[-int(fields[2]) :]
    return dict(sorted(senses.items()))


def read_irregular(path: Path, *, words: dict[str, int]) -> dict[str, int]:
    """Read noun.exc: a plural and its nouns; gives the place of the first noun that is a word."""
    irregular: dict[str, int] = {}
    for line in lines(path):
        form, *nouns = (plain(field) for field in line.split())
        known = [words[noun] for noun in nouns if noun in words]
        if known:
            irregular.setdefault(form, known[0])
    return dict(sorted(irregular.items()))


def letters(texts: Any) -> npt.NDArray[np.uint8]:
    """Give texts as lines of one text, in bytes."""
    return np.frombuffer("\n".join(texts).encode("ascii"), np.uint8)


def build(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """Make the columns of the table from the files in a folder."""
    synsets, senses = read_synsets(folder / "data.noun"), read_senses(folder / "index.noun")
    row_of = {synset.offset: row for row, synset in enumerate(synsets)}
    first = [row_of[synset.hypernyms[0]] if synset.hypernyms else -1 for synset in synsets]
    order = depth_first(np.array(first, np.int32))
    if first.count(-1) != 1 or len(order) != len(synsets):
        raise SystemExit("the first hypernyms of data.noun do not form one tree; is this WordNet 3.0?")
    ordered = [synsets[row] for row in order]
    node_of = {synset.offset: node for node, synset in enumerate(ordered)}
    further = [(node, node_of[other]) for node, synset in enumerate(ordered) for other in synset.hypernyms[1:]]
    place = {word: at for at, word in enumerate(senses)}
    irregular = read_irregular(folder / "noun.exc", words=place)
    return {
        "words": letters(senses),
        "n_senses": np.array([len(offsets) for offsets in senses.values()], np.uint8),
        "senses": np.array([node_of[offset] for offsets in senses.values() for offset in offsets], np.int32),
        "parent": renumber(np.array(first, np.int32), order=order),
        "child": np.array([child for child, _ in further], np.int32),
        "hypernym": np.array([hypernym for _, hypernym in further], np.int32),
        "first_word": np.array([place[synset.first_word] for synset in ordered], np.int32),
        "sense_number": np.array([senses[s.first_word].index(s.offset) + 1 for s in ordered], np.uint8),
        "irregular": letters(irregular),
        "noun": np.array(list(irregular.values()), np.int32),
    }


def read_licence(path: Path) -> str:
    """Give the licence that every file of WordNet begins with, without its line numbers."""
    with path.open(encoding="ascii") as file:
        numbered = [line.strip() for line in file if line.startswith("  ")]
    return "\n".join(line.partition(" ")[2].rstrip() for line in numbered) + "\n"


def write(folder: Path, *, to: Path) -> dict[str, npt.NDArray[Any]]:
    """Write the table and the licence into a folder; gives the columns."""
    columns = build(folder)
    to.mkdir(parents=True, exist_ok=True)
    np.savez(to / "wordnet.npz", allow_pickle=False, **columns)
    (to / "WORDNET-LICENSE.txt").write_text(read_licence(folder / "data.noun"), encoding="ascii")
    return columns


def main(arguments: list[str]) -> None:
    """Write the package's table and say what is in it."""
    if len(arguments) != 1:
        raise SystemExit("usage: python tools/build_wordnet.py /usr/share/wordnet")
    columns = write(Path(arguments[0]), to=DATA)
    n_bytes = (DATA / "wordnet.npz").stat().st_size
    print(f"{len(columns['parent']):,} synsets, {len(columns['n_senses']):,} words, {len(columns['senses']):,} senses")
    print(f"{len(columns['child']):,} further hypernyms, {len(columns['noun']):,} irregular plurals, {n_bytes:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])

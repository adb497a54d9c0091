"""Build the corpus that personalised search is measured on, from the glosses in Debian's `wordnet-base`.

    python tools/build_corpus.py /usr/share/wordnet

writes src/queryveil/utility/data/glosses.jsonl.gz and the licence beside it. A document is a topic: a noun and what is
below it, some ten to thirty synsets with their words, glosses and examples. The same files give the same lines.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "queryveil"
DATA = PACKAGE / "utility" / "data"
CORPUS, LICENCE = "glosses.jsonl.gz", "WORDNET-LICENSE.txt"

FEWEST, MOST = 10, 30
"""Synsets of a document; only what is left over at the root may be less."""
PEOPLE = "18"


class Synset(NamedTuple):
    """One line of data.noun: what it is called, what it is a kind of, and what it means."""

    offset: str
    words: list[str]
    above: str | None
    gloss: str
    is_shown: bool


def read_synsets(path: Path) -> list[Synset]:
    """Read data.noun: offset, file, type, number of words (hex), words, number of pointers, pointers, gloss."""
    with path.open(encoding="ascii") as file:
        return [_synset(line) for line in file if not line.startswith("  ")]


def _synset(line: str) -> Synset:
    head, _, gloss = line.partition(" | ")
    fields = head.split()
    at = 4 + 2 * int(fields[3], 16)
    words = [word.replace("_", " ") for word in fields[4:at:2]]
    pointers = [fields[i : i + 2] for i in range(at + 1, at + 1 + 4 * int(fields[at]), 4)]
    kind, above = next(((kind, target) for kind, target in pointers if kind in ("@", "@i")), ("", None))
    # Privacy: people by name stay out. Names of several words only stay out for the size: logs are asked by word.
    is_shown = not (kind == "@i" and fields[1] == PEOPLE) and any(" " not in word for word in words)
    return Synset(fields[0], words, above, gloss.strip(), is_shown)


def topics(synsets: list[Synset]) -> list[tuple[Synset, list[Synset]]]:
    """Cut the tree of first hypernyms into topics: from below, as soon as enough has come together under a noun."""
    by_offset = {synset.offset: synset for synset in synsets}
    below: dict[str | None, list[str]] = {}
    for synset in synsets:
        below.setdefault(synset.above, []).append(synset.offset)
    gathered: dict[str, list[Synset]] = {}
    found = []
    (root,) = below[None]
    for offset in _from_below(root, below=below):
        synset = by_offset[offset]
        mine = [synset] if synset.is_shown else []
        mine += [each for child in below.get(offset, []) for each in gathered.pop(child)]
        gathered[offset] = mine
        if len(mine) >= FEWEST or (offset == root and mine):
            found += [(synset, part) for part in _even_parts(mine)]
            gathered[offset] = []
    return found


def _from_below(root: str, *, below: dict[str | None, list[str]]) -> Iterator[str]:
    """Give every node after all that is below it."""
    order, stack = [], [root]
    while stack:
        offset = stack.pop()
        order.append(offset)
        stack += below.get(offset, [])
    return reversed(order)


def _even_parts(synsets: list[Synset]) -> Iterator[list[Synset]]:
    n_parts = -(-len(synsets) // MOST)
    for i in range(n_parts):
        yield synsets[i * len(synsets) // n_parts : (i + 1) * len(synsets) // n_parts]


def documents(synsets: list[Synset]) -> Iterator[str]:
    """Give the topics as lines of JSON."""
    for number, (topic, members) in enumerate(topics(synsets), start=1):
        text = "\n".join(f"{', '.join(each.words)}: {each.gloss}" for each in members)
        yield json.dumps({"id": f"{number:04d}", "title": topic.words[0], "text": text})


def write(folder: Path, *, to: Path) -> int:
    """Write the corpus and the licence into a folder; gives the number of documents."""
    lines = list(documents(read_synsets(folder / "data.noun")))
    to.mkdir(parents=True, exist_ok=True)
    packed = gzip.compress("".join(f"{line}\n" for line in lines).encode("ascii"), compresslevel=9, mtime=0)
    (to / CORPUS).write_bytes(packed)
    (to / LICENCE).write_bytes((PACKAGE / "text" / "data" / LICENCE).read_bytes())
    return len(lines)


def main(arguments: list[str]) -> None:
    """Write the package's corpus and say what is in it."""
    if len(arguments) != 1:
        raise SystemExit("usage: python tools/build_corpus.py /usr/share/wordnet")
    n_documents = write(Path(arguments[0]), to=DATA)
    print(f"{n_documents:,} documents, {(DATA / CORPUS).stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])

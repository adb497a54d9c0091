"""Writes docs/reference/third-party.md from what is installed and pinned: python -m tools.third_party."""

from collections.abc import Iterable
from importlib.metadata import metadata
from typing import Any

from tools.lock import ROOT, asked, closure, pinned

PAGE = ROOT / "docs" / "reference" / "third-party.md"
_EXTRAS = ("dp", "pandas", "pdf", "search", "service", "spark")
_COPYLEFT = ("LGPL", "Lesser General", "GPL", "MPL", "Mozilla")
_HEAD = """# What comes from others

queryveil itself is under the Apache License 2.0 (`LICENSE`). This page is written by `python -m tools.third_party`.

## In the package

%s

The wheel holds no code of others. The packages below are installed beside it by pip, each under its own licence; `make`
installs them by the hashes in `requirements/`.
"""
_BUNDLED = (
    ("files", "made from", "licence"),
    ("---", "---", "---"),
    (
        "`text/data/wordnet.npz`, `utility/data/glosses.jsonl.gz`",
        "WordNet 3.0, Princeton University",
        "WordNet's own (`WORDNET-LICENSE.txt`)",
    ),
    (
        "`text/data/identifiers.npz`",
        "census of the United States 1990, symspellpy, GeoNames, faker, WordNet",
        "public domain, MIT, CC BY 3.0 and 4.0 (`IDENTIFIERS-SOURCES.txt`)",
    ),
    (
        "`text/data/categories.parquet`, `frequencies.parquet`, `shapes.npz`",
        "WordNet, symspellpy, wordllama, the same census, GeoNames",
        "as above (`CATEGORIES-SOURCES.txt`)",
    ),
    ("all else", "written for this package", "Apache-2.0"),
)
_LESSER = """## Copyleft

These are used as libraries, unchanged, and pip can exchange them for other versions, which is what the LGPL asks for.
Whoever hands out an image or an installer with them hands out their licence and source with it. The wheels of
psycopg-binary hold PostgreSQL's libpq and OpenSSL, those of confluent-kafka hold librdkafka and OpenSSL.
"""


def licence_of(found: Any) -> str:
    """Return the licence that a package states: as an expression, by classifiers or in a word."""
    expression = found.get("License-Expression")
    classifiers = [
        text.rsplit(" :: ", 1)[1] for text in found.get_all("Classifier") or () if text.startswith("License")
    ]
    stated = (found.get("License") or "").strip()
    # Some put the whole text there.
    return str(expression or " or ".join(classifiers) or stated.splitlines()[0])


def origin_of(found: Any) -> str:
    """Return where a package comes from: its source, else its home page."""
    links = dict(reversed([text.partition(", ")[::2] for text in found.get_all("Project-URL") or ()]))
    known = {name.lower(): link for name, link in links.items()}
    names = ("source", "source code", "source-code", "code", "github", "repository", "homepage", "home page")
    home = found.get("Home-page") or next(iter(links.values()))
    return str(next((known[name] for name in names if name in known), home))


def page() -> str:
    """Return the page as it should be."""
    versions, own = pinned(), set(closure(asked("run")))
    needed = {name: ["-"] for name in own}
    for extra in _EXTRAS:
        for name in set(closure(asked(extra))) - own:
            needed.setdefault(name, []).append(extra)
    rows = {}
    for name in sorted(needed):
        found = metadata(name)
        rows[name] = (name, versions[name], licence_of(found), ", ".join(needed[name]), origin_of(found))
    copyleft = [row for row in rows.values() if any(word in row[2] for word in _COPYLEFT)]
    return "\n".join(
        [
            _HEAD % "\n".join(_line(row) for row in _BUNDLED),
            "## Installed beside it",
            "",
            *_table(rows.values()),
            "",
            _LESSER,
            *_table(copyleft),
            "",
        ]
    )


def _table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    head = ["| package | version | licence | extra | origin |", "|---|---|---|---|---|"]
    return head + [_line(row) for row in rows]


def _line(row: Iterable[str]) -> str:
    return f"| {' | '.join(row)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""The texts of a release counted as the definition reads: one text after another, one person after another."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from queryveil.text.identifiers import find_identifiers

Row = tuple[str, str]
"""A person and a text."""


def form(text: str) -> str:
    """Return a text in the form in which texts are the same."""
    composed = unicodedata.normalize("NFC", text.replace("\0", " ")).lower()
    return " ".join(unicodedata.normalize("NFC", composed).split())


def people_of(text: str, asked: Iterable[Row]) -> set[str]:
    """Return the people who asked a text."""
    return {person for person, each in asked if form(each) == text}


def plain_counts(released: Iterable[str], asked: Iterable[Row]) -> dict[str, int]:
    """Count texts, those that one person alone asked and those with an identifier, and their rows."""
    rows, asked = [form(text) for text in released if form(text)], list(asked)
    texts = set(rows)
    of_one = {text for text in texts if len(people_of(text, asked)) == 1}
    named = {text for text in texts if find_identifiers(text)}
    return {
        "n_texts": len(texts),
        "n_of_one_person": len(of_one),
        "n_with_identifier": len(named),
        "n_rows_of_one_person": sum(text in of_one for text in rows),
        "n_rows_with_identifier": sum(text in named for text in rows),
    }

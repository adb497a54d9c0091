"""Shares of identifiers found and of innocent queries touched, on the made-up queries in `cases`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from queryveil.text.identifiers import Found, IdentifierKind, find_identifiers

FOLDER = Path(__file__).parent / "cases"
SETS = ["", "_held_out", "_fresh"]


class Case(NamedTuple):
    """A query, the kind of identifier in it, and the letters and digits that belong to it."""

    query: str
    kind: str
    inside: frozenset[int]

    def is_covered(self, found: list[Found]) -> bool:
        return self.inside <= {at for each in found for at in range(each.start, each.end)}


def identifiers(name: str) -> list[Case]:
    """Read queries under `[kind]`, their identifiers in braces."""
    cases, kind = [], ""
    for line in _lines(name):
        if section := re.fullmatch(r"\[(\w+)\]", line):
            kind = section[1]
            continue
        inside, depth = [], 0
        for letter in line:
            if letter in "{}":
                depth = letter == "{"
            else:
                inside.append(bool(depth) and letter.isalnum())
        marked = frozenset(at for at, is_inside in enumerate(inside) if is_inside)
        cases.append(Case(re.sub("[{}]", "", line), kind, marked))
    return cases


def innocents(name: str) -> list[str]:
    """Read queries without identifiers."""
    return _lines(name)


def _lines(name: str) -> list[str]:
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("suffix", SETS)
def test_numbers_and_patterns_are_found(suffix: str) -> None:
    cases = [case for case in identifiers(f"identifiers{suffix}") if case.kind not in ("name", "place")]
    found = [case for case in cases if case.is_covered(find_identifiers(case.query))]
    assert len(found) >= 0.98 * len(cases)


@pytest.mark.parametrize("suffix", SETS)
@pytest.mark.parametrize("kind", ["name", "place"])
def test_names_and_places_are_found(kind: str, suffix: str) -> None:
    cases = [case for case in identifiers(f"identifiers{suffix}") if case.kind == kind]
    found = [case for case in cases if case.is_covered(find_identifiers(case.query))]
    assert len(found) >= 0.9 * len(cases)


@pytest.mark.parametrize("suffix", SETS)
def test_nearly_every_identifier_is_counted_as_what_it_is(suffix: str) -> None:
    cases = identifiers(f"identifiers{suffix}")
    named = [case for case in cases if case.kind in {each.kind for each in find_identifiers(case.query)}]
    assert len(named) >= 0.95 * len(cases)


@pytest.mark.parametrize("suffix", SETS)
def test_innocent_queries_are_left_alone(suffix: str) -> None:
    queries = innocents(f"innocents{suffix}")
    assert len([query for query in queries if find_identifiers(query)]) <= 0.01 * len(queries)


def test_the_cases_are_many_and_of_every_kind() -> None:
    cases = identifiers("identifiers")
    assert len(cases) >= 300
    assert {case.kind for case in cases} == set(IdentifierKind)
    assert min(Counter(case.kind for case in cases).values()) >= 8
    assert len(set(innocents("innocents"))) >= 300
    assert not {case.query for case in cases} & {case.query for case in identifiers("identifiers_held_out")} - {
        "123-45-6789"
    }


def test_the_fresh_cases_are_many_and_new() -> None:
    cases = identifiers("identifiers_fresh")
    assert len(cases) >= 700
    assert {case.kind for case in cases} == set(IdentifierKind)
    assert len(set(innocents("innocents_fresh"))) >= 1_500
    for suffix in SETS[:2]:
        assert not {case.query for case in cases} & {case.query for case in identifiers(f"identifiers{suffix}")}
        assert not set(innocents("innocents_fresh")) & set(innocents(f"innocents{suffix}"))

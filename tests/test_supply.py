"""What is installed: by hash, from no named index, under known licences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from tools import lock, third_party

ROOT = Path(__file__).resolve().parents[1]
LINE = re.compile(r"([a-z0-9.-]+)==([^ ]+)( ; [^\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)")


def listed(name: str) -> dict[str, str]:
    text = (lock.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=[a-z])", text.rstrip("\n"))[1:]
    found = [LINE.fullmatch(entry) for entry in entries]
    assert None not in found, name
    return {each[1]: each[2] for each in found if each is not None}


@pytest.mark.parametrize("name", lock.SETS)
def test_every_package_has_hashes_and_the_version_of_the_constraints(name: str) -> None:
    pinned = lock.pinned()
    found = listed(name)
    assert found == {package: pinned[package] for package in found}


def test_the_lists_hold_what_is_asked_for_and_all_that_it_needs() -> None:
    for name in ("run", "test"):
        assert set(lock.closure(lock.asked(name))) <= set(listed(name))
    assert {canonicalize_name(each.name) for each in lock.asked("bench")} <= set(listed("bench"))
    assert set(listed("run")) <= set(listed("test"))


def test_make_installs_nothing_without_a_hash() -> None:
    lines = [line for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines() if "$(PIP) install" in line]
    assert lines
    for line in lines:
        assert "$(HASHED)" in line or "--no-deps --no-build-isolation -e ." in line, line


def test_no_list_names_an_index() -> None:
    for path in [ROOT / "constraints.txt", *lock.FOLDER.iterdir()]:
        assert "//" not in path.read_text(encoding="utf-8"), path.name


def test_the_page_of_what_comes_from_others_is_current() -> None:
    assert third_party.PAGE.read_text(encoding="utf-8") == third_party.page()


def test_the_parts_under_the_lgpl_are_named() -> None:
    lesser = third_party.PAGE.read_text(encoding="utf-8").partition("## Copyleft")[2]
    assert all(name in lesser for name in ("psycopg", "psycopg-binary", "python-stdnum"))


def test_it_is_said_how_to_report_a_vulnerability() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "private advisory" in text
    assert "@" not in text

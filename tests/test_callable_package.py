"""Packages that can be called."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from queryveil.callable_package import make_callable


def test_a_package_answers_as_its_verb_and_stays_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("made_up_package")
    package.__dict__["verb"] = lambda first, *, second: (first, second)
    monkeypatch.setitem(sys.modules, package.__name__, package)
    make_callable(package.__name__, verb="verb")
    assert callable(package)
    assert package(1, second=2) == (1, 2)
    assert isinstance(package, ModuleType)


def test_a_package_that_was_not_made_callable_is_not_callable() -> None:
    assert not callable(ModuleType("another_package"))

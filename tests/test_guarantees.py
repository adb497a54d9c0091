"""Promises in words that are never better than the promise."""

from __future__ import annotations

import re
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.guarantees import DifferentialPrivacy


def said(epsilon: float, delta: float) -> tuple[str, str]:
    words = DifferentialPrivacy(epsilon=epsilon, delta=delta).in_words()
    found = re.search(r"a factor of at most (\S+), plus at most (.+)\.$", words)
    assert found is not None
    return found[1], found[2]


@given(
    epsilon=st.floats(1e-6, 100, allow_subnormal=False), delta=st.floats(1e-300, 1, exclude_max=True, exclude_min=True)
)
def test_numbers_are_rounded_up_and_never_to_one(epsilon: float, delta: float) -> None:
    factor, part = said(epsilon, delta)
    n = float(factor.replace(",", ""))
    assert exp(epsilon) <= n * (1 + 1e-12)
    assert 1 < n <= exp(epsilon) * 1.02
    chance = 1 / float(part.removeprefix("1 in ").replace(",", "")) if part.startswith("1 in ") else float(part)
    assert delta * (1 - 1e-12) <= chance < 1
    assert chance <= delta * 1.2


@pytest.mark.parametrize(
    ("epsilon", "factor"),
    [(1e-4, "1.00011"), (0.01, "1.011"), (0.5, "1.65"), (1, "2.72"), (5, "149"), (8, "2,981"), (10, "22,027")],
)
def test_a_factor_is_written_for_people(epsilon: float, factor: str) -> None:
    assert said(epsilon, 1e-5)[0] == factor
    assert said(100, 1e-5)[0] == "2.69e+43"


@pytest.mark.parametrize(
    ("delta", "part"),
    [
        (1e-5, "1 in 100,000"),
        (1e-12, "1 in 1,000,000,000,000"),
        (1e-13, "1e-13"),
        (1e-100, "1e-100"),
        (0.1, "1 in 10"),
        (0.5, "0.5"),
        (0.9999999, "0.9999999"),
    ],
)
def test_a_part_is_1_in_so_many_as_far_as_that_can_be_pictured(delta: float, part: str) -> None:
    assert said(1, delta)[1] == part

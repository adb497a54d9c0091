"""What noise gives away: closed forms against every outcome written down, and figures worked out elsewhere."""

from __future__ import annotations

from math import exp, expm1, log1p
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.dp_by_force import delta_by_force, noise_by_force
from tests.support.examples import examples

from queryveil.checks._dp_noise import Gaussian, Geometric, bare_noise, delta_of, is_known, most_of
from queryveil.release import Noise

LITTLE = 1 + 1e-9


def noise(mechanism: Any, max_items: int, scale: float, threshold: int, **others: Any) -> Noise:
    others = {"epsilon": 1.0, "delta": 1e-5} | others
    return Noise(what="queries", mechanism=mechanism, max_items=max_items, scale=scale, threshold=threshold, **others)


SHARP = [
    noise("laplace", 1, 1.0, 13),
    noise("laplace", 1, 0.5, 13),
    noise("laplace", 2, 2.0, 25),
    noise("laplace", 2, 1.3, 6),
    noise("laplace", 3, 2.0, 9),
    noise("gaussian", 1, 3.7405, 18),
    noise("gaussian", 2, 5.2763, 25),
    noise("gaussian", 2, 2.6, 25),
    noise("gaussian", 2, 1.2, 5),
    noise("gaussian", 3, 0.6, 3),
    noise("gaussian", 1, 0.3, 2),
    noise("gaussian", 2, 5.0, 9),
    noise("zealous", 2, 4.0, 60, least=20),
    noise("zealous", 1, 1.0, 14, least=3),
    noise("zealous", 2, 1.0, 2, least=3),
    noise("truncated-geometric", 1, 1.0, 12, top=11, shift=2**31),
    noise("truncated-geometric", 2, 2.0, 23, top=22, shift=2**30),
    noise("truncated-geometric", 2, 1.0, 5, top=4, shift=2**30),
    noise("truncated-geometric", 2, 1.0, 3, top=1, shift=2**30),
    noise("truncated-geometric", 1, 0.025, 2, top=1, shift=42_940),
    noise("truncated-geometric", 2, 0.05, 2, top=1, shift=2**31),
    noise("truncated-geometric", 3, 0.7, 4, top=9, shift=2**32 - 1),
    noise("truncated-geometric", 2, 1.0, -3, top=5, shift=2**31),
]


@pytest.mark.parametrize("epsilon", [0.01, 0.3, LITTLE, 2.0])
@pytest.mark.parametrize("part", SHARP, ids=lambda part: f"{part.mechanism}-{part.max_items}-{part.scale}")
def test_the_closed_forms_agree_with_every_outcome_written_down(part: Noise, epsilon: float) -> None:
    assert delta_of(part, epsilon=epsilon) == pytest.approx(delta_by_force(part, epsilon=epsilon), rel=1e-6, abs=1e-15)


@st.composite
def parts(draw: st.DrawFn) -> Noise:
    mechanism = draw(st.sampled_from(["laplace", "gaussian", "zealous", "truncated-geometric"]))
    others: dict[str, Any] = {}
    if mechanism == "zealous":
        others["least"] = draw(st.integers(1, 4))
    if mechanism == "truncated-geometric":
        others |= {"top": draw(st.integers(1, 8)), "shift": draw(st.integers(0, 2**32 - 1))}
    scale = draw(st.floats(0.3, 3.0))
    return noise(mechanism, draw(st.integers(1, 2)), scale, draw(st.integers(-2, 12)), **others)


@examples(60)
@given(part=parts(), epsilon=st.floats(0.01, 4.0))
def test_they_agree_on_whatever_noise_there_is(part: Noise, epsilon: float) -> None:
    assert delta_of(part, epsilon=epsilon) == pytest.approx(delta_by_force(part, epsilon=epsilon), rel=1e-6, abs=1e-13)


@pytest.mark.parametrize(
    ("n", "too_low", "delta"), [(1, 12, 1.22e-5), (2, 24, 1.26e-5), (5, 63, 1.13e-5), (10, 132, 1.07e-5)]
)
def test_thresholds_of_a_library_that_forgets_the_count_itself_are_one_too_low(
    n: int, too_low: int, delta: float
) -> None:
    assert delta_of(noise("laplace", n, float(n), too_low), epsilon=LITTLE) == pytest.approx(delta, rel=4e-3)
    assert delta_of(noise("laplace", n, float(n), too_low + 1), epsilon=LITTLE) <= 1e-5


@pytest.mark.parametrize(
    ("n", "scale", "threshold"), [(1, 3.7405, 18), (2, 5.2763, 25), (3, 6.4637, 31), (5, 8.3427, 40), (10, 11.8, 58)]
)
def test_gaussian_noise_is_enough_where_it_was_found_to_be_and_a_little_less_is_not(
    n: int, scale: float, threshold: int
) -> None:
    assert 9.9e-6 < delta_of(noise("gaussian", n, scale, threshold), epsilon=1.0) <= 1e-5
    assert delta_of(noise("gaussian", n, scale, threshold - 1), epsilon=1.0) > 1e-5
    assert delta_of(noise("gaussian", n, scale * 0.99, threshold), epsilon=1.0) > 1e-5
    assert delta_of(noise("gaussian", n, scale / 2, threshold), epsilon=1.0) > 5e-3


def test_truncated_geometric_noise_costs_the_chance_of_its_top_value() -> None:
    part = noise("truncated-geometric", 1, 1.0, 12, top=11, shift=2**30)
    top = noise_by_force(part)[11]
    assert delta_of(part, epsilon=LITTLE) == pytest.approx(top, rel=1e-9)
    lower = msgspec.structs.replace(part, threshold=11)
    assert delta_of(lower, epsilon=LITTLE) > 2 * top


def test_a_sum_of_discrete_gaussians_is_one_from_scale_2_on() -> None:
    for scale in (1.999, 2.0, 2.3):
        z = np.arange(-60, 61)
        one = np.exp(-(z**2) / (2 * scale**2))
        one /= one.sum()
        total = np.ones(1)
        for _ in range(5):
            total = np.convolve(total, one)
        loss = (2 * np.arange(-300, 301) + 5) / (2 * scale**2)
        for epsilon in (-1.0, 0.0, 0.5, 3.0):
            plain = float((total * np.maximum(0, -np.expm1(epsilon - loss))).sum())
            assert Gaussian(scale=scale).beyond(5, epsilon) == pytest.approx((plain, plain), rel=1e-9)


def test_very_wide_noise_is_summed_up_as_an_integral() -> None:
    narrow, wide = Gaussian(scale=0.99e5), Gaussian(scale=1.01e5)
    for epsilon in (1e-6, 1e-5, 5e-5):
        there, here = narrow.beyond(1, epsilon / 0.99)[0], wide.beyond(1, epsilon / 1.01)[0]
        assert 0.99 * there == pytest.approx(1.01 * here, rel=1e-3)
    assert narrow.at_least(99_000 * 3) == pytest.approx(wide.at_least(101_000 * 3), rel=1e-4)


@pytest.mark.parametrize(
    "part",
    [
        noise("gaussian", 60, 10.0, 40),
        noise("gaussian", 60, 40.0, 100),
        noise("laplace", 60, 50.0, 300),
        noise("truncated-geometric", 60, 50.0, 200, top=180, shift=2**31),
    ],
    ids=lambda part: f"{part.mechanism}-{part.scale}",
)
def test_no_number_of_new_counts_is_overlooked(part: Noise) -> None:
    bare = bare_noise(part)
    kept = log1p(-bare.at_least(part.threshold - 1))
    for epsilon in (0.01, 1.0):
        worst = 0.0
        for new in range(61):
            more, _ = bare.beyond(60 - new, epsilon - new * kept)
            _, less = bare.beyond(60 - new, epsilon + new * kept)
            worst = max(worst, -expm1(new * kept) + exp(new * kept) * more, less)
        assert delta_of(part, epsilon=epsilon) == pytest.approx(worst, rel=1e-9)


def test_the_worst_case_may_be_that_some_counts_are_new_and_some_are_not() -> None:
    part = noise("laplace", 2, 1.3, 3)
    bare = bare_noise(part)
    all_new = -expm1(2 * log1p(-bare.at_least(2)))
    none_new = bare.beyond(2, 0.01)[0]
    found = delta_of(part, epsilon=0.01)
    assert found > 1.02 * max(all_new, none_new)
    assert found == pytest.approx(delta_by_force(part, epsilon=0.01), rel=1e-9)


def test_with_a_stated_delta_it_is_only_said_whether_that_is_exceeded() -> None:
    for part in SHARP:
        delta = delta_of(part, epsilon=0.3)
        assert delta_of(part, epsilon=0.3, stated=delta * (1 + 1e-9)) <= delta * (1 + 1e-9)
        if delta > 0:
            assert delta * 0.99 < delta_of(part, epsilon=0.3, stated=delta * 0.99) <= delta * (1 + 1e-9)
            assert delta_of(part, epsilon=0.3, stated=delta / 1e6) > delta / 1e6


def test_noise_that_was_thought_up_to_keep_a_checker_busy_is_judged_with_few_looks() -> None:
    looks = 0

    class Counted(Geometric):
        def beyond(self, n: int, epsilon: float) -> tuple[float, float]:
            nonlocal looks
            looks += 1
            return Geometric.beyond(self, n, epsilon)

    for epsilon in (0.2, 0.5, 0.9, 0.999):
        part = noise("truncated-geometric", 1000, 1000.0, 12_001, top=12_000, shift=2**31, epsilon=epsilon)
        bare = Counted(scale=part.scale, shift=0.5, top=part.top)
        assert is_known(part)
        assert delta_of(part, epsilon=epsilon, stated=part.delta, bare=bare) <= part.delta
        assert looks < 50


def test_outcomes_of_three_kinds_are_never_too_little_where_there_are_too_many_to_tell_apart() -> None:
    for top in (None, 40):
        for shift in (0.1, 0.7):
            bare = Geometric(scale=60.0, shift=shift, top=top)
            few, many = bare.beyond(200, 0.5), bare.beyond(201, 0.5)
            assert all(more >= fewer for fewer, more in zip(few, many, strict=True))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "zealous"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 3e5])
def test_the_largest_noise_to_expect_is_one_in_a_million_million(mechanism: str, scale: float) -> None:
    part = noise(mechanism, 1, scale, 13)
    most = most_of(part)
    assert bare_noise(part).at_least(most) >= 1e-12 > bare_noise(part).at_least(most + 1)
    assert most_of(noise("truncated-geometric", 1, scale, 13, top=12)) == 12


@pytest.mark.slow
def test_ten_thousand_counts_are_judged_at_once() -> None:
    for part in (
        noise("laplace", 10_000, 1e4, 400_000),
        noise("laplace", 10_000, 10.0, 400_000),
        noise("gaussian", 10_000, 380.0, 2_500),
        noise("gaussian", 10_000, 1.5, 25),
        noise("truncated-geometric", 10_000, 1e4, 400_000, top=399_999, shift=2**31),
    ):
        assert 0 <= delta_of(part, epsilon=1.0) <= 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_items": 0},
        {"max_items": 1001},
        {"max_items": 10**9},
        {"scale": 0.0},
        {"scale": -1.0},
        {"scale": 0.004},
        {"scale": float("inf")},
        {"scale": float("nan")},
        {"epsilon": float("nan")},
        {"epsilon": -1.0},
        {"epsilon": 100.1},
        {"delta": -1e-9},
        {"delta": 1.5},
        {"least": 2},
        {"top": 5},
        {"shift": 1},
        {"threshold": 10**30},
        {"mechanism": "truncated-geometric"},
        {"mechanism": "truncated-geometric", "top": 5, "shift": 2**33},
        {"mechanism": "truncated-geometric", "top": 5, "shift": 2**32},
        {"mechanism": "truncated-geometric", "top": 0},
        {"mechanism": "truncated-geometric", "top": -(10**20)},
        {"mechanism": "zealous", "least": 0},
    ],
    ids=str,
)
def test_values_that_no_mechanism_has_are_not_taken_for_noise(wrong: dict[str, Any]) -> None:
    part = noise("laplace", 1, 1.0, 13)
    assert is_known(part)
    assert not is_known(msgspec.structs.replace(part, **wrong))

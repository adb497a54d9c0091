"""The accounting agrees with the definition, and the closed forms with sums of single chances."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import exp, expm1, log1p

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.plain_dp import plain_chances, plain_delta

from queryveil.methods.dp import Mechanism
from queryveil.methods.dp._mechanisms import (
    Divergence,
    gaussian,
    gaussian_divergence,
    half_count,
    keeps,
    plan_for,
    release_chance,
    tail,
    top_chance,
)
from queryveil.release import Noise

KINDS = [each for each in Mechanism if each is not Mechanism.AUTO]


def spent(divergence: Divergence, *, appears: float, n_new: int, max_items: int, epsilon: float) -> float:
    """Return the delta at epsilon if `n_new` of a person's counts appear with them and the others grow."""
    loss = n_new * log1p(-appears)
    seen = -expm1(loss) + exp(loss) * divergence(max_items - n_new, epsilon - loss)
    return max(seen, divergence(max_items - n_new, epsilon + loss))


@pytest.mark.parametrize("n_items", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_no_neighbouring_counts_give_away_more_than_delta(kind: Mechanism, n_items: int) -> None:
    plan = plan_for(mechanism=kind, epsilon=1.0, delta=1e-3, max_items=n_items)
    sharp = (0, 1, plan.least - 1, plan.threshold - 1, plan.threshold, plan.threshold + 100)
    worst = max(
        plain_delta(plan, without=counts, epsilon=1.0) for counts in combinations_with_replacement(sharp, n_items)
    )
    assert worst <= 1e-3
    # Nor is much left unused: a step down of the threshold would already be too much.
    lower = Noise(**{name: getattr(plan, name) for name in plan.__struct_fields__} | {"threshold": plan.threshold - 1})
    assert plain_delta(lower, without=[plan.least - 1] * n_items, epsilon=1.0) > 1e-3


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-2), (2.0, 1e-4), (5.0, 1e-2)])
@pytest.mark.parametrize("n_new", [0, 1, 2, 3])
def test_the_delta_of_each_mixture_is_that_of_the_definition(n_new: int, epsilon: float, delta: float) -> None:
    plan = plan_for(mechanism="gaussian", epsilon=epsilon, delta=delta, max_items=3)
    without = [0] * n_new + [plan.threshold + 200] * (3 - n_new)
    by_formula = spent(
        gaussian_divergence(plan.scale, delta=delta),
        appears=float(tail(plan, np.array([plan.threshold - 1]))[0]),
        n_new=n_new,
        max_items=3,
        epsilon=epsilon,
    )
    assert by_formula == pytest.approx(plain_delta(plan, without=without, epsilon=epsilon), rel=1e-6)
    assert by_formula <= delta


def test_a_mixture_that_spends_more_than_noise_alone_and_threshold_alone_is_seen() -> None:
    divergence = gaussian_divergence(0.5, delta=1e-3)
    alone = divergence(3, 2.0)
    appears = -expm1(log1p(-alone) / 3)
    by_new = [spent(divergence, appears=appears, n_new=n, max_items=3, epsilon=2.0) for n in range(4)]
    assert by_new == pytest.approx([0.760, 0.801, 0.653, 0.760], abs=1e-3)
    assert not keeps(divergence, appears=appears, max_items=3, epsilon=2.0, delta=0.78)
    assert keeps(divergence, appears=appears, max_items=3, epsilon=2.0, delta=0.81)


@given(
    scale=st.floats(0.5, 30),
    appears=st.floats(1e-9, 0.3),
    max_items=st.integers(1, 30),
    epsilon=st.floats(0.01, 5),
    delta=st.floats(1e-9, 0.9),
)
def test_judging_many_mixtures_at_once_says_the_same_as_one_by_one(
    scale: float, appears: float, max_items: int, epsilon: float, delta: float
) -> None:
    divergence = gaussian_divergence(scale, delta=delta)
    worst = max(
        spent(divergence, appears=appears, n_new=n, max_items=max_items, epsilon=epsilon) for n in range(max_items + 1)
    )
    assert keeps(divergence, appears=appears, max_items=max_items, epsilon=epsilon, delta=delta) == (worst <= delta)


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.99, 4.0, 5.5])
@pytest.mark.parametrize("n_terms", [2, 3, 7])
def test_sums_of_gaussians_have_the_chances_of_a_convolution(scale: float, n_terms: int) -> None:
    lowest, one = gaussian(scale, reach=12.0)
    whole = one
    for _ in range(n_terms - 1):
        whole = np.convolve(whole, one)
    start, chances = gaussian(scale, n_terms=n_terms, reach=12.0)
    expected = whole[start - n_terms * lowest :][: len(chances)]
    assert chances == pytest.approx(expected, rel=1e-9, abs=1e-28)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_items", [1, 4])
def test_tails_are_sums_of_single_chances(kind: Mechanism, max_items: int) -> None:
    plan = plan_for(mechanism=kind, epsilon=1.3, delta=1e-4, max_items=max_items)
    chances = plain_chances(plan)
    values = np.arange(-60, plan.threshold + 30)
    expected = [sum(p for z, p in sorted(chances.items(), reverse=True) if z >= least) for least in values]
    assert tail(plan, values) == pytest.approx(expected, rel=1e-9, abs=1e-16)
    counts = np.arange(plan.threshold + 40)
    leaves = [sum(p for z, p in chances.items() if n >= plan.least and n + z >= plan.threshold) for n in counts]
    assert release_chance(plan, counts) == pytest.approx(leaves, rel=1e-9, abs=1e-16)
    assert abs(float(np.interp(half_count(plan), counts, leaves)) - 0.5) < 1e-6


@given(scale=st.floats(0.3, 20), top=st.integers(1, 30), parts=st.integers(0, 2**32 - 1))
def test_the_chance_of_the_top_is_that_of_the_definition(scale: float, top: int, parts: int) -> None:
    noise = Noise(
        what="queries",
        mechanism="truncated-geometric",
        max_items=1,
        scale=scale,
        threshold=top + 1,
        epsilon=1 / scale,
        delta=0.1,
        top=top,
        shift=parts,
    )
    expected = plain_chances(noise).get(top, 0.0)
    assert top_chance(scale, top, parts / 2**32) == pytest.approx(expected, rel=1e-9, abs=1e-23)


def test_more_counts_and_a_smaller_epsilon_give_away_more() -> None:
    divergence = gaussian_divergence(3.0, delta=1e-6)
    by_items = [divergence(n, 1.0) for n in range(8)]
    assert by_items == sorted(by_items)
    assert by_items[0] == 0
    assert divergence(0, -1.0) == pytest.approx(1 - exp(-1))
    assert divergence(3, 0.5) > divergence(3, 1.0) > divergence(3, 2.0) > 0

"""Plans of noise: golden thresholds, what the checker says of them, and which is chosen."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.checks._dp_noise import delta_of
from queryveil.errors import BadParameter
from queryveil.methods.dp import Mechanism
from queryveil.methods.dp._mechanisms import half_count, plan_for, plans_for, release_chance
from queryveil.methods.settings import DpSettings

KINDS = [each for each in Mechanism if each is not Mechanism.AUTO]
LAPLACE = {1: 13, 2: 25, 5: 64, 10: 133}
"""One more than where OpenDP 0.16 puts them: at 12, 24, 63 and 132 delta is above 1e-5."""
GAUSSIAN = {1: (3.7405, 18), 2: (5.2755, 25), 3: (6.4621, 31), 5: (8.3407, 40), 10: (11.7972, 58)}
TRUNCATED = {1: (12, 11.368), 2: (23, 22.182), 5: (56, 54.583), 10: (110, 108.692)}


@pytest.mark.parametrize(("max_items", "threshold"), LAPLACE.items())
def test_laplace_thresholds_are_those_that_keep_delta(max_items: int, threshold: int) -> None:
    plan = plan_for(mechanism="laplace", epsilon=1.0, delta=1e-5, max_items=max_items)
    assert (plan.scale, plan.threshold) == (float(max_items), threshold)


@pytest.mark.parametrize(("max_items", "expected"), GAUSSIAN.items())
def test_gaussian_scales_and_thresholds(max_items: int, expected: tuple[float, int]) -> None:
    plan = plan_for(mechanism="gaussian", epsilon=1.0, delta=1e-5, max_items=max_items)
    assert (plan.scale, plan.threshold) == expected


@pytest.mark.parametrize(("max_items", "expected"), TRUNCATED.items())
def test_truncated_geometric_thresholds_and_the_counts_that_leave_half_of_the_time(
    max_items: int, expected: tuple[int, float]
) -> None:
    plan = plan_for(mechanism="truncated-geometric", epsilon=1.0, delta=1e-5, max_items=max_items)
    assert plan.threshold == expected[0] == (plan.top or 0) + 1
    assert half_count(plan) == pytest.approx(expected[1], abs=5e-4)


def optimum(epsilon: float, delta: float, *, n: int) -> list[float]:
    """Desfontaines et al.: the largest chance with which any mechanism may let a query of each count leave."""
    best = [0.0]
    for _ in range(n):
        best.append(min(np.exp(epsilon) * best[-1] + delta, 1 - np.exp(-epsilon) * (1 - best[-1] - delta), 1.0))
    return best


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_truncated_geometric_noise_lets_queries_leave_as_often_as_any_mechanism_may(epsilon: float) -> None:
    plan = plan_for(mechanism="truncated-geometric", epsilon=epsilon, delta=1e-5, max_items=1)
    chances = release_chance(plan, np.arange(300))
    allowed = optimum(epsilon, 1e-5, n=299)
    assert np.all(chances <= np.array(allowed) + 1e-9)
    assert chances.sum() >= sum(allowed) - 0.01


@examples(60)
@given(
    kind=st.sampled_from([*Mechanism]),
    epsilon=st.floats(0.05, 20),
    delta=st.floats(-12, -0.5).map(lambda power: 10**power),
    max_items=st.integers(1, 12),
)
def test_the_checker_finds_every_plan_within_what_it_states(
    kind: Mechanism, epsilon: float, delta: float, max_items: int
) -> None:
    plan = plan_for(mechanism=kind, epsilon=epsilon, delta=delta, max_items=max_items)
    assert (plan.epsilon, plan.delta, plan.max_items) == (epsilon, delta, max_items)
    assert plan.threshold >= 2
    # Losses of truncated noise are epsilon itself, and rounded ones may lie above it; verify allows as much.
    assert delta_of(plan, epsilon=epsilon * (1 + 1e-9)) <= delta * (1 + 1e-9)


@given(
    epsilon=st.floats(0.01, 100),
    delta=st.floats(-40, -0.01).map(lambda power: 10**power),
    max_items=st.integers(1, 1000),
)
def test_truncated_geometric_noise_is_within_its_budget_in_exact_arithmetic(
    epsilon: float, delta: float, max_items: int
) -> None:
    plan = plan_for(mechanism="truncated-geometric", epsilon=epsilon, delta=delta, max_items=max_items)
    assert plan.top is not None
    assert Fraction(max_items) / Fraction(plan.scale) <= Fraction(epsilon)
    with localcontext(prec=80):
        a, shift = (-1 / Decimal(plan.scale)).exp(), Decimal(plan.shift) / 2**32
        up = (1 - shift) * a + shift
        at_top = (1 - a) * a ** (plan.top - 1) * up / (1 + a - a**plan.top * up)
        assert 1 - (1 - at_top) ** max_items <= Decimal(delta)
        # What a count that stays out gives away is no more than what one that grows does.
        assert 1 - at_top >= a


@pytest.mark.parametrize("delta", [1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("max_items", [1, 2, 5, 10, 100])
def test_the_choice_lets_the_smallest_counts_leave(epsilon: float, delta: float, max_items: int) -> None:
    chosen = plan_for(epsilon=epsilon, delta=delta, max_items=max_items)
    assert chosen.mechanism == ("truncated-geometric" if max_items <= 2 else "gaussian")
    for kind in KINDS:
        other = plan_for(mechanism=kind, epsilon=epsilon, delta=delta, max_items=max_items)
        assert half_count(chosen) <= half_count(other)


def test_zealous_needs_more_people_than_laplace_and_has_two_thresholds() -> None:
    plan = plan_for(mechanism="zealous", epsilon=1.0, delta=1e-5, max_items=5)
    assert (plan.scale, plan.least, plan.threshold) == (10.0, 10, 135)
    assert release_chance(plan, np.array([9]))[0] == 0


@examples(40)
@given(
    epsilon=st.floats(0.1, 10),
    delta=st.floats(1e-9, 1e-3),
    rounds=st.sampled_from([1, 2]),
    clicks=st.floats(0.05, 0.9) | st.just(0.0),
)
def test_the_parts_never_add_up_to_more_than_the_whole(
    epsilon: float, delta: float, rounds: Literal[1, 2], clicks: float
) -> None:
    plans = plans_for(
        DpSettings(epsilon=epsilon, delta=delta, rounds=rounds, max_queries=1, clicks=clicks, max_clicks=2)
    )
    assert [plan.what for plan in plans] == ["queries"] * rounds + ["clicks"] * (clicks > 0)
    for name, whole in (("epsilon", epsilon), ("delta", delta)):
        total = sum(Fraction(getattr(plan, name)) for plan in plans)
        assert total <= Fraction(whole)
        assert float(total) == pytest.approx(whole, rel=1e-12)


def test_settings_that_no_noise_can_keep_are_refused() -> None:
    with pytest.raises(BadParameter, match=r"epsilon must be 0\.0001 or more in each part of a release, got 1e-05"):
        plan_for(epsilon=1e-5, delta=1e-5, max_items=1)
    with pytest.raises(BadParameter, match="delta must be 1e-100 or more in each part"):
        plan_for(epsilon=1.0, delta=1e-200, max_items=1)
    with pytest.raises(BadParameter, match="epsilon must be larger for gaussian noise on so many counts"):
        plan_for(mechanism="gaussian", epsilon=0.001, delta=1e-5, max_items=1000)
    assert plan_for(epsilon=0.001, delta=1e-5, max_items=1000).mechanism == "truncated-geometric"
    with pytest.raises(BadParameter, match="mechanism must be one of auto, truncated-geometric"):
        plan_for(mechanism="exponential", epsilon=1.0, delta=1e-5, max_items=1)

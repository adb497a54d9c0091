"""How epsilon and delta are shared out among the rounds and the clicks of one release."""

from __future__ import annotations

from fractions import Fraction
from math import nextafter

from queryveil.errors import BadParameter
from queryveil.methods.dp_mechanisms import LEAST_DELTA, LEAST_EPSILON, plan_for
from queryveil.release import Noise

FIRST_ROUND = 0.2
"""The part of the queries' budget that the first of two rounds spends."""


def plans_for(
    *,
    epsilon: float,
    delta: float,
    mechanism: str,
    rounds: int,
    max_queries: int,
    clicks: float,
    max_clicks: int,
) -> tuple[Noise, ...]:
    """Give the noise of each part of a release, the queries' first; what they spend adds up to no more than the whole.

    >>> plans = plans_for(
    ...     epsilon=1.0, delta=1e-5, mechanism="auto", rounds=2, max_queries=1, clicks=0.5, max_clicks=5
    ... )
    >>> [(plan.what, round(plan.epsilon, 6)) for plan in plans]
    [('queries', 0.1), ('queries', 0.4), ('clicks', 0.5)]
    """
    for_clicks, for_queries = _split((epsilon, delta), clicks)
    if clicks:
        _check_clicks(clicks, whole=(epsilon, delta), first=1.0 if rounds == 1 else FIRST_ROUND)
    parts = [for_queries] if rounds == 1 else list(_split(for_queries, FIRST_ROUND))
    plans = [
        plan_for(mechanism=mechanism, epsilon=part[0], delta=part[1], max_items=max_queries, what="queries")
        for part in parts
    ]
    if clicks:
        plans.append(
            plan_for(
                mechanism=mechanism, epsilon=for_clicks[0], delta=for_clicks[1], max_items=max_clicks, what="clicks"
            )
        )
    return tuple(plans)


def _check_clicks(clicks: float, *, whole: tuple[float, float], first: float) -> None:
    """Raise if it is for this part that the queries or the clicks get less than any noise can do with."""
    for name, amount, least in zip(("epsilon", "delta"), whole, (LEAST_EPSILON, LEAST_DELTA), strict=True):
        for what, share in (("queries", (1 - clicks) * first), ("clicks", clicks)):
            if amount * share < least <= amount * first:
                allowed = f"a part of the budget that leaves the {what} {name} {least:g} or more"
                raise BadParameter("clicks", clicks, allowed=allowed)


def _split(budget: tuple[float, float], share: float) -> tuple[tuple[float, float], tuple[float, float]]:
    epsilons, deltas = (_parts(whole, share) for whole in budget)
    return (epsilons[0], deltas[0]), (epsilons[1], deltas[1])


def _parts(whole: float, share: float) -> tuple[float, float]:
    """Give two floats whose exact sum is not above the whole."""
    first = whole * share
    rest = whole - first
    while Fraction(first) + Fraction(rest) > Fraction(whole):
        rest = nextafter(rest, 0.0)
    return first, rest

"""Weights of bins: the fast fit agrees with one on the whole table, and finds what was put in."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.attacks._learning import fit_bins, learned_scores
from queryveil.data import Floats, Int64s


def on_the_whole_table(bins: Int64s, truth: Floats, *, n_weights: int) -> Floats:
    """Newton's method on a table with a column for each bin."""
    table = np.zeros((len(truth), n_weights))
    np.put_along_axis(table, bins, 1.0, axis=1)
    table[:, 0] = 1.0
    weights, penalty = np.zeros(n_weights), np.full(n_weights, 1.0)
    penalty[0] = 1e-6
    for _ in range(8):
        chance = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        slope = table.T @ (truth - chance) - penalty * weights
        step = np.linalg.solve((table * (chance * (1 - chance))[:, None]).T @ table + np.diag(penalty), slope)
        weights += step * min(1.0, 5.0 / max(1e-9, float(np.abs(step).max())))
        if np.abs(step).max() < 1e-4:
            break
    return weights


@given(seed=st.integers(0, 10_000), n=st.integers(2, 60), n_features=st.integers(1, 4), n_bins=st.integers(1, 5))
@examples(60)
def test_the_fit_by_bins_is_that_on_the_whole_table(seed: int, n: int, n_features: int, n_bins: int) -> None:
    rng = np.random.default_rng(seed)
    bins = 1 + np.arange(n_features) * n_bins + rng.integers(0, n_bins, (n, n_features))
    truth, n_weights = rng.random(n).round(), 1 + n_features * n_bins
    found = fit_bins(bins, truth, n_weights=n_weights)
    assert np.allclose(found, on_the_whole_table(bins, truth, n_weights=n_weights), rtol=1e-6, atol=1e-8)


def test_what_one_feature_tells_is_learned_and_noise_is_not() -> None:
    rng = np.random.default_rng(1)
    features = rng.random((4000, 3))
    truth = (rng.random(4000) < np.where(features[:, 1] > 0.5, 0.9, 0.1)).astype(np.float64)
    scores = learned_scores(features[:2000], truth[:2000], of=features[2000:], rng=rng)
    is_right = (scores > 0) == (features[2000:, 1] > 0.5)
    assert is_right.mean() > 0.95

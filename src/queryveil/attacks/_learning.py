"""Logistic regression on binned features, and on choices, for attackers who learn from rows whose truth they know."""

from collections.abc import Sequence

import numpy as np

from queryveil.data import Bools, Floats, Int64s
from queryveil.kernels import njit

_N_BINS, _N_ROUNDS = 12, 8
_EXTREMES = (0.001, 0.01, 0.03, 0.97, 0.99, 0.999)
_RIDGE, _RIDGE_OF_CHOICES = 1.0, 10.0
_MOST_EXAMPLES = 15_000
"""More are drawn from: each bin is one weight, so further ones change little."""


def learned_scores(features: Floats, truth: Floats, *, of: Floats, rng: np.random.Generator) -> Floats:
    """Learn from examples how likely something is true of a row, and return the log odds of other rows.

    Features are cut into bins of about as many examples each, with smaller ones at the ends, where what is rare stands
    out; each has a weight, so a probability may rise and fall. `truth` is that of each example, mostly 0 or 1.

    >>> features = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> scores = learned_scores(features, np.array([0.0, 1.0, 1.0, 0.0]), of=features, rng=np.random.default_rng(1))
    >>> (scores > 0).tolist()
    [False, True, True, False]
    """
    if len(truth) > _MOST_EXAMPLES:
        some = rng.choice(len(truth), _MOST_EXAMPLES, replace=False)
        features, truth = features[some], truth[some]
    cuts = np.concatenate([np.linspace(0, 1, _N_BINS + 1)[1:-1], _EXTREMES])
    edges = [np.unique(np.quantile(column, cuts, method="higher")) for column in features.T]
    n_weights = 1 + sum(len(each) + 1 for each in edges)
    weights = fit_bins(_columns(features, edges), truth, n_weights=n_weights)
    return np.asarray(weights[0] + weights[_columns(of, edges)].sum(axis=1), np.float64)


def learned_choices(examples: Sequence[tuple[Floats, Bools]], *, of: Sequence[Floats]) -> list[int]:
    """Learn which rows of a table are true, as a choice of one of them (conditional logit); choose one of other tables.

    Each example is a table of features and which of its rows are true. The first feature is the score that is taken for
    right until examples say otherwise.

    >>> tables = [np.array([[0.0, 1.0], [0.5, 0.0]]), np.array([[0.0, 3.0], [0.5, 2.0]])]
    >>> learned_choices([(table, np.array([True, False])) for table in tables] * 20, of=tables)
    [0, 0]
    """
    taught = [each for each in examples if each[1].any()]
    if not taught:
        return [int(np.argmax(each[:, 0])) for each in of]
    features, truth = (np.concatenate(each) for each in zip(*taught, strict=True))
    middle, deviation = features.mean(axis=0), features.std(axis=0) + 1e-9
    rows, before = (features - middle) / deviation, np.zeros(features.shape[1])
    before[0] = deviation[0]
    weights, table = before.copy(), np.repeat(np.arange(len(taught)), [len(each) for _, each in taught])
    first = np.searchsorted(table, np.arange(len(taught)))
    wanted = truth / np.add.reduceat(truth, first, dtype=np.int64)[table]
    for _ in range(_N_ROUNDS):
        score = rows @ weights
        odds = np.exp(score - np.maximum.reduceat(score, first)[table])
        likely = rows * (chance := odds / np.add.reduceat(odds, first)[table])[:, None]
        mean = np.add.reduceat(likely, first)
        slope = rows.T @ (wanted - chance) - _RIDGE_OF_CHOICES * (weights - before)
        step = np.linalg.solve(likely.T @ rows - mean.T @ mean + _RIDGE_OF_CHOICES * np.eye(len(weights)), slope)
        weights += step / max(1.0, float(np.abs(step).max()))
    return [int(np.argmax((each - middle) / deviation @ weights)) for each in of]


def _columns(features: Floats, edges: Sequence[Floats]) -> Int64s:
    """Return for each value of each row the number of its bin, counted on from feature to feature, from 1."""
    found = np.empty(features.shape, np.int64)
    first = 1
    for i, cuts in enumerate(edges):
        found[:, i] = first + np.searchsorted(cuts, features[:, i], side="right")
        first += len(cuts) + 1
    return found


@njit(cache=True, nogil=True)
def _slope_and_curvature(bins: Int64s, left: Floats, spread: Floats, slope: Floats, curved: Floats) -> None:
    """Add to the slope what each example has left, at the bins that it is in, and to the curvature its spread.

    Of an example only these few entries are not 0. The curvature is filled in above the diagonal and on it.
    """
    for i in range(bins.shape[0]):
        slope[0] += left[i]
        curved[0, 0] += spread[i]
        for j in range(bins.shape[1]):
            one = bins[i, j]
            slope[one] += left[i]
            curved[0, one] += spread[i]
            for k in range(j, bins.shape[1]):
                # Bins of a later feature have higher numbers.
                curved[one, bins[i, k]] += spread[i]


def fit_bins(bins: Int64s, truth: Floats, *, n_weights: int) -> Floats:
    """Return the weights with the highest likelihood, less a penalty for large ones, by Newton's method.

    The first weight is that of every example, the others are those of the bins that the examples are in.
    """
    weights = np.zeros(n_weights)
    penalty = np.full(n_weights, _RIDGE)
    penalty[0] = 1e-6
    for _ in range(_N_ROUNDS):
        chance = 1 / (1 + np.exp(-np.clip(weights[0] + weights[bins].sum(axis=1), -30, 30)))
        slope, curved = -penalty * weights, np.zeros((n_weights, n_weights))
        _slope_and_curvature(bins, truth - chance, chance * (1 - chance), slope, curved)
        step = np.linalg.solve(np.triu(curved, 1).T + np.triu(curved) + np.diag(penalty), slope)
        # Far from the best a whole step may overshoot.
        weights += step * min(1.0, 5.0 / max(1e-9, float(np.abs(step).max())))
        if np.abs(step).max() < 1e-4:
            break
    return weights

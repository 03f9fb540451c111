"""Logistic regression and small boosted trees in a few dozen lines of numpy, written out as JSON.

Both are fitted with weights for each row. `Trees` are boosted on the logistic loss with second-order leaves; each split
is one feature and one threshold out of its quantiles.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = NDArray[np.float64]

_BINS = 24


def sigmoid(values: Vector) -> Vector:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))))


def logistic(x: Matrix, y: Vector, weight: Vector, penalty: float) -> tuple[Vector, float]:
    """Return weights of the features as they are, and the intercept; Newton's method on standardized features."""
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-9
    z = np.column_stack([np.clip((x - mean) / scale, -5, 5), np.ones(len(x))])
    ridge = np.full(z.shape[1], penalty)
    ridge[-1] = 0.0
    beta = np.zeros(z.shape[1])
    for _ in range(15):
        p = sigmoid(z @ beta)
        gradient = z.T @ (weight * (y - p)) - ridge * beta
        hessian = (z * (weight * p * (1 - p))[:, None]).T @ z + np.diag(ridge + 1e-6)
        beta += np.linalg.solve(hessian, gradient)
    return np.asarray(beta[:-1] / scale), float(beta[-1] - (beta[:-1] * mean / scale).sum())


def boost(
    x: Matrix, y: Vector, weight: Vector, *, trees: int, depth: int, rate: float, least: float, seed: int = 0
) -> tuple[list[Any], float]:
    """Return trees as nested lists `[feature, threshold, below, above]`, leaves as numbers, and what to start from."""
    edges = [np.unique(np.quantile(column, np.linspace(0, 1, _BINS + 1)[1:-1])) for column in x.T]
    binned = np.column_stack([np.searchsorted(e, column, side="right") for e, column in zip(edges, x.T, strict=True)])
    chance = np.random.default_rng(seed)
    share = float((weight * y).sum() / weight.sum())
    start = float(np.log(share / (1 - share)))
    score = np.full(len(x), start)
    grown = []
    for _ in range(trees):
        p = sigmoid(score)
        gradient, hessian = weight * (y - p), weight * p * (1 - p)
        columns = chance.permutation(x.shape[1])[: max(1, int(0.6 * x.shape[1]))]
        rows = np.flatnonzero(chance.random(len(x)) < 0.8)
        tree = _grow(binned, gradient, hessian, rows, columns, edges, depth, rate, least)
        grown.append(tree)
        score += apply(tree, x)
    return grown, start


def _grow(
    binned: Any, gradient: Vector, hessian: Vector, rows: Any, columns: Any, edges: list[Any], depth: int, rate: float,
    least: float,
) -> Any:  # fmt: skip
    total, mass = gradient[rows].sum(), hessian[rows].sum()
    leaf = round(float(rate * total / (mass + 2.0)), 4)
    if not depth or mass < 2 * least:
        return leaf
    best, where = 1e-3, None
    for column in columns:
        bins = len(edges[column]) + 1
        if bins < 2:
            continue
        index = binned[rows, column]
        g = np.cumsum(np.bincount(index, gradient[rows], bins))[:-1]
        h = np.cumsum(np.bincount(index, hessian[rows], bins))[:-1]
        gain = g**2 / (h + 2.0) + (total - g) ** 2 / (mass - h + 2.0) - total**2 / (mass + 2.0)
        gain[(h < least) | (mass - h < least)] = 0
        at = int(gain.argmax())
        if gain[at] > best:
            best, where = float(gain[at]), (int(column), at)
    if where is None:
        return leaf
    column, at = where
    above = binned[rows, column] > at
    return [
        column,
        round(float(edges[column][at]), 4),
        _grow(binned, gradient, hessian, rows[~above], columns, edges, depth - 1, rate, least),
        _grow(binned, gradient, hessian, rows[above], columns, edges, depth - 1, rate, least),
    ]


def apply(tree: Any, x: Matrix) -> Vector:
    """Return the leaf of each row."""
    if not isinstance(tree, list):
        return np.full(len(x), float(tree))
    column, threshold, below, above = tree
    return np.where(x[:, column] >= threshold, apply(above, x), apply(below, x))

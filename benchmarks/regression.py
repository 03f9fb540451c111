"""Logistic regression in a few lines of numpy, with a weight for each row."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = NDArray[np.float64]


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

"""Logistic regression in plain Python, so that every machine computes the same coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Newton's method stops when no coefficient moves further than this, after about eight steps.
_TOLERANCE, _MAX_STEPS = 1e-9, 50


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the scalar product of two vectors of one length."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def regress(
    rows: Sequence[Sequence[float]], labels: Sequence[int], ridge: float, weights: Sequence[float] | None = None
) -> list[float]:
    """Return the coefficients that separate rows of label 1 from rows of label 0, by Newton's method.

    Args:
        rows: features; a leading 1 makes a bias.
        ridge: strength of the L2 penalty on every coefficient.
        weights: weight of each row, 1 by default.
    """
    size = len(rows[0])
    beta = [0.0] * size
    counts = weights or [1.0] * len(rows)
    for _ in range(_MAX_STEPS):
        gradient = [-ridge * b for b in beta]
        hessian = [[ridge if i == j else 0.0 for j in range(size)] for i in range(size)]
        for row, label, weight in zip(rows, labels, counts, strict=True):
            p = logistic(dot(beta, row))
            error, slope = weight * (label - p), weight * p * (1 - p)
            for i, x in enumerate(row):
                gradient[i] += error * x
                line, scaled = hessian[i], slope * x
                for j in range(i + 1):
                    line[j] += scaled * row[j]
        for i in range(size):
            for j in range(i):
                hessian[j][i] = hessian[i][j]
        steps = _solve(hessian, gradient)
        beta = [b + step for b, step in zip(beta, steps, strict=True)]
        if max(map(abs, steps)) < _TOLERANCE:
            break
    return beta


def regress_rising(
    rows: Sequence[Sequence[float]], labels: Sequence[int], ridge: float, weights: Sequence[float] | None = None
) -> list[float]:
    """Return coefficients like `regress`, of which only the first, the bias, may be negative.

    A feature with a negative coefficient is dropped, because more evidence must not lower the result.
    """
    columns = list(range(len(rows[0])))
    while True:
        beta = regress([[row[i] for i in columns] for row in rows], labels, ridge, weights)
        least = min(range(1, len(columns)), key=lambda i: beta[i], default=0)
        if least == 0 or beta[least] >= 0:
            by_column = dict(zip(columns, beta, strict=True))
            return [by_column.get(i, 0.0) for i in range(len(rows[0]))]
        del columns[least]


def auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the area under the ROC curve: how often a positive value exceeds a negative one; a tie counts half."""
    pairs = len(positive) * len(negative)
    return sum((p > n) + 0.5 * (p == n) for p in positive for n in negative) / pairs


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a small positive definite system by Gaussian elimination."""
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for i in range(size):
        for k in range(i + 1, size):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    out = [0.0] * size
    for i in reversed(range(size)):
        out[i] = (rows[i][size] - sum(rows[i][j] * out[j] for j in range(i + 1, size))) / rows[i][i]
    return out

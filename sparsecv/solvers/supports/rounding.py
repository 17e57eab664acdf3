"""Supports of a given size: by rounding, by filling up, and by forward selection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..kernels.linalg import LEAST_PIVOT, Array

Support = NDArray[np.intp]


def largest(values: Array, tau: int) -> Support:
    """The τ columns with the largest ``values`` (p,), increasing; of equal ones the lower number.

    With the values |β|√w of a relaxation's coefficients β and weights w the result is the greedy
    rounding of the relaxation, whose indicators are z = min(1, |β|√(w/λ)).
    """
    if values.size <= tau:
        return np.arange(values.size)
    return np.sort(np.argsort(-values, kind="stable")[:tau])


def pad_support(support: Support, size: int, p: int, preferred: Support | None = None) -> Support:
    """A support of distinct columns, filled up to ``size`` of the p columns; increasing.

    The columns that are added come from ``preferred`` in its order, and then from 0, 1, 2, ….
    A support of ``size`` or more columns keeps its columns.
    """
    if support.size < size:
        for more in (np.arange(p),) if preferred is None else (preferred, np.arange(p)):
            support = np.concatenate([support, more[~np.isin(more, support)]])[:size]
    return np.sort(support).astype(np.intp)


def forward_order(X: Array, y: Array, steps: int, gamma: float = 0.0) -> NDArray[np.intp]:
    """The first ``steps`` columns that forward selection takes from X (n, p), in their order.

    With the taken columns projected out, c_i = x_iᵀr and d_i is the squared length of x_i that is
    left, plus γ/2. A step takes the column of largest c_i²/d_i, which is by how much the column
    lowers the objective ‖y − Xβ‖² + (γ/2)‖β‖², and costs O(np).

    steps: At most p.
    gamma: 0 where X holds the penalty already: where XᵀX is the Gram matrix plus (γ/2)I.
    """
    full = np.einsum("ij,ij->j", X, X) + gamma / 2.0
    none = np.empty(0, dtype=np.intp)
    return _select(lambda j: X.T @ X[:, j], X.T @ y, full, none, steps)


def complete_support(
    G: NDArray[np.float64],
    b: NDArray[np.float64],
    ridge: float,
    start: NDArray[np.intp],
    tau: int,
) -> NDArray[np.intp]:
    """The first τ columns of ``start``, filled up to τ ≤ p columns by forward selection.

    G, b: XᵀX (p, p) and Xᵀy (p,).
    ridge: γ/2.
    start: Distinct columns, which come first in the result.
    """
    start = start[:tau]
    if start.size == tau:
        return start.astype(np.intp)
    return _select(lambda j: G[j], b, np.diag(G) + ridge, start, tau)


def _select(
    products: Callable[[int], Array],
    b: Array,
    full: Array,
    start: NDArray[np.intp],
    steps: int,
) -> NDArray[np.intp]:
    """The columns of ``start``, filled up to ``steps`` columns by forward selection.

    products: Gives the row XᵀX_j of a column j.
    b, full: Xᵀy (p,), and the diagonal of XᵀX + (γ/2)I (p,).
    start, steps: At most ``steps`` distinct columns, which come first; ``steps`` is at most p.
    Returns: The columns in the order in which they are taken. A column of which nothing is left
        beside those before it adds no direction.
    """
    support = np.empty(steps, dtype=np.intp)
    support[: start.size] = start
    least = np.maximum(LEAST_PIVOT * full, 1e-300)
    c, d = b.copy(), full.copy()
    directions = np.empty((steps, b.size))
    for level in range(steps):
        if level >= start.size:
            score = c * c / np.maximum(d, least)
            score[support[:level]] = -1.0
            support[level] = np.argmax(score)
        j = int(support[level])
        if d[j] <= least[j]:  # The column depends on those before, and nothing is left of it.
            directions[level] = 0.0
            continue
        length = np.sqrt(d[j])
        # row j of the Schur complement: inner products with column j that are left
        row = products(j) - directions[:level, j] @ directions[:level]
        directions[level] = row / length
        c = c - directions[level] * (c[j] / length)
        d = d - directions[level] ** 2
    return support

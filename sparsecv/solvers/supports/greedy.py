"""Forward selection under the ridge objective."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..kernels.linalg import Array


def forward_order(X: Array, y: Array, steps: int, gamma: float = 0.0) -> NDArray[np.intp]:
    """Order in which forward selection takes the columns of X.

    Columns are kept orthogonal to those taken (in the augmented space of the penalty), so a step
    costs O(np): taking i lowers the objective by c_i²/d_i with c_i = x_iᵀr and
    d_i = ||x_i||² + γ/2 less what the taken columns explain.

    X, shape (n, p).
    y, shape (n,).
    steps: Number of columns to take, at most p.
    gamma: Ridge weight. With 0 the first step already needs X to hold the penalty (a factor of XᵀX
        + γ/2 I).
    Returns, shape (steps,).
    """
    full = np.einsum("ij,ij->j", X, X) + gamma / 2.0
    return _select(lambda j: X.T @ X[:, j], X.T @ y, full, np.empty(0, dtype=np.intp), steps)


def complete_support(
    G: NDArray[np.float64],
    b: NDArray[np.float64],
    ridge: float,
    start: NDArray[np.intp],
    tau: int,
    barred: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """The first τ columns of ``start``, filled up by forward selection on Gram matrices.

    G, b, shape (p, p) and (p,).
    ridge: γ/2.
    start: Distinct columns.
    tau: At most p.
    barred: Columns taken only when no other is left.
    Returns, shape (τ,), the columns of ``start`` first.
    """
    start = start[:tau]
    if start.size == tau:
        return start.astype(np.intp)
    return _select(lambda j: G[j], b, np.diag(G) + ridge, start, tau, barred)


def _select(
    products: Callable[[int], Array],
    b: Array,
    full: Array,
    start: NDArray[np.intp],
    steps: int,
    barred: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Columns of ``start``, then forward selection; ``products`` gives rows of the Gram matrix."""
    support = np.empty(steps, dtype=np.intp)
    support[: start.size] = start
    floor = np.maximum(1e-12 * full, 1e-300)
    c, d = b.copy(), full.copy()
    directions = np.empty((steps, b.size))
    for level in range(steps):
        if level >= start.size:
            score = c * c / np.maximum(d, floor)
            if barred is not None:
                score[barred] = -1.0
            score[support[:level]] = -2.0
            support[level] = np.argmax(score)
        j = int(support[level])
        length = np.sqrt(max(d[j], floor[j]))
        # row of the Schur complement that belongs to column j
        row = products(j) - directions[:level, j] @ directions[:level]
        directions[level] = row / length
        c = c - directions[level] * (c[j] / length)
        d = d - directions[level] ** 2
    return support

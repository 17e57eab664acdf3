"""Forward selection under the ridge objective."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels.linalg import Array


def forward_order(X: Array, y: Array, steps: int, gamma: float = 0.0) -> NDArray[np.intp]:
    """Order in which forward selection takes the columns of X.

    Parameters
    ----------
    X : array, shape (n, p)
    y : array, shape (n,)
    steps : int
        Number of columns to take, at most p.
    gamma : float
        Ridge weight. With 0 the first step already needs X to hold the penalty (a factor of
        XᵀX + γ/2 I).

    Returns
    -------
    ndarray of intp, shape (steps,)

    Notes
    -----
    Columns are kept orthogonal to those taken (in the augmented space of the penalty), so a step
    costs O(np): taking i lowers the objective by c_i²/d_i with c_i = x_iᵀr and
    d_i = ||x_i||² + γ/2 less what the taken columns explain.
    """
    c = X.T @ y
    d = np.einsum("ij,ij->j", X, X) + gamma / 2.0
    floor = 1e-12 * d
    p = c.size
    taken = np.zeros(p, dtype=bool)
    order = np.empty(steps, dtype=np.intp)
    directions = np.empty((steps, p))
    for t in range(steps):
        score = np.where(taken, -1.0, c * c / np.maximum(d, np.maximum(floor, 1e-300)))
        k = int(np.argmax(score))
        order[t] = k
        taken[k] = True
        # row of the Schur complement that belongs to column k
        row = X.T @ X[:, k] - directions[:t].T @ directions[:t, k]
        row[k] += gamma / 2.0
        direction = row / np.sqrt(max(row[k], floor[k], 1e-300))
        directions[t] = direction
        c = c - direction * (c[k] / np.sqrt(max(row[k], floor[k], 1e-300)))
        d = d - direction * direction
    return order


def complete_support(
    G: NDArray[np.float64],
    b: NDArray[np.float64],
    ridge: float,
    start: NDArray[np.intp],
    tau: int,
    barred: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """The first τ columns of ``start``, filled up by forward selection on Gram matrices.

    Parameters
    ----------
    G, b : arrays, shape (p, p) and (p,)
    ridge : float
        γ/2.
    start : array of int
        Distinct columns.
    tau : int
        At most p.
    barred : array of int, optional
        Columns taken only when no other is left.

    Returns
    -------
    ndarray of intp, shape (τ,), the columns of ``start`` first
    """
    k = min(start.size, tau)
    support = np.empty(tau, dtype=np.intp)
    support[:k] = start[:k]
    if k == tau:
        return support
    full = np.diag(G) + ridge
    floor = np.maximum(1e-12 * full, 1e-300)
    c, d = b.copy(), full.copy()
    directions = np.empty((tau, b.size))
    for level in range(tau):
        if level < k:
            j = int(support[level])
        else:
            score = c * c / np.maximum(d, floor)
            if barred is not None:
                score[barred] = -1.0
            score[support[:level]] = -2.0
            j = int(np.argmax(score))
            support[level] = j
        length = np.sqrt(max(d[j], floor[j]))
        row = G[j] - directions[:level, j] @ directions[:level]
        directions[level] = row / length
        c = c - directions[level] * (c[j] / length)
        d = d - directions[level] ** 2
    return support

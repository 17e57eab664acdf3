"""Forward selection under the ridge objective."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._linalg import Array


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

"""The diagonal with the largest trace that XᵀX allows to be moved into the perspective."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numba import njit

from ..kernels.linalg import Array
from .gram import extraction

WEIGHTS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # of the barrier, relative to the mean of diag(G)
SWEEPS = 3
MOST_COLUMNS = 300  # beyond which the least eigenvalue must do: a sweep is O(p³)


def largest_diagonal(G: Array, ridge: float, eps: float) -> Array:
    """Diagonal D with G − D ⪰ 0 and Σ D_ii about as large as it can be.

    Maximises Σ D_ii + μ·log det(G − D) by coordinates, μ → 0. Columns on which G is singular get
    next to nothing, the others keep theirs: with every level of a factor coded the least eigenvalue
    alone would give nothing to any column.

    Parameters
    ----------
    G : ndarray, shape (p, p)
    ridge : float
        γ/2; what rounding takes from D (entries may be slightly negative) stays below a thousandth
        of it.
    eps : float
        Of its trace G may be off from the exact one.

    Returns
    -------
    ndarray, shape (p,)
    """
    p = G.shape[0]
    plain = extraction(G, p, eps)
    if p > MOST_COLUMNS:
        return plain
    shift = min(1e-8 * float(np.linalg.norm(G, 2)), 5e-4 * ridge)
    try:
        inverse = np.linalg.inv(G + shift * np.eye(p))
    except np.linalg.LinAlgError:
        return plain
    D = np.zeros(p)
    mean = float(np.trace(G)) / p
    ascend(inverse, D, mean * np.array(WEIGHTS), SWEEPS)
    if not np.isfinite(D).all():
        return plain
    values = sla.eigvalsh(G - np.diag(D), check_finite=False)
    scale = float(np.abs(values).max()) + float(np.diag(G).max())
    lost = 4.0 * p * float(np.finfo(np.float64).eps) * scale + eps * float(np.trace(G))
    D += min(float(values[0]) - lost, 0.0)
    return D if D.min() > -1e-3 * ridge and D.sum() > plain.sum() else plain


@njit(cache=True, nogil=True, error_model="numpy")
def ascend(A, D, weights, sweeps):  # type: ignore[no-untyped-def]
    """Coordinate steps on D; A = (G − D)⁻¹ is kept by rank-one updates."""
    p = D.shape[0]
    for mu in weights:
        for _ in range(sweeps):
            for i in range(p):
                if not 0.0 < A[i, i] < np.inf:
                    continue  # what rounding left of the inverse says nothing about this column
                step = max(1.0 / A[i, i] - mu, -D[i])
                left = 1.0 - step * A[i, i]
                if step == 0.0 or left <= 0.0:
                    continue
                D[i] += step
                factor = step / left
                for j in range(p):
                    if j != i:
                        change = factor * A[j, i]
                        for q in range(p):
                            if q != i:
                                A[j, q] += change * A[i, q]
                for j in range(p):
                    if j != i:
                        A[j, i] /= left
                        A[i, j] = A[j, i]
                A[i, i] /= left

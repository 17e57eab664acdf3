"""Diagonals D with G − D ⪰ 0 of a matrix G = XᵀX: of the least eigenvalue, or of largest trace."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla

from ..core.rounding import SHIFT_SHARE, STEP_SHARE, eigenvalue_loss
from ..kernels.linalg import Array

# Problems of more columns take the least eigenvalue of G as every entry of D, as the search for a
# diagonal of largest trace, and the fit of a diagonal to a node, take O(p³) operations a step. The
# number is a choice.
MAX_COLUMNS = 300


def extraction(G: Array, rank: int, eps: float) -> Array:
    """Diagonal D with G − D ⪰ 0: λ·diag(G), λ ≥ 0 the least eigenvalue of G at unit diagonal.

    The exact G is meant, whose entries the matrix at hand may differ from by ``eps`` of the lengths
    of two columns; eigenvalues are computed to p·u of the largest, for which 8p·u is taken off.

    G, shape (p, p).
    rank: Below p the exact G is singular, and D is 0.
    Returns, shape (p,).
    """
    p, squares = G.shape[0], np.diag(G)
    if rank < p or not (squares > 0.0).all():
        return np.zeros(p)
    lengths = np.sqrt(squares)
    values = np.linalg.eigvalsh(G / lengths / lengths[:, None])
    least = values[0] - eigenvalue_loss(p, values[-1]) - 2.0 * eps * p
    return squares * max(0.0, float(least)) * (1.0 - STEP_SHARE)


def largest_diagonal(G: Array, ridge: float, of_trace: float, plain: Array) -> Array:
    """A diagonal D (p,) with G − D ⪰ 0 and Σ D_ii nearly as large as possible.

    Coordinate steps maximise Σ D_ii + μ·log det(G − D), for μ from a tenth of the mean diagonal
    entry of G down to 1e-5 of it, with three passes over all columns for each μ. Columns on which G
    is singular get almost nothing, and other columns keep their share. Where, for instance, every
    level of a factor is a column, the least eigenvalue of G would give nothing to any column.

    ridge: γ/2; rounding may make entries of D negative, by less than a thousandth of γ/2, so that
        γ/2 + D stays positive.
    of_trace: The spectral norm of what G is off by is at most this share of the trace of G.
    plain, shape (p,): A diagonal with G − D ⪰ 0 for the exact G, such as that of
        :func:`extraction`. It is returned where none of larger trace is found.
    """
    p = G.shape[0]
    if p > MAX_COLUMNS:
        return plain
    # The steps need a regular matrix. What the shift lets D be too large by, :func:`allowed` takes
    # off again. It is at most half of what D may fall below 0.
    shift = min(SHIFT_SHARE * float(np.linalg.norm(G, 2)), 5e-4 * ridge)
    D = np.zeros(p)
    try:
        inverse = np.asarray(np.linalg.inv(G + shift * np.eye(p)))
    except np.linalg.LinAlgError:
        return plain
    mean = float(np.trace(G)) / p
    ascend(inverse, D, [mean * 10.0**-power for power in range(1, 6)], 3)
    if not np.isfinite(D).all():
        return plain
    D = allowed(G, D, of_trace)
    return D if D.min() > -1e-3 * ridge and D.sum() > plain.sum() else plain


def allowed(G: Array, D: Array, of_trace: float) -> Array:
    """D, lowered where G − D ⪰ 0 would otherwise not be certain for the exact G.

    What eigenvalues are off by is a share of the norm of G − D, which the eigenvalues and the
    largest diagonal entry of G bound. What G is off by is at most ``of_trace`` of its trace. D is
    lowered by both errors less the least eigenvalue.
    """
    values = np.linalg.eigvalsh(G - np.diag(D))
    scale = float(np.abs(values).max()) + float(np.diag(G).max())
    lost = eigenvalue_loss(D.size, scale) + of_trace * float(np.trace(G))
    return np.asarray(D + min(float(values[0]) - lost, 0.0))


def ascend(A: Array, D: Array, barrier: list[float], sweeps: int) -> None:
    """Raise Σ D_ii + μ·log det(G − D) by steps of one entry of D, for each μ of ``barrier``.

    D is changed in place. Every μ gets ``sweeps`` passes over all columns. With A = (G − D)⁻¹, a
    step of D_ii by s multiplies the determinant by 1 − s·A_ii, so that 1/A_ii − μ is the best s. A
    step that makes D_ii negative ends at 0. The inverse after a step is A plus a matrix of rank 1.

    A: (G − D)⁻¹, shape (p, p), of which the lower triangle is read.
    """
    A = np.asfortranarray(A)
    for mu in np.repeat(barrier, sweeps).tolist():
        for i in range(D.size):
            own = float(A[i, i])
            if not 0.0 < own < np.inf:
                continue  # rounding has left no digits of the inverse for this column
            step = max(1.0 / own - mu, -float(D[i]))
            left = 1.0 - step * own
            if step != 0.0 and left > 0.0:
                D[i] += step
                column = np.concatenate([A[i, :i], A[i:, i]])
                A = sla.blas.dsyr(step / left, column, lower=1, a=A, overwrite_a=1)

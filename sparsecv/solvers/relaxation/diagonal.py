"""Diagonals XᵀX allows to be moved into the perspective: of largest trace, or fitted to (γ, τ)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg as sla

from ..kernels.compiled import kernel
from ..kernels.linalg import EPS, Array
from ..limits import Limits
from .dual_bound import EXTRA, gram_gradient
from .gram import GramForm, extraction
from .newton import newton, newton_work

WEIGHTS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # of the barrier, relative to the mean of diag(G)
SWEEPS = 3
ROUNDS, RISE = 30, 1e-4  # of fitting, and the relative rise of the bound worth another
SPREAD = 1e-3  # least weight of a column, relative to the largest
STEPS = (1.0, 0.4)
BACK = 0.99  # of a diagonal: away from the boundary, where the barrier is infinite
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
    D = barrier_diagonal(G, ridge, np.zeros(p), np.ones(p))
    if not np.isfinite(D).all():
        return plain
    D = allowed(G, D, eps)
    return D if D.min() > -1e-3 * ridge and D.sum() > plain.sum() else plain


def barrier_diagonal(G: Array, ridge: float, D: Array, weights: Array) -> Array:
    """About the maximiser of Σ weights_i·D_ii with G − D ⪰ 0 ≤ D, from D; NaN where it fails.

    Parameters
    ----------
    G : ndarray, shape (p, p)
    ridge : float
        γ/2.
    D : ndarray, shape (p,)
        Where to begin.
    weights : ndarray, shape (p,)
        Positive.

    Returns
    -------
    ndarray, shape (p,)
    """
    p = D.size
    shift = min(1e-8 * float(np.linalg.norm(G, 2)), 5e-4 * ridge)
    found = BACK * D
    try:
        inverse = np.linalg.inv(G + np.diag(shift - found))
    except np.linalg.LinAlgError:
        return np.full(p, np.nan)
    ascend(inverse, found, weights, float(np.trace(G)) / p * np.array(WEIGHTS), SWEEPS)
    return found


def allowed(G: Array, D: Array, eps: float) -> Array:
    """D less what makes G − D ⪰ 0 certain, whatever G has lost by rounding.

    Parameters
    ----------
    G : ndarray, shape (p, p)
    D : ndarray, shape (p,)
    eps : float
        Of its trace G may be off from the exact one.

    Returns
    -------
    ndarray, shape (p,)
    """
    values = sla.eigvalsh(G - np.diag(D), check_finite=False)
    scale = float(np.abs(values).max()) + float(np.diag(G).max())
    lost = 4.0 * D.size * EPS * scale + eps * float(np.trace(G))
    return np.asarray(D + min(float(values[0]) - lost, 0.0))


def fitted_form(
    gram: GramForm, ridge: float, tau: int, beta: Array, root_lam: float, limits: Limits
) -> tuple[GramForm, Array, float, float]:
    """The same matrices with the diagonal that raises the relaxation's bound at one (γ, τ) most.

    The bound's own derivative in D_ii is β_i²(1/z_i − 1): weights of a barrier step, repeated
    while the bound rises. Its limit is the semidefinite relaxation.

    Parameters
    ----------
    gram : GramForm
        With D ≠ 0, of at most ``MOST_COLUMNS`` columns.
    ridge : float
        γ/2.
    tau : int
    beta : ndarray, shape (p,)
        Coefficients of the relaxation, and
    root_lam : float
        √λ there.
    limits : Limits

    Returns
    -------
    GramForm, ndarray, float, float
        Its coefficients, √λ and certified bound.
    """
    p = gram.b.size
    state, work, top = np.zeros(p, dtype=np.int8), newton_work(p), np.zeros(tau + EXTRA)

    def solved(
        form: GramForm, beta: Array, root_lam: float
    ) -> tuple[GramForm, Array, float, float]:
        beta, g, lam = beta.copy(), np.zeros(p), np.array([root_lam])
        terms, Q = form.terms(ridge), form.quadratic()
        gram_gradient(Q, terms.b, beta, g)
        problem = (Q, terms, np.sqrt(terms.w), form.scaled, state, tau)
        bound, _ = newton(*problem, beta, g, lam, np.inf, 20, 1e-4, top, work)
        return form, beta, float(lam[0]), float(bound)

    best = solved(gram, beta, root_lam)
    for _ in range(ROUNDS):
        form, beta, root_lam, bound = best
        size = np.abs(beta) * np.sqrt(form.terms(ridge).w)
        active = size > 0.0
        gain = np.zeros(p)
        gain[active] = beta[active] ** 2 * (np.maximum(root_lam / size[active], 1.0) - 1.0)
        weights = gain / max(float(gain.max()), 1e-300) + SPREAD
        target = barrier_diagonal(gram.G, ridge, form.D, weights)
        if not np.isfinite(target).all() or limits.reached(0) is not None:
            break
        for step in STEPS:
            D = allowed(gram.G, (1.0 - step) * form.D + step * target, gram.eps)
            trial = solved(replace(gram, D=np.maximum(D, -1e-3 * ridge)), beta, root_lam)
            if D.min() > -1e-3 * ridge and trial[3] > bound:
                best = trial
                break
        else:
            break
        if best[3] - bound < RISE * abs(bound):
            break
    return best


@kernel
def ascend(A, D, weights, barrier, sweeps):  # type: ignore[no-untyped-def]
    """Coordinate steps on D; A = (G − D)⁻¹ is kept by rank-one updates."""
    p = D.shape[0]
    for mu in barrier:
        for _ in range(sweeps):
            for i in range(p):
                if not 0.0 < A[i, i] < np.inf:
                    continue  # what rounding left of the inverse says nothing about this column
                step = max(1.0 / A[i, i] - mu / weights[i], -D[i])
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

"""Interior-point method in z for relaxations on which coordinate descent takes too many passes.

With f(z) the least objective of the perspective relaxation over β at fixed z, f is smooth and
convex. With Q = FᵀF and K = I + F diag(z/w) Fᵀ the residual is r = K⁻¹y, and with g = Fᵀr
∂f/∂z_i = −g_i²/w_i and ∂²f = 2 diag(g/w) (FᵀK⁻¹F) diag(g/w). A path-following method needs some 20
Cholesky factorisations, however dependent the columns are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as sla

from ..core.limits import Limits
from ..kernels.linalg import Array

# The method ends after this many steps, each one dense factorisation. Some 20 steps reach the gap;
# more are taken only where rounding keeps them from it. Doubled, these cases take twice the time. A
# bound holds at any step.
MOST_STEPS = 60


def interior_point(F: Array, y: Array, w: Array, tau: int, gap: float, limits: Limits) -> Array:
    """Nearly optimal β (p,) of min ‖y − Fβ‖² + Σ w_iβ_i²/z_i over Σz ≤ τ < p, 0 ≤ z ≤ 1.

    F: (m, p).
    gap: The steps end where the complementarity gap Σ low·z + high·(1 − z) is at most this share
        of yᵀy. How good β is, its dual bound tells.
    limits: A step begins only if the time left allows the step.
    """
    m, p = F.shape
    z = np.full(p, tau / p)
    yy = max(float(y @ y), 1e-300)
    low = np.full(p, yy / p)  # multipliers of z >= 0 and z <= 1
    high = np.full(p, yy / p)
    level = 0.0  # multiplier of the sum
    g = np.zeros(p)
    work = 4.0 * min(m, p) ** 2 * max(m, p)
    for _ in range(MOST_STEPS):
        if limits.reached(0) is not None or not limits.affords(work):
            break
        K = (F * (z / w)) @ F.T
        K[np.arange(m), np.arange(m)] += 1.0
        L = np.linalg.cholesky(K)
        V = sla.solve_triangular(L, F, lower=True, check_finite=False)
        v = sla.solve_triangular(L, y, lower=True, check_finite=False)
        g = V.T @ v
        gradient = -g * g / w
        rest = 1.0 - z
        mean = float(low @ z + high @ rest) / (2 * p)
        if 2 * p * mean <= gap * yy:
            break
        scaled = V * (g / w)
        if min(z.min(), rest.min()) < 1e-300:
            break
        try:
            solve = _inverse(np.sqrt(2.0) * scaled, low / z + high / rest)
        except np.linalg.LinAlgError:
            break
        ones = solve(np.ones(p))
        # Mehrotra's predictor, and then a corrector with the target that the predictor suggests
        target = 0.0
        cross_low = cross_high = np.zeros(p)
        for stage in range(2):
            dual = gradient - low + high + level
            right = -dual - low + (target - cross_low) / z + high - (target - cross_high) / rest
            free = solve(right)
            change = (float(free.sum()) - (tau - float(z.sum()))) / float(ones.sum())
            dz = free - change * ones
            dlow = (target - cross_low - low * dz) / z - low
            dhigh = (target - cross_high + high * dz) / rest - high
            primal = _step(np.concatenate([z, rest]), np.concatenate([dz, -dz]))
            both = _step(np.concatenate([low, high]), np.concatenate([dlow, dhigh]))
            if stage == 0:
                after = (low + both * dlow) @ (z + primal * dz)
                after += (high + both * dhigh) @ (rest - primal * dz)
                target = mean * min(1.0, max(float(after) / (2 * p * mean), 0.0)) ** 3
                cross_low, cross_high = dlow * dz, -dhigh * dz
        z = z + 0.995 * primal * dz
        low, high = low + 0.995 * both * dlow, high + 0.995 * both * dhigh
        level += 0.995 * both * change
    return np.asarray(z * g / w)


def eigen_factor(Q: Array, b: Array) -> tuple[Array, Array]:
    """F (r, m) and y (r,) with Q = FᵀF and b = Fᵀy, without eigenvalues of at most 1e-13 of Q's."""
    values, vectors = np.linalg.eigh(Q)
    large = values > 1e-13 * max(float(values[-1]), 1e-300)
    root = np.sqrt(values[large])
    return root[:, None] * vectors[:, large].T, (vectors[:, large].T @ b) / root


def _inverse(V: Array, d: Array) -> Callable[[Array], Array]:
    """A solver of linear systems with VᵀV + diag(d), by a factor of size min(m, p), V (m, p)."""
    m, p = V.shape
    if m >= p:
        H = V.T @ V
        H[np.arange(p), np.arange(p)] += d
        whole = sla.cho_factor(H, lower=True, check_finite=False)
        return lambda right: np.asarray(sla.cho_solve(whole, right, check_finite=False))
    narrow = V / d
    small = narrow @ V.T
    small[np.arange(m), np.arange(m)] += 1.0
    part = sla.cho_factor(small, lower=True, check_finite=False)

    def solve(right: Array) -> Array:
        inner = sla.cho_solve(part, narrow @ right, check_finite=False)
        return np.asarray((right - V.T @ inner) / d)

    return solve


def _step(values: Array, steps: Array) -> float:
    """The largest t in [0, 1] at which values + t·steps ≥ 0."""
    falling = steps < 0.0
    if not falling.any():
        return 1.0
    return float(min(1.0, (-values[falling] / steps[falling]).min()))

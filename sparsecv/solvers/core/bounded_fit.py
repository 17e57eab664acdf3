"""Least squares with bounds on the coefficients, by an active set (Stark & Parker 1995)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# A coefficient leaves its bound only where, with columns of length 1, the slope of the objective is
# more than this share of the lengths of y and of all coefficients. Rounding errors of the slope are
# some 1e-16 of these lengths. Doubled, fits end slightly earlier.
SLOPE_SHARE = 1e-15


def bounded_least_squares(X: Array, y: Array, low: Array, high: Array) -> Array:
    """The β that minimises ‖y − Xβ‖² within low ≤ β ≤ high.

    The free coefficients are fitted with the others at their bounds. Where the fit leaves a bound,
    β goes towards the fit as far as the bounds allow, and coefficients that are stopped stay there.
    Where the fit is within the bounds, the coefficient with the steepest slope is freed.

    X, y, shape (m, s) and (m,).
    low, high, shape (s,): low ≤ 0 ≤ high.
    Returns, shape (s,).
    """
    lengths = np.linalg.norm(X, axis=0)
    lengths[lengths == 0.0] = 1.0
    unit, lower, upper = X / lengths, low * lengths, high * lengths
    s, size = low.size, float(np.linalg.norm(y))
    coef, free = np.zeros(s), np.zeros(s, dtype=bool)
    barred = fixed = lower == upper
    # Every change of β lowers the objective, so that no active set comes back; the limit only ends
    # what rounding would let run in a circle.
    for _ in range(20 * s + 20):
        slope = unit.T @ (y - unit @ coef)
        gain = np.where(slope > 0.0, coef < upper, coef > lower) * np.abs(slope)
        gain[free | barred] = 0.0
        at = int(np.argmax(gain))
        if gain[at] <= SLOPE_SHARE * (size + float(np.abs(coef).sum())):
            break
        free[at] = True
        before = coef
        coef = _towards_fit(unit, y, lower, upper, coef, free)
        # A coefficient that rounding sends back to its bound is not freed again until β changes.
        stuck = np.arange(s) == at if (coef == before).all() else np.zeros(s, dtype=bool)
        barred = (barred if stuck.any() else fixed) | stuck
    found = np.where(coef == lower, low, np.where(coef == upper, high, coef / lengths))
    return np.asarray(np.clip(found, low, high))


def _towards_fit(
    unit: Array, y: Array, lower: Array, upper: Array, coef: Array, free: NDArray[np.bool_]
) -> Array:
    """The β of the fit on free columns, or where steps towards fits end; ``free`` is changed."""
    while free.any():
        rest = np.where(free, 0.0, coef)
        fitted = rest.copy()
        fitted[free] = np.linalg.lstsq(unit[:, free], y - unit @ rest, rcond=None)[0]
        over, under = free & (fitted > upper), free & (fitted < lower)
        if not (over | under).any():
            return fitted
        bound = np.where(over, upper, lower)
        share = np.ones(coef.size)
        beyond = over | under
        share[beyond] = (bound - coef)[beyond] / (fitted - coef)[beyond]
        step = min(max(float(share.min()), 0.0), 1.0)
        stopped = beyond & (share <= step)
        coef = np.where(stopped, bound, coef + step * (fitted - coef))
        free &= ~stopped
    return coef

"""The relaxation of a node under constraints on columns, and its dual bound.

A unit is a group of columns that enter a model together and count once; by default every column is
one. Coefficients may have bounds low ≤ 0 ≤ high. A node has included units I, free units F, and k
free units still to choose. With Q = XᵀX − D ⪰ 0, weights w = γ/2 + D and the Σ of a unit over its
columns, every allowed β of the node satisfies, for ANY coefficients β̂ and g = Xᵀy − Qβ̂,

    ‖y − Xβ‖² + (γ/2)‖β‖² ≥ yᵀy − β̂ᵀQβ̂ − Σ_I c_u − (sum of the k largest c_u over F),
    c_u = Σ_{j∈u} max {2g_jβ − w_jβ² : low_j ≤ β ≤ high_j}.

This is the bound of :mod:`dual_bound` with the worth c_u of a unit in place of g²/w, and what
rounding can lose is the same: |g_j| is off by at most ε ℓ_j · reach, and c_u is a convex function
of every g_j, so that the larger of both ends is taken. A multiple of the residual gives a bound,
too, where D = 0 and every bound on a coefficient is 0 or infinite, as c_u is then a quadratic form.

The relaxation has a share z_u ≤ 1 for every free unit, Σz ≤ k, with w_jβ_j²/z_u in place of w_jβ_j²
and β_j within z_u·[low_j, high_j]. For a multiplier λ = s² of Σz ≤ k the best β_u = z_uθ of a unit,
all other units fixed, follows from one equation in z_u (:func:`best_share`): z_u = 0 where c_u ≤ λ.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array, add
from .dual_bound import IN


class Units(NamedTuple):
    """Columns sorted by unit, what is asked of them, and work space for m units of p columns."""

    first: NDArray[np.int64]  # (m+1,) columns of unit u are first[u] … first[u+1] − 1
    lower: Array  # (p,) bounds on the coefficients
    upper: Array  # (p,)
    spread: Array  # (p,) Σ |Q_jc| over the columns c of column j's unit
    least_share: Annotated[Array, "m"]  # the least z_u for which β_u is within z_u times its bounds
    theta: Annotated[Array, "p"]
    rho: Annotated[Array, "p"]


@kernel(inner=True)
def share_slope(w, units, rho, u, z):
    """What a share z of unit u saves for each unit of z, and how fast the saving falls with z.

    With q = ``units.spread`` the best θ_j is ρ_j/(qz + w) within the bounds, and the saving is
    Σ θ(2ρ − wθ − 2qzθ), which falls with z; at z = 0 it is c_u at the slopes ρ. ``units.theta``
    gets θ.
    """
    saved, rate = 0.0, 0.0
    for j in range(units.first[u], units.first[u + 1]):
        q, weight, slope = units.spread[j], w[j], rho[j]
        d = q * z + weight
        theta = slope / d
        if theta > units.upper[j]:
            theta = units.upper[j]
            rate += 2.0 * q * theta * theta
        elif theta < units.lower[j]:
            theta = units.lower[j]
            rate += 2.0 * q * theta * theta
        else:
            rate += 2.0 * q * theta * theta * (weight / d)
        units.theta[j] = theta
        saved += theta * (2.0 * slope - weight * theta - 2.0 * q * z * theta)
    return saved, rate


@kernel(inner=True)
def best_share(w, units, rho, u, level):
    """The share z in [0, 1] at which a unit saves ``level`` = λ; ``units.theta`` gets β/z.

    The steps are Newton's for 1/√saving, which are exact for a unit of one column without bounds.
    They stay between shares that are known to be too small and too large. At most 12 steps are
    taken, until the saving is λ up to a share of 1e-8: a share of any size gives a valid bound.
    """
    low, high, z = 0.0, 1.0, 0.0
    saved, rate = share_slope(w, units, rho, u, 1.0)
    if saved >= level:
        return 1.0
    saved, rate = share_slope(w, units, rho, u, 0.0)
    if saved <= level:
        return 0.0
    for _ in range(12):
        step = 2.0 * saved * (np.sqrt(saved / level) - 1.0) / rate if rate > 0.0 else np.inf
        z = z + step
        if not low < z < high:
            z = 0.5 * (low + high)
        saved, rate = share_slope(w, units, rho, u, z)
        if abs(saved - level) <= 1e-8 * level:
            break
        if saved > level:
            low = z
        else:
            high = z
    return z


@kernel(inner=True)
def sweep_units(Q, w, units, state, active, root_lam, beta, g):
    """One pass over the active units at λ = root_lam²; updates β and g = b − Qβ.

    Where columns of a unit are not orthogonal, q = Σ|Q_jc| bounds their part of Q from above, so
    that a step still lowers the objective.
    Returns: The largest Σ (q + w)·step² of a unit, about the largest decrease of the objective.
    """
    most, rho = 0.0, units.rho
    for u in active:
        begin, end = units.first[u], units.first[u + 1]
        for j in range(begin, end):
            rho[j] = g[j] + units.spread[j] * beta[j]
        if state[u] == IN:
            share_slope(w, units, rho, u, 1.0)
            z = 1.0
        else:
            z = best_share(w, units, rho, u, root_lam * root_lam)
        fall = 0.0
        for j in range(begin, end):
            new = z * units.theta[j] if z > 0.0 else 0.0
            step = new - beta[j]
            if step != 0.0:
                beta[j] = new
                add(g, Q[j], -step, g.shape[0])
                fall += (units.spread[j] + w[j]) * step * step
        most = max(most, fall)
    return most

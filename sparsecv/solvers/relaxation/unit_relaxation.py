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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array, add, most_worth
from .descent import bracketed_multiplier, fit_multiplier
from .dual_bound import FREE, IN, OUT, bound_of_sums, gram_gradient, insert, products


class Units(NamedTuple):
    """Columns sorted by unit, what is asked of them, and work space for m units of p columns."""

    first: NDArray[np.int64]  # (m+1,) columns of unit u are first[u] … first[u+1] − 1
    lower: Array  # (p,) bounds on the coefficients
    upper: Array  # (p,)
    spread: Array  # (p,) Σ |Q_jc| over the columns c of column j's unit
    parent_at: NDArray[np.int64]  # (m+1,) parents of unit u are parents[parent_at[u]:…]
    parents: NDArray[np.int64]
    rules: Any  # whether a unit needs all its parents: ``strong`` of a record
    listed: NDArray[np.int64]  # (m,) the units that are not excluded come first
    active: NDArray[np.int64]  # (m,) the active units come first
    worth: Array  # (m,) c_u as the last bound had it, raised for rounding
    share: Array  # (m,) z_u
    size: Array  # (m,) √(Σ w_jβ_j²)
    least_share: Array  # (m,) the least z_u for which β_u is within z_u times its bounds
    ones: Array  # (m,)
    scratch: Array  # (m,)
    theta: Array  # (p,)
    rho: Array  # (p,)
    limits: Any  # of ``descent.LIMITS``


@kernel(inner=True)
def sum_largest_units(terms, units, state, count, k, g, raise_by, top):
    """An upper bound on Σ c_u over included units and the ``k`` most worth free ones.

    ``top`` takes the k + 1 largest worths of free units, falling; each |g_j| may be off by
    raise_by·ℓ_j. The sum is ∞ where an entry of g is not a number.
    """
    total = 0.0
    for c in range(k + 1):
        top[c] = 0.0
    for a in range(count):
        u, value = units.listed[a], 0.0
        for j in range(units.first[u], units.first[u + 1]):
            off = raise_by * terms.length[j]
            value += most_worth(g[j], off, terms.w[j], units.lower[j], units.upper[j])
        units.worth[u] = value
        if not value >= 0.0:
            return np.inf
        if state[u] == IN:
            total += value
        elif value > top[k]:
            insert(top, k, value)
    for c in range(k):
        total += top[c]
    return total


@kernel(inner=True)
def list_units(units, state):
    """Write the units that are not excluded to ``units.listed``; returns their number."""
    count = 0
    for u in range(state.shape[0]):
        if state[u] != OUT:
            units.listed[count] = u
            count += 1
    return count


@kernel(inner=True)
def unit_bound(terms, units, state, count, k, beta, g, top):
    """The dual bound of a node, less all that rounding can lose; −∞ where NaN occurs.

    state: (m,), 0 free, 1 included, 2 excluded; ``count`` units are in ``units.listed``.
    k: Number of free units still to choose, ≥ 0.
    beta: (p,), any coefficients; 0 on excluded units.
    g: (p,), b − Qβ computed from β in one go.
    top: (k + 3,), overwritten as by :func:`~.dual_bound.gram_bound`; ``units.worth`` gets c_u.
    """
    linear, quadratic, reach = products(terms, beta, g)
    raise_by = terms.eps * reach
    total = sum_largest_units(terms, units, state, count, k, g, raise_by, top) * (1.0 + terms.eps)
    return bound_of_sums(terms, linear, quadratic, reach, total, k, top)


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
def sweep_units(Q, w, units, state, n, root_lam, beta, g):
    """One pass over the n active units at λ = root_lam²; updates β, g = b − Qβ and shares.

    Where columns of a unit are not orthogonal, q = Σ|Q_jc| bounds their part of Q from above, so
    that a step still lowers the objective.
    Returns: The largest Σ (q + w)·step² of a unit, about the largest decrease of the objective.
    """
    most, rho = 0.0, units.rho
    for a in range(n):
        u = units.active[a]
        begin, end = units.first[u], units.first[u + 1]
        for j in range(begin, end):
            rho[j] = g[j] + units.spread[j] * beta[j]
        if state[u] == IN:
            share_slope(w, units, rho, u, 1.0)
            z = 1.0
        else:
            z = best_share(w, units, rho, u, root_lam * root_lam)
        units.share[u] = z
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


@kernel(inner=True)
def measure_units(w, units, count, beta):
    """Write √(Σ w_jβ_j²) of every listed unit to ``units.size``, and the least share it needs."""
    for a in range(count):
        u = units.listed[a]
        square, least = 0.0, 0.0
        for j in range(units.first[u], units.first[u + 1]):
            square += w[j] * beta[j] * beta[j]
            if beta[j] > 0.0:
                least = max(least, beta[j] / units.upper[j])
            elif beta[j] < 0.0:
                least = max(least, beta[j] / units.lower[j])
        units.size[u], units.least_share[u] = np.sqrt(square), min(least, 1.0)


@kernel(inner=True)
def share_units(terms, units, state, count, k, beta, g):
    """The √λ at which Σz = k at β, and about the relaxation's objective at β and these shares.

    ``units.share`` gets z_u = min(1, size/√λ), or what the bounds on the coefficients need.
    """
    measure_units(terms.w, units, count, beta)
    here = (state, units.listed, count, k, units.size, units.scratch)
    fitted, _ = fit_multiplier(units.ones, *here)
    value, total = terms.yy, 0.0
    for j in range(beta.shape[0]):
        value -= beta[j] * (terms.b[j] + g[j])
    for a in range(count):
        u = units.listed[a]
        size = units.size[u]
        if state[u] == IN:
            value += size * size
            units.share[u] = 1.0
        elif size > 0.0:
            z = 1.0 if size >= fitted else size / fitted
            z = max(z, units.least_share[u])
            value += size * size / z
            total += z
            units.share[u] = z
        else:
            units.share[u] = 0.0
    return fitted, value + fitted * fitted * max(total - k, 0.0)


@kernel(inner=True)
def list_active_units(units, state, count, beta, level):
    """Write units that are included, have a coefficient, or are worth more than λ: the active."""
    n = 0
    for a in range(count):
        u = units.listed[a]
        active = state[u] == IN or units.worth[u] > level
        for j in range(units.first[u], units.first[u + 1]):
            active = active or beta[j] != 0.0
        if active:
            units.active[n] = u
            n += 1
    return n


@kernel(inner=True)
def total_share(units, state, n):
    """Σ z_u over the n active units that are free."""
    total = 0.0
    for a in range(n):
        u = units.active[a]
        if state[u] == FREE:
            total += units.share[u]
    return total


@kernel
def relax_units(Q, terms, units, state, k, beta, g, lam, top):
    """Solve the relaxation at a node until one of ``units.limits`` is reached.

    Every round computes a bound at β, then a new √λ, then passes over the active units.

    state: (m,), free (0), included (1) or excluded (2) units; β must be 0 where excluded.
    k: Number of free units still to choose.
    beta, g, lam: Coefficients (p,) to start from, b − Qβ (p,), and √λ (1,); all are overwritten.
    top: (k + 3,), as :func:`unit_bound` writes it at the last β.
    Returns: The best bound of all rounds, and the bound at the last β.
    """
    stop, w, count = units.limits[0], terms.w, list_units(units, state)
    best, last, s, rounds, n = -np.inf, -np.inf, lam[0], 0, 0
    low, high = 0.0, np.inf  # bracket of √λ once Σz has been seen on both sides
    while True:
        rounds += 1
        gram_gradient(Q, terms.b, beta, g)
        last = unit_bound(terms, units, state, count, k, beta, g, top)
        best = max(best, last)
        if best >= stop.target or rounds > stop.rounds:
            break
        large = total_share(units, state, n) > k
        fitted, value = share_units(terms, units, state, count, k, beta, g)
        if value - best <= stop.gap * max(abs(value), 1e-300):
            break
        lacking = stop.target - best
        if rounds > 2 and value < stop.target and value - best <= stop.shortfall_share * lacking:
            break  # The relaxation's value is below the target, and so are all bounds.
        if not s > 0.0:
            s = fitted
        elif rounds > 1:
            s, low, high = bracketed_multiplier(s, fitted, large, low, high)
        if not s > 0.0:  # At most k units have a coefficient: a smaller λ lets others in.
            s = 0.5 * (low + high) if high < np.inf else 0.5 * np.sqrt(top[max(k - 1, 0)])
        s = max(s, 1e-150)
        n = list_active_units(units, state, count, beta, s * s)
        # Up to five passes follow, while a step lowers the objective by a tenth of the gap wanted.
        tolerance = 0.1 * stop.gap * max(abs(value), 1e-300)
        for _ in range(5):
            if sweep_units(Q, w, units, state, n, s, beta, g) <= tolerance:
                break
    lam[0] = s
    return best, last

"""Compiled coordinate descent for the perspective relaxation (eq. 5, first paper) at a node.

A node has included columns I, free columns F, and k free columns still to choose. With G = XᵀX, a
diagonal D, Q = G − D ⪰ 0, b = Xᵀy and weights w_i = γ/2 + D_ii its relaxation is

    min yᵀy − 2bᵀβ + βᵀQβ + Σ_I w_i β_i² + Σ_F w_i β_i²/z_i   s.t. Σ_F z ≤ k, 0 ≤ z ≤ 1.

For a multiplier λ of the cardinality constraint the best z is z_i = min(1, |β_i|√(w_i/λ)). A free
coordinate then has the reverse-Huber penalty 2√(λw_i)|β_i| up to |β_i| = √(λ/w_i), and w_iβ_i² + λ
beyond. Every bound comes from :mod:`dual_bound` and holds at any β.

In Gram form Q is a matrix, and a step of one coordinate costs O(p). In residual form, for p ≫ n,
Q = XᵀX + eI is given by X, with one contiguous row for each column of the data: a step costs O(n)
and updates the residual r = y − Xβ. Before every bound the gradient g = b − Qβ is computed anew
from β or r, as there is no bound on the rounding errors of a g that is updated step by step.

Where columns are in units, or have bounds (``dual_bound``), a free unit has a share z_u ≤ 1, with
w_jβ_j²/z_u for each of its columns and β_j within z_u·[low_j, high_j]. For a multiplier λ the best
β_u = z_uθ of a unit, all other units fixed, follows from one equation in z_u (:func:`best_share`),
and z_u = 0 where the unit's worth c_u is at most λ. For a single column without bounds this is the
reverse-Huber penalty. The form is then Gram's.
"""

from __future__ import annotations

import numpy as np

from ..core.leaves import FREE, IN
from ..kernels.compiled import kernel
from ..kernels.linalg import add, dot
from .dual_bound import (
    gram_bound,
    gram_gradient,
    insert,
    list_allowed,
    residual_bound,
    worth,
)

# The share z at which a unit saves λ is looked for until the saving is λ up to this share: a
# choice.
LEVEL_TOLERANCE = 1e-8


@kernel(inner=True)
def coordinate(slope, q, weight, root_lam):
    """The best value β_i of a free coordinate under the reverse-Huber penalty, all others fixed.

    root_lam: √λ, with which the penalty is 2√(λw)|β_i| up to |β_i| = √(λ/w) and wβ_i² + λ beyond.
    slope, q, weight: g_i where β_i = 0, the diagonal entry of Q, and w_i.
    """
    root = np.sqrt(weight)
    size = abs(slope)
    kink = root_lam * root
    if size <= kink:
        return 0.0
    # If q = 0, no minimum lies on the linear piece of the penalty
    new = (size - kink) / q if q > 0.0 else np.inf
    if new > root_lam / root:
        new = size / (q + weight)
    return new if slope >= 0.0 else -new


@kernel(inner=True)
def share_slope(w, units, u, z):
    """What a share z of unit u saves for each unit of z, and how fast the saving falls with z.

    With q = ``units.spread`` the best θ_j is ρ_j/(qz + w) within the bounds, and the saving is
    Σ θ(2ρ − wθ − 2qzθ), which falls with z; at z = 0 it is c_u at the slopes ρ. ``units.theta``
    gets θ.
    """
    saved, rate = 0.0, 0.0
    for j in range(units.first[u], units.first[u + 1]):
        q, weight, slope = units.spread[j], w[j], units.rho[j]
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
def best_share(w, units, u, level):
    """The best share z in [0, 1] of unit u, all others fixed; ``units.theta`` gets θ = β/z.

    A share that rises lowers the objective at the rate that :func:`share_slope` calls the saving,
    and costs ``level`` = λ for each unit of z. The saving falls with z. So the best share is 1 if
    the saving is at least λ there, 0 if it is at most λ there, and else the root of saving = λ.

    The steps are Newton's for 1/√saving, which are exact for a unit of one column without bounds.
    They stay between shares that are known to be too small and too large. At most 12 steps are
    taken, a choice, until the saving is λ up to ``LEVEL_TOLERANCE``. Bounds hold at any share.

    w: The weights of the columns. On entry ``units.rho`` and ``units.spread`` belong to unit u.
    """
    low, high, z = 0.0, 1.0, 0.0
    saved, rate = share_slope(w, units, u, 1.0)
    if saved >= level:
        return 1.0
    saved, rate = share_slope(w, units, u, 0.0)
    if saved <= level:
        return 0.0
    for _ in range(12):
        step = 2.0 * saved * (np.sqrt(saved / level) - 1.0) / rate if rate > 0.0 else np.inf
        z = z + step
        if not low < z < high:
            z = 0.5 * (low + high)
        saved, rate = share_slope(w, units, u, z)
        if abs(saved - level) <= LEVEL_TOLERANCE * level:
            break
        if saved > level:
            low = z
        else:
            high = z
    return z


@kernel(inner=True)
def sweep(work, w, node, active, root_lam):
    """One pass over the active columns at λ = root_lam²; updates β, and g or the form's residual.

    Returns: The largest (Q_ii + w_i)·step², about the largest decrease of the objective by a step,
        by which the caller sees whether another pass pays.
    """
    Q, X, r, g, most = work.form.Q, work.form.X, work.form.residual, work.g, 0.0
    state, beta, e, in_rows = node.state[0], node.beta[0], work.form.extra, X.shape[0] > 0
    rows, moved = (X, r) if in_rows else (Q, g)
    n = moved.shape[0]
    for a in range(active.shape[0]):
        i = active[a]
        q = work.form.diagonal[i] if in_rows else Q[i, i]
        weight, old = w[i], beta[i]
        slope = q * old + (dot(X[i], r, n) - e * old if in_rows else g[i])
        new = slope / (q + weight) if state[i] == IN else coordinate(slope, q, weight, root_lam)
        step = new - old
        if step != 0.0:
            beta[i] = new
            add(moved, rows[i], -step, n)
            most = max(most, (q + weight) * step * step)
    return most


@kernel(inner=True)
def sweep_units(work, terms, node, active, root_lam):
    """One pass over the active units at λ = root_lam², otherwise as :func:`sweep`.

    Where columns of a unit are not orthogonal, q = Σ|Q_jc| bounds their part of Q from above, so
    that a step still lowers the objective.
    Returns: The largest Σ (q + w)·step² of a unit.
    """
    most, w, units, beta, g, Q = 0.0, terms.w, terms.units, node.beta[0], work.g, work.form.Q
    for a in range(active.shape[0]):
        u = active[a]
        begin, end = units.first[u], units.first[u + 1]
        for j in range(begin, end):
            units.rho[j] = g[j] + units.spread[j] * beta[j]
        z = 1.0
        if node.state[0, u] == IN:
            share_slope(w, units, u, 1.0)
        else:
            z = best_share(w, units, u, root_lam * root_lam)
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
def measure(terms, columns, count, beta, size):
    """Write |β_i|√w_i of every listed column to ``size``, or √(Σ w_jβ_j²) of every listed unit.

    ``least_share`` of the units gets the least z of a unit for which β is within z times its
    bounds.
    """
    w, units = terms.w, terms.units
    for a in range(count):
        i = columns[a]
        if units.single:
            size[i] = abs(beta[i]) * np.sqrt(w[i])
            continue
        square, least = 0.0, 0.0
        for j in range(units.first[i], units.first[i + 1]):
            square += w[j] * beta[j] * beta[j]
            if beta[j] != 0.0:
                bound = units.upper[j] if beta[j] > 0.0 else units.lower[j]
                least = max(least, beta[j] / bound)
        size[i], units.least_share[i] = np.sqrt(square), min(least, 1.0)


@kernel(inner=True)
def fit_multiplier(state, columns, count, k, size, scratch):
    """√λ at which Σ_F z_i = k, and the penalty Σ_F size_i²/z_i at that √λ.

    √λ is 0 where at most k sizes are not 0. ``scratch`` (p,) is work space, and the first ``count``
    of ``columns`` are the columns that are not excluded, whose sizes :func:`measure` has written.
    """
    n, total, tail = 0, 0.0, 0.0
    for a in range(count):
        i = columns[a]
        if state[i] == FREE and size[i] > 0.0:
            insert(scratch, n, size[i])  # Falling; most sizes are 0, so that few columns come here.
            n += 1
            total += size[i] * size[i]
            tail += size[i]
    if n <= k:
        return 0.0, total
    # The m largest have z = 1: m + tail/√λ = k with scratch[m] < √λ ≤ scratch[m−1].
    head, whole = 0.0, tail
    for m in range(k):
        root = tail / (k - m)
        if scratch[m] <= root or m == k - 1:
            return root, head + tail * root
        tail -= scratch[m]
        head += scratch[m] * scratch[m]
        if tail < 1e-6 * whole:  # The difference has lost digits, so that sizes are added up anew.
            tail = 0.0
            for a in range(n - 1, m, -1):
                tail += scratch[a]
            whole = tail
    return 0.0, total  # k is 0: no free column may be chosen, and no multiplier makes Σz equal 0.


@kernel(inner=True)
def gradient(work, b, beta, count):
    """Compute g = b − Qβ from β; in residual form g = Xr − eβ from the residual r in the form.

    In residual form only the entries of the first ``count`` of ``work.columns`` are written.
    """
    X, r, e = work.form.X, work.form.residual, work.form.extra
    if X.shape[0] == 0:
        gram_gradient(work.form.Q, b, beta, work.g)
        return
    for a in range(count):
        i = work.columns[a]
        work.g[i] = dot(X[i], r, r.shape[0]) - e * beta[i]


@kernel(inner=True)
def dual_bound(terms, node, work, count, k):
    """The certified bound at β: :func:`residual_bound` where the form has X, else Gram form's."""
    if work.form.X.shape[0] > 0:
        return residual_bound(terms, node, work, count, k)
    return gram_bound(terms, node, work, count, k)


@kernel(inner=True)
def relaxed_value(terms, node, work, count, fitted, penalty):
    """The relaxation's objective at β with the best z, whose √λ and penalty are given.

    On entry ``work.g`` is b − Qβ, and :func:`measure` has written the sizes. fitted, penalty: What
    :func:`fit_multiplier` has returned.
    Where bounds on coefficients need larger z, λ times what Σz is then too large is added.
    """
    value, beta, least_share = terms.yy + penalty, node.beta[0], terms.units.least_share
    state, size = node.state[0], work.size
    for j in range(beta.shape[0]):
        if beta[j] != 0.0:
            value -= beta[j] * (terms.b[j] + work.g[j])
    for a in range(count):
        i = work.columns[a]
        if state[i] == IN:
            value += size[i] * size[i]
        elif not terms.units.single:
            beyond = fitted * least_share[i] - size[i]
            if beyond > 0.0:
                value += beyond * beyond / least_share[i]
    return value


@kernel(inner=True)
def evaluate_relaxation(work, terms, node, count, k):
    """Compute g, and what is known of the relaxation at β: its bound, and its value there.

    count: The first so many of ``work.columns`` are the columns that are not excluded.
    k: Number of free columns still to choose.
    Returns: The certified bound, the √λ at which Σz is as large as allowed, and the objective.
    """
    columns, size = work.columns, work.size
    gradient(work, terms.b, node.beta[0], count)
    bound = dual_bound(terms, node, work, count, k)
    measure(terms, columns, count, node.beta[0], size)
    fitted, penalty = fit_multiplier(node.state[0], columns, count, k, size, work.scratch)
    return bound, fitted, relaxed_value(terms, node, work, count, fitted, penalty)


@kernel(inner=True)
def share_of(units, i, size, root_lam):
    """z_i = min(1, size_i/√λ), or more where the bounds on coefficients of a unit need more.

    root_lam: √λ; with 0, z is 1.
    """
    z = 1.0 if size[i] >= root_lam else size[i] / root_lam
    return z if units.single else max(z, units.least_share[i])


@kernel(inner=True)
def relaxed_size(units, state, columns, count, size, root_lam):
    """Σ z_i over the free columns among the first ``count`` of ``columns``, at √λ = root_lam."""
    total = 0.0
    for a in range(count):
        i = columns[a]
        if state[i] == FREE and size[i] > 0.0:
            total += share_of(units, i, size, root_lam)
    return total


@kernel(inner=True)
def next_multiplier(root_lam, fitted, large, low, high):
    """The next √λ and its bracket [low, high]: the fitted √λ, or the bracket's geometric mean.

    The fitted √λ is taken if it is inside the bracket and below 5 times ``root_lam``. Without an
    upper end 1.3 times the lower end takes its place, and √λ never falls below 0.6 of itself. These
    numbers are choices: bounds hold at any λ.

    large: Whether Σz at ``root_lam`` is more than may be chosen, so that √λ has to grow.
    """
    if large:
        low = max(low, root_lam)
    else:
        high = min(high, root_lam)
    if low >= high:
        return root_lam, 0.0, np.inf  # passes had not converged: begin a new bracket
    if not low < fitted < min(high, 5.0 * root_lam):
        fitted = np.sqrt(low * high) if low > 0.0 and high < np.inf else 1.3 * low
    return max(fitted, 0.6 * root_lam), low, high


@kernel(inner=True)
def list_active(terms, node, level, count, work):
    """Write the active columns or units to ``work.active``: included, of a size, or worth over λ.

    level: λ. Returns: How many are active.
    """
    n, state = 0, node.state[0]
    for a in range(count):
        i = work.columns[a]
        if state[i] == IN or work.size[i] > 0.0 or worth(terms, i, work.g, 0.0) > level:
            work.active[n] = i
            n += 1
    return n


@kernel(inner=True)
def descend(work, terms, node, k):
    """Solve the relaxation at a node until one of ``work.limits`` is reached.

    Every round computes a bound at β, then a new √λ, then passes over the active columns. On entry
    ``node.beta`` and ``node.lam`` are where to start, and ``work.best[0]`` is a bound or −∞; these,
    ``work.g`` and ``work.top`` are overwritten. With a target of −∞ the relaxation is only
    evaluated: β and λ stay as they are.

    work, node: A ``RelaxationWork``, and ``Leaves`` of one node.
    k: Number of free columns still to choose.
    Returns: The number of rounds; negative where neither the target nor the gap was reached.
    """
    best, columns, size, state, beta = (
        work.best,
        work.columns,
        work.size,
        node.state[0],
        node.beta[0],
    )
    stop, count = work.limits[0], list_allowed(state, columns)
    best[1] = np.inf
    root_lam, rounds = node.lam[0], 0
    low, high = 0.0, np.inf  # bracket of √λ once Σz has been seen on both sides
    while rounds < stop.rounds:
        rounds += 1
        bound, fitted, value = evaluate_relaxation(work, terms, node, count, k)
        best[0], best[1], best[2] = max(best[0], bound), min(best[1], value), fitted
        node.lam[0] = root_lam
        if best[0] >= stop.target or value - best[0] <= stop.gap * max(abs(value), 1e-300):
            return rounds
        lacking = stop.target - best[0]
        if rounds > 2 and value < stop.target and value - best[0] <= stop.shortfall_share * lacking:
            break  # the relaxation's value is below the target, and so are all bounds
        if rounds > 1:
            large = relaxed_size(terms.units, state, columns, count, size, root_lam) > k
            root_lam, low, high = next_multiplier(root_lam, fitted, large, low, high)
        n = list_active(terms, node, root_lam * root_lam, count, work)
        active = work.active[:n]
        # Passes end where no step lowers the objective by a tenth of the gap to reach.
        tolerance = 0.1 * stop.gap * max(abs(value), 1e-300)
        for _ in range(5):
            if terms.units.single:
                most = sweep(work, terms.w, node, active, root_lam)
            else:
                most = sweep_units(work, terms, node, active, root_lam)
            if most <= tolerance:
                break
    gradient(work, terms.b, beta, count)
    node.lam[0] = root_lam
    return -rounds

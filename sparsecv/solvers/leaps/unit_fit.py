"""Compiled fits within bounds on the coefficients, by an active set, and what they lack at most.

``core.bounded_fit`` describes the active set. Here fits start from the fit of a node's parent.
"""

from __future__ import annotations

import numpy as np

from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import EPS, dot
from ..kernels.worth import most_worth

# Share of the curvature of the objective that makes up for slopes that a fit has left, which are of
# the size of rounding errors; the rest bounds what dropping units adds. Doubled, dropping units
# adds one part in a thousand less, and fits lack half as much.
LACKING_SHARE = 1e-3


@kernel(inner=True)
def fit_free(tree, m):  # type: ignore[no-untyped-def]
    """Fit the free columns among ``tree.columns[:m]``, others fixed at ``tree.coef``, to slope."""
    p, n, T = tree.coef.shape[0], 0, tree.triangle
    y = tree.own[p]
    for a in range(p + 1):
        y[a] = tree.columns_of[p, a]
    for a in range(m):
        i = tree.columns[a]
        if tree.free[i] == 1:
            tree.places[n] = i
            n += 1
        elif tree.coef[i] != 0.0:
            for c in range(i + 1):
                y[c] -= tree.coef[i] * tree.columns_of[i, c]
    ridge_triangle(T, tree.own, tree.places, n, 0.0, True, tree.work, 0.0)
    for c in range(n):
        T[c, c] = min(T[c, c], -tree.options[0].least_pivot)
    for a in range(n - 1, -1, -1):
        total = T[a, n]
        for c in range(a + 1, n):
            total -= T[a, c] * tree.slope[tree.places[c]]
        tree.slope[tree.places[a]] = total / T[a, a]
    return n


@kernel(inner=True)
def move_to_fit(tree, m):  # type: ignore[no-untyped-def]
    """Move ``tree.coef`` towards fits on its free columns until a fit is within the bounds.

    A coefficient that reaches its bound on the way stays there. Returns: Whether any changed.
    """
    coef, fitted, changed = tree.coef, tree.slope, False
    while True:
        n = fit_free(tree, m)
        step = 1.0
        for a in range(n):
            i = tree.places[a]
            move = fitted[i] - coef[i]
            if fitted[i] > tree.upper[i]:
                step = min(step, max((tree.upper[i] - coef[i]) / move, 0.0))
            elif fitted[i] < tree.lower[i]:
                step = min(step, max((tree.lower[i] - coef[i]) / move, 0.0))
        stopped = False
        for a in range(n):
            i = tree.places[a]
            move, bound, beyond = fitted[i] - coef[i], 0.0, False
            if fitted[i] > tree.upper[i]:
                bound, beyond = tree.upper[i], True
            elif fitted[i] < tree.lower[i]:
                bound, beyond = tree.lower[i], True
            if beyond and max((bound - coef[i]) / move, 0.0) <= step:
                tree.free[i], stopped = 0, True
                changed = changed or coef[i] != bound
                coef[i] = bound
            elif step > 0.0:
                changed = changed or move != 0.0
                coef[i] += step * move
        if not stopped:
            return changed


@kernel(inner=True)
def slopes(tree, m):  # type: ignore[no-untyped-def]
    """Write half the slopes Rᵀ(z − Rβ) at ``tree.coef`` to ``tree.slope``.

    Returns: The loss ‖z − Rβ‖², and the sum of |z| and the lengths of columns times |β|.
    """
    p = tree.coef.shape[0]
    y, size = tree.own[p], 0.0
    for a in range(p + 1):
        y[a] = tree.columns_of[p, a]
        size += y[a] * y[a]
    size = np.sqrt(size)
    for a in range(m):
        i = tree.columns[a]
        if tree.coef[i] != 0.0:
            column = tree.columns_of[i]
            size += abs(tree.coef[i]) * np.sqrt(dot(column, column, i + 1))
            for c in range(i + 1):
                y[c] -= tree.coef[i] * column[c]
    for a in range(m):
        i = tree.columns[a]
        tree.slope[i] = dot(tree.columns_of[i], y, i + 1)
    return dot(y, y, p + 1), size


@kernel
def fit_inside(tree, m, curvature):  # type: ignore[no-untyped-def]
    """Fit ``tree.columns[:m]`` within the bounds on coefficients, from ``tree.coef`` on.

    Coefficients start within their bounds. Any others differ from those found by some d, and their
    objective by ‖Rd‖² − 2 slopeᵀd. Of ‖Rd‖² the share ``LACKING_SHARE`` is at least Σ w_id_i², and
    what the terms w_id_i² − 2 slope_id_i are at their least, the bound lacks to the loss. The rest
    of ‖Rd‖² is left for what dropping units adds.

    curvature: A number c with ‖Rd‖² ≥ c Σ ℓ_i²d_i², ℓ_i the lengths of columns. The weights w_i are
        the larger of γ/2 and cℓ_i², times the share.
    Returns: The loss, and a lower bound on the least loss within the bounds.
    """
    p, ridge = tree.coef.shape[0], tree.rules[0].ridge
    coef, free = tree.coef, tree.free
    for a in range(m):
        i = tree.columns[a]
        free[i] = tree.lower[i] < coef[i] < tree.upper[i]
    refused = -1
    move_to_fit(tree, m)
    for _ in range(20 * m + 20):
        _, size = slopes(tree, m)
        at, most = -1, 0.0
        for a in range(m):
            i = tree.columns[a]
            slope, column = tree.slope[i], tree.columns_of[i]
            room = coef[i] < tree.upper[i] if slope > 0.0 else coef[i] > tree.lower[i]
            if free[i] == 0 and room and i != refused:
                gain = abs(slope) / np.sqrt(dot(column, column, i + 1))
                if gain > most:
                    at, most = i, gain
        if at < 0 or most <= 4.0 * EPS * size:
            break
        free[at] = 1
        refused = -1 if move_to_fit(tree, m) else at
    loss, size = slopes(tree, m)
    lacking = 0.0
    for a in range(m):
        i = tree.columns[a]
        square = dot(tree.columns_of[i], tree.columns_of[i], i + 1)
        off = 2.0 * (p + 8.0) * EPS * size * np.sqrt(square)
        w = LACKING_SHARE * max(ridge, curvature * square)
        below, above = tree.lower[i] - coef[i], tree.upper[i] - coef[i]
        lacking += most_worth(tree.slope[i], off, w, below, above)
    return loss, max(loss - lacking, 0.0)


@kernel(inner=True)
def outside(tree, coef, m):  # type: ignore[no-untyped-def]
    """Whether one of the coefficients of ``tree.columns[:m]`` is outside its bounds."""
    for a in range(m):
        i = tree.columns[a]
        if coef[i] < tree.lower[i] or coef[i] > tree.upper[i]:
            return True
    return False

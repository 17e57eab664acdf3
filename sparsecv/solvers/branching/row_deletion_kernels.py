"""Compiled bounds of many problems that each lack some rows of the same data.

Problem j lacks the rows D with responses T. At fixed coefficients β its dual bound differs from the
bound on all rows only through the residuals e = T − Dβ of these rows: the gradient Xᵀ(y − Xβ) loses
Dᵀe, βᵀXᵀXβ loses |Dβ|², yᵀy loses |T|². Where the bound at β is not enough, β follows the deletion:
with the columns A that have a coefficient, and K = LLᵀ the curvature of the relaxation on A,

    β_A − K⁻¹D_Aᵀ(I − D_A K⁻¹D_Aᵀ)⁻¹e

is the relaxation's optimum without the rows, as long as the same coefficients are zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import EPS, Array, add, dot, factor_row, invert_factor
from ..relaxation.dual_bound import (
    BoundTerms,
    bound_of_parts,
    gram_gradient,
    list_allowed,
    products,
    sum_largest,
)
from .search_settings import ROW_DELETION

NODE = np.dtype(
    [
        ("quadratic", "f8"),  # βᵀGβ
        ("linear", "f8"),  # βᵀb
        ("square", "f8"),  # |β|²
        ("reach", "f8"),  # |y| + Σ|β_i|·length_i, which rounding of the residual is relative to
        ("root_lam", "f8"),  # √λ of the node's relaxation
        ("extracted", "f8"),  # d of the relaxation's Q = G − dI
        ("cardinality_left", "i8"),  # free columns still to choose
        ("allowed", "i8"),  # columns that are not excluded
        ("active", "i8"),  # columns with a coefficient, −1 before L⁻¹ is formed
    ]
)


class DeletedProblems(NamedTuple):
    """Problems that lack rows, a node's coefficients, and work space."""

    G: Array  # (p, p) of all rows
    all_rows: BoundTerms  # with w = 1, as the weights of a problem are equal
    D: Array  # (R, p) the rows deleted, problem after problem
    T: Array  # (R,)
    start: NDArray[np.int64]  # (k + 1,) problem j lacks rows start[j] to start[j + 1] − 1
    yy: Array  # (k,) squared length of y without the rows
    shift: Array  # (k,) multiple of I added to the problem's G and taken off γ/2
    ridge: float  # γ/2
    # A node: decisions, coefficients, b − Gβ, and 1 for included or free columns, 0 for others.
    state: NDArray[np.int8]  # (p,)
    columns: NDArray[np.int64]  # (p,) the columns that are not excluded come first
    beta: Array  # (p,)
    c: Array  # (p,)
    inside: Array  # (p,)
    free: Array  # (p,)
    now: NDArray[np.void]  # (1,) of NODE
    active: NDArray[np.int64]  # (p,) columns with a coefficient
    inverse: Array  # (p, p) L⁻¹ of K on the active columns
    # One problem: coefficients changed by its deleted rows, and work space for its m rows.
    moved: Array  # (p,) the changed coefficients
    moved_c: Array  # (p,) b − Gβ on all rows at these coefficients
    g: Array  # (p,) gradient of the problem
    top: Array  # (p + 3,)
    U: Array  # (m, p) D L⁻ᵀ
    S: Array  # (m, m) Cholesky factor of I − UUᵀ
    error: Array  # (m,) residuals of the deleted rows at the node's coefficients
    e: Array  # (m,) residuals of the deleted rows at the coefficients that are bounded


@kernel
def load_node(dp, state, beta, left, root_lam, extracted):
    """Form the quantities of a node that all problems share, in O(p²) operations.

    The kernel writes the fields of ``dp`` for a node, and marks the factor of K as not formed.

    state, beta, shape (p,): Decisions and coefficients of the node.
    left: Columns still to choose.
    root_lam: √λ, λ the multiplier of the cardinality constraint.
    extracted: d of the relaxation's Q = G − dI.
    """
    p, now, terms = beta.shape[0], dp.now[0], dp.all_rows
    gram_gradient(dp.G, terms.b, beta, dp.c)
    now.linear, now.quadratic, now.reach = products(terms, beta, dp.c)
    for i in range(p):
        dp.beta[i], dp.state[i] = beta[i], state[i]
        dp.inside[i], dp.free[i] = state[i] == 1, state[i] == 0
    now.allowed, now.active = list_allowed(state, dp.columns), -1
    now.square = dot(beta, beta, p)
    now.root_lam, now.extracted, now.cardinality_left = root_lam, extracted, left


@kernel(inner=True, reorder=True)
def deleted_gradient(D, first, m, e, c, beta, shift, g):
    """Write g_i = c_i − Σ_r D_ri e_r − shift·β_i, summed over the m rows from ``first`` on.

    On entry c is b − Gβ on all rows, and e holds the residuals of the m deleted rows at β. The
    kernel writes g, the gradient without these rows.
    """
    p = beta.shape[0]
    if m == 1:  # Leave-one-out: one pass.
        error = e[0]
        for i in range(p):
            g[i] = c[i] - D[first, i] * error - shift * beta[i]
        return
    for i in range(p):
        g[i] = c[i] - shift * beta[i]
    for r in range(m):
        error = e[r]
        for i in range(p):
            g[i] -= D[first + r, i] * error


@kernel(inner=True, reorder=True)
def sum_from_above(g, length, raise_by, inside, free, k, level):
    """Σ v over included columns plus an upper bound on the sum of the k largest v of free columns.

    Here v_i = (|g_i| + raise_by·length_i)². For any level ≥ 0 the k largest v add up to at most
    k·level + Σ max(v − level, 0).
    """
    total, over = 0.0, 0.0
    for i in range(g.shape[0]):
        size = abs(g[i]) + raise_by * length[i]
        v = size * size
        total += inside[i] * v
        over += free[i] * max(v - level, 0.0)
    return total + k * level + over


@kernel(inline=True)
def evaluate(dp, j, c, beta, sums, target, scaled):
    """Dual bound of the loaded node on problem j, at any coefficients β.

    On entry ``dp.e`` holds the residuals of the deleted rows at β. The kernel writes ``dp.g`` and
    ``dp.top``.

    c: b − Gβ on all rows.
    sums: βᵀGβ and βᵀb on all rows, reach, |β|².
    target: The largest g² are selected only if the bound by :func:`sum_from_above` is below this.
    scaled: Whether multiples of the residual may be dual points, which is so only if shift = 0.
    """
    quadratic, linear, reach, square = sums
    first, m = dp.start[j], dp.start[j + 1] - dp.start[j]
    for r in range(m):
        fitted = dp.T[first + r] - dp.e[r]
        quadratic -= fitted * fitted
        linear -= dp.T[first + r] * fitted
    now, ridge, shift, eps = dp.now[0], dp.ridge, dp.shift[j], dp.all_rows.eps
    weight = ridge if shift == 0.0 else (ridge - shift) * (1.0 - 2.0 * EPS)
    deleted_gradient(dp.D, first, m, dp.e, c, beta, shift, dp.g)
    quadratic += shift * square
    raise_by, length, k = eps * reach, dp.all_rows.length, now.cardinality_left
    level = now.root_lam * now.root_lam * (ridge + now.extracted)
    total = sum_from_above(dp.g, length, raise_by, dp.inside, dp.free, k, level)
    total *= (1.0 + eps) / weight
    lost = raise_by * reach
    bound, _ = bound_of_parts(dp.yy[j], linear, quadratic, total, lost, scaled)
    if bound < target:
        here = (dp.all_rows, dp.state, dp.columns, now.allowed, k)
        total = sum_largest(*here, dp.g, raise_by, dp.top)
        total *= (1.0 + eps) / weight
        bound, _ = bound_of_parts(dp.yy[j], linear, quadratic, total, lost, scaled)
    return bound


@kernel(inline=True)
def bound_as_is(dp, j, target, scaled):
    """Dual bound of the loaded node on problem j at the node's own coefficients.

    The kernel writes the residuals of the deleted rows to ``dp.error``, and what :func:`evaluate`
    writes.
    """
    first, now = dp.start[j], dp.now[0]
    for r in range(dp.start[j + 1] - first):
        dp.error[r] = dp.T[first + r] - dot(dp.D[first + r], dp.beta, dp.beta.shape[0])
        dp.e[r] = dp.error[r]
    sums = (now.quadratic, now.linear, now.reach, now.square)
    return evaluate(dp, j, dp.c, dp.beta, sums, target, scaled)


@kernel(inner=True)
def factor_active(dp):
    """Form L⁻¹ of K = LLᵀ on the active columns, the curvature of the node's relaxation there.

    On entry a node is loaded. The kernel writes ``dp.active`` and ``dp.inverse``.

    K is G + γ/2 I on columns of z = 1 and G − dI on the other active columns, d the multiple of I
    that the relaxation extracts.
    """
    p, now, ridge, K = dp.beta.shape[0], dp.now[0], dp.ridge, dp.inverse
    n, mean = 0, 0.0
    for i in range(p):
        if dp.beta[i] != 0.0 or dp.inside[i] > 0.0:
            dp.active[n] = i
            mean += dp.G[i, i]
            n += 1
    now.active = n
    least = ROW_DELETION.relative_ridge * mean / max(n, 1)
    root_weight = np.sqrt(ridge + now.extracted)
    for a in range(n):
        i = dp.active[a]
        whole = dp.inside[i] > 0.0 or abs(dp.beta[i]) * root_weight >= now.root_lam
        for c in range(a):
            K[a, c] = dp.G[i, dp.active[c]]
        K[a, a] = dp.G[i, i] + (ridge if whole else -now.extracted) + least
        factor_row(K, a, least)
    invert_factor(K, n, dp.top)


@kernel(inline=True)
def down_date(dp, j):
    """Form U = D L⁻ᵀ for the rows that problem j lacks, and the Cholesky factor S of I − UUᵀ.

    On entry the factor of K is formed. The kernel writes ``dp.U``, ``dp.S`` and ``dp.g``.

    Returns: Whether the pivots of I − UUᵀ are large enough for the digits that they have lost.
    """
    U, S, first, n = dp.U, dp.S, dp.start[j], dp.now[0].active
    for r in range(dp.start[j + 1] - first):
        for a in range(n):
            dp.g[a] = dp.D[first + r, dp.active[a]]
        for a in range(n):
            U[r, a] = dot(dp.inverse[a], dp.g, a + 1)
        for s in range(r):
            S[r, s] = -dot(U[r], U[s], n)
        S[r, r] = 1.0 - dot(U[r], U[r], n)
        if not factor_row(S, r, 0.0) >= ROW_DELETION.min_pivot:
            return False
    return True


@kernel(inline=True)
def move(dp, j):
    """Change β to the relaxation's optimum without problem j's rows, if the same β_i stay zero.

    On entry the factor of K is formed, and ``dp.error`` holds the residuals at β.

    Returns: Whether ``dp.moved`` holds the coefficients and ``dp.e`` the residuals there.
    """
    first, m = dp.start[j], dp.start[j + 1] - dp.start[j]
    n, e, S, step = dp.now[0].active, dp.e, dp.S, dp.top
    if not down_date(dp, j):
        return False
    for r in range(m):
        e[r] = (dp.error[r] - dot(S[r], e, r)) / S[r, r]
    for back in range(m):
        r = m - 1 - back
        for q in range(r + 1, m):
            e[r] -= S[q, r] * e[q]
        e[r] /= S[r, r]
    for i in range(dp.beta.shape[0]):
        dp.moved[i], step[i] = dp.beta[i], 0.0
    for a in range(n):
        along = 0.0
        for r in range(m):
            along += dp.U[r, a] * e[r]
        add(step, dp.inverse[a], along, a + 1)
    for a in range(n):
        dp.moved[dp.active[a]] -= step[a]
    for r in range(m):
        e[r] = dp.T[first + r] - dot(dp.D[first + r], dp.moved, dp.moved.shape[0])
    return True


@kernel(inline=True)
def bound_moved(dp, j, target, scaled):
    """Dual bound of the loaded node on problem j at the coefficients of :func:`move`.

    On entry holds what :func:`move` needs. The kernel writes ``dp.moved_c``, and what :func:`move`
    and :func:`evaluate` write.

    Returns: −∞ where :func:`move` forms no coefficients.
    """
    if not move(dp, j):
        return -np.inf
    p, b, c = dp.beta.shape[0], dp.all_rows.b, dp.moved_c
    for i in range(p):
        c[i] = dp.c[i]
    for a in range(dp.now[0].active):
        i = dp.active[a]
        if dp.moved[i] != dp.beta[i]:
            add(c, dp.G[i], dp.beta[i] - dp.moved[i], p)
    quadratic, linear, square = 0.0, 0.0, 0.0
    reach = dp.now[0].reach  # c has been formed from β and from the moved coefficients.
    for a in range(dp.now[0].active):
        i = dp.active[a]
        square += dp.moved[i] * dp.moved[i]
        quadratic += dp.moved[i] * (b[i] - c[i])
        linear += dp.moved[i] * b[i]
        reach += abs(dp.moved[i]) * dp.all_rows.length[i]
    return evaluate(dp, j, c, dp.moved, (quadratic, linear, reach, square), target, scaled)


@kernel
def rebound(dp, leaves, extracted, target, most, left, is_open):
    """Bound every leaf of a search on all rows for every problem.

    leaves: Decisions, shape (m, p), coefficients, (m, p), √λ, (m,), and columns to choose, (m,).
    extracted: d of the relaxations' Q = G − dI.
    target, shape (k,): The bound that closes a leaf for a problem.
    most: A problem with more open leaves than this is not bounded any more.
    left, shape (k,): Increased by the number of leaves that stay open for a problem.
    is_open, shape (m, k): Gets 1 where the bound stays below the target, else 0.
    """
    states, betas, root_lam, to_choose = leaves
    for a in range(betas.shape[0]):
        load_node(dp, states[a], betas[a], to_choose[a], root_lam[a], extracted)
        for j in range(target.shape[0]):
            is_open[a, j] = 0
            if left[j] > most:
                continue
            scaled = dp.shift[j] == 0.0
            if bound_as_is(dp, j, target[j], scaled) >= target[j]:
                continue
            if dp.now[0].active < 0:
                factor_active(dp)
            if not bound_moved(dp, j, target[j], scaled) >= target[j]:  # NaN closes no leaf.
                is_open[a, j] = 1
                left[j] += 1


@kernel
def centres(dp, betas, bounds):
    """Write good coefficients of every problem at the loaded node, and the bounds there.

    On entry a node is loaded. No multiples of the residual are tried: the bounds are those of the
    coefficients written.

    betas, bounds, shape (k, p) and (k,).
    """
    factor_active(dp)
    for j in range(dp.yy.shape[0]):
        bounds[j] = bound_as_is(dp, j, np.inf, False)
        moved = bound_moved(dp, j, np.inf, False)
        better = moved > bounds[j]
        bounds[j] = max(bounds[j], moved)
        for i in range(dp.beta.shape[0]):
            betas[j, i] = dp.moved[i] if better else dp.beta[i]

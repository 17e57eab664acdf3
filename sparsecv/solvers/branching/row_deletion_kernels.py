"""Compiled bounds of one node on many neighbours: the same data without some of the rows.

Leaving out rows D with responses T changes a dual bound at fixed coefficients β only through the
rows' residuals e = T − Dβ: the gradient Xᵀ(y − Xβ) loses Dᵀe, βᵀXᵀXβ loses |Dβ|², yᵀy loses |T|².
Where that is not enough β follows the rows: with the columns A that have a coefficient, K the
curvature of the node's relaxation on them and V = D_A K⁻¹,

    β_A − Vᵀ(I − V D_Aᵀ)⁻¹e

is the relaxation's optimum without the rows, as long as its pattern stays.

Before either, one number per neighbour: the objective of every β the node allows is at least
bound + (β − β̂)ᵀM(β − β̂) with M = G + shift·I (``ellipsoid``), so without the rows it is at least
bound − eᵀ(I − D M⁻¹Dᵀ)⁻¹e.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import EPS, Array, add, dot, factor_row, invert_factor
from ..relaxation.dual_bound import best_multiple, gram_gradient
from .incumbent_kernels import SOUND

SETTINGS = np.dtype(
    [
        ("ridge", "f8"),  # γ/2
        ("eps", "f8"),  # rounding of bounds
        ("margin", "f8"),  # of objectives
        ("shift", "f8"),  # of M
        ("yy", "f8"),
        ("inflated", "f8"),  # rounding of leverages
    ]
)
NODE = np.dtype(
    [
        ("quadratic", "f8"),  # βᵀGβ
        ("linear", "f8"),  # βᵀb
        ("square", "f8"),  # |β|²
        ("reach", "f8"),  # |y| + Σ|β_i|·length_i
        ("level", "f8"),  # of the k-th largest g²
        ("bound", "f8"),  # on all rows, with the shift of M
        ("picks", "i8"),  # left
        ("active", "i8"),  # columns, −1 before they are listed
    ]
)


class Neighbours(NamedTuple):
    """Rows left out, what each neighbour's problem is, and work space."""

    D: Array  # (R, p)
    T: Array  # (R,)
    start: NDArray[np.int64]  # (k + 1,)
    yy: Array  # (k,)
    shift: Array  # (k,) multiple of I added to G_j, taken off the perspective's weight
    length: Array  # (p,) of the columns, all rows in, as the dual bound asks
    lever: Array  # (k,) largest eigenvalue of (I − D M⁻¹Dᵀ)⁻¹, ∞ where that says nothing
    settings: NDArray[np.void]  # (1,) of SETTINGS
    upper: Array  # (k,) incumbents
    support: NDArray[np.int64]  # (k, tau)
    doubt: NDArray[np.int32]  # (k,) neighbours a support could not be judged on
    # a node: coefficients (p,), b − Gβ (p,), included and free columns as 0/1 (p,)
    beta: Array
    c: Array
    inside: Array
    free: Array
    now: NDArray[np.void]  # (1,) of NODE
    residual: Array  # (R,)
    fitted: Array  # (R,)
    active: NDArray[np.int64]  # (p,)
    inverse: Array  # (p, p) K⁻¹ on the active columns
    # a neighbour
    moved: Array  # (p,) its coefficients
    v: Array  # (p,)
    top: Array  # (p + 2,)
    V: Array  # (m, p)
    S: Array  # (m, m)
    e: Array  # (m,)
    # a support
    L: Array  # (tau, tau)
    w: Array  # (tau,)


@kernel
def load_node(nb, G, b, state, beta, picks, level):  # type: ignore[no-untyped-def]
    """Form what all neighbours share of a node; O(p²) and O(p) for every row left out."""
    p = b.shape[0]
    quadratic, linear, reach = 0.0, 0.0, np.sqrt(max(nb.settings[0].yy, 0.0))
    for i in range(p):
        nb.beta[i] = beta[i]
        nb.inside[i] = 1.0 if state[i] == 1 else 0.0
        nb.free[i] = 1.0 if state[i] == 0 else 0.0
    gram_gradient(G, b, beta, nb.c)
    for i in range(p):
        quadratic += beta[i] * (b[i] - nb.c[i])
        linear += beta[i] * b[i]
        reach += abs(beta[i]) * nb.length[i]
    now = nb.now[0]
    now.quadratic, now.linear = quadratic, linear
    now.level, now.picks, now.reach = level, picks, reach
    now.square = dot(beta, beta, p)
    now.active = -1  # K⁻¹ is formed when first needed


@kernel(inner=True)
def bound_all_rows(nb):  # type: ignore[no-untyped-def]
    """Dual bound of the loaded node on all rows with G + shift·I as the quadratic part."""
    now, known = nb.now[0], nb.settings[0]
    shift, ridge, eps = known.shift, known.ridge, known.eps
    square, reach = now.square, now.reach
    squares(nb.D, 0, 0, nb.e, nb.c, nb.beta, shift, eps * reach, nb.length, nb.v)
    total = exact_sum(nb.v, nb.inside, nb.free, now.picks, nb.top) / (ridge - shift)
    lost = eps * (reach * reach + total)
    now.bound = known.yy - now.quadratic - shift * square - total - lost


@kernel(inner=True)
def residuals(nb, first, last):  # type: ignore[no-untyped-def]
    """Fitted values and residuals of some of the rows left out."""
    p = nb.beta.shape[0]
    for r in range(first, last):
        total = dot(nb.D[r], nb.beta, p)
        nb.fitted[r], nb.residual[r] = total, nb.T[r] - total


@kernel(inner=True, reorder=True)
def squares(D, first, m, e, c, beta, move, lost, length, v):  # type: ignore[no-untyped-def]
    """v_i = (|c_i − Σ_r D_ri e_r − shift·β_i| + what rounding may add)²."""
    p = beta.shape[0]
    if m == 1:  # leave-one-out: one pass
        error = e[0]
        for i in range(p):
            g = abs(c[i] - D[first, i] * error - move * beta[i]) + lost * length[i]
            v[i] = g * g
        return
    for i in range(p):
        v[i] = c[i] - move * beta[i]
    for r in range(m):
        error = e[r]
        for i in range(p):
            v[i] -= D[first + r, i] * error
    for i in range(p):
        g = abs(v[i]) + lost * length[i]
        v[i] = g * g


@kernel(inner=True, reorder=True)
def spread_sum(v, inside, free, k, level):  # type: ignore[no-untyped-def]
    """Σ v over included columns and an upper bound on the k largest v over free ones.

    kλ + Σ max(v − λ, 0) bounds the k largest from above for any λ ≥ 0.
    """
    total, over = 0.0, 0.0
    for i in range(v.shape[0]):
        total += inside[i] * v[i]
        over += free[i] * max(v[i] - level, 0.0)
    return total + k * level + over


@kernel(inner=True)
def exact_sum(v, inside, free, k, top):  # type: ignore[no-untyped-def]
    """Σ v over included columns and exactly the k largest v over free ones."""
    total = 0.0
    for c in range(k + 1):
        top[c] = 0.0
    for i in range(v.shape[0]):
        if inside[i] > 0.0:
            total += v[i]
        elif free[i] > 0.0 and v[i] > top[k]:
            c = k
            while c > 0 and top[c - 1] < v[i]:
                top[c] = top[c - 1]
                c -= 1
            top[c] = v[i]
    for c in range(k):
        total += top[c]
    return total


@kernel(inner=True)
def bound_pair(yy, quadratic, linear, total, move, eps, reach):  # type: ignore[no-untyped-def]
    """yy − βᵀ(G + shift)β − total, and with shift = 0 the best over multiples of the residual."""
    lost = eps * (reach * reach + total)
    plain = yy - quadratic - total - lost
    best = plain
    if move == 0.0:
        above = yy - linear
        below = above - linear + quadratic + total + lost
        best, _ = best_multiple(plain, above - lost, below)
    return plain, best


@kernel(inline=True)
def evaluate(nb, j, c, beta, quadratic, linear, reach, square, target, exactly):  # type: ignore[no-untyped-def]
    """Dual bounds of a node on neighbour j: at β itself, with the best multiple of its residual.

    c, beta, b − Gβ and β.
    quadratic, linear, reach, square, βᵀGβ, βᵀb, reach of β, |β|²; ``nb.e`` holds the residuals.
    target, bound that is asked for.
    exactly, select the largest g² exactly even where a bound on their sum reaches the target.
    """
    first, m = nb.start[j], nb.start[j + 1] - nb.start[j]
    for r in range(m):
        f = nb.T[first + r] - nb.e[r]
        quadratic -= f * f
        linear -= nb.T[first + r] * f
    now, eps, ridge, move = nb.now[0], nb.settings[0].eps, nb.settings[0].ridge, nb.shift[j]
    weight = ridge if move == 0.0 else (ridge - move) * (1.0 - 2.0 * EPS)
    squares(nb.D, first, m, nb.e, c, beta, move, eps * reach, nb.length, nb.v)
    quadratic += move * square
    total = spread_sum(nb.v, nb.inside, nb.free, now.picks, now.level) / weight
    plain, best = bound_pair(nb.yy[j], quadratic, linear, total, move, eps, reach)
    if exactly or best < target:
        total = exact_sum(nb.v, nb.inside, nb.free, now.picks, nb.top) / weight
        plain, best = bound_pair(nb.yy[j], quadratic, linear, total, move, eps, reach)
    return plain, best


@kernel(inline=True)
def bound_as_is(nb, j, target, exactly):  # type: ignore[no-untyped-def]
    """Bounds of the loaded node on neighbour j at the node's own coefficients."""
    first, m = nb.start[j], nb.start[j + 1] - nb.start[j]
    for r in range(m):
        nb.e[r] = nb.residual[first + r]
    now = nb.now[0]
    return evaluate(
        nb, j, nb.c, nb.beta, now.quadratic, now.linear, now.reach, now.square, target, exactly
    )


@kernel(inner=True)
def passing(nb, here, count, keep, value, retry):  # type: ignore[no-untyped-def]
    """Which of the neighbours ``here[:count]`` stay open at the node's own coefficients.

    ``value`` is the relaxation's on all rows, and value − e²/(1 − h) what is left of it without
    a row: where even value − e² is too low nothing is tried. Those remain first in ``here``, in
    ``retry`` 0; the ones worth another look have a 1 there. Returns how many remain.
    """
    all_rows, lost, left = nb.now[0].bound, nb.settings[0].eps * nb.now[0].reach, 0
    for a in range(count):
        j = here[a]
        target, error = nb.upper[j] * keep, 0.0
        for r in range(nb.start[j], nb.start[j + 1]):
            error += nb.residual[r] * nb.residual[r]
        if all_rows - (np.sqrt(error) + lost) ** 2 * nb.lever[j] >= target:
            continue
        hopeless = value - error < target
        if not hopeless:
            _, bound = bound_as_is(nb, j, target, False)
            if bound >= target:
                continue
        here[left] = j
        retry[left] = 0 if hopeless else 1
        left += 1
    return left


@kernel(inner=True)
def prepare_moves(nb, G, d, root_lam):  # type: ignore[no-untyped-def]
    """The inverse Cholesky factor of K on the active columns.

    K is G less the extracted d, plus the weight where z = 1.
    """
    p = nb.beta.shape[0]
    n = 0
    weight = nb.settings[0].ridge + d
    for i in range(p):
        if nb.beta[i] != 0.0 or nb.inside[i] > 0.0:
            nb.active[n] = i
            n += 1
    nb.now[0].active = n
    K = nb.inverse
    mean = 0.0
    for a in range(n):
        mean += G[nb.active[a], nb.active[a]] / n
    for a in range(n):
        i = nb.active[a]
        whole = nb.inside[i] > 0.0 or abs(nb.beta[i]) * np.sqrt(weight) >= root_lam
        for c in range(a):
            K[a, c] = G[i, nb.active[c]]
        K[a, a] = G[i, i] + (nb.settings[0].ridge if whole else -d) + 1e-9 * mean
        factor_row(K, a, 1e-9 * mean)
    invert_factor(K, n, nb.top)


@kernel(inner=True)
def worth_moving(nb, j, value, target):  # type: ignore[no-untyped-def]
    """Whether a node of ``value`` on all rows can reach ``target`` without one row.

    value − e²/(1 − h) is what the relaxation is worth without it as long as its pattern stays.
    """
    first, n = nb.start[j], nb.now[0].active
    if nb.start[j + 1] - first > 1:
        return True
    D, inverse, v, active = nb.D, nb.inverse, nb.v, nb.active
    h = 0.0
    for a in range(n):
        v[a] = D[first, active[a]]
    for a in range(n):
        y = dot(inverse[a], v, a + 1)
        h += y * y
    e = nb.residual[first]
    return h < 1.0 - SOUND and value - e * e / (1.0 - h) >= target


@kernel(inner=True)
def move(nb, j):  # type: ignore[no-untyped-def]
    """Let β follow the rows neighbour j leaves out; whether that was possible.

    On success ``nb.moved`` holds its coefficients and ``nb.e`` the residuals of the rows there.
    """
    first, m = nb.start[j], nb.start[j + 1] - nb.start[j]
    n, p = nb.now[0].active, nb.beta.shape[0]
    for r in range(m):
        for a in range(n):
            nb.v[a] = nb.D[first + r, nb.active[a]]
            nb.V[r, a] = 0.0
        for a in range(n):
            add(nb.V[r], nb.inverse[a], dot(nb.inverse[a], nb.v, a + 1), a + 1)
        nb.e[r] = nb.residual[first + r]
    for r in range(m):
        for s in range(r + 1):
            total = 1.0 if r == s else 0.0
            for a in range(n):
                total -= nb.V[r, a] * nb.D[first + s, nb.active[a]]
            nb.S[r, s] = total
        if factor_row(nb.S, r, 0.0) < SOUND:
            return False
    for r in range(m):
        for q in range(r):
            nb.e[r] -= nb.S[r, q] * nb.e[q]
        nb.e[r] /= nb.S[r, r]
    for back in range(m):
        r = m - 1 - back
        for q in range(r + 1, m):
            nb.e[r] -= nb.S[q, r] * nb.e[q]
        nb.e[r] /= nb.S[r, r]
    for i in range(p):
        nb.moved[i] = nb.beta[i]
    for a in range(n):
        total = 0.0
        for r in range(m):
            total += nb.V[r, a] * nb.e[r]
        nb.moved[nb.active[a]] -= total
    for r in range(m):
        total = nb.T[first + r]
        for a in range(n):
            total -= nb.D[first + r, nb.active[a]] * nb.moved[nb.active[a]]
        nb.e[r] = total
    return True


@kernel(inner=True)
def bound_moved(nb, G, b, j, target, exactly, c):  # type: ignore[no-untyped-def]
    """Bounds on neighbour j at coefficients that follow its rows; −∞ where they cannot."""
    if not move(nb, j):
        return -np.inf, -np.inf
    n, p = nb.now[0].active, nb.beta.shape[0]
    for i in range(p):
        c[i] = nb.c[i]
    for a in range(n):
        i = nb.active[a]
        step = nb.moved[i] - nb.beta[i]
        if step != 0.0:
            add(c, G[i], -step, p)
    quadratic, linear, square = 0.0, 0.0, 0.0
    reach = nb.now[0].reach  # c was formed from both coefficients
    for a in range(n):
        i = nb.active[a]
        square += nb.moved[i] * nb.moved[i]
        quadratic += nb.moved[i] * (b[i] - c[i])
        linear += nb.moved[i] * b[i]
        reach += abs(nb.moved[i]) * nb.length[i]
    return evaluate(nb, j, c, nb.moved, quadratic, linear, reach, square, target, exactly)


@kernel
def centres(nb, G, b, d, root_lam, betas, plain, c):  # type: ignore[no-untyped-def]
    """Every neighbour's own coefficients for the loaded node, and the bound at them."""
    residuals(nb, 0, nb.T.shape[0])
    prepare_moves(nb, G, d, root_lam)
    for j in range(nb.yy.shape[0]):
        value, _ = bound_as_is(nb, j, np.inf, True)
        plain[j] = value
        for i in range(b.shape[0]):
            betas[j, i] = nb.beta[i]
        value, _ = bound_moved(nb, G, b, j, np.inf, True, c)
        if value > plain[j]:
            plain[j] = value
            for i in range(b.shape[0]):
                betas[j, i] = nb.moved[i]

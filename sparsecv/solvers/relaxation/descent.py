"""Compiled coordinate descent for the perspective relaxation (eq. 5, main paper).

With Q = G − D ⪰ 0 and weights w_i = γ/2 + d_i the relaxation at a node (included set I, free set F,
k picks left) is

    min yy − 2bᵀβ + βᵀQβ + Σ_I w_i β_i² + Σ_F w_i β_i²/z_i   s.t. Σ_F z ≤ k, 0 ≤ z ≤ 1.

For a multiplier λ of the cardinality constraint z_i = min(1, |β_i|√(w_i/λ)), and each free
coordinate carries the reverse-Huber penalty 2√(λw_i)|β_i| up to |β_i| = √(λ/w_i), then
w_iβ_i² + λ. What is proved at any β is :mod:`dual_bound`'s.

Q is either given as a matrix (Gram form: a step costs O(p)) or as XᵀX + eI through X, one
contiguous row per column of the data (residual form, for p ≫ n: a step costs O(n) and keeps the
residual r up to date). g is formed anew from β, or from r, before every bound: what it gathers on
the way while coordinates move could not be bounded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array, dot, record
from .dual_bound import gram_bound, gram_gradient, list_allowed, residual_bound

FREE, IN, OUT = 0, 1, 2
SWEEPS = 5  # over the active columns between two looks at all of them
BLOCK = 400  # active columns that are gathered

LIMITS = np.dtype(
    [
        ("target", "f8"),  # bound at which it may stop
        ("gap", "f8"),  # relative, between value and bound
        ("rounds", "i8"),  # at most
        ("hopeless", "f8"),  # of what the bound lacks: where the gap is less it gives up
        ("scaled", "i8"),  # whether D = 0: the dual bound may scale the residual
    ]
)


class Sweeps(NamedTuple):
    """The quadratic part of a relaxation, when :func:`relax` stops, and its work space.

    form: Q (p, p), or (0, 0) in residual form; X (p, n), y and the residual y − Xᵀβ (n,), a
        multiple of I and the diagonal of Q (p,), all empty in Gram form. Residual form has no
        included columns.
    limits, shape (1,): Of ``LIMITS``.
    best, shape (2,): Best certified bound (not below what it was set to) and relaxed value.
    work: Active, columns (p,), scratch (p,), and block (m, m), local (2, m): more than m active
        columns are swept in place.
    """

    form: Any
    limits: Any
    best: Array
    work: tuple[NDArray[np.int64], NDArray[np.int64], Array, Array, Array]


def gram_arrays(Q: Array) -> tuple[Any, ...]:
    """The quadratic part in Gram form.

    Q, shape (p, p).
    """
    none = np.zeros(0)
    return Q, np.zeros((0, 0)), none, none, 0.0, none


def new_sweeps(
    form: tuple[Any, ...],
    p: int,
    gap: float,
    rounds: int = 0,
    hopeless: float = 0.0,
    scaled: bool = False,
) -> Sweeps:
    """Allocate what :func:`relax` works with for p columns; no bound is known, none is the
    target.
    """
    m, columns = min(p, BLOCK), np.zeros(p, dtype=np.int64)
    stops = {"gap": gap, "rounds": rounds, "hopeless": hopeless, "scaled": scaled}
    work = columns.copy(), columns, np.zeros(p), np.empty((m, m)), np.empty((2, m))
    return Sweeps(form, record(LIMITS, target=np.inf, **stops), np.array([-np.inf, np.inf]), work)


@kernel(inner=True)
def coordinate(rho, q, weight, root_lam):  # type: ignore[no-untyped-def]
    """Best value of a free coordinate whose gradient without it is ``rho``: reverse Huber."""
    root = np.sqrt(weight)
    size = abs(rho)
    kink = root_lam * root
    if size <= kink:
        return 0.0
    # q = 0 has no linear piece: the kink leads straight to the quadratic
    new = (size - kink) / q if q > 0.0 else np.inf
    if new > root_lam / root:
        new = size / (q + weight)
    return new if rho >= 0.0 else -new


@kernel(inner=True)
def sweep(Q, w, state, columns, count, root_lam, beta, g):  # type: ignore[no-untyped-def]
    """One pass of coordinate descent over ``columns[:count]`` at λ = root_lam².

    ``g`` = b − Qβ is kept up to date. Returns the largest decrease of the objective by one step.
    """
    p = g.shape[0]
    most = 0.0
    for a in range(count):
        i = columns[a]
        q, weight = Q[i, i], w[i]
        old = beta[i]
        rho = g[i] + q * old
        new = rho / (q + weight) if state[i] == 1 else coordinate(rho, q, weight, root_lam)
        step = new - old
        if step != 0.0:
            beta[i] = new
            for j in range(p):
                g[j] -= Q[i, j] * step
            gain = (q + weight) * step * step
            most = max(most, gain)
    return most


@kernel(inner=True)
def sweep_block(block, local, w, state, active, n, root_lam, tolerance):  # type: ignore[no-untyped-def]
    """Passes over the active columns alone until steps gain little; ``local`` holds β and g.

    ``block`` (n, n) is Q on the active columns, gathered: a step costs O(n), not O(p).
    """
    for _ in range(SWEEPS):
        most = 0.0
        for a in range(n):
            i = active[a]
            q, weight = block[a, a], w[i]
            old = local[0, a]
            rho = local[1, a] + q * old
            new = rho / (q + weight) if state[i] == 1 else coordinate(rho, q, weight, root_lam)
            step = new - old
            if step != 0.0:
                local[0, a] = new
                for c in range(n):
                    local[1, c] -= block[a, c] * step
                most = max(most, (q + weight) * step * step)
        if most <= tolerance:
            break


@kernel(inner=True)
def descend_block(Q, w, state, active, n, root_lam, beta, g, tolerance, block, local, gathered):  # type: ignore[no-untyped-def]
    """Gather Q on the active columns and sweep there; g is left as it was."""
    for a in range(n):
        i = active[a]
        local[0, a], local[1, a] = beta[i], g[i]
        if not gathered:
            for c in range(n):
                block[a, c] = Q[i, active[c]]
    sweep_block(block, local, w, state, active, n, root_lam, tolerance)
    for a in range(n):
        beta[active[a]] = local[0, a]


@kernel(inner=True)
def sweep_rows(X, r, e, q, w, columns, count, root_lam, beta):  # type: ignore[no-untyped-def]
    """The same pass in residual form, free columns only; ``q`` is the diagonal of Q."""
    n = r.shape[0]
    most = 0.0
    for a in range(count):
        i = columns[a]
        weight, old = w[i], beta[i]
        rho = dot(X[i], r, n) + (q[i] - e) * old
        new = coordinate(rho, q[i], weight, root_lam)
        step = new - old
        if step != 0.0:
            beta[i] = new
            for t in range(n):
                r[t] -= X[i, t] * step
            most = max(most, (q[i] + weight) * step * step)
    return most


@kernel
def fit_multiplier(w, state, columns, count, picks, beta, scratch):  # type: ignore[no-untyped-def]
    """√λ at which Σ_F z_i = ``picks`` for the current β, and Σ_F w_iβ_i²/z_i there.

    √λ is 0 where no more than ``picks`` coefficients are nonzero.
    """
    n = 0
    total = 0.0
    tail = 0.0
    for a in range(count):
        i = columns[a]
        if state[i] == 0 and beta[i] != 0.0:
            # insertion keeps |β_i|√w_i decreasing; only active columns come here
            value = abs(beta[i]) * np.sqrt(w[i])
            c = n
            while c > 0 and scratch[c - 1] < value:
                scratch[c] = scratch[c - 1]
                c -= 1
            scratch[c] = value
            n += 1
            total += value * value
            tail += value
    if n <= picks:
        return 0.0, total
    # the m largest are saturated: m + tail/√λ = picks with scratch[m] < √λ ≤ scratch[m−1]
    head = 0.0
    for m in range(picks):
        root = tail / (picks - m)
        if scratch[m] <= root or m == picks - 1:
            return root, head + tail * root
        tail -= scratch[m]
        head += scratch[m] * scratch[m]
    return 0.0, total


@kernel
def gradient(form, b, beta, columns, count, g):  # type: ignore[no-untyped-def]
    """g = b − Qβ from β, or in residual form from the residual as it is."""
    Q, X, _, r, e, _ = form
    if X.shape[0] == 0:
        gram_gradient(Q, b, beta, g)
        return
    for a in range(count):
        i = columns[a]
        g[i] = dot(X[i], r, r.shape[0]) - e * beta[i]


@kernel
def dual_bound(form, terms, scaled, state, columns, count, picks, beta, g, top):  # type: ignore[no-untyped-def]
    """The certified bound at β in the form at hand."""
    _, X, y, r, e, _ = form
    if X.shape[0] > 0:
        return residual_bound(terms, y, r, e, state, columns, count, picks, beta, g, top)
    return gram_bound(terms, state, columns, count, picks, beta, g, scaled, top)


@kernel
def relaxed_value(w, yy, state, columns, count, penalty, beta, g, b):  # type: ignore[no-untyped-def]
    """Objective of the relaxation at β with the best z; ``penalty`` from ``fit_multiplier``."""
    value = yy + penalty
    for a in range(count):
        i = columns[a]
        if beta[i] != 0.0:
            value -= beta[i] * (b[i] + g[i])
            if state[i] == 1:
                value += w[i] * beta[i] * beta[i]
    return value


@kernel(inner=True)
def relaxed_size(w, state, columns, count, beta, root_lam):  # type: ignore[no-untyped-def]
    """Σz over the free columns."""
    total = 0.0
    for a in range(count):
        i = columns[a]
        if state[i] == 0 and beta[i] != 0.0:
            size = abs(beta[i]) * np.sqrt(w[i])
            total += 1.0 if size >= root_lam else size / root_lam
    return total


@kernel(inner=True)
def next_multiplier(root_lam, fitted, large, low, high):  # type: ignore[no-untyped-def]
    """√λ to go on with, and its bracket; ``large``: at the last one Σz was more than allowed."""
    if large:
        low = max(low, root_lam)
    else:
        high = min(high, root_lam)
    if low >= high:
        return root_lam, 0.0, np.inf  # sweeps were not converged when the bracket was set
    if low <= fitted <= high:
        return fitted, low, high
    return 0.5 * (low + high) if high < np.inf else 2.0 * low, low, high


@kernel(inner=True)
def list_active(w, state, columns, count, beta, g, root_lam, active, before, gathered):  # type: ignore[no-untyped-def]
    """List columns with a coefficient or about to get one.

    Returns how many, and whether those that were ``gathered`` before are the same.
    """
    n = 0
    for a in range(count):
        i = columns[a]
        if state[i] == 1 or beta[i] != 0.0 or g[i] * g[i] > root_lam * root_lam * w[i]:
            gathered = gathered and active[n] == i
            active[n] = i
            n += 1
    return n, gathered and n == before


@kernel(inner=True)
def entering_level(w, state, columns, count, g, root_lam):  # type: ignore[no-untyped-def]
    """|g|/√w half-way between √λ and the largest of a free column."""
    worst = root_lam * root_lam
    for a in range(count):
        i = columns[a]
        if state[i] == 0:
            worst = max(worst, g[i] * g[i] / w[i])
    return 0.5 * (root_lam + np.sqrt(worst))


@kernel
def relax(sweeps, terms, state, picks, beta, g, lam, top):  # type: ignore[no-untyped-def]
    """Solve the relaxation at a node to a relative gap, or until its bound passes a target.

    state, int8 (p,): free, in or out; columns that are out must have β = 0.
    picks, free columns still to choose.
    beta, g, (p,) warm start, and b − Qβ at the end.
    lam, (1,) √λ, warm start and result.
    top, (picks + 3,) as in gram_bound, at the last bound.
    Returns: Rounds used; negative when it stopped without reaching target or gap.
    """
    form, limits, best, work = sweeps
    Q, X, _, r, e, q = form
    w, b, yy = terms.w, terms.b, terms.yy
    active, columns, scratch, block, local = work
    count = list_allowed(state, columns)
    target, gap, hopeless = limits[0].target, limits[0].gap, limits[0].hopeless
    most_rounds, scaled = limits[0].rounds, limits[0].scaled > 0
    best[1] = np.inf
    root_lam = lam[0]
    rounds = 0
    n, gathered = 0, False
    low, high = 0.0, np.inf  # bracket of √λ once Σz has been seen on both sides
    while rounds < most_rounds:
        rounds += 1
        gradient(form, b, beta, columns, count, g)
        bound = dual_bound(form, terms, scaled, state, columns, count, picks, beta, g, top)
        best[0] = max(best[0], bound)
        fitted, penalty = fit_multiplier(w, state, columns, count, picks, beta, scratch)
        value = relaxed_value(w, yy, state, columns, count, penalty, beta, g, b)
        best[1] = min(best[1], value)
        lam[0] = root_lam
        if best[0] >= target or value - best[0] <= gap * max(abs(value), 1e-300):
            return rounds
        if rounds > 2 and value < target and value - best[0] <= hopeless * (target - best[0]):
            break  # even the relaxation's own value would not reach the target
        if rounds > 1:
            large = relaxed_size(w, state, columns, count, beta, root_lam) > picks
            root_lam, low, high = next_multiplier(root_lam, fitted, large, low, high)
        n, gathered = list_active(w, state, columns, count, beta, g, root_lam, active, n, gathered)
        if n > block.shape[0]:  # a column just excluded: most ask for its place, few will have it
            level = entering_level(w, state, columns, count, g, root_lam)
            n, gathered = list_active(w, state, columns, count, beta, g, level, active, n, False)
        tolerance = 0.1 * gap * max(abs(value), 1e-300)
        if X.shape[0] > 0:
            for _ in range(8):
                if sweep_rows(X, r, e, q, w, active, n, root_lam, beta) <= tolerance:
                    break
            continue
        if n <= block.shape[0]:
            descend_block(
                Q, w, state, active, n, root_lam, beta, g, tolerance, block, local, gathered
            )
            gathered = True
            continue
        for _ in range(8):
            if sweep(Q, w, state, active, n, root_lam, beta, g) <= tolerance:
                break
    gradient(form, b, beta, columns, count, g)
    lam[0] = root_lam
    return -rounds

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
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array, dot, record, zeros
from .dual_bound import (
    FREE,
    IN,
    gram_bound,
    gram_gradient,
    insert,
    list_allowed,
    residual_bound,
)

# Q on the active columns, which have a coefficient or whose gradient asks for one, is copied to a
# matrix of its own where they are at most this many: a step then costs as many operations as there
# are active columns, and otherwise p. A choice.
GATHERED_COLUMNS = 400
LIMITS = np.dtype(
    [
        ("target", "f8"),  # the descent ends once a bound reaches this objective
        ("gap", "f8"),  # or once value − bound is at most this share of the relaxation's value
        ("rounds", "i8"),  # or after this many bounds
        # or where value < target and value − bound is at most this share of target − bound
        ("shortfall_share", "f8"),
    ]
)


class Sweeps(NamedTuple):
    """What :func:`relax` takes: the quadratic part Q, when to end, the best so far, and work space.

    Up to m active columns are copied to ``block``.
    """

    # Six arrays: Q (p, p); X (p, n), one row for each column of the data; y (n,); the residual
    # y − Xᵀβ (n,); the e of Q = XXᵀ + eI; and the diagonal of Q (p,). In residual form, which has
    # no included columns, Q is (0, 0); in Gram form the others are empty.
    form: Any
    limits: Any  # (1,) of ``LIMITS``
    best: Array  # (2,) the best certified bound, which starts at what the caller sets; least value
    active: NDArray[np.int64]  # (p,) the active columns come first
    columns: NDArray[np.int64]  # (p,) the columns that are not excluded come first
    scratch: Array  # (p,) values that are sorted
    places: NDArray[np.int64]  # (m,) 0, 1, 2, …: the rows of ``block``
    block: Array  # (m, m) Q on the active columns
    local: Array  # (2, m) β and g on the active columns


def gram_arrays(Q: Array) -> tuple[Any, ...]:
    """``Sweeps.form`` in Gram form, for Q (p, p)."""
    none = np.zeros(0)
    return Q, np.zeros((0, 0)), none, none, 0.0, none


def new_sweeps(form: tuple[Any, ...], p: int, gap: float, rounds: int = 0) -> Sweeps:
    """What :func:`relax` takes for p columns, without a target; parameters as in ``LIMITS``."""
    m = min(p, GATHERED_COLUMNS)
    return Sweeps(
        form=form,
        limits=record(LIMITS, target=np.inf, gap=gap, rounds=rounds),
        best=np.array([-np.inf, np.inf]),
        scratch=np.zeros(p),
        places=np.arange(m, dtype=np.int64),
        block=np.empty((m, m)),
        local=np.empty((2, m)),
        **zeros("active columns", p, of=np.int64),
    )


@kernel(inner=True)
def coordinate(rho, q, weight, root_lam):
    """The best value β_i of a free coordinate under the reverse-Huber penalty, all others fixed.

    rho, q, weight: g_i where β_i = 0, the diagonal entry of Q, and w_i.
    """
    root = np.sqrt(weight)
    size = abs(rho)
    kink = root_lam * root
    if size <= kink:
        return 0.0
    # with q = 0 no minimum lies on the linear piece of the penalty
    new = (size - kink) / q if q > 0.0 else np.inf
    if new > root_lam / root:
        new = size / (q + weight)
    return new if rho >= 0.0 else -new


@kernel(inner=True)
def sweep(Q, w, state, columns, places, root_lam, beta, g):
    """One pass of coordinate descent over ``columns`` at λ = root_lam²; updates β and g = b − Qβ.

    columns, places: Each column's index into ``w`` and ``state``, and its index into Q, β and g.
    Returns: The largest (Q_ii + w_i)·step², about the largest decrease of the objective by a step.
    """
    most = 0.0
    for a in range(columns.shape[0]):
        i, at = columns[a], places[a]
        q, weight, old = Q[at, at], w[i], beta[at]
        rho = g[at] + q * old
        new = rho / (q + weight) if state[i] == IN else coordinate(rho, q, weight, root_lam)
        step = new - old
        if step != 0.0:
            beta[at] = new
            for j in range(g.shape[0]):
                g[j] -= Q[at, j] * step
            most = max(most, (q + weight) * step * step)
    return most


@kernel(inner=True)
def sweep_gathered(w, state, n, root_lam, beta, g, tolerance, work):
    """At most five passes over the n active columns in ``work.block``; updates β and leaves g.

    The passes end where no step lowers the objective by more than ``tolerance``. Five are a choice.
    """
    active, own_beta, own_g = work.active[:n], work.local[0, :n], work.local[1, :n]
    for a in range(n):
        own_beta[a], own_g[a] = beta[active[a]], g[active[a]]
    for _ in range(5):
        most = sweep(work.block, w, state, active, work.places, root_lam, own_beta, own_g)
        if most <= tolerance:
            break
    for a in range(n):
        beta[active[a]] = own_beta[a]


@kernel(inner=True)
def sweep_rows(form, w, columns, root_lam, beta):
    """One pass of coordinate descent in residual form; updates β and the residual in ``form``.

    Returns: The largest (Q_ii + w_i)·step² of the pass, about the largest decrease of the objective
        by a step, by which the caller sees whether another pass pays.
    """
    _, X, _, r, e, diagonal = form
    n = r.shape[0]
    most = 0.0
    for a in range(columns.shape[0]):
        i = columns[a]
        q, weight, old = diagonal[i], w[i], beta[i]
        new = coordinate(dot(X[i], r, n) + (q - e) * old, q, weight, root_lam)
        step = new - old
        if step != 0.0:
            beta[i] = new
            for t in range(n):
                r[t] -= X[i, t] * step
            most = max(most, (q + weight) * step * step)
    return most


@kernel
def fit_multiplier(w, state, columns, count, k, beta, scratch):
    """√λ at which Σ_F z_i = k at β, and the penalty Σ_F w_iβ_i²/z_i at that √λ.

    √λ is 0 where at most k coefficients are not 0. ``scratch`` (p,) is work space, and
    the first ``count`` of ``columns`` are the columns that are not excluded.
    """
    n = 0
    total = 0.0
    tail = 0.0
    for a in range(count):
        i = columns[a]
        if state[i] == FREE and beta[i] != 0.0:
            # sort |β_i|√w_i by insertion, falling; only active columns come here
            value = abs(beta[i]) * np.sqrt(w[i])
            insert(scratch, n, value)
            n += 1
            total += value * value
            tail += value
    if n <= k:
        return 0.0, total
    # the m largest have z = 1: m + tail/√λ = k with scratch[m] < √λ ≤ scratch[m−1]
    head = 0.0
    for m in range(k):
        root = tail / (k - m)
        if scratch[m] <= root or m == k - 1:
            return root, head + tail * root
        tail -= scratch[m]
        head += scratch[m] * scratch[m]
    return 0.0, total


@kernel
def gradient(form, b, beta, columns, count, g):
    """Compute g = b − Qβ from β; in residual form g = Xr − eβ from the residual r in ``form``."""
    Q, X, _, r, e, _ = form
    if X.shape[0] == 0:
        gram_gradient(Q, b, beta, g)
        return
    for a in range(count):
        i = columns[a]
        g[i] = dot(X[i], r, r.shape[0]) - e * beta[i]


@kernel
def dual_bound(form, terms, state, columns, count, k, beta, g, top):
    """The certified bound at β: :func:`residual_bound` where ``form`` has X, else Gram form's."""
    _, X, y, r, e, _ = form
    if X.shape[0] > 0:
        return residual_bound(terms, y, r, e, state, columns, count, k, beta, g, top)
    return gram_bound(terms, state, columns, count, k, beta, g, top)


@kernel
def relaxed_value(terms, state, columns, count, penalty, beta, g):
    """The relaxation's objective at β with the best z, whose ``penalty`` is Σ_F w_iβ_i²/z_i."""
    value = terms.yy + penalty
    for a in range(count):
        i = columns[a]
        if beta[i] != 0.0:
            value -= beta[i] * (terms.b[i] + g[i])
            if state[i] == IN:
                value += terms.w[i] * beta[i] * beta[i]
    return value


@kernel(inner=True)
def relaxed_size(w, state, columns, count, beta, root_lam):
    """Σ z_i = Σ min(1, |β_i|√w_i/√λ) over the free columns."""
    total = 0.0
    for a in range(count):
        i = columns[a]
        if state[i] == FREE and beta[i] != 0.0:
            size = abs(beta[i]) * np.sqrt(w[i])
            total += 1.0 if size >= root_lam else size / root_lam
    return total


@kernel(inner=True)
def bracketed_multiplier(root_lam, fitted, large, low, high):
    """The next √λ of the descent and its bracket [low, high]: the fitted √λ, or the middle.

    large: Whether Σz at ``root_lam`` was more than may be chosen, so that √λ has to grow.
    """
    if large:
        low = max(low, root_lam)
    else:
        high = min(high, root_lam)
    if low >= high:
        return root_lam, 0.0, np.inf  # passes had not converged: begin a new bracket
    if low <= fitted <= high:
        return fitted, low, high
    return 0.5 * (low + high) if high < np.inf else 2.0 * low, low, high


@kernel(inner=True)
def list_active(w, state, beta, g, root_lam, count, before, work):
    """Write the active columns to ``work.active``: β_i ≠ 0, or |g_i| > √λ·√w_i, or included.

    before: The number of active columns that ``work.block`` holds; −1 for none.
    Returns: The number of active columns, and whether ``work.block`` holds just these columns.
    """
    n, same = 0, before >= 0
    for a in range(count):
        i = work.columns[a]
        if state[i] == IN or beta[i] != 0.0 or g[i] * g[i] > root_lam * root_lam * w[i]:
            same = same and work.active[n] == i
            work.active[n] = i
            n += 1
    return n, same and n == before


@kernel
def relax(sweeps, terms, state, k, beta, g, lam, top):
    """Solve the relaxation at a node until one of ``sweeps.limits`` is reached.

    Every round computes a bound at β, then a new √λ, then passes over the active columns.

    state: (p,), free (0), included (1) or excluded (2) columns; β must be 0 where excluded.
    k: Number of free columns still to choose.
    beta, g, lam: Coefficients (p,) to start from, b − Qβ (p,), and √λ (1,); all are overwritten.
    top: (k + 3,), as :func:`~.dual_bound.gram_bound` writes it.
    Returns: The number of rounds; negative where neither the target nor the gap was reached.
    """
    form, best, columns, stop = sweeps.form, sweeps.best, sweeps.columns, sweeps.limits[0]
    Q, w, most_gathered, block = form[0], terms.w, sweeps.block.shape[0], sweeps.block
    count = list_allowed(state, columns)
    best[1] = np.inf
    root_lam = lam[0]
    rounds, gathered = 0, -1
    low, high = 0.0, np.inf  # bracket of √λ once Σz has been seen on both sides
    while rounds < stop.rounds:
        rounds += 1
        gradient(form, terms.b, beta, columns, count, g)
        bound = dual_bound(form, terms, state, columns, count, k, beta, g, top)
        best[0] = max(best[0], bound)
        fitted, penalty = fit_multiplier(w, state, columns, count, k, beta, sweeps.scratch)
        value = relaxed_value(terms, state, columns, count, penalty, beta, g)
        best[1] = min(best[1], value)
        lam[0] = root_lam
        if best[0] >= stop.target or value - best[0] <= stop.gap * max(abs(value), 1e-300):
            return rounds
        lacking = stop.target - best[0]
        if rounds > 2 and value < stop.target and value - best[0] <= stop.shortfall_share * lacking:
            break  # the relaxation's value is below the target, and so are all bounds
        if rounds > 1:
            large = relaxed_size(w, state, columns, count, beta, root_lam) > k
            root_lam, low, high = bracketed_multiplier(root_lam, fitted, large, low, high)
        n, same = list_active(w, state, beta, g, root_lam, count, gathered, sweeps)
        # passes end where no step lowers the objective by a tenth of the gap to reach
        tolerance = 0.1 * stop.gap * max(abs(value), 1e-300)
        if Q.shape[0] > 0 and n <= most_gathered:
            for a in range(0 if same else n):
                for c in range(n):
                    block[a, c] = Q[sweeps.active[a], sweeps.active[c]]
            gathered = n
            sweep_gathered(w, state, n, root_lam, beta, g, tolerance, sweeps)
            continue
        active, gathered = sweeps.active[:n], -1
        for _ in range(8):
            if Q.shape[0] > 0:
                most = sweep(Q, w, state, active, active, root_lam, beta, g)
            else:
                most = sweep_rows(form, w, active, root_lam, beta)
            if most <= tolerance:
                break
    gradient(form, terms.b, beta, columns, count, g)
    lam[0] = root_lam
    return -rounds

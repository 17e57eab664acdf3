"""Compiled coordinate descent for the perspective relaxation (eq. 5, main paper) at a node.

With Q = G − D ⪰ 0 and weights w_i = γ/2 + d_i the relaxation at a node (included columns I, free
columns F, k of the free columns still to choose) is

    min yy − 2bᵀβ + βᵀQβ + Σ_I w_i β_i² + Σ_F w_i β_i²/z_i   s.t. Σ_F z ≤ k, 0 ≤ z ≤ 1.

For a multiplier λ of the cardinality constraint z_i = min(1, |β_i|√(w_i/λ)), and each free
coordinate carries the reverse-Huber penalty 2√(λw_i)|β_i| up to |β_i| = √(λ/w_i), then
w_iβ_i² + λ. Every bound that is returned is one of :mod:`dual_bound`, which holds at any β.

Q is either given as a matrix (Gram form: the step of one coordinate costs O(p)) or as XᵀX + eI
through X, one contiguous row for each column of the data (residual form, for p ≫ n: a step costs
O(n) and keeps the residual r = y − Xβ up to date). The gradient g = b − Qβ is formed anew from β,
or from r, before every bound: rounding errors that g gathers while coordinates move have no bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array, dot, record
from .dual_bound import FREE, IN, gram_bound, gram_gradient, list_allowed, residual_bound


class DescentSettings(NamedTuple):
    """Tuning numbers of coordinate descent: its time and tightness, never its validity."""

    # Columns with a coefficient (active columns) are gathered in a matrix of at most this many
    # rows; more active columns are swept in place, a step then costs O(p). Twice as many take four
    # times the memory (1.3 MB now) and no longer stay in the cache.
    gathered_columns: int = 400
    # Passes over the active columns alone before all columns are looked at again and a bound is
    # formed: in a gathered matrix, and in place or in residual form. Twice as many find columns
    # that should enter later and form half as many bounds.
    gathered_passes: int = 5
    passes: int = 8
    # The passes end early once no step lowers the objective by more than this share of the gap
    # that is asked for. Twice the share ends them earlier, with more rounds to follow.
    gap_share: float = 0.1


SETTINGS = DescentSettings()

LIMITS = np.dtype(
    [
        ("target", "f8"),  # the descent ends once a bound reaches this objective
        ("gap", "f8"),  # or once value − bound is at most this share of the value
        ("rounds", "i8"),  # or after this many bounds
        # or where value − bound is at most this share of target − bound: little is to be gained
        ("hopeless", "f8"),
        ("scaled", "i8"),  # 1 where D = 0: the dual bound may take multiples of the residual
    ]
)


class Workspace(NamedTuple):
    """Arrays that :func:`relax` works on, m being the most columns that are gathered."""

    active: NDArray[np.int64]  # (p,) columns that have a coefficient or ask for one
    columns: NDArray[np.int64]  # (p,) columns that are not excluded
    places: NDArray[np.int64]  # (m,) 0, 1, 2, …: rows of ``block``
    scratch: Array  # (p,)
    block: Array  # (m, m) Q on the active columns
    local: Array  # (2, m) β and g on the active columns


class Sweeps(NamedTuple):
    """The quadratic part of a relaxation, when :func:`relax` ends, and its work space.

    form: Q (p, p), or (0, 0) in residual form; X (p, n), y and the residual y − Xᵀβ (n,), a
        multiple of I and the diagonal of Q (p,), all empty in Gram form. Residual form has no
        included columns.
    limits, shape (1,): Of ``LIMITS``.
    best, shape (2,): Best certified bound (not below what it was set to) and relaxed value.
    """

    form: Any
    limits: Any
    best: Array
    work: Workspace


def gram_arrays(Q: Array) -> tuple[Any, ...]:
    """The quadratic part in Gram form, Q of shape (p, p)."""
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
    """What :func:`relax` works with for p columns; no bound is known, and no target is set."""
    m = min(p, SETTINGS.gathered_columns)
    work = Workspace(
        active=np.zeros(p, dtype=np.int64),
        columns=np.zeros(p, dtype=np.int64),
        places=np.arange(m, dtype=np.int64),
        scratch=np.zeros(p),
        block=np.empty((m, m)),
        local=np.empty((2, m)),
    )
    stops = {"gap": gap, "rounds": rounds, "hopeless": hopeless, "scaled": scaled}
    return Sweeps(form, record(LIMITS, target=np.inf, **stops), np.array([-np.inf, np.inf]), work)


@kernel(inner=True)
def coordinate(rho, q, weight, root_lam):  # type: ignore[no-untyped-def]
    """Best value of a free coordinate under the reverse-Huber penalty.

    rho, q: Half the gradient where the coordinate is 0, and its diagonal entry of Q.
    """
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
def sweep(Q, w, state, columns, places, root_lam, beta, g):  # type: ignore[no-untyped-def]
    """One pass of coordinate descent over ``columns`` at λ = root_lam²; g = b − Qβ follows.

    columns, places, int64 (m,): Each column's number in ``w`` and ``state``, and in Q, β and g.
    Returns: The largest decrease of the objective by one step.
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
def gather(Q, n, work):  # type: ignore[no-untyped-def]
    """Copy Q on the n active columns to ``work.block``: a step of one of them then costs O(n)."""
    for a in range(n):
        for c in range(n):
            work.block[a, c] = Q[work.active[a], work.active[c]]


@kernel(inner=True)
def sweep_gathered(w, state, n, root_lam, beta, g, tolerance, work):  # type: ignore[no-untyped-def]
    """Passes over the n active columns, gathered, until steps gain little; g stays as it is."""
    own_beta, own_g = work.local[0, :n], work.local[1, :n]
    for a in range(n):
        own_beta[a], own_g[a] = beta[work.active[a]], g[work.active[a]]
    columns, places = work.active[:n], work.places[:n]
    for _ in range(SETTINGS.gathered_passes):
        most = sweep(work.block, w, state, columns, places, root_lam, own_beta, own_g)
        if most <= tolerance:
            break
    for a in range(n):
        beta[work.active[a]] = own_beta[a]


@kernel(inner=True)
def sweep_rows(form, w, columns, root_lam, beta):  # type: ignore[no-untyped-def]
    """One pass of coordinate descent over free columns in residual form; the residual follows."""
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
def fit_multiplier(w, state, columns, count, picks, beta, scratch):  # type: ignore[no-untyped-def]
    """√λ at which Σ_F z_i = ``picks`` for the current β, and Σ_F w_iβ_i²/z_i at that √λ.

    √λ is 0 where no more than ``picks`` coefficients are nonzero. ``scratch`` (p,) is work space.
    """
    n = 0
    total = 0.0
    tail = 0.0
    for a in range(count):
        i = columns[a]
        if state[i] == FREE and beta[i] != 0.0:
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
    """The certified bound at β, in residual form where ``form`` holds X, else in Gram form."""
    _, X, y, r, e, _ = form
    if X.shape[0] > 0:
        return residual_bound(terms, y, r, e, state, columns, count, picks, beta, g, top)
    return gram_bound(terms, state, columns, count, picks, beta, g, scaled, top)


@kernel
def relaxed_value(terms, state, columns, count, penalty, beta, g):  # type: ignore[no-untyped-def]
    """Objective of the relaxation at β with the best z; ``penalty`` from :func:`fit_multiplier`."""
    value = terms.yy + penalty
    for a in range(count):
        i = columns[a]
        if beta[i] != 0.0:
            value -= beta[i] * (terms.b[i] + g[i])
            if state[i] == IN:
                value += terms.w[i] * beta[i] * beta[i]
    return value


@kernel(inner=True)
def relaxed_size(w, state, columns, count, beta, root_lam):  # type: ignore[no-untyped-def]
    """Σz over the free columns."""
    total = 0.0
    for a in range(count):
        i = columns[a]
        if state[i] == FREE and beta[i] != 0.0:
            size = abs(beta[i]) * np.sqrt(w[i])
            total += 1.0 if size >= root_lam else size / root_lam
    return total


@kernel(inner=True)
def next_multiplier(root_lam, fitted, large, low, high):  # type: ignore[no-untyped-def]
    """The next √λ and its bracket, by the fitted √λ or bisection.

    large: Whether Σz was more than allowed at ``root_lam``.
    """
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
def list_active(w, state, beta, g, root_lam, count, before, work):  # type: ignore[no-untyped-def]
    """List the columns that have a coefficient or are about to get one, in ``work.active``.

    before: How many columns ``work.block`` was gathered for; −1 where nothing was gathered.
    Returns: How many are listed, and whether these are the columns gathered before.
    """
    n, same = 0, before >= 0
    for a in range(count):
        i = work.columns[a]
        if state[i] == IN or beta[i] != 0.0 or g[i] * g[i] > root_lam * root_lam * w[i]:
            same = same and work.active[n] == i
            work.active[n] = i
            n += 1
    return n, same and n == before


@kernel(inner=True)
def entering_level(w, state, columns, count, g, root_lam):  # type: ignore[no-untyped-def]
    """The mean of √λ and the largest |g_i|/√w_i of a free column."""
    worst = root_lam * root_lam
    for a in range(count):
        i = columns[a]
        if state[i] == FREE:
            worst = max(worst, g[i] * g[i] / w[i])
    return 0.5 * (root_lam + np.sqrt(worst))


@kernel
def relax(sweeps, terms, state, picks, beta, g, lam, top):  # type: ignore[no-untyped-def]
    """Solve the relaxation at a node to a relative gap, or until its bound passes a target.

    state, int8 (p,): Free (0), included (1) or excluded (2); excluded columns must have β = 0.
    picks: Free columns still to choose.
    beta, g, (p,): Warm start, and b − Qβ at the end.
    lam, (1,): √λ, warm start and result.
    top, (picks + 3,): As :func:`~.dual_bound.gram_bound` leaves it at the last bound.
    Returns: Rounds used; negative where neither the target nor the gap was reached.
    """
    form, limits, best, work = sweeps
    Q, w, columns, stop = form[0], terms.w, work.columns, limits[0]
    count = list_allowed(state, columns)
    best[1] = np.inf
    root_lam = lam[0]
    rounds, gathered = 0, -1
    low, high = 0.0, np.inf  # bracket of √λ once Σz has been seen on both sides
    while rounds < stop.rounds:
        rounds += 1
        gradient(form, terms.b, beta, columns, count, g)
        scaled = stop.scaled > 0
        bound = dual_bound(form, terms, scaled, state, columns, count, picks, beta, g, top)
        best[0] = max(best[0], bound)
        fitted, penalty = fit_multiplier(w, state, columns, count, picks, beta, work.scratch)
        value = relaxed_value(terms, state, columns, count, penalty, beta, g)
        best[1] = min(best[1], value)
        lam[0] = root_lam
        if best[0] >= stop.target or value - best[0] <= stop.gap * max(abs(value), 1e-300):
            return rounds
        lacking = stop.target - best[0]
        if rounds > 2 and value < stop.target and value - best[0] <= stop.hopeless * lacking:
            break  # even the relaxation's own value would not reach the target
        if rounds > 1:
            large = relaxed_size(w, state, columns, count, beta, root_lam) > picks
            root_lam, low, high = next_multiplier(root_lam, fitted, large, low, high)
        n, same = list_active(w, state, beta, g, root_lam, count, gathered, work)
        room = work.block.shape[0]
        if n > room:  # a column just excluded: most columns ask for its place, few will have it
            level = entering_level(w, state, columns, count, g, root_lam)
            n, same = list_active(w, state, beta, g, level, count, -1, work)
        tolerance = SETTINGS.gap_share * stop.gap * max(abs(value), 1e-300)
        if Q.shape[0] > 0 and n <= room:
            if not same:
                gather(Q, n, work)
            gathered = n
            sweep_gathered(w, state, n, root_lam, beta, g, tolerance, work)
            continue
        active, gathered = work.active[:n], -1
        for _ in range(SETTINGS.passes):
            if Q.shape[0] > 0:
                most = sweep(Q, w, state, active, active, root_lam, beta, g)
            else:
                most = sweep_rows(form, w, active, root_lam, beta)
            if most <= tolerance:
                break
    gradient(form, terms.b, beta, columns, count, g)
    lam[0] = root_lam
    return -rounds

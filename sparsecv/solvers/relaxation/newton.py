"""Compiled active-set Newton method for the perspective relaxation at a node.

At a fixed multiplier λ = s² of the cardinality constraint the relaxation of ``descent`` is a
reverse-Huber regression: every free coordinate is zero (|g_i| ≤ s√w_i), linear (|β_i|√w_i < s,
penalty 2s√w_i|β_i|) or quadratic (penalty w_iβ_i² + λ). On a fixed partition the optimum solves

    (Q_AA + W_quadratic) β_A = b_A − s·v,   v_i = √w_i·sign β_i on the linear columns, 0 elsewhere,

and the solution is linear in s; s itself follows from

    Σz = #quadratic + Σ_linear √w_i|β_i|/s = picks.

Each step solves the system of the partition at hand and goes to the exact minimum along its
direction, so that the objective never rises. The method does not care how ill-conditioned Q is,
where coordinate descent crawls; its price is a factorisation of the active columns in every step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array, add
from .descent import relaxed_size
from .dual_bound import FREE, IN, gram_bound, gram_gradient, list_allowed


class NewtonSettings(NamedTuple):
    """Tuning numbers of the active-set method: its time and tightness, never its validity."""

    # Columns that enter the active set before one step, at most. Twice as many save steps where
    # many columns are missing and take more factorisations of columns that leave again.
    entering_columns: int = 8
    # A column enters where |g_i|/√w_i exceeds s by this share of s. Twice the share leaves more
    # small coefficients at 0: a step less, and a bound that is as valid and a little weaker.
    violation: float = 1e-3
    # Steps of one call, at most: the bound of an unfinished call is weaker, and as valid. Twice as
    # many matter on nearly singular matrices only.
    steps: int = 60
    # From nothing, √λ falls by this factor from one solution to the next, at most so many times.
    # A smaller factor takes fewer solutions with more steps each.
    path_factor: float = 0.6
    path_points: int = 60
    # Calls with all multipliers after that, at most, while each call ends at its last step.
    path_repeats: int = 5
    # Multipliers of each of these calls.
    path_multipliers: int = 40
    # A pivot of the factor is at least this share of its diagonal entry. The factor only makes a
    # direction, which a line search judges: a larger share shortens steps on singular matrices.
    pivot_share: float = 1e-11
    # A coefficient of at most this share of its last step is set to 0: rounding has left no more.
    zero_share: float = 1e-13


SETTINGS = NewtonSettings()
ACTIVE_COLUMNS = 200  # more active columns are left to sweeps, whose cost is not cubic in them


class NewtonWork(NamedTuple):
    """Work space of :func:`newton` for p columns, m of them active at most."""

    active: NDArray[np.int64]  # (m,)
    entering: NDArray[np.int64]  # (entering_columns,) the columns of largest excess
    excess: Array  # (entering_columns,) |g_i|/√w_i − s of these columns
    columns: NDArray[np.int64]  # (p,) that are not out
    U: Array  # (m, m + 2) factor, and both right sides
    inverse: Array  # (m,) of the factor's diagonal
    v: Array  # (m,)
    move: Array  # (2, m): the step is move[0] − s·move[1]
    d: Array  # (m,)
    h: Array  # (p,) Qd
    when: Array  # (3m,) places along the step where the penalty changes
    where: NDArray[np.int64]  # (3m,) and what changes there: 3·position + kind


def newton_work(p: int, most_active: int = ACTIVE_COLUMNS) -> NewtonWork:
    """Allocate the work space for p columns, at most ``most_active`` of them active."""
    m = min(p, most_active)
    return NewtonWork(
        active=np.zeros(m, dtype=np.int64),
        entering=np.zeros(SETTINGS.entering_columns, dtype=np.int64),
        excess=np.zeros(SETTINGS.entering_columns),
        columns=np.zeros(p, dtype=np.int64),
        U=np.zeros((m, m + 2)),
        inverse=np.zeros(m),
        v=np.zeros(m),
        move=np.zeros((2, m)),
        d=np.zeros(m),
        h=np.zeros(p),
        when=np.zeros(3 * m),
        where=np.zeros(3 * m, dtype=np.int64),
    )


@kernel(inner=True)
def list_active(root_w, state, beta, g, s, count, nt):  # type: ignore[no-untyped-def]
    """List the columns with a coefficient, then columns about to get one, by falling excess.

    Returns how many have a coefficient and how many are listed; −1 where ``nt`` has no room.
    """
    n, new, room, columns, most = 0, 0, nt.active.shape[0], nt.columns, nt.entering.shape[0]
    least = SETTINGS.violation * s
    for a in range(count):
        i = columns[a]
        if state[i] == IN or beta[i] != 0.0:
            if n == room:
                return n, -1
            nt.active[n] = i
            n += 1
            continue
        excess = abs(g[i]) / root_w[i] - s
        if excess <= least:
            continue
        c = min(new, most - 1)
        while c > 0 and nt.excess[c - 1] < excess:
            nt.excess[c], nt.entering[c] = nt.excess[c - 1], nt.entering[c - 1]
            c -= 1
        nt.excess[c], nt.entering[c] = excess, i
        new = min(new + 1, most)
        least = max(least, 0.5 * nt.excess[0])
        if new == most:
            least = max(least, nt.excess[most - 1])
    m = n
    for c in range(new):
        if nt.excess[c] >= 0.5 * nt.excess[0]:
            if m == room:
                return n, -1
            nt.active[m] = nt.entering[c]
            m += 1
    return n, m


@kernel(inner=True)
def load_active(w, root_w, state, beta, g, s, m, nt):  # type: ignore[no-untyped-def]
    """Put W_quadratic on the diagonal of ``nt.U``, and both right sides behind its last column.

    The system is that of the step from β: its right sides are g − W_quadratic β and v, to be
    combined as the first − s times the second. Returns the number of quadratic free columns.
    """
    U, v = nt.U, nt.v
    saturated = 0
    for a in range(m):
        i = nt.active[a]
        U[a, a], U[a, m], v[a] = 0.0, g[i], 0.0
        if state[i] == IN or root_w[i] * abs(beta[i]) >= s:
            U[a, a] = w[i]
            U[a, m] -= w[i] * beta[i]
            if state[i] == FREE:
                saturated += 1
        else:
            sign = beta[i] if beta[i] != 0.0 else g[i]
            v[a] = root_w[i] if sign > 0.0 else -root_w[i]
        U[a, m + 1] = v[a]
    return saturated


@kernel(inner=True)
def factor(Q, m, nt):  # type: ignore[no-untyped-def]
    """Upper Cholesky factor of Q + W_quadratic on the active columns; right sides follow."""
    U, active = nt.U, nt.active
    for a in range(m):
        i = active[a]
        U[a, a] += Q[i, i]
        for c in range(a + 1, m):
            U[a, c] = Q[i, active[c]]
        least = SETTINGS.pivot_share * U[a, a] + 1e-300
        for q in range(0, a - a % 4, 4):  # four rows at a time: fewer passes over row a
            first, second, third, fourth = U[q, a], U[q + 1, a], U[q + 2, a], U[q + 3, a]
            for c in range(a, m + 2):
                U[a, c] -= (first * U[q, c] + second * U[q + 1, c]) + (
                    third * U[q + 2, c] + fourth * U[q + 3, c]
                )
        for q in range(a - a % 4, a):
            first = U[q, a]
            for c in range(a, m + 2):
                U[a, c] -= first * U[q, c]
        inverse = 1.0 / np.sqrt(max(U[a, a], least))
        for c in range(a, m + 2):
            U[a, c] *= inverse
        nt.inverse[a] = inverse


@kernel(inner=True)
def solve_leading(n, m, nt):  # type: ignore[no-untyped-def]
    """Back substitution with the leading n of m active columns, for both right sides."""
    U, move = nt.U, nt.move
    for a in range(n - 1, -1, -1):
        first, second = U[a, m], U[a, m + 1]
        for c in range(a + 1, n):
            first -= U[a, c] * move[0, c]
            second -= U[a, c] * move[1, c]
        move[0, a], move[1, a] = first * nt.inverse[a], second * nt.inverse[a]


@kernel(inner=True)
def place_knot(nt, count, t, code):  # type: ignore[no-untyped-def]
    """Insert a change of the penalty at t in order."""
    c = count
    while c > 0 and nt.when[c - 1] > t:
        nt.when[c], nt.where[c] = nt.when[c - 1], nt.where[c - 1]
        c -= 1
    nt.when[c], nt.where[c] = t, code


@kernel(inner=True)
def zero_between(constant, rate, low, high):  # type: ignore[no-untyped-def]
    """The zero of constant + rate·t, moved into [low, high] where rounding puts it outside."""
    return min(max(-constant / rate, low), high) if rate > 0.0 else low


@kernel(inner=True)
def line_search(w, root_w, state, beta, g, s, n, nt):  # type: ignore[no-untyped-def]
    """The t ∈ [0, 1] of least objective at β + td, and which active coefficient it makes 0, or −1.

    Half the slope is constant + rate·t between knots, where the penalty of a coordinate changes. In
    the direction of its step a coordinate passes −s/√w (quadratic to linear), 0 and s/√w (linear to
    quadratic).
    """
    constant, rate, knots = 0.0, 0.0, 0
    for a in range(n):
        i = nt.active[a]
        d = nt.d[a]
        constant -= d * g[i]
        rate += d * nt.h[i]
        if d == 0.0:
            continue
        if state[i] == IN:
            constant += w[i] * d * beta[i]
            rate += w[i] * d * d
            continue
        size = abs(d)
        x = beta[i] if d > 0.0 else -beta[i]
        kink = s / root_w[i]
        if x <= -kink or x >= kink:
            constant += w[i] * size * x
            rate += w[i] * size * size
        elif x < 0.0:
            constant -= s * root_w[i] * size
        else:
            constant += s * root_w[i] * size
        for kind in range(3):
            t = (kink * (kind - 1.0) - x) / size
            if t < 1.0 and (t > 0.0 or (t == 0.0 and kind == 0)):
                place_knot(nt, knots, t, 3 * a + kind)
                knots += 1
    if not (constant < 0.0 and rate >= 0.0):
        return 0.0, -1  # rounding only
    t = 0.0
    for e in range(knots):
        last, t = t, nt.when[e]
        if constant + rate * t >= 0.0:
            return zero_between(constant, rate, last, t), -1
        a, kind = nt.where[e] // 3, nt.where[e] % 3
        i, size = nt.active[a], abs(nt.d[a])
        x = beta[i] if nt.d[a] > 0.0 else -beta[i]
        if kind == 1:
            constant += 2.0 * s * root_w[i] * size
            if constant + rate * t >= 0.0:
                return t, a
        elif kind == 0:
            constant -= s * root_w[i] * size + w[i] * size * x
            rate -= w[i] * size * size
        else:
            constant += w[i] * size * x - s * root_w[i] * size
            rate += w[i] * size * size
    if knots > 0 and constant + rate > 0.0:
        return zero_between(constant, rate, t, 1.0), -1
    return 1.0, -1


@kernel(inner=True)
def direction(Q, s, n, nt):  # type: ignore[no-untyped-def]
    """d = move[0] − s·move[1] on the first n active columns, and h = Qd."""
    h = nt.h
    p = h.shape[0]
    for j in range(p):
        h[j] = 0.0
    for a in range(n):
        d = nt.move[0, a] - s * nt.move[1, a]
        nt.d[a] = d
        add(h, Q[nt.active[a]], d, p)


@kernel(inner=True)
def signs_fit(s, n, m, nt):  # type: ignore[no-untyped-def]
    """Whether columns about to enter move to the side their gradient points to."""
    fit = True
    for a in range(n, m):
        fit = fit and (nt.move[0, a] - s * nt.move[1, a]) * nt.v[a] > 0.0
    return fit


@kernel(inner=True)
def take_step(state, beta, g, t, at, m, nt):  # type: ignore[no-untyped-def]
    """Move β to β + td; the coefficient in position ``at`` and tiny coefficients become 0."""
    for a in range(m):
        i = nt.active[a]
        value = beta[i] + t * nt.d[a]
        if a == at or (state[i] == FREE and abs(value) <= SETTINGS.zero_share * abs(nt.d[a])):
            value = 0.0
        beta[i] = value
    add(g, nt.h, -t, g.shape[0])


@kernel(inner=True)
def fitting_multiplier(saturated, picks, beta, n, nt):  # type: ignore[no-untyped-def]
    """√λ at which Σz = picks on the partition last solved; 0 where no √λ does that."""
    above, below = 0.0, float(picks - saturated)
    for a in range(n):
        above += nt.v[a] * (beta[nt.active[a]] + nt.move[0, a])
        below += nt.v[a] * nt.move[1, a]
    return above / below if above > 0.0 and below > 0.0 else 0.0


@kernel(inner=True)
def next_multiplier(s, fitted, large, low, high):  # type: ignore[no-untyped-def]
    """The next √λ and its bracket, by the fitted √λ or bisection.

    large: Whether Σz is more than allowed at s.
    """
    if large:
        low = s
    else:
        high = s
    if not (max(low, 0.2 * s) < fitted < min(high, 5.0 * s)):
        fitted = np.sqrt(low * high) if low > 0.0 and high < np.inf else 0.0
        if fitted == 0.0:
            fitted = 1.3 * s if large else s / 1.3
    return fitted, low, high


@kernel
def newton(  # type: ignore[no-untyped-def]
    Q, terms, root_w, scaled, state, picks, beta, g, lam, target, rounds, tolerance, top, nt
):
    """Solve the relaxation at a node, or until its bound passes ``target``.

    Q, terms, root_w, the problem, terms a BoundTerms and root_w = √w.
    scaled, whether D = 0.
    state, int8 (p,): free (0), in (1) or out (2); columns that are out must have β = 0.
    picks, free columns still to choose.
    beta, g, (p,) warm start and its b − Qβ, overwritten.
    lam, (1,) √λ, warm start and result.
    target, bound at which to stop.
    rounds, multipliers tried.
    tolerance, relative deviation of Σz from ``picks`` that will do.
    top, (picks + 3,) as in gram_bound.
    Returns: Certified bound at β and the steps taken; these are negative where more columns are
        active than there is room for.
    """
    w, columns, count = terms.w, nt.columns, list_allowed(state, nt.columns)
    s, low, high = lam[0], 0.0, np.inf
    if not s > 0.0:
        for a in range(count):
            s = max(s, 0.1 * abs(g[columns[a]]) / root_w[columns[a]])
        s = max(s, 1e-300)
    done, full, steps, fitted, stalled, out_of_room = 0, False, 0, 0.0, False, False
    bound = gram_bound(terms, state, columns, count, picks, beta, g, scaled, top)
    while steps < SETTINGS.steps and bound < target:
        n, m = list_active(root_w, state, beta, g, s, count, nt)
        if m < 0:
            out_of_room = True
            break
        if m == 0 or (full and (m == n or stalled)):
            done += 1
            size = relaxed_size(w, state, columns, count, beta, s)
            if done >= rounds or abs(size - picks) <= tolerance * max(picks, 1):
                break
            s, low, high = next_multiplier(s, fitted, size > picks, low, high)
            full = stalled = False
            continue
        steps += 1
        saturated = load_active(w, root_w, state, beta, g, s, m, nt)
        factor(Q, m, nt)
        solve_leading(m, m, nt)
        if m > n and not signs_fit(s, n, m, nt):
            m_all, m = m, n + 1
            solve_leading(m, m_all, nt)
            if not signs_fit(s, n, m, nt):
                m = n
                solve_leading(m, m_all, nt)
        fitted = fitting_multiplier(saturated, picks, beta, m, nt)
        if steps == 1 and 0.5 * s < fitted < 2.0 * s:
            s = fitted  # the partition of the parent, its multiplier for this node
        direction(Q, s, m, nt)
        t, at = line_search(w, root_w, state, beta, g, s, m, nt)
        full = t == 1.0
        if t == 0.0:
            full = stalled = True
            continue
        take_step(state, beta, g, t, at, m, nt)
        bound = gram_bound(terms, state, columns, count, picks, beta, g, scaled, top)
    lam[0] = s
    gram_gradient(Q, terms.b, beta, g)  # afresh: what the steps have rounded away must not count
    bound = gram_bound(terms, state, columns, count, picks, beta, g, scaled, top)
    return bound, -1 - steps if out_of_room else steps


@kernel
def newton_path(  # type: ignore[no-untyped-def]
    Q, terms, root_w, scaled, state, picks, beta, g, lam, target, tolerance, top, nt
):
    """:func:`newton` from β = 0, g = b: at falling √λ until Σz passes ``picks``, then to the end.

    Started far from its optimum the active-set method is as safe but slow: many columns would
    enter and leave again.
    """
    rounds = SETTINGS.path_multipliers
    columns, count, s, total = nt.columns, list_allowed(state, nt.columns), 0.0, 0
    for a in range(count):
        s = max(s, abs(g[columns[a]]) / root_w[columns[a]])
    for _ in range(SETTINGS.path_points):
        s *= SETTINGS.path_factor
        lam[0] = s
        bound, steps = newton(
            Q, terms, root_w, scaled, state, picks, beta, g, lam, target, 1, tolerance, top, nt
        )
        total += abs(steps)
        if steps < 0 or bound >= target:
            return bound, min(steps, total)
        if relaxed_size(terms.w, state, columns, count, beta, lam[0]) >= picks:
            break
        s = lam[0]
    for _ in range(SETTINGS.path_repeats):
        bound, steps = newton(
            Q, terms, root_w, scaled, state, picks, beta, g, lam, target, rounds, tolerance, top, nt
        )
        total += abs(steps)
        if abs(steps) < SETTINGS.steps:
            return bound, min(steps, total)
    return bound, total

"""Compiled active-set Newton method for the perspective relaxation at a node.

The relaxation is that of ``descent``. At a fixed multiplier λ = s² of the cardinality constraint it
is a reverse-Huber regression: every free coordinate is zero (|g_i| ≤ s√w_i), linear (|β_i|√w_i < s,
penalty 2s√w_i|β_i|) or quadratic (penalty w_iβ_i² + λ). Given which columns are which, the optimum
on the active columns A, those that are not zero, solves

    (Q_AA + W_quadratic) β_A = b_A − s·v,   v_i = √w_i·sign β_i on the linear columns, 0 elsewhere,

whose solution is linear in s. With k free columns still to choose, s follows from

    Σz = #quadratic + Σ_linear √w_i|β_i|/s = k.

Each step solves this system and moves to the exact minimum along the direction to its solution, so
that the objective never rises. Every step factors the matrix of the active columns. The method
stands beside coordinate descent for ill-conditioned Q, where descent takes very many passes: trees
of housing2 at γ = 1 and 0.1, τ = 10 (experiments/solvers/frontier.py) end in 1.3 and 9 seconds with
both methods, and not in 13 seconds with descent alone. Descent stands for many active columns:
trees of 100 to 200 columns at τ = 20 (experiments/solvers/solver_benchmark.py) take 1.6 to 2.2
times longer with Newton steps alone.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ..core.leaves import FREE, IN
from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import Array, Ints, add, allocated, dot
from .descent import measure, relaxed_size
from .dual_bound import gram_bound, gram_gradient, list_allowed

# At most this many columns may be active in the Newton steps of a root or of a relaxation by
# itself, unless a caller gives another number, as trees do
# (``driver.MAX_FACTORED_COLUMNS``); with more, the steps end and callers use coordinate
# descent. A choice.
ACTIVE_COLUMNS = 200
# A call ends after this many steps, each of which factors the matrix of active columns once. The
# first step of a call may set the multiplier, which later steps move within a bracket only: where
# columns nearly depend on each other, at γ <= 0.01, calls of 600 steps left gaps of 8 percent in
# place of .1 (tests/solvers/test_perspective.py), and so did calls whose first step did not set it.
# Nodes of trees start from their parents' solutions and take far fewer steps.
MOST_STEPS = 60


@by_reference()
class NewtonWork(NamedTuple):
    """√w, and work space of :func:`newton` for p columns, of which at most m are active."""

    root_w: Array  # (p,)
    active: Annotated[Ints, "m"]  # the active columns: first those with a coefficient
    when: Annotated[Array, "m+m+m"]  # the t at which the penalty of a coordinate changes at β + td
    where: Annotated[Ints, "m+m+m"]  # 3·(place among the active columns) + (kind of change)
    columns: Annotated[Ints, "p"]  # the columns that are not excluded come first
    U: Annotated[Array, "m m+2"]  # upper Cholesky factor, and two right sides
    inverse: Annotated[Array, "m"]  # one over the diagonal of the factor
    v: Annotated[Array, "m"]  # the v of the system
    move: Annotated[Array, "2 m"]  # solutions of both right sides: the step is move[0] − s·move[1]
    d: Annotated[Array, "m"]  # the step of each active column
    h: Annotated[Array, "p"]  # Qd
    size: Annotated[Array, "p"]  # |β_i|√w_i


def newton_work(w: Array, most_active: int = ACTIVE_COLUMNS) -> NewtonWork:
    """Allocate the work space for p columns of weights w, at most ``most_active`` of them active.

    Single columns without bounds are meant; for others no column may be active.
    """
    return allocated(NewtonWork, {"p": w.size, "m": min(w.size, most_active)}, root_w=np.sqrt(w))


@kernel(inner=True)
def list_with_entering(node, s, count, nt):
    """Write to ``nt.active`` the columns with a coefficient, and then columns to become active.

    The latter have an excess |g_i|/√w_i − s of at least half of the largest, and more than s/1000.
    ``nt.columns`` lists the ``count`` columns that are not excluded.
    Returns: The number of columns with a coefficient, and of all active ones: −1 if they are more
        than ``nt`` holds.
    """
    state, beta, g = node.state, node.beta, node.g
    n, room, most, root_w = 0, nt.active.shape[0], 1.001 * s, nt.root_w
    for a in range(count):
        i = nt.columns[a]
        if state[i] != IN and beta[i] == 0.0:
            if abs(g[i]) > most * root_w[i]:
                most = abs(g[i]) / root_w[i]
            continue
        if n == room:
            return n, -1
        nt.active[n] = i
        n += 1
    m, least = n, max(0.5 * (s + most), 1.001 * s)
    for a in range(count if most > 1.001 * s else 0):
        i = nt.columns[a]
        if abs(g[i]) >= least * root_w[i] and state[i] == FREE and beta[i] == 0.0:
            if m == room:
                return n, -1
            nt.active[m] = i
            m += 1
            if m == n + 8:
                break
    return n, m


@kernel(inner=True)
def factor_active(Q, w, node, s, m, nt):
    """Factor the system of the m active columns, and apply U⁻ᵀ to its two right sides.

    The right sides g − W_quadratic β and v stand in the last two columns of ``nt.U``, and give the
    step from β to the solution, as that of the first less s times that of the second. Writes ``U``,
    ``inverse`` and ``v`` of ``nt``.
    Returns: The number of quadratic free columns.
    """
    state, beta, g = node.state, node.beta, node.g
    U, v, active, root_w, saturated = nt.U, nt.v, nt.active, nt.root_w, 0
    for a in range(m):
        i = active[a]
        for c in range(a, m):
            U[a, c] = Q[i, active[c]]
        U[a, m], v[a] = g[i], 0.0
        if state[i] == IN or root_w[i] * abs(beta[i]) >= s:
            U[a, a] += w[i]
            U[a, m] -= w[i] * beta[i]
            saturated += state[i] == FREE
        else:
            sign = beta[i] if beta[i] != 0.0 else g[i]
            v[a] = root_w[i] if sign > 0.0 else -root_w[i]
        U[a, m + 1] = v[a]
        # The factor only gives a direction for a line search: rounding may have taken the pivot.
        least = 1e-11 * U[a, a] + 1e-300
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
        nt.inverse[a] = 1.0 / np.sqrt(max(U[a, a], least))
        for c in range(a, m + 2):
            U[a, c] *= nt.inverse[a]
    return saturated


@kernel(inner=True)
def solve_leading(n, m, nt):
    """Write to ``nt.move`` both solutions of the system of the first n of m active columns."""
    U, move = nt.U, nt.move
    for a in range(n - 1, -1, -1):
        first, second = U[a, m], U[a, m + 1]
        for c in range(a + 1, n):
            first -= U[a, c] * move[0, c]
            second -= U[a, c] * move[1, c]
        move[0, a], move[1, a] = first * nt.inverse[a], second * nt.inverse[a]


@kernel(inner=True)
def signs_fit(s, n, m, nt):
    """Whether active columns n..m − 1, without a coefficient so far, step along their gradients."""
    fit = True
    for a in range(n, m):
        fit = fit and (nt.move[0, a] - s * nt.move[1, a]) * nt.v[a] > 0.0
    return fit


@kernel(inner=True)
def newton_direction(Q, s, n, nt):
    """Write the step d of the first n active columns to ``nt.d``, and Qd to ``nt.h``."""
    h = nt.h
    p = h.shape[0]
    for j in range(p):
        h[j] = 0.0
    for a in range(n):
        nt.d[a] = nt.move[0, a] - s * nt.move[1, a]
        add(h, Q[nt.active[a]], nt.d[a], p)


@kernel(inner=True)
def place_knot(nt, count, t, code):
    """Insert t and ``code`` into the first ``count`` of ``nt.when``, sorted, and ``nt.where``."""
    c = count
    while c > 0 and nt.when[c - 1] > t:
        nt.when[c], nt.where[c] = nt.when[c - 1], nt.where[c - 1]
        c -= 1
    nt.when[c], nt.where[c] = t, code


@kernel(inner=True)
def zero_between(constant, rate, low, high):
    """The zero of constant + rate·t, or the end of [low, high] that it exceeds by rounding."""
    return min(max(-constant / rate, low), high) if rate > 0.0 else low


@kernel(inner=True)
def line_search(w, node, s, n, nt):
    """The t in [0, 1] at which the objective at β + td is least, with d = ``nt.d``.

    Half the slope of the objective is constant + rate·t between knots, where the penalty of
    a coordinate changes its form: in the direction of its step a coordinate passes −s/√w (quadratic
    to linear), 0, and s/√w (linear to quadratic). ``nt.h`` has Qd.

    Returns: t, and the place of the active coefficient that t makes 0, or −1.
    """
    state, beta, g = node.state, node.beta, node.g
    constant, rate, knots, root_w = 0.0, 0.0, 0, nt.root_w
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
        return 0.0, -1  # rounding alone made d look like a direction of descent
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
def take_step(node, t, at, m, nt):
    """Move β to β + td and update g; the coefficient in place ``at`` and tiny ones become 0.

    A coefficient is tiny where it is at most 1e-13 of its step: rounding has left none of its
    digits.
    """
    state, beta, g = node.state, node.beta, node.g
    for a in range(m):
        i = nt.active[a]
        value = beta[i] + t * nt.d[a]
        if a == at or (state[i] == FREE and abs(value) <= 1e-13 * abs(nt.d[a])):
            value = 0.0
        beta[i] = value
    add(g, nt.h, -t, g.shape[0])


@kernel(inner=True)
def fitting_multiplier(saturated, k, beta, n, nt):
    """The s at which Σz = k for the system last solved; 0 where there is no such s.

    saturated: The number of quadratic free columns, which have z = 1.
    """
    above, below = dot(nt.v, nt.move[0], n), k - saturated + dot(nt.v, nt.move[1], n)
    for a in range(n):
        above += nt.v[a] * beta[nt.active[a]]
    return above / below if above > 0.0 and below > 0.0 else 0.0


@kernel(inner=True)
def next_multiplier(s, fitted, large, low, high):
    """The next s and its bracket [low, high]: the fitted s, or the geometric mean of the bracket.

    large: Whether Σz at s is more than may be chosen, so that s has to grow.
    """
    if large:
        low = s
    else:
        high = s
    if not (low < fitted < min(high, 5.0 * s)):
        fitted = np.sqrt(low * high) if low > 0.0 and high < np.inf else 1.3 * low
    return max(fitted, 0.6 * s), low, high


@kernel
def newton(Q, terms, node, k, target, rounds, tolerance, nt):
    """Solve the relaxation at a node, or go on until its bound reaches ``target``.

    Ends after ``MOST_STEPS`` steps at the latest; the bound then holds and is weaker. On entry
    ``node.beta`` and ``node.lam`` are where to start, √λ = 0 to begin with few active columns, and
    ``node.g`` is b − Qβ; all are overwritten, and so is ``node.top``.

    Q, terms: The relaxation in Gram form, of single columns without bounds.
    k: Number of free columns still to choose.
    rounds, tolerance: At most this many √λ are tried, until Σz deviates from ``k`` by at
        most this share.
    Returns: The certified bound at β, and the number of steps; negative where more columns would
        be active than ``nt`` holds.
    """
    w, root_w, columns, count = terms.w, nt.root_w, nt.columns, list_allowed(node.state, nt.columns)
    beta, g = node.beta, node.g
    s, low, high = node.lam[0], 0.0, np.inf
    if not s > 0.0:  # far below the solution's √λ many columns would become active and leave again
        s = 1e-300
        for a in range(count):
            s = max(s, 0.6 * abs(g[columns[a]]) / root_w[columns[a]])
    done, full, steps, fitted, stalled, out_of_room = 0, False, 0, 0.0, False, False
    bound = gram_bound(terms, node, columns, count, k)
    while steps < MOST_STEPS and bound < target:
        n, m = list_with_entering(node, s, count, nt)
        if m < 0:
            out_of_room = True
            break
        if m == 0 or (full and (m == n or stalled)):
            done += 1
            measure(terms, columns, count, beta, nt.size)
            size = relaxed_size(terms.units, node.state, columns, count, nt.size, s)
            if done >= rounds or abs(size - k) <= tolerance * max(k, 1):
                break
            s, low, high = next_multiplier(s, fitted, size > k, low, high)
            full = stalled = False
            continue
        steps += 1
        saturated = factor_active(Q, w, node, s, m, nt)
        every = m
        solve_leading(m, every, nt)
        while not signs_fit(s, n, m, nt):
            m = n + 1 if m > n + 1 else n
            solve_leading(m, every, nt)
        fitted = fitting_multiplier(saturated, k, beta, m, nt)
        if steps == 1 and 0.5 * s < fitted < 2.0 * s:
            s = fitted  # with the parent's linear and quadratic columns, this s suits the node
        newton_direction(Q, s, m, nt)
        t, at = line_search(w, node, s, m, nt)
        full = t == 1.0
        if t == 0.0:
            full = stalled = True
            continue
        take_step(node, t, at, m, nt)
        bound = gram_bound(terms, node, columns, count, k)
    node.lam[0] = s
    gram_gradient(Q, terms.b, beta, g)  # anew: rounding errors of updates have no bound
    bound = gram_bound(terms, node, columns, count, k)
    return bound, -1 - steps if out_of_room else steps

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

import numpy as np

from ..core.leaves import FREE, IN
from ..kernels.compiled import kernel
from ..kernels.linalg import LEAST_NEWTON_PIVOT, TINY_SHARE_OF_A_STEP, add, dot
from .descent import measure, next_multiplier, relaxed_size
from .dual_bound import gram_bound, gram_gradient, list_allowed

# A call ends after this many steps, each of which factors the matrix of active columns once. The
# first step of a call may set the multiplier, which later steps move within a bracket only: where
# columns nearly depend on each other, at γ <= 0.01, calls of 600 steps left gaps of 8 percent in
# place of .1 (tests/solvers/test_perspective.py), and so did calls whose first step did not set it.
# Nodes of trees start from their parents' solutions and take far fewer steps.
MOST_STEPS = 60


@kernel(inner=True)
def list_with_entering(node, s, count, work):
    """Write to ``work.active`` the columns with a coefficient, and then columns to become active.

    The latter, at most 8, have an excess |g_i|/√w_i − s of at least half of the largest, and of
    s/1000 or more. s is √λ.
    ``work.columns`` lists the ``count`` columns that are not excluded.
    Returns: The number of columns with a coefficient, and of all active ones: −1 if they are more
        than ``work`` factors.
    """
    state, beta, g = node.state[0], node.beta[0], work.g
    n, room, most, root_w = 0, work.U.shape[0], 1.001 * s, work.root_w
    for a in range(count):
        i = work.columns[a]
        if state[i] != IN and beta[i] == 0.0:
            if abs(g[i]) > most * root_w[i]:
                most = abs(g[i]) / root_w[i]
            continue
        if n == room:
            return n, -1
        work.active[n] = i
        n += 1
    m, least = n, max(0.5 * (s + most), 1.001 * s)
    for a in range(count if most > 1.001 * s else 0):
        i = work.columns[a]
        if abs(g[i]) >= least * root_w[i] and state[i] == FREE and beta[i] == 0.0:
            if m == room:
                return n, -1
            work.active[m] = i
            m += 1
            if m == n + 8:
                break
    return n, m


@kernel(inner=True)
def factor_active(terms, node, s, m, work):
    """Factor the system of the m active columns, and apply U⁻ᵀ to its two right sides.

    The right sides g − W_quadratic β and v stand in the last two columns of ``work.U``, and give
    the step from β to the solution, as that of the first less s times that of the second. Writes
    ``U``, ``inverse`` and ``v`` of ``work``.
    Returns: The number of quadratic free columns.
    """
    state, beta, g, w, Q = node.state[0], node.beta[0], work.g, terms.w, work.form.Q
    U, v, active, root_w, saturated = work.U, work.v, work.active, work.root_w, 0
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
        least = LEAST_NEWTON_PIVOT * U[a, a] + 1e-300
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
        work.inverse[a] = 1.0 / np.sqrt(max(U[a, a], least))
        for c in range(a, m + 2):
            U[a, c] *= work.inverse[a]
    return saturated


@kernel(inner=True)
def solve_leading(n, m, work):
    """Write to ``work.move`` both solutions of the system of the first n of m active columns.

    On entry ``work.U`` and ``work.inverse`` are what :func:`factor_active` has written for all m:
    the leading part of a triangular factor is the factor of the leading part.
    """
    U, move = work.U, work.move
    for a in range(n - 1, -1, -1):
        first, second = U[a, m], U[a, m + 1]
        for c in range(a + 1, n):
            first -= U[a, c] * move[0, c]
            second -= U[a, c] * move[1, c]
        move[0, a], move[1, a] = first * work.inverse[a], second * work.inverse[a]


@kernel(inner=True)
def signs_fit(s, n, m, work):
    """Whether active columns n..m − 1, without a coefficient so far, step along their gradients.

    On entry ``work.move`` is what :func:`solve_leading` has written. s: √λ.
    """
    fit = True
    for a in range(n, m):
        fit = fit and (work.move[0, a] - s * work.move[1, a]) * work.v[a] > 0.0
    return fit


@kernel(inner=True)
def newton_direction(s, n, work):
    """Write the step d of the first n active columns to ``work.d``, and Qd to ``work.h``.

    On entry ``work.move`` is what :func:`solve_leading` has written for these n columns.

    s: √λ.
    """
    h, Q = work.h, work.form.Q
    p = h.shape[0]
    for j in range(p):
        h[j] = 0.0
    for a in range(n):
        work.d[a] = work.move[0, a] - s * work.move[1, a]
        add(h, Q[work.active[a]], work.d[a], p)


@kernel(inner=True)
def place_knot(work, count, t, code):
    """Insert t and ``code`` into the first ``count`` of ``when``, sorted, and of ``where``."""
    c = count
    while c > 0 and work.when[c - 1] > t:
        work.when[c], work.where[c] = work.when[c - 1], work.where[c - 1]
        c -= 1
    work.when[c], work.where[c] = t, code


@kernel(inner=True)
def zero_between(constant, rate, low, high):
    """The zero of constant + rate·t, or the end of [low, high] that it exceeds by rounding."""
    return min(max(-constant / rate, low), high) if rate > 0.0 else low


@kernel(inner=True)
def line_search(w, node, s, n, work):
    """The t in [0, 1] at which the objective at β + td is least, with d = ``work.d``.

    Half the slope of the objective is constant + rate·t between knots, where the penalty of
    a coordinate changes its form: in the direction of its step a coordinate passes −s/√w (quadratic
    to linear), 0, and s/√w (linear to quadratic). ``work.h`` has Qd.

    Returns: t, and the place of the active coefficient that t makes 0, or −1.
    """
    state, beta, g = node.state[0], node.beta[0], work.g
    constant, rate, knots, root_w = 0.0, 0.0, 0, work.root_w
    for a in range(n):
        i = work.active[a]
        d = work.d[a]
        constant -= d * g[i]
        rate += d * work.h[i]
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
                place_knot(work, knots, t, 3 * a + kind)
                knots += 1
    if not (constant < 0.0 and rate >= 0.0):
        return 0.0, -1  # rounding alone made d look like a direction of descent
    t = 0.0
    for e in range(knots):
        last, t = t, work.when[e]
        if constant + rate * t >= 0.0:
            return zero_between(constant, rate, last, t), -1
        a, kind = work.where[e] // 3, work.where[e] % 3
        i, size = work.active[a], abs(work.d[a])
        x = beta[i] if work.d[a] > 0.0 else -beta[i]
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
def take_step(node, t, at, m, work):
    """Move β to β + td and g = b − Qβ to g − tQd; tiny free coefficients become 0.

    On entry ``work.d`` has the step d of the first m active columns, and ``work.h`` has Qd. A
    coefficient is tiny where it is at most ``TINY_SHARE_OF_A_STEP`` of its step. ``g`` is not
    corrected for that, as bounds compute g anew from β.

    at: The place among the active columns of a coefficient that the step makes 0, or −1.
    """
    state, beta, g = node.state[0], node.beta[0], work.g
    for a in range(m):
        i = work.active[a]
        value = beta[i] + t * work.d[a]
        if a == at or (state[i] == FREE and abs(value) <= TINY_SHARE_OF_A_STEP * abs(work.d[a])):
            value = 0.0
        beta[i] = value
    add(g, work.h, -t, g.shape[0])


@kernel(inner=True)
def fitting_multiplier(saturated, k, beta, n, work):
    """The root s of the multiplier at which the system last solved has Σz = k; 0 for no such s.

    The system's solution on the first n active columns is β + ``move[0]`` − s·``move[1]``. In Σz a
    quadratic free column counts 1, and the linear ones together count vᵀ(solution)/s. So Σz = k
    says that s·(k − saturated + vᵀ``move[1]``) = vᵀ(β + ``move[0]``), where no s > 0 is looked for
    unless both factors are positive.

    saturated: The number of quadratic free columns, which have z = 1.
    k: The number of free columns still to choose.
    """
    above, below = dot(work.v, work.move[0], n), k - saturated + dot(work.v, work.move[1], n)
    for a in range(n):
        above += work.v[a] * beta[work.active[a]]
    return above / below if above > 0.0 and below > 0.0 else 0.0


@kernel(inner=True)
def newton(work, terms, node, k):
    """Solve the relaxation at a node, or go on until its bound reaches ``work.limits[0].target``.

    Ends after ``MOST_STEPS`` steps at the latest; the bound then holds and is weaker. On entry
    ``node.beta`` and ``node.lam`` are where to start, √λ = 0 to begin with few active columns, and
    ``work.g`` is b − Qβ; all are overwritten, and so is ``work.top``.

    work: A ``RelaxationWork`` in Gram form, of single columns without bounds. Its limits say how
        many √λ are tried at most, and when Σz is near enough to ``k``.
    node: ``Leaves`` of one node.
    k: Number of free columns still to choose.
    Returns: The certified bound at β, and the number of steps; negative where more columns would
        be active than ``work`` factors.
    """
    w, root_w, columns, stop = terms.w, work.root_w, work.columns, work.limits[0]
    state, beta, g, target = node.state[0], node.beta[0], work.g, stop.target
    count = list_allowed(state, columns)
    s, low, high = node.lam[0], 0.0, np.inf
    if not s > 0.0:  # far below the solution's √λ many columns would become active and leave again
        s = 1e-300
        for a in range(count):
            s = max(s, 0.6 * abs(g[columns[a]]) / root_w[columns[a]])
    done, full, steps, fitted, stalled, out_of_room = 0, False, 0, 0.0, False, False
    bound = gram_bound(terms, node, work, count, k)
    while steps < MOST_STEPS and bound < target:
        n, m = list_with_entering(node, s, count, work)
        if m < 0:
            out_of_room = True
            break
        if m == 0 or (full and (m == n or stalled)):
            done += 1
            measure(terms, columns, count, beta, work.size)
            size = relaxed_size(terms.units, state, columns, count, work.size, s)
            if done >= stop.multipliers or abs(size - k) <= stop.share * max(k, 1):
                break
            s, low, high = next_multiplier(s, fitted, size > k, low, high)
            full = stalled = False
            continue
        steps += 1
        saturated = factor_active(terms, node, s, m, work)
        every = m
        solve_leading(m, every, work)
        while not signs_fit(s, n, m, work):
            m = n + 1 if m > n + 1 else n
            solve_leading(m, every, work)
        fitted = fitting_multiplier(saturated, k, beta, m, work)
        if steps == 1 and 0.5 * s < fitted < 2.0 * s:
            s = fitted  # with the parent's linear and quadratic columns, this s suits the node
        newton_direction(s, m, work)
        t, at = line_search(w, node, s, m, work)
        full = t == 1.0
        if t == 0.0:
            full = stalled = True
            continue
        take_step(node, t, at, m, work)
        bound = gram_bound(terms, node, work, count, k)
    node.lam[0] = s
    gram_gradient(work.form.Q, terms.b, beta, g)  # anew: rounding errors of updates have no bound
    bound = gram_bound(terms, node, work, count, k)
    return bound, -1 - steps if out_of_room else steps

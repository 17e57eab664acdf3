"""Compiled leaps and bounds over units of columns, with heredity and bounds on coefficients.

A unit is a group of columns that enter together and count once. A node is a set of units, some of
which may not be dropped any more. A child drops one free unit, and with it the units that need that
unit by heredity; the free units before the dropped unit become fixed. Every allowed subset of a
node lacks some first unit in this order, and also lacks the units that need that first unit, so
that every allowed subset is below exactly one child. With A = (G_S + γ/2 I)⁻¹ and the ridge fit
β = A b_S of a node, dropping the columns D adds β_Dᵀ(A_DD)⁻¹β_D to the objective.

Bounds on coefficients only raise objectives, so that the ridge fit of a node bounds all supports
below it. Where the ridge fit is outside the bounds on coefficients, the fit within them, less what
it lacks to the optimum, is a tighter bound. As in ``tree_kernels`` losses are objectives less the
objective of the ridge fit on all columns.
"""

from __future__ import annotations

import numpy as np

from ..core.bounded_fit import LACKING_SHARE, fit_inside, outside
from ..kernels.compiled import kernel
from ..kernels.linalg import EPS, order_steps
from .leaps_node import enter_support, loss_of_rank
from .unit_node import (
    FIXED,
    FREE,
    OUT,
    added_loss,
    drop_columns,
    factorise_units,
    fix,
    lacks_parent,
    list_columns,
    put_out,
)

# With a sum of variance inflation factors above this number, the inverse of the Gram matrix has at
# best three digits, and bounds of fits within bounds on coefficients use γ/2 alone.
MAX_INFLATION = 1e13
# Where coefficients have bounds, a node is searched only for supports that are better than the best
# by more than this share of the objective: many supports tie there, as coefficients at bounds of 0
# may be left out.
TIED_SHARE = 1e-9


@kernel(inner=True)
def order_units(tree, level):
    """List the free units of a level by the loss that dropping them adds, the largest first.

    A unit that cannot be dropped, because a fixed unit needs it, becomes fixed.
    """
    state, child, m = tree.state[level], tree.state[level + 1], tree.state.shape[1]
    n = 0
    for u in range(m):
        if state[u] != FREE:
            continue
        for v in range(m):
            child[v] = state[v]
        if not put_out(tree, child, u):
            state[u] = FIXED
            continue
        count = list_columns(tree, child, state, tree.dropped)
        tree.units[n], tree.added[level, u] = u, added_loss(tree, level, count, tree.beta[level])
        tree.rise[level, u] = tree.added[level, u]
        if tree.rules[0].bounded > 0:
            rise = added_loss(tree, level, count, tree.inside[level])
            tree.rise[level, u] = (1.0 - 2.0 * LACKING_SHARE) * rise
        tree.steps[n] = tree.rise[level, u]
        n += 1
    order_steps(tree.steps, n, tree.order[level])
    for a in range(n):
        tree.order[level, a] = tree.units[tree.order[level, a]]
    tree.cursor[level], tree.n_fixed[level] = n - 1, tree.n_units[level] - n


@kernel(inner=True)
def enter_units(tree, state, size, loss):
    """Enter the units that are not out as a support of this size and loss."""
    if size < 1 or loss > tree.max_kept[size]:
        return
    for w in range(tree.support.shape[0]):
        tree.support[w] = np.uint64(0)
    for u in range(state.shape[0]):
        if state[u] != OUT:
            tree.support[u >> 6] |= np.uint64(1) << np.uint64(u & 63)
    if not enter_support(tree, size, 0, loss):
        return
    tree.best[size] = min(tree.best[size], loss)
    last = tree.best[size]
    if tree.options[0].n_best > 1:
        last = loss_of_rank(tree, size, 0, tree.options[0].n_best)
    most = last * (1.0 + tree.options[0].tie)
    tree.max_kept[size] = most
    if tree.rules[0].bounded > 0 and last < np.inf:
        most = last - TIED_SHARE * (tree.rules[0].full + last)
    if tree.options[0].n_best > 1:  # The n-th best of a larger size may be worse.
        tree.max_searched[size] = most
        return
    for s in range(size, tree.best.shape[0]):  # A larger size is at least as good.
        tree.max_searched[s] = min(tree.max_searched[s], most)


@kernel(inner=True)
def may_hold_better(tree, bound, low, high):
    """Whether supports of this bound with a wanted size from ``low`` to ``high`` may be wanted."""
    s = tree.next_wanted[low]
    while tree.options[0].n_best > 1 and s < high and bound > tree.max_searched[s]:
        s = tree.next_wanted[s + 1]
    return s <= high and bound <= tree.max_searched[s]


@kernel(inner=True)
def enter_nonzero(tree, level, loss):
    """Enter the support of the fit of a level that lacks the units whose coefficients are all 0."""
    child, size = tree.state[level + 1], 0
    for u in range(child.shape[0]):
        child[u] = tree.state[level, u]
    for u in range(child.shape[0]):
        zero = child[u] == FREE
        for i in range(tree.first[u], tree.first[u + 1]):
            zero = zero and tree.inside[level, i] == 0.0
        if zero:
            child[u] = OUT
    # A unit stays where a unit with coefficients, or a fixed unit, needs it.
    changed = True
    while changed:
        changed = False
        for u in range(child.shape[0]):
            if child[u] != OUT and lacks_parent(tree, child, u):
                for e in range(tree.parent_at[u], tree.parent_at[u + 1]):
                    parent = tree.parents[e]
                    if child[parent] == OUT and tree.state[level, parent] != OUT:
                        child[parent], changed = FREE, True
    for u in range(child.shape[0]):
        size += child[u] != OUT
    if size < tree.n_units[level]:
        enter_units(tree, child, size, loss)


@kernel(inner=True)
def begin_level(tree, level, m, above):
    """Complete a level whose A, β, state and loss are known: its bound, incumbent and children.

    m: Number of its columns ``tree.fit.columns``.
    above: The bound of its parent.
    """
    loss, fit = tree.loss[level], tree.fit
    tree.own_bound[level] = loss
    if tree.rules[0].bounded == 0:
        enter_units(tree, tree.state[level], tree.n_units[level], loss)
    else:
        if outside(fit, tree.beta[level], m):
            inflation = 0.0
            for a in range(m):
                i = fit.columns[a]
                fit.coef[i] = tree.inside[level, i]
                inflation += tree.A[level, i, i] * fit.lengths[i] ** 2
            # The least eigenvalue of the Gram matrix at unit length is at least 1/inflation; half
            # of that is taken, and nothing where rounding has left few digits of A.
            curvature = 0.5 / inflation if inflation < MAX_INFLATION else 0.0
            value, lacking = fit_inside(fit, m, tree.rules[0].ridge, curvature)
            bound = max(value - lacking, 0.0)
            tree.own_bound[level] = bound
            for a in range(m):
                i = fit.columns[a]
                tree.inside[level, i] = fit.coef[i]
        else:
            value, bound = loss, loss
            for a in range(m):
                i = fit.columns[a]
                tree.inside[level, i] = tree.beta[level, i]
        size = tree.n_units[level]
        tree.least_bound[size] = min(tree.least_bound[size], bound)
        enter_units(tree, tree.state[level], size, value)
        enter_nonzero(tree, level, value)
    tree.bound[level] = max(tree.own_bound[level], loss, above)
    order_units(tree, level)


@kernel
def begin_units(tree, included):
    """Make all units the root, of which those with ``included`` (m,) = 1 are fixed."""
    p, m = tree.fit.coef.shape[0], tree.state.shape[1]
    tree.counts[0].level, tree.counts[0].nodes = 0, 1
    for u in range(m):
        tree.state[0, u] = FREE
    for u in range(m):
        if included[u] == 1:
            fix(tree, tree.state[0], u)
    for i in range(p):
        tree.fit.columns[i] = i
        tree.inside[0, i] = 0.0
    factorise_units(tree, 0, p)
    inflation, tree.options[0].reach = 0.0, 1.0
    for i in range(p):
        factor = tree.A[0, i, i] * tree.fit.lengths[i] ** 2
        inflation = max(inflation, factor)
        # Within bounds on coefficients a fit explains at most ‖Xβ‖ ≤ 2|y|.
        tree.options[0].reach += (2.0 if tree.rules[0].bounded > 0 else 1.0) * np.sqrt(factor)
    tree.options[0].tie = min(1e-11 + 20.0 * EPS * inflation, 1e-5)
    tree.n_units[0], tree.loss[0] = m, 0.0
    begin_level(tree, 0, p, 0.0)


@kernel(inner=True)
def descend(tree, level, unit, loss):
    """Complete the child one level below, whose state is set, and which lacks ``unit``."""
    below, m_units = level + 1, tree.state.shape[1]
    n = list_columns(tree, tree.state[below], tree.state[level], tree.dropped)
    m = list_columns(tree, tree.state[below], tree.state[below], tree.fit.columns)
    if not drop_columns(tree, level, m, n):
        factorise_units(tree, below, m)
        loss = tree.fit.triangle[m, m] ** 2
    count = 0
    for u in range(m_units):
        count += tree.state[below, u] != OUT
    tree.n_units[below], tree.loss[below] = count, loss
    for a in range(m):
        i = tree.fit.columns[a]
        tree.inside[below, i] = tree.inside[level, i]
    begin_level(tree, below, m, tree.bound[level])


@kernel
def drop_one_by_one(tree, keep):
    """Enter the supports on a path from the root that drops the unit that adds the least loss.

    keep: (m,), units with 1 are dropped after all others.
    """
    level = 0
    while True:
        chosen, rank = -1, 2
        for a in range(tree.cursor[level], -1, -1):
            u = tree.order[level, a]
            if keep[u] < rank:
                chosen, rank = u, keep[u]
        if chosen < 0:
            return
        for v in range(tree.state.shape[1]):
            tree.state[level + 1, v] = tree.state[level, v]
        put_out(tree, tree.state[level + 1], chosen)
        count = 0
        for v in range(tree.state.shape[1]):
            count += tree.state[level + 1, v] != OUT
        if count < 1:
            return
        descend(tree, level, chosen, tree.loss[level] + tree.added[level, chosen])
        level += 1


@kernel
def advance_units(tree, max_nodes):
    """Search on, depth first, for at most ``max_nodes`` nodes; whether the tree is exhausted."""
    level, done, m = tree.counts[0].level, 0, tree.state.shape[1]
    while level >= 0 and done < max_nodes:
        j = tree.cursor[level]
        if j < 0:
            level -= 1
            continue
        tree.cursor[level] = j - 1
        done += 1
        unit, below = tree.order[level, j], level + 1
        state, child = tree.state[level], tree.state[below]
        loss = tree.loss[level] + tree.added[level, unit]
        bound = max(loss, tree.bound[level], tree.own_bound[level] + tree.rise[level, unit])
        if not may_hold_better(tree, bound, max(tree.n_fixed[level] + j, 1), m):
            continue
        for u in range(m):
            child[u] = state[u]
        for a in range(j):
            fix(tree, child, tree.order[level, a])
        if not put_out(tree, child, unit):
            continue
        size, fixed = 0, 0
        for u in range(m):
            size += child[u] != OUT
            fixed += child[u] == FIXED
        if size < 1:
            continue
        low = max(fixed, 1)
        if not may_hold_better(tree, bound, low, size):
            continue
        descend(tree, level, unit, loss)
        if fixed < size and may_hold_better(tree, tree.bound[below], low, size - 1):
            level = below
    tree.counts[0].level = level
    tree.counts[0].nodes += done
    return level < 0

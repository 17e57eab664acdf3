"""Compiled steps at a node of the tree over included and excluded units of columns.

A unit is a group of columns that enter a model together and count once, by default a single column.
``driver`` takes up nodes and branches as it does for single columns; the relaxation, the bound and
what a decision on one unit asks of other units are those of constraints on columns. A node in which
every unit is decided is one support. Where its bound does not close it, the node is kept, so that
the caller fits the support afresh.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array
from ..leaps.unit_tree import fix, lacks_parent, put_out
from ..relaxation.dual_bound import FREE, IN, OUT, BoundTerms, gram_gradient
from ..relaxation.unit_relaxation import list_units, relax_units, share_units, unit_bound
from .node import CLOSED, KEPT, OPEN


class UnitState(NamedTuple):
    """A problem, the units of the incumbent, and the current node; names as in ``SearchState``."""

    Q: Array  # (p, p)
    terms: BoundTerms
    support: NDArray[np.int64]  # (m,) 1 for units of the incumbent
    now: Any  # a record of type ``node.NOW``
    state: NDArray[np.int8]  # (m,) FREE, IN or OUT
    beta: Array  # (p,)
    g: Array  # (p,) b − Qβ
    lam: Array  # (1,)
    top: Array  # (τ + 3,)
    columns: NDArray[np.int64]  # (m,) free units
    tau: NDArray[np.int64]  # (1,)
    share: Array  # (m,) z of the current node's relaxation


@kernel(inner=True)
def decide(units, state, unit, value, tau):
    """Put a unit in or out, and the units that must follow; −1 where no model is left.

    Where τ units are in, all others are out; where all units that are left fit in, all are in.
    Returns: The number of free units still to choose.
    """
    m = state.shape[0]
    if value == IN:
        fix(units, state, unit)
    elif value == OUT and not put_out(units, state, unit):
        return -1
    inside, free = 0, 0
    for u in range(m):
        inside += state[u] == IN
        free += state[u] == FREE
    k = tau - inside
    if k < 0:
        return -1
    if k == 0 or k >= free:
        for u in range(m):
            if state[u] == FREE:
                state[u] = IN if k >= free else OUT
        for u in range(m):
            if state[u] == IN and lacks_parent(units, state, u):
                return -1
        return 0
    return k


@kernel(inner=True)
def clear_excluded(units, state, beta):
    """Set the coefficients of excluded units to 0."""
    for u in range(state.shape[0]):
        if state[u] == OUT:
            for j in range(units.first[u], units.first[u + 1]):
                beta[j] = 0.0


@kernel(inner=True)
def relax_child(st, ch, units, at, i, value, target):
    """Put the current node with unit i decided as ``value`` in buffer ``at``, and relax it.

    Returns: The child's bound, ∞ where no model is left.
    """
    state, beta, now = ch.state[at], ch.beta[at], st.now[0]
    for u in range(state.shape[0]):
        state[u] = st.state[u]
    for j in range(beta.shape[0]):
        beta[j] = st.beta[j]
    ch.lam[at, 0] = st.lam[0]
    k = decide(units, state, i, value, st.tau[0])
    if k < 0:
        return np.inf
    now.nodes += 1
    clear_excluded(units, state, beta)
    units.limits[0].target = target
    here = (state, k, beta, ch.g, ch.lam[at], ch.top)
    return relax_units(st.Q, st.terms, units, *here)[0]


@kernel(inner=True)
def fix_units(st, units, k, bound, target):
    """Decide every free unit for which the opposite has a bound of at least ``target``.

    As :func:`~..relaxation.dual_bound.fix_columns`, with the worth of units. Units that must follow
    are decided, too. Returns: The number of units decided; −1 where no model better than the
    incumbent is left.
    """
    now, state, top, fixed = st.now[0], st.state, st.top, 0
    last, following, square = top[k - 1], top[k], top[k + 1]
    for u in range(state.shape[0]):
        if state[u] != FREE:
            continue
        value = square * units.worth[u]
        if value < last and bound + last - value >= target:
            now.pruned = min(now.pruned, bound + last - value)
            fixed += 1
            if not put_out(units, state, u):
                return -1
        elif value > following and bound + value - following >= target:
            now.pruned = min(now.pruned, bound + value - following)
            fixed += 1
            fix(units, state, u)
    return fixed


@kernel(inner=True)
def close_units(st, units, target, unsolved):
    """Try to close the current node by its bound and by deciding units.

    On entry ``now.bound`` is a bound of the node. The kernel raises that bound, and writes the
    numbers of free units (listed in ``st.columns``) and of units still to choose. A node that stays
    open has the shares z of its units in ``st.share``.

    Returns: CLOSED, OPEN, or KEPT for a node of one support, which is to be fitted.
    """
    now, state, fixed = st.now[0], st.state, 1
    while fixed > 0:
        k = decide(units, state, 0, FREE, st.tau[0])
        if k < 0:
            return CLOSED
        clear_excluded(units, state, st.beta)
        if unsolved:
            now.nodes += 1
            units.limits[0].target = target
            here = (state, k, st.beta, st.g, st.lam, st.top)
            best, last = relax_units(st.Q, st.terms, units, *here)
            count = list_units(units, state)
        else:
            count = list_units(units, state)
            gram_gradient(st.Q, st.terms.b, st.beta, st.g)
            at = (state, count, k, st.beta, st.g, st.top)
            best = last = unit_bound(st.terms, units, *at)
        if best >= target:
            now.pruned = min(now.pruned, best)
            return CLOSED
        now.bound = max(now.bound, best)
        if k == 0:
            return KEPT
        fixed = fix_units(st, units, k, last, target)
        if fixed < 0:
            return CLOSED
        unsolved = True
    share_units(st.terms, units, state, count, k, st.beta, st.g)
    now.n_free, now.to_choose = 0, k
    for u in range(state.shape[0]):
        st.share[u] = units.share[u] if state[u] != OUT else 0.0
        if state[u] == FREE:
            st.columns[now.n_free] = u
            now.n_free += 1
    return OPEN

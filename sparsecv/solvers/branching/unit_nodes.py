"""Compiled steps at a node of the tree over included and excluded units of columns.

A unit is a group of columns that enter a model together and count once, by default a single column.
``driver`` takes up nodes and branches as it does for single columns; the relaxation and the bound
are those of constraints on columns. A node in which every unit is decided is one support. Where its
bound does not close it, the node is kept, so that the caller fits the support afresh.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array, Ints
from ..relaxation.descent import measure, relax, share_of
from ..relaxation.dual_bound import (
    FREE,
    IN,
    OUT,
    BoundTerms,
    fix_columns,
    gram_bound,
    gram_gradient,
    list_allowed,
)
from .node import CLOSED, KEPT, OPEN


class UnitState(NamedTuple):
    """A problem, the units of the incumbent, and the current node; names as in ``SearchState``."""

    Q: Array  # (p, p)
    terms: BoundTerms
    support: Annotated[Ints, "m"]  # 1 for units of the incumbent
    now: Any  # a record of type ``node.NOW``
    state: Annotated[NDArray[np.int8], "m"]  # FREE, IN or OUT
    beta: Annotated[Array, "p"]
    g: Annotated[Array, "p"]  # b − Qβ
    lam: Annotated[Array, "1"]
    top: Annotated[Array, "tau+3"]
    columns: Annotated[Ints, "m"]  # free units
    tau: NDArray[np.int64]  # (1,)
    share: Annotated[Array, "m"]  # z of the current node's relaxation


@kernel(inner=True)
def settle(state, tau):
    """Decide all free units where the number of units leaves no choice; −1 where too many are in.

    Where τ units are in, all others are out; where all units that are left fit in, all are in.
    Returns: The number of free units still to choose.
    """
    inside, free = 0, 0
    for value in state:
        inside += value == IN
        free += value == FREE
    k = tau - inside
    if k < 0:
        return -1
    if 0 < k < free:
        return k
    for u in range(state.shape[0]):
        if state[u] == FREE:
            state[u] = IN if k >= free else OUT
    return 0


@kernel(inner=True)
def clear_excluded(units, state, beta):
    """Set the coefficients of excluded units to 0."""
    for u in range(state.shape[0]):
        if state[u] == OUT:
            for j in range(units.first[u], units.first[u + 1]):
                beta[j] = 0.0


@kernel(inner=True)
def relax_units(st, ch, units, state, k, beta, lam, target):
    """Relax a node of these decisions from β and √λ, which are overwritten; return its bound.

    k: Number of free units still to choose. The b − Qβ of the node is left in ``ch.g``.
    """
    st.now[0].nodes += 1
    ch.sweeps.limits[0].target, ch.sweeps.best[0] = target, -np.inf
    relax(ch.sweeps, units, st.terms, state, k, beta, ch.g, lam, ch.top)
    return ch.sweeps.best[0]


@kernel(inner=True)
def relax_child(st, ch, units, at, i, value, target):
    """Put the current node with unit i decided as ``value`` in buffer ``at``, and relax it.

    Returns: The child's bound, ∞ where no model is left.
    """
    state, beta = ch.state[at], ch.beta[at]
    for u in range(state.shape[0]):
        state[u] = st.state[u]
    for j in range(beta.shape[0]):
        beta[j] = st.beta[j]
    ch.lam[at, 0] = st.lam[0]
    state[i] = value
    k = settle(state, st.tau[0])
    if k < 0:
        return np.inf
    clear_excluded(units, state, beta)
    return relax_units(st, ch, units, state, k, beta, ch.lam[at], target)


@kernel(inner=True)
def close_units(st, ch, units, target, unsolved):
    """Try to close the current node by its bound and by deciding units.

    On entry ``now.bound`` is a bound of the node. The kernel raises that bound, and writes the
    numbers of free units (listed in ``st.columns``) and of units still to choose. A node that stays
    open has the shares z of its units in ``st.share``.

    Returns: CLOSED, OPEN, or KEPT for a node of one support, which is to be fitted.
    """
    now, state, sweeps, fixed = st.now[0], st.state, ch.sweeps, 1
    while fixed > 0:
        k, best = settle(state, st.tau[0]), -np.inf
        if k < 0:
            return CLOSED
        clear_excluded(units, state, st.beta)
        if unsolved:
            best = relax_units(st, ch, units, state, k, st.beta, st.lam, target)
        gram_gradient(st.Q, st.terms.b, st.beta, st.g)
        count = list_allowed(state, sweeps.columns)
        at = (state, sweeps.columns, count, k, st.beta, st.g, st.top)
        last = gram_bound(st.terms, units, *at)
        best = max(best, last)
        if best >= target:
            now.pruned = min(now.pruned, best)
            return CLOSED
        now.bound = max(now.bound, best)
        if k == 0:
            return KEPT
        fixing = (units, state, k, st.g, last, target, st.top, True)
        fixed, least = fix_columns(st.terms, *fixing)
        now.pruned = min(now.pruned, least)
        unsolved = True
    measure(st.terms.w, units, sweeps.columns, count, st.beta, sweeps.size)
    now.n_free, now.to_choose = 0, k
    for u in range(state.shape[0]):
        if state[u] == FREE:
            st.share[u] = share_of(units, u, sweeps.size, st.lam[0])
            st.columns[now.n_free] = u
            now.n_free += 1
    return OPEN

"""Compiled depth-first branch-and-bound over included and excluded columns.

A node is bounded by the certified dual bound of its perspective relaxation, its columns are fixed
by the screening rules where the bound allows it, and nodes with few completions left are finished
by enumeration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..kernels.completion import complete
from ..kernels.linalg import Array
from ..relaxation.descent import relax
from ..relaxation.dual_bound import gram_bound, raised
from ..supports.swaps import swap_search

TOP, NODES, COMPLETED, ROUNDS, BRANCHED, LEAVES, RECORDING = 0, 1, 2, 3, 4, 5, 6
UPPER, SLACK, TOLERANCE, YY, RIDGE, ALLOWED, SPENT, REACH_Y, EPSILON = 0, 1, 2, 3, 4, 5, 6, 7, 8
SMALL, CHEAP = 3e4, 4e3  # supports: always enumerated, enumerated before any relaxation
# what becomes of nodes that are not pruned at once, the values of ints[RECORDING]: branch; branch
# and record leaves; neither branch nor enumerate
SEARCH, RECORD, SETTLE = 0, 1, 2


class SearchState(NamedTuple):
    """Problem, stack of open nodes, record and work space of one search."""

    G: Array
    Q: Array
    X: Array  # (0, 0): the relaxation is solved in Gram form
    w: Array
    length: Array  # (p,) of the columns, as the dual bound asks
    b: Array
    support: NDArray[np.int64]  # (tau,) record
    ints: NDArray[np.int64]  # top of stack, nodes, completed nodes, relaxation rounds, nodes
    #   branched on, leaves recorded, and what becomes of nodes
    reals: Array  # record objective, least pruned bound, tolerance, yy, ridge, supports that may be
    #   enumerated in large nodes, how many have been, and of the dual bound |y| and ε
    stack: NDArray[np.int8]  # (depth, p)
    stack_beta: Array  # (depth, p)
    stack_bound: Array  # (depth,)
    stack_lam: Array  # (depth,)
    leaves: NDArray[np.int8]  # (leaves, p), and the β and √λ that bound them
    leaf_beta: Array
    leaf_lam: Array
    leaf_bound: Array
    state: NDArray[np.int8]  # (p,)
    beta: Array  # (p,)
    g: Array  # (p,)
    lam: Array  # (1,)
    best: Array  # (2,)
    top: Array  # (tau + 3,)
    limits: Array  # (5,)
    active: NDArray[np.int64]
    columns: NDArray[np.int64]
    scratch: Array
    block: Array  # (m, m) and (3, m): the relaxation's active columns
    local: Array
    chosen: NDArray[np.int64]  # (tau,)
    V: Array  # (tau + 1, p)
    c: Array
    d: Array
    L: Array  # (tau + 1, tau + 1)
    C: Array  # (levels, m, m)
    unit: Array  # (levels, m)
    picks: NDArray[np.int64]
    found: NDArray[np.int64]
    anywhere: NDArray[np.int8]  # (p,) ones: swaps may use any column


@njit(cache=True, nogil=True)
def combinations(n, k, most):  # type: ignore[no-untyped-def]
    """C(n, k), or more than ``most`` once it passes that."""
    k = min(k, n - k)
    total = 1.0
    for a in range(k):
        total = total * (n - a) / (a + 1)
        if total > most:
            return total
    return total


@njit(cache=True, nogil=True)
def record(st, support, gain):  # type: ignore[no-untyped-def]
    """Keep a support if its objective beats the record."""
    value = st.reals[YY] - gain
    if value < st.reals[UPPER]:
        st.reals[UPPER] = value
        for a in range(st.support.shape[0]):
            st.support[a] = support[a]


@njit(cache=True, nogil=True)
def enter(st, most):  # type: ignore[no-untyped-def]
    """Enter ``st.found`` after at most ``most`` swaps; returns its objective."""
    gain = swap_search(
        st.G,
        st.b,
        st.reals[RIDGE],
        st.found,
        st.support.shape[0],
        st.anywhere,
        st.L,
        st.scratch,
        st.V,
        st.c,
        st.d,
        most,
    )
    record(st, st.found, gain)
    return st.reals[YY] - gain


@njit(cache=True, nogil=True)
def record_support(st, support):  # type: ignore[no-untyped-def]
    """Enter a support of τ columns as it is."""
    for a in range(st.support.shape[0]):
        st.found[a] = support[a]
    enter(st, 0)


@njit(cache=True, nogil=True)
def try_rounding(st, m, k, n):  # type: ignore[no-untyped-def]
    """Greedy rounding: the included columns and the k free ones of largest β√w, then swaps."""
    tau = st.support.shape[0]
    for a in range(k):
        least = -1.0
        which = -1
        for f in range(n):
            i = st.columns[f]
            taken = False
            for e in range(m, m + a):
                taken = taken or st.chosen[e] == i
            value = abs(st.beta[i]) * np.sqrt(st.w[i])
            if not taken and value > least:
                least = value
                which = i
        st.chosen[m + a] = which
    for a in range(tau):
        st.found[a] = st.chosen[a]
    if enter(st, 0) <= st.reals[UPPER] * 1.02:
        enter(st, 20)  # close to the record: worth searching around


@njit(cache=True, nogil=True)
def finish(st, m, k, n):  # type: ignore[no-untyped-def]
    """Complete a node by enumeration; its best support is kept if it beats the record."""
    reals = st.reals
    before = reals[YY] - reals[UPPER]
    gain = complete(
        st.G,
        st.b,
        reals[RIDGE],
        st.chosen,
        m,
        st.columns,
        n,
        k,
        before,
        st.V,
        st.c,
        st.d,
        st.L,
        st.C,
        st.unit,
        st.picks,
        st.found,
    )
    st.ints[COMPLETED] += 1
    if gain > before:
        for a in range(k):
            st.chosen[m + a] = st.columns[st.found[a]]
        for a in range(st.support.shape[0]):
            st.found[a] = st.chosen[a]
        # the enumeration's own gain is rounded: enter what a fresh factorisation gives
        enter(st, 0)


@njit(cache=True, nogil=True)
def screen(st, bound, target, k):  # type: ignore[no-untyped-def]
    """Fix free columns whose other value is ruled out by the bound; number fixed.

    Including a column outside the k largest g²/w costs the k-th largest; excluding one inside
    brings in the (k+1)-th (EC.1, main paper, in the scaling of eq. 1). All are judged by the bound
    of the node as it came.
    """
    fixed = 0
    last, following, square = st.top[k - 1], st.top[k], st.top[k + 1]
    for i in range(st.b.shape[0]):
        if st.state[i] != 0:
            continue
        value = square * raised(st.g[i], st.length[i], st.w[i], st.top[k + 2])
        if value < last and bound + last - value >= target:
            st.reals[SLACK] = min(st.reals[SLACK], bound + last - value)
            st.state[i] = 2
            st.beta[i] = 0.0
            fixed += 1
        elif value > following and bound + value - following >= target:
            st.reals[SLACK] = min(st.reals[SLACK], bound + value - following)
            st.state[i] = 1
            fixed += 1
    return fixed


@njit(cache=True, nogil=True)
def small_enough(st, n, k, most):  # type: ignore[no-untyped-def]
    """Whether choosing k of n columns should be enumerated."""
    if k <= 1:
        return True
    if k > st.C.shape[0] + 1 or n > st.C.shape[1]:
        return False
    left = st.reals[ALLOWED] - st.reals[SPENT]
    count = combinations(n, k, max(most, left))
    if count <= most:
        return True
    if most < SMALL or count > left:
        return False
    st.reals[SPENT] += count
    return True


@njit(cache=True, nogil=True)
def choose(st):  # type: ignore[no-untyped-def]
    """Branch on the free column with the largest coefficient in the relaxation."""
    most, which = -1.0, -1
    for i in range(st.b.shape[0]):
        if st.state[i] == 0:
            size = abs(st.beta[i]) * np.sqrt(st.w[i])
            if size > most:
                most, which = size, i
    return which


@njit(cache=True, nogil=True)
def push(st, i, value, bound):  # type: ignore[no-untyped-def]
    """Put the current node with column i set to ``value`` on the stack."""
    top = st.ints[TOP]
    for j in range(st.b.shape[0]):
        st.stack[top, j] = st.state[j]
        st.stack_beta[top, j] = st.beta[j]
    st.stack[top, i] = value
    if value == 2:
        st.stack_beta[top, i] = 0.0
    st.stack_bound[top] = bound
    st.stack_lam[top] = st.lam[0]
    st.ints[TOP] = top + 1


@njit(cache=True, nogil=True)
def save_leaf(st, at, current):  # type: ignore[no-untyped-def]
    """Record the node in stack row ``at``, with the ``current`` β or the one it came with."""
    if st.ints[RECORDING] == SEARCH or st.ints[RECORDING] == SETTLE:
        return
    leaf = st.ints[LEAVES]
    for j in range(st.b.shape[0]):
        st.leaves[leaf, j] = st.stack[at, j]
        st.leaf_beta[leaf, j] = st.beta[j] if current else st.stack_beta[at, j]
    st.leaf_lam[leaf] = st.lam[0] if current else st.stack_lam[at]
    st.ints[LEAVES] = leaf + 1


@njit(cache=True, nogil=True)
def leave_open(st, bound):  # type: ignore[no-untyped-def]
    """Record the current node, screening and all, as one that its relaxation does not close."""
    leaf = st.ints[LEAVES]
    for j in range(st.b.shape[0]):
        st.leaves[leaf, j] = st.state[j]
        st.leaf_beta[leaf, j] = st.beta[j]
    st.leaf_lam[leaf] = st.lam[0]
    st.leaf_bound[leaf] = bound
    st.ints[LEAVES] = leaf + 1


@njit(cache=True, nogil=True)
def count_node(st):  # type: ignore[no-untyped-def]
    """List included and free columns; (included, free)."""
    m, n = 0, 0
    for i in range(st.b.shape[0]):
        if st.state[i] == 1:
            if m < st.chosen.shape[0]:
                st.chosen[m] = i
            m += 1
        elif st.state[i] == 0:
            st.columns[n] = i
            n += 1
    return m, n


@njit(cache=True, nogil=True)
def explore(st, most_nodes):  # type: ignore[no-untyped-def]
    """Search on for at most ``most_nodes`` nodes.

    Returns 0 when done, 1 when the nodes are used up, 2 when the stack is full and 3 when there is
    no room for another leaf. While leaves are recorded nothing is screened: leaves then are a
    partition of all supports. ``ints[RECORDING]`` = SETTLE leaves nodes open instead of branching.
    """
    p, tau = st.b.shape[0], st.support.shape[0]
    ints, reals, state, beta = st.ints, st.reals, st.state, st.beta
    used = 0
    mode = ints[RECORDING]
    while ints[TOP] > 0:
        if used >= most_nodes:
            return 1
        if ints[TOP] + 2 > st.stack.shape[0]:
            return 2
        if mode != SEARCH and ints[LEAVES] >= st.leaves.shape[0]:
            return 3
        ints[TOP] -= 1
        at = ints[TOP]
        target = reals[UPPER] * (1.0 - reals[TOLERANCE])
        bound = st.stack_bound[at]
        if bound >= target:
            reals[SLACK] = min(reals[SLACK], bound)
            save_leaf(st, at, False)
            continue
        used += 1
        ints[NODES] += 1
        for j in range(p):
            state[j] = st.stack[at, j]
            beta[j] = st.stack_beta[at, j]
        st.lam[0] = st.stack_lam[at]
        m, n = count_node(st)
        k = tau - m
        if k >= n:  # everything left fits
            for f in range(n):
                st.chosen[m + f] = st.columns[f]
            finish_all(st, m + n)
            save_leaf(st, at, False)
            continue
        if mode == SETTLE and k == 0:
            for f in range(tau):
                st.found[f] = st.chosen[f]
            enter(st, 0)
            continue
        if mode != SETTLE and small_enough(st, n, k, CHEAP):
            finish(st, m, k, n)
            save_leaf(st, at, False)
            continue
        st.limits[0] = target
        pruned = False
        while True:
            st.best[0] = -np.inf
            rounds = relax_here(st, k)
            ints[ROUNDS] += abs(rounds)
            bound = max(bound, st.best[0])
            if bound >= target:
                reals[SLACK] = min(reals[SLACK], bound)
                pruned = True
                save_leaf(st, at, True)
                break
            m, n = count_node(st)  # the relaxation has used the lists
            if mode == RECORD:
                break
            fixed = screen(st, bound_of(st, k), target, k)
            m, n = count_node(st)
            k = tau - m
            if fixed == 0 or k <= 1 or k >= n:
                break
            if fixed * 8 < n:
                break
        if pruned:
            continue
        if k < 0:
            continue  # screening proved that nothing better lies below
        if k >= n:
            for f in range(n):
                st.chosen[m + f] = st.columns[f]
            finish_all(st, m + n)
            continue
        if mode == SETTLE and k == 0:  # by screening
            for f in range(tau):
                st.found[f] = st.chosen[f]
            enter(st, 0)
            continue
        if mode != SETTLE and small_enough(st, n, k, SMALL):
            finish(st, m, k, n)
            save_leaf(st, at, True)
            continue
        try_rounding(st, m, k, n)
        if mode == SETTLE:
            leave_open(st, bound)
            continue
        m, n = count_node(st)
        i = choose(st)
        ints[BRANCHED] += 1
        push(st, i, 2, bound)
        push(st, i, 1, bound)
    return 0


@njit(cache=True, nogil=True)
def relax_here(st, k):  # type: ignore[no-untyped-def]
    """Go on with the current node's relaxation; rounds as :func:`relax` counts them."""
    none = st.scratch  # Gram form
    return relax(
        (st.Q, st.X, none, none, 0.0, none),
        (st.w, st.length, st.b, st.reals[YY], st.reals[REACH_Y], st.reals[EPSILON]),
        st.state,
        k,
        st.beta,
        st.g,
        st.limits,
        st.lam,
        st.best,
        st.top,
        (st.active, st.columns, st.scratch, st.block, st.local),
    )


@njit(cache=True, nogil=True)
def bound_of(st, k):  # type: ignore[no-untyped-def]
    """Dual bound at the current β, over all columns that are not out; ``top`` for screening."""
    count = 0
    for i in range(st.b.shape[0]):
        if st.state[i] != 2:
            st.active[count] = i
            count += 1
    reals, scaled = st.reals, st.limits[4] > 0.0
    return gram_bound(
        st.w,
        st.length,
        st.b,
        reals[YY],
        reals[REACH_Y],
        st.state,
        st.active,
        count,
        k,
        st.beta,
        st.g,
        reals[EPSILON],
        scaled,
        st.top,
    )


@njit(cache=True, nogil=True)
def finish_all(st, m):  # type: ignore[no-untyped-def]
    """A node whose free columns all fit: fill up to τ with anything and enter it."""
    tau = st.support.shape[0]
    for i in range(st.b.shape[0]):
        if m >= tau:
            break
        taken = False
        for e in range(m):
            taken = taken or st.chosen[e] == i
        if not taken:
            st.chosen[m] = i
            m += 1
    for a in range(tau):
        st.found[a] = st.chosen[a]
    enter(st, 0)

"""Compiled branch-and-bound over included and excluded columns, best bound first.

Nodes wait with their relaxation solved. The one of least bound is taken up: its bound fixes
columns, few completions left are enumerated, and otherwise it is branched on the column whose
exclusion is expected to raise the bound most, by what excluding it has done so far (pseudocosts)
and, until enough of that is known, by trying it (strong branching). Once no more nodes may be kept
the search goes depth first below the node taken up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array
from ..relaxation.descent import Sweeps, relax
from ..relaxation.dual_bound import gram_gradient
from ..relaxation.newton import newton
from .node import (
    CHEAP,
    IN,
    OPERATION,
    OUT,
    RECORD,
    SETTLE,
    SMALL,
    STEP,
    bound_here,
    choose_all,
    count_node,
    exclude,
    finish,
    largest_share,
    screen,
    small_enough,
    try_rounding,
)

DONE, PAUSED, FULL = 0, 1, 2
TRIED, KNOWN = 8, 2  # columns tried in strong branching; trials after which one is known
PROMISING = 0.2  # of the best trial: a lower estimate is not tried
ROUNDS, TOLERANCE = 2, 0.003  # multipliers tried at a node, deviation of Σz that will do
FEW_ACTIVE, WIDEST = 25, 112  # active columns from which nodes are swept, or are not factored
LESSONS = 8  # nodes on which sweeping may fail before it has to suffice for half of them
# rounds of coordinate descent at a node, more where no factorisation follows
FEW_SWEEPS, SWEEPS = 8, 20

COUNTS = np.dtype(
    [
        ("waiting", "i8"),  # nodes in the heap
        ("diving", "i8"),  # nodes on the stack
        ("spare", "i8"),  # rows not in use
        ("kept", "i8"),  # leaves kept
        ("deep", "i8"),  # 1: no more rows may be had, children go on the stack
    ]
)


class OpenNodes(NamedTuple):
    """Nodes in rows of a table: waiting in a heap, on a stack, or kept as leaves."""

    state: NDArray[np.int8]  # (rows, p)
    beta: Array  # (rows, p)
    lam: Array  # (rows,)
    bound: Array  # (rows,)
    fresh: NDArray[np.int8]  # (rows,) 1 where the node has not been relaxed
    heap: NDArray[np.int64]  # (rows,)
    stack: NDArray[np.int64]
    spare: NDArray[np.int64]
    kept: NDArray[np.int64]
    counts: NDArray[np.void]  # (1,) of COUNTS


class Children(NamedTuple):
    """The relaxation of a child, the best exclusion so far, and what was learnt of columns."""

    state: NDArray[np.int8]  # (2, p)
    beta: Array  # (2, p)
    g: Array  # (p,)
    lam: Array  # (2, 1)
    top: Array
    gain: Array  # (p,) gains of excluding a column, over its z, summed
    trials: NDArray[np.int64]  # (p,)
    tried: NDArray[np.int8]  # (p,)
    sweeps: Sweeps  # for nodes with many active columns


@kernel
def push(open_nodes, row):  # type: ignore[no-untyped-def]
    """Put a row in the heap."""
    heap, bound, counts = open_nodes.heap, open_nodes.bound, open_nodes.counts[0]
    at = counts.waiting
    counts.waiting += 1
    while at > 0:
        parent = (at - 1) // 2
        if bound[heap[parent]] <= bound[row]:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = row


@kernel(inner=True)
def pop(open_nodes):  # type: ignore[no-untyped-def]
    """Take the row of least bound out of the heap."""
    heap, bound, counts = open_nodes.heap, open_nodes.bound, open_nodes.counts[0]
    first = heap[0]
    counts.waiting -= 1
    n = counts.waiting
    row = heap[n]
    at = 0
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and bound[heap[child + 1]] < bound[heap[child]]:
            child += 1
        if bound[row] <= bound[heap[child]]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = row
    return first


@kernel(inner=True)
def store(open_nodes, state, beta, lam, bound, fresh):  # type: ignore[no-untyped-def]
    """Write a node to a spare row."""
    counts = open_nodes.counts[0]
    counts.spare -= 1
    row = open_nodes.spare[counts.spare]
    for i in range(state.shape[0]):
        open_nodes.state[row, i] = state[i]
        open_nodes.beta[row, i] = beta[i]
    open_nodes.lam[row], open_nodes.bound[row], open_nodes.fresh[row] = lam, bound, fresh
    return row


@kernel(inner=True)
def release(open_nodes, row, keep):  # type: ignore[no-untyped-def]
    """Give a row back, or keep it as a leaf."""
    counts = open_nodes.counts[0]
    if keep:
        open_nodes.kept[counts.kept] = row
        counts.kept += 1
    else:
        open_nodes.spare[counts.spare] = row
        counts.spare += 1


@kernel
def sweep(st, ch, at, k, target, active, most):  # type: ignore[no-untyped-def]
    """Relax the child in buffer ``at`` by coordinate descent; its bound, and whether it will do."""
    now, limits, best = st.now[0], ch.sweeps.limits[0], ch.sweeps.best
    limits.target, best[0] = target, -np.inf
    limits.hopeless = now.wide if active > WIDEST else now.undecided
    if now.quick > 0:
        limits.hopeless = 1.0
    limits.rounds = most
    here = (ch.state[at], k, ch.beta[at], ch.g, ch.lam[at], ch.top)
    rounds = relax(ch.sweeps, st.terms, *here)
    now.work += abs(rounds) * (STEP + OPERATION * ((4.0 * active + ch.g.shape[0]) * active))
    return best[0], rounds > 0 or best[1] - best[0] <= limits.hopeless * (target - best[0])


@kernel
def solve(st, nt, ch, at, k, target):  # type: ignore[no-untyped-def]
    """Relax the child in buffer ``at``, whose b − Qβ is in ``ch.g``; its bound.

    Where many columns are active by coordinate descent first, as long as that suffices for most
    nodes; by Newton steps, however ill-conditioned Q is, where a factorisation of the active
    columns is worth it.
    """
    now, state, beta, lam = st.now[0], ch.state[at], ch.beta[at], ch.lam[at]
    active, p = 0.0, state.shape[0]
    for i in range(p):
        active += beta[i] != 0.0
    now.nodes += 1
    wide = active > nt.active.shape[0] or now.quick > 0
    if wide or (active > FEW_ACTIVE and 2 * now.sufficed >= now.swept - LESSONS):
        now.quick -= now.quick > 0
        bound, enough = sweep(st, ch, at, k, target, active, SWEEPS if wide else FEW_SWEEPS)
        if wide:
            return bound
        now.swept += 1
        if enough:
            now.sufficed += 1
            return bound
    bound, steps = newton(
        st.Q,
        st.terms,
        st.root_w,
        now.scaled > 0,
        state,
        k,
        beta,
        ch.g,
        lam,
        target,
        ROUNDS,
        TOLERANCE,
        ch.top,
        nt,
    )
    operations = (active * active / 6.0 + 2.0 * p) * active + 15.0 * p
    now.work += abs(steps) * (STEP + OPERATION * operations)
    if steps < 0:  # more columns became active than there is room for
        bound = max(bound, sweep(st, ch, at, k, target, active, SWEEPS)[0])
    return bound


@kernel
def load_child(st, ch, at, i, value):  # type: ignore[no-untyped-def]
    """The node at hand with column i in or out, in buffer ``at``."""
    for j in range(st.state.shape[0]):
        ch.state[at, j], ch.beta[at, j], ch.g[j] = st.state[j], st.beta[j], st.g[j]
    ch.lam[at, 0] = st.lam[0]
    ch.state[at, i] = value
    if value == OUT:
        exclude(st.Q, ch.beta[at], ch.g, i)


@kernel(inner=True)
def share(st, i):  # type: ignore[no-untyped-def]
    """z_i of the node at hand."""
    size, s = st.root_w[i] * abs(st.beta[i]), st.lam[0]
    if size >= s:
        return 1.0 if size > 0.0 else 0.0
    return size / s


@kernel(inner=True)
def promising(st, ch, n, mean):  # type: ignore[no-untyped-def]
    """The free column, not tried yet, of largest expected gain when it is excluded; the gain."""
    most, which = -1.0, -1
    for f in range(n):
        i = st.columns[f]
        if ch.tried[i] == 1:
            continue
        each = ch.gain[i] / ch.trials[i] if ch.trials[i] > 0 else mean
        value = each * share(st, i)
        if value > most:
            most, which = value, i
    return most, which


@kernel(inner=True)
def choose(st, nt, ch, n, k, bound, target):  # type: ignore[no-untyped-def]
    """The column to branch on; its exclusion is left in buffer 1, with its bound."""
    total, trials = 0.0, 0
    for f in range(n):
        i = st.columns[f]
        ch.tried[i] = 0
        total += ch.gain[i]
        trials += ch.trials[i]
    mean = total / trials if total > 0.0 else 1.0
    best, chosen, raised = -1.0, -1, bound
    for _ in range(TRIED):
        expected, i = promising(st, ch, n, mean)
        if i < 0 or (chosen >= 0 and expected < PROMISING * best):
            break
        ch.tried[i] = 1
        known = ch.trials[i] >= KNOWN
        if known and expected <= best:
            continue
        z = share(st, i)
        load_child(st, ch, 0, i, OUT)
        value = max(bound, solve(st, nt, ch, 0, k, target))
        gain = min(value, target) - bound
        if z > 1e-3:
            ch.gain[i] += gain / z
            ch.trials[i] += 1
        if gain > best:
            best, chosen, raised = gain, i, value
            for j in range(st.state.shape[0]):
                ch.state[1, j], ch.beta[1, j] = ch.state[0, j], ch.beta[0, j]
            ch.lam[1, 0] = ch.lam[0, 0]
        if known or value >= target:
            break
    return chosen, raised


@kernel(inner=True)
def add(st, open_nodes, ch, at, bound, fresh, target):  # type: ignore[no-untyped-def]
    """Let the child in a buffer wait, or prune it."""
    now, counts = st.now[0], open_nodes.counts[0]
    pruned = bound >= target
    if pruned:
        now.slack = min(now.slack, bound)
        if now.mode != RECORD:
            return
    row = store(open_nodes, ch.state[at], ch.beta[at], ch.lam[at, 0], bound, fresh)
    if pruned:
        release(open_nodes, row, True)
    elif counts.deep > 0 or counts.diving > 0:
        open_nodes.stack[counts.diving] = row
        counts.diving += 1
    else:
        push(open_nodes, row)


@kernel(inner=True)
def relax_here(st, nt, ch, k, target):  # type: ignore[no-untyped-def]
    """Relax the node at hand, which came without a relaxation of its own; its bound."""
    load_child(st, ch, 0, 0, st.state[0])
    bound = solve(st, nt, ch, 0, k, target)
    for j in range(st.state.shape[0]):
        st.beta[j], st.g[j] = ch.beta[0, j], ch.g[j]
    st.lam[0] = ch.lam[0, 0]
    return bound


@kernel(inner=True)
def close(st, nt, ch, k, bound, target, fresh):  # type: ignore[no-untyped-def]
    """Try to be done with the node at hand by bounds and enumeration.

    A fresh node has no relaxation of its own yet. Returns whether it is closed, and otherwise its
    included columns, free ones, picks left and bound.
    """
    now, tau, mode = st.now[0], st.support.shape[0], st.now[0].mode
    m, n = count_node(st)
    while True:
        k = tau - m
        if k < 0:
            return True, m, n, k, bound  # nothing better lies below
        if k == 0 or k >= n:  # a single support, or all there is
            finish(st, nt.columns, choose_all(st.chosen, m, k, st.columns, n), 0, 0)
            return True, m, n, k, bound
        if mode != SETTLE and small_enough(st, n, k, CHEAP if fresh else SMALL):
            finish(st, nt.columns, m, k, n)
            return True, m, n, k, bound
        if fresh:
            bound = max(bound, relax_here(st, nt, ch, k, target))
            if bound >= target:
                now.slack = min(now.slack, bound)
                return True, m, n, k, bound
            fresh = False
            m, n = count_node(st)
            continue
        if mode == RECORD:
            return False, m, n, k, bound
        here = bound_here(st, nt.columns, k)
        if here >= target:
            now.slack = min(now.slack, here)
            return True, m, n, k, bound
        bound = max(bound, here)
        fixed = screen(st, here, target, k)
        m, n = count_node(st)
        if fixed == 0:
            return False, m, n, k, bound
        fresh = fixed * 8 >= n and tau > m and tau - m < n  # much has changed


@kernel
def branch(st, nt, ch, open_nodes, n, k, bound, target):  # type: ignore[no-untyped-def]
    """Let both children of the node at hand wait.

    The first nodes of a tree branch on the column of largest z and leave relaxing the children to
    their turn: what ends soon needs no more.
    """
    quick = st.now[0].quick > 0
    if quick:
        i = largest_share(st.columns, n, st.beta, st.root_w, st.chosen, 0, 0)
        load_child(st, ch, 1, i, OUT)
        raised = bound
    else:
        i, raised = choose(st, nt, ch, n, k, bound, target)
    add(st, open_nodes, ch, 1, raised, quick, target)
    load_child(st, ch, 0, i, IN)
    raised, fresh = bound, quick or small_enough(st, n - 1, k - 1, CHEAP)
    if not fresh:
        raised = max(bound, solve(st, nt, ch, 0, k - 1, target))
    add(st, open_nodes, ch, 0, raised, fresh, target)


@kernel
def explore(st, nt, ch, open_nodes, most_nodes):  # type: ignore[no-untyped-def]
    """Search on for at most about ``most_nodes`` nodes.

    Returns DONE, PAUSED when the nodes are used up, FULL when there is no row for two children.
    While leaves are recorded nothing is fixed: leaves then are a partition of all supports.
    """
    now, counts, tau = st.now[0], open_nodes.counts[0], st.support.shape[0]
    first, mode = now.nodes, now.mode
    while counts.waiting + counts.diving > 0:
        if now.nodes - first >= most_nodes:
            return PAUSED
        if counts.spare < 3:
            return FULL
        if counts.diving > 0:
            counts.diving -= 1
            row = open_nodes.stack[counts.diving]
        else:
            row = pop(open_nodes)
        target = now.upper * (1.0 - now.tolerance)
        bound = open_nodes.bound[row]
        if bound >= target:
            now.slack = min(now.slack, bound)
            release(open_nodes, row, mode == RECORD)
            continue
        for j in range(st.state.shape[0]):
            st.state[j], st.beta[j] = open_nodes.state[row, j], open_nodes.beta[row, j]
        st.lam[0] = open_nodes.lam[row]
        gram_gradient(st.Q, st.terms.b, st.beta, st.g)
        fresh = open_nodes.fresh[row] > 0
        closed, m, n, k, bound = close(st, nt, ch, tau, bound, target, fresh)
        if closed:
            if mode == RECORD:  # with the β that closed it
                for j in range(st.state.shape[0]):
                    open_nodes.beta[row, j] = st.beta[j]
                open_nodes.lam[row] = st.lam[0]
            release(open_nodes, row, mode == RECORD)
            continue
        try_rounding(st, m, k, n)
        if mode == SETTLE:
            for j in range(st.state.shape[0]):
                open_nodes.state[row, j], open_nodes.beta[row, j] = st.state[j], st.beta[j]
            open_nodes.lam[row], open_nodes.bound[row] = st.lam[0], bound
            release(open_nodes, row, True)
            continue
        release(open_nodes, row, False)
        target = now.upper * (1.0 - now.tolerance)
        now.branched += 1
        branch(st, nt, ch, open_nodes, n, k, bound, target)
    return DONE

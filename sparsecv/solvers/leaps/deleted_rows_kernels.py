"""Compiled search of the shared tree: every row deleted in turn, one tree for all.

Problem i is the full one with row (z_i, t_i) taken out of its Gram matrices. On a node S with ridge
fit β, A = (G_S + γ/2 I)⁻¹, W = A Z_Sᵀ, residuals r and leverages h, its value is
f_S − r_i²/(1 − h_i); dropping member m adds (β_m − W_mi r_i/(1−h_i))² / (A_mm + W_mi²/(1−h_i)).
A child is dropped only when it can improve no problem at any size it still reaches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array
from . import leaps_node as node
from .leaps_node import Tree, drop, highest_rank, name_child, new_tree, pause, remember

TIES = 4
CROWDED = 0.75  # share of live problems below which a node is compacted: copies cost, too


class SharedState(NamedTuple):
    """The search over n deleted-row problems; see ``all_sizes_kernels.TreeState``.

    ``W`` holds the rows of A Z_Sᵀ of the free members, level after level in one buffer
    (``offset``). ``one_minus_leverage`` is 1 − h_i, ``deleted_residual`` r_i/(1−h_i), ``loss`` the
    value of problem i above that of its full ridge fit. A node keeps only its ``alive`` problems,
    those it may still improve; the arrays above then have that many entries and ``who`` names the
    problems.
    """

    tree: Tree
    Z: Array  # (p, n): rows, transposed
    t: Array  # (n,)
    W: Array  # (buffer rows, n)
    offset: NDArray[np.int64]  # (levels,)
    one_minus_leverage: Array  # (levels, n)
    deleted_residual: Array  # (levels, n)
    loss: Array  # (levels, n)
    alive: NDArray[np.int64]  # (levels,)
    who: NDArray[np.int64]  # (levels, n)
    best: Array  # (p+2, n)
    keep: Array  # (p+2, n): best widened by the tie window
    cut: Array  # (p+2, n)
    child: Array  # (n,)
    select: NDArray[np.int64]  # (n,)
    V: Array  # (p, n)


def new_state(
    R: Array,
    rows: Array,
    targets: Array,
    sizes: NDArray[np.intp],
    tie: float,
    ridge: float,
) -> SharedState:
    """Allocate the search for the problem with factor ``R`` and the rows to delete in turn."""
    p, n = R.shape[0] - 1, rows.shape[0]
    depth = np.arange(p, dtype=np.int64)
    state = SharedState(
        tree=new_tree(R, sizes, n, TIES, tie=tie, least=np.sqrt(ridge)),
        Z=np.ascontiguousarray(rows.T),
        t=np.ascontiguousarray(targets),
        W=np.empty((p * (p + 1) // 2, n)),
        offset=np.concatenate([[0], np.cumsum(p - depth)[:-1]]),
        one_minus_leverage=np.empty((p, n)),
        deleted_residual=np.empty((p, n)),
        loss=np.zeros((p, n)),
        alive=np.full(p, n, dtype=np.int64),
        who=np.tile(np.arange(n, dtype=np.int64), (p, 1)),
        best=np.full((p + 2, n), np.inf),
        keep=np.full((p + 2, n), np.inf),
        cut=np.full((p + 2, n), np.inf),
        child=np.empty(n),
        select=np.zeros(n, dtype=np.int64),
        V=np.empty((p, n)),
    )
    factorise(state, 0)
    state.best[p] = state.keep[p] = state.cut[p] = state.cut[p + 1] = 0.0
    return state


def exclude(state: SharedState, problems: NDArray[np.intp]) -> None:
    """Leave problems out of the search: nothing improves them, nothing is kept open for them."""
    state.keep[:, problems] = -1.0
    state.cut[:, problems] = -1.0


@kernel(inner=True)
def offer(st, level, j, size):  # type: ignore[no-untyped-def]
    """Enter the node without free member j for every problem it may be best for."""
    tree = st.tree
    name_child(tree, level, j)
    tie = tree.settings[0].tie
    found, found_loss, found_n, support = tree.found, tree.found_loss, tree.found_n, tree.support
    who, losses, best, keep, cut = st.who, st.child, st.best, st.keep, st.cut
    for position in range(st.alive[level]):
        i = who[level, position]
        loss = losses[position]
        if loss > keep[size, i]:
            continue
        kept = remember(found, found_loss, found_n, support, size, i, loss, tie)
        if kept and loss < best[size, i]:
            best[size, i] = loss
            keep[size, i] = loss * (1.0 + tie)
            for s in range(size, cut.shape[0]):
                # a larger support never fits worse: a bound above the cut is useless there too
                cut[s, i] = min(cut[s, i], keep[size, i])


@kernel
def factorise(st, level):  # type: ignore[no-untyped-def]
    """Compute a node afresh from R, and what the live problems need of it."""
    tree = st.tree
    node.factorise(tree, level)
    k = tree.fixed[level]
    m = tree.A.shape[0] - level
    u = m - k
    triangle = tree.triangle
    # V = T⁻ᵀ Z_Sᵀ gives leverages and residuals as sums over members
    remain, deleted, V, W, who = st.one_minus_leverage, st.deleted_residual, st.V, st.W, st.who
    n = st.alive[level]
    for i in range(n):
        remain[level, i] = 1.0
        deleted[level, i] = st.t[who[level, i]]
    for a in range(m):
        for i in range(n):
            V[a, i] = st.Z[tree.columns[a], who[level, i]]
        for c in range(a):
            weight = triangle[c, a]
            for i in range(n):
                V[a, i] -= weight * V[c, i]
        inverse = 1.0 / triangle[a, a]
        z = triangle[a, m]
        for i in range(n):
            v = V[a, i] * inverse
            V[a, i] = v
            remain[level, i] -= v * v
            deleted[level, i] -= z * v
    for i in range(n):
        deleted[level, i] /= remain[level, i]
    # the free rows of W = T⁻¹V need the trailing triangle only
    base = st.offset[level]
    for a in range(u - 1, -1, -1):
        for i in range(n):
            W[base + a, i] = V[k + a, i]
        for c in range(a + 1, u):
            weight = triangle[k + a, k + c]
            for i in range(n):
                W[base + a, i] -= weight * W[base + c, i]
        inverse = 1.0 / triangle[k + a, k + a]
        for i in range(n):
            W[base + a, i] *= inverse


@kernel(inner=True)
def compact(st, level, low, live):  # type: ignore[no-untyped-def]
    """Choose the live problems of the node below; True when only some are kept.

    ``live`` of them are worth keeping. While that is most of them, all are kept: a copy costs more
    than it saves. Their positions in the parent's arrays are left in ``st.select``.
    """
    alive, below = st.alive[level], level + 1
    who, loss, losses, cut = st.who, st.loss, st.child, st.cut
    every = live >= CROWDED * alive
    count = 0
    for i in range(alive):
        if every or losses[i] <= cut[low, who[level, i]]:
            st.select[count] = i
            who[below, count] = who[level, i]
            loss[below, count] = losses[i]
            count += 1
    st.alive[below] = count
    return not every


@kernel(inner=True)
def descend(st, level, j, low, live, walking):  # type: ignore[no-untyped-def]
    """Make the child that drops free member j the current node, for the problems it may improve."""
    tree = st.tree
    A, W, handed, select = tree.A, st.W, tree.handed, st.select
    below = level + 1
    some = compact(st, level, low, live)
    if not drop(tree, level, j, walking):
        factorise(st, below)
        return
    n = st.alive[below]
    pivot = 1.0 / A[level, j, j]
    ratio = tree.beta[level, j] * pivot
    dropped, target, origin = st.offset[level] + j, st.offset[below], st.offset[level]
    for a in range(A.shape[0] - below - tree.fixed[below]):
        c = handed[below, a]
        weight = A[level, j, c] * pivot
        if some:
            for i in range(n):
                W[target + a, i] = W[origin + c, select[i]] - weight * W[dropped, select[i]]
        else:
            for i in range(n):
                W[target + a, i] = W[origin + c, i] - weight * W[dropped, i]
    remain, deleted = st.one_minus_leverage, st.deleted_residual
    for i in range(n):
        o = select[i]
        w = W[dropped, o]
        grown = remain[level, o] + w * w * pivot  # 1 − h only grows: nothing cancels
        deleted[below, i] = (deleted[level, o] * remain[level, o] + w * ratio) / grown
        remain[below, i] = grown


@kernel
def advance(st, max_nodes, rank):  # type: ignore[no-untyped-def]
    """Search on for at most ``max_nodes`` nodes; True once the tree is exhausted.

    With ``rank`` (one per column) it walks instead, from the root, before the search starts: drop
    the column of highest rank, among equals the one that costs least, until one is left, and enter
    every support on the way.
    """
    tree = st.tree
    p, n = st.Z.shape
    walking = rank.shape[0] > 0
    diagonal, beta, W, loss, losses = tree.diagonal, tree.beta, st.W, st.loss, st.child
    remain, deleted, keep, cut = st.one_minus_leverage, st.deleted_residual, st.keep, st.cut
    cursor, fixed, who, alive, want = tree.cursor, tree.fixed, st.who, st.alive, tree.want
    level = 0 if walking else tree.counts[0].level
    done = 0
    while level >= 0 and done < max_nodes:
        size = p - level - 1
        j = cursor[level]
        if walking:
            if size == 0:
                return False
            j = highest_rank(tree, level, rank)
        elif j < 0:
            level -= 1
            continue
        else:
            cursor[level] = j - 1
            done += 1
            if size < 1:
                continue
        live = alive[level]
        row, b, d = st.offset[level] + j, beta[level, j], diagonal[level, j]
        for i in range(live):
            w = W[row, i]
            shifted = b - w * deleted[level, i]
            losses[i] = loss[level, i] + shifted * shifted / (d + w * w / remain[level, i])
        k = fixed[level] + j
        low = want[k]
        deeper = k < size and low < size  # something free is left, and a wanted size below
        if not deeper:
            low = size
        better, kept = 0, 0
        if live == n:
            for i in range(live):
                better += losses[i] <= keep[size, i]
                kept += losses[i] <= cut[low, i]
        else:
            for i in range(live):
                better += losses[i] <= keep[size, who[level, i]]
                kept += losses[i] <= cut[low, who[level, i]]
        if better > 0:
            offer(st, level, j, size)
        if walking:
            kept = n
        elif not deeper or kept == 0:
            continue
        descend(st, level, j, low, kept, walking)
        level += 1
    return pause(tree, level, done)

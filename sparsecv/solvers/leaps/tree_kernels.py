"""Compiled depth-first search of a leaps-and-bounds tree (Furnival & Wilson 1974), on XᵀX + γ/2 I.

The objective f_S of the ridge fit on a node S is a lower bound for every support below the node.
Objectives are kept as the loss above the full ridge fit: f_S − f_full is a sum of positive terms
β_j²/A_jj, so that it keeps its digits whether γ is 1e-8 or 1e8.

One tree answers one problem, or the n problems that each lack one row. Problem i then is the full
one with row (z_i, t_i) taken out of its Gram matrices. On a node S with ridge fit β,
A = (G_S + γ/2 I)⁻¹, W = A Z_Sᵀ, residuals r and leverages h, the objective of problem i is
f_S − r_i²/(1 − h_i); dropping member m adds (β_m − W_mi r_i/(1−h_i))² / (A_mm + W_mi²/(1−h_i)).
A child is pruned only when it can improve no problem at any size that it still reaches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import EPS, Array
from .leaps_node import (
    Tree,
    begin_tree,
    drop,
    factorise,
    highest_rank,
    name_child,
    new_tree,
    pause,
    remember,
)


class TreeSettings(NamedTuple):
    """Numbers that tune the search of a tree."""

    # Supports of a size that are kept while their losses are equal up to rounding. Where more are
    # tied, the lexicographically first of them are kept. Of one problem a list is cheap; of every
    # deleted row there is one, in memory that all of them share.
    ties: int = 64
    ties_per_deleted_row: int = 4
    # Supports of a size that a finished tree hands on to larger γ, where it is asked to keep more
    # than the best. Doubled, more γ are answered without a tree and every tree searches more nodes.
    runners_up: int = 4
    # Relative loss above the best up to which a tree keeps them, and columns up to which it never
    # does: such trees are too small for it to pay. Doubled, trees search more nodes and answer more
    # of the larger γ. Both are measured.
    runner_up_margin: float = 0.05
    columns_without_runners_up: int = 16
    # Share of the live problems of a node. Where a child can improve at least this share of them,
    # the child keeps all of them: copying the live problems together costs more than it saves.
    # Measured for leave-one-out; at twice the value problems would always be copied.
    least_share_kept: float = 0.75
    # Nodes that a tree searches between two looks at the clock and the stop flag: a few
    # milliseconds. Doubled, a search may overrun its time limit by twice as much.
    nodes_per_look: int = 20_000
    # The same in updates of one deleted row and one column: some tens of milliseconds.
    updates_per_look: int = 20_000_000


TREE = TreeSettings()
SEARCH = np.empty(0, dtype=np.int64)  # what :func:`advance` takes in place of ranks to search


class State(NamedTuple):
    """Everything the search needs to stop after any node and go on later.

    With no deleted rows, n = 0, there is one problem; with n deleted rows there are n. ``best`` is
    the least loss known per size and problem, ``keep`` the loss up to which supports of that size
    are entered, ``cut`` the loss above which a node can be pruned, ``pruned_bound`` the least
    bound among nodes pruned within the tolerance.

    ``W`` holds the rows of A Z_Sᵀ of the free members, level after level in one buffer
    (``offset``). A node keeps only its ``alive`` problems, those it may still improve: entries of
    ``loss``, ``W``, ``one_minus_leverage`` and ``deleted_residual`` are in the order of ``who``.
    """

    tree: Tree
    best: Array  # (p+2, problems)
    keep: Array  # (p+2, problems)
    cut: Array  # (p+2, problems)
    pruned_bound: Array  # (p+2,)
    loss: Array  # (levels, problems): above the full ridge fit
    child: Array  # (problems,): losses of the child that is looked at
    alive: NDArray[np.int64]  # (levels,)
    who: NDArray[np.int64]  # (levels, problems)
    select: NDArray[np.int64]  # (problems,): positions in the parent's arrays
    Z: Array  # (p, n): deleted rows, transposed
    t: Array  # (n,)
    V: Array  # (p, n)
    W: Array  # (buffer rows, n)
    offset: NDArray[np.int64]  # (levels,)
    one_minus_leverage: Array  # (levels, n): 1 − h_i
    deleted_residual: Array  # (levels, n): r_i/(1−h_i)


def new_state(
    p: int,
    sizes: NDArray[np.intp],
    rows: Array | None = None,
    targets: Array | None = None,
    tolerance: float = 0.0,
) -> State:
    """Allocate the search for the wanted ``sizes`` among p columns.

    rows, targets, shape (n, p) and (n,): Rows to delete in turn; none by default.
    tolerance: Relative gap at which a size counts as solved.
    """
    Z = np.empty((p, 0)) if rows is None else np.ascontiguousarray(rows.T)
    t = np.empty(0) if targets is None else targets
    n, problems = t.size, max(t.size, 1)
    ties = TREE.ties_per_deleted_row if n else TREE.ties
    return State(
        tree=new_tree(p, sizes, problems, ties, tolerance),
        best=np.empty((p + 2, problems)),
        keep=np.empty((p + 2, problems)),
        cut=np.empty((p + 2, problems)),
        pruned_bound=np.empty(p + 2),
        loss=np.zeros((p, problems)),
        child=np.empty(problems),
        alive=np.full(p, problems, dtype=np.int64),
        who=np.tile(np.arange(problems, dtype=np.int64), (p, 1)),
        select=np.zeros(problems, dtype=np.int64),
        Z=Z,
        t=t,
        V=np.empty((p, n)),
        W=np.empty((p * (p + 1) // 2, n)),
        offset=np.concatenate([[0], np.cumsum(np.arange(p, 1, -1))]).astype(np.int64),
        one_minus_leverage=np.empty((p, n)),
        deleted_residual=np.empty((p, n)),
    )


def exclude(state: State, problems: NDArray[np.intp]) -> None:
    """Leave problems out of the search: nothing improves them, no node stays open for them."""
    state.keep[:, problems] = -1.0
    state.cut[:, problems] = -1.0


@kernel
def begin(st, ridge):  # type: ignore[no-untyped-def]
    """Forget all incumbents and make the root from the factor in ``tree.columns_of``."""
    begin_tree(st.tree, ridge)
    p = st.tree.A.shape[0]
    for s in range(p + 2):
        st.pruned_bound[s] = np.inf
        for i in range(st.child.shape[0]):
            least = np.inf if s < p else 0.0
            st.best[s, i] = st.keep[s, i] = st.cut[s, i] = least
    if st.t.shape[0] > 0:
        fit_rows(st, 0)


@kernel
def restart(st, columns, ridge, triangular, work):  # type: ignore[no-untyped-def]
    """Set the tree up for another γ; False where γ is lost beside dependent columns."""
    tree = st.tree
    p, R = tree.A.shape[0], tree.triangle
    for a in range(p):
        tree.columns[a] = a
    if not ridge_triangle(R, columns, tree.columns, p, ridge, triangular, work, EPS):
        return False
    for c in range(p + 1):
        for a in range(p + 1):
            tree.columns_of[c, a] = R[a, c]
    begin(st, ridge)
    return True


@kernel(inner=True)
def loss_of_runner_up(st, size):  # type: ignore[no-untyped-def]
    """The least loss of this size above the ``runners_up`` least; ∞ without so many supports."""
    tree = st.tree
    loss = -np.inf
    for _ in range(TREE.runners_up + 1):
        least = np.inf
        for t in range(tree.found_n[size, 0]):
            if loss < tree.found_loss[size, 0, t] < least:
                least = tree.found_loss[size, 0, t]
        loss = least
    return loss


@kernel(inner=True)
def offer(st, level, j, size):  # type: ignore[no-untyped-def]
    """Enter the node without free member j for every problem it may be best for."""
    tree, best, keep = st.tree, st.best, st.keep
    options = tree.options[0]
    tie, margin, tolerance = options.tie, options.margin, options.tolerance
    name_child(tree, level, j)
    for position in range(st.alive[level]):
        i, loss = st.who[level, position], st.child[position]
        if loss > keep[size, i]:
            continue
        kept = remember(tree, size, i, loss)
        if not kept or (loss >= best[size, i] and margin == 0.0):
            continue
        best[size, i] = least = min(best[size, i], loss)
        cut = least * (1.0 + tie)
        if margin > 0.0:
            within = min(least * (1.0 + margin), loss_of_runner_up(st, size) * (1.0 + tie))
            cut = max(cut, within)
        keep[size, i] = cut
        if tolerance > 0.0:
            full = tree.columns_of[st.V.shape[0], st.V.shape[0]] ** 2
            cut = min(cut, max(0.0, least - tolerance * (full + least)))
        for s in range(size, st.cut.shape[0]):
            # a larger support never fits worse: a bound above the cut is useless there, too
            st.cut[s, i] = min(st.cut[s, i], cut)


@kernel(inner=True)
def fit_rows(st, level):  # type: ignore[no-untyped-def]
    """What the live deleted rows need of a node just factorised: leverages, residuals and W."""
    tree = st.tree
    m = tree.A.shape[0] - level
    k = tree.fixed[level]
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

    The node below can improve ``live`` of them. Their positions in the parent's arrays are left in
    ``st.select``.
    """
    alive, below = st.alive[level], level + 1
    who, loss, losses, cut = st.who, st.loss, st.child, st.cut
    every = live >= TREE.least_share_kept * alive
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
def descend_rows(st, level, j, some):  # type: ignore[no-untyped-def]
    """Update what the live deleted rows need to the child without free member j.

    some: Whether the child keeps only some of its parent's problems.
    """
    tree = st.tree
    A, W, handed, select = tree.A, st.W, tree.handed, st.select
    below = level + 1
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


@kernel(inline=True)
def evaluate_rows(st, level, j, size, low):  # type: ignore[no-untyped-def]
    """Losses of the child without free member j for every live deleted row, in ``st.child``.

    Returns how many problems the child improves at its own size, and how many it may improve at
    size ``low``.
    """
    tree, W, loss, losses, who = st.tree, st.W, st.loss, st.child, st.who
    remain, deleted, keep, cut = st.one_minus_leverage, st.deleted_residual, st.keep, st.cut
    live, better, kept = st.alive[level], 0, 0
    row, b, d = st.offset[level] + j, tree.beta[level, j], tree.diagonal[level, j]
    for i in range(live):
        w = W[row, i]
        shifted = b - w * deleted[level, i]
        losses[i] = loss[level, i] + shifted * shifted / (d + w * w / remain[level, i])
    if live == losses.shape[0]:
        for i in range(live):
            better += losses[i] <= keep[size, i]
            kept += losses[i] <= cut[low, i]
    else:
        for i in range(live):
            better += losses[i] <= keep[size, who[level, i]]
            kept += losses[i] <= cut[low, who[level, i]]
    return better, kept


@kernel
def advance(st, max_nodes, rank):  # type: ignore[no-untyped-def]
    """Search on for at most ``max_nodes`` nodes; True once the tree is exhausted.

    With ``rank`` (one per column) it goes down one path instead, from the root, before the search
    starts: drop the column of highest rank, among equals the cheapest one, until one is left, and
    enter every support on the way.
    """
    tree = st.tree
    p, n = st.Z.shape
    walking = rank.shape[0] > 0
    cursor, fixed, step, want = tree.cursor, tree.fixed, tree.step, tree.want
    loss, keep, cut, tolerance = st.loss, st.keep, st.cut, tree.options[0].tolerance
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
            if n == 0 and tolerance == 0.0:  # pass over children that are pruned
                last = max(j - max_nodes + done + 1, 0)
                base, k, high = loss[level, 0], fixed[level], keep[size, 0]
                while j > last and base + step[level, j] > max(high, cut[want[k + j], 0]):
                    j -= 1
                    done += 1
            cursor[level] = j - 1
            done += 1
            if size < 1:
                continue
        k = fixed[level] + j
        low = want[k]
        deeper = k < size and low < size  # something free is left, and a wanted size below
        if not deeper:
            low = size
        better, kept, value = 0, 0, 0.0
        if n == 0:
            value = loss[level, 0] + step[level, j]
            better += value <= keep[size, 0]
            kept += value <= cut[low, 0]
        else:
            better, kept = evaluate_rows(st, level, j, size, low)
        if better > 0:
            if n == 0:
                st.child[0] = value
            offer(st, level, j, size)
        if walking:
            kept = st.alive[level]
        elif not deeper or kept == 0:
            if deeper and tolerance > 0.0:
                for s in range(low, size):
                    st.pruned_bound[s] = min(st.pruned_bound[s], value)
            continue
        some = False
        if n == 0:
            loss[level + 1, 0] = value
        else:
            some = compact(st, level, low, kept)
        fresh = drop(tree, level, j, walking)
        if not fresh:
            factorise(tree, level + 1)
        if n > 0 and fresh:
            descend_rows(st, level, j, some)
        elif n > 0:
            fit_rows(st, level + 1)
        level += 1
    return pause(tree, level, done)


@kernel
def enter(st, supports, sizes, known, rank):  # type: ignore[no-untyped-def]
    """Enter incumbents: those of backward elimination, and those on the way to known supports.

    The first ``known`` rows of ``supports`` hold ``sizes`` columns each; ``rank`` is work space.
    """
    tree = st.tree
    p = tree.A.shape[0]
    for a in range(p):
        rank[a] = 0
    advance(st, 1, rank)
    for i in range(known):
        size = sizes[i]
        if size == 0 or size == p:
            continue
        for w in range(tree.support.shape[0]):
            tree.support[w] = np.uint64(0)
        for a in range(p):
            rank[a] = 1
        for a in range(size):
            column = supports[i, a]
            rank[column] = 0
            tree.support[column >> 6] |= np.uint64(1) << np.uint64(column & 63)
        new = True
        for t in range(tree.found_n[size, 0]):
            equal = True
            for w in range(tree.support.shape[0]):
                equal = equal and tree.found[size, 0, t, w] == tree.support[w]
            new = new and not equal
        if new:
            advance(st, 1, rank)


@kernel
def answers(st, sizes, supports, near, wanted):  # type: ignore[no-untyped-def]
    """The best support of every wanted size, and how many are within rounding of it."""
    tree = st.tree
    p = tree.A.shape[0]
    for i in range(sizes.shape[0]):
        size = sizes[i]
        if not wanted[i]:
            continue
        best, near[i] = 0, 0
        for t in range(tree.found_n[size, 0]):
            if tree.found_loss[size, 0, t] < tree.found_loss[size, 0, best]:
                best = t
            if tree.found_loss[size, 0, t] <= st.best[size, 0] * (1.0 + 2.0 * tree.options[0].tie):
                near[i] += 1
        position = 0
        for column in range(p):
            word = tree.found[size, 0, best, column >> 6]
            if (word >> np.uint64(column & 63)) & np.uint64(1) != 0:
                supports[i, position] = column
                position += 1

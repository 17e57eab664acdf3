"""One node of a leaps-and-bounds tree: the arrays of the path to it, and the steps to a child.

A node is a support S whose first k members may not be dropped; each child drops one free member
and fixes the free members before that one. Level ℓ of a tree holds the current node with
m = p − ℓ members, for which A = (G_S + γ/2 I)⁻¹ and the ridge fit β = A b_S are kept: dropping
member j adds β_j²/A_jj to the objective. Entries of A and β that belong to fixed members are never
needed again and are not stored. As most nodes have no child that is searched, A is stored by its
diagonal alone until a child is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import (
    EPS,
    Array,
    dot,
    later,
    mask_words,
    member_columns,
    order_steps,
    record,
    trailing_inverse,
)


class NodeSettings(NamedTuple):
    """Numbers that tune the steps on a node."""

    # Relative difference. Where a list of tied supports is full, losses this close count as equal
    # and the lexicographically first supports are kept. The value is far above what the updates
    # of one path lose (about 1e-12 in tests) and far below a difference that data can carry.
    # Doubled, the list may keep another of two supports whose losses differ by 2e-10.
    equal_loss: float = 1e-10
    # Share. A diagonal entry of A that shrank below this share of its value at the last
    # factorisation has lost four of its sixteen digits, so that the node is factorised afresh.
    # Doubled, nodes are factorised somewhat more often and lose fewer digits.
    least_diagonal_share: float = 1e-4


NODE = NodeSettings()
COUNTS = np.dtype([("level", np.int64), ("nodes", np.int64)], align=True)
OPTIONS = np.dtype(
    [
        ("tie", np.float64),  # relative difference below which rounding may reverse an order
        ("margin", np.float64),  # relative loss above the best up to which supports are kept
        ("tolerance", np.float64),  # relative gap at which a size counts as solved
        ("least_pivot", np.float64),  # √(γ/2): no pivot is smaller in exact arithmetic
    ],
    align=True,
)


class Tree(NamedTuple):
    """The current path of a tree: level ℓ holds a node with p − ℓ members.

    ``want[s]`` is the least wanted size ≥ s. ``found[s, i]`` holds the supports of size s that are
    best for problem i within the tie window, and a last one that is scratch space.
    """

    columns_of: Array  # (p+1, p+1): the triangular factor R, one column of R per row
    A: Array  # (levels, p, p), free members only
    diagonal: Array  # (levels, p): of A
    pending: NDArray[np.int64]  # (levels,): the parent's member dropped while A waits, or -1
    handed: NDArray[np.int64]  # (levels, p): the parent's positions of free members
    A0: Array  # (levels, p): diagonal of A at the last factorisation
    beta: Array  # (levels, p)
    step: Array  # (levels, p): loss added by dropping a free member
    free: NDArray[np.int64]  # (levels, p): columns of the free members
    fixed: NDArray[np.int64]  # (levels,): number k of fixed members
    cursor: NDArray[np.int64]  # (levels,): free member whose child comes next
    mask: NDArray[np.uint64]  # (levels, words): the columns of the node
    want: NDArray[np.int64]  # (p+2,)
    found: NDArray[np.uint64]  # (p+1, problems, ties + 1, words)
    found_loss: Array  # (p+1, problems, ties)
    found_n: NDArray[np.int64]  # (p+1, problems)
    counts: Any  # of COUNTS
    options: Any  # of OPTIONS
    triangle: Array  # (p+1, p+1): of a node
    work: Array  # (p+1, p+1)
    columns: NDArray[np.int64]  # (p,): of a node, the fixed ones first
    source: NDArray[np.int64]  # (p,): the parent's positions of a child's free members
    order: NDArray[np.int64]  # (p,)
    trial: Array  # (p,): steps of a child before they are put in order
    support: NDArray[np.uint64]  # (words,): the child that is looked at


def new_tree(p: int, sizes: NDArray[np.intp], problems: int, ties: int, tolerance: float) -> Tree:
    """Allocate a tree over p columns; :func:`begin_tree` makes the root from ``columns_of``.

    sizes: Wanted sizes.
    problems: How many problems share the tree.
    ties: Supports kept for a size and problem.
    tolerance: Relative gap at which a size counts as solved.
    """
    words = mask_words(p)
    whole = np.zeros(p, dtype=np.int64)
    return Tree(
        columns_of=np.empty((p + 1, p + 1)),
        A=np.empty((p, p, p)),
        diagonal=np.empty((p, p)),
        pending=whole.copy(),
        handed=np.zeros((p, p), dtype=np.int64),
        A0=np.empty((p, p)),
        beta=np.empty((p, p)),
        step=np.empty((p, p)),
        free=np.zeros((p, p), dtype=np.int64),
        fixed=whole.copy(),
        cursor=whole.copy(),
        mask=np.zeros((p, words), dtype=np.uint64),
        want=wanted_from(sizes, p),
        found=np.zeros((p + 1, problems, ties + 1, words), dtype=np.uint64),
        found_loss=np.empty((p + 1, problems, ties)),
        found_n=np.zeros((p + 1, problems), dtype=np.int64),
        counts=record(COUNTS),
        options=record(OPTIONS, tolerance=tolerance),
        triangle=np.empty((p + 1, p + 1)),
        work=np.empty((p + 1, p + 1)),
        columns=whole.copy(),
        source=whole.copy(),
        order=whole.copy(),
        trial=np.empty(p),
        support=np.zeros(words, dtype=np.uint64),
    )


def wanted_from(sizes: NDArray[np.intp], p: int) -> NDArray[np.int64]:
    """Least wanted size ≥ s for s = 0..p+1; p + 1 where there is none.

    Returns, shape (p + 2,).
    """
    want = np.full(p + 2, p + 1, dtype=np.int64)
    want[sizes] = sizes
    return np.minimum.accumulate(want[::-1])[::-1].copy()


@kernel(inner=True)
def begin_tree(tree, ridge):  # type: ignore[no-untyped-def]
    """Forget all supports and make the full set of columns the root, from ``tree.columns_of``.

    The tie window grows with the largest variance inflation A_jj·M_jj of M = G + γ/2 I, from 1e-11
    to 1e-5: a fit loses about as many units of rounding as that inflation.
    """
    p, words, options = tree.A.shape[0], tree.mask.shape[1], tree.options[0]
    options.least_pivot = np.sqrt(ridge)
    tree.counts[0].level, tree.counts[0].nodes, tree.fixed[0] = 0, 1, 0
    for w in range(words):
        tree.mask[0, w] = np.uint64(0)
    for a in range(p):
        tree.free[0, a] = a
        tree.mask[0, a >> 6] |= np.uint64(1) << np.uint64(a & 63)
    factorise(tree, 0)
    inflation = 0.0
    for a in range(p):
        column = tree.columns_of[tree.free[0, a]]
        inflation = max(inflation, tree.A[0, a, a] * dot(column, column, p))
    options.tie = min(1e-11 + 20.0 * EPS * inflation, 1e-5)
    tree.found_n[:] = 0
    tree.found_loss[:] = np.inf
    for i in range(tree.found.shape[1]):  # the full set is the only support of its size
        tree.found_n[p, i], tree.found_loss[p, i, 0] = 1, 0.0
        for w in range(words):
            tree.found[p, i, 0, w] = tree.mask[0, w]


@kernel(inner=True)
def name_child(tree, level, j):  # type: ignore[no-untyped-def]
    """The node without free member j as a mask, in ``tree.support``."""
    for w in range(tree.support.shape[0]):
        tree.support[w] = tree.mask[level, w]
    column = tree.free[level, j]
    tree.support[column >> 6] &= ~(np.uint64(1) << np.uint64(column & 63))


@kernel(inline=True)
def remember(tree, size, i, loss):  # type: ignore[no-untyped-def]
    """Enter ``tree.support`` among problem i's best of its size; False where there is no room."""
    found, found_loss, found_n, support = tree.found, tree.found_loss, tree.found_n, tree.support
    n, ties, words = found_n[size, i], found_loss.shape[2], support.shape[0]
    slot = 0
    for t in range(n):
        equal = True
        for w in range(words):
            equal = equal and found[size, i, t, w] == support[w]
        if equal:
            found_loss[size, i, t] = min(loss, found_loss[size, i, t])
            return True
        if found_loss[size, i, t] > found_loss[size, i, slot]:
            slot = t
    if n < ties:
        slot = n
        found_n[size, i] = n + 1
    elif found_loss[size, i, slot] <= loss * (1.0 + min(tree.options[0].tie, NODE.equal_loss)):
        # the list is full of ties: the lexicographically first of them are kept
        if found_loss[size, i, slot] * (1.0 + NODE.equal_loss) < loss:
            return False
        for t in range(ties):
            if later(found, size, i, t, slot):
                slot = t
        for w in range(words):
            found[size, i, ties, w] = support[w]
        if not later(found, size, i, slot, ties):
            return False
    for w in range(words):
        found[size, i, slot, w] = support[w]
    found_loss[size, i, slot] = loss
    return True


@kernel(inner=True)
def factorise(tree, level):  # type: ignore[no-untyped-def]
    """Compute a node afresh from R, after its mask, fixed count and free list are set."""
    k = tree.fixed[level]
    m = tree.A.shape[0] - level
    u = m - k
    free, order, T, least = tree.free, tree.order, tree.triangle, tree.options[0].least_pivot
    # nothing is known of the root's order: it takes a first factorisation to find it
    for turn in range(2 if level == 0 else 1):
        if turn == 1:
            order_steps(tree.trial, u, order)
            for a in range(u):
                tree.source[a] = free[level, order[a]]
            for a in range(u):
                free[level, a] = tree.source[a]
        member_columns(tree.mask, level, free, u, tree.columns)
        ridge_triangle(T, tree.columns_of, tree.columns, m, 0.0, True, tree.work, 0.0)
        for c in range(m):  # no pivot is smaller in exact arithmetic
            T[c, c] = min(T[c, c], -least)
        trailing_inverse(T, k, m, tree.A, tree.beta, level)
        for a in range(u):
            tree.A0[level, a] = tree.diagonal[level, a] = tree.A[level, a, a]
            tree.step[level, a] = tree.trial[a] = tree.beta[level, a] ** 2 / tree.A[level, a, a]
    tree.cursor[level] = u - 1
    tree.pending[level] = -1


@kernel(inner=True)
def fill(tree, level):  # type: ignore[no-untyped-def]
    """Compute the matrix of a node that :func:`drop` made, from its parent's."""
    A, handed = tree.A, tree.handed
    above, j = level - 1, tree.pending[level]
    pivot = 1.0 / A[above, j, j]
    u = A.shape[0] - level - tree.fixed[level]
    for a in range(u):
        c = handed[level, a]
        weight = A[above, j, c] * pivot
        for b in range(u):
            other = handed[level, b]
            A[level, a, b] = A[above, c, other] - weight * A[above, j, other]
    tree.pending[level] = -1


@kernel(inner=True)
def drop(tree, level, j, walking):  # type: ignore[no-untyped-def]
    """Update the node to its child without free member j, one level below.

    The free members before j become fixed, or all stay free when ``walking``. False where too many
    digits cancel: the child is named but has to be factorised. ``tree.handed[below, a]`` is the
    parent's position of the child's free member a.
    """
    if tree.pending[level] >= 0:
        fill(tree, level)
    A, A0, beta, diagonal = tree.A, tree.A0, tree.beta, tree.diagonal
    source, order, trial = tree.source, tree.order, tree.trial
    below = level + 1
    u = 0
    for a in range(0 if walking else j + 1, A.shape[0] - level - tree.fixed[level]):
        if a != j:
            source[u] = a
            u += 1
    tree.fixed[below] = A.shape[0] - below - u
    name_child(tree, level, j)
    for w in range(tree.mask.shape[1]):
        tree.mask[below, w] = tree.support[w]
    pivot = 1.0 / A[level, j, j]
    ratio = beta[level, j] * pivot
    fresh = True
    for a in range(u):
        c = source[a]
        off = A[level, j, c]
        left = diagonal[level, c] - off * pivot * off
        shifted = beta[level, c] - off * ratio
        if left > NODE.least_diagonal_share * A0[level, c]:
            trial[a] = shifted * shifted / left
        else:
            trial[a], fresh = tree.step[level, c], False
    order_steps(trial, u, order)
    for a in range(u):
        tree.free[below, a] = tree.free[level, source[order[a]]]
    if not fresh:
        return False
    for a in range(u):
        c = source[order[a]]
        off = A[level, j, c]
        tree.handed[below, a] = c
        tree.step[below, a] = trial[order[a]]
        beta[below, a] = beta[level, c] - off * ratio
        diagonal[below, a] = diagonal[level, c] - off * pivot * off
        A0[below, a] = A0[level, c]
    tree.cursor[below] = u - 1
    tree.pending[below] = j
    return True


@kernel(inner=True)
def highest_rank(tree, level, rank):  # type: ignore[no-untyped-def]
    """Where a walk goes on: the free member of highest rank, among equals the cheapest to drop."""
    best = 0
    for a in range(1, tree.A.shape[0] - level):
        high, known = rank[tree.free[level, a]], rank[tree.free[level, best]]
        if high > known or (high == known and tree.step[level, a] < tree.step[level, best]):
            best = a
    return best


@kernel(inner=True)
def pause(tree, level, done):  # type: ignore[no-untyped-def]
    """Note where the search stands after ``done`` more nodes; whether nothing is left."""
    while level >= 0 and tree.cursor[level] < 0:
        level -= 1
    tree.counts[0].level = level
    tree.counts[0].nodes += done
    return level < 0

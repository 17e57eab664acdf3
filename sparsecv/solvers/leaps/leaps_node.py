"""What both trees of leaps and bounds share: their arrays, and the steps on one node.

A node is a support S whose first k members may not be dropped; each child drops one free member
and fixes those before it. Level ℓ of a tree holds the current node with m = p − ℓ members, for
which A = (G_S + γ/2 I)⁻¹ and β are kept: dropping member j adds β_j²/A_jj to the objective. What
belongs to fixed members is never needed again and is not stored, and as most nodes have no child
that is searched, A has its diagonal alone until one is.

Both trees take these steps on their :class:`Tree`, so that each is compiled once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import (
    Array,
    later,
    mask_words,
    member_columns,
    order_steps,
    record,
    to_mask,
    trailing_inverse,
)

EQUAL = 1e-10  # losses this close are equal when the list of ties is full
CANCELLED = 1e-4  # a diagonal entry that shrank to this share of itself has lost 4 digits
COUNTS = np.dtype([("level", np.int64), ("nodes", np.int64)], align=True)
SETTINGS = np.dtype(
    [
        ("tie", np.float64),  # relative difference below which rounding may reverse an order
        ("margin", np.float64),  # the same where more than the best support is asked for
        ("tolerance", np.float64),  # relative gap at which a size counts as solved
        ("full_loss", np.float64),  # objective of the full ridge fit
        ("least", np.float64),  # √(γ/2), the least pivot in exact arithmetic
    ],
    align=True,
)


class Tree(NamedTuple):
    """What both trees keep of the current path: level ℓ holds a node with p − ℓ members.

    ``want[s]`` is the least wanted size ≥ s. ``found[s, i]`` holds the supports of size s that are
    best for problem i within the tie window, and one spare.
    """

    R: Array  # (p+1, p+1)
    columns_of: Array  # (p+1, p+1): of R, a column per row
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
    mask: NDArray[np.uint64]  # (levels, words)
    want: NDArray[np.int64]  # (p+2,)
    found: NDArray[np.uint64]  # (p+1, problems, ties + 1, words)
    found_loss: Array  # (p+1, problems, ties)
    found_n: NDArray[np.int64]  # (p+1, problems)
    counts: Any  # of COUNTS
    settings: Any  # of SETTINGS
    triangle: Array  # (p+1, p+1): of a node
    work: Array  # (p+1, p+1)
    columns: NDArray[np.int64]  # (p,)
    source: NDArray[np.int64]  # (p,): free members handed down
    order: NDArray[np.int64]  # (p,)
    trial: Array  # (p,): steps of a child before they are put in order
    support: NDArray[np.uint64]  # (words,)


def new_tree(
    R: Array, sizes: NDArray[np.intp], problems: int, ties: int, **settings: float
) -> Tree:
    """Allocate a tree over the columns of factor ``R`` that looks for the wanted ``sizes``.

    R, shape (p + 1, p + 1): Triangular factor.
    sizes: Wanted sizes.
    problems: How many share the tree.
    ties: Supports kept for a size and problem.
    **settings: Fields of the settings.
    """
    p = R.shape[0] - 1
    words = mask_words(p)
    found = np.zeros((p + 1, problems, ties + 1, words), dtype=np.uint64)
    found_loss = np.full((p + 1, problems, ties), np.inf)
    found_n = np.zeros((p + 1, problems), dtype=np.int64)
    # the full set is the only support of its size
    found[p, :, 0], found_loss[p, :, 0], found_n[p] = to_mask(np.arange(p), p), 0.0, 1
    return Tree(
        R=np.ascontiguousarray(R),
        columns_of=np.ascontiguousarray(R.T),
        A=np.empty((p, p, p)),
        A0=np.empty((p, p)),
        diagonal=np.empty((p, p)),
        pending=np.full(p, -1, dtype=np.int64),
        handed=np.zeros((p, p), dtype=np.int64),
        beta=np.empty((p, p)),
        step=np.empty((p, p)),
        free=np.tile(np.arange(p, dtype=np.int64), (p, 1)),
        fixed=np.zeros(p, dtype=np.int64),
        cursor=np.zeros(p, dtype=np.int64),
        mask=np.tile(to_mask(np.arange(p), p), (p, 1)),
        want=wanted_from(sizes, p),
        found=found,
        found_loss=found_loss,
        found_n=found_n,
        counts=record(COUNTS, nodes=1),
        settings=record(SETTINGS, full_loss=R[p, p] ** 2, **settings),
        triangle=np.empty((p + 1, p + 1)),
        work=np.empty((p + 1, p + 1)),
        columns=np.zeros(p, dtype=np.int64),
        source=np.zeros(p, dtype=np.int64),
        order=np.zeros(p, dtype=np.int64),
        trial=np.empty(p),
        support=np.zeros(words, dtype=np.uint64),
    )


def wanted_from(sizes: NDArray[np.intp], p: int) -> NDArray[np.int64]:
    """Least wanted size ≥ s for s = 0..p+1; p + 2 where there is none.

    Returns, shape (p + 2,).
    """
    want = np.full(p + 2, p + 2, dtype=np.int64)
    for s in range(p, 0, -1):
        want[s] = s if s in sizes else want[s + 1]
    want[0] = want[1]
    return want


@kernel(inner=True)
def name_child(tree, level, j):  # type: ignore[no-untyped-def]
    """The node without free member j as a mask, in ``tree.support``."""
    for w in range(tree.support.shape[0]):
        tree.support[w] = tree.mask[level, w]
    column = tree.free[level, j]
    tree.support[column >> 6] &= ~(np.uint64(1) << np.uint64(column & 63))


@kernel(inline=True)
def remember(found, found_loss, found_n, support, size, i, loss, window):  # type: ignore[no-untyped-def]
    """Enter ``support`` among problem i's best of its size; False where a full list has no room."""
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
    elif found_loss[size, i, slot] <= loss * (1.0 + min(window, EQUAL)):
        # full of ties: of those the lexicographically first are kept
        if found_loss[size, i, slot] * (1.0 + EQUAL) < loss:
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


@kernel
def factorise(tree, level):  # type: ignore[no-untyped-def]
    """Compute a node afresh from R, after its mask, fixed count and free list are set."""
    k = tree.fixed[level]
    m = tree.A.shape[0] - level
    u = m - k
    free, order, T, least = tree.free, tree.order, tree.triangle, tree.settings[0].least
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
        if left > CANCELLED * A0[level, c]:
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

"""Compiled depth-first search of the all-sizes tree (leaps and bounds on XᵀX + γ/2 I).

A node is a support S whose first k members may not be dropped; f_S bounds every support below it
from below (Furnival & Wilson 1974). Each child drops one free member and fixes those before it.
Everything is kept as loss above the full ridge fit: f_S − f_full is a sum of positive terms
β_j²/A_jj, so it keeps its digits whether γ is 1e-8 or 1e8. Rows and columns of A = (G_S + γ/2 I)⁻¹
that belong to fixed members are never needed again and are not stored.

No slices in compiled code: every view costs two atomic operations at run time and much more when
it is compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import (
    Array,
    later,
    mask_words,
    member_columns,
    order_steps,
    to_mask,
    trailing_inverse,
    triangle_of,
)

TIES = 64
EQUAL = 1e-10  # losses this close are equal when the list of ties is full
CANCELLED = 1e-4  # a diagonal entry that shrank to this share of itself has lost 4 digits


class TreeState(NamedTuple):
    """Everything the search needs to stop after any node and go on later.

    Level ℓ holds the current node with m = p − ℓ members. ``best`` is the least loss known per
    size, ``cut`` the loss above which a node can be dropped, ``want[s]`` the least wanted size
    ≥ s, ``slack`` the least bound among nodes dropped within the tolerance.
    """

    R: Array  # (p+1, p+1)
    A: Array  # (levels, p, p), free members only
    A0: Array  # (levels, p): diagonal of A at the last factorisation
    beta: Array  # (levels, p)
    step: Array  # (levels, p): loss added by dropping a free member
    loss: Array  # (levels,)
    free: NDArray[np.int64]  # (levels, p): columns of the free members
    fixed: NDArray[np.int64]  # (levels,): number k of fixed members
    cursor: NDArray[np.int64]  # (levels,): free member whose child comes next
    mask: NDArray[np.uint64]  # (levels, words)
    best: Array  # (p+2,)
    cut: Array  # (p+2,)
    slack: Array  # (p+2,)
    want: NDArray[np.int64]  # (p+2,)
    found: NDArray[np.uint64]  # (p+1, TIES + 1, words): supports within the tie window, one spare
    found_loss: Array  # (p+1, TIES)
    found_n: NDArray[np.int64]  # (p+1,)
    counts: NDArray[np.int64]  # level, nodes, factorisations
    params: Array  # tie window, tolerance (both relative), loss of the full fit, √(γ/2)
    work: Array  # (p+1, p+1)
    columns: NDArray[np.int64]  # (p,)
    source: NDArray[np.int64]  # (p,): free members handed down, then their order
    order: NDArray[np.int64]  # (p,)
    trial: Array  # (p,): steps of a child before they are put in order
    support: NDArray[np.uint64]  # (words,)


SEARCH = np.empty(0, dtype=np.int64)  # no ranks: search rather than walk


def new_state(
    R: Array, sizes: NDArray[np.intp], tie: float, tolerance: float, ridge: float
) -> TreeState:
    """Allocate the search for one problem with factor ``R`` and the wanted ``sizes``."""
    p = R.shape[0] - 1
    words = mask_words(p)
    state = TreeState(
        R=np.ascontiguousarray(R),
        A=np.empty((p, p, p)),
        A0=np.empty((p, p)),
        beta=np.empty((p, p)),
        step=np.empty((p, p)),
        loss=np.zeros(p),
        free=np.tile(np.arange(p, dtype=np.int64), (p, 1)),
        fixed=np.zeros(p, dtype=np.int64),
        cursor=np.zeros(p, dtype=np.int64),
        mask=np.tile(to_mask(np.arange(p), p), (p, 1)),
        best=np.full(p + 2, np.inf),
        cut=np.full(p + 2, np.inf),
        slack=np.full(p + 2, np.inf),
        want=wanted_from(sizes, p),
        found=np.zeros((p + 1, TIES + 1, words), dtype=np.uint64),
        found_loss=np.full((p + 1, TIES), np.inf),
        found_n=np.zeros(p + 1, dtype=np.int64),
        counts=np.array([0, 1, 0], dtype=np.int64),
        params=np.array([tie, tolerance, R[p, p] ** 2, np.sqrt(ridge)]),
        work=np.empty((p + 1, p + 1)),
        columns=np.zeros(p, dtype=np.int64),
        source=np.zeros(p, dtype=np.int64),
        order=np.zeros(p, dtype=np.int64),
        trial=np.empty(p),
        support=np.zeros(words, dtype=np.uint64),
    )
    factorise(state, 0)
    # the full set is the only support of its size
    state.found[p, 0], state.found_loss[p, 0], state.found_n[p] = state.mask[0], 0.0, 1
    state.best[p] = state.cut[p] = state.cut[p + 1] = 0.0
    return state


def wanted_from(sizes: NDArray[np.intp], p: int) -> NDArray[np.int64]:
    """Least wanted size ≥ s for s = 0..p+1; p + 2 where there is none."""
    want = np.full(p + 2, p + 2, dtype=np.int64)
    for s in range(p, 0, -1):
        want[s] = s if s in sizes else want[s + 1]
    want[0] = want[1]
    return want


@kernel
def offer(st, level, j, size, loss):  # type: ignore[no-untyped-def]
    """Enter the node without free member j as a candidate of its size."""
    found, found_loss, support = st.found, st.found_loss, st.support
    n, ties, words = st.found_n[size], st.found_loss.shape[1], st.support.shape[0]
    column = st.free[level, j]
    for w in range(words):
        support[w] = st.mask[level, w]
    support[column >> 6] &= ~(np.uint64(1) << np.uint64(column & 63))
    slot = -1
    for t in range(n):
        equal = True
        for w in range(words):
            equal = equal and found[size, t, w] == support[w]
        if equal:
            found_loss[size, t] = min(loss, found_loss[size, t])
            slot = t
    if slot < 0:
        if n < ties:
            slot = n
            st.found_n[size] = n + 1
        else:
            slot = 0
            for t in range(1, ties):
                if found_loss[size, t] > found_loss[size, slot]:
                    slot = t
            if found_loss[size, slot] <= loss * (1.0 + min(st.params[0], EQUAL)):
                # full of ties: of those the lexicographically first are kept
                if found_loss[size, slot] * (1.0 + EQUAL) < loss:
                    return
                for t in range(ties):
                    if later(found, size, t, slot):
                        slot = t
                for w in range(words):
                    found[size, ties, w] = support[w]
                if not later(found, size, slot, ties):
                    return
        for w in range(words):
            found[size, slot, w] = support[w]
        found_loss[size, slot] = loss
    if loss >= st.best[size]:
        return
    st.best[size] = loss
    tolerance, base = st.params[1], st.params[2]
    cut = loss * (1.0 + st.params[0])
    if tolerance > 0.0:
        cut = min(cut, max(0.0, loss - tolerance * (base + loss)))
    for s in range(size, st.cut.shape[0]):
        # a larger support never fits worse, so a bound above cut[size] is useless there too
        st.cut[s] = min(st.cut[s], cut)


@kernel
def factorise(st, level):  # type: ignore[no-untyped-def]
    """Compute a node afresh from R, after its mask, fixed count and free list are set."""
    k = st.fixed[level]
    m = st.A.shape[0] - level
    u = m - k
    free, order = st.free, st.order
    # a first factorisation finds the order, dearest first; the second stands in it
    for turn in range(2):
        member_columns(st.mask, level, free, u, st.columns)
        triangle_of(st.R, st.columns, m, st.work, st.params[3])
        trailing_inverse(st.work, k, m, st.A, st.beta, level)
        for a in range(u):
            st.A0[level, a] = st.A[level, a, a]
            st.step[level, a] = st.beta[level, a] ** 2 / st.A[level, a, a]
            st.trial[a] = st.step[level, a]
        if turn == 0:
            order_steps(st.trial, u, order)
            for a in range(u):
                st.source[a] = free[level, order[a]]
            for a in range(u):
                free[level, a] = st.source[a]
    st.cursor[level] = u - 1
    st.counts[2] += 1


@kernel
def descend(st, level, j, loss, walking):  # type: ignore[no-untyped-def]
    """Make the child that drops free member j the current node.

    The free members before j become fixed, or all stay free when ``walking``.
    """
    A, A0, beta = st.A, st.A0, st.beta
    source, order, trial = st.source, st.order, st.trial
    below = level + 1
    u = 0
    for a in range(0 if walking else j + 1, A.shape[0] - level - st.fixed[level]):
        if a != j:
            source[u] = a
            u += 1
    st.fixed[below] = A.shape[0] - below - u
    st.loss[below] = loss
    for w in range(st.mask.shape[1]):
        st.mask[below, w] = st.mask[level, w]
    column = st.free[level, j]
    st.mask[below, column >> 6] &= ~(np.uint64(1) << np.uint64(column & 63))
    pivot = 1.0 / A[level, j, j]
    ratio = beta[level, j] * pivot
    fresh = True
    for a in range(u):
        c = source[a]
        off = A[level, j, c]
        diagonal = A[level, c, c] - off * off * pivot
        fresh = fresh and diagonal > CANCELLED * A0[level, c]
        shifted = beta[level, c] - off * ratio
        trial[a] = shifted * shifted / diagonal
    if not fresh:
        for a in range(u):
            st.free[below, a] = st.free[level, source[a]]
        factorise(st, below)
        return
    order_steps(trial, u, order)
    for a in range(u):
        c = source[order[a]]
        weight = A[level, j, c] * pivot
        st.step[below, a] = trial[order[a]]
        st.free[below, a] = st.free[level, c]
        beta[below, a] = beta[level, c] - A[level, j, c] * ratio
        A0[below, a] = A0[level, c]
        for b in range(u):
            other = source[order[b]]
            A[below, a, b] = A[level, c, other] - weight * A[level, j, other]
    st.cursor[below] = u - 1


@kernel
def advance(st, max_nodes, rank):  # type: ignore[no-untyped-def]
    """Search on for at most ``max_nodes`` nodes; True once the tree is exhausted.

    With ``rank`` (one per column) it walks instead, from the root, before the search starts: drop
    the column of highest rank, among equals the one that costs least, until one is left, and enter
    every support on the way.
    """
    p = st.A.shape[0]
    walking = rank.shape[0] > 0
    cursor, fixed, losses, step, free = st.cursor, st.fixed, st.loss, st.step, st.free
    best, cut, want, slack = st.best, st.cut, st.want, st.slack
    widened, tolerance = 1.0 + st.params[0], st.params[1]
    level = 0 if walking else st.counts[0]
    done = 0
    while level >= 0 and done < max_nodes:
        size = p - level - 1
        j = cursor[level]
        if walking:
            if size == 0:
                break
            j = 0
            for a in range(1, size + 1):
                high, known = rank[free[level, a]], rank[free[level, j]]
                if high > known or (high == known and step[level, a] < step[level, j]):
                    j = a
        elif j < 0:
            level -= 1
            continue
        else:
            cursor[level] = j - 1
            done += 1
        loss = losses[level] + step[level, j]
        if size >= 1 and loss <= best[size] * widened:
            offer(st, level, j, size, loss)
        if not walking:
            k = fixed[level] + j
            if k >= size:
                continue  # every remaining member is fixed
            low = want[k]
            if low >= size:
                continue
            if loss > cut[low]:
                if tolerance > 0.0:
                    for s in range(low, size):
                        slack[s] = min(slack[s], loss)
                continue
        descend(st, level, j, loss, walking)
        level += 1
    if walking:
        return False
    while level >= 0 and cursor[level] < 0:
        level -= 1
    st.counts[0] = level
    st.counts[1] += done
    return level < 0

"""Compiled depth-first search of the all-sizes tree (leaps and bounds on XᵀX + γ/2 I).

A node is a support S whose first k members may not be dropped; f_S bounds every support below it
from below (Furnival & Wilson 1974). Each child drops one free member and fixes those before it.
Everything is kept as loss above the full ridge fit: f_S − f_full is a sum of positive terms
β_j²/A_jj, so it keeps its digits whether γ is 1e-8 or 1e8. Rows and columns of A = (G_S + γ/2 I)⁻¹
that belong to fixed members are never needed again and are not stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ._linalg import (
    Array,
    clear_bit,
    has_bit,
    mask_words,
    same_mask,
    trailing_inverse,
    triangle_of,
)

TIES = 8
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
    found: NDArray[np.uint64]  # (p+1, TIES, words): supports within the tie window
    found_loss: Array  # (p+1, TIES)
    found_n: NDArray[np.int64]  # (p+1,)
    counts: NDArray[np.int64]  # level, nodes, factorisations
    params: Array  # tie window (relative), tolerance (relative), loss of the full fit
    work: Array  # (p+1, p+1)
    order: NDArray[np.int64]  # (p,)


def new_state(R: Array, sizes: NDArray[np.intp], tie: float, tolerance: float) -> TreeState:
    """Allocate the search for one problem with factor ``R`` and the wanted ``sizes``."""
    p = R.shape[0] - 1
    words = mask_words(p)
    want = np.full(p + 2, p + 2, dtype=np.int64)
    for s in range(p, 0, -1):
        want[s] = s if s in sizes else want[s + 1]
    want[0] = want[1]
    state = TreeState(
        R=np.ascontiguousarray(R),
        A=np.empty((p, p, p)),
        A0=np.empty((p, p)),
        beta=np.empty((p, p)),
        step=np.empty((p, p)),
        loss=np.zeros(p),
        free=np.zeros((p, p), dtype=np.int64),
        fixed=np.zeros(p, dtype=np.int64),
        cursor=np.zeros(p, dtype=np.int64),
        mask=np.zeros((p, words), dtype=np.uint64),
        best=np.full(p + 2, np.inf),
        cut=np.full(p + 2, np.inf),
        slack=np.full(p + 2, np.inf),
        want=want,
        found=np.zeros((p + 1, TIES, words), dtype=np.uint64),
        found_loss=np.full((p + 1, TIES), np.inf),
        found_n=np.zeros(p + 1, dtype=np.int64),
        counts=np.zeros(3, dtype=np.int64),
        params=np.array([tie, tolerance, R[p, p] ** 2]),
        work=np.empty((p + 1, p + 1)),
        order=np.empty(p, dtype=np.int64),
    )
    start(state)
    return state


@njit(cache=True, nogil=True)
def raise_cuts(st, size):  # type: ignore[no-untyped-def]
    """Lower the cuts of ``size`` and above to what ``best[size]`` allows."""
    tie, tolerance, base = st.params[0], st.params[1], st.params[2]
    value = st.best[size]
    cut = value * (1.0 + tie)
    if tolerance > 0.0:
        cut = min(cut, max(0.0, value - tolerance * (base + value)))
    for s in range(size, st.cut.shape[0]):
        # a larger support never fits worse, so a bound above cut[size] is useless there too
        if st.cut[s] <= cut:
            break
        st.cut[s] = cut


@njit(cache=True, nogil=True)
def offer(st, size, loss, words, dropped):  # type: ignore[no-untyped-def]
    """Enter the support ``words`` minus column ``dropped`` (−1: none) as a candidate."""
    n = st.found_n[size]
    slot = -1
    support = words.copy()
    if dropped >= 0:
        clear_bit(support, dropped)
    for t in range(n):
        if same_mask(st.found[size, t], support):
            st.found_loss[size, t] = min(loss, st.found_loss[size, t])
            slot = t
            break
    if slot < 0:
        if n < st.found.shape[1]:
            slot = n
            st.found_n[size] = n + 1
        else:
            slot = int(np.argmax(st.found_loss[size]))
            if st.found_loss[size, slot] <= loss:
                return
        st.found[size, slot] = support
        st.found_loss[size, slot] = loss
    if loss < st.best[size]:
        st.best[size] = loss
        raise_cuts(st, size)


@njit(cache=True, nogil=True)
def order_steps(step, u, order):  # type: ignore[no-untyped-def]
    """Order free members by what dropping them costs, the dearest first (insertion sort)."""
    for a in range(u):
        c = a
        while c > 0 and step[order[c - 1]] < step[a]:
            order[c] = order[c - 1]
            c -= 1
        order[c] = a


@njit(cache=True, nogil=True)
def sort_in_place(st, level, u):  # type: ignore[no-untyped-def]
    """Apply the dearest-first order to a node just factorised."""
    order = np.empty(u, dtype=np.int64)
    for a in range(u):
        st.step[level, a] = st.beta[level, a] ** 2 / st.A[level, a, a]
    order_steps(st.step[level], u, order)
    st.step[level, :u] = st.step[level, order]
    st.beta[level, :u] = st.beta[level, order]
    st.free[level, :u] = st.free[level, order]
    block = st.A[level, :u, :u].copy()
    for a in range(u):
        for c in range(u):
            st.A[level, a, c] = block[order[a], order[c]]
        st.A0[level, a] = st.A[level, a, a]


@njit(cache=True, nogil=True)
def factorise(st, level):  # type: ignore[no-untyped-def]
    """Compute a node afresh from R, after its masks, fixed count and free list are set."""
    p = st.R.shape[0] - 1
    m = p - level
    k = st.fixed[level]
    u = m - k
    columns = np.empty(m, dtype=np.int64)
    position = 0
    is_free = np.zeros(p, dtype=np.bool_)
    for a in range(u):
        columns[k + a] = st.free[level, a]
        is_free[st.free[level, a]] = True
    for column in range(p):
        if has_bit(st.mask[level], column) and not is_free[column]:
            columns[position] = column
            position += 1
    triangle_of(st.R, columns, m, st.work)
    trailing_inverse(st.work, k, m, st.A[level, :u, :u], st.beta[level, :u])
    sort_in_place(st, level, u)
    st.cursor[level] = u - 1
    st.counts[2] += 1


@njit(cache=True, nogil=True)
def start(st):  # type: ignore[no-untyped-def]
    """Set up the root: all columns, all free."""
    p = st.R.shape[0] - 1
    for column in range(p):
        st.free[0, column] = column
        st.mask[0, column >> 6] |= np.uint64(1) << np.uint64(column & 63)
    st.counts[0] = 0
    st.counts[1] = 1
    factorise(st, 0)
    offer(st, p, 0.0, st.mask[0], -1)


@njit(cache=True, nogil=True)
def descend(st, level, j, loss):  # type: ignore[no-untyped-def]
    """Make the child that drops free member j (those before it become fixed) the current node."""
    u = st.step.shape[1] - level - st.fixed[level] - j - 1
    below = level + 1
    st.fixed[below] = st.fixed[level] + j
    st.loss[below] = loss
    st.mask[below] = st.mask[level]
    clear_bit(st.mask[below], st.free[level, j])
    A = st.A[level]
    pivot = 1.0 / A[j, j]
    ratio = st.beta[level, j] * pivot
    fresh = True
    order, step = st.order, st.work[0]
    for a in range(u):
        c = j + 1 + a
        diagonal = A[c, c] - A[c, j] * A[c, j] * pivot
        fresh = fresh and diagonal > CANCELLED * st.A0[level, c]
        beta = st.beta[level, c] - A[c, j] * ratio
        step[a] = beta * beta / diagonal
    if not fresh:
        for a in range(u):
            st.free[below, a] = st.free[level, j + 1 + a]
        factorise(st, below)
        return
    order_steps(step, u, order)
    for a in range(u):
        st.step[below, a] = step[order[a]]
        source = j + 1 + order[a]
        st.free[below, a] = st.free[level, source]
        st.beta[below, a] = st.beta[level, source] - A[source, j] * ratio
        st.A0[below, a] = st.A0[level, source]
        weight = A[source, j] * pivot
        for c in range(u):
            other = j + 1 + order[c]
            st.A[below, a, c] = A[source, other] - weight * A[j, other]
    st.cursor[below] = u - 1


@njit(cache=True, nogil=True)
def walk(st, rank):  # type: ignore[no-untyped-def]
    """Drop columns one by one from the full set and enter every support on the way.

    The column of highest ``rank`` goes first; among equals the one that costs least. Uses the
    deeper levels as scratch, so only before the search starts.
    """
    p = st.R.shape[0] - 1
    u = p
    loss = 0.0
    A = st.A[p - 1]
    A0 = st.A0[p - 1]
    beta = st.beta[p - 1]
    free = st.free[p - 1]
    support = st.mask[0].copy()
    A[:, :] = st.A[0]
    A0[:] = st.A0[0]
    beta[:] = st.beta[0]
    free[:] = st.free[0]
    while u > 1:
        j = 0
        least = np.inf
        for a in range(u):
            cost = beta[a] * beta[a] / A[a, a]
            if rank[free[a]] > rank[free[j]] or (rank[free[a]] == rank[free[j]] and cost < least):
                j = a
                least = cost
        pivot = 1.0 / A[j, j]
        loss += beta[j] * beta[j] * pivot
        clear_bit(support, free[j])
        offer(st, u - 1, loss, support, -1)
        fresh = True
        for a in range(u):
            if a != j:
                weight = A[a, j] * pivot
                beta[a] -= weight * beta[j]
                for c in range(u):
                    if c != j:
                        A[a, c] -= weight * A[j, c]
                fresh = fresh and A[a, a] > CANCELLED * A0[a]
        u -= 1
        if j < u:  # the last column moves into the gap
            free[j] = free[u]
            beta[j] = beta[u]
            A0[j] = A0[u]
            for a in range(u):
                A[j, a] = A[u, a]
                A[a, j] = A[a, u]
            A[j, j] = A[u, u]
        if not fresh:
            triangle_of(st.R, free[:u], u, st.work)
            trailing_inverse(st.work, 0, u, A[:u, :u], beta[:u])
            for a in range(u):
                A0[a] = A[a, a]


@njit(cache=True, nogil=True)
def advance(st, max_nodes):  # type: ignore[no-untyped-def]
    """Search on for at most ``max_nodes`` nodes; True once the tree is exhausted."""
    p = st.R.shape[0] - 1
    level = st.counts[0]
    done = 0
    tie, tolerance = st.params[0], st.params[1]
    while level >= 0:
        j = st.cursor[level]
        if j < 0:
            level -= 1
            continue
        if done >= max_nodes:
            break
        done += 1
        st.cursor[level] = j - 1
        size = p - level - 1
        loss = st.loss[level] + st.step[level, j]
        if size >= 1 and loss <= st.best[size] * (1.0 + tie):
            offer(st, size, loss, st.mask[level], st.free[level, j])
        k = st.fixed[level] + j
        if k >= size:
            continue  # every remaining member is fixed
        low = st.want[k]
        if low > size - 1:
            continue
        if loss > st.cut[low]:
            if tolerance > 0.0:
                for s in range(low, size):
                    st.slack[s] = min(st.slack[s], loss)
            continue
        descend(st, level, j, loss)
        level += 1
    st.counts[0] = level
    st.counts[1] += done
    return level < 0

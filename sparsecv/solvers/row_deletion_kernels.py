"""Compiled search of the shared tree: every row deleted in turn, one tree for all.

Problem i is the full one with row (z_i, t_i) taken out of its Gram matrices. On a node S with ridge
fit β, A = (G_S + γ/2 I)⁻¹, W = A Z_Sᵀ, residuals r and leverages h, its value is
f_S − r_i²/(1 − h_i); dropping member m adds (β_m − W_mi r_i/(1−h_i))² / (A_mm + W_mi²/(1−h_i)).
A child is dropped only when it can improve no problem at any size it still reaches.
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
    trailing_inverse,
    triangle_of,
)
from .all_sizes_kernels import CANCELLED, order_steps

TIES = 4


class SharedState(NamedTuple):
    """The search over n deleted-row problems; see ``all_sizes_kernels.TreeState``.

    ``W`` holds the rows of A Z_Sᵀ of the free members, level after level in one buffer
    (``offset``). ``remain`` is 1 − h_i, ``pull`` r_i/(1−h_i), ``loss`` the value of problem i
    above that of its full ridge fit. A node keeps only its ``alive`` problems, those it may still
    improve; the arrays above then have that many entries and ``who`` names the problems.
    """

    R: Array  # (p+1, p+1)
    Z: Array  # (p, n): rows, transposed
    t: Array  # (n,)
    A: Array  # (levels, p, p)
    A0: Array  # (levels, p)
    beta: Array  # (levels, p)
    step: Array  # (levels, p)
    W: Array  # (buffer rows, n)
    offset: NDArray[np.int64]  # (levels,)
    remain: Array  # (levels, n)
    pull: Array  # (levels, n)
    loss: Array  # (levels, n)
    alive: NDArray[np.int64]  # (levels,)
    who: NDArray[np.int64]  # (levels, n)
    free: NDArray[np.int64]  # (levels, p)
    fixed: NDArray[np.int64]  # (levels,)
    cursor: NDArray[np.int64]  # (levels,)
    mask: NDArray[np.uint64]  # (levels, words)
    best: Array  # (p+2, n)
    keep: Array  # (p+2, n): best widened by the tie window
    cut: Array  # (p+2, n)
    want: NDArray[np.int64]  # (p+2,)
    found: NDArray[np.uint64]  # (p+1, n, TIES, words)
    found_loss: Array  # (p+1, n, TIES)
    found_n: NDArray[np.int64]  # (p+1, n)
    counts: NDArray[np.int64]  # level, nodes, factorisations
    params: Array  # tie window, share of live problems below which a node is compacted
    work: Array  # (p+1, p+1)
    child: Array  # (n,)
    select: NDArray[np.int64]  # (n,)
    order: NDArray[np.int64]  # (p,)
    scratch: Array  # (p,)
    V: Array  # (p, n)


def new_state(
    R: Array, rows: Array, targets: Array, sizes: NDArray[np.intp], tie: float
) -> SharedState:
    """Allocate the search for the problem with factor ``R`` and the rows to delete in turn."""
    p, n = R.shape[0] - 1, rows.shape[0]
    words = mask_words(p)
    want = np.full(p + 2, p + 2, dtype=np.int64)
    for s in range(p, 0, -1):
        want[s] = s if s in sizes else want[s + 1]
    want[0] = want[1]
    depth = np.arange(p, dtype=np.int64)
    offset = np.concatenate([[0], np.cumsum(p - depth)[:-1]])
    state = SharedState(
        R=np.ascontiguousarray(R),
        Z=np.ascontiguousarray(rows.T),
        t=np.ascontiguousarray(targets),
        A=np.empty((p, p, p)),
        A0=np.empty((p, p)),
        beta=np.empty((p, p)),
        step=np.empty((p, p)),
        W=np.empty((p * (p + 1) // 2, n)),
        offset=offset,
        remain=np.empty((p, n)),
        pull=np.empty((p, n)),
        loss=np.zeros((p, n)),
        alive=np.full(p, n, dtype=np.int64),
        who=np.tile(np.arange(n, dtype=np.int64), (p, 1)),
        free=np.zeros((p, p), dtype=np.int64),
        fixed=np.zeros(p, dtype=np.int64),
        cursor=np.zeros(p, dtype=np.int64),
        mask=np.zeros((p, words), dtype=np.uint64),
        best=np.full((p + 2, n), np.inf),
        keep=np.full((p + 2, n), np.inf),
        cut=np.full((p + 2, n), np.inf),
        want=want,
        found=np.zeros((p + 1, n, TIES, words), dtype=np.uint64),
        found_loss=np.full((p + 1, n, TIES), np.inf),
        found_n=np.zeros((p + 1, n), dtype=np.int64),
        counts=np.zeros(3, dtype=np.int64),
        params=np.array([tie, 0.75]),
        work=np.empty((p + 1, p + 1)),
        child=np.empty(n),
        select=np.empty(n, dtype=np.int64),
        order=np.empty(p, dtype=np.int64),
        scratch=np.empty(p),
        V=np.empty((p, n)),
    )
    start(state)
    return state


@njit(cache=True, nogil=True, error_model="numpy")
def offer(st, size, i, loss, support):  # type: ignore[no-untyped-def]
    """Enter a support as a candidate of problem i; no slices, see ``descend``."""
    found, found_loss = st.found, st.found_loss
    n, ties, words = st.found_n[size, i], st.found.shape[2], support.shape[0]
    slot = -1
    for t in range(n):
        equal = True
        for w in range(words):
            equal = equal and found[size, i, t, w] == support[w]
        if equal:
            found_loss[size, i, t] = min(loss, found_loss[size, i, t])
            slot = t
            break
    if slot < 0:
        if n < ties:
            slot = n
            st.found_n[size, i] = n + 1
        else:
            slot = 0
            for t in range(1, ties):
                if found_loss[size, i, t] > found_loss[size, i, slot]:
                    slot = t
            if found_loss[size, i, slot] <= loss:
                return
        for w in range(words):
            found[size, i, slot, w] = support[w]
        found_loss[size, i, slot] = loss
    if loss < st.best[size, i]:
        st.best[size, i] = loss
        keep = loss * (1.0 + st.params[0])
        st.keep[size, i] = keep
        for s in range(size, st.cut.shape[0]):
            # a larger support never fits worse, so a bound above the cut is useless there too
            if st.cut[s, i] <= keep:
                break
            st.cut[s, i] = keep


@njit(cache=True, nogil=True, error_model="numpy")
def offer_child(st, level, j, size, losses):  # type: ignore[no-untyped-def]
    """Enter the node without free member j (−1: the node) wherever it may be best."""
    keep = st.keep[size]
    alive, index = st.alive[level], st.who[level]
    support = st.mask[level].copy()
    if j >= 0:
        clear_bit(support, st.free[level, j])
    for i in range(alive):
        if losses[i] <= keep[index[i]]:
            offer(st, size, index[i], losses[i], support)


@njit(cache=True, nogil=True, error_model="numpy")
def factorise(st, level):  # type: ignore[no-untyped-def]
    """Compute a node afresh from R, after its mask, fixed count, losses and free list are set."""
    p = st.Z.shape[0]
    m = p - level
    k = st.fixed[level]
    u = m - k
    columns = np.empty(m, dtype=np.int64)
    is_free = np.zeros(p, dtype=np.bool_)
    for a in range(u):
        is_free[st.free[level, a]] = True
    position = 0
    for column in range(p):
        if has_bit(st.mask[level], column) and not is_free[column]:
            columns[position] = column
            position += 1
    # a first factorisation finds the order, dearest first; the second stands in it
    for a in range(u):
        columns[k + a] = st.free[level, a]
    A = st.A[level, :u, :u]
    beta = st.beta[level]
    triangle_of(st.R, columns, m, st.work)
    trailing_inverse(st.work, k, m, A, beta[:u])
    order = np.empty(u, dtype=np.int64)
    for a in range(u):
        st.step[level, a] = beta[a] * beta[a] / A[a, a]
    order_steps(st.step[level], u, order)
    for a in range(u):
        columns[k + a] = st.free[level, order[a]]
    triangle_of(st.R, columns, m, st.work)
    trailing_inverse(st.work, k, m, A, beta[:u])
    for a in range(u):
        st.free[level, a] = columns[k + a]
        st.A0[level, a] = A[a, a]
        st.step[level, a] = beta[a] * beta[a] / A[a, a]
    # V = T⁻ᵀ Z_Sᵀ gives leverages and residuals as sums over members
    remain, pull, V = st.remain[level], st.pull[level], st.V
    n, index = st.alive[level], st.who[level]
    for i in range(n):
        remain[i] = 1.0
        pull[i] = st.t[index[i]]
    for a in range(m):
        inverse = 1.0 / st.work[a, a]
        z = st.work[a, m]
        row = V[a]
        for i in range(n):
            row[i] = st.Z[columns[a], index[i]]
        for c in range(a):
            weight = st.work[c, a]
            other = V[c]
            for i in range(n):
                row[i] -= weight * other[i]
        for i in range(n):
            row[i] *= inverse
            remain[i] -= row[i] * row[i]
            pull[i] -= z * row[i]
    for i in range(n):
        pull[i] /= remain[i]
    # the free rows of W = T⁻¹V need the trailing triangle only
    base = st.offset[level]
    for a in range(u - 1, -1, -1):
        row = st.W[base + a]
        for i in range(n):
            row[i] = V[k + a, i]
        for c in range(a + 1, u):
            weight = st.work[k + a, k + c]
            other = st.W[base + c]
            for i in range(n):
                row[i] -= weight * other[i]
        inverse = 1.0 / st.work[k + a, k + a]
        for i in range(n):
            row[i] *= inverse
    st.cursor[level] = u - 1
    st.counts[2] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def start(st):  # type: ignore[no-untyped-def]
    """Set up the root: all columns, all free."""
    p = st.Z.shape[0]
    for column in range(p):
        st.free[0, column] = column
        st.mask[0, column >> 6] |= np.uint64(1) << np.uint64(column & 63)
    st.counts[0] = 0
    st.counts[1] = 1
    factorise(st, 0)
    offer_child(st, 0, -1, p, st.loss[0])


@njit(cache=True, nogil=True, error_model="numpy")
def restart(st):  # type: ignore[no-untyped-def]
    """Put the root back in order after walks have shuffled it."""
    factorise(st, 0)
    st.counts[0] = 0


@njit(cache=True, nogil=True, error_model="numpy")
def exclude(st, i):  # type: ignore[no-untyped-def]
    """Leave problem i out of the search: nothing improves it, nothing is kept open for it."""
    st.keep[:, i] = -1.0
    st.cut[:, i] = -1.0


@njit(cache=True, nogil=True, error_model="numpy")
def compact(st, level, losses, low, live):  # type: ignore[no-untyped-def]
    """Choose the live problems of the node below; True when only some are kept.

    ``live`` of them are worth keeping. While that is most of them, all are kept: a copy costs more
    than it saves. Their positions in the parent's arrays are left in ``st.select``.
    """
    alive, below = st.alive[level], level + 1
    index = st.who[level]
    if live >= st.params[1] * alive:
        st.alive[below] = alive
        for i in range(alive):
            st.who[below, i] = index[i]
            st.loss[below, i] = losses[i]
        return False
    limits = st.cut[low]
    count = 0
    for i in range(alive):
        if losses[i] <= limits[index[i]]:
            st.select[count] = i
            st.who[below, count] = index[i]
            st.loss[below, count] = losses[i]
            count += 1
    st.alive[below] = count
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def descend(st, level, j, losses, low, live):  # type: ignore[no-untyped-def]
    """Make the child that drops free member j (those before it become fixed) the current node.

    No slices here and in ``advance``: a view costs two atomic operations, more than the loop.
    """
    A, A0, beta, W = st.A, st.A0, st.beta, st.W
    order, step, select = st.order, st.scratch, st.select
    below = level + 1
    u = st.Z.shape[0] - level - st.fixed[level] - j - 1
    st.fixed[below] = st.fixed[level] + j
    for w in range(st.mask.shape[1]):
        st.mask[below, w] = st.mask[level, w]
    column = st.free[level, j]
    st.mask[below, column >> 6] &= ~(np.uint64(1) << np.uint64(column & 63))
    some = compact(st, level, losses, low, live)
    pivot = 1.0 / A[level, j, j]
    ratio = beta[level, j] * pivot
    fresh = True
    for a in range(u):
        c = j + 1 + a
        off = A[level, j, c]
        diagonal = A[level, c, c] - off * off * pivot
        fresh = fresh and diagonal > CANCELLED * A0[level, c]
        shifted = beta[level, c] - off * ratio
        step[a] = shifted * shifted / diagonal
    if not fresh:
        for a in range(u):
            st.free[below, a] = st.free[level, j + 1 + a]
        factorise(st, below)
        return
    order_steps(step, u, order)
    n = st.alive[below]
    dropped, target, origin = st.offset[level] + j, st.offset[below], st.offset[level] + j + 1
    for a in range(u):
        source = j + 1 + order[a]
        st.step[below, a] = step[order[a]]
        st.free[below, a] = st.free[level, source]
        beta[below, a] = beta[level, source] - A[level, source, j] * ratio
        A0[below, a] = A0[level, source]
        weight = A[level, source, j] * pivot
        for c in range(u):
            other = j + 1 + order[c]
            A[below, a, c] = A[level, source, other] - weight * A[level, j, other]
        row = origin + order[a]
        if some:
            for i in range(n):
                W[target + a, i] = W[row, select[i]] - weight * W[dropped, select[i]]
        else:
            for i in range(n):
                W[target + a, i] = W[row, i] - weight * W[dropped, i]
    remain, pull = st.remain, st.pull
    if some:
        for i in range(n):
            o = select[i]
            w = W[dropped, o]
            grown = remain[level, o] + w * w * pivot  # 1 − h only grows: nothing cancels
            pull[below, i] = (pull[level, o] * remain[level, o] + w * ratio) / grown
            remain[below, i] = grown
    else:
        for i in range(n):
            w = W[dropped, i]
            grown = remain[level, i] + w * w * pivot
            pull[below, i] = (pull[level, i] * remain[level, i] + w * ratio) / grown
            remain[below, i] = grown
    st.cursor[below] = u - 1


@njit(cache=True, nogil=True, error_model="numpy")
def advance(st, max_nodes):  # type: ignore[no-untyped-def]
    """Search on for at most ``max_nodes`` nodes; True once the tree is exhausted."""
    p, n = st.Z.shape
    A, beta, W, loss, losses = st.A, st.beta, st.W, st.loss, st.child
    remain, pull, keep, cut = st.remain, st.pull, st.keep, st.cut
    cursor, fixed, index, alive, want = st.cursor, st.fixed, st.who, st.alive, st.want
    level = st.counts[0]
    done = 0
    while level >= 0:
        j = cursor[level]
        if j < 0:
            level -= 1
            continue
        if done >= max_nodes:
            break
        done += 1
        cursor[level] = j - 1
        size = p - level - 1
        if size < 1:
            continue
        live = alive[level]
        row, b, d = st.offset[level] + j, beta[level, j], A[level, j, j]
        for i in range(live):
            w = W[row, i]
            shifted = b - w * pull[level, i]
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
                better += losses[i] <= keep[size, index[level, i]]
                kept += losses[i] <= cut[low, index[level, i]]
        if better > 0:
            offer_child(st, level, j, size, losses)
        if deeper and kept > 0:
            descend(st, level, j, losses, low, kept)
            level += 1
    st.counts[0] = level
    st.counts[1] += done
    return level < 0


@njit(cache=True, nogil=True, error_model="numpy")
def walk(st, rank):  # type: ignore[no-untyped-def]
    """Drop columns one by one from the full set and enter every support on the way.

    The column of highest ``rank`` goes first; among equals the one that costs least. Uses the
    deeper levels as scratch, so only before the search starts.
    """
    p, n = st.Z.shape
    for level in range(p - 1):
        u = p - level
        j = 0
        least = np.inf
        for a in range(u):
            cost = st.step[level, a]
            r, s = rank[st.free[level, a]], rank[st.free[level, j]]
            if r > s or (r == s and cost < least):
                j = a
                least = cost
        row, losses = st.offset[level] + j, st.child
        for i in range(n):
            w = st.W[row, i]
            shifted = st.beta[level, j] - w * st.pull[level, i]
            losses[i] = st.loss[level, i] + shifted * shifted / (
                st.A[level, j, j] + w * w / st.remain[level, i]
            )
        offer_child(st, level, j, u - 1, losses)
        bring_forward(st, level, j)  # so that no member becomes fixed
        descend(st, level, 0, losses, 0, n)


@njit(cache=True, nogil=True, error_model="numpy")
def bring_forward(st, level, j):  # type: ignore[no-untyped-def]
    """Swap free members 0 and j of a node with nothing fixed."""
    u = st.Z.shape[0] - level
    base = st.offset[level]
    for array in (st.beta[level], st.step[level], st.A0[level]):
        array[0], array[j] = array[j], array[0]
    free = st.free[level]
    free[0], free[j] = free[j], free[0]
    A = st.A[level]
    for a in range(u):
        A[0, a], A[j, a] = A[j, a], A[0, a]
    for a in range(u):
        A[a, 0], A[a, j] = A[a, j], A[a, 0]
    first, other = st.W[base], st.W[base + j]
    for i in range(first.shape[0]):
        first[i], other[i] = other[i], first[i]

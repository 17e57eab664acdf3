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
from ..kernels.linalg import (
    Array,
    mask_words,
    member_columns,
    order_steps,
    to_mask,
    trailing_inverse,
    triangle_of,
)
from .all_sizes_kernels import CANCELLED, wanted_from

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
    found: NDArray[np.uint64]  # (p+1, n, TIES + 1, words)
    found_loss: Array  # (p+1, n, TIES)
    found_n: NDArray[np.int64]  # (p+1, n)
    counts: NDArray[np.int64]  # level, nodes, factorisations
    params: Array  # tie window, share of live problems below which a node is compacted, √(γ/2)
    work: Array  # (p+1, p+1)
    child: Array  # (n,)
    select: NDArray[np.int64]  # (n,)
    columns: NDArray[np.int64]  # (p,)
    source: NDArray[np.int64]  # (p,)
    order: NDArray[np.int64]  # (p,)
    trial: Array  # (p,)
    support: NDArray[np.uint64]  # (words,)
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
    words = mask_words(p)
    depth = np.arange(p, dtype=np.int64)
    state = SharedState(
        R=np.ascontiguousarray(R),
        Z=np.ascontiguousarray(rows.T),
        t=np.ascontiguousarray(targets),
        A=np.empty((p, p, p)),
        A0=np.empty((p, p)),
        beta=np.empty((p, p)),
        step=np.empty((p, p)),
        W=np.empty((p * (p + 1) // 2, n)),
        offset=np.concatenate([[0], np.cumsum(p - depth)[:-1]]),
        remain=np.empty((p, n)),
        pull=np.empty((p, n)),
        loss=np.zeros((p, n)),
        alive=np.full(p, n, dtype=np.int64),
        who=np.tile(np.arange(n, dtype=np.int64), (p, 1)),
        free=np.tile(depth, (p, 1)),
        fixed=np.zeros(p, dtype=np.int64),
        cursor=np.zeros(p, dtype=np.int64),
        mask=np.tile(to_mask(np.arange(p), p), (p, 1)),
        best=np.full((p + 2, n), np.inf),
        keep=np.full((p + 2, n), np.inf),
        cut=np.full((p + 2, n), np.inf),
        want=wanted_from(sizes, p),
        found=np.zeros((p + 1, n, TIES + 1, words), dtype=np.uint64),
        found_loss=np.full((p + 1, n, TIES), np.inf),
        found_n=np.zeros((p + 1, n), dtype=np.int64),
        counts=np.array([0, 1, 0], dtype=np.int64),
        params=np.array([tie, 0.75, np.sqrt(ridge)]),
        work=np.empty((p + 1, p + 1)),
        child=np.empty(n),
        select=np.zeros(n, dtype=np.int64),
        columns=np.zeros(p, dtype=np.int64),
        source=np.zeros(p, dtype=np.int64),
        order=np.zeros(p, dtype=np.int64),
        trial=np.empty(p),
        support=np.zeros(words, dtype=np.uint64),
        V=np.empty((p, n)),
    )
    factorise(state, 0)
    # the full set is the only support of its size
    state.found[p, :, 0], state.found_loss[p, :, 0] = state.mask[0], 0.0
    state.found_n[p] = 1
    state.best[p] = state.keep[p] = state.cut[p] = state.cut[p + 1] = 0.0
    return state


def exclude(state: SharedState, problems: NDArray[np.intp]) -> None:
    """Leave problems out of the search: nothing improves them, nothing is kept open for them."""
    state.keep[:, problems] = -1.0
    state.cut[:, problems] = -1.0


@kernel
def later(masks, size, i, a, b):  # type: ignore[no-untyped-def]
    """Whether support ``masks[size, i, a]`` comes after ``masks[size, i, b]`` lexicographically."""
    for w in range(masks.shape[3]):
        first, second = masks[size, i, a, w], masks[size, i, b, w]
        if first != second:
            differ = first ^ second
            lowest = differ & (~differ + np.uint64(1))
            return (second & lowest) != 0
    return False


@kernel
def offer(st, level, j, size):  # type: ignore[no-untyped-def]
    """Enter the node without free member j for every problem it may be best for."""
    found, found_loss, support, losses = st.found, st.found_loss, st.support, st.child
    ties, words = st.found_loss.shape[2], st.support.shape[0]
    column = st.free[level, j]
    for w in range(words):
        support[w] = st.mask[level, w]
    support[column >> 6] &= ~(np.uint64(1) << np.uint64(column & 63))
    for position in range(st.alive[level]):
        i = st.who[level, position]
        loss = losses[position]
        if loss > st.keep[size, i]:
            continue
        n = st.found_n[size, i]
        slot = -1
        for t in range(n):
            equal = True
            for w in range(words):
                equal = equal and found[size, i, t, w] == support[w]
            if equal:
                found_loss[size, i, t] = min(loss, found_loss[size, i, t])
                slot = t
        if slot < 0:
            if n < ties:
                slot = n
                st.found_n[size, i] = n + 1
            else:
                slot = 0
                for t in range(1, ties):
                    if found_loss[size, i, t] > found_loss[size, i, slot]:
                        slot = t
                if found_loss[size, i, slot] <= loss * (1.0 + st.params[0]):
                    # full of ties: of those the lexicographically first are kept
                    for t in range(ties):
                        if later(found, size, i, t, slot):
                            slot = t
                    for w in range(words):
                        found[size, i, ties, w] = support[w]
                    if not later(found, size, i, slot, ties):
                        continue
            for w in range(words):
                found[size, i, slot, w] = support[w]
            found_loss[size, i, slot] = loss
        if loss < st.best[size, i]:
            st.best[size, i] = loss
            keep = loss * (1.0 + st.params[0])
            st.keep[size, i] = keep
            for s in range(size, st.cut.shape[0]):
                # a larger support never fits worse: a bound above the cut is useless there too
                st.cut[s, i] = min(st.cut[s, i], keep)


@kernel
def factorise(st, level):  # type: ignore[no-untyped-def]
    """Compute a node afresh from R, after its mask, counts, losses and free list are set."""
    k = st.fixed[level]
    m = st.A.shape[0] - level
    u = m - k
    free, order, columns, work = st.free, st.order, st.columns, st.work
    # a first factorisation finds the order, dearest first; the second stands in it
    for turn in range(2):
        member_columns(st.mask, level, free, u, columns)
        triangle_of(st.R, columns, m, work, st.params[2])
        trailing_inverse(work, k, m, st.A, st.beta, level)
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
    # V = T⁻ᵀ Z_Sᵀ gives leverages and residuals as sums over members
    remain, pull, V, W, who = st.remain, st.pull, st.V, st.W, st.who
    n = st.alive[level]
    for i in range(n):
        remain[level, i] = 1.0
        pull[level, i] = st.t[who[level, i]]
    for a in range(m):
        for i in range(n):
            V[a, i] = st.Z[columns[a], who[level, i]]
        for c in range(a):
            weight = work[c, a]
            for i in range(n):
                V[a, i] -= weight * V[c, i]
        inverse = 1.0 / work[a, a]
        z = work[a, m]
        for i in range(n):
            v = V[a, i] * inverse
            V[a, i] = v
            remain[level, i] -= v * v
            pull[level, i] -= z * v
    for i in range(n):
        pull[level, i] /= remain[level, i]
    # the free rows of W = T⁻¹V need the trailing triangle only
    base = st.offset[level]
    for a in range(u - 1, -1, -1):
        for i in range(n):
            W[base + a, i] = V[k + a, i]
        for c in range(a + 1, u):
            weight = work[k + a, k + c]
            for i in range(n):
                W[base + a, i] -= weight * W[base + c, i]
        inverse = 1.0 / work[k + a, k + a]
        for i in range(n):
            W[base + a, i] *= inverse
    st.cursor[level] = u - 1
    st.counts[2] += 1


@kernel
def compact(st, level, low, live):  # type: ignore[no-untyped-def]
    """Choose the live problems of the node below; True when only some are kept.

    ``live`` of them are worth keeping. While that is most of them, all are kept: a copy costs more
    than it saves. Their positions in the parent's arrays are left in ``st.select``.
    """
    alive, below = st.alive[level], level + 1
    who, loss, losses, cut = st.who, st.loss, st.child, st.cut
    every = live >= st.params[1] * alive
    count = 0
    for i in range(alive):
        if every or losses[i] <= cut[low, who[level, i]]:
            st.select[count] = i
            who[below, count] = who[level, i]
            loss[below, count] = losses[i]
            count += 1
    st.alive[below] = count
    return not every


@kernel
def descend(st, level, j, low, live, walking):  # type: ignore[no-untyped-def]
    """Make the child that drops free member j the current node.

    The free members before j become fixed, or all stay free when ``walking``.
    """
    A, A0, beta, W = st.A, st.A0, st.beta, st.W
    source, order, trial, select = st.source, st.order, st.trial, st.select
    below = level + 1
    u = 0
    for a in range(0 if walking else j + 1, A.shape[0] - level - st.fixed[level]):
        if a != j:
            source[u] = a
            u += 1
    st.fixed[below] = A.shape[0] - below - u
    for w in range(st.mask.shape[1]):
        st.mask[below, w] = st.mask[level, w]
    column = st.free[level, j]
    st.mask[below, column >> 6] &= ~(np.uint64(1) << np.uint64(column & 63))
    some = compact(st, level, low, live)
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
    n = st.alive[below]
    dropped, target, origin = st.offset[level] + j, st.offset[below], st.offset[level]
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
        if some:
            for i in range(n):
                W[target + a, i] = W[origin + c, select[i]] - weight * W[dropped, select[i]]
        else:
            for i in range(n):
                W[target + a, i] = W[origin + c, i] - weight * W[dropped, i]
    remain, pull = st.remain, st.pull
    for i in range(n):
        o = select[i]
        w = W[dropped, o]
        grown = remain[level, o] + w * w * pivot  # 1 − h only grows: nothing cancels
        pull[below, i] = (pull[level, o] * remain[level, o] + w * ratio) / grown
        remain[below, i] = grown
    st.cursor[below] = u - 1


@kernel
def advance(st, max_nodes, rank):  # type: ignore[no-untyped-def]
    """Search on for at most ``max_nodes`` nodes; True once the tree is exhausted.

    With ``rank`` (one per column) it walks instead, from the root, before the search starts: drop
    the column of highest rank, among equals the one that costs least, until one is left, and enter
    every support on the way.
    """
    p, n = st.Z.shape
    walking = rank.shape[0] > 0
    A, beta, W, loss, losses, step, free = st.A, st.beta, st.W, st.loss, st.child, st.step, st.free
    remain, pull, keep, cut = st.remain, st.pull, st.keep, st.cut
    cursor, fixed, who, alive, want = st.cursor, st.fixed, st.who, st.alive, st.want
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
    if walking:
        return False
    while level >= 0 and cursor[level] < 0:
        level -= 1
    st.counts[0] = level
    st.counts[1] += done
    return level < 0

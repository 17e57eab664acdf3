"""Swap local search on Gram matrices: O(1) work per candidate swap.

What is kept of a support S of k columns: A = (G_S + ridge I)⁻¹ and β = A b_S, and over all columns
V = A G_{S,·}, c = b − G_{·,S}β and d = diag(G) + ridge − colsum(G_{S,·} ∘ V), the Schur
complements. A column enters or leaves in O(kp); afresh they cost O(k²p).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array

LOST = 1e-9  # of the largest b_j: a residual of the normal equations that updates may leave


@kernel(inner=True)
def inverse_on(G, b, ridge, support, k, A, beta):  # type: ignore[no-untyped-def]
    """A = (G_S + ridge I)⁻¹ and β = A b_S by Gauss–Jordan; returns the gain b_Sᵀβ."""
    for a in range(k):
        for e in range(k):
            A[a, e] = G[support[a], support[e]]
        A[a, a] += ridge
    for q in range(k):
        pivot = max(A[q, q], 1e-300)
        inverse = 1.0 / pivot
        A[q, q] = 1.0
        for e in range(k):
            A[q, e] *= inverse
        for a in range(k):
            if a != q:
                weight = A[a, q]
                A[a, q] = 0.0
                for e in range(k):
                    A[a, e] -= weight * A[q, e]
    gain = 0.0
    for a in range(k):
        total = 0.0
        for e in range(k):
            total += A[a, e] * b[support[e]]
        beta[a] = total
        gain += total * b[support[a]]
    return gain


@kernel(inner=True)
def afresh(G, b, ridge, support, k, A, beta, V, c, d):  # type: ignore[no-untyped-def]
    """A, β, V, c and d of ``support[:k]``; returns its gain."""
    p = b.shape[0]
    gain = inverse_on(G, b, ridge, support, k, A, beta)
    for j in range(p):
        c[j] = b[j]
        d[j] = G[j, j] + ridge
    for a in range(k):
        for j in range(p):
            V[a, j] = 0.0
        for e in range(k):
            weight, row = A[a, e], support[e]
            for j in range(p):
                V[a, j] += weight * G[row, j]
    for a in range(k):
        row, weight = support[a], beta[a]
        for j in range(p):
            c[j] -= weight * G[row, j]
            d[j] -= G[row, j] * V[a, j]
    return gain


@kernel(inner=True)
def leave(k, a, A, beta, V, c, d):  # type: ignore[no-untyped-def]
    """Take out the member in place a of k; the place stays, without a meaning."""
    p = c.shape[0]
    inverse = 1.0 / A[a, a]
    ratio = beta[a] * inverse
    for j in range(p):
        c[j] += V[a, j] * ratio
        d[j] += V[a, j] * V[a, j] * inverse
    for e in range(k):
        if e != a:
            weight = A[e, a] * inverse
            beta[e] -= weight * beta[a]
            for f in range(k):
                A[e, f] -= weight * A[a, f]
            for j in range(p):
                V[e, j] -= weight * V[a, j]


@kernel(inner=True)
def join(G, ridge, support, k, a, column, A, beta, V, c, d):  # type: ignore[no-untyped-def]
    """Put a column into the free place a of k."""
    p = c.shape[0]
    for j in range(p):
        V[a, j] = G[column, j]
    for e in range(k):
        if e != a:
            weight, row = V[e, column], support[e]
            A[a, e] = weight
            for j in range(p):
                V[a, j] -= weight * G[row, j]
    length = max(V[a, column] + ridge, 1e-12 * (G[column, column] + ridge))
    inverse = 1.0 / length
    support[a], beta[a] = column, c[column] * inverse
    for j in range(p):
        c[j] -= beta[a] * V[a, j]
        d[j] -= V[a, j] * V[a, j] * inverse
        V[a, j] *= inverse
    for e in range(k):
        if e != a:
            weight = A[a, e]
            beta[e] -= weight * beta[a]
            for f in range(k):
                if f != a:
                    A[e, f] += weight * A[a, f] * inverse
            for j in range(p):
                V[e, j] -= weight * V[a, j]
    for e in range(k):
        if e != a:
            A[a, e] *= -inverse
            A[e, a] = A[a, e]
    A[a, a] = inverse


@kernel(inner=True)
def settled_gain(G, b, ridge, support, k, A, beta, V, c, d):  # type: ignore[no-untyped-def]
    """The gain that β attains after updates; everything afresh where they have lost digits.

    With r = b_S − (G_S + ridge I)β, β attains b_Sᵀβ + βᵀr: it errs by rᵀAr alone.
    """
    gain, worst, scale = 0.0, 0.0, 0.0
    for a in range(k):
        left = b[support[a]] - ridge * beta[a]
        for e in range(k):
            left -= G[support[a], support[e]] * beta[e]
        gain += beta[a] * (b[support[a]] + left)
        worst, scale = max(worst, abs(left)), max(scale, abs(b[support[a]]))
    if worst <= LOST * scale:
        return gain
    return afresh(G, b, ridge, support, k, A, beta, V, c, d)


@kernel(inner=True)
def best_swap(support, k, allowed, A, beta, V, c, d, least):  # type: ignore[no-untyped-def]
    """Place to leave and column to join that gain most, more than ``least``; (−1, −1): none.

    Dropping member m and adding column j gains (c_j + V_mj β_m/A_mm)² / (d_j + V_mj²/A_mm) less
    β_m²/A_mm.
    """
    best, drop, add = least, -1, -1
    for a in range(k):
        if allowed[support[a]] == 2:
            continue
        inverse = 1.0 / A[a, a]
        ratio = beta[a] * inverse
        cost = beta[a] * ratio
        better = 0  # by a loop without branches: mostly there is none
        for j in range(c.shape[0]):
            left = c[j] + V[a, j] * ratio
            better += left * left > (best + cost) * (d[j] + V[a, j] * V[a, j] * inverse)
        if better == 0:
            continue
        for j in range(c.shape[0]):
            length = d[j] + V[a, j] * V[a, j] * inverse
            left = c[j] + V[a, j] * ratio
            if left * left > (best + cost) * length and allowed[j] != 0 and length > 0.0:
                member = False
                for e in range(k):
                    member = member or support[e] == j
                if not member:
                    best = left * left / length - cost
                    drop, add = a, j
    return drop, add


@kernel(inner=True)
def swap_from(G, b, ridge, support, k, allowed, A, beta, V, c, d, most, gain):  # type: ignore[no-untyped-def]
    """:func:`swap_search` from what is kept of the support, whose gain is known."""
    for _ in range(most):
        drop, add = best_swap(support, k, allowed, A, beta, V, c, d, 1e-10 * abs(gain))
        if drop < 0:
            break
        before = support[drop]
        leave(k, drop, A, beta, V, c, d)
        join(G, ridge, support, k, drop, add, A, beta, V, c, d)
        new = settled_gain(G, b, ridge, support, k, A, beta, V, c, d)
        if new <= gain:  # rounding only: undo and stop
            support[drop] = before
            gain = afresh(G, b, ridge, support, k, A, beta, V, c, d)
            break
        gain = new
    return gain


@kernel
def swap_search(G, b, ridge, support, k, allowed, A, beta, V, c, d, most):  # type: ignore[no-untyped-def]
    """Best-improvement one-swap search from ``support[:k]``, overwritten; returns its gain.

    Columns with ``allowed`` 0 are never added and those with 2 never dropped.
    """
    if most == 0:
        return inverse_on(G, b, ridge, support, k, A, beta)
    gain = afresh(G, b, ridge, support, k, A, beta, V, c, d)
    return swap_from(G, b, ridge, support, k, allowed, A, beta, V, c, d, most, gain)


def improve(
    G: Array, b: Array, ridge: float, support: NDArray[np.intp], most: int = 100
) -> NDArray[np.intp]:
    """Improve a support by one-swaps until none helps.

    G, b, shape (p, p) and (p,).
    ridge: γ/2.
    support, shape (k,).
    most: Largest number of swaps.
    Returns, shape (k,), increasing.
    """
    p, k = b.size, support.size
    members = np.array(support, dtype=np.int64)
    swap_search(
        G,
        b,
        ridge,
        members,
        k,
        np.ones(p, dtype=np.int8),
        np.empty((k, k)),
        np.empty(k),
        np.empty((k, p)),
        np.empty(p),
        np.empty(p),
        most,
    )
    return np.sort(members).astype(np.intp)

"""Swap local search on Gram matrices: O(1) work per candidate swap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array


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


@kernel
def swap_search(G, b, ridge, support, k, allowed, A, beta, V, c, d, most):  # type: ignore[no-untyped-def]
    """Best-improvement one-swap search from ``support[:k]``, overwritten; returns its gain.

    Dropping member m and adding column j gains (c_j + V_mj β_m/A_mm)² / (d_j + V_mj²/A_mm) less
    β_m²/A_mm, with V = A G_{S,·}, c = b − G_{·,S}β and d_j the Schur complement of column j.
    Columns with ``allowed`` 0 are never added and those with 2 never dropped.
    """
    p = b.shape[0]
    gain = inverse_on(G, b, ridge, support, k, A, beta)
    for _ in range(most):
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
        best = 1e-10 * abs(gain)
        drop, add = -1, -1
        for a in range(k):
            if allowed[support[a]] == 2:
                continue
            inverse = 1.0 / A[a, a]
            ratio = beta[a] * inverse
            cost = beta[a] * ratio
            for j in range(p):
                length = d[j] + V[a, j] * V[a, j] * inverse
                left = c[j] + V[a, j] * ratio
                if left * left > (best + cost) * length and allowed[j] != 0 and length > 0.0:
                    member = False
                    for e in range(k):
                        member = member or support[e] == j
                    if not member:
                        best = left * left / length - cost
                        drop, add = a, j
        if drop < 0:
            break
        before = support[drop]
        support[drop] = add
        new = inverse_on(G, b, ridge, support, k, A, beta)
        if new <= gain:  # rounding only: undo and stop
            support[drop] = before
            gain = inverse_on(G, b, ridge, support, k, A, beta)
            break
        gain = new
    return gain


def improve(
    G: Array, b: Array, ridge: float, support: NDArray[np.intp], most: int = 100
) -> NDArray[np.intp]:
    """Improve a support by one-swaps until none helps.

    Parameters
    ----------
    G, b : arrays, shape (p, p) and (p,)
    ridge : float
        γ/2.
    support : array of int, shape (k,)
    most : int
        Largest number of swaps.

    Returns
    -------
    ndarray of intp, shape (k,), increasing
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

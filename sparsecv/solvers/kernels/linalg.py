"""Small compiled pieces that others share: sums of products, bit masks, triangular factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiled import kernel

Array = NDArray[np.float64]
Mask = NDArray[np.uint64]
EPS = float(np.finfo(np.float64).eps)  # twice the unit roundoff u


def mask_words(p: int) -> int:
    """Return how many 64-bit words hold a set of p columns."""
    return (p + 63) // 64


def from_mask(words: Mask) -> NDArray[np.intp]:
    """Unpack a mask into the increasing list of its columns."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.intp)


def record(dtype: np.dtype[Any], **values: float) -> Any:
    """A record whose fields kernels read and write as ``record[0].name``.

    **values: Fields by name; the others are 0.
    Returns, shape (1,).
    """
    made = np.zeros(1, dtype=dtype).view(np.recarray)
    for name, value in values.items():
        made[name] = value
    return made


@kernel(inner=True, reorder=True)
def dot(a, b, n):  # type: ignore[no-untyped-def]
    """Σ a_i b_i over the first n."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@kernel(inner=True)
def add(target, row, step, n):  # type: ignore[no-untyped-def]
    """target += step·row over the first n."""
    for i in range(n):
        target[i] += step * row[i]


@kernel(inner=True)
def factor_row(L, a, least):  # type: ignore[no-untyped-def]
    """Row a of a Cholesky factor, in place of the matrix's row; rows above are factored already.

    The diagonal entry becomes the root of what is left of it, or of ``least`` where less is left.
    Returns: What is left.
    """
    for c in range(a):
        L[a, c] = (L[a, c] - dot(L[a], L[c], c)) / L[c, c]
    left = L[a, a] - dot(L[a], L[a], a)
    L[a, a] = np.sqrt(max(left, least))
    return left


@kernel(inner=True)
def cholesky(G, ridge, columns, m, L):  # type: ignore[no-untyped-def]
    """Lower factor of G + ridge·I on some columns; pivots keep some digits."""
    for a in range(m):
        i = columns[a]
        for c in range(a):
            L[a, c] = G[i, columns[c]]
        L[a, a] = G[i, i] + ridge
        factor_row(L, a, 1e-12 * L[a, a])


@kernel(inner=True)
def invert_factor(L, n, row):  # type: ignore[no-untyped-def]
    """Replace a lower triangular factor by its inverse, in place; ``row`` is work space."""
    for a in range(n):
        inverse = 1.0 / L[a, a]
        for c in range(a):
            row[c], L[a, c] = L[a, c], 0.0
        for q in range(a):
            add(L[a], L[q], -row[q] * inverse, q + 1)
        L[a, a] = inverse


@kernel(inner=True)
def has_bit(mask, row, column):  # type: ignore[no-untyped-def]
    """Whether ``mask[row]`` holds ``column``."""
    return (mask[row, column >> 6] >> np.uint64(column & 63)) & np.uint64(1) != 0


@kernel(inner=True)
def later(masks, size, i, a, b):  # type: ignore[no-untyped-def]
    """Whether support ``masks[size, i, a]`` comes after ``masks[size, i, b]`` lexicographically."""
    for w in range(masks.shape[3]):
        first, second = masks[size, i, a, w], masks[size, i, b, w]
        if first != second:
            differ = first ^ second
            lowest = differ & (~differ + np.uint64(1))
            return (second & lowest) != 0
    return False


@kernel(inner=True)
def trailing_inverse(R, k, m, A, beta, level):  # type: ignore[no-untyped-def]
    """Block of (R_SᵀR_S)⁻¹ and of the coefficients that belongs to positions k..m−1.

    Written to ``A[level]`` and ``beta[level]``. Only the trailing triangle T = R_S[k:m, k:m]
    enters: the block is T⁻¹T⁻ᵀ.
    """
    u = m - k
    for c in range(u):
        for a in range(c + 1, u):
            A[level, a, c] = 0.0
        A[level, c, c] = 1.0 / R[k + c, k + c]
        for a in range(c - 1, -1, -1):
            total = 0.0
            for q in range(a + 1, c + 1):
                total += R[k + a, k + q] * A[level, q, c]
            A[level, a, c] = -total / R[k + a, k + a]
    for a in range(u):
        total = 0.0
        for q in range(a, u):
            total += A[level, a, q] * R[k + q, m]
        beta[level, a] = total
    # overwrite T⁻¹: entry (a, c), a ≤ c, needs columns q ≥ c of rows a and c only
    for a in range(u):
        for c in range(a, u):
            total = 0.0
            for q in range(c, u):
                total += A[level, a, q] * A[level, c, q]
            A[level, a, c] = total
    for a in range(u):
        for c in range(a):
            A[level, a, c] = A[level, c, a]


@kernel(inner=True)
def order_steps(step, u, order):  # type: ignore[no-untyped-def]
    """Order free members by what dropping them costs, the dearest first (insertion sort)."""
    for a in range(u):
        c = a
        while c > 0 and step[order[c - 1]] < step[a]:
            order[c] = order[c - 1]
            c -= 1
        order[c] = a


@kernel(inner=True)
def member_columns(mask, level, free, u, columns):  # type: ignore[no-untyped-def]
    """Columns of a node: the fixed ones, increasing, then the free ones in their order."""
    position = 0
    for column in range(64 * mask.shape[1]):
        if not has_bit(mask, level, column):
            continue
        listed = False
        for a in range(u):
            listed = listed or free[level, a] == column
        if not listed:
            columns[position] = column
            position += 1
    for a in range(u):
        columns[position + a] = free[level, a]

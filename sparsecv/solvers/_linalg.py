"""Small compiled pieces shared by the trees: bit masks and the inverse from a triangular factor."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.uint64]


def mask_words(p: int) -> int:
    """Return how many 64-bit words hold a set of p columns."""
    return (p + 63) // 64


def to_mask(support: NDArray[np.intp], p: int) -> Mask:
    """Pack a support into 64-bit words."""
    words = np.zeros(mask_words(p), dtype=np.uint64)
    for column in support:
        words[int(column) >> 6] |= np.uint64(1) << np.uint64(int(column) & 63)
    return words


def from_mask(words: Mask) -> NDArray[np.intp]:
    """Unpack a mask into the increasing list of its columns."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.intp)


@njit(cache=True, nogil=True)
def has_bit(words, column):  # type: ignore[no-untyped-def]
    return (words[column >> 6] >> np.uint64(column & 63)) & np.uint64(1) != 0


@njit(cache=True, nogil=True)
def clear_bit(words, column):  # type: ignore[no-untyped-def]
    words[column >> 6] &= ~(np.uint64(1) << np.uint64(column & 63))


@njit(cache=True, nogil=True)
def same_mask(a, b):  # type: ignore[no-untyped-def]
    for w in range(a.shape[0]):
        if a[w] != b[w]:
            return False
    return True


@njit(cache=True, nogil=True)
def triangle_of(R, columns, m, work):  # type: ignore[no-untyped-def]
    """Householder QR of R[:, columns] with R's last column appended.

    The (m+1, m+1) triangle is left in the top of ``work``, of shape at least (p+1, m+1).
    """
    rows = R.shape[0]
    for c in range(m):
        for a in range(rows):
            work[a, c] = R[a, columns[c]]
    for a in range(rows):
        work[a, m] = R[a, rows - 1]
    for c in range(m + 1):
        norm = 0.0
        for a in range(c, rows):
            norm += work[a, c] * work[a, c]
        norm = np.sqrt(norm)
        if norm == 0.0:
            continue
        alpha = -norm if work[c, c] >= 0.0 else norm
        head = work[c, c] - alpha
        # H = I − v vᵀ/(norm·|head|) with v = (head, work[c+1:, c])
        scale = 1.0 / (norm * abs(head))
        for q in range(c + 1, m + 1):
            dot = head * work[c, q]
            for a in range(c + 1, rows):
                dot += work[a, c] * work[a, q]
            dot *= scale
            work[c, q] -= dot * head
            for a in range(c + 1, rows):
                work[a, q] -= dot * work[a, c]
        work[c, c] = alpha
        for a in range(c + 1, rows):
            work[a, c] = 0.0


@njit(cache=True, nogil=True)
def trailing_inverse(work, k, m, A, beta):  # type: ignore[no-untyped-def]
    """Block of (R_SᵀR_S)⁻¹ and of the coefficients that belongs to positions k..m−1.

    Only the trailing triangle of R_S enters: A = T⁻¹T⁻ᵀ with T = R_S[k:m, k:m].
    """
    u = m - k
    # invert T in place of A's upper part, row by row from the bottom
    for c in range(u):
        for a in range(u):
            A[a, c] = 0.0
    for c in range(u):
        A[c, c] = 1.0 / work[k + c, k + c]
        for a in range(c - 1, -1, -1):
            total = 0.0
            for q in range(a + 1, c + 1):
                total += work[k + a, k + q] * A[q, c]
            A[a, c] = -total / work[k + a, k + a]
    for a in range(u):
        total = 0.0
        for q in range(a, u):
            total += A[a, q] * work[k + q, m]
        beta[a] = total
    # T⁻¹T⁻ᵀ, overwriting T⁻¹: entry (a, c), a ≤ c, needs columns q ≥ c of rows a and c only
    for a in range(u):
        for c in range(a, u):
            total = 0.0
            for q in range(c, u):
                total += A[a, q] * A[c, q]
            A[a, c] = total
    for a in range(u):
        for c in range(a):
            A[a, c] = A[c, a]
